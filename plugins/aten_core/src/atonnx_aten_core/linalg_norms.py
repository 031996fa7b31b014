"""Norms and ranks of matrices that the singular values tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.sizes import smax
from atonnx.dispatch import NodeView, Table
from atonnx_aten_core._axes import axis_of, rank_of, transposed
from atonnx_aten_core._linalg import Num, first, numbers, out_dims
from atonnx_aten_core.linalg_spectral import eigen, limit_of, singular, symmetric

aten = torch.ops.aten
table = Table(__name__)

INT64 = ir.DataType.INT64


def _rank(op: Builder, x: Value, atol: Any, rtol: Any, hermitian: bool) -> Value:
    a = numbers(op, x)
    if 0 in a.dims:
        return op.expand(op.const(0, INT64), out_dims(op))
    if hermitian:
        sizes = op.Abs(eigen(op, symmetric(op, a), False)[0])
        largest = op.ReduceMax(sizes, [-1], keepdims=1)
    else:
        sizes = singular(op, a, False)[0]
        largest = first(Num(op, sizes), 1, -1).re
    limit = limit_of(op, smax(*a.dims[-2:]), largest, x.dtype, atol, rtol)
    made: Value = op.ReduceSum(op.cast(op.Greater(sizes, limit), INT64), [-1], keepdims=0)
    return made


@table.translate(aten.linalg_matrix_rank.atol_rtol_tensor, complex="also")
def matrix_rank_tensor(
    op: Builder, input: Value, *, atol: Any = None, rtol: Any = None, hermitian: bool = False
) -> Value:
    """How many singular values are not nearly zero."""
    return _rank(op, input, atol, rtol, hermitian)


@table.translate(aten.linalg_matrix_rank.atol_rtol_float, complex="also")
def matrix_rank_float(
    op: Builder, self: Value, *, atol: Any = None, rtol: Any = None, hermitian: bool = False
) -> Value:
    """How many singular values are not nearly zero."""
    return _rank(op, self, atol, rtol, hermitian)


@table.translate(aten.linalg_matrix_rank.default, complex="also")
def matrix_rank(op: Builder, self: Value, tol: Any, hermitian: bool = False) -> Value:
    """How many singular values are larger than a number."""
    return _rank(op, self, tol, 0.0, hermitian)


@table.translate(aten.linalg_matrix_rank.tol_tensor, complex="also")
def matrix_rank_tol(op: Builder, input: Value, tol: Value, hermitian: bool = False) -> Value:
    """How many singular values are larger than a number."""
    return _rank(op, input, tol, 0.0, hermitian)


def _spectral(op: Builder, x: Value, order: Any, dim: Sequence[int], keepdim: bool, dtype: Any) -> Value:
    """The largest (2) or the smallest (-2) of the singular values."""
    rank = rank_of(x)
    pair = [axis_of(axis, rank) for axis in dim]
    rest = [axis for axis in range(rank) if axis not in pair]
    a = numbers(op, transposed(op, x, [*rest, *pair]))
    if dtype is not None:
        a = a.cast(dtype)
    values = singular(op, a, False)[0]
    reduce = op.ReduceMax if order == 2 else op.ReduceMin
    made: Value = reduce(values, [-1], keepdims=0)
    if order == 2 and not all(isinstance(size, int) and size for size in a.dims[-2:]):
        made = op.Max(made, 0)  # the norm of an empty matrix, of which the maximum is less than any number
    made = op.cast(made, op.out.dtype)
    return op.Unsqueeze(made, sorted(pair)) if keepdim else made


def _by_singular_values(node: NodeView) -> bool:
    return node.arg("ord") in (2, -2)


def _of_matrix(node: NodeView) -> bool:
    dim = node.arg("dim")
    return _by_singular_values(node) and (node.arg("self").ndim == 2 if dim is None else len(dim) == 2)


@table.translate(aten.linalg_matrix_norm.default, complex="also", when=_by_singular_values)
def linalg_matrix_norm(
    op: Builder, self: Value, ord: Any, dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Value:
    """The largest or smallest singular value; other norms are decomposed."""
    return _spectral(op, self, ord, dim, keepdim, dtype)


@table.translate(aten.linalg_norm.default, complex="also", when=_of_matrix)
def linalg_norm(
    op: Builder, self: Value, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Value:
    """The largest or smallest singular value; other norms are decomposed."""
    return _spectral(op, self, ord, (0, 1) if dim is None else dim, keepdim, dtype)


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    a = torch.randn(2, 4, 3)
    a[0, :, 0] = 2 * a[0, :, 1]
    tolerance: dict[str, Any] = {"atol": 1e-4, "rtol": 1e-4, "reason": "LAPACK computes in float32"}
    return [
        OpSample(aten.linalg_matrix_rank.atol_rtol_tensor, (a,)),
        OpSample(aten.linalg_matrix_rank.atol_rtol_float, (a @ a.mT,)),
        OpSample(aten.linalg_matrix_rank.default, (a, 1e-3)),
        OpSample(aten.linalg_matrix_rank.tol_tensor, (a @ a.mT, torch.tensor(1e-3), True)),
        OpSample(aten.linalg_matrix_norm.default, (a, 2, [0, -1]), **tolerance),
        OpSample(aten.linalg_norm.default, (a[1], -2), **tolerance),
    ]
