"""Diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.build.sizes import smax, smin
from atonnx.dispatch import Table
from atonnx_aten_core._axes import arange, axis_of, dims_of, pair, rank_of, transposed

aten = torch.ops.aten
table = Table(__name__)


@table.translate(aten.diagonal.default, aten.diagonal_copy.default, complex="layout")
def diagonal(op: Builder, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """Gather from the two axes taken as one."""
    return _diagonal(op, self, offset, dim1, dim2)


def _diagonal(op: Builder, x: Value, offset: int, dim1: int, dim2: int) -> Value:
    rank = rank_of(x)
    first, second = axis_of(dim1, rank), axis_of(dim2, rank)
    rest = [axis for axis in range(rank) if axis not in (first, second)]
    sizes = dims_of(x)
    rows, columns = sizes[first], sizes[second]
    flat = op.reshape(
        transposed(op, x, [*rest, first, second]), (*(sizes[axis] for axis in rest), rows * columns, *pair(x))
    )
    index = _places(op, rows, columns, offset)
    return op.Gather(flat, index, axis=rank - 2)


def _places(op: Builder, rows: Any, columns: Any, offset: int) -> Value:
    """Where the elements of a diagonal are in the matrix, read row by row."""
    down, along = max(-offset, 0), max(offset, 0)
    count = smax(smin(rows - down, columns - along), 0)
    step = op.Mul(arange(op, count), op.size(columns + 1))
    return op.Add(step, op.size(columns * down + along)) if offset else step


@table.translate(aten.diag.default)
def diag(op: Builder, self: Value, diagonal: int = 0) -> Value:
    """The diagonal of a matrix; the matrix with a vector as its diagonal."""
    if self.rank == 2:
        return _diagonal(op, self, diagonal, 0, 1)
    return _embedded(op, self, diagonal)


@table.translate(aten.diag_embed.default)
def diag_embed(op: Builder, self: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """Where an index of the row, moved by the offset, is that of the column."""
    made = _embedded(op, self, offset)
    rank = self.rank + 1
    first, second = axis_of(dim1, rank), axis_of(dim2, rank)
    rest = iter(range(rank - 2))
    order = [
        rank - 2 if axis == first else rank - 1 if axis == second else next(rest) for axis in range(rank)
    ]
    return transposed(op, made, order)


def _embedded(op: Builder, x: Value, offset: int) -> Value:
    sizes: Any = x.dims or ()
    size = sizes[-1] + abs(offset)
    line = arange(op, size)
    row = op.Unsqueeze(line, [1])
    on = op.Equal(op.Add(row, offset) if offset else row, line)
    if offset:
        zeros = op.expand(op.cast(0, x.dtype), (*sizes[:-1], abs(offset)))
        x = op.Concat(x, zeros, axis=-1)
    return op.Where(on, op.Unsqueeze(x, [-1 if offset >= 0 else -2]), op.cast(0, x.dtype))


@table.translate(aten.trace.default)
def trace(op: Builder, self: Value) -> Value:
    """ReduceSum of the diagonal."""
    return op.ReduceSum(op.cast(_diagonal(op, self, 0, 0, 1), op.out.dtype), [0], keepdims=0)


@table.translate(aten.diagonal_scatter.default)
def diagonal_scatter(
    op: Builder, self: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    """ScatterElements into the two axes taken as one."""
    rank = self.rank
    first, second = axis_of(dim1, rank), axis_of(dim2, rank)
    sizes: Any = self.dims or ()
    rest = [axis for axis in range(rank) if axis not in (first, second)]
    order = [*rest, first, second]
    outer = tuple(sizes[axis] for axis in rest)
    flat = op.reshape(transposed(op, self, order), (*outer, sizes[first] * sizes[second]))
    places = op.expand(_places(op, sizes[first], sizes[second], offset), src.dims or ())
    made = op.ScatterElements(flat, places, op.cast(src, self.dtype), axis=rank - 2)
    whole = op.reshape(made, (*outer, sizes[first], sizes[second]))
    return transposed(op, whole, [order.index(axis) for axis in range(rank)])


@table.translate(aten.tril.default)
def tril(op: Builder, self: Value, diagonal: Any = 0) -> Value:
    """Trilu."""
    return _triangle(op, self, diagonal, 0)


@table.translate(aten.triu.default)
def triu(op: Builder, self: Value, diagonal: Any = 0) -> Value:
    """Trilu."""
    return _triangle(op, self, diagonal, 1)


def _triangle(op: Builder, x: Value, diagonal: Any, upper: int) -> Value:
    k = None if isinstance(diagonal, int) and diagonal == 0 else op.size(diagonal)
    return op.Trilu(x, k, upper=upper)


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x = torch.randn(2, 3, 4)
    return [
        *(OpSample(f, (x, -1, 1, 2)) for f in (aten.diagonal.default, aten.diagonal_copy.default)),
        OpSample(aten.diag.default, (x[0, 0], 1)),
        OpSample(aten.diag_embed.default, (x, -1, 0, 2)),
        OpSample(aten.trace.default, (x[0],)),
        OpSample(aten.diagonal_scatter.default, (x, torch.randn(2, 2), -1, 1, 2)),
        OpSample(aten.tril.default, (x, 1)),
        OpSample(aten.triu.default, (x,)),
    ]
