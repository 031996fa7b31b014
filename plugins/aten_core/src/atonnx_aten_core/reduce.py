"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.dtypes import FLOATS
from atonnx.dispatch import Table
from atonnx_aten_core._axes import axis_of, numel
from atonnx_aten_core._promote import BOOL, HALF, floating
from atonnx_aten_core.pointwise import truth

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

Axes = tuple[int, ...]

# What ReduceSum and ReduceProd take; other integers are cast.
_SUMMED = frozenset({ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32, ir.DataType.UINT64}) | FLOATS
# What ReduceMax and ReduceMin do not take, and an exact stand-in.
_WIDER = {ir.DataType.INT16: ir.DataType.INT32, ir.DataType.UINT16: ir.DataType.INT32}


def _axes(x: Value, dim: Any) -> Axes:
    """The reduced axes, counted from the front, in order; all of them for None and for an empty list."""
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return tuple(range(x.rank))
    dims = dim if isinstance(dim, Sequence) else (dim,)
    return () if not x.rank else tuple(sorted(axis_of(d, x.rank) for d in dims))


def _reduced(op: Builder, name: str, x: Value, axes: Axes, keepdim: bool) -> Value:
    """A Reduce operator. Over no axes it is the element itself (or its magnitude, for a norm)."""
    if not axes:
        return op.Abs(x) if name in ("ReduceL1", "ReduceL2") else x
    everything = len(axes) == x.rank
    if everything:
        return getattr(op, name)(x, keepdims=int(keepdim))
    return getattr(op, name)(x, list(axes), keepdims=int(keepdim))


def _count(x: Value, axes: Axes) -> Any:
    """How many elements are reduced into one: an int or a size."""
    return numel((x.dims or ())[axis] for axis in axes)


def _never_empty(op: Builder, count: Any) -> bool:
    """Whether there is something to reduce at every size that the program allows."""
    return op.session.facts.provably_nonzero(count.expr) if isinstance(count, SymSize) else count != 0


def _sum_dtype(x: Value, dtype: Any) -> ir.DataType:
    if dtype is not None:
        return ir.tensor_adapters.from_torch_dtype(dtype)
    return x.dtype if x.dtype in FLOATS else ir.DataType.INT64


def _accumulated(op: Builder, name: str, x: Value, axes: Axes, keepdim: bool, dtype: Any) -> Value:
    """ReduceSum or ReduceProd in the dtype asked for; narrow integers wrap around when cast back."""
    kind = _sum_dtype(x, dtype)
    if kind in _SUMMED:
        return _reduced(op, name, op.cast(x, kind), axes, keepdim)
    if kind == BOOL:
        truths = _reduced(op, name, op.cast(op.cast(x, BOOL), ir.DataType.INT64), axes, keepdim)
        return op.cast(truths, BOOL)
    wide = op.cast(op.cast(x, kind), ir.DataType.INT64)
    return op.cast(_reduced(op, name, wide, axes, keepdim), kind)


@table.translate(aten.sum.dim_IntList)
def sum_dim(op: Builder, self: Value, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Value:
    """ReduceSum; integers and bools are summed as int64."""
    return _accumulated(op, "ReduceSum", self, _axes(self, dim), keepdim, dtype)


@table.translate(aten.sum.default)
def sum(op: Builder, self: Value, *, dtype: Any = None) -> Value:
    """ReduceSum over all axes; integers and bools are summed as int64."""
    return _accumulated(op, "ReduceSum", self, _axes(self, None), False, dtype)


@table.translate(aten.prod.dim_int)
def prod_dim(op: Builder, self: Value, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Value:
    """ReduceProd; integers and bools are multiplied as int64."""
    return _accumulated(op, "ReduceProd", self, _axes(self, dim), keepdim, dtype)


@table.translate(aten.prod.default)
def prod(op: Builder, self: Value, *, dtype: Any = None) -> Value:
    """ReduceProd over all axes; integers and bools are multiplied as int64."""
    return _accumulated(op, "ReduceProd", self, _axes(self, None), False, dtype)


@table.translate(aten.nansum.default)
def nansum(op: Builder, self: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Value:
    """ReduceSum with zeros for nans."""
    x = op.Where(op.IsNaN(self), 0.0, self) if self.dtype in FLOATS else self
    return _accumulated(op, "ReduceSum", x, _axes(self, dim), keepdim, dtype)


def _divided(op: Builder, total: Value, count: Any) -> Value:
    """``total / count``; the count is exact in float64 only, so a size is cast from int64."""
    return op.Div(total, op.cast(op.size(count), total.dtype) if isinstance(count, SymSize) else float(count))


def _mean(op: Builder, x: Value, axes: Axes, keepdim: bool) -> Value:
    """ReduceMean, whose mean of nothing is undefined; torch's is nan, as zero divided by zero is."""
    count = _count(x, axes)
    if _never_empty(op, count):
        return _reduced(op, "ReduceMean", x, axes, keepdim)
    return _divided(op, _reduced(op, "ReduceSum", x, axes, keepdim), count)


@table.translate(aten.mean.dim)
def mean_dim(op: Builder, self: Value, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Value:
    """ReduceMean; ReduceSum and Div where there may be nothing to reduce."""
    x = self if dtype is None else op.cast(self, dtype)
    return _mean(op, x, _axes(self, dim), keepdim)


@table.translate(aten.mean.default)
def mean(op: Builder, self: Value, *, dtype: Any = None) -> Value:
    """ReduceMean over all axes."""
    x = self if dtype is None else op.cast(self, dtype)
    return _mean(op, x, _axes(self, None), False)


@table.translate(aten.nanmean.default)
def nanmean(op: Builder, self: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Value:
    """The sum of what is not nan over how many are not."""
    x = self if dtype is None else op.cast(self, dtype)
    axes = _axes(x, dim)
    missing = op.IsNaN(x)
    total = _reduced(op, "ReduceSum", op.Where(missing, 0.0, x), axes, keepdim)
    return op.Div(total, _reduced(op, "ReduceSum", op.cast(op.Not(missing), x.dtype), axes, keepdim))


def _extreme(op: Builder, name: str, x: Value, axes: Axes, keepdim: bool) -> Value:
    wide = _WIDER.get(x.dtype)
    if wide is None or not axes:
        return _reduced(op, name, x, axes, keepdim)
    return op.cast(_reduced(op, name, op.cast(x, wide), axes, keepdim), x.dtype)


@table.translate(aten.amax.default)
def amax(op: Builder, self: Value, dim: Any = (), keepdim: bool = False) -> Value:
    """ReduceMax."""
    return _extreme(op, "ReduceMax", self, _axes(self, dim), keepdim)


@table.translate(aten.amin.default)
def amin(op: Builder, self: Value, dim: Any = (), keepdim: bool = False) -> Value:
    """ReduceMin."""
    return _extreme(op, "ReduceMin", self, _axes(self, dim), keepdim)


@table.translate(aten.max.default)
def max(op: Builder, self: Value) -> Value:
    """ReduceMax over all axes."""
    return _extreme(op, "ReduceMax", self, _axes(self, None), False)


@table.translate(aten.min.default)
def min(op: Builder, self: Value) -> Value:
    """ReduceMin over all axes."""
    return _extreme(op, "ReduceMin", self, _axes(self, None), False)


@table.translate(aten.aminmax.default)
def aminmax(
    op: Builder, self: Value, *, dim: int | None = None, keepdim: bool = False
) -> tuple[Value, Value]:
    """ReduceMin and ReduceMax."""
    axes = _axes(self, dim)
    return (
        _extreme(op, "ReduceMin", self, axes, keepdim),
        _extreme(op, "ReduceMax", self, axes, keepdim),
    )


def _index(op: Builder, name: str, x: Value, dim: int | None, keepdim: bool) -> Value:
    """ArgMax or ArgMin; over all axes it is that of the flattened tensor."""
    if not x.rank:
        return op.const(0, ir.DataType.INT64)
    if x.dtype == BOOL:
        x = op.cast(x, ir.DataType.INT32)
    if dim is None:
        flat = op.Reshape(x, [-1]) if x.rank != 1 else x
        found = getattr(op, name)(flat, axis=0, keepdims=0)
        return op.Reshape(found, [1] * x.rank) if keepdim else found
    return getattr(op, name)(x, axis=axis_of(dim, x.rank), keepdims=int(keepdim))


@table.translate(aten.argmax.default)
def argmax(op: Builder, self: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """ArgMax: the first of several."""
    return _index(op, "ArgMax", self, dim, keepdim)


@table.translate(aten.argmin.default)
def argmin(op: Builder, self: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """ArgMin: the first of several."""
    return _index(op, "ArgMin", self, dim, keepdim)


@table.translate(aten.max.dim)
def max_dim(op: Builder, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """ReduceMax and ArgMax."""
    values = _extreme(op, "ReduceMax", self, _axes(self, dim), keepdim)
    return values, _index(op, "ArgMax", self, dim, keepdim)


@table.translate(aten.min.dim)
def min_dim(op: Builder, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """ReduceMin and ArgMin."""
    values = _extreme(op, "ReduceMin", self, _axes(self, dim), keepdim)
    return values, _index(op, "ArgMin", self, dim, keepdim)


def _any(op: Builder, x: Value, axes: Axes, keepdim: bool) -> Value:
    """Whether one of some truth values is true; a sum where there may be none, of which Max is undefined."""
    if not axes:
        return x
    if _never_empty(op, _count(x, axes)):
        return _reduced(op, "ReduceMax", x, axes, keepdim)
    return op.cast(_reduced(op, "ReduceSum", op.cast(x, ir.DataType.INT64), axes, keepdim), BOOL)


def _all(op: Builder, x: Value, axes: Axes, keepdim: bool) -> Value:
    if not axes:
        return x
    if _never_empty(op, _count(x, axes)):
        return _reduced(op, "ReduceMin", x, axes, keepdim)
    return op.Not(_any(op, op.Not(x), axes, keepdim))


def _truths(op: Builder, reduce: Any, x: Value, axes: Axes, keepdim: bool) -> Value:
    """``any`` or ``all``; of uint8 it is uint8, as in torch."""
    made = reduce(op, truth(op, x), axes, keepdim)
    return op.cast(made, ir.DataType.UINT8) if x.dtype == ir.DataType.UINT8 else made


def _listed(x: Value, dim: Any) -> Axes:
    """Axes where an empty list is none of them."""
    return () if isinstance(dim, Sequence) and not dim else _axes(x, dim)


@table.translate(aten.any.default, aten._is_any_true.default)
def any(op: Builder, self: Value) -> Value:
    """ReduceMax of truth values over all axes."""
    return _truths(op, _any, self, _axes(self, None), False)


@table.translate(aten.any.dim)
def any_dim(op: Builder, self: Value, dim: int, keepdim: bool = False) -> Value:
    """ReduceMax of truth values."""
    return _truths(op, _any, self, _axes(self, dim), keepdim)


@table.translate(aten.any.dims)
def any_dims(op: Builder, self: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """ReduceMax of truth values; over no axes if the list is empty."""
    return _truths(op, _any, self, _listed(self, dim), keepdim)


@table.translate(aten.all.default, aten._is_all_true.default)
def all(op: Builder, self: Value) -> Value:
    """ReduceMin of truth values over all axes."""
    return _truths(op, _all, self, _axes(self, None), False)


@table.translate(aten.all.dim)
def all_dim(op: Builder, self: Value, dim: int, keepdim: bool = False) -> Value:
    """ReduceMin of truth values."""
    return _truths(op, _all, self, _axes(self, dim), keepdim)


@table.translate(aten.all.dims)
def all_dims(op: Builder, self: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """ReduceMin of truth values; over no axes if the list is empty."""
    return _truths(op, _all, self, _listed(self, dim), keepdim)


@table.translate(aten.count_nonzero.default)
def count_nonzero(op: Builder, self: Value, dim: int | None = None) -> Value:
    """ReduceSum of truth values as int64."""
    truths = op.cast(truth(op, self), ir.DataType.INT64)
    return _reduced(op, "ReduceSum", truths, _axes(self, dim), False)


@table.translate(aten.count_nonzero.dim_IntList)
def count_nonzero_dims(op: Builder, self: Value, dim: Any) -> Value:
    """ReduceSum of truth values as int64."""
    truths = op.cast(truth(op, self), ir.DataType.INT64)
    return _reduced(op, "ReduceSum", truths, _axes(self, dim), False)


def _moments(
    op: Builder, self: Value, dim: Any, correction: Any, keepdim: bool, root: bool
) -> tuple[Value, Value]:
    """Variance (or its root) and mean, half precision in float32 as in torch."""
    x = op.cast(self, ir.DataType.FLOAT) if self.dtype in HALF else self
    axes = _axes(x, dim)
    center = _mean(op, x, axes, True)
    gap = op.Sub(x, center)
    squares = op.Mul(gap, gap)
    count = _count(x, axes)
    taken = 1 if correction is None else correction
    if taken == 0:
        spread = _mean(op, squares, axes, keepdim)
    else:
        spread = _over(op, _reduced(op, "ReduceSum", squares, axes, keepdim), count, taken)
    if root:
        spread = op.Sqrt(spread)
    if not keepdim and axes:
        center = op.Squeeze(center, list(axes))
    return op.cast(spread, self.dtype), op.cast(center, self.dtype)


def _over(op: Builder, total: Value, count: Any, taken: Any) -> Value:
    """``total`` over the degrees of freedom, which are not less than zero."""
    if not isinstance(count, SymSize):
        return op.Div(total, float(count - taken if count > taken else 0))
    free = op.Max(op.Sub(op.cast(op.size(count), total.dtype), float(taken)), 0.0)
    return op.Div(total, free)


@table.translate(aten.var.correction)
def var_correction(
    op: Builder, self: Value, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Value:
    """The sum of squared distances from the mean over the degrees of freedom."""
    return _moments(op, self, dim, correction, keepdim, False)[0]


@table.translate(aten.var.dim)
def var_dim(op: Builder, self: Value, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Value:
    """The sum of squared distances from the mean over the degrees of freedom."""
    return _moments(op, self, dim, int(unbiased), keepdim, False)[0]


@table.translate(aten.var.default)
def var(op: Builder, self: Value, unbiased: bool = True) -> Value:
    """The sum of squared distances from the mean over the degrees of freedom."""
    return _moments(op, self, None, int(unbiased), False, False)[0]


@table.translate(aten.std.correction)
def std_correction(
    op: Builder, self: Value, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Value:
    """Sqrt of the variance."""
    return _moments(op, self, dim, correction, keepdim, True)[0]


@table.translate(aten.std.dim)
def std_dim(op: Builder, self: Value, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Value:
    """Sqrt of the variance."""
    return _moments(op, self, dim, int(unbiased), keepdim, True)[0]


@table.translate(aten.std.default)
def std(op: Builder, self: Value, unbiased: bool = True) -> Value:
    """Sqrt of the variance."""
    return _moments(op, self, None, int(unbiased), False, True)[0]


@table.translate(aten.var_mean.correction)
def var_mean_correction(
    op: Builder, self: Value, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Value, Value]:
    """The variance, and the mean that it needs."""
    return _moments(op, self, dim, correction, keepdim, False)


@table.translate(aten.var_mean.dim)
def var_mean_dim(
    op: Builder, self: Value, dim: Any, unbiased: bool = True, keepdim: bool = False
) -> tuple[Value, Value]:
    """The variance, and the mean that it needs."""
    return _moments(op, self, dim, int(unbiased), keepdim, False)


@table.translate(aten.var_mean.default)
def var_mean(op: Builder, self: Value, unbiased: bool = True) -> tuple[Value, Value]:
    """The variance, and the mean that it needs."""
    return _moments(op, self, None, int(unbiased), False, False)


@table.translate(aten.std_mean.correction)
def std_mean_correction(
    op: Builder, self: Value, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Value, Value]:
    """Sqrt of the variance, and the mean that it needs."""
    return _moments(op, self, dim, correction, keepdim, True)


@table.translate(aten.std_mean.dim)
def std_mean_dim(
    op: Builder, self: Value, dim: Any, unbiased: bool = True, keepdim: bool = False
) -> tuple[Value, Value]:
    """Sqrt of the variance, and the mean that it needs."""
    return _moments(op, self, dim, int(unbiased), keepdim, True)


@table.translate(aten.std_mean.default)
def std_mean(op: Builder, self: Value, unbiased: bool = True) -> tuple[Value, Value]:
    """Sqrt of the variance, and the mean that it needs."""
    return _moments(op, self, None, int(unbiased), False, True)


@table.translate(aten.logsumexp.default)
def logsumexp(op: Builder, self: Value, dim: Any, keepdim: bool = False) -> Value:
    """ReduceLogSumExp; integers are cast to the default float dtype first."""
    return _reduced(op, "ReduceLogSumExp", floating(op, self), _axes(self, dim), keepdim)


@table.translate(aten.logsumexp.default, since=28)
def logsumexp_by_maximum(op: Builder, self: Value, dim: Any, keepdim: bool = False) -> Value:
    """Log of the sum of exponentials, taken relative to the maximum.

    As of opset 28 ReduceLogSumExp is a formula that overflows, which runtimes write out.
    """
    x, axes = floating(op, self), _axes(self, dim)
    if not axes:
        return x
    top = _reduced(op, "ReduceMax", x, axes, True)
    # An infinite maximum is no reference.
    top = op.Where(op.Less(op.Abs(top), math.inf), top, 0.0)
    total = _reduced(op, "ReduceSum", op.Exp(op.Sub(x, top)), axes, keepdim)
    return op.Add(op.Log(total), top if keepdim else op.Squeeze(top, list(axes)))


def _norm(op: Builder, self: Value, power: Any, dim: Any, keepdim: bool, dtype: Any) -> Value:
    """ReduceL1, ReduceL2, ReduceMax or ReduceMin of magnitudes, a count, or the root of a sum of powers."""
    x = floating(op, self) if dtype is None else op.cast(self, dtype)
    axes = _axes(x, dim)
    degree = 2.0 if power is None else float(power)
    if degree == 2:
        return _reduced(op, "ReduceL2", x, axes, keepdim)
    if degree == 1:
        return _reduced(op, "ReduceL1", x, axes, keepdim)
    if degree == 0:
        return _reduced(op, "ReduceSum", op.cast(truth(op, x), x.dtype), axes, keepdim)
    size = op.Abs(x)
    if math.isinf(degree):
        if degree > 0 and not _never_empty(op, _count(x, axes)):
            # Of nothing the norm is zero: one zero more on each reduced axis, as no magnitude is less.
            size = op.Pad(size, [0] * x.rank + [int(axis in axes) for axis in range(x.rank)])
        return _reduced(op, "ReduceMax" if degree > 0 else "ReduceMin", size, axes, keepdim)
    wide = x.dtype in HALF
    size = op.cast(size, ir.DataType.FLOAT) if wide else size
    total = _reduced(op, "ReduceSum", op.Pow(size, op.const(degree, size.dtype)), axes, keepdim)
    return op.cast(op.Pow(total, op.const(1.0 / degree, total.dtype)), x.dtype)


@table.translate(aten.linalg_vector_norm.default)
def linalg_vector_norm(
    op: Builder, self: Value, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Value:
    """ReduceL2, ReduceL1, ReduceMax or ReduceMin of Abs, or the root of a sum of powers."""
    return _norm(op, self, ord, dim, keepdim, dtype)


@table.translate(aten.norm.Scalar)
def norm(op: Builder, self: Value, p: Any = 2) -> Value:
    """The vector norm over all axes."""
    return _norm(op, self, p, None, False, None)


@table.translate(aten.norm.ScalarOpt_dim)
def norm_dim(op: Builder, self: Value, p: Any, dim: Any, keepdim: bool = False) -> Value:
    """The vector norm."""
    return _norm(op, self, p, dim, keepdim, None)


@table.translate(aten.norm.ScalarOpt_dim_dtype)
def norm_dim_dtype(op: Builder, self: Value, p: Any, dim: Any, keepdim: bool, *, dtype: Any) -> Value:
    """The vector norm in a dtype."""
    return _norm(op, self, p, dim, keepdim, dtype)


@table.translate(aten.norm.ScalarOpt_dtype)
def norm_dtype(op: Builder, self: Value, p: Any, *, dtype: Any) -> Value:
    """The vector norm over all axes in a dtype."""
    return _norm(op, self, p, None, False, dtype)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, ulps

    def x() -> torch.Tensor:
        return torch.tensor([[0.5, -1.5, 2.25], [-0.75, 3.0, 1.0]])

    def ints() -> torch.Tensor:
        return torch.tensor([[3, -2, 0], [1, 7, -5]], dtype=torch.int8)

    def truths() -> torch.Tensor:
        return torch.tensor([[True, False, True], [True, True, True]])

    near: dict[str, Any] = {"atol": ulps(8), "reason": "the order of summation is not the same"}
    double = {"dtype": torch.float64}
    found = []
    listed = (aten.sum.dim_IntList, aten.amax.default, aten.amin.default, aten.any.dims, aten.all.dims)
    for tensor in (x, ints, truths, lambda: x()[0, 0]):
        found += [OpSample(f.default, (tensor(),), **near) for f in (aten.sum, aten.prod)]
        found += [
            OpSample(f.default, (tensor(),))
            for f in (aten.max, aten.min, aten.any, aten.all, aten.count_nonzero, aten.nansum, aten.aminmax)
        ]
        found += [
            OpSample(f, (tensor(), -1, True))
            for f in (aten.prod.dim_int, aten.any.dim, aten.all.dim, aten.max.dim, aten.min.dim)
        ]
        found += [OpSample(f, (tensor(), dim)) for f in listed for dim in ([], [0])]
    for dim in (None, 1):
        found += [
            OpSample(f.default, (tensor(), dim, True))
            for f in (aten.argmax, aten.argmin)
            for tensor in (x, ints)
        ]
    for name in ("var", "std", "var_mean", "std_mean"):
        packet = getattr(aten, name)
        found += [
            OpSample(packet.default, lambda: (x(),), **near),
            OpSample(packet.default, lambda: (x(), False), **near),
            OpSample(packet.dim, lambda: (x(), [0], True, True), **near),
            OpSample(packet.correction, lambda: (x(), [1]), {"correction": 0.5}, **near),
        ]
    for order in (0, 1, 2, 3, math.inf, -math.inf):
        found.append(OpSample(aten.linalg_vector_norm.default, (x(), order, [1]), **near))
    return [
        *found,
        *(OpSample(f.default, lambda: (truths(),)) for f in (aten._is_all_true, aten._is_any_true)),
        OpSample(aten.sum.default, lambda: (ints(),), {"dtype": torch.int8}),
        OpSample(aten.aminmax.default, lambda: (x(),), {"dim": 1, "keepdim": True}),
        OpSample(aten.count_nonzero.dim_IntList, lambda: (x(), [0, 1])),
        OpSample(aten.mean.default, lambda: (x(),), **near),
        OpSample(aten.mean.dim, lambda: (x(), [1], True), **near),
        OpSample(aten.mean.dim, lambda: (ints(), [0]), {"dtype": torch.float32}, **near),
        OpSample(aten.nanmean.default, lambda: (torch.tensor([[1.0, math.nan], [2.0, 4.0]]), [1]), **near),
        OpSample(aten.logsumexp.default, lambda: (x(), [1]), **near),
        OpSample(aten.logsumexp.default, lambda: (ints(), [0], True), **near),
        OpSample(aten.norm.Scalar, lambda: (x(),), **near),
        OpSample(aten.norm.ScalarOpt_dim, lambda: (x(), 1, [0]), **near),
        OpSample(aten.norm.ScalarOpt_dim_dtype, lambda: (x(), 2, [0], False), double, **near),
        OpSample(aten.norm.ScalarOpt_dtype, lambda: (x(), 3), double, **near),
    ]
