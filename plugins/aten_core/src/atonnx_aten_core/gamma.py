"""The gamma function's relatives: log gamma, polygamma, Hurwitz zeta, incomplete gamma."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_core._fitted import Cells, look_up, of_torch, polynomial
from atonnx_aten_core._promote import arithmetic, float_type, through_float

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_LGAMMA = Cells((of_torch(torch.lgamma), 0.5, 8.5, 128))
_DIGAMMA = Cells((of_torch(torch.digamma), 0.5, 8.5, 128))
_TRIGAMMA = Cells((lambda x: torch.polygamma(1, torch.from_numpy(x)).numpy(), 0.5, 8.5, 128))


def _mirrored(op: Builder, x: Value, cells: Cells, beyond: Callable[[Value], Value]) -> tuple[Value, Value]:
    """Whether x is below 1/2; the function at x or, there, at 1 - x: a table below 8, ``beyond`` above."""
    low = op.Less(x, 0.5)
    y = op.Where(low, op.Sub(1.0, x), x)
    near = look_up(op, cells, op.Mul(op.Sub(y, 0.5), 16.0))
    return low, op.Where(op.Less(y, 8.0), near, beyond(y))


def _stirling(op: Builder, y: Value) -> Value:
    """lgamma for y >= 8 by Stirling's series (A&S 6.1.41)."""
    log = op.Log(y)
    r = op.Reciprocal(y)
    rest = polynomial(op, op.Mul(r, r), -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
    main = op.Mul(op.Sub(y, 0.5), op.Sub(log, 1.0))
    return op.Add(main, op.Add(op.Mul(rest, r), 0.5 * math.log(2 * math.pi) - 0.5))


def _is_pole(op: Builder, x: Value) -> Value:
    """Whether x is 0, -1, -2, …"""
    return op.And(op.LessOrEqual(x, 0.0), op.Equal(x, op.Floor(x)))


def _turn(op: Builder, x: Value) -> Value:
    """pi times the signed distance to the next integer: sin and tan of pi x, exactly reduced."""
    return op.Mul(op.Sub(x, op.Round(x)), math.pi)


def _lgamma(op: Builder, x: Value) -> Value:
    low, made = _mirrored(op, x, _LGAMMA, lambda y: _stirling(op, y))
    wave = op.Log(op.Abs(op.Sin(_turn(op, x))))
    left = op.Sub(op.Sub(math.log(math.pi), wave), made)
    return op.Where(_is_pole(op, x), math.inf, op.Where(low, left, made))


@table.translate(aten.lgamma.default, aten.special_gammaln.default)
def lgamma(op: Builder, self: Value) -> Value:
    """A table up to 8, Stirling's series beyond, log(pi / |sin(pi x)|) - lgamma(1 - x) below 1/2."""
    return through_float(op, self, lambda x: _lgamma(op, x))


@table.translate(aten.mvlgamma.default, aten.special_multigammaln.default)
def mvlgamma(op: Builder, self: Value, p: int) -> Value:
    """p (p - 1) / 4 log(pi) plus the ReduceSum of lgamma at x, x - 1/2, …, x - (p - 1) / 2."""

    def compute(x: Value) -> Value:
        steps = op.const(-0.5 * np.arange(p), x.dtype)
        all_of = _lgamma(op, op.Add(op.Unsqueeze(x, [-1]), steps))
        return op.Add(op.ReduceSum(all_of, [-1], keepdims=0), p * (p - 1) / 4 * math.log(math.pi))

    return through_float(op, self, compute)


@table.translate(aten.digamma.default, aten.special_digamma.default, aten.special_psi.default)
def digamma(op: Builder, self: Value) -> Value:
    """A table up to 8, A&S 6.3.18 beyond, digamma(1 - x) - pi / tan(pi x) below 1/2; nan at poles."""
    return through_float(op, self, lambda x: _digamma(op, x))


def _digamma(op: Builder, x: Value) -> Value:
    def beyond(y: Value) -> Value:
        r = op.Reciprocal(y)
        square = op.Mul(r, r)
        rest = op.Mul(polynomial(op, square, -1 / 240, 1 / 252, -1 / 120, 1 / 12), square)
        return op.Sub(op.Sub(op.Log(y), op.Mul(r, 0.5)), rest)

    low, made = _mirrored(op, x, _DIGAMMA, beyond)
    turn = _turn(op, x)
    left = op.Sub(made, op.Div(op.Mul(op.Cos(turn), math.pi), op.Sin(turn)))
    pole = op.Where(op.Equal(x, 0.0), op.Neg(op.Reciprocal(x)), math.nan)
    return op.Where(_is_pole(op, x), pole, op.Where(low, left, made))


def _trigamma(op: Builder, x: Value) -> Value:
    """A table up to 8, A&S 6.4.12 beyond, (pi / sin(pi x))**2 - trigamma(1 - x) below 1/2."""

    def beyond(y: Value) -> Value:
        r = op.Reciprocal(y)
        square = op.Mul(r, r)
        rest = op.Mul(polynomial(op, square, -1 / 30, 1 / 42, -1 / 30, 1 / 6), op.Mul(square, r))
        return op.Add(op.Add(r, op.Mul(square, 0.5)), rest)

    low, made = _mirrored(op, x, _TRIGAMMA, beyond)
    # The sine of the rounded product, as torch has it: its square at the poles is not zero.
    sin = op.Sin(op.Mul(x, math.pi))
    left = op.Sub(op.Div(math.pi**2, op.Mul(sin, sin)), made)
    return op.Where(low, left, made)


# B(2k) / (2k)! of the Euler-Maclaurin sum.
_EULER_MACLAURIN = (
    *(1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000),
    *(1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000),
)


def _zeta(op: Builder, x: Value, q: Value, fixed: int | None = None) -> Value:
    """Hurwitz zeta by Euler-Maclaurin (DLMF 25.11.28), after a sum that passes 9; ``fixed`` is x if known.

    In double precision, as in torch: below zero the terms of the sum nearly cancel.
    """
    kind, dims = q.dtype, op.out.dims
    x, q = op.cast(x, ir.DataType.DOUBLE), op.cast(q, ir.DataType.DOUBLE)
    power = op.Neg(x)
    zero = op.expand(op.const(0.0, ir.DataType.DOUBLE), dims)
    start = op.Floor(op.Where(op.And(op.Less(q, 0.0), op.Greater(q, -1e9)), q, 0.0))
    # A ReduceMin of nothing is not defined, so 0 is there always.
    flat = op.Concat(op.Reshape(start, [-1]), op.const([0.0], ir.DataType.DOUBLE), axis=0)
    count = op.Sub(10, op.Cast(op.ReduceMin(flat, keepdims=0), to=ir.DataType.INT64))
    with op.body("terms") as body:
        step = body.input("step", ir.DataType.INT64, ())
        body.input("going", ir.DataType.BOOL, ())
        total = body.input("total", ir.DataType.DOUBLE, dims)
        at = body.Add(q, body.Cast(step, to=ir.DataType.DOUBLE))
        body.output(body.const(True), body.Add(total, body.Pow(at, power)))
    (total,) = op.Loop(count, None, zero, body=body.graph, outputs=1)
    w = op.Add(q, op.Cast(count, to=ir.DataType.DOUBLE))
    end = op.Pow(w, power)
    rest = op.Div(op.Mul(end, w), op.Sub(x, 1.0))
    # x (x + 1) … (x + 2k) / w**(2k + 1), times what the k-th term has else
    factor = op.Div(x, w)
    tail = op.Add(op.Mul(factor, _EULER_MACLAURIN[0]), 0.5)
    square = op.Mul(w, w)
    for k, coefficient in enumerate(_EULER_MACLAURIN[1:]):
        factor = op.Div(op.Mul(op.Mul(factor, op.Add(x, 2.0 * k + 1)), op.Add(x, 2.0 * k + 2)), square)
        tail = op.Add(tail, op.Mul(factor, coefficient))
    rest = op.Add(rest, op.Where(op.Equal(end, 0.0), 0.0, op.Mul(end, tail)))
    made = op.Add(total, rest)
    if fixed is None:
        branch = op.And(op.Less(q, 0.0), op.Not(op.Equal(x, op.Floor(x))))
        made = op.Where(branch, math.nan, made)
    made = op.Where(_is_pole(op, q), math.inf, made)
    if fixed is None:
        made = op.Where(op.Less(x, 1.0), math.nan, op.Where(op.Equal(x, 1.0), math.inf, made))
    return op.cast(made, kind)


@table.translate(aten.special_zeta.default, aten.special_zeta.other_scalar, aten.special_zeta.self_scalar)
def special_zeta(op: Builder, self: Any, other: Any) -> Value:
    """The Euler-Maclaurin sum: a Loop over the first terms, as many as the least q needs to pass 9."""
    return arithmetic(op, lambda x, q: _zeta(op, x, q), self, other, dtype=float_type(self, other), wide=True)


def _polygamma(op: Builder, n: int, x: Value) -> Value:
    if n == 0:
        return _digamma(op, x)
    if n == 1:
        return _trigamma(op, x)
    try:
        factor = math.factorial(n) if n % 2 else -math.factorial(n)
        return op.Mul(_zeta(op, op.const(float(n + 1), x.dtype), x, fixed=n + 1), float(factor))
    except OverflowError:
        raise UnsupportedOpError.here(op, f"polygamma of order {n}", hint="it has no finite values") from None


@table.translate(aten.polygamma.default, aten.special_polygamma.default)
def polygamma(op: Builder, n: int, self: Value) -> Value:
    """digamma and trigamma for 0 and 1; else (-1)**(n + 1) n! zeta(n + 1, x)."""
    return through_float(op, self, lambda x: _polygamma(op, n, x))


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, ulps

    def line() -> torch.Tensor:
        return torch.tensor([[-2.5, -0.75, 0.25, 1.5], [4.0, 7.75, 20.0, 300.0]])

    def order() -> torch.Tensor:
        return torch.tensor([1.5, 2.0, 4.25, 1.0])

    near: dict[str, Any] = {"atol": ulps(64), "reason": "a table and several operators, each of which rounds"}
    one = (aten.lgamma, aten.special_gammaln, aten.digamma, aten.special_digamma, aten.special_psi)
    return [
        *(OpSample(f.default, lambda: (line(),), **near) for f in one),
        *(
            OpSample(f.default, lambda: (line().abs() + 2, 3), **near)
            for f in (aten.mvlgamma, aten.special_multigammaln)
        ),
        *(
            OpSample(f.default, args, **near)
            for f in (aten.polygamma, aten.special_polygamma)
            for args in (lambda: (0, line()), lambda: (1, line()), lambda: (3, line()))
        ),
        OpSample(aten.special_zeta.default, lambda: (order(), line().abs()), **near),
        OpSample(aten.special_zeta.other_scalar, lambda: (order(), 2.5), **near),
        OpSample(aten.special_zeta.self_scalar, lambda: (2.5, line().abs()), **near),
    ]
