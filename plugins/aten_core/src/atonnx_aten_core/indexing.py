"""Reading and writing by index tensors and masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.infer import broadcast
from atonnx.dispatch import Table
from atonnx_aten_core._axes import INT_MAX, arange, axis_of, dims_of, numel, pair, rank_of, transposed
from atonnx_aten_core._promote import in_dtype
from atonnx_aten_core.slicing import span

aten = torch.ops.aten
table = Table(__name__)

_INT64 = ir.DataType.INT64
_MASKS = (ir.DataType.BOOL, ir.DataType.UINT8)


# ----------------------------------------------------------- index by tensors


@dataclass(slots=True)
class _Plan:
    """Index tensors, the axis of each, and where their common axes go in the result."""

    axes: list[int]
    indices: list[Value]
    place: int


def _plan(op: Builder, x: Value, indices: Sequence[Value | None]) -> _Plan:
    """Masks become the coordinates of what they select."""
    axes: list[int] = []
    tensors: list[Value] = []
    groups: list[int] = []  # the position in `indices`, which adjacency is decided by
    axis = 0
    for position, index in enumerate(indices):
        if index is None:
            axis += 1
            continue
        if index.dtype in _MASKS:
            found = op.NonZero(op.cast(index, ir.DataType.BOOL))
            for row in range(index.rank):
                tensors.append(op.Gather(found, op.size(row), axis=0))
                axes.append(axis + row)
                groups.append(position)
            axis += index.rank
        else:
            tensors.append(index)
            axes.append(axis)
            groups.append(position)
            axis += 1
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    return _Plan(axes, tensors, axes[0] if adjacent else 0)


@table.translate(aten.index.Tensor, aten._unsafe_index.Tensor, complex="layout")
def index(op: Builder, self: Value, indices: Sequence[Value | None]) -> Value:
    """Gather for one index tensor, Compress for one mask, else GatherND.

    Index tensors that span a grid (each varies along axes of its own) are a Gather each.
    """
    given = [(axis, i) for axis, i in enumerate(indices) if i is not None]
    if not given:
        return self
    if len(given) == 1:
        axis, only = given[0]
        if only.dtype in _MASKS:
            return _masked(op, self, axis, op.cast(only, ir.DataType.BOOL))
        return op.Gather(self, _whole(op, only), axis=axis)
    plan = _plan(op, self, indices)
    if _spans_grid(plan):
        x = self
        for axis, i in reversed(list(zip(plan.axes, plan.indices, strict=True))):
            x = op.Gather(x, _whole(op, i), axis=axis)
        return _without_ones(op, x, plan, op.out.dims)
    rest = [axis for axis in range(rank_of(self)) if axis not in plan.axes]
    x = transposed(op, self, [*plan.axes, *rest])
    gathered = op.GatherND(x, _stacked(op, plan.indices))
    common = op.out.rank - len(rest) - len(pair(self))
    gathered.is_complex = self.is_complex
    order = list(range(common, common + len(rest)))
    order[plan.place : plan.place] = range(common)
    return transposed(op, gathered, order)


def _whole(op: Builder, index: Value) -> Value:
    return index if index.dtype == ir.DataType.INT32 else op.cast(index, _INT64)


def _masked(op: Builder, x: Value, axis: int, mask: Value) -> Value:
    """Compress along the axes of the mask, taken as one."""
    sizes, count = dims_of(x), mask.rank
    if count != 1:
        selected = numel(sizes[axis : axis + count])
        x = op.reshape(x, (*sizes[:axis], selected, *sizes[axis + count :], *pair(x)))
        mask = op.reshape(mask, (numel(mask.dims or ()),))
    return op.Compress(x, mask, axis=axis)


def _spans_grid(plan: _Plan) -> bool:
    """Whether every index varies along common axes of its own, in the order of the indexed axes."""
    if plan.axes != list(range(plan.axes[0], plan.axes[0] + len(plan.axes))):
        return False
    shapes = [i.dims for i in plan.indices]
    rank = max((len(s) for s in shapes if s is not None), default=0)
    last = -1
    for shape in shapes:
        if shape is None or None in shape:
            return False
        varying = [rank - len(shape) + k for k, size in enumerate(shape) if size != 1]
        if varying and varying[0] <= last:
            return False
        last = varying[-1] if varying else last
    return True


def _without_ones(op: Builder, x: Value, plan: _Plan, dims: Any) -> Value:
    """What Gather by Gather made, without the axes of size 1 that the index tensors do not share."""
    shapes = [index.dims or () for index in plan.indices]
    rank = max(len(shape) for shape in shapes)
    wanted = list(dims[plan.place : plan.place + rank])
    drop = []
    at = plan.place
    for size in (size for shape in shapes for size in shape):
        if wanted and wanted[0] == size:
            wanted.pop(0)
        elif size == 1:
            drop.append(at)
        else:
            break
        at += 1
    if wanted or len(drop) != x.rank - len(dims):
        return op.reshape(x, dims)
    return op.Squeeze(x, drop) if drop else x


def _stacked(op: Builder, indices: Sequence[Value]) -> Value:
    """Index tensors broadcast to one shape and joined along a new last axis, as int64."""
    whole = [op.cast(i, _INT64) for i in indices]
    shapes = [i.dims for i in whole]
    common = broadcast(*shapes)
    if any(s != shapes[0] for s in shapes) or (common is None or None in common) and not _one_source(whole):
        if common is not None and None not in common:
            whole = [op.expand(i, common) for i in whole]
        else:
            total = whole[0]
            for i in whole[1:]:
                total = op.Add(total, i)
            whole = [op.Expand(i, op.Shape(total)) for i in whole]
    last = [op.Unsqueeze(i, [-1]) for i in whole]
    return last[0] if len(last) == 1 else op.Concat(*last, axis=-1)


def _one_source(indices: Sequence[Value]) -> bool:
    """Whether all are coordinates of one mask, and so of one length."""
    nodes = [i.producer() for i in indices]
    sources = {id(n.inputs[0]) for n in nodes if n is not None and n.op_type == "Gather"}
    found = [n for n in nodes if n is not None and n.op_type == "Gather"]
    return (
        len(found) == len(nodes)
        and len(sources) == 1
        and all(
            (p := n.inputs[0].producer()) is not None and p.op_type == "NonZero"  # type: ignore[union-attr]
            for n in found
        )
    )


@table.translate(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(
    op: Builder, self: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False
) -> Value:
    """ScatterND; Where, for one mask and values that do not vary along what it selects."""
    return _index_put(op, self, indices, values, accumulate)


@table.translate(aten._index_put_impl.default)
def _index_put_impl(
    op: Builder,
    self: Value,
    indices: Sequence[Value | None],
    values: Value,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Value:
    """As index_put."""
    return _index_put(op, self, indices, values, accumulate)


def _index_put(
    op: Builder, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool
) -> Value:
    sizes = x.dims or ()
    given = [(axis, i) for axis, i in enumerate(indices) if i is not None]
    values = op.cast(values, x.dtype)
    if not given:
        full = op.expand(values, sizes)
        return _added(op, x, full) if accumulate else full
    if len(given) == 1 and given[0][1].dtype in _MASKS:
        axis, mask = given[0]
        after = x.rank - axis - mask.rank
        form = values.dims or ()
        at = len(form) - after - 1  # the axis of the values that runs over what is selected
        if at < 0 or form[at] == 1:
            mask = op.cast(mask, ir.DataType.BOOL)
            if after:
                mask = op.Unsqueeze(mask, list(range(mask.rank, mask.rank + after)))
            if at >= 0:
                form = (*form[:at], *(1,) * given[0][1].rank, *form[at + 1 :])
                values = op.reshape(values, form[-x.rank :] if len(form) > x.rank else form)
            return op.Where(mask, _added(op, x, values) if accumulate else values, x)
    plan = _plan(op, x, indices)
    rest = [axis for axis in range(x.rank) if axis not in plan.axes]
    order = [*plan.axes, *rest]
    target = transposed(op, x, order)
    where = _stacked(op, plan.indices)
    updates = _updates(op, values, plan, where, [sizes[axis] for axis in rest])
    kind = "add" if accumulate else None
    target, updates = (_countable(op, part, kind) for part in (target, updates))
    made = op.cast(op.ScatterND(target, where, updates, reduction=kind), x.dtype)
    return transposed(op, made, [order.index(axis) for axis in range(x.rank)])


def _countable(op: Builder, x: Value, reduction: str | None) -> Value:
    """Truth values as numbers where they are combined: of these, all but 0 is true."""
    return op.cast(x, ir.DataType.INT32) if x.dtype == ir.DataType.BOOL and reduction else x


def _added(op: Builder, x: Value, values: Value) -> Value:
    return op.Or(x, values) if x.dtype == ir.DataType.BOOL else op.Add(x, values)


def _updates(op: Builder, values: Value, plan: _Plan, where: Value, rest: list[Any]) -> Value:
    """The values, expanded to what is indexed, with the common axes in front."""
    common = list((where.dims or ())[:-1])
    rank = len(common) + len(rest)
    if plan.place and values.rank > len(rest) - plan.place:
        # As torch has them the common axes stand at `place`.
        values = op.reshape(values, (*(1,) * (rank - values.rank), *(values.dims or ())))
        kept = list(range(rank))
        front = kept[plan.place : plan.place + len(common)]
        values = transposed(op, values, [*front, *(k for k in kept if k not in front)])
    if None not in common:
        return op.expand(values, (*common, *rest))
    head = op.Slice(op.Shape(where), [0], [-1], [0])
    shape = op.Concat(head, op.shape(rest), axis=0) if rest else head
    return op.Expand(values, shape)


# --------------------------------------------------------------- along an axis


@table.translate(aten.index_select.default, complex="layout")
def index_select(op: Builder, self: Value, dim: int, index: Value) -> Value:
    """Gather."""
    if rank_of(self) == 0:
        return op.reshape(self, op.out.dims)
    return op.Gather(self, op.reshape(_whole(op, index), _vector(index)), axis=axis_of(dim, rank_of(self)))


def _vector(index: Value) -> Any:
    return index.dims if index.rank else (1,)


@table.translate(aten.gather.default)
def gather(op: Builder, self: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    """GatherElements."""
    return _gathered(op, self, dim, index, op.out.dims)


def _gathered(op: Builder, x: Value, dim: int, index: Value, dims: Any) -> Value:
    if x.rank != index.rank and 0 in dims:
        return op.expand(op.const(0, x.dtype), dims)
    axis = axis_of(dim, max(x.rank, index.rank))
    data = x if x.rank else op.reshape(x, (1,))
    made = op.GatherElements(data, op.reshape(_whole(op, index), _vector(index)), axis=axis)
    return op.reshape(made, dims) if not index.rank else made


@table.translate(aten.take.default)
def take(op: Builder, self: Value, index: Value) -> Value:
    """Reshape to a vector, Gather."""
    return op.Gather(op.reshape(self, (numel(self.dims or ()),)), _whole(op, index), axis=0)


@table.translate(aten.take_along_dim.default)
def take_along_dim(op: Builder, self: Value, indices: Value, dim: int | None = None) -> Value:
    """GatherElements of operands that are broadcast but for the axis."""
    if dim is None:
        flat = [op.reshape(x, (numel(x.dims or ()),)) for x in (self, indices)]
        return _gathered(op, flat[0], 0, flat[1], op.out.dims)
    axis = axis_of(dim, self.rank)
    dims = list(op.out.dims)
    wide = op.expand(indices, dims)
    dims[axis] = (self.dims or ())[axis]
    return _gathered(op, op.expand(self, dims), axis, wide, op.out.dims)


@table.translate(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(op: Builder, self: Value, dim: int, index: Value, value: Any) -> Value:
    """ScatterElements of one value."""
    x = self if self.rank else op.reshape(self, (1,))
    axis = axis_of(dim, x.rank)
    where = _along(op, x, axis, index)
    filler = op.Expand(op.cast(_exact(value, x.dtype), x.dtype), op.Shape(where))
    made = op.ScatterElements(x, where, filler, axis=axis)
    return op.reshape(made, self.dims or ())


def _along(op: Builder, x: Value, axis: int, index: Value) -> Value:
    """An index vector, expanded over the other axes of ``x``."""
    count = index.dims[0] if index.rank and index.dims else 1
    sizes = list(x.dims or ())
    sizes[axis] = count
    form = [count if i == axis else 1 for i in range(len(sizes))]
    return op.expand(op.reshape(_whole(op, index), form), sizes)


@table.translate(aten.index_copy.default)
def index_copy(op: Builder, self: Value, dim: int, index: Value, source: Value) -> Value:
    """ScatterElements."""
    return _index_written(op, self, dim, index, source, None)


@table.translate(aten.index_add.default)
def index_add(op: Builder, self: Value, dim: int, index: Value, source: Value, *, alpha: Any = 1) -> Value:
    """ScatterElements(reduction="add")."""
    source = op.cast(source, self.dtype)
    if alpha != 1:
        factor = in_dtype(op, _exact(alpha, self.dtype), self.dtype)
        source = op.translate(aten.mul.Tensor, source, factor)
    return _index_written(op, self, dim, index, source, "add")


def _index_written(
    op: Builder, x: Value, dim: int, index: Value, source: Value, reduction: str | None
) -> Value:
    wide = x if x.rank else op.reshape(x, (1,))
    axis = axis_of(dim, wide.rank)
    where = _along(op, wide, axis, index)
    source = op.reshape(source, where.dims or ()) if source.rank != wide.rank else source
    data, updates = (_countable(op, part, reduction) for part in (wide, op.cast(source, x.dtype)))
    made = op.cast(op.ScatterElements(data, where, updates, axis=axis, reduction=reduction), x.dtype)
    return op.reshape(made, x.dims or ())


def _exact(number: Any, dtype: ir.DataType | None) -> Any:
    """A Python number as torch stores it in a tensor of ``dtype``: an integer dtype cuts off fractions."""
    if isinstance(number, float) and dtype is not None and dtype.is_integer():
        return int(number)
    if dtype == ir.DataType.BOOL and isinstance(number, (int, float)):
        return bool(number)
    return number


# -------------------------------------------------------------------- scatter


@table.translate(aten.scatter.src)
def scatter(op: Builder, self: Value, dim: int, index: Value, src: Value) -> Value:
    """ScatterElements."""
    return _scattered(op, self, dim, index, src, None)


@table.translate(aten.scatter.value)
def scatter_value(op: Builder, self: Value, dim: int, index: Value, value: Any) -> Value:
    """ScatterElements of one value."""
    return _scattered(op, self, dim, index, _filler(op, self, index, value), None)


@table.translate(aten.scatter.reduce)
def scatter_reduced(op: Builder, self: Value, dim: int, index: Value, src: Value, *, reduce: str) -> Value:
    """ScatterElements(reduction="add" or "mul")."""
    return _scattered(op, self, dim, index, src, {"add": "add", "multiply": "mul"}[reduce])


@table.translate(aten.scatter.value_reduce)
def scatter_value_reduced(
    op: Builder, self: Value, dim: int, index: Value, value: Any, *, reduce: str
) -> Value:
    """ScatterElements(reduction="add" or "mul") of one value."""
    source = _filler(op, self, index, value)
    return _scattered(op, self, dim, index, source, {"add": "add", "multiply": "mul"}[reduce])


@table.translate(aten.scatter_add.default)
def scatter_add(op: Builder, self: Value, dim: int, index: Value, src: Value) -> Value:
    """ScatterElements(reduction="add")."""
    return _scattered(op, self, dim, index, src, "add")


def _filler(op: Builder, x: Value, index: Value, value: Any) -> Value:
    return op.expand(op.cast(_exact(value, x.dtype), x.dtype), index.dims or ())


def _scattered(op: Builder, x: Value, dim: int, index: Value, src: Value, reduction: str | None) -> Value:
    sizes = x.dims or ()
    if 0 in (index.dims or ()):
        return x
    data = x if x.rank else op.reshape(x, (1,))
    where = op.reshape(_whole(op, index), _vector(index))
    axis = axis_of(dim, data.rank)
    data, updates = (_countable(op, part, reduction) for part in (data, _fitted(op, src, where)))
    made = op.cast(op.ScatterElements(data, where, updates, axis=axis, reduction=reduction), x.dtype)
    return op.reshape(made, sizes)


def _fitted(op: Builder, src: Value, index: Value) -> Value:
    """``src`` without what is beyond the index tensor; torch does not read that."""
    src = op.reshape(src, _vector(src))
    form, wanted = src.dims or (), index.dims or ()
    cut = [axis for axis, (a, b) in enumerate(zip(form, wanted, strict=True)) if a != b]
    if not cut:
        return src
    return op.Slice(src, [0] * len(cut), op.shape([wanted[axis] for axis in cut]), cut)


@table.translate(aten.scatter_reduce.two)
def scatter_reduce(
    op: Builder, self: Value, dim: int, index: Value, src: Value, reduce: str, *, include_self: bool = True
) -> Value:
    """ScatterElements with the reduction; what is written to begins with its neutral element where
    self is not included. A mean is a sum over a count."""
    if 0 in (index.dims or ()):
        return self
    kind = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}[reduce]
    dtype = self.dtype
    base = self
    if not include_self:
        base = _scattered(op, self, dim, index, _filler(op, self, index, _neutral(op, kind, dtype)), None)
    made = _scattered(op, base, dim, index, src, kind)
    if reduce != "mean":
        return made
    ones = op.expand(op.const(1, dtype), index.dims or ())
    start = op.expand(op.const(1, dtype), self.dims or ())
    if not include_self:
        start = _scattered(op, start, dim, index, _filler(op, self, index, 0), None)
    count = _scattered(op, start, dim, index, ones, "add")
    if dtype is not None and dtype.is_integer():
        floored = op.Div(op.Sub(made, op.Mod(made, count)), count)
        return floored
    return op.Div(made, count)


def _neutral(op: Builder, kind: str, dtype: ir.DataType | None) -> Any:
    if kind in ("add", "mul") or dtype is None:
        return int(kind == "mul")
    if dtype.is_floating_point():
        return float("-inf") if kind == "max" else float("inf")
    if dtype == ir.DataType.BOOL:
        return kind == "min"
    return int(dtype.min if kind == "max" else dtype.max)


@table.translate(aten.slice_scatter.default)
def slice_scatter(
    op: Builder, self: Value, src: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Value:
    """Concat with what is before and after; ScatterElements where bounds or steps need it."""
    sizes = self.dims or ()
    axis = axis_of(dim, self.rank)
    begin, stop = span(op, sizes[axis], start, end)
    src = op.cast(src, self.dtype)
    if step == 1 and begin == 0 and stop == INT_MAX:
        return op.expand(src, sizes)
    count = (src.dims or ())[axis]
    facts = op.session.facts
    if step == 1 and (stop == INT_MAX or begin == 0) and facts.provably_nonnegative(begin):
        if stop == INT_MAX and facts.compare(begin, "<=", sizes[axis]):
            return op.Concat(op.Slice(self, [0], [begin], [axis]), src, axis=axis)
        if begin == 0 and facts.provably_nonnegative(stop):
            return op.Concat(src, op.Slice(self, [stop], [INT_MAX], [axis]), axis=axis)
    if step == 1 and isinstance(begin, int) and isinstance(sizes[axis], int) and isinstance(count, int):
        parts = [op.Slice(self, [0], [begin], [axis]), src]
        return op.Concat(*parts, op.Slice(self, [begin + count], [INT_MAX], [axis]), axis=axis)
    where = op.Slice(arange(op, sizes[axis]), [begin], [stop], [0], None if step == 1 else [step])
    where.dims = (count,)
    index = _along(op, src, axis, where)
    return op.ScatterElements(self, index, src, axis=axis)


@table.translate(aten.select_scatter.default)
def select_scatter(op: Builder, self: Value, src: Value, dim: int, index: Any) -> Value:
    """ScatterElements at one index."""
    axis = axis_of(dim, self.rank)
    source = op.Unsqueeze(op.cast(src, self.dtype), [axis])
    where = op.expand(op.size(index), [1 if i == axis else size for i, size in enumerate(self.dims or ())])
    return op.ScatterElements(self, where, source, axis=axis)


# --------------------------------------------------------------------- masks


@table.translate(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(op: Builder, self: Value, mask: Value, value: Any) -> Value:
    """Where."""
    filler = op.cast(_exact(value, self.dtype), self.dtype)
    return op.Where(op.cast(mask, ir.DataType.BOOL), filler, self)


@table.translate(aten.masked_select.default)
def masked_select(op: Builder, self: Value, mask: Value) -> Value:
    """Compress of vectors."""
    dims = broadcast(self.dims, mask.dims)
    if dims is None or None in dims:
        # Which of two sizes is the other's, and which is 1, is seen at run time only.
        pairs = ((self, mask), (mask, self))
        flat = [op.Reshape(op.Expand(x, op.Shape(other)), [-1]) for x, other in pairs]
    else:
        flat = [op.reshape(op.expand(x, dims), (numel(dims),)) for x in (self, mask)]
    return op.Compress(flat[0], op.cast(flat[1], ir.DataType.BOOL), axis=0)


def torch_broadcast(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
    """Broadcast sizes of which torch has seen that they fit: equal at run time unless one is 1."""
    rank = max(len(a), len(b))
    wide = [(1,) * (rank - len(s)) + tuple(s) for s in (a, b)]
    return tuple(y if x == 1 else x for x, y in zip(*wide, strict=True))


@table.translate(aten.nonzero.default)
def nonzero(op: Builder, self: Value) -> Value:
    """NonZero, Transpose."""
    x = self
    if x.dtype not in (ir.DataType.BOOL, ir.DataType.FLOAT, ir.DataType.INT32, _INT64, ir.DataType.UINT8):
        x = op.cast(x, ir.DataType.BOOL)  # ONNX Runtime has NonZero for few dtypes
    if x.rank == 0:
        found = op.Transpose(op.NonZero(op.reshape(x, (1,))), perm=[1, 0])
        return op.Slice(found, [0], [0], [1])
    return op.Transpose(op.NonZero(x), perm=[1, 0])


@table.translate(aten.nonzero_static.default)
def nonzero_static(op: Builder, self: Value, *, size: Any, fill_value: int = -1) -> Value:
    """NonZero, Transpose; filled up and cut off."""
    found = nonzero(op, self)
    filler = op.expand(op.const(fill_value, _INT64), (size, self.rank))
    return op.Slice(op.Concat(found, filler, axis=0), [0], [size], [0])


@table.translate(aten.masked_scatter.default)
def masked_scatter(op: Builder, self: Value, mask: Value, source: Value) -> Value:
    """Where, with the source's elements counted off along the mask."""
    dims = op.out.dims
    whole = op.expand(op.cast(mask, ir.DataType.BOOL), dims)
    count = op.CumSum(op.cast(op.reshape(whole, (numel(dims),)), _INT64), op.const(0, _INT64))
    # Number 0, before the first that the mask takes, is an element that is not used.
    flat = op.reshape(source, (numel(source.dims or ()),))
    taken = op.Gather(op.Concat(op.const([0], source.dtype), flat, axis=0), count, axis=0)
    return op.Where(whole, op.reshape(taken, dims), self)


@table.translate(aten.put.default)
def put(op: Builder, self: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    """ScatterElements into the tensor as a vector."""
    flat = op.reshape(self, (numel(self.dims or ()),))
    where, values = (op.reshape(x, (numel(x.dims or ()),)) for x in (_whole(op, index), source))
    kind = "add" if accumulate else None
    flat, values = (_countable(op, part, kind) for part in (flat, values))
    made = op.cast(op.ScatterElements(flat, where, values, axis=0, reduction=kind), self.dtype)
    return op.reshape(made, self.dims or ())


@table.translate(aten.copy.default)
def copy(op: Builder, self: Value, src: Value, non_blocking: bool = False) -> Value:
    """Cast and Expand of the source."""
    return op.expand(op.cast(src, self.dtype), self.dims or ())


@table.translate(aten.fill.Scalar, aten.fill.Tensor)
def fill(op: Builder, self: Value, value: Any) -> Value:
    """Expand of one value."""
    return op.expand(op.cast(_exact(value, self.dtype), self.dtype), self.dims or ())


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x, rows = torch.randn(4, 5, 3), torch.tensor([0, -1, 2])
    mask = torch.tensor([True, False, True, True])
    cells = torch.tensor([[0, 1, 2], [3, 0, 1]])
    one = torch.tensor(1.5)
    return [
        *(OpSample(f, (x, [rows, None, rows])) for f in (aten.index.Tensor, aten._unsafe_index.Tensor)),
        OpSample(aten.index_put.default, (x, [mask], one)),
        OpSample(aten._unsafe_index_put.default, (x, [None, rows], torch.randn(3, 3))),
        OpSample(aten._index_put_impl.default, (x, [rows], one, True), opsets=16),
        OpSample(aten.index_select.default, (x, 1, rows.abs())),
        OpSample(aten.gather.default, (x[..., 0], 0, cells)),
        OpSample(aten.take.default, (x, cells)),
        OpSample(aten.take_along_dim.default, (x[..., 0], cells[:1], 1)),
        OpSample(aten.index_fill.int_Scalar, (x, 1, rows.abs(), 2)),
        OpSample(aten.index_fill.int_Tensor, (x, 1, rows.abs(), one)),
        OpSample(aten.index_copy.default, (x, 1, torch.tensor([3, 0]), torch.randn(4, 2, 3))),
        OpSample(aten.index_add.default, (x, 1, torch.tensor([3, 3]), torch.randn(4, 2, 3))),
        OpSample(aten.scatter.src, (x[..., 0], 0, cells, torch.randn(3, 4))),
        OpSample(aten.scatter.value, (x[..., 0], 0, cells, 2.5)),
        OpSample(aten.scatter.reduce, (x[..., 0], 0, cells, torch.randn(2, 3)), {"reduce": "multiply"}),
        OpSample(aten.scatter.value_reduce, (x[..., 0], 0, cells, 2.5), {"reduce": "add"}),
        OpSample(aten.scatter_add.default, (x[..., 0], 0, cells, torch.randn(2, 3))),
        OpSample(aten.scatter_reduce.two, (x[..., 0], 0, cells, torch.randn(2, 3), "amax")),
        OpSample(aten.slice_scatter.default, (x, torch.randn(4, 2, 3), 1, 1, 3)),
        OpSample(aten.select_scatter.default, (x, torch.randn(4, 3), 1, -2)),
        OpSample(aten.masked_fill.Scalar, (x, x > 0, float("-inf"))),
        OpSample(aten.masked_fill.Tensor, (x, x > 0, one)),
        OpSample(aten.masked_select.default, (x, x[:, :1] > 0)),
        OpSample(aten.nonzero.default, (x > 0,)),
        OpSample(aten.nonzero_static.default, (x > 0,), {"size": 40}),
        OpSample(aten.masked_scatter.default, (x, x > 0, torch.randn(60))),
        OpSample(aten.put.default, (x, rows, torch.randn(3))),
        OpSample(aten.copy.default, (x, rows)),
        OpSample(aten.fill.Scalar, (x, 2)),
        OpSample(aten.fill.Tensor, (x, one)),
    ]
