"""Orthogonal polynomials by their recurrences (A&S 22.7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.dispatch import Table
from atonnx_aten_core._promote import arithmetic, float_type
from atonnx_aten_core.pointwise import truncated

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

# So many steps are written one after the other; more are a Loop.
_UNROLLED = 8


class _Family(NamedTuple):
    """P(0) = 1, P(1), y, and how the next one is made of k, y and the two before; P(1) and y are linear in x.

    ``limit`` is by the dtype's width the degree above which torch gives nan.
    """

    first: tuple[float, float]
    y: tuple[float, float]
    following: Callable[[Builder, Any, Value, Value, Value], Value]
    limit: dict[int, int] | None = None


def _chebyshev(op: Builder, k: Any, y: Value, before: Value, last: Value) -> Value:
    return op.Sub(op.Mul(y, last), before)


def _hermite(op: Builder, k: Any, y: Value, before: Value, last: Value) -> Value:
    return op.Sub(op.Mul(y, last), op.Mul(before, op.Mul(k, 2.0)))


def _hermite_e(op: Builder, k: Any, y: Value, before: Value, last: Value) -> Value:
    return op.Sub(op.Mul(y, last), op.Mul(before, k))


def _laguerre(op: Builder, k: Any, y: Value, before: Value, last: Value) -> Value:
    factor = op.Add(op.Mul(k, 2.0), y)
    return op.Div(op.Sub(op.Mul(factor, last), op.Mul(before, k)), op.Add(k, 1.0))


def _legendre(op: Builder, k: Any, y: Value, before: Value, last: Value) -> Value:
    factor = op.Mul(op.Add(op.Mul(k, 2.0), 1.0), y)
    return op.Div(op.Sub(op.Mul(factor, last), op.Mul(before, k)), op.Add(k, 1.0))


_HERMITE_LIMIT = {32: 128, 64: 512}
_FAMILIES = {
    "chebyshev_polynomial_t": _Family((1, 0), (2, 0), _chebyshev),
    "chebyshev_polynomial_u": _Family((2, 0), (2, 0), _chebyshev),
    "chebyshev_polynomial_v": _Family((2, -1), (2, 0), _chebyshev),
    "chebyshev_polynomial_w": _Family((2, 1), (2, 0), _chebyshev),
    "shifted_chebyshev_polynomial_t": _Family((2, -1), (4, -2), _chebyshev),
    "shifted_chebyshev_polynomial_u": _Family((4, -2), (4, -2), _chebyshev),
    "shifted_chebyshev_polynomial_v": _Family((4, -3), (4, -2), _chebyshev),
    "shifted_chebyshev_polynomial_w": _Family((4, -1), (4, -2), _chebyshev),
    "hermite_polynomial_h": _Family((2, 0), (2, 0), _hermite, _HERMITE_LIMIT),
    "hermite_polynomial_he": _Family((1, 0), (1, 0), _hermite_e, _HERMITE_LIMIT),
    "laguerre_polynomial_l": _Family((-1, 1), (-1, 1), _laguerre),
    "legendre_polynomial_p": _Family((1, 0), (1, 0), _legendre),
}


def _linear(op: Builder, x: Value, slope: float, shift: float) -> Value:
    made = x if slope == 1 else op.Mul(x, float(slope))
    return op.Add(made, float(shift)) if shift else made


def _of_number(op: Builder, family: _Family, x: Value, n: int) -> Value:
    """The polynomial of a degree that is known."""
    if n < 1:
        return op.expand(op.const(float(n == 0), x.dtype), op.out.dims)
    if family.limit is not None and n > family.limit[x.dtype.bitwidth]:
        return op.expand(op.const(math.nan, x.dtype), op.out.dims)
    if n > _UNROLLED:
        return _of_tensor(op, family, x, op.const(float(n), x.dtype))
    y = _linear(op, x, *family.y)
    before, last = op.const(1.0, x.dtype), _linear(op, x, *family.first)
    for k in range(1, n):
        before, last = last, family.following(op, op.const(float(k), x.dtype), y, before, last)
    return last


def _of_tensor(op: Builder, family: _Family, x: Value, n: Value) -> Value:
    """A Loop up to the greatest degree, from which each element takes its own."""
    kind, dims = x.dtype, op.out.dims
    n = truncated(op, n)
    known = op.And(op.GreaterOrEqual(n, 0.0), op.Less(n, math.inf))
    end = op.Where(known, n, 0.0)
    limit = float(family.limit[kind.bitwidth]) if family.limit is not None else None
    if limit is not None:
        end = op.Min(end, limit)
    # A ReduceMax of nothing is not defined, so 0 is there always.
    flat = op.Concat(op.Reshape(end, [-1]), op.const([0.0], kind), axis=0)
    count = op.Add(op.Cast(op.ReduceMax(flat, keepdims=0), to=ir.DataType.INT64), 1)
    one = op.expand(op.const(1.0, kind), dims)
    y = _linear(op, x, *family.y)
    begin = (
        op.expand(op.const(0.0, kind), dims),
        one,
        op.expand(_linear(op, x, *family.first), dims),
    )
    with op.body("degrees") as body:
        k = body.Cast(body.input("step", ir.DataType.INT64, ()), to=kind)
        body.input("going", ir.DataType.BOOL, ())
        made, before, last = (body.input(name, kind, dims) for name in ("made", "before", "last"))
        made = body.Where(body.Equal(n, k), before, made)
        following = family.following(body, body.Add(k, 1.0), y, before, last)
        body.output(body.const(True), made, last, following)
    made = op.Loop(count, None, *begin, body=body.graph, outputs=3)[0]
    if limit is not None:
        made = op.Where(op.And(known, op.Greater(n, limit)), math.nan, made)
    return made


def _row(name: str) -> None:
    family = _FAMILIES[name]
    packet = getattr(aten, f"special_{name}")

    @table.translate(packet.default, packet.x_scalar, packet.n_scalar)
    def polynomial(op: Builder, x: Any, n: Any) -> Value:
        """The recurrence, written out for a small constant degree, else a Loop; 0 below degree 0."""
        dtype = float_type(x, n)
        if isinstance(n, (Value, SymSize)) or not math.isfinite(n):
            return arithmetic(op, lambda x, n: _of_tensor(op, family, x, n), x, n, dtype=dtype, wide=True)
        return arithmetic(op, lambda x: _of_number(op, family, x, int(n)), x, dtype=dtype, wide=True)


for _name in _FAMILIES:
    _row(_name)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, ulps

    def x() -> torch.Tensor:
        return torch.tensor([[-1.0, 0.25, 0.0], [1.0, -0.5, 1.5]])

    def n() -> torch.Tensor:
        return torch.tensor([[-1.0], [0.0], [1.0], [5.75], [9.0]])[:, :, None]

    near: dict[str, Any] = {"atol": ulps(256), "reason": "torch has closed forms for some degrees"}
    found = []
    for name in _FAMILIES:
        packet = getattr(aten, f"special_{name}")
        found += [
            OpSample(packet.default, lambda: (x(), n()), **near),
            OpSample(packet.x_scalar, lambda: (0.25, n()), **near),
            *(OpSample(packet.n_scalar, (x(), degree), **near) for degree in (-1, 0, 1, 4, 12)),
        ]
    return found
