"""Order statistics: median and mode.

TopK leaves equal elements in their order and, in ONNX Runtime, has nan behind everything, as torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.dtypes import FLOATS, INTS
from atonnx.dispatch import Table
from atonnx_aten_core._axes import INT_MAX, axis_of, numel
from atonnx_aten_core._promote import BOOL

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_INT64 = ir.DataType.INT64
# TopK in ONNX Runtime has no kernel for some of these; int32 holds all of their values.
_NARROW = INTS - {_INT64, ir.DataType.INT32, ir.DataType.UINT32, ir.DataType.UINT64} | {BOOL}


def smallest(op: Builder, x: Value, count: Any, axis: int) -> tuple[Value, Value]:
    """The ``count`` smallest elements along an axis, in order, and their places."""
    wide = op.cast(x, ir.DataType.INT32) if x.dtype in _NARROW else x
    values, places = op.TopK(wide, [count], axis=axis, largest=0)
    return op.cast(values, x.dtype), places


# ------------------------------------------------------------------- median


@table.translate(aten.median.default)
def median(op: Builder, self: Value) -> Value:
    """The last of the smaller half by TopK; nan where there is one."""
    size = numel(self.dims or ())
    flat = op.reshape(self, (size,))
    half, _ = smallest(op, flat, (size + 1) // 2, 0)
    found = _last(op, half, size)
    if self.dtype not in FLOATS:
        return found
    return op.Where(_any(op, op.IsNaN(flat), 0, keepdims=0), float("nan"), found)


@table.translate(aten.nanmedian.default)
def nanmedian(op: Builder, self: Value) -> Value:
    """The middle one of what is not nan, by TopK."""
    if self.dtype not in FLOATS:
        return median(op, self)
    size = numel(self.dims or ())
    flat = op.reshape(self, (size,))
    ordered, _ = smallest(op, flat, size, 0)
    if not _never_zero(op, size):
        ordered = op.Concat(ordered, op.const([float("nan")], self.dtype), axis=0)
    return op.Gather(ordered, _middle(op, ordered, 0, keepdims=0), axis=0)


@table.translate(aten.median.dim)
def median_dim(op: Builder, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """The last of the smaller half by TopK; the first nan where there is one."""
    if not self.rank:
        return self, op.const(0, _INT64)
    axis = axis_of(dim, self.rank)
    size: Any = (self.dims or ())[axis]
    values, places = smallest(op, self, (size + 1) // 2, axis)
    if self.dtype not in FLOATS:
        return tuple(_taken(op, x, axis, keepdim) for x in (values, places))  # type: ignore[return-value]
    nan = op.cast(op.IsNaN(self), ir.DataType.INT32)
    first = op.ArgMax(nan, axis=axis, keepdims=1)
    found = op.Cast(op.GatherElements(nan, first, axis=axis), to=BOOL)
    place = op.Where(found, first, _taken(op, places, axis, True))
    return _picked(op, self, place, axis, keepdim)


@table.translate(aten.nanmedian.dim)
def nanmedian_dim(op: Builder, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """The middle one of what is not nan, by TopK; the first where all is nan."""
    if not self.rank:
        return self, op.const(0, _INT64)
    if self.dtype not in FLOATS:
        return median_dim(op, self, dim, keepdim)
    axis = axis_of(dim, self.rank)
    ordered, places = smallest(op, self, (self.dims or ())[axis], axis)
    middle = _middle(op, ordered, axis, keepdims=1)
    values, indices = (op.GatherElements(x, middle, axis=axis) for x in (ordered, places))
    return _without(op, values, axis, keepdim), _without(op, indices, axis, keepdim)


def _middle(op: Builder, x: Value, axis: int, keepdims: int) -> Value:
    """Where the median of what is not nan stands in ordered elements."""
    numbers = op.cast(op.Not(op.IsNaN(x)), _INT64)
    count = op.ReduceSum(numbers, [axis], keepdims=keepdims)
    return op.Div(op.Sub(op.Max(count, 1), 1), 2)


def _any(op: Builder, truth: Value, axis: int, keepdims: int) -> Value:
    """Whether one is true; of none, none is."""
    count = op.ReduceSum(op.cast(truth, ir.DataType.INT32), [axis], keepdims=keepdims)
    return op.cast(count, BOOL)


def _never_zero(op: Builder, size: Any) -> bool:
    return op.session.facts.provably_nonzero(size.expr) if isinstance(size, SymSize) else size != 0


def _last(op: Builder, vector: Value, size: Any) -> Value:
    """The last element of a vector; what torch has for none where there may be none."""
    if not _never_zero(op, size):
        none: Any = float("nan") if vector.dtype in FLOATS else 0
        if vector.dtype in INTS and vector.dtype.bitwidth >= 32:
            none = int(vector.dtype.min)
        vector = op.Concat(op.const([none], vector.dtype), vector, axis=0)
    return op.Gather(vector, op.const(-1, _INT64), axis=0)


def _taken(op: Builder, x: Value, axis: int, keepdim: bool) -> Value:
    """The last along an axis."""
    return op.Gather(x, op.const([-1] if keepdim else -1, _INT64), axis=axis)


def _picked(op: Builder, x: Value, place: Value, axis: int, keepdim: bool) -> tuple[Value, Value]:
    values = op.GatherElements(x, place, axis=axis)
    return _without(op, values, axis, keepdim), _without(op, place, axis, keepdim)


def _without(op: Builder, x: Value, axis: int, keepdim: bool) -> Value:
    return x if keepdim else op.Squeeze(x, [axis])


# --------------------------------------------------------------------- mode


@table.translate(aten.mode.default)
def mode(op: Builder, self: Value, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """The first of the longest runs of equal elements in order (TopK), and where its last one was.

    Which of equal elements torch names is not stated, nor what it finds where there is nan.
    """
    if not self.rank:
        return self, op.const(0, _INT64)
    axis = axis_of(dim, self.rank)
    dims = self.dims or ()
    ordered, places = smallest(op, self, dims[axis], axis)
    same = op.Equal(*(op.Slice(ordered, [a], [b], [axis]) for a, b in ((1, INT_MAX), (0, -1))))
    ahead = [int(at == axis) for at in range(self.rank)] + [0] * self.rank
    run = op.CumSum(op.Pad(op.cast(op.Not(same), _INT64), ahead), op.const(axis, _INT64))
    zeros, ones = (op.expand(op.const(n, _INT64), dims) for n in (0, 1))
    lengths = op.ScatterElements(zeros, run, ones, axis=axis, reduction="add")
    longest = op.ArgMax(lengths, axis=axis, keepdims=1)
    ends = op.Sub(op.CumSum(lengths, op.const(axis, _INT64)), 1)
    end = op.GatherElements(ends, longest, axis=axis)
    values, indices = (op.GatherElements(x, end, axis=axis) for x in (ordered, places))
    return _without(op, values, axis, keepdim), _without(op, indices, axis, keepdim)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    nan = float("nan")
    x = torch.tensor([[3.0, 1.0, 4.0, 1.0], [2.0, nan, 2.0, 1.0]])
    whole = torch.tensor([[3, 1, 4, 1], [2, 5, 2, 1]])
    along = (aten.median.dim, aten.nanmedian.dim)
    return [
        *(OpSample(f, (t,)) for f in (aten.median.default, aten.nanmedian.default) for t in (x, whole)),
        *(OpSample(f, (t, dim, dim == 0)) for f in along for t in (x, whole) for dim in (0, -1)),
        OpSample(aten.mode.default, (whole,)),
        OpSample(aten.mode.default, (x[:, :1], 0, True)),
    ]
