"""Counting into bins: ScatterElements(reduction="add") at the bin of each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.dtypes import to_torch
from atonnx.dispatch import Table
from atonnx_aten_core._axes import INT_MAX, numel

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_INT64 = ir.DataType.INT64


def _counted(op: Builder, place: Value, bins: Any, weight: Value | None, dtype: ir.DataType) -> Value:
    """How much falls in each of ``bins``; what is at place ``bins`` counts nowhere."""
    zeros = op.expand(op.const(0, dtype), (bins + 1,))
    if weight is None:
        weight = op.Expand(op.const(1, dtype), op.Shape(place))
    made = op.ScatterElements(zeros, place, op.cast(weight, dtype), axis=0, reduction="add")
    return op.Slice(made, [0], [-1], [0])


@table.translate(aten.bincount.default)
def bincount(op: Builder, self: Value, weights: Value | None = None, minlength: Any = 0) -> Value:
    """As many bins as the largest number needs, at least ``minlength``."""
    place = op.cast(self, _INT64)
    # Also where there is no number at all.
    most = op.ReduceMax(op.Concat(place, op.const([-1], _INT64), axis=0), [0], keepdims=1)
    count = op.Max(op.Add(most, 1), op.shape([minlength]))
    zeros = op.Expand(op.const(0, op.out.dtype), count)
    zeros.dims = (None,)
    if weights is None:
        ones = op.expand(op.const(1, op.out.dtype), self.dims or ())
    else:
        ones = op.cast(weights, op.out.dtype)
    return op.ScatterElements(zeros, place, ones, axis=0, reduction="add")


# ------------------------------------------------------------------- ranges


def _extremes(op: Builder, x: Value, size: Any, margin: float) -> tuple[Value, Value]:
    """The least and the largest element of a vector, moved apart where they are one; 0 and 1 of none."""
    if size == 0:
        return op.const(0, x.dtype), op.const(1, x.dtype)
    low, high = op.ReduceMin(x, [0], keepdims=0), op.ReduceMax(x, [0], keepdims=0)
    if isinstance(size, SymSize) and not op.session.facts.provably_nonzero(size.expr):
        none = op.Equal(op.size(size), 0)
        low, high = op.Where(none, 0, low), op.Where(none, 1, high)
    apart = op.Mul(op.cast(op.Equal(low, high), x.dtype), margin)
    return op.Sub(low, apart), op.Add(high, apart)


def _edges(op: Builder, low: Any, high: Any, bins: int, dtype: ir.DataType) -> Value:
    """Edges of bins of one width, made as torch makes them."""
    if not isinstance(low, Value):
        return op.const(torch.linspace(low, high, bins + 1, dtype=to_torch(dtype)))
    made: Value = op.translate(aten.linspace.Tensor_Tensor, low, high, bins + 1, dtype=to_torch(dtype))
    made.dims = (bins + 1,)
    return made


def _even_bins(op: Builder, x: Value, edges: Value, low: Any, high: Any, bins: int, exact: bool) -> Value:
    """The bin of each element among bins of one width, ``bins`` for what is in none.

    ``exact``: the edges themselves decide, at the bin that was found and the next.
    """
    low, high = (op.cast(v, x.dtype) for v in (low, high))
    inside = op.And(op.GreaterOrEqual(x, low), op.LessOrEqual(x, high))
    place = op.Div(op.Mul(op.Sub(x, low), float(bins)), op.Sub(high, low))
    # What is not inside may be nan, which no integer stands for.
    found = op.Min(op.cast(op.Where(inside, place, 0.0), _INT64), bins - 1)
    if exact:
        here, above = (op.LessOrEqual(op.Gather(edges, at, axis=0), x) for at in (found, op.Add(found, 1)))
        moved = op.Add(op.cast(here, _INT64), op.cast(above, _INT64))
        found = op.Max(op.Min(op.Add(op.Sub(found, 1), moved), bins - 1), 0)
    return op.Where(inside, found, bins)


def _uneven_bins(op: Builder, x: Value, edges: Value) -> Value:
    """The bin of each element among bins with these edges, the last one with its upper edge."""
    bins: Any = (edges.dims or ())[0] - 1  # type: ignore[operator]
    first, last = (op.Gather(edges, op.const(at, _INT64), axis=0) for at in (0, -1))
    inside = op.And(op.GreaterOrEqual(x, first), op.LessOrEqual(x, last))
    below = op.cast(op.LessOrEqual(edges, op.Unsqueeze(x, [-1])), _INT64)
    found = op.Sub(op.ReduceSum(below, [-1], keepdims=0), 1)
    return op.Where(inside, op.Min(found, op.size(bins - 1)), op.size(bins))


@table.translate(aten.histc.default)
def histc(op: Builder, self: Value, bins: int = 100, min: Any = 0, max: Any = 0) -> Value:
    """Bins of one width from ``min`` to ``max``, or over all elements where these are equal."""
    size = numel(self.dims or ())
    x = op.reshape(self, (size,))
    low, high = (min, max) if min != max else _extremes(op, x, size, 1.0)
    place = _even_bins(op, x, x, low, high, bins, exact=False)
    return _counted(op, place, bins, None, op.out.dtype)


# --------------------------------------------------------------- histograms


def _ranges(
    op: Builder, columns: Sequence[Value], size: Any, bins: Sequence[int], range: Sequence[float] | None
) -> list[tuple[Any, Any, Value]]:
    """The first and last edge, and all edges, of each column."""
    made = []
    for index, (x, count) in enumerate(zip(columns, bins, strict=True)):
        low, high = _extremes(op, x, size, 0.5) if range is None else range[2 * index : 2 * index + 2]
        if range is not None and low == high:
            low, high = low - 0.5, high + 0.5
        made.append((low, high, _edges(op, low, high, count, x.dtype)))
    return made


def _columns(op: Builder, x: Value, count: int) -> tuple[list[Value], Any]:
    """The coordinates of points along the last axis, and how many points there are."""
    size = numel((x.dims or ())[:-1])
    flat = op.reshape(x, (size, count))
    return [op.Gather(flat, op.const(axis, _INT64), axis=1) for axis in range(count)], size


def _cells(
    op: Builder,
    places: Sequence[Value],
    edges: Sequence[Value],
    weight: Value | None,
    density: bool,
    size: Any,
    dtype: ir.DataType,
) -> Value:
    """What falls in each cell, where each point has a bin in every direction."""
    counts: list[Any] = [(edge.dims or ())[0] - 1 for edge in edges]  # type: ignore[operator]
    place = places[0]
    if len(places) > 1:
        outside: Value | None = None
        for axis, (found, count) in enumerate(zip(places, counts, strict=True)):
            place = op.Add(op.Mul(place, op.size(count)), found) if axis else found
            out = op.Equal(found, op.size(count))
            outside = out if outside is None else op.Or(outside, out)
        place = op.Where(outside, op.size(numel(counts)), place)
    if weight is not None:
        weight = op.reshape(weight, (size,))
    made = op.reshape(_counted(op, place, numel(counts), weight, dtype), counts)
    if not density:
        return made
    made = op.Div(made, op.ReduceSum(made, keepdims=0))
    for axis, edge in enumerate(edges):
        width = op.Sub(op.Slice(edge, [1], [INT_MAX], [0]), op.Slice(edge, [0], [-1], [0]))
        after = len(edges) - 1 - axis
        made = op.Div(made, op.Unsqueeze(width, list(range(1, 1 + after))) if after else width)
    return made


def _even_cells(
    op: Builder,
    columns: Sequence[Value],
    size: Any,
    bins: Sequence[int],
    range: Sequence[float] | None,
    weight: Value | None,
    density: bool,
) -> tuple[Value, list[Value]]:
    ranges = _ranges(op, columns, size, bins, range)
    places = [
        _even_bins(op, x, edges, low, high, count, exact=True)
        for x, (low, high, edges), count in zip(columns, ranges, bins, strict=True)
    ]
    edges = [edges for _, _, edges in ranges]
    return _cells(op, places, edges, weight, density, size, columns[0].dtype), edges


@table.translate(aten.histogram.bin_ct)
def histogram(
    op: Builder,
    self: Value,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Value | None = None,
    density: bool = False,
) -> tuple[Value, Value]:
    """Bins of one width over a range, or over all elements."""
    size = numel(self.dims or ())
    made, edges = _even_cells(op, [op.reshape(self, (size,))], size, [bins], range, weight, density)
    return made, edges[0]


@table.translate(aten.histogram.bins_tensor)
def histogram_edges(
    op: Builder, self: Value, bins: Value, *, weight: Value | None = None, density: bool = False
) -> tuple[Value, Value]:
    """Bins between given edges: a comparison with all of them, summed."""
    size = numel(self.dims or ())
    place = _uneven_bins(op, op.reshape(self, (size,)), bins)
    return _cells(op, [place], [bins], weight, density, size, self.dtype), bins


@table.translate(aten._histogramdd_bin_edges.default)
def _histogramdd_bin_edges(
    op: Builder,
    self: Value,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Value | None = None,
    density: bool = False,
) -> tuple[Value, ...]:
    """The edges of bins of one width in every direction."""
    columns, size = _columns(op, self, len(bins))
    return tuple(edges for _, _, edges in _ranges(op, columns, size, bins, range))


@table.translate(aten._histogramdd_from_bin_cts.default)
def _histogramdd_from_bin_cts(
    op: Builder,
    self: Value,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Value | None = None,
    density: bool = False,
) -> Value:
    """Cells of one size over a range, or over all points."""
    columns, size = _columns(op, self, len(bins))
    return _even_cells(op, columns, size, bins, range, weight, density)[0]


@table.translate(aten._histogramdd_from_bin_tensors.default)
def _histogramdd_from_bin_tensors(
    op: Builder,
    self: Value,
    bins: Sequence[Value],
    *,
    weight: Value | None = None,
    density: bool = False,
) -> Value:
    """Cells between given edges."""
    columns, size = _columns(op, self, len(bins))
    places = [_uneven_bins(op, x, edges) for x, edges in zip(columns, bins, strict=True)]
    return _cells(op, places, bins, weight, density, size, self.dtype)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x = torch.tensor([[0.5, 1.5], [2.0, -1.0], [0.25, 1.5], [-3.0, 0.0]])
    edges, wide = torch.tensor([-1.0, 0.5, 2.0]), torch.tensor([-4.0, 0.0, 3.0])
    weight = torch.tensor([1.0, 2.0, 0.5, 1.5])
    two = {"range": [-1.0, 2.0, -1.0, 2.0], "weight": weight, "density": True}
    return [
        OpSample(aten.bincount.default, (torch.tensor([2, 0, 2]),)),
        OpSample(aten.bincount.default, (torch.tensor([2, 0, 2]), torch.tensor([0.5, 1.0, 2.0]), 5)),
        OpSample(aten.histc.default, (x, 4)),
        OpSample(aten.histc.default, (x, 4, -1, 2)),
        OpSample(aten.histogram.bin_ct, (x, 4)),
        OpSample(aten.histogram.bin_ct, (x, 4), {"range": [-1.0, 2.0], "density": True}),
        OpSample(aten.histogram.bins_tensor, (x, edges)),
        OpSample(aten._histogramdd_bin_edges.default, (x, [2, 3])),
        OpSample(aten._histogramdd_from_bin_cts.default, (x, [2, 3])),
        OpSample(aten._histogramdd_from_bin_cts.default, (x, [2, 3]), two),
        OpSample(aten._histogramdd_from_bin_tensors.default, (x, [edges, wide]), {"weight": weight}),
    ]
