"""Order along an axis, and what is counted by it: TopK, Unique."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import FLOATS
from atonnx.dispatch import Table
from atonnx_aten_core._axes import axis_of, numel
from atonnx_aten_core.runs import refuse_wrong_promise

aten = torch.ops.aten
table = Table(__name__)

# ONNX Runtime has no TopK for them; int32 holds all of their values.
_NARROW = (
    ir.DataType.BOOL,
    ir.DataType.INT8,
    ir.DataType.UINT8,
    ir.DataType.INT16,
    ir.DataType.UINT16,
)


def _top(
    op: Builder, x: Value, k: Any, dim: int, largest: bool, in_order: bool = True
) -> tuple[Value, Value]:
    """The first ``k`` along an axis, equal ones in their order, and where they were."""
    if not x.rank:
        return x, op.const(0, ir.DataType.INT64)
    wide = op.cast(x, ir.DataType.INT32) if x.dtype in _NARROW else x
    values, indices = op.TopK(
        wide, [k], axis=axis_of(dim, x.rank), largest=int(largest), sorted=int(in_order)
    )
    return op.cast(values, x.dtype), indices


def _sorted(op: Builder, x: Value, dim: int, descending: bool) -> tuple[Value, Value]:
    size = (x.dims or ())[axis_of(dim, x.rank)] if x.rank else 1
    return _top(op, x, size, dim, descending)


@table.translate(aten.topk.default)
def topk(
    op: Builder, self: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, Value]:
    """TopK."""
    return _top(op, self, k, dim, largest, sorted)


@table.translate(aten.sort.default)
def sort(op: Builder, self: Value, dim: int = -1, descending: bool = False) -> tuple[Value, Value]:
    """TopK of all elements."""
    return _sorted(op, self, dim, descending)


@table.translate(aten.sort.stable)
def sort_stable(
    op: Builder, self: Value, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> tuple[Value, Value]:
    """TopK of all elements, which leaves equal ones in their order."""
    return _sorted(op, self, dim, descending)


@table.translate(aten.argsort.default)
def argsort(op: Builder, self: Value, dim: int = -1, descending: bool = False) -> Value:
    """TopK of all elements."""
    return _sorted(op, self, dim, descending)[1]


@table.translate(aten.argsort.stable)
def argsort_stable(
    op: Builder, self: Value, *, stable: bool, dim: int = -1, descending: bool = False
) -> Value:
    """TopK of all elements, which leaves equal ones in their order."""
    return _sorted(op, self, dim, descending)[1]


@table.translate(aten.msort.default)
def msort(op: Builder, self: Value) -> Value:
    """TopK of all elements along the first axis."""
    return _sorted(op, self, 0, False)[0]


@table.translate(aten.kthvalue.default)
def kthvalue(op: Builder, self: Value, k: Any, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """The last of the k smallest by TopK."""
    values, indices = _top(op, self, k, dim, largest=False)
    if not self.rank:
        return values, indices
    axis = axis_of(dim, self.rank)
    pick = op.shape([k - 1]) if keepdim else op.size(k - 1)
    return op.Gather(values, pick, axis=axis), op.Gather(indices, pick, axis=axis)


@table.translate(aten.searchsorted.Tensor)
def searchsorted(
    op: Builder,
    sorted_sequence: Value,
    self: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    """How many of the sequence are before each value: a comparison with all, summed."""
    if sorter is not None:
        sorted_sequence = op.GatherElements(sorted_sequence, sorter, axis=-1)
    return _before(op, sorted_sequence, self, right or side == "right")


@table.translate(aten.searchsorted.Scalar)
def searchsorted_scalar(
    op: Builder,
    sorted_sequence: Value,
    self: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    """As with a tensor of one value."""
    if sorter is not None:
        sorted_sequence = op.GatherElements(sorted_sequence, sorter, axis=-1)
    sequence, value = _comparable(op, sorted_sequence, self)
    return _before(op, sequence, value, right or side == "right")


@table.translate(aten.bucketize.Tensor)
def bucketize(
    op: Builder, self: Value, boundaries: Value, *, out_int32: bool = False, right: bool = False
) -> Value:
    """How many boundaries are before each value: a comparison with all, summed."""
    return _before(op, boundaries, self, right)


@table.translate(aten.bucketize.Scalar)
def bucketize_scalar(
    op: Builder, self: Any, boundaries: Value, *, out_int32: bool = False, right: bool = False
) -> Value:
    """As with a tensor of one value."""
    sequence, value = _comparable(op, boundaries, self)
    return _before(op, sequence, value, right)


def _comparable(op: Builder, sequence: Value, number: Any) -> tuple[Value, Value]:
    if sequence.dtype not in FLOATS and isinstance(number, float):
        sequence = op.cast(sequence, ir.DataType.FLOAT)
    elif sequence.dtype == ir.DataType.BOOL:
        sequence = op.cast(sequence, ir.DataType.INT64)
    return sequence, op.cast(number, sequence.dtype)


def _before(op: Builder, sequence: Value, values: Value, right: bool) -> Value:
    """Counts what is not behind a value, so that nan, which compares with nothing, is behind all."""
    if sequence.dtype != values.dtype:
        sequence, values = (op.cast(x, ir.DataType.FLOAT) for x in (sequence, values))
    inner = op.Unsqueeze(sequence, [-2]) if sequence.rank > 1 else sequence
    outer = op.Unsqueeze(values, [-1])
    behind = op.Greater(inner, outer) if right else op.GreaterOrEqual(inner, outer)
    counted = op.cast(op.Not(behind), op.out.dtype)
    return op.ReduceSum(counted, [-1], keepdims=0)


@table.translate(aten._unique2.default)
def unique(
    op: Builder, self: Value, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Value | None, Value | None, Value | None]:
    """Unique."""
    values, _, inverse, counts = op.Unique(self, sorted=1, outputs=4)
    return values, op.reshape(inverse, self.dims or ()) if return_inverse else None, counts


@table.translate(aten.unique_dim.default)
def unique_dim(
    op: Builder,
    self: Value,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Value, Value, Value]:
    """Unique along an axis."""
    refuse_wrong_promise(op, self, dim)
    values, _, inverse, counts = op.Unique(self, axis=axis_of(dim, self.rank), sorted=1, outputs=4)
    return values, inverse, counts


@table.translate(aten.repeat_interleave.Tensor)
def repeat_interleave(op: Builder, repeats: Value, *, output_size: Any = None) -> Value:
    """Each place counts the repeats that end before it."""
    return op.cast(_interleaved(op, repeats, output_size), repeats.dtype)


@table.translate(aten.repeat_interleave.self_Tensor)
def repeat_interleave_by(
    op: Builder, self: Value, repeats: Value, dim: int | None = None, *, output_size: Any = None
) -> Value:
    """Gather of each index as often as it is to be repeated."""
    if dim is None:
        axis, data = 0, op.reshape(self, (numel(self.dims or ()),))
    else:
        axis, data = axis_of(dim, self.rank), self if self.rank else op.reshape(self, (1,))
    count = (data.dims or ())[axis]
    if repeats.rank == 0 or (repeats.dims or ())[0] == 1:
        repeats = op.expand(op.reshape(repeats, (1,)), (count,))
    return op.Gather(data, _interleaved(op, repeats, output_size), axis=axis)


def _interleaved(op: Builder, repeats: Value, total: Any) -> Value:
    ends = op.CumSum(op.cast(repeats, ir.DataType.INT64), op.const(0, ir.DataType.INT64))
    whole = op.cast(repeats, ir.DataType.INT64)
    count = op.ReduceSum(whole, [0], keepdims=0) if total is None else op.size(total)
    place = op.Range(0, count, 1)
    ended = op.LessOrEqual(ends, op.Unsqueeze(place, [1]))
    return op.ReduceSum(op.cast(ended, ir.DataType.INT64), [1], keepdims=0)


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x, whole = torch.randn(3, 5), torch.tensor([[3, 1, 3], [2, 1, 2]])
    return [
        OpSample(aten.topk.default, (x, 2)),
        OpSample(aten.sort.default, (x, 0, True)),
        OpSample(aten.sort.stable, (x,), {"stable": True}),
        OpSample(aten.argsort.default, (x,)),
        OpSample(aten.argsort.stable, (x,), {"stable": True}),
        OpSample(aten.msort.default, (x,)),
        OpSample(aten.kthvalue.default, (x, 2)),
        OpSample(aten.searchsorted.Tensor, (x.sort().values, torch.randn(3, 2)), {"right": True}),
        OpSample(aten.searchsorted.Scalar, (x[0].sort().values, 0.1)),
        OpSample(aten.bucketize.Tensor, (x, x[0].sort().values)),
        OpSample(aten.bucketize.Scalar, (0.1, x[0].sort().values)),
        OpSample(aten._unique2.default, (whole,), {"return_inverse": True, "return_counts": True}),
        OpSample(aten.unique_dim.default, (whole, 1, True, True, True)),
        OpSample(aten.repeat_interleave.Tensor, (torch.tensor([2, 0, 3]),)),
        OpSample(aten.repeat_interleave.self_Tensor, (x, torch.tensor([2, 0, 3]), 0)),
    ]
