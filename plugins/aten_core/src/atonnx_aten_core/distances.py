"""Distances between the rows of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.dispatch import Table
from atonnx_aten_core._axes import arange, dims_of

aten = torch.ops.aten
table = Table(__name__)

# From how many rows on eager computes Euclidean distances through a product of matrices.
_MANY = 25


def _norm(op: Builder, gaps: Value, p: float) -> Value:
    """The norm of differences along the last axis; of none it is zero."""
    features = (gaps.dims or ())[-1]
    if p == 0:
        return op.ReduceSum(op.cast(op.Not(op.Equal(gaps, 0)), gaps.dtype), [-1], keepdims=0)
    if p == 1:
        return op.ReduceL1(gaps, [-1], keepdims=0)
    if p == 2:
        return op.ReduceL2(gaps, [-1], keepdims=0)
    sizes = op.Abs(gaps)
    if math.isinf(p):
        some = op.session.facts.provably_nonzero(features.expr) if isinstance(features, SymSize) else features
        if not some:
            zero = op.expand(op.const(0.0, gaps.dtype), (*(gaps.dims or ())[:-1], 1))
            sizes = op.Concat(sizes, zero, axis=-1)
        return op.ReduceMax(sizes, [-1], keepdims=0)
    return op.Pow(op.ReduceSum(op.Pow(sizes, p), [-1], keepdims=0), 1 / p)


def _direct(op: Builder, x1: Value, x2: Value, p: float) -> Value:
    gaps = op.Sub(op.Unsqueeze(x1, [-2]), op.Unsqueeze(x2, [-3]))
    return _norm(op, gaps, p)


def _through_product(op: Builder, x1: Value, x2: Value) -> Value:
    """``sqrt(|a|^2 + |b|^2 - 2 a·b)``, as eager has it: less exact, and without all differences at once."""
    first = op.ReduceSumSquare(x1, [-1], keepdims=1)
    perm = [*range(x2.rank - 2), x2.rank - 1, x2.rank - 2]
    second = op.Transpose(op.ReduceSumSquare(x2, [-1], keepdims=1), perm=perm)
    product = op.MatMul(op.Mul(x1, -2), op.Transpose(x2, perm=perm))
    return op.Sqrt(op.Max(op.Add(op.Add(first, second), product), 0))


def _many(op: Builder, rows: Any) -> Any:
    """Whether there are many rows: a bool, or the value of one."""
    if isinstance(rows, SymSize):
        known = op.session.facts.truth(rows.expr > _MANY)
        return op.Greater(op.size(rows), _MANY) if known is None else known
    return rows > _MANY


def _distances(op: Builder, x1: Value, x2: Value, p: float, compute_mode: int | None) -> Value:
    if p != 2 or compute_mode == 2:
        return _direct(op, x1, x2, p)
    first, second = (_many(op, dims_of(x)[-2]) for x in (x1, x2))
    if compute_mode == 1 or first is True or second is True:
        return _through_product(op, x1, x2)
    asked = [many for many in (first, second) if many is not False]
    if not asked:
        return _direct(op, x1, x2, p)
    many = asked[0] if len(asked) == 1 else op.Or(*asked)
    with op.body("many") as then, op.body("few") as other:
        then.output(_through_product(then, x1, x2))
        other.output(_direct(other, x1, x2, p))
    made: Value = op.If(many, then_branch=then.graph, else_branch=other.graph, outputs=1)[0]
    return made


@table.translate(aten.cdist.default)
def cdist(op: Builder, x1: Value, x2: Value, p: float = 2.0, compute_mode: int | None = None) -> Value:
    """A norm of all differences; MatMul for Euclidean distances from 26 rows on, as in eager."""
    return _distances(op, x1, x2, p, compute_mode)


@table.translate(aten._cdist_forward.default)
def _cdist_forward(op: Builder, x1: Value, x2: Value, p: float, compute_mode: int | None) -> Value:
    """A norm of all differences; MatMul for Euclidean distances from 26 rows on, as in eager."""
    return _distances(op, x1, x2, p, compute_mode)


@table.translate(aten._euclidean_dist.default)
def _euclidean_dist(op: Builder, x1: Value, x2: Value) -> Value:
    """MatMul, beside the squares of both."""
    return _through_product(op, x1, x2)


def _pairs(op: Builder, x: Value, p: float) -> Value:
    count = dims_of(x)[0]
    if isinstance(count, int):
        rows, columns = np.triu_indices(count, 1)
        first, second = op.const(rows.astype(np.int64)), op.const(columns.astype(np.int64))
    else:
        line = arange(op, count)
        index = op.NonZero(op.Less(op.Unsqueeze(line, [1]), line))
        index.dims = (2, op.out.dims[0])
        first, second = (op.Gather(index, op.size(i), axis=0) for i in range(2))
    return _norm(op, op.Sub(op.Gather(x, first, axis=0), op.Gather(x, second, axis=0)), p)


@table.translate(aten.pdist.default)
def pdist(op: Builder, self: Value, p: float = 2.0) -> Value:
    """A norm of the differences of all pairs of rows."""
    return _pairs(op, self, p)


@table.translate(aten._pdist_forward.default)
def _pdist_forward(op: Builder, self: Value, p: float = 2.0) -> Value:
    """A norm of the differences of all pairs of rows."""
    return _pairs(op, self, p)


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x, y = torch.randn(2, 4, 3), torch.randn(2, 5, 3)
    return [
        *(OpSample(aten.cdist.default, (x, y, p)) for p in (0.0, 1.0, 2.0, 2.5, math.inf)),
        OpSample(aten._cdist_forward.default, (x, y, 2.0, 1), atol=1e-4),
        OpSample(aten._euclidean_dist.default, (x, y), atol=1e-4),
        OpSample(aten.pdist.default, (x[0],)),
        OpSample(aten._pdist_forward.default, (x[0], 1.5)),
    ]
