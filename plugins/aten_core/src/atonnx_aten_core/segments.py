"""Reductions over what an index or a segment names, and indexing that a mask guards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._axes import INT_MAX, arange, axis_of, dims_of, rank_of
from atonnx_aten_core._promote import in_dtype

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_INT64 = ir.DataType.INT64


@table.translate(aten.index_reduce.default)
def index_reduce(
    op: Builder,
    self: Value,
    dim: int,
    index: Value,
    source: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    """As scatter_reduce, with the index expanded over the other axes."""
    sizes = source.dims or ()
    where = index
    if sizes:
        axis = axis_of(dim, len(sizes))
        form = [size if at == axis else 1 for at, size in enumerate(sizes)]
        where = op.expand(op.reshape(index, form), sizes)
    elif index.rank:
        where = op.reshape(index, ())
    made: Value = op.translate(
        aten.scatter_reduce.two, self, dim, where, source, reduce, include_self=include_self
    )
    return made


# ------------------------------------------------------------ segment_reduce


@table.translate(aten.segment_reduce.default)
def segment_reduce(
    op: Builder,
    data: Value,
    reduce: str,
    *,
    lengths: Value | None = None,
    indices: Value | None = None,
    offsets: Value | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Value:
    """ScatterElements with the reduction, to the segment that each element is in."""
    sizes = data.dims or ()
    out = op.out.dims
    axis = axis_of(axis, len(sizes))
    count = sizes[axis]
    place = arange(op, count)
    ends: Value
    if lengths is not None:
        ends = op.CumSum(op.cast(lengths, _INT64), op.const(axis, _INT64))
    else:
        ends = op.cast(offsets, _INT64)
    passed = op.LessOrEqual(op.Unsqueeze(ends, [-2]), op.Unsqueeze(place, [1]))
    segment = op.ReduceSum(op.cast(passed, _INT64), [-1], keepdims=0)
    if lengths is None:
        segment = op.Sub(segment, 1)  # -1, an index of the last, where the first has not begun
    # What is in no segment goes to one more, behind them.
    wide = [size + 1 if at == axis else size for at, size in enumerate(out)]
    start = initial if initial is not None else _START[reduce]
    base = op.expand(op.const(start, data.dtype), wide)
    after = len(sizes) - axis - 1
    segment = op.expand(op.Unsqueeze(segment, list(range(axis + 1, axis + 1 + after))), sizes)
    kind = "sum" if reduce == "mean" else _NAMES[reduce]
    made = op.translate(aten.scatter_reduce.two, base, axis, segment, data, kind)
    made = op.Slice(made, [0], [-1], [axis])
    if reduce != "mean":
        return made
    number = lengths
    if number is None:
        number = op.Sub(op.Slice(ends, [1], [INT_MAX], [axis]), op.Slice(ends, [0], [-1], [axis]))
    number = op.cast(number, data.dtype)
    if after:
        number = op.Unsqueeze(number, list(range(axis + 1, axis + 1 + after)))
    # An empty segment has the initial value; without one 0 / 0 is the nan that torch has.
    return op.Div(made, number if initial is None else op.Max(number, 1.0))


_START = {"max": float("-inf"), "min": float("inf"), "mean": 0, "sum": 0, "prod": 1}
_NAMES = {"max": "amax", "min": "amin", "sum": "sum", "prod": "prod"}


# ------------------------------------------------------------ guarded by masks


def _clamped(op: Builder, x: Value, indices: Sequence[Value | None]) -> list[Value | None]:
    """Indices moved into the tensor."""
    made: list[Value | None] = []
    for axis, index in enumerate(indices):
        if index is not None:
            size: Any = (x.dims or ())[axis]
            index = op.Max(op.Min(op.cast(index, _INT64), op.size(size - 1)), op.size(-size))
        made.append(index)
    return made


@table.translate(aten._unsafe_masked_index.default)
def _unsafe_masked_index(
    op: Builder, self: Value, mask: Value, indices: Sequence[Value | None], fill: Any
) -> Value:
    """As index, with indices moved into the tensor; Where, for the fill where the mask is false."""
    filler = in_dtype(op, fill, self.dtype)
    if any(isinstance(size, int) and size == 0 for size in self.dims or ()):
        return op.expand(filler, op.out.dims)
    taken = op.translate(aten.index.Tensor, self, _clamped(op, self, indices))
    return op.Where(mask, taken, filler)


@table.translate(aten._unsafe_masked_index_put_accumulate.default)
def _unsafe_masked_index_put_accumulate(
    op: Builder, self: Value, mask: Value, indices: Sequence[Value | None], values: Value
) -> Value:
    """As index_put of values that are 0 where the mask is false, with indices moved into the tensor."""
    if any(isinstance(size, int) and size == 0 for size in self.dims or ()):
        return self
    kept = op.Where(mask, values, op.cast(0, values.dtype))
    where = _clamped(op, self, indices)
    made: Value = op.translate(aten.index_put.default, self, where, kept, True)
    return made


# -------------------------------------------------------------------- split


@table.translate(aten.tensor_split.tensor_indices_or_sections, complex="layout")
def tensor_split_tensor(
    op: Builder, self: Value, tensor_indices_or_sections: Value, dim: int = 0
) -> tuple[Value, ...]:
    """A Slice for each part. How many there are is fixed in the program, where they are is not."""
    axis = axis_of(dim, rank_of(self))
    count = len(op.outs)
    if tensor_indices_or_sections.rank:
        bounds = op.cast(tensor_indices_or_sections, _INT64)
        inner = [op.Slice(bounds, [at], [at + 1], [0]) for at in range(count - 1)]
        cuts = [op.const([0], _INT64), *inner, op.const([INT_MAX], _INT64)]
    else:
        size: Any = dims_of(self)[axis]
        each, more = size // count, size % count
        cuts = [op.shape([each * at]) for at in range(count)]
        cuts = [op.Add(cut, op.Min(op.shape([more]), at)) for at, cut in enumerate(cuts)]
        cuts.append(op.const([INT_MAX], _INT64))
    return tuple(op.Slice(self, cuts[at], cuts[at + 1], [axis]) for at in range(count))


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x, index = torch.randn(3, 4), torch.tensor([2, 0, 2])
    lengths, offsets = torch.tensor([2, 0, 1]), torch.tensor([0, 2, 2, 3])
    mask, rows = torch.tensor([True, False, True]), torch.tensor([0, 7, 2])
    split = aten.tensor_split.tensor_indices_or_sections
    return [
        *(
            OpSample(aten.index_reduce.default, (x, 1, index, torch.randn(3, 3), kind), {"include_self": own})
            for kind in ("prod", "mean", "amax", "amin")
            for own in (True, False)
        ),
        *(
            OpSample(aten.segment_reduce.default, (x, kind), {"lengths": lengths})
            for kind in ("sum", "mean", "max", "min", "prod")
        ),
        OpSample(aten.segment_reduce.default, (x, "mean"), {"offsets": offsets, "initial": 2.0}),
        OpSample(aten._unsafe_masked_index.default, (x[:, 0], mask, [rows], 0.5)),
        OpSample(aten._unsafe_masked_index_put_accumulate.default, (x[:, 0], mask, [rows], x[0, :3])),
        OpSample(split, (torch.randn(7, 3), torch.tensor([2, 5])), options={"dynamic": False}),
    ]
