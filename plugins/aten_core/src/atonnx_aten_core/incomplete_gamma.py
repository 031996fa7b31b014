"""The regularized incomplete gamma functions.

A nan gives nan, also beside a 0 or an infinity, where torch may not come to look at it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._fitted import Array, Cells, look_up, polynomial
from atonnx_aten_core._promote import arithmetic, float_type
from atonnx_aten_core.error_functions import scaled_erfc

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

# Above, Temme's expansion needs no more than its first terms, and the series would be long.
_LARGE = 1000.0
_STEPS = 2000


def _log_gamma(a: Array) -> Array:
    made: Array = torch.lgamma(torch.from_numpy(a + 1)).numpy()
    return made


_LOG_GAMMA = Cells((_log_gamma, 0.0, 8.0, 128))
_CURVE = Cells((lambda mu: (mu - np.log1p(mu)) / (mu * mu), -0.5, 1.5, 32))


def _curve(op: Builder, a: Value, x: Value) -> Value:
    """mu - log(1 + mu) of mu = (x - a) / a."""
    mu = op.Div(op.Sub(x, a), a)
    near = op.And(op.Greater(mu, -0.5), op.Less(mu, 1.5))
    found = look_up(op, _CURVE, op.Mul(op.Add(mu, 0.5), 16.0))
    return op.Where(near, op.Mul(op.Mul(mu, mu), found), op.Sub(mu, op.Log(op.Div(x, a))))


def _front(op: Builder, a: Value, x: Value, curve: Value) -> Value:
    """x**a exp(-x) / Gamma(a + 1); by Stirling's series for a > 8, where large numbers would cancel."""
    r = op.Reciprocal(a)
    rest = op.Mul(polynomial(op, op.Mul(r, r), 1 / 1260, -1 / 360, 1 / 12), r)
    root = op.Mul(op.Log(op.Mul(a, 2 * math.pi)), 0.5)
    high = op.Neg(op.Add(op.Add(op.Mul(a, curve), root), rest))
    low = op.Sub(op.Sub(op.Mul(a, op.Log(x)), x), look_up(op, _LOG_GAMMA, op.Mul(a, 16.0)))
    return op.Exp(op.Where(op.Greater(a, 8.0), high, low))


def _temme(op: Builder, a: Value, over: Value, curve: Value) -> Value:
    """P where x < a and Q where it is ``over``, by DLMF 8.12.3 and 8.12.4."""
    square = op.Mul(a, curve)
    # Where eta is large, all is nothing.
    size = op.Sqrt(op.Min(op.Mul(curve, 2.0), 1.0))
    eta = op.Where(over, size, op.Neg(size))
    c = polynomial(op, eta, 1 / 864, -2 / 135, 1 / 12, -1 / 3)
    c = op.Div(op.Sub(c, op.Div(1 / 540, a)), op.Sqrt(op.Mul(a, 2 * math.pi)))
    half = op.Mul(scaled_erfc(op, op.Sqrt(square)), 0.5)
    return op.Mul(op.Exp(op.Neg(square)), op.Add(half, op.Where(over, c, op.Neg(c))))


def _sums(op: Builder, a: Value, x: Value, upper: Value, done: Value) -> tuple[Value, Value]:
    """The series of P (DLMF 8.7.1) and the continued fraction of Q (8.9.2, by Lentz) until both stand still.

    Elements for which one is not meant stand still at once.
    """
    tiny = 2.0**-22 if a.dtype.bitwidth == 32 else 2.0**-49
    neither = op.Or(upper, done)
    series_a, series_x = op.Where(neither, 1.0, a), op.Where(neither, 0.0, x)
    neither = op.Or(op.Not(upper), done)
    fraction_a, fraction_x = op.Where(neither, 1.0, a), op.Where(neither, 1.0, x)
    b = op.Sub(op.Add(fraction_x, 1.0), fraction_a)
    dims, kind = op.out.dims, a.dtype
    d = op.expand(op.Reciprocal(b), dims)
    one = op.expand(op.const(1.0, kind), dims)
    begin = (one, one, op.expand(op.const(math.inf, kind), dims), d, d)
    with op.body("steps") as body:
        k = body.Add(body.Cast(body.input("step", ir.DataType.INT64, ()), to=kind), 1.0)
        body.input("going", ir.DataType.BOOL, ())
        term, total, c, d, h = (body.input(name, kind, dims) for name in ("term", "total", "c", "d", "h"))
        term = body.Mul(term, body.Div(series_x, body.Add(series_a, k)))
        total = body.Add(total, term)
        top = body.Mul(k, body.Sub(fraction_a, k))
        bottom = body.Add(b, body.Mul(k, 2.0))
        d = body.Reciprocal(body.Add(bottom, body.Mul(top, d)))
        c = body.Add(bottom, body.Div(top, c))
        ratio = body.Mul(c, d)
        h = body.Mul(h, ratio)
        moving = body.Or(
            body.Greater(term, body.Mul(total, tiny)),
            body.Greater(body.Abs(body.Sub(ratio, 1.0)), tiny),
        )
        count = body.ReduceSum(body.Cast(moving, to=ir.DataType.INT64), keepdims=0)
        body.output(body.Greater(count, 0), term, total, c, d, h)
    made = op.Loop(op.const(_STEPS), op.const(True), *begin, body=body.graph, outputs=5)
    return made[1], made[4]


def _incomplete(op: Builder, a: Value, x: Value, complement: bool) -> Value:
    inside = op.And(
        op.And(op.Greater(a, 0.0), op.Greater(x, 0.0)),
        op.And(op.Less(a, math.inf), op.Less(x, math.inf)),
    )
    safe_a, safe_x = op.Where(inside, a, 1.0), op.Where(inside, x, 1.0)
    large = op.Greater(safe_a, _LARGE)
    upper = op.GreaterOrEqual(safe_x, op.Where(large, safe_a, op.Add(safe_a, 1.0)))
    curve = _curve(op, safe_a, safe_x)
    series, fraction = _sums(op, safe_a, safe_x, upper, large)
    sums = op.Where(upper, op.Mul(safe_a, fraction), series)
    lesser = op.Where(
        large, _temme(op, safe_a, upper, curve), op.Mul(_front(op, safe_a, safe_x, curve), sums)
    )
    taken = op.Not(upper) if complement else upper
    made = op.Where(taken, op.Sub(1.0, lesser), lesser)
    # At an end of the range of a or x: P is 1 where a < x and 0 where a > x.
    end = op.Cast(op.Greater(a, x) if complement else op.Less(a, x), to=a.dtype)
    known = op.And(op.And(op.GreaterOrEqual(a, 0.0), op.GreaterOrEqual(x, 0.0)), op.Not(op.Equal(a, x)))
    return op.Where(inside, made, op.Where(known, end, math.nan))


def _row(op: Builder, self: Value, other: Value, complement: bool) -> Value:
    return arithmetic(
        op,
        lambda a, x: _incomplete(op, a, x, complement),
        self,
        other,
        dtype=float_type(self, other),
        wide=True,
    )


@table.translate(aten.igamma.default, aten.special_gammainc.default)
def igamma(op: Builder, self: Value, other: Value) -> Value:
    """P(a, x): a Loop over series and continued fraction, Temme's expansion for a > 1000."""
    return _row(op, self, other, complement=False)


@table.translate(aten.igammac.default, aten.special_gammaincc.default)
def igammac(op: Builder, self: Value, other: Value) -> Value:
    """Q(a, x) = 1 - P(a, x), computed so that neither loses its digits."""
    return _row(op, self, other, complement=True)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, ulps

    def pair() -> tuple[Any, ...]:
        return (torch.tensor([[0.25], [3.0], [40.0], [3000.0]]), torch.tensor([0.0, 0.5, 2.75, 45.0, 2950.0]))

    near: dict[str, Any] = {"atol": ulps(256), "reason": "torch's own sums differ by as much"}
    names = (aten.igamma, aten.igammac, aten.special_gammainc, aten.special_gammaincc)
    return [OpSample(f.default, pair, **near) for f in names]
