"""Parts of a tensor along an axis, and joining parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.dispatch import Table
from atonnx_aten_core._axes import INT_MAX, INT_MIN, arange, axis_of, dims_of, numel, pair, rank_of
from atonnx_aten_core._complex import as_pair

aten = torch.ops.aten
table = Table(__name__)


# ------------------------------------------------------------- slice, select


@table.translate(aten.slice.Tensor, aten.slice_copy.Tensor, complex="layout")
def slice(op: Builder, self: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Value:
    """Slice, which clamps as torch does; the tensor itself where that is all of it."""
    axis = axis_of(dim, rank_of(self))
    begin, stop = span(op, dims_of(self)[axis], start, end)
    if begin == 0 and stop == INT_MAX and step == 1:
        return self
    return _slice(op, self, axis, begin, stop, step)


def span(op: Builder, size: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Bounds of a slice, 0 and INT_MAX where it provably begins or ends with the axis."""
    begin = 0 if start is None else start
    stop = INT_MAX if end is None else end
    facts = op.session.facts
    if size is None:
        return begin, stop
    if isinstance(size, int) and isinstance(begin, int) and begin < 0:
        begin = max(begin + size, 0)
    if isinstance(stop, int) and stop >= INT_MAX or facts.compare(stop, ">=", size):
        stop = INT_MAX
    return begin, stop


def _slice(op: Builder, x: Value, axis: int, start: Any, end: Any, step: Any = 1) -> Value:
    return op.Slice(x, [start], [end], [axis], None if step == 1 else [step])


@table.translate(aten.narrow.default, complex="layout")
def narrow(op: Builder, self: Value, dim: int, start: Any, length: Any) -> Value:
    """Slice; two where the sign of the start is known at run time only."""
    axis = axis_of(dim, rank_of(self))
    size = dims_of(self)[axis]
    if isinstance(start, int) and start < 0:
        start = size + start
    elif isinstance(start, SymSize) and not op.session.facts.provably_nonnegative(start):
        return _slice(op, _slice(op, self, axis, start, INT_MAX), axis, 0, length)
    return slice(op, self, axis, start, start + length)


@table.translate(aten.select.int, aten.select_copy.int, complex="layout")
def select(op: Builder, self: Value, dim: int, index: Any) -> Value:
    """Gather with a scalar index, which may be negative."""
    return op.Gather(self, op.size(index), axis=axis_of(dim, rank_of(self)))


@table.translate(aten.unbind.int, aten.unbind_copy.int, complex="layout")
def unbind(op: Builder, self: Value, dim: int = 0) -> tuple[Value, ...]:
    """A Gather for each."""
    axis = axis_of(dim, rank_of(self))
    return tuple(op.Gather(self, op.size(i), axis=axis) for i in range(len(op.outs)))


# -------------------------------------------------------------------- split


@table.translate(aten.split.Tensor, aten.unsafe_split.Tensor, aten.split_copy.Tensor, complex="layout")
def split(op: Builder, self: Value, split_size: Any, dim: int = 0) -> tuple[Value, ...]:
    """Split."""
    return _split(op, self, dim)


@table.translate(aten.split.sizes, complex="layout")
def split_sizes(op: Builder, self: Value, split_size: Sequence[Any], dim: int = 0) -> tuple[Value, ...]:
    """Split."""
    return _split(op, self, dim)


@table.translate(
    aten.split_with_sizes.default,
    aten.unsafe_split_with_sizes.default,
    aten.split_with_sizes_copy.default,
    complex="layout",
)
def split_with_sizes(op: Builder, self: Value, split_sizes: Sequence[Any], dim: int = 0) -> tuple[Value, ...]:
    """Split."""
    return _split(op, self, dim)


@table.translate(aten.chunk.default, aten.unsafe_chunk.default, complex="layout")
def chunk(op: Builder, self: Value, chunks: int, dim: int = 0) -> tuple[Value, ...]:
    """Split."""
    return _split(op, self, dim)


@table.translate(aten.tensor_split.sections, complex="layout")
def tensor_split_sections(op: Builder, self: Value, sections: Any, dim: int = 0) -> tuple[Value, ...]:
    """Split."""
    return _split(op, self, dim)


@table.translate(aten.tensor_split.indices, complex="layout")
def tensor_split(op: Builder, self: Value, indices: Sequence[Any], dim: int = 0) -> tuple[Value, ...]:
    """A Slice for each part, since parts may overlap where the indices go back."""
    axis = axis_of(dim, rank_of(self))
    ends = [*indices, INT_MAX]
    return tuple(_slice(op, self, axis, a, b) for a, b in zip([0, *indices], ends, strict=True))


def _split(op: Builder, x: Value, dim: int) -> tuple[Value, ...]:
    """Split into the sizes that torch inferred for the results."""
    axis = axis_of(dim, rank_of(x))
    if len(op.outs) == 1:
        return (x,)
    sizes = op.shape([out.dims[axis] for out in op.outs])
    return op.Split(x, sizes, axis=axis, outputs=len(op.outs))


# --------------------------------------------------------------------- join


@table.translate(aten.cat.default, aten.concat.default, aten.concatenate.default, complex="layout")
def cat(op: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    """Concat of what is not a legacy ``(0,)`` tensor, in the promoted dtype."""
    rank = op.out.rank - op.out.is_complex
    kept = [x for x in tensors if rank_of(x) == rank]
    return _concat(op, _alike(op, kept), axis_of(dim, rank))


@table.translate(aten.stack.default, aten._stack.default, complex="layout")
def stack(op: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    """Concat of the tensors with a new axis each."""
    axis = axis_of(dim, rank_of(tensors[0]) + 1)
    return _concat(op, [op.Unsqueeze(x, [axis]) for x in _alike(op, tensors)], axis)


@table.translate(aten.hstack.default, complex="layout")
def hstack(op: Builder, tensors: Sequence[Value]) -> Value:
    """Concat of columns, or of vectors."""
    parts = [_padded(op, x, 1) for x in _alike(op, tensors)]
    return _concat(op, parts, 0 if op.out.rank - op.out.is_complex == 1 else 1)


@table.translate(aten.vstack.default, aten.row_stack.default, complex="layout")
def vstack(op: Builder, tensors: Sequence[Value]) -> Value:
    """Concat of rows."""
    return _concat(op, [_padded(op, x, 2) for x in _alike(op, tensors)], 0)


@table.translate(aten.dstack.default, complex="layout")
def dstack(op: Builder, tensors: Sequence[Value]) -> Value:
    """Concat along the third axis."""
    return _concat(op, [_padded(op, x, 3) for x in _alike(op, tensors)], 2)


@table.translate(aten.column_stack.default, complex="layout")
def column_stack(op: Builder, tensors: Sequence[Value]) -> Value:
    """Concat of columns, which vectors become."""
    parts = _alike(op, tensors)
    columns = [x if rank_of(x) > 1 else op.reshape(x, (numel(dims_of(x)), 1, *pair(x))) for x in parts]
    return _concat(op, columns, 1)


@table.translate(aten._chunk_cat.default, complex="layout")
def _chunk_cat(op: Builder, tensors: Sequence[Value], dim: int, num_chunks: int) -> Value:
    """Concat of the tensors' chunks, each row of which is flat; Pad, where the chunks are not of one size."""
    axis = axis_of(dim, rank_of(tensors[0]))
    parts = []
    for x in _alike(op, tensors):
        sizes = dims_of(x)
        each = (sizes[axis] + num_chunks - 1) // num_chunks
        missing = each * num_chunks - sizes[axis]
        whole = x if missing == 0 else op.Pad(x, op.shape([0, missing]), None, [axis])
        row = each * numel(sizes[axis + 1 :])
        parts.append(op.reshape(whole, (*sizes[:axis], num_chunks, row, *pair(x))))
    return _concat(op, parts, axis + 1)


def _padded(op: Builder, x: Value, rank: int) -> Value:
    """As ``atleast_1d``, ``atleast_2d`` and ``atleast_3d`` do."""
    sizes = dims_of(x)
    if rank == 3 and len(sizes) == 2:
        sizes = (*sizes, 1)
    while len(sizes) < rank:
        sizes = (1, *sizes) if len(sizes) < 2 else (*sizes, 1)
    return op.reshape(x, (*sizes, *pair(x)))


def _alike(op: Builder, tensors: Sequence[Value]) -> Sequence[Value]:
    """The tensors, real ones among complex ones as complex."""
    return [as_pair(op, x, op.out.dtype) for x in tensors] if op.out.is_complex else tensors


def _concat(op: Builder, tensors: Sequence[Value], axis: int) -> Value:
    parts = [op.cast(x, op.out.dtype) for x in tensors]
    return parts[0] if len(parts) == 1 else op.Concat(*parts, axis=axis)


# --------------------------------------------------------------- flip, roll


@table.translate(aten.flip.default, complex="layout")
def flip(op: Builder, self: Value, dims: Sequence[int]) -> Value:
    """Slice with step -1."""
    return _flipped(op, self, dims)


@table.translate(aten.fliplr.default, complex="layout")
def fliplr(op: Builder, self: Value) -> Value:
    """Slice with step -1 along the second axis."""
    return _flipped(op, self, [1])


@table.translate(aten.flipud.default, complex="layout")
def flipud(op: Builder, self: Value) -> Value:
    """Slice with step -1 along the first axis."""
    return _flipped(op, self, [0])


def _flipped(op: Builder, x: Value, dims: Sequence[int]) -> Value:
    rank = rank_of(x)
    axes = sorted({axis_of(d, rank) for d in dims}) if rank else []
    if not axes:
        return x
    count = len(axes)
    return op.Slice(x, [-1] * count, [INT_MIN] * count, axes, [-1] * count)


@table.translate(aten.rot90.default, complex="layout")
def rot90(op: Builder, self: Value, k: int = 1, dims: Sequence[int] = (0, 1)) -> Value:
    """Slice with step -1 and Transpose."""
    rank = rank_of(self)
    first, second = (axis_of(d, rank) for d in dims)
    turns = k % 4
    if turns == 0:
        return self
    if turns == 2:
        return _flipped(op, self, [first, second])
    perm = list(range(rank))
    perm[first], perm[second] = second, first
    full = [*perm, rank] if self.is_complex else perm
    if turns == 1:
        return op.Transpose(op.Slice(self, [-1], [INT_MIN], [second], [-1]), perm=full)
    return op.Slice(op.Transpose(self, perm=full), [-1], [INT_MIN], [second], [-1])


@table.translate(aten.roll.default, complex="layout")
def roll(op: Builder, self: Value, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Value:
    """Two Slice and a Concat for each axis."""
    rank = rank_of(self)
    if rank == 0:
        return self
    if not dims:
        flat = op.reshape(self, (numel(dims_of(self)), *pair(self)))
        return op.reshape(_rolled(op, flat, shifts[0], 0, numel(dims_of(self))), self.dims or ())
    x = self
    for shift, dim in zip(shifts, dims, strict=True):
        axis = axis_of(dim, rank)
        x = _rolled(op, x, shift, axis, dims_of(self)[axis])
    return x


def _rolled(op: Builder, x: Value, shift: Any, axis: int, size: Any) -> Value:
    if isinstance(size, int) and isinstance(shift, int):
        shift = shift % size if size else 0
        if shift == 0:
            return x
        cut = size - shift
    elif isinstance(shift, int) and abs(shift) == 1:
        # Slice clamps, so that this holds for sizes 0 and 1 as well.
        cut = -shift
    elif isinstance(shift, int) and shift == 0:
        return x
    else:
        # In place of a size 0 any divisor will do.
        moved = op.Mod(op.Sub(arange(op, size), op.size(shift)), op.Max(op.size(size), 1))
        return op.Gather(x, moved, axis=axis)
    return op.Concat(_slice(op, x, axis, cut, INT_MAX), _slice(op, x, axis, 0, cut), axis=axis)


@table.translate(aten.unfold.default, aten.unfold_copy.default)
def unfold(op: Builder, self: Value, dimension: int, size: int, step: int) -> Value:
    """Gather of the windows; their axis goes to the end."""
    if self.rank == 0:
        return _slice(op, op.reshape(self, (1,)), 0, 0, size)
    axis = axis_of(dimension, self.rank)
    count = op.out.dims[axis]
    if isinstance(count, int):
        index = op.const(np.arange(count, dtype=np.int64)[:, None] * step + np.arange(size))
    else:
        index = op.Add(op.Unsqueeze(op.Range(0, op.size(count * step), step), [1]), list(range(size)))
    windows = op.Gather(self, index, axis=axis)
    rest = [i for i in range(self.rank + 1) if i != axis + 1]
    return windows if axis + 1 == self.rank else op.Transpose(windows, perm=[*rest, axis + 1])


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x, y = torch.randn(4, 5, 3), torch.randn(2, 5, 3)
    pieces = (aten.split.Tensor, aten.unsafe_split.Tensor, aten.split_copy.Tensor)
    sized = (
        aten.split.sizes,
        aten.split_with_sizes.default,
        aten.unsafe_split_with_sizes.default,
        aten.split_with_sizes_copy.default,
    )
    return [
        *(OpSample(f, (x, 1, -4, 4, 2)) for f in (aten.slice.Tensor, aten.slice_copy.Tensor)),
        OpSample(aten.narrow.default, (x, 1, -3, 2)),
        *(OpSample(f, (x, 1, -2)) for f in (aten.select.int, aten.select_copy.int)),
        *(OpSample(f, (x, -1)) for f in (aten.unbind.int, aten.unbind_copy.int)),
        *(OpSample(f, (x, 2, 1)) for f in pieces),
        *(OpSample(f, (x, [2, 3], 1)) for f in sized),
        *(OpSample(f, (x, 2, 1)) for f in (aten.chunk.default, aten.unsafe_chunk.default)),
        OpSample(aten.tensor_split.sections, (x, 2, 1)),
        OpSample(aten.tensor_split.indices, (x, [3, 1], 1)),
        *(OpSample(f, ([x, y], 0)) for f in (aten.cat.default, aten.concat.default)),
        OpSample(aten.concatenate.default, ([torch.zeros(0), x], -1)),
        OpSample(aten.stack.default, ([x, x.int()], -1)),
        OpSample(aten._stack.default, ([x, x], 1)),
        OpSample(aten.cat.default, ([x, y * 1j], 0)),
        OpSample(aten._chunk_cat.default, ([x, torch.randn(3, 2, 2)], 0, 2)),
        OpSample(aten.hstack.default, ([x, x],)),
        *(OpSample(f, ([x, y],)) for f in (aten.vstack.default, aten.row_stack.default)),
        OpSample(aten.dstack.default, ([x[0, 0], x[1, 0]],)),
        OpSample(aten.column_stack.default, ([x[0, 0], x[1, 0]],)),
        OpSample(aten.flip.default, (x, [0, -1])),
        OpSample(aten.fliplr.default, (x,)),
        OpSample(aten.flipud.default, (x,)),
        OpSample(aten.rot90.default, (x, 3, [1, 2])),
        OpSample(aten.roll.default, (x, [1, -2], [0, 1])),
        *(OpSample(f, (x, 1, 2, 2)) for f in (aten.unfold.default, aten.unfold_copy.default)),
    ]
