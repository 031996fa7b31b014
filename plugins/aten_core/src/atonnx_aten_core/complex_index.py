"""Reading and writing parts of complex tensors: the pair axis is one more that no index is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._axes import axis_of, dims_of, numel, rank_of
from atonnx_aten_core._complex import as_pair, imaginary, paired, real, spread
from atonnx_aten_core.complex_math import product
from atonnx_aten_core.indexing import torch_broadcast

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)


def _plain(op: Builder, z: Value) -> Value:
    """The pairs as a real tensor."""
    return op.Identity(z)


def _pairs(op: Builder, x: Any, like: Value) -> Value:
    """A source of pairs in the dtype of ``like``, as a real tensor."""
    return _plain(op, as_pair(op, x, like.dtype))


def _wide(op: Builder, index: Value, dims: Any = None) -> Value:
    """Indices for both parts."""
    return op.expand(op.Unsqueeze(index, [-1]), (*(dims_of(index) if dims is None else dims), 2))


def _vector(op: Builder, x: Value) -> Value:
    """A complex tensor with at least one axis."""
    return x if rank_of(x) else paired(op.Unsqueeze(x, [0]))


def _flat(op: Builder, x: Value) -> Value:
    return paired(op.reshape(x, (numel(dims_of(x)), 2)))


# ------------------------------------------------------------------ reading


@table.translate(aten.gather.default, complex="only")
def gather(op: Builder, self: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    """GatherElements, with the indices once for each part."""
    if not index.rank:
        index = op.Unsqueeze(index, [0])
    x = _vector(op, self)
    made = op.translate(aten.gather.default, _plain(op, x), axis_of(dim, rank_of(x)), _wide(op, index))
    return op.reshape(made, op.out.dims)


@table.translate(aten.take.default, complex="only")
def take(op: Builder, self: Value, index: Value) -> Value:
    """Reshape to a vector, Gather."""
    return op.Gather(_flat(op, self), op.cast(index, ir.DataType.INT64), axis=0)


@table.translate(aten.take_along_dim.default, complex="only")
def take_along_dim(op: Builder, self: Value, indices: Value, dim: int | None = None) -> Value:
    """GatherElements of operands that are broadcast but for the axis."""
    if dim is None:
        x, indices, axis = _flat(op, self), op.reshape(indices, (numel(dims_of(indices)),)), 0
    else:
        x, axis = self, axis_of(dim, rank_of(self))
    return op.translate(aten.take_along_dim.default, _plain(op, x), _wide(op, indices), axis)


@table.translate(aten.masked_select.default, complex="only")
def masked_select(op: Builder, self: Value, mask: Value) -> Value:
    """Compress of vectors."""
    shape = torch_broadcast(dims_of(self), dims_of(mask))
    flat = op.reshape(op.expand(self, (*shape, 2)), (numel(shape), 2))
    wanted = op.reshape(op.expand(op.cast(mask, ir.DataType.BOOL), shape), (numel(shape),))
    return op.Compress(flat, wanted, axis=0)


# ------------------------------------------------------------------ writing


@table.translate(aten.index_put.default, aten._unsafe_index_put.default, complex="only")
def index_put(
    op: Builder, self: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False
) -> Value:
    """As for a real tensor with one more axis."""
    source = _pairs(op, values, self)
    return op.translate(aten.index_put.default, _plain(op, self), indices, source, accumulate)


@table.translate(aten._index_put_impl.default, complex="only")
def _index_put_impl(
    op: Builder,
    self: Value,
    indices: Sequence[Value | None],
    values: Value,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Value:
    """As for a real tensor with one more axis."""
    return index_put(op, self, indices, values, accumulate)


@table.translate(aten._unsafe_masked_index.default, complex="only")
def _unsafe_masked_index(
    op: Builder, self: Value, mask: Value, indices: Sequence[Value | None], fill: Any
) -> Value:
    """As index, with indices moved into the tensor; Where, for the fill where the mask is false."""
    filler, sizes = as_pair(op, fill, self.dtype), dims_of(self)
    if 0 in sizes:
        return op.expand(filler, op.out.dims)
    moved: list[Value | None] = []
    for axis, index in enumerate(indices):
        if index is not None:
            index = op.cast(index, ir.DataType.INT64)
            index = op.Max(op.Min(index, op.size(sizes[axis] - 1)), 0)
        moved.append(index)
    taken = op.translate(aten.index.Tensor, self, moved)
    return op.Where(op.Unsqueeze(mask, [-1]), taken, filler)


@table.translate(aten._unsafe_masked_index_put_accumulate.default, complex="only")
def _unsafe_masked_index_put_accumulate(
    op: Builder, self: Value, mask: Value, indices: Sequence[Value | None], values: Value
) -> Value:
    """As for the real and the imaginary parts."""
    if 0 in dims_of(self):
        return self
    source = as_pair(op, values, self.dtype)
    return _by_parts(op, aten._unsafe_masked_index_put_accumulate.default, self, mask, indices, source)


@table.translate(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor, complex="only")
def index_fill(op: Builder, self: Value, dim: int, index: Value, value: Any) -> Value:
    """ScatterElements of one value."""
    x = _vector(op, self)
    axis, dims = axis_of(dim, rank_of(x)), list(dims_of(x))
    dims[axis] = index.dims[0] if index.rank and index.dims else 1
    source = op.expand(as_pair(op, value, self.dtype), (*dims, 2))
    made = op.translate(aten.index_copy.default, _plain(op, x), axis, index, source)
    return op.reshape(made, self.dims or ())


@table.translate(aten.index_copy.default, complex="only")
def index_copy(op: Builder, self: Value, dim: int, index: Value, source: Value) -> Value:
    """ScatterElements, with the indices once for each part."""
    x, written = _vector(op, self), _vector(op, source)
    axis = axis_of(dim, rank_of(x))
    made = op.translate(aten.index_copy.default, _plain(op, x), axis, index, _plain(op, written))
    return op.reshape(made, self.dims or ())


@table.translate(aten.index_add.default, complex="only")
def index_add(op: Builder, self: Value, dim: int, index: Value, source: Value, *, alpha: Any = 1) -> Value:
    """ScatterElements(reduction="add"), with the indices once for each part."""
    written = as_pair(op, source, self.dtype)
    if alpha != 1:
        written = product(op, written, alpha)
    x, written = _vector(op, self), _vector(op, written)
    axis = axis_of(dim, rank_of(x))
    made = op.translate(aten.index_add.default, _plain(op, x), axis, index, _plain(op, written))
    return op.reshape(made, self.dims or ())


def _scattered(
    op: Builder, target: Any, self: Value, dim: int, index: Value, src: Value, **more: Any
) -> Value:
    x = _vector(op, self)
    index = index if index.rank else op.Unsqueeze(index, [0])
    source = _plain(op, _vector(op, src))
    axis = axis_of(dim, rank_of(x))
    made = op.translate(target, _plain(op, x), axis, _wide(op, index), source)
    return op.reshape(made, self.dims or ())


def _filler(op: Builder, self: Value, index: Value, value: Any) -> Value:
    return paired(op.expand(as_pair(op, value, self.dtype), (*dims_of(index), 2)))


@table.translate(aten.scatter.src, complex="only")
def scatter(op: Builder, self: Value, dim: int, index: Value, src: Value) -> Value:
    """ScatterElements, with the indices once for each part."""
    return _scattered(op, aten.scatter.src, self, dim, index, src)


@table.translate(aten.scatter.value, complex="only")
def scatter_value(op: Builder, self: Value, dim: int, index: Value, value: Any) -> Value:
    """ScatterElements of one value."""
    return _scattered(op, aten.scatter.src, self, dim, index, _filler(op, self, index, value))


@table.translate(aten.scatter_add.default, complex="only")
def scatter_add(op: Builder, self: Value, dim: int, index: Value, src: Value) -> Value:
    """ScatterElements(reduction="add"), with the indices once for each part."""
    return _scattered(op, aten.scatter_add.default, self, dim, index, src)


@table.translate(aten.scatter.reduce, complex="only", when=lambda node: node.arg("reduce") == "add")
def scatter_reduced(op: Builder, self: Value, dim: int, index: Value, src: Value, *, reduce: str) -> Value:
    """ScatterElements(reduction="add"), with the indices once for each part."""
    return _scattered(op, aten.scatter_add.default, self, dim, index, src)


@table.translate(aten.scatter.value_reduce, complex="only", when=lambda node: node.arg("reduce") == "add")
def scatter_value_reduced(
    op: Builder, self: Value, dim: int, index: Value, value: Any, *, reduce: str
) -> Value:
    """ScatterElements(reduction="add") of one value."""
    return _scattered(op, aten.scatter_add.default, self, dim, index, _filler(op, self, index, value))


@table.translate(aten.slice_scatter.default, complex="only")
def slice_scatter(
    op: Builder, self: Value, src: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Value:
    """As for a real tensor with one more axis."""
    axis = axis_of(dim, rank_of(self))
    source = _pairs(op, src, self)
    return op.translate(aten.slice_scatter.default, _plain(op, self), source, axis, start, end, step)


@table.translate(aten.select_scatter.default, complex="only")
def select_scatter(op: Builder, self: Value, src: Value, dim: int, index: Any) -> Value:
    """As for a real tensor with one more axis."""
    axis = axis_of(dim, rank_of(self))
    return op.translate(aten.select_scatter.default, _plain(op, self), _pairs(op, src, self), axis, index)


@table.translate(aten.masked_scatter.default, complex="only")
def masked_scatter(op: Builder, self: Value, mask: Value, source: Value) -> Value:
    """Where, with the source's elements counted off along the mask."""
    dims = torch_broadcast(dims_of(self), dims_of(mask))
    whole = op.expand(op.cast(mask, ir.DataType.BOOL), dims)
    long = ir.DataType.INT64
    count = op.CumSum(op.cast(op.reshape(whole, (numel(dims),)), long), op.const(0, long))
    # Number 0, before the first that the mask takes, is an element that is not used.
    listed = op.Concat(op.const([[0, 0]], source.dtype), _flat(op, source), axis=0)
    taken = op.reshape(op.Gather(listed, count, axis=0), (*dims, 2))
    return op.Where(op.Unsqueeze(whole, [-1]), taken, self)


@table.translate(aten.put.default, complex="only")
def put(op: Builder, self: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    """ScatterND into the tensor as a vector."""
    where = op.reshape(op.cast(index, ir.DataType.INT64), (numel(dims_of(index)), 1))
    kind = "add" if accumulate else None
    made = op.ScatterND(_flat(op, self), where, _flat(op, source), reduction=kind)
    return op.reshape(made, self.dims or ())


@table.translate(aten.copy.default, complex="only")
def copy(op: Builder, self: Value, src: Value, non_blocking: bool = False) -> Value:
    """Cast and Expand of the source; into a real tensor goes the real part."""
    if not self.is_complex:
        return op.expand(op.cast(real(op, src), self.dtype), self.dims or ())
    return op.expand(as_pair(op, src, self.dtype), self.dims or ())


@table.translate(aten.fill.Scalar, aten.fill.Tensor, complex="only")
def fill(op: Builder, self: Value, value: Any) -> Value:
    """Expand of one value."""
    return op.expand(as_pair(op, value, self.dtype), self.dims or ())


# ------------------------------------------------------- diagonals, triangles


def _by_parts(op: Builder, target: Any, *args: Any) -> Value:
    """A real operator that moves or sums elements, of the real and of the imaginary parts."""
    made = [
        op.translate(target, *(part(op, a) if isinstance(a, Value) and a.is_complex else a for a in args))
        for part in (real, imaginary)
    ]
    return spread(op, *made)


@table.translate(aten.diag.default, complex="only")
def diag(op: Builder, self: Value, diagonal: int = 0) -> Value:
    """As for the real and the imaginary parts."""
    return _by_parts(op, aten.diag.default, self, diagonal)


@table.translate(aten.diag_embed.default, complex="only")
def diag_embed(op: Builder, self: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """As for the real and the imaginary parts."""
    return _by_parts(op, aten.diag_embed.default, self, offset, dim1, dim2)


@table.translate(aten.diagonal_scatter.default, complex="only")
def diagonal_scatter(
    op: Builder, self: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    """As for the real and the imaginary parts."""
    source = as_pair(op, src, self.dtype)
    return _by_parts(op, aten.diagonal_scatter.default, self, source, offset, dim1, dim2)


@table.translate(aten.trace.default, complex="only")
def trace(op: Builder, self: Value) -> Value:
    """ReduceSum of the diagonal."""
    diagonal = op.translate(aten.diagonal.default, self)
    return op.ReduceSum(diagonal, [0], keepdims=0)


@table.translate(aten.tril.default, complex="only")
def tril(op: Builder, self: Value, diagonal: Any = 0) -> Value:
    """Trilu, the pair axis brought to the front."""
    return _triangle(op, aten.tril.default, self, diagonal)


@table.translate(aten.triu.default, complex="only")
def triu(op: Builder, self: Value, diagonal: Any = 0) -> Value:
    """Trilu, the pair axis brought to the front."""
    return _triangle(op, aten.triu.default, self, diagonal)


def _triangle(op: Builder, target: Any, z: Value, diagonal: Any) -> Value:
    rank = rank_of(z)
    front = op.Transpose(z, perm=[rank, *range(rank)])
    made = op.translate(target, front, diagonal)
    return op.Transpose(made, perm=[*range(1, rank + 1), 0])


@table.translate(aten.unfold.default, aten.unfold_copy.default, complex="only")
def unfold(op: Builder, self: Value, dimension: int, size: int, step: int) -> Value:
    """As for the real and the imaginary parts."""
    return _by_parts(op, aten.unfold.default, self, dimension, size, step)


# ------------------------------------------------------------------- padding


def _padded(op: Builder, z: Value, pad: Sequence[Any], mode: str, value: Any) -> Value:
    """As for a real tensor, whose last axis is not padded; by parts where the number is not zero."""
    number = complex(value or 0)
    if number == 0:
        made: Value = op.translate(aten.pad.default, _plain(op, z), (0, 0, *pad), mode)
        return made
    parts = [
        op.translate(aten.constant_pad_nd.default, x, pad, n)
        for x, n in ((real(op, z), number.real), (imaginary(op, z), number.imag))
    ]
    return spread(op, *parts)


@table.translate(aten.constant_pad_nd.default, complex="only")
def constant_pad_nd(op: Builder, self: Value, pad: Sequence[Any], value: Any = 0) -> Value:
    """Pad; of each part where the number is not zero."""
    return _padded(op, self, pad, "constant", value)


@table.translate(aten.pad.default, complex="only")
def pad(
    op: Builder, self: Value, pad: Sequence[Any], mode: str = "constant", value: float | None = None
) -> Value:
    """Pad; of each part where the number is not zero."""
    return _padded(op, self, pad, mode, value)


@table.translate(aten._pad_circular.default, complex="only")
def pad_circular(op: Builder, self: Value, pad: Sequence[Any]) -> Value:
    """Pad that wraps around."""
    return _padded(op, self, pad, "circular", None)


@table.translate(
    aten.reflection_pad1d.default,
    aten.reflection_pad2d.default,
    aten.reflection_pad3d.default,
    complex="only",
)
def reflection_pad(op: Builder, self: Value, padding: Sequence[Any]) -> Value:
    """Pad by reflection."""
    return _padded(op, self, padding, "reflect", None)


@table.translate(
    aten.replication_pad1d.default,
    aten.replication_pad2d.default,
    aten.replication_pad3d.default,
    complex="only",
)
def replication_pad(op: Builder, self: Value, padding: Sequence[Any]) -> Value:
    """Pad with the elements at the edges."""
    return _padded(op, self, padding, "replicate", None)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    z, flat = torch.randn(4, 3, dtype=torch.complex64), torch.randn(3, dtype=torch.complex64)
    cells, rows = torch.tensor([[0, 1, 2], [3, 0, 1]]), torch.tensor([2, 0])
    mask, source = torch.randn(4, 3) > 0, torch.randn(2, 3, dtype=torch.complex64)
    one = torch.tensor(1 - 2j)
    triangles = (aten.tril.default, aten.triu.default)
    return [
        OpSample(aten.gather.default, (z, 0, cells)),
        OpSample(aten.take.default, (z, cells)),
        OpSample(aten.take_along_dim.default, (z, cells[:1], 0)),
        OpSample(aten.take_along_dim.default, (z, cells)),
        OpSample(aten.masked_select.default, (z, mask)),
        OpSample(aten.index_put.default, (z, [rows], source)),
        OpSample(aten._unsafe_index_put.default, (z, [None, rows], one)),
        OpSample(aten._index_put_impl.default, (z, [rows], one, True), opsets=16),
        OpSample(aten._unsafe_masked_index.default, (z, mask, [torch.tensor([0, 5, 2, 1])], 2j)),
        OpSample(aten._unsafe_masked_index.default, (z, mask[:2], [torch.tensor([[0], [5]]), cells[0]], 2j)),
        OpSample(aten._unsafe_masked_index_put_accumulate.default, (z, mask[:2], [rows], source), opsets=16),
        OpSample(aten.index_fill.int_Scalar, (z, -1, rows, 2j)),
        OpSample(aten.index_fill.int_Tensor, (z, 0, rows, one)),
        OpSample(aten.index_copy.default, (z, 0, rows, source)),
        OpSample(aten.index_add.default, (z, 0, rows, source), {"alpha": 2j}, opsets=16),
        OpSample(aten.scatter.src, (z, 0, cells, source)),
        OpSample(aten.scatter.value, (z, 0, cells, 2j)),
        OpSample(aten.scatter_add.default, (z, 0, cells, source), opsets=16),
        OpSample(aten.scatter.reduce, (z, 0, cells, source), {"reduce": "add"}, opsets=16),
        OpSample(aten.scatter.value_reduce, (z, 0, cells, 2j), {"reduce": "add"}, opsets=16),
        OpSample(aten.slice_scatter.default, (z, source, 0, 1, 3)),
        OpSample(aten.select_scatter.default, (z, flat, 0, -2)),
        OpSample(aten.masked_scatter.default, (z, mask, torch.randn(12, dtype=torch.complex64))),
        OpSample(aten.put.default, (z, rows, flat[:2])),
        OpSample(aten.copy.default, (z, flat)),
        OpSample(aten.copy.default, (z.real, flat)),
        OpSample(aten.fill.Scalar, (z, 2j)),
        OpSample(aten.fill.Tensor, (z, one)),
        OpSample(aten.diag.default, (flat, 1)),
        OpSample(aten.diag_embed.default, (z, -1, 0, 2)),
        OpSample(aten.diagonal_scatter.default, (z, flat, -1)),
        OpSample(aten.trace.default, (z,)),
        *(OpSample(f, (z, 1)) for f in triangles),
        *(OpSample(f, (z, 0, 2, 1)) for f in (aten.unfold.default, aten.unfold_copy.default)),
        OpSample(aten.constant_pad_nd.default, (z, [1, 2, -1, 0], 2.0)),
        OpSample(aten.pad.default, (z, [1, 2], "reflect")),
        OpSample(aten._pad_circular.default, (z, [1, 2])),
        *(
            OpSample(
                getattr(aten, f"{kind}_pad{n}d").default, (torch.randn((2, *(3,) * n)) * 1j, [1] * 2 * n)
            )
            for kind in ("reflection", "replication")
            for n in (1, 2, 3)
        ),
    ]
