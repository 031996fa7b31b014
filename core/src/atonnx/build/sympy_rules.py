"""Size expressions as ONNX nodes: one rule for each function that torch's expressions are made of.

Values are int64, float64 or bool, as Python computes in ints, floats and bools. Integer rules stay
in integers, so they are exact beyond 2**53. Rules are found by a function's name, because
unpickling a saved program makes classes of its own for some of torch's functions.

Where a rule looks roundabout, ONNX Runtime has no float64 or int64 kernel for the plain operator
(Tan, Asin, Where on bools, ...), or has one that goes through float64 (Pow on int64).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import sympy
from sympy.logic.boolalg import Boolean

from atonnx.errors import BuildError

if TYPE_CHECKING:
    from atonnx.build.builder import Builder
    from atonnx.build.value import Value

__all__ = ["emit", "functions", "is_condition", "kind_of"]

Rule = Callable[["_Emission", Any], Any]

_DTYPES = {"int": ir.DataType.INT64, "float": ir.DataType.DOUBLE, "bool": ir.DataType.BOOL}
_FLOAT = ir.DataType.DOUBLE
_INT_MAX = 2**63 - 1

_RULES: dict[str, Rule] = {}
# What a function gives whatever it is given; of others the arguments decide.
_KINDS: dict[str, str] = {}


def emit(
    op: Builder,
    expr: Any,
    root: Callable[[Any], Value | None],
    *,
    keep: Callable[[Any, Value], None] | None = None,
) -> Value:
    """The value of a size expression, written out at ``op``.

    ``root`` is asked for each sub-expression first, the whole included: the value that has it
    already, or None. ``keep`` is told each sub-expression that was written out.

    Raises:
        BuildError: a symbol has no root, or a function has no rule.
    """
    emission = _Emission(op, expr, root, keep)
    return emission.value(expr, kind_of(expr))  # type: ignore[no-any-return]


def functions() -> frozenset[str]:
    """Names of the sympy classes that have a rule."""
    return frozenset(_RULES)


def is_condition(expr: Any) -> bool:
    """Whether an expression is a truth value."""
    return isinstance(expr, Boolean) and not isinstance(expr, sympy.Symbol)


@functools.lru_cache(maxsize=8192)
def kind_of(expr: Any) -> str:
    """Whether an expression computes in Python's "int", "float" or "bool".

    Its structure tells; sympy's ``is_integer`` also holds for some floats, and not for some ints.
    """
    if is_condition(expr):
        return "bool"
    if isinstance(expr, sympy.Symbol):
        return "int" if expr.is_integer else "float"
    if not expr.args:
        return "int" if isinstance(expr, sympy.Integer) else "float"
    name = type(expr).__name__
    if name in _KINDS:
        return _KINDS[name]
    if name == "Pow":
        base, exponent = expr.args
        natural = isinstance(exponent, sympy.Integer) and exponent >= 0
        return "int" if natural and kind_of(base) == "int" else "float"
    if name == "Mul":
        above, below = _fraction(expr)
        whole = all(kind_of(part) == "int" for part in (*above, *below))
        return "int" if whole and (not below or expr.is_integer) else "float"
    if name == "Where":
        return _common(expr.args[1:])
    if name == "Piecewise":
        return _common(branch for branch, _ in expr.args)
    if name.startswith("BitwiseFn_"):
        return "bool" if _common(expr.args) == "bool" else "int"
    common = _common(expr.args)
    return "int" if common == "bool" else common


def _common(exprs: Iterable[Any]) -> str:
    kinds = {kind_of(expr) for expr in exprs}
    return "float" if "float" in kinds else "int" if "int" in kinds else "bool"


def _fraction(product: Any) -> tuple[list[Any], list[Any]]:
    """Factors of a Mul above and below the line."""
    above, below = [], []
    for factor in product.args:
        if isinstance(factor, sympy.Rational) and factor.q != 1:
            above.append(sympy.Integer(factor.p))
            below.append(sympy.Integer(factor.q))
        elif isinstance(factor, sympy.Pow) and isinstance(factor.exp, sympy.Integer) and factor.exp < 0:
            below.append(sympy.Pow(factor.base, -factor.exp))
        else:
            above.append(factor)
    return above, below


class _Emission:
    """The writing of one expression."""

    def __init__(self, op: Builder, whole: Any, root: Callable[[Any], Any], keep: Any) -> None:
        # Values and operators are untyped here: any ONNX operator is an attribute of a Builder.
        self.op: Any = op
        self.facts = op.session.facts
        self._whole = whole
        self._root = root
        self._keep = keep
        self._made: dict[Any, Any] = {}
        self._conditional = False

    def value(self, expr: Any, kind: str) -> Any:
        """``expr`` as a value of ``kind``."""
        if isinstance(expr, sympy.Integer) and kind != "bool":
            number = int(expr) if kind == "int" else float(int(expr))
            return self.op.const(number, _DTYPES[kind])
        made = self._made.get(expr)
        if made is None:
            made = self._root(expr)
            if made is None:
                made = self._write(expr)
                if self._keep is not None:
                    self._keep(expr, made)
            self._made[expr] = made
        return self.op.cast(made, _DTYPES[kind])

    def as_int(self, expr: Any) -> Any:
        """``expr`` as an int64 value."""
        return self.value(expr, "int")

    def as_float(self, expr: Any) -> Any:
        """``expr`` as a float64 value."""
        return self.value(expr, "float")

    def as_bool(self, expr: Any) -> Any:
        """``expr`` as a bool value."""
        return self.value(expr, "bool")

    def number(self, value: float) -> Any:
        """A float64 constant."""
        return self.op.const(float(value), _FLOAT)

    def _write(self, expr: Any) -> Any:
        name = type(expr).__name__
        if isinstance(expr, sympy.Symbol):
            raise BuildError(
                f"no value in the graph gives {expr}, which the size {self._whole} is made of",
                hint="a size must be that of a model input, or be made by a node before its use",
            )
        if expr in (sympy.true, sympy.false):
            return self.op.const(bool(expr), ir.DataType.BOOL)
        if isinstance(expr, (sympy.Number, sympy.NumberSymbol)) and expr.is_finite:
            return self.number(float(expr))
        rule = _RULES.get(name)
        if rule is None:
            raise BuildError(
                f"no rule makes ONNX of {name} in the size {self._whole}",
                hint="make the dimensions that it is computed from static",
            )
        return rule(self, expr)

    @contextmanager
    def conditional(self) -> Iterator[None]:
        """What Python computes on a condition only, ONNX computes always: nothing in it may fail."""
        before, self._conditional = self._conditional, True
        try:
            yield
        finally:
            self._conditional = before

    def divisor(self, expr: Any) -> Any:
        """An integer divisor; where its zero would not be divided by in Python, it becomes 1."""
        value = self.as_int(expr)
        if not self._conditional or self.facts.provably_nonzero(expr):
            return value
        return self.op.Where(self.op.Equal(value, 0), self.op.const(1, ir.DataType.INT64), value)

    def twice(self, x: Any, factor: float) -> tuple[Any, Any]:
        """``x * factor`` and the error of its rounding, both float64 (Dekker's product)."""
        op = self.op
        product = op.Mul(x, self.number(factor))
        high, low = _split(factor)
        spread = op.Mul(x, self.number(2.0**27 + 1))
        x_high = op.Sub(spread, op.Sub(spread, x))
        x_low = op.Sub(x, x_high)
        error = op.Sub(op.Mul(x_high, self.number(high)), product)
        error = op.Add(error, op.Mul(x_high, self.number(low)))
        error = op.Add(error, op.Mul(x_low, self.number(high)))
        return product, op.Add(error, op.Mul(x_low, self.number(low)))


def _split(x: float) -> tuple[float, float]:
    spread = x * (2.0**27 + 1)
    high = spread - (spread - x)
    return high, x - high


def _rule(*names: str, kind: str | None = None) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            _RULES[name] = rule
            if kind is not None:
                _KINDS[name] = kind
        return rule

    return register


# ------------------------------------------------------------------- arithmetic


@_rule("Add")
def _add(e: _Emission, expr: Any) -> Any:
    kind = kind_of(expr)
    terms = sorted(expr.args, key=lambda term: isinstance(term, sympy.Number))
    if kind == "float":
        whole = [term for term in terms if kind_of(term) == "int"]
        if len(whole) > 1:
            # Python adds ints exactly before it meets a float.
            terms = [sympy.Add(*whole, evaluate=False), *(t for t in terms if kind_of(t) == "float")]
    plus = [term for term in terms if not _is_negative(term)]
    minus = [-term for term in terms if _is_negative(term)]
    if plus:
        total = e.value(plus[0], kind)
    else:
        total = e.op.Neg(e.value(minus.pop(0), kind))
    for term in plus[1:]:
        total = e.op.Add(total, e.value(term, kind))
    for term in minus:
        total = e.op.Sub(total, e.value(term, kind))
    return total


def _is_negative(term: Any) -> bool:
    return isinstance(term, sympy.Mul) and isinstance(term.args[0], sympy.Number) and term.args[0] < 0


@_rule("Mul")
def _mul(e: _Emission, expr: Any) -> Any:
    kind = kind_of(expr)
    above, below = _fraction(expr)
    if not below:
        return _product(e, above, kind)
    product = _product(e, above, kind)
    if kind == "int":
        # torch divides like this only where the division leaves no rest.
        return e.op.Div(product, _product(e, below, "int"))
    if all(factor == 1 for factor in above):
        return e.op.Reciprocal(_product(e, below, "float"))
    return e.op.Div(product, _product(e, below, "float"))


def _product(e: _Emission, factors: list[Any], kind: str) -> Any:
    whole = [f for f in factors if kind_of(f) == "int"]
    rest = [f for f in factors if kind_of(f) == "float"]
    total: Any = None
    negate = sympy.S.NegativeOne in whole and len(factors) > 1
    for factor in sorted(whole, key=lambda f: isinstance(f, sympy.Number)):
        if negate and factor == -1:
            continue
        value = e.as_int(factor)
        total = value if total is None else e.op.Mul(total, value)
    if kind == "float" and total is not None:
        total = e.op.cast(total, _FLOAT)
    for factor in rest:
        value = e.as_float(factor)
        total = value if total is None else e.op.Mul(total, value)
    if total is None:
        return e.value(sympy.S.One, kind)
    return e.op.Neg(total) if negate else total


@_rule("Pow")
def _pow(e: _Emission, expr: Any) -> Any:
    base, exponent = expr.args
    if kind_of(expr) == "int":
        return _natural_power(e, e.as_int(base), int(exponent))
    value = e.as_float(base)
    if exponent in (sympy.Rational(1, 2), sympy.Rational(-1, 2)):
        power = e.op.Sqrt(value)
    elif abs(exponent) == 1:
        power = value
    elif abs(exponent) == 2:
        power = e.op.Mul(value, value)
    elif isinstance(exponent, sympy.Integer) and exponent < 0:
        power = e.op.Pow(value, e.as_float(-exponent))
    else:
        return e.op.Pow(value, e.as_float(exponent))
    return e.op.Reciprocal(power) if exponent < 0 else power


def _natural_power(e: _Emission, base: Any, exponent: int) -> Any:
    """By squaring: exact, where Pow on int64 goes through float64."""
    if exponent == 0:
        return e.op.const(1, ir.DataType.INT64)
    result: Any = None
    while True:
        if exponent & 1:
            result = base if result is None else e.op.Mul(result, base)
        exponent >>= 1
        if not exponent:
            return result
        base = e.op.Mul(base, base)


@_rule("PowByNatural", kind="int")
def _pow_by_natural(e: _Emission, expr: Any) -> Any:
    base, exponent = expr.args
    if isinstance(exponent, sympy.Integer):
        return _natural_power(e, e.as_int(base), int(exponent))
    if isinstance(base, sympy.Integer) and abs(base) > 1:
        # A power that int64 cannot hold is beyond the table, which fails at run time.
        powers = [1]
        while -_INT_MAX - 1 <= powers[-1] * int(base) <= _INT_MAX:
            powers.append(powers[-1] * int(base))
        index = e.as_int(exponent)
        if e._conditional:
            inside = e.op.And(e.op.Less(index, len(powers)), e.op.Greater(index, -1))
            index = e.op.Where(inside, index, e.op.const(0, ir.DataType.INT64))
        return e.op.Gather(e.op.const(powers, ir.DataType.INT64), index)
    op, one = e.op, e.op.const(1, ir.DataType.INT64)
    square, rest = e.as_int(base), e.as_int(exponent)
    # Beyond 63 only 0, 1 and -1 have powers in int64, of which the exponent's parity decides.
    rest = op.Where(op.Greater(rest, 63), op.Add(op.Mod(rest, 2), 62), rest)
    result = one
    for bit in range(6):
        if bit:
            square, rest = op.Mul(square, square), op.Div(rest, 2)
        result = op.Mul(result, op.Where(op.Equal(op.Mod(rest, 2), 1), square, one))
    return result


@_rule("FloatPow", kind="float")
def _float_pow(e: _Emission, expr: Any) -> Any:
    return e.op.Pow(e.as_float(expr.args[0]), e.as_float(expr.args[1]))


@_rule("FloorDiv")
def _floor_div(e: _Emission, expr: Any) -> Any:
    """Div truncates: a negative quotient loses what is left over first."""
    above, below = expr.args
    if kind_of(expr) == "float":
        return e.op.Floor(e.op.Div(e.as_float(above), e.as_float(below)))
    a, b = e.as_int(above), e.divisor(below)
    positive = e.facts.provably_nonnegative(above) and e.facts.provably_nonnegative(below)
    if positive and above != 1:  # for 1 see _true_div
        return e.op.Div(a, b)
    return e.op.Div(e.op.Sub(a, e.op.Mod(a, b)), b)


@_rule("CleanDiv")
def _clean_div(e: _Emission, expr: Any) -> Any:
    return e.op.Div(e.as_int(expr.args[0]), e.divisor(expr.args[1]))


@_rule("Mod", "PythonMod")
def _mod(e: _Emission, expr: Any) -> Any:
    """Mod has the divisor's sign on ints, as Python; on floats (``fmod``) the dividend's, as C."""
    if kind_of(expr) == "int":
        return e.op.Mod(e.as_int(expr.args[0]), e.divisor(expr.args[1]))
    op, b, zero = e.op, e.as_float(expr.args[1]), e.number(0)
    rest = op.Mod(e.as_float(expr.args[0]), b, fmod=1)
    wrong = op.And(op.Not(op.Equal(rest, zero)), op.Xor(op.Less(rest, zero), op.Less(b, zero)))
    return op.Where(wrong, op.Add(rest, b), rest)


@_rule("ModularIndexing", kind="int")
def _modular_indexing(e: _Emission, expr: Any) -> Any:
    from torch.utils._sympy.functions import FloorDiv

    base, divisor, modulus = expr.args
    quotient = base if divisor == 1 else FloorDiv(base, divisor, evaluate=False)
    return e.op.Mod(e.as_int(quotient), e.divisor(modulus))


@_rule("LShift", kind="int")
def _lshift(e: _Emission, expr: Any) -> Any:
    from torch.utils._sympy.functions import PowByNatural

    return e.op.Mul(e.as_int(expr.args[0]), e.as_int(PowByNatural(sympy.Integer(2), expr.args[1])))


@_rule("RShift", kind="int")
def _rshift(e: _Emission, expr: Any) -> Any:
    from torch.utils._sympy.functions import FloorDiv, PowByNatural

    power = PowByNatural(sympy.Integer(2), expr.args[1])
    return e.as_int(FloorDiv(expr.args[0], power, evaluate=False))


@_rule("IntTrueDiv", "FloatTrueDiv", kind="float")
def _true_div(e: _Emission, expr: Any) -> Any:
    """Ints beyond 2**53 are rounded before they are divided: one unit in the last place.

    ONNX Runtime makes ``y / x`` of ``1 / x * y``, in ints too, so that no Div has a constant 1 above.
    """
    above, below = expr.args
    if above == 1:
        return e.op.Reciprocal(e.as_float(below))
    return e.op.Div(e.as_float(above), e.as_float(below))


@_rule("Abs")
def _abs(e: _Emission, expr: Any) -> Any:
    return e.op.Abs(e.value(expr.args[0], kind_of(expr)))


@_rule("Identity")
def _identity(e: _Emission, expr: Any) -> Any:
    return e.value(expr.args[0], kind_of(expr.args[0]))


@_rule("Max")
def _max(e: _Emission, expr: Any) -> Any:
    return _extreme(e, expr, "Greater")


@_rule("Min")
def _min(e: _Emission, expr: Any) -> Any:
    return _extreme(e, expr, "Less")


def _extreme(e: _Emission, expr: Any, better: str) -> Any:
    """Comparing and choosing: Max and Min take int64 since opset 12 only."""
    kind = kind_of(expr)
    best, *rest = (e.value(arg, kind) for arg in expr.args)
    for value in rest:
        best = e.op.Where(getattr(e.op, better)(best, value), best, value)
    return best


# --------------------------------------------------------------------- rounding


@_rule("ToFloat", kind="float")
def _to_float(e: _Emission, expr: Any) -> Any:
    return e.as_float(expr.args[0])


@_rule("FloorToInt", "floor", kind="int")
def _floor(e: _Emission, expr: Any) -> Any:
    return _rounded(e, expr, "Floor")


@_rule("CeilToInt", "ceiling", kind="int")
def _ceil(e: _Emission, expr: Any) -> Any:
    return _rounded(e, expr, "Ceil")


@_rule("TruncToInt", kind="int")
def _trunc_to_int(e: _Emission, expr: Any) -> Any:
    return _rounded(e, expr, None)


@_rule("RoundToInt", kind="int")
def _round_to_int(e: _Emission, expr: Any) -> Any:
    """Round: halves to even, as Python."""
    return _rounded(e, expr, "Round")


def _rounded(e: _Emission, expr: Any, op_type: str | None) -> Any:
    (arg,) = expr.args
    if kind_of(arg) == "int":
        return e.as_int(arg)
    value = e.as_float(arg)
    # Cast cuts off what is behind the point.
    return e.op.cast(value if op_type is None else getattr(e.op, op_type)(value), ir.DataType.INT64)


@_rule("TruncToFloat", kind="float")
def _trunc_to_float(e: _Emission, expr: Any) -> Any:
    value = e.as_float(expr.args[0])
    return e.op.Where(e.op.Less(value, e.number(0)), e.op.Ceil(value), e.op.Floor(value))


@_rule("RoundDecimal", kind="float")
def _round_decimal(e: _Emission, expr: Any) -> Any:
    """Rounds what the float is, not what ``x * 10**n`` is rounded to: 2.675 to 2.67, as Python."""
    value, digits = expr.args
    if not isinstance(digits, sympy.Integer) or abs(digits) > 22:
        raise BuildError(f"round() to {digits} digits in a size: only up to 22, and constant")
    op, x, scale = e.op, e.as_float(value), 10.0 ** abs(int(digits))
    if digits >= 0:
        scaled, error = e.twice(x, scale)
    else:
        scaled = op.Div(x, e.number(scale))
        back, lost = e.twice(scaled, scale)
        error = op.Sub(op.Sub(x, back), lost)
    zero = e.number(0)
    nearest = op.Round(scaled)
    away = op.Sub(scaled, nearest)
    up = op.And(op.Equal(away, e.number(0.5)), op.Greater(error, zero))
    down = op.And(op.Equal(away, e.number(-0.5)), op.Less(error, zero))
    step = op.Where(up, e.number(1), op.Where(down, e.number(-1), zero))
    nearest = op.Add(nearest, step)
    if digits < 0:
        return op.Mul(nearest, e.number(scale))
    # From 2**52 on a float has no digits to lose.
    small = op.Less(op.Abs(scaled), e.number(2.0**52))
    return op.Where(small, op.Div(nearest, e.number(scale)), x)


# ------------------------------------------------------------ conditions, choices


def _operands(e: _Emission, expr: Any) -> tuple[Any, Any]:
    kind = _common(expr.args)
    return e.value(expr.args[0], kind), e.value(expr.args[1], kind)


@_rule("Equality")
def _eq(e: _Emission, expr: Any) -> Any:
    return e.op.Equal(*_operands(e, expr))


@_rule("Unequality")
def _ne(e: _Emission, expr: Any) -> Any:
    return e.op.Not(e.op.Equal(*_operands(e, expr)))


@_rule("StrictLessThan")
def _lt(e: _Emission, expr: Any) -> Any:
    return e.op.Less(*_operands(e, expr))


@_rule("StrictGreaterThan")
def _gt(e: _Emission, expr: Any) -> Any:
    return e.op.Greater(*_operands(e, expr))


@_rule("LessThan")
def _le(e: _Emission, expr: Any) -> Any:
    a, b = _operands(e, expr)
    if a.dtype == _FLOAT:
        return e.op.Or(e.op.Less(a, b), e.op.Equal(a, b))
    return e.op.Not(e.op.Greater(a, b))


@_rule("GreaterThan")
def _ge(e: _Emission, expr: Any) -> Any:
    a, b = _operands(e, expr)
    if a.dtype == _FLOAT:
        return e.op.Or(e.op.Greater(a, b), e.op.Equal(a, b))
    return e.op.Not(e.op.Less(a, b))


@_rule("And")
def _and(e: _Emission, expr: Any) -> Any:
    with e.conditional():
        return functools.reduce(e.op.And, [e.as_bool(arg) for arg in expr.args])


@_rule("Or")
def _or(e: _Emission, expr: Any) -> Any:
    with e.conditional():
        return functools.reduce(e.op.Or, [e.as_bool(arg) for arg in expr.args])


@_rule("Xor")
def _xor(e: _Emission, expr: Any) -> Any:
    return functools.reduce(e.op.Xor, [e.as_bool(arg) for arg in expr.args])


@_rule("Not")
def _not(e: _Emission, expr: Any) -> Any:
    return e.op.Not(e.as_bool(expr.args[0]))


@_rule("Where")
def _where(e: _Emission, expr: Any) -> Any:
    condition, yes, no = expr.args
    kind = kind_of(expr)
    with e.conditional():
        return _choose(e, kind, e.as_bool(condition), e.value(yes, kind), e.value(no, kind))


@_rule("ITE")
def _ite(e: _Emission, expr: Any) -> Any:
    with e.conditional():
        return _choose(e, "bool", *(e.as_bool(arg) for arg in expr.args))


@_rule("Piecewise")
def _piecewise(e: _Emission, expr: Any) -> Any:
    kind = kind_of(expr)
    *cases, (otherwise, last) = expr.args
    if last != sympy.true:
        raise BuildError(f"{expr} in a size has no value where none of its conditions holds")
    with e.conditional():
        result = e.value(otherwise, kind)
        for branch, condition in reversed(cases):
            result = _choose(e, kind, e.as_bool(condition), e.value(branch, kind), result)
    return result


def _choose(e: _Emission, kind: str, condition: Any, yes: Any, no: Any) -> Any:
    if kind != "bool":
        return e.op.Where(condition, yes, no)
    return e.op.Or(e.op.And(condition, yes), e.op.And(e.op.Not(condition), no))


# -------------------------------------------------------------------------- bits


@_rule("BitwiseFn_bitwise_and")
def _bitwise_and(e: _Emission, expr: Any) -> Any:
    if kind_of(expr) == "bool":
        return e.op.And(e.as_bool(expr.args[0]), e.as_bool(expr.args[1]))
    for mask, other in (expr.args, expr.args[::-1]):
        if isinstance(mask, sympy.Integer) and mask > 0 and mask & (mask + 1) == 0 and mask < _INT_MAX:
            # The low bits; this spares opsets below 18 an emulation of BitwiseAnd.
            return e.op.Mod(e.as_int(other), int(mask) + 1)
    return e.op.BitwiseAnd(e.as_int(expr.args[0]), e.as_int(expr.args[1]))


@_rule("BitwiseFn_bitwise_or")
def _bitwise_or(e: _Emission, expr: Any) -> Any:
    if kind_of(expr) == "bool":
        return e.op.Or(e.as_bool(expr.args[0]), e.as_bool(expr.args[1]))
    return e.op.BitwiseOr(e.as_int(expr.args[0]), e.as_int(expr.args[1]))


@_rule("BitwiseFn_bitwise_xor")
def _bitwise_xor(e: _Emission, expr: Any) -> Any:
    if kind_of(expr) == "bool":
        return e.op.Xor(e.as_bool(expr.args[0]), e.as_bool(expr.args[1]))
    return e.op.BitwiseXor(e.as_int(expr.args[0]), e.as_int(expr.args[1]))


# ------------------------------------------------- functions of one float argument


def _unary(name: str, *also: str) -> Callable[[Callable[[_Emission, Any], Any]], Rule]:
    def register(formula: Callable[[_Emission, Any], Any]) -> Rule:
        def rule(e: _Emission, expr: Any) -> Any:
            return formula(e, e.as_float(expr.args[0]))

        return _rule(f"OpaqueUnaryFn_{name}", name, *also, kind="float")(rule)

    return register


def _plain(name: str, op_type: str) -> None:
    _unary(name)(lambda e, x: getattr(e.op, op_type)(x))


for _name in ("sqrt", "exp", "log", "sin", "cos", "tanh"):
    _plain(_name, _name.capitalize())


@_unary("log2")
def _log2(e: _Emission, x: Any) -> Any:
    """The exponent by itself: log(2**29) / log(2) is above 29, and a ceil() after it is 30."""
    scale = e.number(math.log(2))
    exponent = e.op.Round(e.op.Div(e.op.Log(x), scale))
    mantissa = e.op.Div(x, e.op.Pow(e.number(2), exponent))
    return e.op.Add(exponent, e.op.Div(e.op.Log(mantissa), scale))


@_unary("tan")
def _tan(e: _Emission, x: Any) -> Any:
    return e.op.Div(e.op.Sin(x), e.op.Cos(x))


@_unary("cosh")
def _cosh(e: _Emission, x: Any) -> Any:
    return e.op.Mul(e.op.Add(e.op.Exp(x), e.op.Exp(e.op.Neg(x))), e.number(0.5))


@_unary("sinh")
def _sinh(e: _Emission, x: Any) -> Any:
    """By Tanh near zero, where the difference of exponentials cancels out."""
    op = e.op
    half = op.Tanh(op.Mul(x, e.number(0.5)))
    near = op.Div(op.Mul(half, e.number(2)), op.Sub(e.number(1), op.Mul(half, half)))
    far = op.Mul(op.Sub(op.Exp(x), op.Exp(op.Neg(x))), e.number(0.5))
    return op.Where(op.Less(op.Abs(x), e.number(1)), near, far)


@_unary("asinh")
def _asinh(e: _Emission, x: Any) -> Any:
    """log(1 + y) for small y by Kahan's formula."""
    op, one = e.op, e.number(1)
    size = op.Abs(x)
    square = op.Mul(x, x)
    y = op.Add(size, op.Div(square, op.Add(one, op.Sqrt(op.Add(square, one)))))
    u = op.Add(one, y)
    tiny = op.Equal(u, one)
    ratio = op.Div(op.Log(u), op.Where(tiny, one, op.Sub(u, one)))
    return op.Mul(op.Sign(x), op.Where(tiny, y, op.Mul(ratio, y)))


def _angle(e: _Emission, y: Any, x: Any) -> Any:
    """The angle of the point (x, y), x not negative: float32's Atan, and the rest that it leaves."""
    op = e.op
    ratio = op.cast(op.Div(y, x), ir.DataType.FLOAT)
    rough = op.cast(op.Atan(ratio), _FLOAT)
    sin, cos = op.Sin(rough), op.Cos(rough)
    rest = op.Div(op.Sub(op.Mul(y, cos), op.Mul(x, sin)), op.Add(op.Mul(x, cos), op.Mul(y, sin)))
    cube = op.Mul(rest, op.Mul(rest, rest))
    return op.Add(rough, op.Sub(rest, op.Div(cube, e.number(3))))


@_unary("atan")
def _atan(e: _Emission, x: Any) -> Any:
    return _angle(e, x, e.number(1))


@_unary("asin")
def _asin(e: _Emission, x: Any) -> Any:
    one = e.number(1)
    return _angle(e, x, e.op.Sqrt(e.op.Mul(e.op.Sub(one, x), e.op.Add(one, x))))


@_unary("acos")
def _acos(e: _Emission, x: Any) -> Any:
    one = e.number(1)
    half = _angle(e, e.op.Sqrt(e.op.Sub(one, x)), e.op.Sqrt(e.op.Add(one, x)))
    return e.op.Mul(half, e.number(2))
