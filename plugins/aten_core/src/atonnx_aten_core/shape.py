"""Views and other operators that give a tensor another shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_core._axes import axis_of, dims_of, numel, pair, rank_of, transposed
from atonnx_aten_core._torch import captured_as_one

aten = torch.ops.aten
table = Table(__name__)


# ------------------------------------------------------------------ reshape


@table.translate(
    aten.view.default,
    aten._unsafe_view.default,
    aten.view_copy.default,
    aten._reshape_copy.default,
    complex="layout",
)
def view(op: Builder, self: Value, size: Sequence[Any]) -> Value:
    """Reshape to the sizes that torch inferred."""
    return op.reshape(self, op.out.dims)


@table.translate(aten.reshape.default, complex="layout")
def reshape(op: Builder, self: Value, shape: Sequence[Any]) -> Value:
    """Reshape to the sizes that torch inferred."""
    return op.reshape(self, op.out.dims)


@table.translate(aten._reshape_alias.default, complex="layout")
def _reshape_alias(op: Builder, self: Value, size: Sequence[Any], stride: Sequence[Any]) -> Value:
    """Reshape; strides mean nothing in ONNX."""
    return op.reshape(self, op.out.dims)


@table.translate(aten.view_as.default, aten.reshape_as.default, complex="layout")
def view_as(op: Builder, self: Value, other: Value) -> Value:
    """Reshape to the sizes of the other tensor."""
    return op.reshape(self, op.out.dims)


@table.translate(aten.flatten.using_ints, complex="layout")
def flatten(op: Builder, self: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    """Reshape."""
    return op.reshape(self, op.out.dims)


@table.translate(aten.unflatten.int, complex="layout")
def unflatten(op: Builder, self: Value, dim: int, sizes: Sequence[Any]) -> Value:
    """Reshape."""
    return op.reshape(self, op.out.dims)


@table.translate(aten.ravel.default, complex="layout")
def ravel(op: Builder, self: Value) -> Value:
    """Reshape."""
    return op.reshape(self, op.out.dims)


@table.translate(aten.atleast_1d.default, aten.atleast_2d.default, aten.atleast_3d.default, complex="layout")
def atleast(op: Builder, self: Value) -> Value:
    """Reshape."""
    return op.reshape(self, op.out.dims)


@table.translate(aten.view.dtype, aten.view_copy.dtype)
def view_dtype(op: Builder, self: Value, dtype: torch.dtype) -> Value:
    """BitCast, between dtypes of one width."""
    if self.dtype is None or self.dtype == op.out.dtype:
        return self
    if self.dtype.bitwidth != op.out.dtype.bitwidth:
        raise UnsupportedOpError.here(
            op,
            f"a view of {self.dtype.name} as {op.out.dtype.name}, which has another width",
            hint="view as a dtype of the same width",
        )
    return op.BitCast(self, to=op.out.dtype)


# --------------------------------------------------------- axes in and out


@table.translate(aten.squeeze.default, aten.squeeze_copy.default, complex="layout")
def squeeze(op: Builder, self: Value) -> Value:
    """Squeeze of the axes that are known to be 1."""
    return _squeezed(op, self, range(rank_of(self)))


@table.translate(aten.squeeze.dim, aten.squeeze_copy.dim, complex="layout")
def squeeze_dim(op: Builder, self: Value, dim: int) -> Value:
    """Squeeze, where the axis is 1."""
    return _squeezed(op, self, [dim])


@table.translate(aten.squeeze.dims, aten.squeeze_copy.dims, complex="layout")
def squeeze_dims(op: Builder, self: Value, dim: Sequence[int]) -> Value:
    """Squeeze of those axes that are 1."""
    return _squeezed(op, self, dim)


def _squeezed(op: Builder, x: Value, dims: Sequence[int]) -> Value:
    sizes = dims_of(x)
    axes = sorted({axis_of(d, len(sizes)) for d in dims} if sizes else ())
    ones = [axis for axis in axes if sizes[axis] == 1]
    argument = op.origin.fx.args[0] if op.origin.fx is not None else None
    value = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else None
    if any(captured_as_one(value, axis) for axis in axes):
        raise UnsupportedOpError.here(
            op,
            "squeezing an axis that is 1 in the example inputs and dynamic in the program, "
            "so that the rank of the result is not known",
            hint="leave the size static, or export with an example where it is not 1",
        )
    return op.Squeeze(x, ones) if ones else x


@table.translate(aten.unsqueeze.default, aten.unsqueeze_copy.default, complex="layout")
def unsqueeze(op: Builder, self: Value, dim: int) -> Value:
    """Unsqueeze."""
    return op.Unsqueeze(self, [axis_of(dim, rank_of(self) + 1)])


# ---------------------------------------------------------------- transpose


@table.translate(aten.permute.default, aten.permute_copy.default, complex="layout")
def permute(op: Builder, self: Value, dims: Sequence[int]) -> Value:
    """Transpose."""
    return transposed(op, self, [axis_of(d, rank_of(self)) for d in dims])


@table.translate(aten.transpose.int, aten.transpose_copy.int, aten.swapdims.default, complex="layout")
def transpose(op: Builder, self: Value, dim0: int, dim1: int) -> Value:
    """Transpose of two axes."""
    return _swapped(op, self, dim0, dim1)


@table.translate(aten.swapaxes.default, complex="layout")
def swapaxes(op: Builder, self: Value, axis0: int, axis1: int) -> Value:
    """Transpose of two axes."""
    return _swapped(op, self, axis0, axis1)


@table.translate(aten.t.default, aten.t_copy.default, complex="layout")
def t(op: Builder, self: Value) -> Value:
    """Transpose of a matrix; a vector stays."""
    return _swapped(op, self, 0, 1) if rank_of(self) == 2 else self


@table.translate(aten.mT.default, complex="layout")
def mT(op: Builder, self: Value) -> Value:
    """Transpose of the last two axes."""
    return _swapped(op, self, -2, -1)


@table.translate(aten.mH.default, aten.adjoint.default, aten.matrix_H.default)
def mH(op: Builder, self: Value) -> Value:
    """Transpose of the last two axes, of a real tensor."""
    return _swapped(op, self, -2, -1) if self.rank >= 2 else self


@table.translate(aten.numpy_T.default, complex="layout")
def numpy_T(op: Builder, self: Value) -> Value:
    """Transpose of all axes."""
    return transposed(op, self, range(rank_of(self))[::-1])


def _swapped(op: Builder, x: Value, dim0: int, dim1: int) -> Value:
    perm = list(range(rank_of(x)))
    if perm:
        a, b = axis_of(dim0, len(perm)), axis_of(dim1, len(perm))
        perm[a], perm[b] = perm[b], perm[a]
    return transposed(op, x, perm)


@table.translate(aten.movedim.int, aten.moveaxis.int, complex="layout")
def movedim(op: Builder, self: Value, source: int, destination: int) -> Value:
    """Transpose."""
    return _moved(op, self, [source], [destination])


@table.translate(aten.movedim.intlist, aten.moveaxis.intlist, complex="layout")
def movedims(op: Builder, self: Value, source: Sequence[int], destination: Sequence[int]) -> Value:
    """Transpose."""
    return _moved(op, self, source, destination)


def _moved(op: Builder, x: Value, source: Sequence[int], destination: Sequence[int]) -> Value:
    rank = rank_of(x)
    if rank == 0:
        return x
    pairs = {axis_of(d, rank): axis_of(s, rank) for s, d in zip(source, destination, strict=True)}
    rest = iter(axis for axis in range(rank) if axis not in pairs.values())
    return transposed(op, x, [pairs[axis] if axis in pairs else next(rest) for axis in range(rank)])


# ------------------------------------------------------ expand, repeat, roll


@table.translate(aten.expand.default, aten.expand_copy.default, complex="layout")
def expand(op: Builder, self: Value, size: Sequence[Any], *, implicit: bool = False) -> Value:
    """Expand."""
    return op.expand(self, op.out.dims)


@table.translate(aten.broadcast_to.default, complex="layout")
def broadcast_to(op: Builder, self: Value, size: Sequence[Any]) -> Value:
    """Expand."""
    return op.expand(self, op.out.dims)


@table.translate(aten.expand_as.default, complex="layout")
def expand_as(op: Builder, self: Value, other: Value) -> Value:
    """Expand."""
    return op.expand(self, op.out.dims)


@table.translate(aten.broadcast_tensors.default, complex="layout")
def broadcast_tensors(op: Builder, tensors: Sequence[Value]) -> tuple[Value, ...]:
    """Expand of each."""
    return tuple(op.expand(x, out.dims) for x, out in zip(tensors, op.outs, strict=True))


@table.translate(aten.meshgrid.default, complex="layout")
def meshgrid(op: Builder, tensors: Sequence[Value]) -> tuple[Value, ...]:
    """Reshape and Expand of each."""
    return _grid(op, tensors, "ij")


@table.translate(aten.meshgrid.indexing, complex="layout")
def meshgrid_indexing(op: Builder, tensors: Sequence[Value], *, indexing: str) -> tuple[Value, ...]:
    """Reshape and Expand of each."""
    return _grid(op, tensors, indexing)


def _grid(op: Builder, tensors: Sequence[Value], indexing: str) -> tuple[Value, ...]:
    made = []
    for axis, (x, out) in enumerate(zip(tensors, op.outs, strict=True)):
        if indexing == "xy" and axis < 2 and len(tensors) > 1:
            axis = 1 - axis
        form: list[Any] = [1] * len(tensors)
        form[axis] = dims_of(x)[0] if rank_of(x) else 1
        made.append(op.expand(op.reshape(x, (*form, *pair(x))), out.dims))
    return tuple(made)


@table.translate(aten.repeat.default, complex="layout")
def repeat(op: Builder, self: Value, repeats: Sequence[Any]) -> Value:
    """Tile."""
    return _tiled(op, self, repeats)


@table.translate(aten.tile.default, complex="layout")
def tile(op: Builder, self: Value, dims: Sequence[Any]) -> Value:
    """Tile."""
    return _tiled(op, self, dims)


def _tiled(op: Builder, x: Value, repeats: Sequence[Any]) -> Value:
    rank = rank_of(x)
    counts = (1,) * (rank - len(repeats)) + tuple(repeats)
    ahead = len(counts) - rank
    wide = op.Unsqueeze(x, list(range(ahead))) if ahead else x
    if all(isinstance(n, int) and n == 1 for n in counts):
        return wide
    return op.Tile(wide, op.shape(counts + (1,) * len(pair(x))))


@table.translate(aten.repeat_interleave.self_int, complex="layout")
def repeat_interleave_int(
    op: Builder, self: Value, repeats: Any, dim: int | None = None, *, output_size: Any = None
) -> Value:
    """Unsqueeze, Expand, Reshape."""
    sizes = dims_of(self)
    if dim is None:
        flat = op.reshape(self, (numel(sizes), *pair(self)))
        before, size, after = (), numel(sizes), pair(self)
    else:
        axis = axis_of(dim, len(sizes))
        flat = self if sizes else op.reshape(self, (1, *pair(self)))
        sizes = sizes or (1,)
        before, size, after = sizes[:axis], sizes[axis], (*sizes[axis + 1 :], *pair(self))
    if isinstance(repeats, int) and repeats == 0:
        # Expand to 0 by a constant is taken for no change by ONNX Runtime's optimizer.
        return op.Slice(flat, [0], [0], [len(before)])
    wide = op.expand(op.Unsqueeze(flat, [len(before) + 1]), (*before, size, repeats, *after))
    return op.reshape(wide, op.out.dims)


@table.translate(aten.channel_shuffle.default, aten.native_channel_shuffle.default)
def channel_shuffle(op: Builder, self: Value, groups: Any) -> Value:
    """Reshape, Transpose, Reshape."""
    batch, channels, *rest = dims_of(self)
    grouped = op.reshape(self, (batch, groups, channels // groups, *rest))
    perm = [0, 2, 1, *range(3, 3 + len(rest))]
    return op.reshape(op.Transpose(grouped, perm=perm), op.out.dims)


def _squeezes() -> list[tuple[Any, ...]]:
    """Overloads with the axes of samples, whose sizes have to be known."""
    return [
        (aten.squeeze.default,),
        (aten.squeeze_copy.default,),
        (aten.squeeze.dim, -1),
        (aten.squeeze_copy.dim, -1),
        (aten.squeeze.dims, [0, 1]),
        (aten.squeeze_copy.dims, [0, 1]),
    ]


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x, y = torch.randn(2, 3, 4), torch.randn(1, 3, 1)
    return [
        OpSample(aten.view.default, (x, [3, -1])),
        OpSample(aten._unsafe_view.default, (x, [6, 4])),
        OpSample(aten.view_copy.default, (x, [6, 4])),
        OpSample(aten._reshape_copy.default, (x, [6, -1])),
        OpSample(aten.reshape.default, (x, [-1])),
        OpSample(aten._reshape_alias.default, (x, [6, 4], [4, 1])),
        OpSample(aten.view_as.default, (x, torch.zeros(6, 4))),
        OpSample(aten.reshape_as.default, (x, torch.zeros(6, 4))),
        OpSample(aten.flatten.using_ints, (x, 1)),
        OpSample(aten.unflatten.int, (x, -1, [2, 2])),
        OpSample(aten.ravel.default, (x,)),
        *(OpSample(f, (torch.tensor(2.0),)) for f in _atleast()),
        OpSample(aten.view.dtype, (x, torch.int32), opsets=26),
        OpSample(aten.view_copy.dtype, (x, torch.int32), opsets=26),
        *(OpSample(f, (y, *dims), options={"dynamic": False}) for f, *dims in _squeezes()),
        *(OpSample(f, (x, -1)) for f in (aten.unsqueeze.default, aten.unsqueeze_copy.default)),
        *(OpSample(f, (x, [2, 0, -2])) for f in (aten.permute.default, aten.permute_copy.default)),
        *(OpSample(f, (x, 1, -1)) for f in _swaps()),
        *(OpSample(f, (x[0],)) for f in (aten.t.default, aten.t_copy.default, aten.matrix_H.default)),
        *(OpSample(f, (x,)) for f in (aten.mT.default, aten.mH.default, aten.adjoint.default)),
        OpSample(aten.numpy_T.default, (x,)),
        *(OpSample(f, (x, 0, -1)) for f in (aten.movedim.int, aten.moveaxis.int)),
        *(OpSample(f, (x, [0, 1], [-1, 0])) for f in (aten.movedim.intlist, aten.moveaxis.intlist)),
        *(OpSample(f, (y, [2, -1, 4])) for f in (aten.expand.default, aten.expand_copy.default)),
        OpSample(aten.broadcast_to.default, (y, [2, 3, 4])),
        OpSample(aten.expand_as.default, (y, x)),
        OpSample(aten.broadcast_tensors.default, ([x, y],)),
        OpSample(aten.meshgrid.default, ([torch.randn(2), torch.randn(3)],)),
        OpSample(aten.meshgrid.indexing, ([torch.randn(2), torch.randn(3)],), {"indexing": "xy"}),
        OpSample(aten.repeat.default, (x, [2, 1, 1, 3])),
        OpSample(aten.tile.default, (x, [2])),
        OpSample(aten.repeat_interleave.self_int, (x, 2, 1)),
        *(OpSample(f, (torch.randn(1, 4, 2, 2), 2)) for f in _shuffles()),
    ]


def _atleast() -> tuple[Any, ...]:
    return aten.atleast_1d.default, aten.atleast_2d.default, aten.atleast_3d.default


def _swaps() -> tuple[Any, ...]:
    return aten.transpose.int, aten.transpose_copy.int, aten.swapdims.default, aten.swapaxes.default


def _shuffles() -> tuple[Any, ...]:
    return aten.channel_shuffle.default, aten.native_channel_shuffle.default
