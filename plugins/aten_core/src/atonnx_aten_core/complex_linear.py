"""Products of complex matrices and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._axes import dims_of, numel, rank_of, transposed
from atonnx_aten_core._complex import compute, imaginary, paired, part_type, real, spread
from atonnx_aten_core.complex_math import added, conjugate, product

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)


def _bilinear(op: Builder, a: Value, b: Value, multiply: Callable[[Value, Value], Value]) -> Value:
    """A real product, of the parts: four, or two where one operand is real."""

    def parts(dtype: ir.DataType) -> Value:
        x, y = [(op.cast(real(op, v), dtype), _imaginary(op, v, dtype)) for v in (a, b)]
        re, im = multiply(x[0], y[0]), None
        if x[1] is not None and y[1] is not None:
            re = op.Sub(re, multiply(x[1], y[1]))
        if y[1] is not None:
            im = multiply(x[0], y[1])
        if x[1] is not None:
            more = multiply(x[1], y[0])
            im = more if im is None else op.Add(im, more)
        return spread(op, re, im)  # type: ignore[arg-type]

    return compute(op, part_type(a, b), parts)


def _imaginary(op: Builder, x: Value, dtype: ir.DataType) -> Value | None:
    return op.cast(imaginary(op, x), dtype) if x.is_complex else None


def matrix_product(op: Builder, a: Value, b: Value) -> Value:
    """MatMul of the parts."""
    return _bilinear(op, a, b, op.MatMul)


@table.translate(aten.matmul.default, aten.linalg_matmul.default, complex="only")
def matmul(op: Builder, self: Value, other: Value) -> Value:
    """MatMul of the parts."""
    return matrix_product(op, self, other)


@table.translate(aten.mm.default, aten.bmm.default, complex="only")
def mm(op: Builder, self: Value, mat2: Value) -> Value:
    """MatMul of the parts."""
    return matrix_product(op, self, mat2)


@table.translate(aten.mv.default, complex="only")
def mv(op: Builder, self: Value, vec: Value) -> Value:
    """MatMul of the parts."""
    return matrix_product(op, self, vec)


@table.translate(aten.dot.default, complex="only")
def dot(op: Builder, self: Value, tensor: Value) -> Value:
    """MatMul of the parts."""
    return matrix_product(op, self, tensor)


@table.translate(aten.vdot.default, complex="only")
def vdot(op: Builder, self: Value, other: Value) -> Value:
    """MatMul of the parts, the first operand conjugated."""
    return matrix_product(op, conjugate(op, self), other)


@table.translate(aten.inner.default, complex="only")
def inner(op: Builder, self: Value, other: Value) -> Value:
    """MatMul of the parts with the transposed second operand; the product with a scalar."""
    if rank_of(self) == 0 or rank_of(other) == 0:
        return product(op, self, other)
    if rank_of(other) == 1:
        return matrix_product(op, self, other)
    *rows, depth = dims_of(other)
    flat = paired(op.reshape(other, (numel(rows), depth, 2)))
    return op.reshape(matrix_product(op, self, transposed(op, flat, [1, 0])), op.out.dims)


@table.translate(aten.outer.default, complex="only")
def outer(op: Builder, self: Value, vec2: Value) -> Value:
    """The product of a column and a row."""
    return product(op, _column(op, self), vec2)


def _column(op: Builder, x: Value) -> Value:
    made = op.Unsqueeze(x, [1])
    made.is_complex = x.is_complex
    return made


def _sum(op: Builder, self: Value, made: Value, beta: Any, alpha: Any) -> Value:
    """``beta * self + alpha * product``; as in torch, ``self`` is not read where beta is 0."""
    if alpha != 1:
        made = product(op, made, alpha)
    if beta == 0:
        return op.expand(made, op.out.dims)
    return added(op, self if beta == 1 else product(op, self, beta), made)


@table.translate(aten.addmm.default, complex="only")
def addmm(op: Builder, self: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    """MatMul of the parts, and sums."""
    return _sum(op, self, matrix_product(op, mat1, mat2), beta, alpha)


@table.translate(aten.baddbmm.default, complex="only")
def baddbmm(
    op: Builder, self: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1
) -> Value:
    """MatMul of the parts, and sums."""
    return _sum(op, self, matrix_product(op, batch1, batch2), beta, alpha)


@table.translate(aten.addbmm.default, complex="only")
def addbmm(op: Builder, self: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    """MatMul of the parts, summed over the batch, and sums."""
    made = paired(op.ReduceSum(matrix_product(op, batch1, batch2), [0], keepdims=0))
    return _sum(op, self, made, beta, alpha)


@table.translate(aten.addmv.default, complex="only")
def addmv(op: Builder, self: Value, mat: Value, vec: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    """MatMul of the parts, and sums."""
    return _sum(op, self, matrix_product(op, mat, vec), beta, alpha)


@table.translate(aten.addr.default, complex="only")
def addr(op: Builder, self: Value, vec1: Value, vec2: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    """The product of a column and a row, and sums."""
    return _sum(op, self, product(op, _column(op, vec1), vec2), beta, alpha)


@table.translate(aten.chain_matmul.default, complex="only")
def chain_matmul(op: Builder, matrices: Sequence[Value]) -> Value:
    """MatMul of the parts, one after the other."""
    made = matrices[0]
    for matrix in matrices[1:]:
        made = matrix_product(op, made, matrix)
    return made


@table.translate(aten.mH.default, aten.adjoint.default, aten.matrix_H.default, complex="only")
def mH(op: Builder, self: Value) -> Value:
    """Transpose of the last two axes, conjugated."""
    rank = rank_of(self)
    perm = list(range(rank))
    if rank >= 2:
        perm[-1], perm[-2] = perm[-2], perm[-1]
    return conjugate(op, transposed(op, self, perm))


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, ulps

    near: dict[str, Any] = {"atol": ulps(32), "reason": "the order of summation is not the same"}
    a, b, v = (torch.randn(s, dtype=torch.complex64) for s in ((2, 3, 4), (2, 4, 5), (4,)))
    factors = {"beta": 0.5, "alpha": 1 - 2j}
    return [
        *(OpSample(f.default, (a, b), **near) for f in (aten.matmul, aten.linalg_matmul, aten.bmm)),
        OpSample(aten.mm.default, (a[0], b[0]), **near),
        OpSample(aten.mv.default, (a[0], v), **near),
        *(OpSample(f.default, (v, v + 1), **near) for f in (aten.dot, aten.vdot, aten.inner, aten.outer)),
        OpSample(aten.inner.default, (a, a[:, :2]), **near),
        OpSample(aten.addmm.default, (b[0, 0], a[0], b[0]), factors, **near),
        OpSample(aten.baddbmm.default, (b[0, 0], a, b), {"beta": 0}, **near),
        OpSample(aten.addbmm.default, (b[0, 0], a, b), factors, **near),
        OpSample(aten.addmv.default, (v[:3], a[0], v), factors, **near),
        OpSample(aten.addr.default, (v, v[:3], v), factors, **near),
        OpSample(aten.chain_matmul.default, ([a[0], b[0], b[0].T],), **near),
        *(OpSample(f.default, (a[0],)) for f in (aten.mH, aten.adjoint, aten.matrix_H)),
    ]
