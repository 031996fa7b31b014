"""Running sums, products and extremes along an axis."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import FLOATS, to_ir, to_torch
from atonnx.dispatch import Table
from atonnx_aten_core._axes import INT_MAX, axis_of, transposed
from atonnx_aten_core._promote import through_float

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

# What CumSum and CumProd take; other integers are cast.
_SUMMED = frozenset({ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32, ir.DataType.UINT64}) | FLOATS

# What is compared as it is; other integers and bools are cast.
_COMPARED = frozenset({ir.DataType.INT32, ir.DataType.INT64}) | FLOATS


def _summand(op: Builder, x: Value, dtype: Any) -> tuple[Value, ir.DataType]:
    """A tensor in a dtype that is summed, and the dtype of the result."""
    if dtype is not None:
        kind = to_ir(dtype)
    else:
        kind = x.dtype if x.dtype in FLOATS else ir.DataType.INT64
    x = op.cast(x, kind)
    return (x if kind in _SUMMED else op.cast(x, ir.DataType.INT64)), kind


@table.translate(aten.cumsum.default)
def cumsum(op: Builder, self: Value, dim: int, *, dtype: Any = None) -> Value:
    """CumSum; integers and bools are summed as int64."""
    x, kind = _summand(op, self, dtype)
    if x.rank:
        x = op.CumSum(x, op.const(axis_of(dim, x.rank), ir.DataType.INT64))
    return op.cast(x, kind)


@table.translate(aten.cumprod.default)
def cumprod(op: Builder, self: Value, dim: int, *, dtype: Any = None) -> Value:
    """CumProd; below opset 26, which has none, a Scan where the tensor may be empty.

    Integers and bools are multiplied as int64.
    """
    x, kind = _summand(op, self, dtype)
    if x.rank and op.opset < 26 and _may_be_empty(op, x):
        (x,) = _scan(op, x, dim, [op.const(1, x.dtype)], lambda body, new, made: (body.Mul(made, new),))
    elif x.rank:
        x = op.CumProd(x, op.const(axis_of(dim, x.rank), ir.DataType.INT64))
    return op.cast(x, kind)


def _scan(op: Builder, x: Value, dim: int, begin: Sequence[Value], step: Callable[..., Any]) -> list[Value]:
    """A Scan along ``dim``: ``step(body, slice, *state)`` gives the next state, which is what is kept.

    ONNX Runtime 1.32 divides by zero where a Scan has nothing to do, and may where it transposes what is
    empty. So a tensor that may be empty is transposed before, and ``begin`` is its first slice as well.
    """
    dims = x.dims or ()
    axis, count = axis_of(dim, x.rank), len(begin)
    rest = tuple(size for index, size in enumerate(dims) if index != axis)
    if 0 in dims:
        return [op.expand(value, dims) for value in begin]
    start = [op.expand(value, rest) for value in begin]
    with op.body("steps") as body:
        state = [body.input("state", value.dtype, rest) for value in start]
        after = step(body, body.input("slice", x.dtype, rest), *state)
        body.output(*after, *after)
    scan = functools.partial(op.Scan, *start, body=body.graph, num_scan_inputs=1, outputs=2 * count)
    if not _may_be_empty(op, x):
        return list(scan(x, scan_input_axes=[axis], scan_output_axes=[axis] * count)[count:])
    order = [axis, *(index for index in range(x.rank) if index != axis)]
    x = transposed(op, x, order)
    more = op.Concat(op.Unsqueeze(start[0], [0]), x, axis=0)
    back = [order.index(index) for index in range(x.rank)]
    kept = [op.Slice(made, [1], [INT_MAX], [0]) for made in scan(more)[count:]]
    return [transposed(op, made, back) for made in kept]


def _may_be_empty(op: Builder, x: Value) -> bool:
    sizes = x.dims or ()
    return not all(size is not None and op.session.facts.truth(size) for size in sizes)


def _running_extreme(op: Builder, self: Value, dim: int, name: str) -> tuple[Value, Value]:
    if not self.rank:
        return self, op.const(0, ir.DataType.INT64)
    kind = self.dtype
    x = self if kind in _COMPARED else op.cast(self, ir.DataType.INT64)
    worst: Any = -math.inf if name == "GreaterOrEqual" else math.inf
    if x.dtype not in FLOATS:
        limits = torch.iinfo(to_torch(x.dtype))
        worst = limits.min if name == "GreaterOrEqual" else limits.max

    def step(body: Builder, new: Value, best: Value, index: Value, at: Value) -> tuple[Value, ...]:
        taken = getattr(body, name)(new, best)
        if new.dtype in FLOATS:  # a nan is taken and stays, until the next one
            taken = body.Or(taken, body.IsNaN(new))
        return body.Where(taken, new, best), body.Where(taken, at, index), body.Add(at, 1)

    first = op.const(-1 if _may_be_empty(op, x) else 0, ir.DataType.INT64)
    values, indices, _ = _scan(op, x, dim, [op.const(worst, x.dtype), first, first], step)
    return op.cast(values, kind), indices


@table.translate(aten.cummax.default)
def cummax(op: Builder, self: Value, dim: int) -> tuple[Value, Value]:
    """A Scan that keeps the greatest element and its index, the last one of equals."""
    return _running_extreme(op, self, dim, "GreaterOrEqual")


@table.translate(aten.cummin.default)
def cummin(op: Builder, self: Value, dim: int) -> tuple[Value, Value]:
    """A Scan that keeps the least element and its index, the last one of equals."""
    return _running_extreme(op, self, dim, "LessOrEqual")


@table.translate(aten.logcumsumexp.default, aten._logcumsumexp.default)
def logcumsumexp(op: Builder, self: Value, dim: int) -> Value:
    """A Scan of max + log(1 + exp(-|difference|))."""
    if not self.rank:
        return self

    def step(body: Builder, new: Value, total: Value) -> tuple[Value, ...]:
        top = body.Max(new, total)
        gap = body.Where(body.Equal(new, total), 0.0, body.Abs(body.Sub(new, total)))
        return (body.Add(top, body.Log(body.Add(body.Exp(body.Neg(gap)), 1.0))),)

    def compute(x: Value) -> Value:
        return _scan(op, x, dim, [op.const(-math.inf, x.dtype)], step)[0]

    return through_float(op, self, compute)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, ulps

    def x() -> torch.Tensor:
        return torch.tensor([[0.5, -1.5, 2.25], [-0.75, 3.0, 1.0]])

    near: dict[str, Any] = {"atol": ulps(32), "reason": "the sum of exponentials rounds at each step"}
    return [
        *(
            OpSample(f.default, args)
            for f in (aten.cummax, aten.cummin)
            for args in (
                lambda: (torch.tensor([[3.0, math.nan, 5.0], [3.0, 1.0, -math.inf]]), 1),
                lambda: (x().to(torch.int8), 0),
                lambda: (x() > 0, -1),
                lambda: (x()[0, 0], 0),
            )
        ),
        *(OpSample(f.default, lambda: (x(), 1), **near) for f in (aten.logcumsumexp, aten._logcumsumexp)),
        OpSample(aten.logcumsumexp.default, lambda: (x()[0, 0], 0)),
    ] + [
        OpSample(f.default, args, kwargs)
        for f in (aten.cumsum, aten.cumprod)
        for args, kwargs in (
            (lambda: (x(), 0), {}),
            (lambda: (x(), -1), {"dtype": torch.float64}),
            (lambda: (x().to(torch.int8), 1), {}),
            (lambda: (x().to(torch.int8), 1), {"dtype": torch.int8}),
            (lambda: (x() > 0, 1), {}),
            (lambda: (x()[0, 0], 0), {}),
        )
    ]
