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
from atonnx.errors import UnsupportedOpError
from atonnx_aten_core._axes import INT_MAX, numel

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


@table.translate(aten._int_mm.default)
def _int_mm(op: Builder, self: Value, mat2: Value) -> Value:
    """MatMulInteger."""
    return op.MatMulInteger(self, mat2)


@table.translate(aten._weight_int8pack_mm.default)
def _weight_int8pack_mm(op: Builder, self: Value, mat2: Value, scales: Value) -> Value:
    """MatMul in float32 with the weights, then Mul by the scales of its columns."""
    x, weight, factors = (op.cast(value, ir.DataType.FLOAT) for value in (self, mat2, scales))
    return op.cast(op.Mul(op.MatMul(x, op.Transpose(weight, perm=[1, 0])), factors), op.out.dtype)


def _side(scale: Value, axis: int) -> Any:
    return scale.dims[axis] if scale.dims else 1


@table.translate(aten._scaled_mm.default, since=19)
def _scaled_mm(
    op: Builder,
    self: Value,
    mat2: Value,
    scale_a: Value,
    scale_b: Value,
    bias: Value | None = None,
    scale_result: Value | None = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
) -> Value:
    """MatMul of float8 in float32, then Mul by the scales of the tensors, or of rows and columns."""
    kinds = {scale_a.dtype, scale_b.dtype}
    if kinds != {ir.DataType.FLOAT} or _side(scale_a, -1) != 1 or _side(scale_b, 0) != 1:
        raise UnsupportedOpError.here(op, "scales of blocks", hint="scale tensors, or rows and columns")
    if op.out.dtype not in _FLOATS:
        raise UnsupportedOpError.here(op, "a float8 result", hint="give another out_dtype and cast it")
    a, b = (op.cast(x, ir.DataType.FLOAT) for x in (self, mat2))
    made = op.Mul(op.Mul(op.MatMul(a, b), scale_a), scale_b)
    if bias is not None:
        made = op.Add(made, op.cast(bias, ir.DataType.FLOAT))
    return op.cast(made, op.out.dtype)


@table.translate(aten._grouped_mm.default)
def _grouped_mm(
    op: Builder,
    self: Value,
    mat2: Value,
    offs: Value | None = None,
    bias: Value | None = None,
    out_dtype: Any = None,
) -> Value:
    """MatMul; with offsets one for the slices of each group, and Concat.

    What lies behind the last offset is of no group; torch leaves its rows and columns of the result
    undefined, and here they belong to the last group.
    """
    if bias is not None:
        raise UnsupportedOpError.here(op, "a bias", hint="add it to the product")
    if offs is None:
        return op.cast(op.MatMul(self, mat2), op.out.dtype)
    groups = next((x.dims[0] for x in (self, mat2) if x.dims and x.rank == 3), _side(offs, 0))
    if not isinstance(groups, int):
        raise UnsupportedOpError.here(op, "a dynamic number of groups", hint="export it with a static number")
    bounds = op.Concat(op.const([0], ir.DataType.INT64), op.cast(offs, ir.DataType.INT64), axis=0)
    shared = self.rank == 2 and mat2.rank == 2
    ends = [op.Slice(bounds, [i], [i + 1], [0]) for i in range(groups + 1)]
    if not shared:
        ends[-1] = op.const([INT_MAX], ir.DataType.INT64)

    def of_group(x: Value, axis: int, group: int) -> Value:
        if x.rank == 3:
            return op.Gather(x, group, axis=0)
        return op.Slice(x, ends[group], ends[group + 1], [axis])

    made = [
        op.MatMul(of_group(self, 1 if shared else 0, i), of_group(mat2, 0 if shared else 1, i))
        for i in range(groups)
    ]
    if shared:
        made = [op.Unsqueeze(product, [0]) for product in made]
    return op.cast(op.Concat(*made, axis=1 if self.rank == 3 else 0), op.out.dtype)


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
    from atonnx.testing import OpSample, Weight, make_tensor

    a, b, v = torch.randn(2, 3, 4), torch.randn(2, 4, 5), torch.randn(4)
    narrow = torch.randn(16, 32).to(torch.float8_e4m3fn)

    def eight(shape: tuple[int, int], seed: int = 0) -> torch.Tensor:
        return make_tensor(torch.int8, shape, seed)

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
        OpSample(aten._int_mm.default, (eight((20, 8)), eight((8, 8), 1)), expect="MatMulInteger:1!"),
        OpSample(aten._weight_int8pack_mm.default, (torch.randn(4, 32), eight((16, 32)), torch.rand(16))),
        OpSample(
            aten._scaled_mm.default,
            (narrow, narrow.t(), torch.rand(16, 1), torch.rand(1, 16)),
            {"out_dtype": torch.bfloat16},
            opsets=19,
            options={"dynamic": False},
        ),
        OpSample(
            aten._grouped_mm.default,
            (
                torch.randn(6, 8).bfloat16(),
                Weight(torch.randn(2, 8, 8).bfloat16()),
                torch.tensor([2, 6]).int(),
            ),
            opsets=13,
        ),
        OpSample(aten.einsum.default, ("bij, bjk -> bki", [a, b])),
    ]
