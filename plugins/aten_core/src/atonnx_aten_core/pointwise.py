"""Functions of one tensor, element by element."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import FLOATS, to_torch
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_core._promote import BOOL, floating, through_float

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_UNSIGNED = frozenset({ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64})


def _constant(op: Builder, x: Value, value: Any, dtype: ir.DataType) -> Value:
    """A tensor of the shape of ``x`` that holds one value."""
    return op.expand(op.const(value, dtype), x.dims if x.dims is not None else op.out.dims)


@table.translate(aten.sqrt.default)
def sqrt(op: Builder, self: Value) -> Value:
    """Sqrt; integers are cast to the default float dtype first."""
    return op.Sqrt(floating(op, self))


@table.translate(aten.exp.default)
def exp(op: Builder, self: Value) -> Value:
    """Exp; integers are cast to the default float dtype first."""
    return op.Exp(floating(op, self))


@table.translate(aten.log.default)
def log(op: Builder, self: Value) -> Value:
    """Log; integers are cast to the default float dtype first."""
    return op.Log(floating(op, self))


@table.translate(aten.tanh.default)
def tanh(op: Builder, self: Value) -> Value:
    """Tanh; integers are cast to the default float dtype first."""
    return op.Tanh(floating(op, self))


@table.translate(aten.sigmoid.default, aten.special_expit.default)
def sigmoid(op: Builder, self: Value) -> Value:
    """Sigmoid; integers are cast to the default float dtype first."""
    return op.Sigmoid(floating(op, self))


@table.translate(aten.sin.default)
def sin(op: Builder, self: Value) -> Value:
    """Sin; integers are cast to the default float dtype first."""
    return op.Sin(floating(op, self))


@table.translate(aten.cos.default)
def cos(op: Builder, self: Value) -> Value:
    """Cos; integers are cast to the default float dtype first."""
    return op.Cos(floating(op, self))


@table.translate(aten.tan.default)
def tan(op: Builder, self: Value) -> Value:
    """Tan; integers are cast to the default float dtype first."""
    return op.Tan(floating(op, self))


@table.translate(aten.asin.default, aten.arcsin.default)
def asin(op: Builder, self: Value) -> Value:
    """Asin; integers are cast to the default float dtype first."""
    return op.Asin(floating(op, self))


@table.translate(aten.acos.default, aten.arccos.default)
def acos(op: Builder, self: Value) -> Value:
    """Acos; integers are cast to the default float dtype first."""
    return op.Acos(floating(op, self))


@table.translate(aten.atan.default, aten.arctan.default)
def atan(op: Builder, self: Value) -> Value:
    """Atan; integers are cast to the default float dtype first."""
    return op.Atan(floating(op, self))


@table.translate(aten.sinh.default)
def sinh(op: Builder, self: Value) -> Value:
    """Sinh; integers are cast to the default float dtype first."""
    return op.Sinh(floating(op, self))


@table.translate(aten.cosh.default)
def cosh(op: Builder, self: Value) -> Value:
    """Cosh; integers are cast to the default float dtype first."""
    return op.Cosh(floating(op, self))


@table.translate(aten.asinh.default, aten.arcsinh.default)
def asinh(op: Builder, self: Value) -> Value:
    """Asinh; integers are cast to the default float dtype first."""
    return op.Asinh(floating(op, self))


@table.translate(aten.acosh.default, aten.arccosh.default)
def acosh(op: Builder, self: Value) -> Value:
    """Acosh; integers are cast to the default float dtype first."""
    return op.Acosh(floating(op, self))


@table.translate(aten.atanh.default, aten.arctanh.default)
def atanh(op: Builder, self: Value) -> Value:
    """Atanh; integers are cast to the default float dtype first."""
    return op.Atanh(floating(op, self))


@table.translate(aten.erf.default, aten.special_erf.default)
def erf(op: Builder, self: Value) -> Value:
    """Erf; integers are cast to the default float dtype first."""
    return op.Erf(floating(op, self))


@table.translate(aten.reciprocal.default)
def reciprocal(op: Builder, self: Value) -> Value:
    """Reciprocal; integers are cast to the default float dtype first."""
    return op.Reciprocal(floating(op, self))


@table.translate(aten.rsqrt.default)
def rsqrt(op: Builder, self: Value) -> Value:
    """Reciprocal of Sqrt."""
    return through_float(op, self, lambda x: op.Reciprocal(op.Sqrt(x)))


@table.translate(aten.square.default)
def square(op: Builder, self: Value) -> Value:
    """Mul by itself; a bool is squared as int64."""
    x = op.cast(self, ir.DataType.INT64) if self.dtype == BOOL else self
    return op.Mul(x, x)


@table.translate(aten.exp2.default, aten.special_exp2.default)
def exp2(op: Builder, self: Value) -> Value:
    """Pow of the base 2."""
    x = floating(op, self)
    return op.Pow(op.const(2.0, x.dtype), x)


@table.translate(aten.expm1.default, aten.special_expm1.default)
def expm1(op: Builder, self: Value) -> Value:
    """tanh(x/2) * (exp(x) + 1), which keeps the digits that exp(x) - 1 loses near zero."""
    return through_float(op, self, lambda x: op.Mul(op.Tanh(op.Mul(x, 0.5)), op.Add(op.Exp(x), 1.0)))


@table.translate(aten.log1p.default, aten.special_log1p.default)
def log1p(op: Builder, self: Value) -> Value:
    """log(u) * x / (u - 1) with u = 1 + x: the rounding of u cancels, so small x keep their digits."""

    def compute(x: Value) -> Value:
        u = op.Add(x, 1.0)
        step = op.Sub(u, 1.0)
        plain = op.Or(op.Equal(step, 0.0), op.Equal(u, math.inf))
        return op.Where(plain, x, op.Mul(op.Log(u), op.Div(x, step)))

    return through_float(op, self, compute)


@table.translate(aten.log2.default)
def log2(op: Builder, self: Value) -> Value:
    """Log over the logarithm of 2."""
    return through_float(op, self, lambda x: op.Div(op.Log(x), math.log(2)))


@table.translate(aten.log10.default)
def log10(op: Builder, self: Value) -> Value:
    """Log over the logarithm of 10."""
    return through_float(op, self, lambda x: op.Div(op.Log(x), math.log(10)))


@table.translate(aten.erfc.default, aten.special_erfc.default)
def erfc(op: Builder, self: Value) -> Value:
    """1 - Erf."""
    return through_float(op, self, lambda x: op.Sub(1.0, op.Erf(x)))


@table.translate(aten.sinc.default, aten.special_sinc.default)
def sinc(op: Builder, self: Value) -> Value:
    """sin(pi x) / (pi x), and 1 at zero."""

    def compute(x: Value) -> Value:
        angle = op.Mul(x, math.pi)
        return op.Where(op.Equal(x, 0.0), 1.0, op.Div(op.Sin(angle), angle))

    return through_float(op, self, compute)


@table.translate(aten.deg2rad.default)
def deg2rad(op: Builder, self: Value) -> Value:
    """Mul by pi / 180."""
    return through_float(op, self, lambda x: op.Mul(x, math.pi / 180))


@table.translate(aten.rad2deg.default)
def rad2deg(op: Builder, self: Value) -> Value:
    """Mul by 180 / pi."""
    return through_float(op, self, lambda x: op.Mul(x, 180 / math.pi))


@table.translate(aten.logit.default, aten.special_logit.default)
def logit(op: Builder, self: Value, eps: float | None = None) -> Value:
    """Log of x / (1 - x), x clipped to [eps, 1 - eps]."""

    def compute(x: Value) -> Value:
        if eps is not None and eps <= 0.5:
            x = op.Min(op.Max(x, eps), 1.0 - eps)
        elif eps is not None:  # the bounds are crossed, and the lower one is looked at first
            x = op.Where(op.Less(x, eps), eps, op.Where(op.Greater(x, 1.0 - eps), 1.0 - eps, x))
        return op.Log(op.Div(x, op.Sub(1.0, x)))

    return through_float(op, self, compute)


@table.translate(aten.neg.default, aten.negative.default)
def neg(op: Builder, self: Value) -> Value:
    """Neg; an unsigned one is subtracted from zero, which wraps around."""
    return op.Sub(0, self) if self.dtype in _UNSIGNED else op.Neg(self)


@table.translate(aten.positive.default, complex="layout")
def positive(op: Builder, self: Value) -> Value:
    """The tensor itself."""
    return self


@table.translate(aten.abs.default, aten.absolute.default)
def abs(op: Builder, self: Value) -> Value:
    """Abs."""
    return op.Abs(self)


@table.translate(aten.sign.default, aten.sgn.default)
def sign(op: Builder, self: Value) -> Value:
    """Sign, where nan has sign 0 as in torch; bools are their own sign."""
    if self.dtype == BOOL:
        return self
    if self.dtype in FLOATS:
        return op.Where(op.IsNaN(self), 0.0, op.Sign(self))
    return op.Sign(self)


@table.translate(aten.signbit.default)
def signbit(op: Builder, self: Value) -> Value:
    """Less than zero; 1 / x tells the sign of a zero."""
    if self.dtype in _UNSIGNED or self.dtype == BOOL:
        return _constant(op, self, False, BOOL)
    if self.dtype not in FLOATS:
        return op.Less(self, 0)
    return op.Or(op.Less(self, 0.0), op.Equal(op.Reciprocal(self), -math.inf))


def truth(op: Builder, x: Value) -> Value:
    """Whether elements are not zero; nan is not."""
    return op.cast(x, BOOL)


def _rounded(op: Builder, name: str, x: Value) -> Value:
    """A rounding operator, which leaves integers as they are."""
    return getattr(op, name)(x) if x.dtype in FLOATS else x


@table.translate(aten.floor.default)
def floor(op: Builder, self: Value) -> Value:
    """Floor; integers stay."""
    return _rounded(op, "Floor", self)


@table.translate(aten.ceil.default)
def ceil(op: Builder, self: Value) -> Value:
    """Ceil; integers stay."""
    return _rounded(op, "Ceil", self)


@table.translate(aten.round.default)
def round(op: Builder, self: Value) -> Value:
    """Round, half to even; integers stay."""
    return _rounded(op, "Round", self)


@table.translate(aten.round.decimals)
def round_decimals(op: Builder, self: Value, *, decimals: int) -> Value:
    """Round of x * 10**decimals, divided again; integers stay for decimals >= 0."""
    if self.dtype not in FLOATS:
        if decimals >= 0:
            return self
        raise UnsupportedOpError.here(
            op, "rounding integers to negative decimals", hint="cast them to a float dtype first"
        )
    if decimals == 0:
        return op.Round(self)
    ten = float(10 ** max(decimals, -decimals))

    def compute(x: Value) -> Value:
        if decimals < 0:
            return op.Mul(op.Round(op.Div(x, ten)), ten)
        return op.Div(op.Round(op.Mul(x, ten)), ten)

    return through_float(op, self, compute)


@table.translate(aten.trunc.default, aten.fix.default)
def trunc(op: Builder, self: Value) -> Value:
    """Ceil of what is below zero, Floor of the rest; integers stay."""
    return truncated(op, self) if self.dtype in FLOATS else self


def truncated(op: Builder, x: Value) -> Value:
    """A float tensor rounded towards zero; ONNX has no operator for it."""
    return op.Where(op.Less(x, 0.0), op.Ceil(x), op.Floor(x))


@table.translate(aten.frac.default)
def frac(op: Builder, self: Value) -> Value:
    """What truncation takes away."""
    return op.Sub(self, truncated(op, self))


@table.translate(aten.isnan.default)
def isnan(op: Builder, self: Value) -> Value:
    """IsNaN; False for integers."""
    return op.IsNaN(self) if self.dtype in FLOATS else _constant(op, self, False, BOOL)


@table.translate(aten.isinf.default)
def isinf(op: Builder, self: Value) -> Value:
    """IsInf; False for integers."""
    return op.IsInf(self) if self.dtype in FLOATS else _constant(op, self, False, BOOL)


@table.translate(aten.isposinf.default)
def isposinf(op: Builder, self: Value) -> Value:
    """IsInf of the positive side; False for integers."""
    if self.dtype in FLOATS:
        return op.IsInf(self, detect_negative=0)
    return _constant(op, self, False, BOOL)


@table.translate(aten.isneginf.default)
def isneginf(op: Builder, self: Value) -> Value:
    """IsInf of the negative side; False for integers."""
    if self.dtype in FLOATS:
        return op.IsInf(self, detect_positive=0)
    return _constant(op, self, False, BOOL)


@table.translate(aten.isfinite.default)
def isfinite(op: Builder, self: Value) -> Value:
    """Less than infinity by magnitude, which nan is not; True for integers."""
    if self.dtype in FLOATS:
        return op.Less(op.Abs(self), math.inf)
    return _constant(op, self, True, BOOL)


@table.translate(aten.isreal.default)
def isreal(op: Builder, self: Value) -> Value:
    """True."""
    return _constant(op, self, True, BOOL)


@table.translate(aten.nan_to_num.default)
def nan_to_num(
    op: Builder,
    self: Value,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Value:
    """Where with IsNaN and IsInf; integers stay."""
    if self.dtype not in FLOATS:
        return self
    limits = torch.finfo(to_torch(self.dtype))
    x = op.Where(op.IsNaN(self), 0.0 if nan is None else nan, self)
    x = op.Where(op.IsInf(self, detect_negative=0), limits.max if posinf is None else posinf, x)
    return op.Where(op.IsInf(self, detect_positive=0), limits.min if neginf is None else neginf, x)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, ulps

    def plain() -> tuple[Any, ...]:
        return (torch.tensor([[0.5, -1.5, 2.25], [-0.75, 3.0, 0.0]]),)

    def inside() -> tuple[Any, ...]:
        return (torch.tensor([[0.5, 0.25, 0.875], [0.1, 0.75, 1.0]]),)

    def whole() -> tuple[Any, ...]:
        return (torch.tensor([[3, -2, 0], [1, 7, -5]]),)

    def odd() -> tuple[Any, ...]:
        return (torch.tensor([[math.nan, math.inf, -math.inf], [-0.0, 2.0, -1.0]]),)

    floats: list[Any] = [
        *(aten.sqrt, aten.exp, aten.log, aten.tanh, aten.sigmoid, aten.sin, aten.cos, aten.tan, aten.sinh),
        *(aten.cosh, aten.asinh, aten.atan, aten.erf, aten.reciprocal, aten.rsqrt, aten.square, aten.exp2),
        *(aten.expm1, aten.log1p, aten.log2, aten.log10, aten.erfc, aten.sinc, aten.deg2rad, aten.rad2deg),
        *(aten.special_expit, aten.special_erf, aten.special_exp2, aten.special_expm1, aten.special_log1p),
        *(aten.special_erfc, aten.special_sinc, aten.arctan, aten.arcsinh, aten.asin, aten.acos, aten.atanh),
        *(aten.arcsin, aten.arccos, aten.arctanh, aten.logit, aten.special_logit, aten.acosh, aten.arccosh),
    ]
    same_kind: list[Any] = [
        *(aten.neg, aten.negative, aten.positive, aten.abs, aten.absolute, aten.sign, aten.sgn, aten.signbit),
        *(aten.floor, aten.ceil, aten.round, aten.trunc, aten.fix, aten.isnan, aten.isinf, aten.isposinf),
        *(aten.isneginf, aten.isfinite, aten.isreal, aten.nan_to_num),
    ]
    near: dict[str, Any] = {"atol": ulps(8), "reason": "the libraries' functions round differently"}
    return [
        *(OpSample(f.default, inside, **near) for f in floats),
        *(OpSample(f.default, whole, **near) for f in floats),
        *(OpSample(f.default, odd) for f in same_kind),
        *(OpSample(f.default, whole) for f in same_kind),
        OpSample(aten.frac.default, plain),
        OpSample(aten.logit.default, lambda: (*inside(), 0.2), **near),
        OpSample(aten.round.decimals, plain, {"decimals": 1}),
        OpSample(aten.round.decimals, plain, {"decimals": -1}),
        OpSample(aten.nan_to_num.default, lambda: (*odd(), 1.0, 2.0, -3.0)),
        OpSample(aten.sign.default, lambda: (torch.tensor([True, False]),)),
        OpSample(aten.square.default, lambda: (torch.tensor([True, False]),)),
    ]
