"""Products of matrices and vectors."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.dispatch import Table
from atonnx_aten_core._axes import numel

aten = torch.ops.aten
table = Table(__name__)

_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32, ir.DataType.UINT64)


def _product(op: Builder, a: Value, b: Value) -> Value:
    """MatMul, which takes no narrow integers: int32 wraps around to the same."""
    if a.dtype in _FLOATS or a.dtype in _INTEGERS:
        return op.MatMul(a, b)
    wide = [op.cast(x, ir.DataType.INT32) for x in (a, b)]
    return op.cast(op.MatMul(*wide), a.dtype)


@table.translate(aten.matmul.default, aten.linalg_matmul.default)
def matmul(op: Builder, self: Value, other: Value) -> Value:
    """MatMul."""
    return _product(op, self, other)


@table.translate(aten.mm.default, aten.bmm.default)
def mm(op: Builder, self: Value, mat2: Value) -> Value:
    """MatMul."""
    return _product(op, self, mat2)


@table.translate(aten.mv.default)
def mv(op: Builder, self: Value, vec: Value) -> Value:
    """MatMul."""
    return _product(op, self, vec)


@table.translate(aten.dot.default)
def dot(op: Builder, self: Value, tensor: Value) -> Value:
    """MatMul of two vectors."""
    return _product(op, self, tensor)


@table.translate(aten.vdot.default)
def vdot(op: Builder, self: Value, other: Value) -> Value:
    """MatMul of two real vectors."""
    return _product(op, self, other)


@table.translate(aten.inner.default)
def inner(op: Builder, self: Value, other: Value) -> Value:
    """MatMul with the transposed second operand; Mul with a scalar."""
    if self.rank == 0 or other.rank == 0:
        return op.Mul(self, other)
    if other.rank == 1:
        return _product(op, self, other)
    *rows, depth = other.dims or ()
    flat = op.reshape(other, (numel(rows), depth))
    return op.reshape(_product(op, self, op.Transpose(flat, perm=[1, 0])), op.out.dims)


@table.translate(aten.outer.default)
def outer(op: Builder, self: Value, vec2: Value) -> Value:
    """Mul of a column and a row."""
    a, b = (op.cast(x, op.out.dtype) for x in (self, vec2))
    return op.And(op.Unsqueeze(a, [1]), b) if a.dtype == ir.DataType.BOOL else op.Mul(op.Unsqueeze(a, [1]), b)


@table.translate(aten.addmm.default)
def addmm(op: Builder, self: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    """Gemm; MatMul, Mul and Add for integers, and where its float32 factors would not be exact."""
    if mat1.dtype in _FLOATS and _fits(mat1.dtype, alpha) and _fits(mat1.dtype, beta):
        added = None if beta == 0 else self
        return op.Gemm(mat1, mat2, added, alpha=float(alpha), beta=float(beta) if added is not None else None)
    return _sum(op, self, _product(op, mat1, mat2), beta, alpha)


def _fits(dtype: ir.DataType | None, factor: Any) -> bool:
    """Whether Gemm's float32 attribute is no less exact than eager's factor."""
    if isinstance(factor, SymSize):
        return False
    return dtype != ir.DataType.DOUBLE or float(np.float32(factor)) == factor


def _sum(op: Builder, added: Value, product: Value, beta: Any, alpha: Any) -> Value:
    """``beta * added + alpha * product``; as in torch, ``added`` is not read where beta is 0."""
    if not _is(alpha, 1):
        product = op.Mul(product, _factor(op, alpha, product.dtype))
    if _is(beta, 0):
        return op.expand(product, op.out.dims)
    if not _is(beta, 1):
        added = op.Mul(added, _factor(op, beta, added.dtype))
    return op.Add(added, product)


def _is(factor: Any, number: int) -> bool:
    return not isinstance(factor, SymSize) and factor == number


def _factor(op: Builder, factor: Any, dtype: ir.DataType | None) -> Value:
    if isinstance(factor, SymSize) or dtype in _FLOATS:
        return op.cast(factor, dtype)
    return op.const(int(factor), dtype)  # as torch does: towards zero


@table.translate(aten.baddbmm.default)
def baddbmm(
    op: Builder, self: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1
) -> Value:
    """MatMul, Mul, Add."""
    return _sum(op, self, _product(op, batch1, batch2), beta, alpha)


@table.translate(aten.addbmm.default)
def addbmm(op: Builder, self: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    """MatMul, summed over the batch, Mul, Add."""
    product = _product(op, batch1, batch2)
    wide = product if product.dtype in _FLOATS else op.cast(product, ir.DataType.INT64)
    product = op.cast(op.ReduceSum(wide, [0], keepdims=0), product.dtype)
    return _sum(op, self, product, beta, alpha)


@table.translate(aten.addmv.default)
def addmv(op: Builder, self: Value, mat: Value, vec: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    """MatMul, Mul, Add."""
    return _sum(op, self, _product(op, mat, vec), beta, alpha)


@table.translate(aten.chain_matmul.default)
def chain_matmul(op: Builder, matrices: Sequence[Value]) -> Value:
    """MatMul, one after the other."""
    product = matrices[0]
    for matrix in matrices[1:]:
        product = _product(op, product, matrix)
    return product


@table.translate(aten.einsum.default, since=12)
def einsum(
    op: Builder, equation: str, tensors: Sequence[Value], *, path: Sequence[int] | None = None
) -> Value:
    """Einsum; below opset 12, which has none, the decomposition into MatMul is taken.

    It is taken as well where a size of 1 meets another: torch broadcasts, Einsum does not. And where
    an operand that is summed alone becomes int64, as narrower integers do in torch's sums.
    """
    terms, result = _spelled_out(equation, [x.rank for x in tensors])
    sizes: dict[str, set[Any]] = {}
    for term, x in zip(terms, tensors, strict=True):
        for label, size in zip(term, x.dims or (), strict=True):
            sizes.setdefault(label, set()).add(size)
    broadcast = any(1 in found and len(found) > 1 for found in sizes.values())
    if broadcast or any(x.dtype != op.out.dtype for x in tensors):
        return op.decompose()
    return op.Einsum(*tensors, equation=f"{','.join(terms)}->{result}")


def _spelled_out(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The terms and the result of an equation, with letters in place of ellipses."""
    given, arrow, result = equation.replace(" ", "").partition("->")
    terms = given.split(",")
    free = [letter for letter in string.ascii_letters if letter not in equation]
    counts = [
        rank - len(term.replace("...", "")) if "..." in term else 0
        for term, rank in zip(terms, ranks, strict=True)
    ]
    shared = "".join(free[: max(counts)])
    terms = [term.replace("...", shared[len(shared) - n :]) for term, n in zip(terms, counts, strict=True)]
    if arrow:
        return terms, result.replace("...", shared)
    letters = "".join(terms)
    once = sorted(c for c in set(letters) - set(shared) if letters.count(c) == 1)
    return terms, shared + "".join(once)


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    a, b, v = torch.randn(2, 3, 4), torch.randn(2, 4, 5), torch.randn(4)
    vectors = (aten.dot.default, aten.vdot.default, aten.inner.default, aten.outer.default)
    return [
        *(OpSample(f, (a, b)) for f in (aten.matmul.default, aten.linalg_matmul.default, aten.bmm.default)),
        OpSample(aten.mm.default, (a[0], b[0])),
        OpSample(aten.mv.default, (a[0], v)),
        *(OpSample(f, (v, v + 1)) for f in vectors),
        OpSample(aten.addmm.default, (torch.randn(5), a[0], b[0]), {"beta": 0.5, "alpha": 2}),
        OpSample(aten.baddbmm.default, (torch.randn(5), a, b), {"beta": 0.5, "alpha": 2}),
        OpSample(aten.addbmm.default, (torch.randn(5), a, b), {"beta": 0.5}),
        OpSample(aten.addmv.default, (torch.randn(3), a[0], v), {"alpha": 2}),
        OpSample(aten.chain_matmul.default, ([a[0], b[0], torch.randn(5, 2)],)),
        OpSample(aten.einsum.default, ("bij, bjk -> bki", [a, b])),
    ]
