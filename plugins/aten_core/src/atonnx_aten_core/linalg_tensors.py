"""Products and inverses of tensors, taken as matrices of several axes each way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.dtypes import to_torch
from atonnx.build.sizes import smax
from atonnx.dispatch import NodeView, Table
from atonnx_aten_core._axes import axis_of, dims_of, numel, pair, transposed
from atonnx_aten_core._linalg import numbers
from atonnx_aten_core.linalg_lu import solved

aten = torch.ops.aten
table = Table(__name__)


@table.translate(aten.tensordot.default)
def tensordot(
    op: Builder, self: Value, other: Value, dims_self: Sequence[int], dims_other: Sequence[int]
) -> Value:
    """MatMul of the tensors as matrices."""
    first = [axis_of(axis, self.rank) for axis in dims_self]
    second = [axis_of(axis, other.rank) for axis in dims_other]
    for here, there in zip(first, second, strict=True):
        a, b = dims_of(self)[here], dims_of(other)[there]
        # As in torch, a size of one stands for any: then the other side's numbers are added.
        if a == 1 and b != 1:
            other = _summed(op, other, there)
        elif b == 1 and a != 1:
            self = _summed(op, self, here)
        elif a != b:  # one of them may turn out to be one
            size = smax(a, b)
            self = op.expand(self, _resized(self, here, size))
            other = op.expand(other, _resized(other, there, size))
    rows = [axis for axis in range(self.rank) if axis not in first]
    columns = [axis for axis in range(other.rank) if axis not in second]
    sizes, others = self.dims or (), other.dims or ()
    depth = numel(sizes[axis] for axis in first)
    left = op.reshape(transposed(op, self, [*rows, *first]), (numel(sizes[a] for a in rows), depth))
    right = op.reshape(transposed(op, other, [*second, *columns]), (depth, numel(others[a] for a in columns)))
    return op.reshape(op.translate(aten.mm.default, left, right), op.out.dims)


def _summed(op: Builder, x: Value, axis: int) -> Value:
    made: Value = op.translate(aten.sum.dim_IntList, x, (axis,), True, dtype=to_torch(x.dtype))
    return made


def _resized(x: Value, axis: int, size: Any) -> tuple[Any, ...]:
    dims = x.dims or ()
    return (*dims[:axis], size, *dims[axis + 1 :])


def _dynamic(node: NodeView) -> bool:
    return any(not isinstance(size, int) for tensor in node.arg("tensors") for size in tensor.shape)


@table.translate(aten.linalg_multi_dot.default, when=_dynamic)
def linalg_multi_dot(op: Builder, tensors: Sequence[Value]) -> Value:
    """MatMul, one after the other, from the side of a vector; known sizes tell a better order."""
    if tensors[-1].rank == 1:
        product = tensors[-1]
        for tensor in tensors[-2::-1]:
            product = op.translate(aten.matmul.default, tensor, product)
        return product
    product = tensors[0]
    for tensor in tensors[1:]:
        product = op.translate(aten.matmul.default, product, tensor)
    return product


@table.translate(aten.linalg_tensorinv.default, complex="also")
def linalg_tensorinv(op: Builder, self: Value, ind: int = 2) -> Value:
    """The inverse of the matrix that the first axes and the last axes make."""
    side = numel(dims_of(self)[:ind])
    return _complex_as(op, self, op.translate(aten.linalg_inv.default, _square(op, self, side)))


@table.translate(aten.linalg_tensorsolve.default, complex="also")
def linalg_tensorsolve(op: Builder, self: Value, other: Value, dims: Sequence[int] | None = None) -> Value:
    """The solution of the system that the tensor is as a matrix."""
    rank = len(dims_of(self))
    last = [axis_of(axis, rank) for axis in dims or ()]
    tensor = transposed(op, self, [*(axis for axis in range(rank) if axis not in last), *last])
    side = numel(dims_of(other))
    matrix = numbers(op, _square(op, tensor, side))
    right = op.reshape(other, (side, 1, *pair(other)))
    right.is_complex = other.is_complex
    return _complex_as(op, self, solved(op, matrix, numbers(op, right))[0].value())


# -------------------------------------------------------------------- cross


def _cross(op: Builder, a: Value, b: Value, axis: int) -> Value:
    def turned(x: Value, by: int) -> Value:
        made: Value = op.Gather(x, [by, (by + 1) % 3, (by + 2) % 3], axis=axis)
        return made

    made: Value = op.Sub(op.Mul(turned(a, 1), turned(b, 2)), op.Mul(turned(a, 2), turned(b, 1)))
    return made


@table.translate(aten.linalg_cross.default)
def linalg_cross(op: Builder, self: Value, other: Value, *, dim: int = -1) -> Value:
    """Gather, Mul and Sub; of half precision each is rounded, as in eager."""
    return _cross(op, self, other, axis_of(dim, self.rank))


@table.translate(aten.cross.default)
def cross(op: Builder, self: Value, other: Value, dim: int | None = None) -> Value:
    """Gather, Mul and Sub along ``dim``, else along the first axis of size 3; an If for each that may be."""
    if dim is not None:
        return _cross(op, self, other, axis_of(dim, self.rank))
    axes = [(axis, size) for axis, size in enumerate(self.dims or ()) if _may_be_3(op, size)]
    sure = next((at for at, (_, size) in enumerate(axes) if size == 3), len(axes) - 1)
    return _first_cross(op, self, other, axes[: sure + 1])


def _may_be_3(op: Builder, size: Any) -> bool:
    return size == 3 or isinstance(size, SymSize) and not op.session.facts.provably_nonzero(size - 3)


def _first_cross(op: Builder, a: Value, b: Value, axes: Sequence[tuple[int, Any]]) -> Value:
    (axis, size), *rest = axes
    if not rest:
        return _cross(op, a, b, axis)
    with op.body("here") as here, op.body("further") as further:
        here.output(_cross(here, a, b, axis))
        further.output(_first_cross(further, a, b, rest))
    chosen = op.Equal(op.size(size), 3)
    made: Value = op.If(chosen, then_branch=here.graph, else_branch=further.graph, outputs=1)[0]
    return made


def _square(op: Builder, x: Value, side: Any) -> Value:
    made: Value = op.reshape(x, (side, side, *pair(x)))
    made.is_complex = x.is_complex
    return made


def _complex_as(op: Builder, x: Value, result: Value) -> Value:
    made: Value = op.reshape(result, op.out.dims)
    made.is_complex = x.is_complex
    return made


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    a, b, v = torch.randn(2, 3, 4), torch.randn(4, 3, 5), torch.randn(4)
    near: dict[str, Any] = {"atol": 1e-3, "rtol": 1e-3, "reason": "LAPACK adds in another order"}
    return [
        OpSample(aten.tensordot.default, (a, b, [2, 1], [0, 1])),
        OpSample(aten.linalg_multi_dot.default, ([a[0], b[:, 0], torch.randn(5, 2)],)),
        OpSample(aten.linalg_multi_dot.default, ([v, b[:, 0], torch.randn(5)],)),
        *(OpSample(f, (a[..., :3], b[:2, :, :3])) for f in (aten.linalg_cross.default, aten.cross.default)),
        OpSample(aten.cross.default, (b, b + 1, 1)),
        OpSample(aten.linalg_tensorinv.default, (torch.randn(6, 2, 3), 1), **near),
        OpSample(aten.linalg_tensorsolve.default, (torch.randn(2, 3, 6), torch.randn(2, 3)), **near),
    ]
