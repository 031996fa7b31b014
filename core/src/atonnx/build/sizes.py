"""Symbolic sizes: what a row computes with where torch knows a size only as an expression.

An expression becomes ONNX nodes in :mod:`atonnx.build.sympy_rules`, when a value is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, Union, cast
from weakref import WeakKeyDictionary

import sympy
import torch
from sympy.core.function import Application
from sympy.printing.str import StrPrinter
from torch.utils._sympy.functions import (
    CleanDiv,
    FloatTrueDiv,
    FloorDiv,
    Identity,
    IntTrueDiv,
    Max,
    Min,
    Mod,
    PythonMod,
    ToFloat,
    Where,
)
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from atonnx.build.sympy_rules import emit, is_condition, kind_of
from atonnx.errors import BuildError, both

__all__ = [
    "Scalar",
    "SizeFacts",
    "SymSize",
    "emit",
    "invert",
    "is_condition",
    "kind_of",
    "of",
    "smax",
    "smin",
    "text",
]

Scalar = Union[int, float, bool, "SymSize"]

_PYTHON: dict[str, type] = {"int": int, "float": float, "bool": bool}


class SymSize:
    """A size, or a scalar made of sizes, that is known as an expression only.

    ``expr`` is a sympy expression of torch's symbolic sizes, ``kind`` is "int", "float" or
    "bool". Arithmetic follows Python and gives a Python number where the result is one. Two sizes
    are equal when their expressions are the same: that ``a == b`` is False does not tell that they
    differ at run time. An order (``<``), a truth value or an integer is given only where it holds
    for every size; what is not decidable raises an error that is a BuildError and a TypeError.
    """

    __slots__ = ("expr", "kind")

    expr: Any
    kind: str

    def __init__(self, expr: Any, kind: str = "int") -> None:
        if kind not in _PYTHON:
            raise both(BuildError, ValueError)(f"a size is int, float or bool, not {kind!r}")
        object.__setattr__(self, "expr", expr)
        object.__setattr__(self, "kind", kind)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a SymSize cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a SymSize cannot be changed")

    @staticmethod
    def symbols(*sizes: Any) -> set[Any]:
        """The symbols in some sizes; Python numbers and None have none."""
        return {s for size in sizes if isinstance(size, SymSize) for s in size.expr.free_symbols}

    def __reduce__(self) -> tuple[Any, ...]:
        return SymSize, (self.expr, self.kind)

    def __str__(self) -> str:
        return text(self.expr)

    def __repr__(self) -> str:
        return f"SymSize({self})" if self.kind == "int" else f"SymSize({self}, {self.kind})"

    def __hash__(self) -> int:
        return hash(self.expr)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SymSize):
            return bool(self.expr == other.expr)
        if isinstance(other, (int, float)):
            literal = _literal(self.expr, self.kind)
            return literal is not None and literal == other
        return NotImplemented

    def __add__(self, other: Scalar) -> Scalar:
        return _arithmetic(lambda a, b: a + b, self, other)

    def __radd__(self, other: Scalar) -> Scalar:
        return _arithmetic(lambda a, b: a + b, other, self)

    def __sub__(self, other: Scalar) -> Scalar:
        return _arithmetic(lambda a, b: a - b, self, other)

    def __rsub__(self, other: Scalar) -> Scalar:
        return _arithmetic(lambda a, b: a - b, other, self)

    def __mul__(self, other: Scalar) -> Scalar:
        return _arithmetic(lambda a, b: a * b, self, other)

    def __rmul__(self, other: Scalar) -> Scalar:
        return _arithmetic(lambda a, b: a * b, other, self)

    def __floordiv__(self, other: Scalar) -> Scalar:
        return _arithmetic(_floordiv, self, other, ints_only="//")

    def __rfloordiv__(self, other: Scalar) -> Scalar:
        return _arithmetic(_floordiv, other, self, ints_only="//")

    def __mod__(self, other: Scalar) -> Scalar:
        return _arithmetic(_mod, self, other, ints_only="%")

    def __rmod__(self, other: Scalar) -> Scalar:
        return _arithmetic(_mod, other, self, ints_only="%")

    def __truediv__(self, other: Scalar) -> Scalar:
        return _true_division(self, other)

    def __rtruediv__(self, other: Scalar) -> Scalar:
        return _true_division(other, self)

    def __neg__(self) -> Scalar:
        return _wrap(-_numeric(self)[0], "float" if self.kind == "float" else "int")

    def __pos__(self) -> Scalar:
        return self

    def __lt__(self, other: Scalar) -> bool:
        return self._decided("<", other)

    def __le__(self, other: Scalar) -> bool:
        return self._decided("<=", other)

    def __gt__(self, other: Scalar) -> bool:
        return self._decided(">", other)

    def __ge__(self, other: Scalar) -> bool:
        return self._decided(">=", other)

    def __bool__(self) -> bool:
        known = _UNCONSTRAINED.truth(self.expr)
        if known is None:
            raise _undecided(f"whether {self} is {'true' if self.kind == 'bool' else 'zero'}")
        return known

    def __index__(self) -> int:
        literal = _literal(self.expr, self.kind)
        if isinstance(literal, int):
            return int(literal)
        raise _undecided(f"which integer {self} is")

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def _number(self) -> int | float:
        literal = _literal(self.expr, self.kind)
        if literal is None:
            raise _undecided(f"which number {self} is")
        return literal

    def _decided(self, relation: str, other: Scalar) -> bool:
        if not isinstance(other, (SymSize, int, float)):
            return NotImplemented
        known = _UNCONSTRAINED.compare(self, relation, other)
        if known is None:
            raise _undecided(f"whether {self} {relation} {other}")
        return known


def smax(*sizes: Scalar) -> Scalar:
    """The largest of some sizes and numbers."""
    return _extreme(Max, max, sizes)


def smin(*sizes: Scalar) -> Scalar:
    """The smallest of some sizes and numbers."""
    return _extreme(Min, min, sizes)


_NODES: WeakKeyDictionary[Any, Scalar] = WeakKeyDictionary()


def of(x: Any) -> Scalar:
    """The symbolic size of a torch.SymInt, SymFloat or SymBool; Python numbers stay themselves.

    Raises:
        BuildError: also a TypeError, where ``x`` is neither, or holds no expression.
    """
    if isinstance(x, (bool, int, float, SymSize)):
        return x
    for torch_type, kind in ((torch.SymInt, "int"), (torch.SymFloat, "float"), (torch.SymBool, "bool")):
        if isinstance(x, torch_type):
            node = x.node
            # Reading `node.expr` applies the program's replacements anew each time.
            known = _NODES.get(node) if type(node).__weakrefoffset__ else None
            if known is None:
                known = _of_node(node, kind)
                if type(node).__weakrefoffset__:
                    _NODES[node] = known
            return known
    raise both(BuildError, TypeError)(f"{x!r} of {type(x).__name__} is not a size")


def _of_node(node: Any, kind: str) -> Scalar:
    expr = getattr(node, "expr", None)
    if expr is None:
        value = getattr(node, f"maybe_as_{kind}", lambda: None)()
        if value is None:
            raise both(BuildError, TypeError)(f"{node} holds no size expression")
        return cast(Scalar, value)
    return _wrap(sympy.sympify(expr), kind)


def text(expr: Any, names: Mapping[Any, str] | None = None) -> str:
    """An expression as Python writes it (``s0//2 + 1``), fit for a ``dim_param``.

    ``names`` gives symbols other names, such as the user's axis names.
    """
    return str(_Printer(names or {}).doprint(expr.expr if isinstance(expr, SymSize) else expr))


class SizeFacts:
    """What is known of a program's symbols, and what follows from it for expressions.

    ``ranges`` are an ExportedProgram's ``range_constraints``. torch declares the symbol of every
    input size as positive, also where the range begins at 0, so sympy's own assumptions are not
    asked: what is answered here follows from the ranges. A symbol without a range may be any
    value, or any from 0 on if it was declared non-negative. Answers are kept.
    """

    def __init__(self, ranges: Mapping[Any, ValueRanges[Any]] | None = None) -> None:
        self._ranges = dict(ranges or {})
        self._bounds: dict[Any, tuple[Any, Any] | None] = {}
        self._equal: dict[tuple[Any, Any], bool] = {}

    def bounds(self, expr: Any) -> tuple[Any, Any] | None:
        """Lowest and highest value, as sympy numbers (perhaps infinite); None if nothing is known."""
        expr = _expr(expr)
        if expr not in self._bounds:
            self._bounds[expr] = self._find_bounds(expr)
        return self._bounds[expr]

    def provably_nonzero(self, expr: Any) -> bool:
        """Whether ``expr`` is never zero."""
        expr = _expr(expr)
        if isinstance(expr, sympy.Mul) and all(arg.is_integer for arg in expr.args):
            return all(self.provably_nonzero(arg) for arg in expr.args)
        bounds = self.bounds(expr)
        return bounds is not None and bool(bounds[0] > 0 or bounds[1] < 0)

    def provably_positive(self, expr: Any) -> bool:
        """Whether ``expr`` is always greater than zero."""
        bounds = self.bounds(expr)
        return bounds is not None and bool(bounds[0] > 0)

    def provably_nonnegative(self, expr: Any) -> bool:
        """Whether ``expr`` is never below zero."""
        bounds = self.bounds(expr)
        return bounds is not None and bool(bounds[0] >= 0)

    def provably_equal(self, a: Any, b: Any) -> bool:
        """Whether ``a`` and ``b`` are the same at all sizes."""
        a, b = _expr(a), _expr(b)
        if a == b:
            return True
        if is_condition(a) or is_condition(b):
            return False
        if (a, b) not in self._equal:
            difference = sympy.expand(self._honest(a) - self._honest(b))
            known = difference.is_zero is True
            # Of sums and products interval arithmetic finds no equality that expanding did not.
            if not known and (difference.atoms(Application) or self._fixed(difference)):
                bounds = self.bounds(difference)
                known = bounds is not None and bool(bounds[0] == 0 and bounds[1] == 0)
            self._equal[a, b] = self._equal[b, a] = known
        return self._equal[a, b]

    def compare(self, a: Any, relation: str, b: Any) -> bool | None:
        """The truth of ``a < b`` (``<=``, ``>``, ``>=``) if it is the same at all sizes, else None."""
        if relation in (">", ">="):
            a, b, relation = b, a, relation.replace(">", "<")
        bounds = self.bounds(_expr(a) - _expr(b))
        if bounds is None:
            return None
        low, high = bounds
        if relation == "<":
            return True if high < 0 else False if low >= 0 else None
        return True if high <= 0 else False if low > 0 else None

    def truth(self, expr: Any) -> bool | None:
        """The truth value of ``expr`` (of a number: that it is not zero) if it is known, else None."""
        expr = _expr(expr)
        if is_condition(expr):
            if expr in (sympy.true, sympy.false):
                return bool(expr)
            if isinstance(expr, (sympy.Eq, sympy.Ne)):
                same = self.provably_equal(*expr.args)
                differ = not same and self.provably_nonzero(expr.args[0] - expr.args[1])
                return isinstance(expr, sympy.Eq) is same if same or differ else None
            if isinstance(expr, (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge)):
                return self.compare(expr.args[0], expr.rel_op, expr.args[1])
            return None
        if self.provably_nonzero(expr):
            return True
        bounds = self.bounds(expr)
        return False if bounds is not None and bounds[0] == 0 and bounds[1] == 0 else None

    def _find_bounds(self, expr: Any) -> tuple[Any, Any] | None:
        if is_condition(expr):
            return None
        if isinstance(expr, (sympy.Integer, sympy.Float)):
            return expr, expr
        expr = self._honest(expr)
        ranges = {symbol: self._range(symbol) for symbol in expr.free_symbols}
        try:
            found = bound_sympy(expr, ranges)
        except Exception:
            # torch's analysis has no rule for some functions and trips over some infinities, with
            # errors of many kinds; nothing is known then.
            return None
        if sympy.nan in (found.lower, found.upper):
            return None
        return found.lower, found.upper

    def _honest(self, expr: Any) -> Any:
        """``expr`` in symbols that may be zero where the program's may.

        Rebuilding an expression of the declared symbols makes ``s`` of ``Max(1, s)``.
        """
        if not expr.has(Max, Min, Where, sympy.Piecewise):
            return expr
        renamed = {}
        for symbol in expr.free_symbols:
            if symbol.is_positive and not self._range(symbol).lower > 0:
                honest = sympy.Symbol(symbol.name, integer=symbol.is_integer, nonnegative=True)
                self._ranges[honest] = self._range(symbol)
                renamed[symbol] = honest
        return expr.xreplace(renamed)

    def _fixed(self, expr: Any) -> bool:
        return any(self._range(symbol).is_singleton() for symbol in expr.free_symbols)

    def _range(self, symbol: Any) -> ValueRanges[Any]:
        known: ValueRanges[Any] | None = self._ranges.get(symbol)
        if known is not None:
            return known
        if symbol.is_integer:
            return ValueRanges(0 if symbol.is_nonnegative else -int_oo, int_oo)
        return ValueRanges(0 if symbol.is_nonnegative else -sympy.oo, sympy.oo)


def invert(expr: Any, value: Any = None, known: Collection[Any] = ()) -> tuple[Any, Any] | None:
    """The one unknown symbol of ``expr``, solved for where ``expr`` equals ``value``.

    ``value`` stands for the size that a graph value has; without it, ``expr`` itself as one opaque
    term. Symbols in ``known`` count as given. Only ``a*s + b`` with an integer ``a`` is solved,
    which is exact: the answer's division leaves no rest. Gives (symbol, solution), or None.
    """
    expr = _expr(expr)
    value = Identity(expr) if value is None else _expr(value)
    unknown = [symbol for symbol in expr.free_symbols if symbol not in known]
    if len(unknown) != 1:
        return None
    (symbol,) = unknown
    if expr == symbol:
        return symbol, value
    if not isinstance(expr, sympy.Expr):  # a condition, such as a bool that was read from a tensor
        return None
    if any(symbol in function.free_symbols for function in expr.atoms(Application)):
        return None
    expanded = sympy.expand(expr)
    factor = expanded.coeff(symbol, 1)
    rest = sympy.expand(expanded - factor * symbol)
    if not isinstance(factor, sympy.Integer) or factor == 0 or symbol in rest.free_symbols:
        return None
    if not rest.is_integer:
        return None
    if factor < 0:
        return symbol, CleanDiv(rest - value, -factor)
    return symbol, CleanDiv(value - rest, factor)


_UNCONSTRAINED = SizeFacts()


def _expr(x: Any) -> Any:
    return x.expr if isinstance(x, SymSize) else sympy.sympify(x)


def _undecided(what: str) -> Exception:
    return both(BuildError, TypeError)(
        f"{what} depends on the model's inputs",
        hint="write the row so that it does not branch on this size, or make the dimension static",
    )


def _literal(expr: Any, kind: str) -> int | float | bool | None:
    """The Python number that ``expr`` is, None if it is not one."""
    if expr in (sympy.true, sympy.false):
        return bool(expr)
    if isinstance(expr, sympy.Number) and expr.is_finite and (kind != "int" or int(expr) == expr):
        return cast("int | float | bool", _PYTHON[kind](expr))
    return None


def _wrap(expr: Any, kind: str) -> Scalar:
    literal = _literal(expr, kind)
    return SymSize(expr, kind) if literal is None else literal


def _numeric(x: Any) -> tuple[Any, str]:
    """Expression and kind of an operand; a truth value counts as 0 or 1, as in Python."""
    if isinstance(x, SymSize):
        if x.kind == "bool":
            return sympy.Piecewise((sympy.Integer(1), x.expr), (sympy.Integer(0), True)), "int"
        return x.expr, x.kind
    if isinstance(x, float):
        if not math.isfinite(x):
            raise both(BuildError, ValueError)(f"{x} in the arithmetic of sizes")
        return sympy.Float(x), "float"
    return sympy.Integer(int(x)), "int"


def _as_float(expr: Any, kind: str) -> Any:
    return expr if kind == "float" else ToFloat(expr)


def _arithmetic(rule: Callable[[Any, Any], Any], a: Any, b: Any, ints_only: str = "") -> Scalar:
    if not all(isinstance(x, (int, float, SymSize)) for x in (a, b)):
        return cast(Scalar, NotImplemented)
    (left, left_kind), (right, right_kind) = _numeric(a), _numeric(b)
    if left_kind == right_kind == "int":
        return _wrap(rule(left, right), "int")
    if ints_only:
        raise both(BuildError, TypeError)(f"{ints_only} is for integer sizes only, not {a} {ints_only} {b}")
    return _wrap(rule(_as_float(left, left_kind), _as_float(right, right_kind)), "float")


def _true_division(a: Any, b: Any) -> Scalar:
    if not all(isinstance(x, (int, float, SymSize)) for x in (a, b)):
        return cast(Scalar, NotImplemented)
    (left, left_kind), (right, right_kind) = _numeric(a), _numeric(b)
    if left_kind == right_kind == "int":
        return _wrap(IntTrueDiv(left, right), "float")
    return _wrap(FloatTrueDiv(_as_float(left, left_kind), _as_float(right, right_kind)), "float")


def _floordiv(a: Any, b: Any) -> Any:
    # torch makes a // (b*c) of a // b // c, which holds for a positive c.
    if isinstance(b, sympy.Integer) and b < 0:
        return FloorDiv(-a, -b)
    return FloorDiv(a, b, evaluate=b.is_nonnegative is True or not isinstance(a, FloorDiv))


def _mod(a: Any, b: Any) -> Any:
    # As torch chooses between its two, so that equal sizes have equal expressions.
    if isinstance(b, sympy.Integer) and b < 0:
        return -_mod(-a, -b)
    return Mod(a, b) if a.is_nonnegative and b.is_nonnegative else PythonMod(a, b)


def _extreme(rule: Any, python: Callable[..., Any], sizes: tuple[Scalar, ...]) -> Scalar:
    if not any(isinstance(size, SymSize) for size in sizes):
        return cast(Scalar, python(sizes))
    operands = [_numeric(size) for size in sizes]
    kind = "float" if any(kind == "float" for _, kind in operands) else "int"
    exprs = {expr if kind == "int" else _as_float(expr, its) for expr, its in operands}
    exprs = {part for expr in exprs for part in (expr.args if isinstance(expr, rule) else (expr,))}
    numbers = [expr for expr in exprs if isinstance(expr, sympy.Number)]
    exprs = exprs.difference(numbers) | ({python(numbers)} if numbers else set())
    # With 1 among them torch's Max and Min trust that sizes are declared positive; they can be 0.
    return _wrap(rule(*exprs, evaluate=sympy.Integer(1) not in exprs), kind)


class _Printer(StrPrinter):  # type: ignore[misc]
    """Expressions in Python's notation; torch's classes print with doubled brackets on their own."""

    printmethod = "_atonnx_text"

    def __init__(self, names: Mapping[Any, str]) -> None:
        super().__init__()
        self._names = names

    def _print_Symbol(self, expr: Any) -> str:
        return self._names.get(expr, str(expr.name))

    def _print_Float(self, expr: Any) -> str:
        return repr(float(expr))

    def _print_Identity(self, expr: Any) -> str:
        return str(self._print(expr.args[0]))

    def _infix(self, sign: str, expr: Any) -> str:
        # An operand that is not an atom has brackets: a // b % c is read differently by many.
        return f" {sign} ".join(
            self._print(arg) if arg.is_Symbol or arg.is_Number and arg >= 0 else f"({self._print(arg)})"
            for arg in expr.args
        )

    def _call(self, name: str, expr: Any) -> str:
        return f"{name}({', '.join(self._print(arg) for arg in expr.args)})"

    def _print_FloorDiv(self, expr: Any) -> str:
        return self._infix("//", expr).replace(" // ", "//")

    def _print_Function(self, expr: Any) -> str:
        name = type(expr).__name__
        if name in _INFIX:
            return self._infix(_INFIX[name], expr)
        return self._call(_NAMES.get(name, name.removeprefix("OpaqueUnaryFn_")), expr)

    _print_Mod = _print_PythonMod = _print_IntTrueDiv = _print_FloatTrueDiv = _print_Function

    def _print_Max(self, expr: Any) -> str:
        return self._call("max", expr)

    def _print_Min(self, expr: Any) -> str:
        return self._call("min", expr)


_INFIX = {
    "Mod": "%",
    "PythonMod": "%",
    "IntTrueDiv": "/",
    "FloatTrueDiv": "/",
    "PowByNatural": "**",
    "FloatPow": "**",
    "BitwiseFn_bitwise_and": "&",
    "BitwiseFn_bitwise_or": "|",
    "BitwiseFn_bitwise_xor": "^",
}
_NAMES = {
    "ToFloat": "float",
    "TruncToInt": "int",
    "CeilToInt": "ceil",
    "FloorToInt": "floor",
    "RoundToInt": "round",
    "RoundDecimal": "round",
    "Where": "where",
}
