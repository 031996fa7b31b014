"""Sums, products, moments and norms of complex tensors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.dtypes import real_of, to_ir
from atonnx.dispatch import Table
from atonnx_aten_core._axes import INT_MAX, axis_of, dims_of, numel, rank_of, transposed
from atonnx_aten_core._complex import as_pair, lanes, magnitude, paired, real
from atonnx_aten_core.complex_math import product

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
prims = torch.ops.prims
table = Table(__name__)


def _axes(x: Value, dim: Any) -> list[int]:
    """The reduced axes in torch's view, all of them for None and for an empty list."""
    rank = rank_of(x)
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return list(range(rank))
    dims = dim if isinstance(dim, Sequence) else (dim,)
    return sorted({axis_of(d, rank) for d in dims}) if rank else []


def _as_asked(op: Builder, x: Value, dtype: Any) -> Value:
    """Pairs in the dtype of a ``dtype`` argument; of a real one the real part stays."""
    if dtype is None:
        return x
    kind = to_ir(real_of(dtype))
    return as_pair(op, x, kind) if dtype.is_complex else op.cast(real(op, x), kind)


def _total(op: Builder, x: Value, axes: Sequence[int], keepdim: bool) -> Value:
    if not axes:
        return x
    made = op.ReduceSum(x, list(axes), keepdims=int(keepdim))
    made.is_complex = x.is_complex
    return made


def _mean(op: Builder, x: Value, axes: Sequence[int], keepdim: bool) -> Value:
    count = numel(dims_of(x)[axis] for axis in axes)
    total = _total(op, x, axes, keepdim)
    factor = op.cast(op.size(count), x.dtype) if isinstance(count, SymSize) else float(count)
    return paired(op.Div(total, factor))


@table.translate(aten.sum.dim_IntList, complex="only")
def sum_dim(op: Builder, self: Value, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Value:
    """ReduceSum of both parts."""
    return _total(op, _as_asked(op, self, dtype), _axes(self, dim), keepdim)


@table.translate(aten.sum.default, complex="only")
def sum(op: Builder, self: Value, *, dtype: Any = None) -> Value:
    """ReduceSum of both parts over all axes."""
    return _total(op, _as_asked(op, self, dtype), _axes(self, None), False)


@table.translate(prims.sum.default, complex="only")
def sum_prim(op: Builder, inp: Value, dims: Any, *, output_dtype: Any = None) -> Value:
    """ReduceSum of both parts."""
    axes = _axes(inp, dims) if dims is None or len(dims) else []
    return _total(op, _as_asked(op, inp, output_dtype), axes, False)


@table.translate(aten.mean.dim, complex="only")
def mean_dim(op: Builder, self: Value, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Value:
    """ReduceSum of both parts, Div by the count."""
    x = _as_asked(op, self, dtype)
    if not x.is_complex:
        return op.translate(aten.mean.dim, x, dim, keepdim)
    return _mean(op, x, _axes(self, dim), keepdim)


@table.translate(aten.mean.default, complex="only")
def mean(op: Builder, self: Value, *, dtype: Any = None) -> Value:
    """ReduceSum of both parts over all axes, Div by the count."""
    x = _as_asked(op, self, dtype)
    return _mean(op, x, _axes(self, None), False) if x.is_complex else op.translate(aten.mean.default, x)


# ----------------------------------------------------------------- products


def _running(
    op: Builder,
    z: Value,
    axis: int,
    begin: complex,
    step: Callable[[Builder, Value, Value], Value],
) -> tuple[Value, Value]:
    """Scan: what ``step`` makes of the elements along an axis, one after the other, and all on the way.

    ONNX Runtime fails where a Scan has nothing to do, and where it transposes what is empty. So what may
    be empty is transposed before, with one more element of no effect.
    """
    dims: list[Any] = list(z.dims or ())
    element = tuple(dims[:axis] + dims[axis + 1 :])
    first = op.expand(op.const([begin.real, begin.imag], z.dtype), element)
    with op.body("elements") as body:
        state = paired(body.input("state", z.dtype, element))
        new = paired(body.input("element", z.dtype, element))
        made = step(body, state, new)
        body.output(made, made)
    scan = functools.partial(op.Scan, first, body=body.graph, num_scan_inputs=1, outputs=2)
    if all(_is_nonzero(op, size) for size in dims):
        last, running = scan(z, scan_input_axes=[axis], scan_output_axes=[axis])
    else:
        order = [axis, *(i for i in range(rank_of(z)) if i != axis)]
        last, running = scan(op.Concat(op.Unsqueeze(first, [0]), transposed(op, z, order), axis=0))
        kept = paired(op.Slice(running, [1], [INT_MAX], [0]))
        running = transposed(op, kept, [order.index(i) for i in range(rank_of(z))])
    last.dims, running.dims = element, tuple(dims)
    return paired(last), paired(running)


def _products(op: Builder, z: Value, axis: int) -> tuple[Value, Value]:
    """The product along an axis, and the running products."""
    return _running(op, z, axis, 1, product)


def _is_nonzero(op: Builder, size: Any) -> bool:
    if isinstance(size, SymSize):
        return op.session.facts.provably_nonzero(size.expr)
    return bool(size != 0)


def _prod(op: Builder, x: Value, dim: int, keepdim: bool) -> Value:
    if rank_of(x) == 0:
        return x
    axis = axis_of(dim, rank_of(x))
    made, _ = _products(op, x, axis)
    return op.Unsqueeze(made, [axis]) if keepdim else made


@table.translate(aten.prod.dim_int, complex="only")
def prod_dim(op: Builder, self: Value, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Value:
    """Scan of complex products."""
    x = _as_asked(op, self, dtype)
    if not x.is_complex:
        return op.translate(aten.prod.dim_int, x, dim, keepdim)
    return _prod(op, x, dim, keepdim)


@table.translate(aten.prod.default, complex="only")
def prod(op: Builder, self: Value, *, dtype: Any = None) -> Value:
    """Scan of complex products over all elements."""
    x = _as_asked(op, self, dtype)
    if not x.is_complex:
        return op.translate(aten.prod.default, x)
    return _prod(op, paired(op.reshape(x, (numel(dims_of(x)), 2))), 0, False)


@table.translate(prims.prod.default, complex="only")
def prod_prim(op: Builder, inp: Value, dims: Any, *, output_dtype: Any = None) -> Value:
    """Scan of complex products, axis by axis."""
    x = _as_asked(op, inp, output_dtype)
    for axis in reversed(_axes(x, dims)):
        x = _prod(op, x, axis, False)
    return x


@table.translate(aten.cumprod.default, complex="only")
def cumprod(op: Builder, self: Value, dim: int, *, dtype: Any = None) -> Value:
    """Scan of complex products."""
    x = _as_asked(op, self, dtype)
    if not x.is_complex:
        return op.translate(aten.cumprod.default, x, dim)
    if rank_of(x) == 0:
        return x
    return _products(op, x, axis_of(dim, rank_of(x)))[1]


@table.translate(aten.cumsum.default, complex="only")
def cumsum(op: Builder, self: Value, dim: int, *, dtype: Any = None) -> Value:
    """CumSum of both parts."""
    x = _as_asked(op, self, dtype)
    rank = self.rank - self.is_complex
    if not rank:
        return x
    return op.CumSum(x, op.const(axis_of(dim, rank), ir.DataType.INT64))


@table.translate(aten.logcumsumexp.default, aten._logcumsumexp.default, complex="only")
def logcumsumexp(op: Builder, self: Value, dim: int) -> Value:
    """Scan of logaddexp."""
    if rank_of(self) == 0:
        return self

    def step(body: Builder, total: Value, new: Value) -> Value:
        made: Value = body.translate(aten.logaddexp.default, total, new)
        return made

    return _running(op, self, axis_of(dim, rank_of(self)), complex(-math.inf, 0), step)[1]


# ------------------------------------------------------------ moments, norms


def _moments(
    op: Builder, z: Value, dim: Any, correction: Any, keepdim: bool, root: bool
) -> tuple[Value, Value]:
    """Variance (or its root) and mean: the variances of the parts are added."""
    axes = _axes(z, dim)
    center = _mean(op, z, axes, True)
    gap = op.Sub(z, center)
    rank = rank_of(z)
    # Over the pair axis as well.
    total = op.ReduceSum(op.Mul(gap, gap), [*axes, rank], keepdims=int(keepdim))
    if keepdim:
        total = op.Squeeze(total, [rank])
    count = numel(dims_of(z)[axis] for axis in axes)
    taken = 1 if correction is None else correction
    if isinstance(count, SymSize):
        free = op.Max(op.Sub(op.cast(op.size(count), z.dtype), float(taken)), 0.0)
    else:
        free = op.const(float(max(count - taken, 0)), z.dtype)
    spread = op.Div(total, free)
    if not keepdim and axes:
        center = op.Squeeze(center, axes)
    return (op.Sqrt(spread) if root else spread), paired(center)


@table.translate(aten.var.correction, complex="only")
def var_correction(
    op: Builder, self: Value, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Value:
    """The sum of squared distances from the mean over the degrees of freedom."""
    return _moments(op, self, dim, correction, keepdim, False)[0]


@table.translate(aten.var.dim, complex="only")
def var_dim(op: Builder, self: Value, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Value:
    """The sum of squared distances from the mean over the degrees of freedom."""
    return _moments(op, self, dim, int(unbiased), keepdim, False)[0]


@table.translate(aten.var.default, complex="only")
def var(op: Builder, self: Value, unbiased: bool = True) -> Value:
    """The sum of squared distances from the mean over the degrees of freedom."""
    return _moments(op, self, None, int(unbiased), False, False)[0]


@table.translate(prims.var.default, complex="only")
def var_prim(
    op: Builder, inp: Value, dims: Any, correction: float | None = 1, *, output_dtype: Any = None
) -> Value:
    """The sum of squared distances from the mean over the degrees of freedom."""
    return _moments(op, inp, dims, correction, False, False)[0]


@table.translate(aten.std.correction, complex="only")
def std_correction(
    op: Builder, self: Value, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Value:
    """Sqrt of the variance."""
    return _moments(op, self, dim, correction, keepdim, True)[0]


@table.translate(aten.std.dim, complex="only")
def std_dim(op: Builder, self: Value, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Value:
    """Sqrt of the variance."""
    return _moments(op, self, dim, int(unbiased), keepdim, True)[0]


@table.translate(aten.std.default, complex="only")
def std(op: Builder, self: Value, unbiased: bool = True) -> Value:
    """Sqrt of the variance."""
    return _moments(op, self, None, int(unbiased), False, True)[0]


@table.translate(aten.var_mean.correction, complex="only")
def var_mean_correction(
    op: Builder, self: Value, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Value, Value]:
    """The variance, and the mean that it needs."""
    return _moments(op, self, dim, correction, keepdim, False)


@table.translate(aten.var_mean.dim, complex="only")
def var_mean_dim(
    op: Builder, self: Value, dim: Any, unbiased: bool = True, keepdim: bool = False
) -> tuple[Value, Value]:
    """The variance, and the mean that it needs."""
    return _moments(op, self, dim, int(unbiased), keepdim, False)


@table.translate(aten.var_mean.default, complex="only")
def var_mean(op: Builder, self: Value, unbiased: bool = True) -> tuple[Value, Value]:
    """The variance, and the mean that it needs."""
    return _moments(op, self, None, int(unbiased), False, False)


@table.translate(aten.std_mean.correction, complex="only")
def std_mean_correction(
    op: Builder, self: Value, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Value, Value]:
    """Sqrt of the variance, and the mean that it needs."""
    return _moments(op, self, dim, correction, keepdim, True)


@table.translate(aten.std_mean.dim, complex="only")
def std_mean_dim(
    op: Builder, self: Value, dim: Any, unbiased: bool = True, keepdim: bool = False
) -> tuple[Value, Value]:
    """Sqrt of the variance, and the mean that it needs."""
    return _moments(op, self, dim, int(unbiased), keepdim, True)


@table.translate(aten.std_mean.default, complex="only")
def std_mean(op: Builder, self: Value, unbiased: bool = True) -> tuple[Value, Value]:
    """Sqrt of the variance, and the mean that it needs."""
    return _moments(op, self, None, int(unbiased), False, True)


def _norm(op: Builder, self: Value, power: Any, dim: Any, keepdim: bool, dtype: Any) -> Value:
    """The norm of the magnitudes; ReduceL2 over the pair axis too for the Euclidean one."""
    kind = None if dtype is None else to_ir(real_of(dtype))
    x = self if kind is None else paired(op.cast(self, kind))
    rank = rank_of(self)
    if power is None or power == 2:
        made = op.ReduceL2(x, [*_axes(self, dim), rank], keepdims=int(keepdim))
        return op.Squeeze(made, [-1]) if keepdim else made
    return op.translate(
        aten.linalg_vector_norm.default,
        op.Squeeze(magnitude(op, x), [-1]),
        2 if power is None else power,
        dim,
        keepdim,
    )


@table.translate(aten.linalg_vector_norm.default, complex="only")
def linalg_vector_norm(
    op: Builder, self: Value, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Value:
    """The norm of the magnitudes."""
    return _norm(op, self, ord, dim, keepdim, dtype)


@table.translate(aten.norm.Scalar, complex="only")
def norm(op: Builder, self: Value, p: Any = 2) -> Value:
    """The vector norm over all axes."""
    return _norm(op, self, p, None, False, None)


@table.translate(aten.norm.ScalarOpt_dim, complex="only")
def norm_dim(op: Builder, self: Value, p: Any, dim: Any, keepdim: bool = False) -> Value:
    """The vector norm."""
    return _norm(op, self, p, dim, keepdim, None)


@table.translate(aten.logsumexp.default, complex="only")
def logsumexp(op: Builder, self: Value, dim: Any, keepdim: bool = False) -> Value:
    """log of the sum of exponentials, which are taken relative to the largest real part."""
    axes = _axes(self, dim)
    top = lanes(op, self).re
    if axes:
        top = op.ReduceMax(top, axes, keepdims=1)
    # An infinite maximum is no reference.
    top = op.Where(op.Less(op.Abs(top), float("inf")), top, 0.0)
    pads = [0] * (2 * top.rank - 1) + [1]
    shift = paired(op.Pad(top, pads))
    total = _total(op, op.translate(aten.exp.default, paired(op.Sub(self, shift))), axes, keepdim)
    if not keepdim and axes:
        shift = op.Squeeze(shift, axes)
    return paired(op.Add(op.translate(aten.log.default, paired(total)), shift))


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, ulps

    z = torch.tensor([[1 + 2j, -0.5j, -1 + 0.25j], [0.75 - 1.5j, -0.25 + 0j, 2 + 0j]])
    near: dict[str, Any] = {"atol": ulps(32), "reason": "the order of summation is not the same"}
    wide, narrow = {"dtype": torch.complex128}, {"dtype": torch.float32}
    found = []
    for name in ("sum", "mean", "prod"):
        packet = getattr(aten, name)
        listed = packet.dim_int if name == "prod" else packet.dim_IntList if name == "sum" else packet.dim
        dim: Any = 0 if name == "prod" else [0]
        found += [OpSample(packet.default, (z,), kwargs, **near) for kwargs in ({}, wide)]
        found += [OpSample(listed, (z, dim, True), kwargs, **near) for kwargs in ({}, wide)]
        found.append(OpSample(packet.default, (z[0, 0],), **near))
    found += [OpSample(f.default, (z,), narrow, **near) for f in (aten.sum, aten.prod)]
    found.append(OpSample(aten.prod.dim_int, (z, 1), narrow, **near))
    for f in (aten.cumsum, aten.cumprod):
        found += [OpSample(f.default, (z, -1), kwargs, **near) for kwargs in ({}, wide, narrow)]
        found.append(OpSample(f.default, (z[0, 0], 0), **near))
    for name in ("var", "std", "var_mean", "std_mean"):
        packet = getattr(aten, name)
        found += [
            OpSample(packet.default, (z, False), **near),
            OpSample(packet.dim, (z, [-1], True, True), **near),
            OpSample(packet.correction, (z, [0]), {"correction": 0}, **near),
        ]
    for power in (0, 1, 2, 3, math.inf, -math.inf):
        found.append(OpSample(aten.linalg_vector_norm.default, (z, power, [1], True), **near))
        found.append(OpSample(aten.norm.ScalarOpt_dim, (z, power, [1]), **near))
    return [
        *found,
        OpSample(prims.sum.default, (z, [0]), **near),
        OpSample(prims.prod.default, (z, [0, 1]), **near),
        OpSample(prims.var.default, (z, [0], 1), **near),
        OpSample(aten.norm.Scalar, (z,), **near),
        OpSample(aten.logsumexp.default, (z, [1]), **near),
        OpSample(aten.logsumexp.default, (torch.tensor(2 - 7j), [0]), **near),
        OpSample(aten.logcumsumexp.default, (z, 1), **near),
        OpSample(aten._logcumsumexp.default, (z, 1), **near),
    ]
