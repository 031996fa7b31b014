"""Operators of integers and bools that no other dtype helps."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx_ort_target.rows import Rows

rows = Rows()

D = ir.DataType
_INTS = (D.INT8, D.INT16, D.INT32, D.INT64, D.UINT8, D.UINT16, D.UINT32, D.UINT64)
_LOWEST = -(2**63)
_UNSIGNED = (D.UINT8, D.UINT16, D.UINT32, D.UINT64)


@rows.on("Relu", D.INT64)
def relu(op: Builder, x: Value) -> Value:
    """Max of x and 0."""
    return op.Max(x, 0)


@rows.on("PRelu", *_UNSIGNED)
def prelu_unsigned(op: Builder, x: Value, slope: Value) -> Value:
    """x, for none is below zero."""
    return op.Identity(x)


@rows.on("PRelu", D.INT32, D.INT64)
def prelu(op: Builder, x: Value, slope: Value) -> Value:
    """slope * x below zero."""
    return op.Where(op.Less(x, 0), op.Mul(slope, x), x)


@rows.on("Gemm", *_INTS)
def gemm(
    op: Builder,
    a: Value,
    b: Value,
    c: Value | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    """MatMul and Add, where the factors are whole numbers."""
    if alpha != int(alpha) or beta != int(beta):
        return NotImplemented
    made = op.MatMul(
        op.Transpose(a, perm=[1, 0]) if transA else a, op.Transpose(b, perm=[1, 0]) if transB else b
    )
    if alpha != 1:
        made = op.Mul(made, int(alpha))
    if c is None or beta == 0:
        return made
    return op.Add(made, c if beta == 1 else op.Mul(c, int(beta)))


@rows.on("NonZero", *_INTS)
def nonzero(op: Builder, x: Value) -> Value:
    """NonZero of whether it is not zero."""
    return op.NonZero(op.Cast(x, to=D.BOOL))


@rows.on("BitCast", D.INT8, D.UINT8)
def bit_cast(op: Builder, x: Value, *, to: int) -> Any:
    """Cast, which keeps the bits of integers of one size."""
    return op.Cast(x, to=to) if to in (D.INT8, D.UINT8) else NotImplemented


def _signed(op: Builder, x: Value) -> Value:
    """Numbers in the order of ``x``, 0 as the lowest one."""
    return op.Add(op.Cast(x, to=D.INT64), _LOWEST)


def _unsigned(op: Builder, x: Value) -> Value:
    """Back from there."""
    return op.Cast(op.Add(x, _LOWEST), to=D.UINT64)


@rows.on("ArgMax", D.UINT64)
def argmax(op: Builder, x: Value, **attrs: Any) -> Value:
    """ArgMax of integers with a sign, in the same order."""
    return op.ArgMax(_signed(op, x), **attrs)


@rows.on("ArgMin", D.UINT64)
def argmin(op: Builder, x: Value, **attrs: Any) -> Value:
    """ArgMin of integers with a sign, in the same order."""
    return op.ArgMin(_signed(op, x), **attrs)


@rows.on("TopK", D.UINT64)
def topk(op: Builder, x: Value, k: Value, **attrs: Any) -> tuple[Value, Value]:
    """TopK of integers with a sign, in the same order."""
    values, places = op.TopK(_signed(op, x), k, **attrs)
    return _unsigned(op, values), places


@rows.on("Unique", D.UINT64)
def unique(op: Builder, x: Value, **attrs: Any) -> tuple[Value, ...]:
    """Unique of integers with a sign, in the same order."""
    values, *places = op.Unique(_signed(op, x), outputs=op.asked_outputs, **attrs)
    return (_unsigned(op, values), *places)


def _reduced(op: Builder, name: str, x: Value, axes: Value | None, attrs: dict[str, Any]) -> Value:
    stated = attrs.pop("axes", None)  # an attribute below opset 18
    return _unsigned(op, getattr(op, name)(_signed(op, x), stated if axes is None else axes, **attrs))


@rows.on("ReduceMax", D.UINT64)
def reduce_max(op: Builder, x: Value, axes: Value | None = None, **attrs: Any) -> Value:
    """ReduceMax of integers with a sign, in the same order."""
    return _reduced(op, "ReduceMax", x, axes, attrs)


@rows.on("ReduceMin", D.UINT64)
def reduce_min(op: Builder, x: Value, axes: Value | None = None, **attrs: Any) -> Value:
    """ReduceMin of integers with a sign, in the same order."""
    return _reduced(op, "ReduceMin", x, axes, attrs)


def _blocks(op: Builder, x: Value) -> tuple[Value, Value, Value, Value]:
    shape = op.Shape(x)
    n, c, h, w = (op.Slice(shape, [i], [i + 1]) for i in range(4))
    return n, c, h, w


@rows.on("DepthToSpace", D.BOOL, *_INTS)
def depth_to_space(op: Builder, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    """Reshape, Transpose, Reshape."""
    n, c, h, w = _blocks(op, x)
    depth = op.Div(c, [blocksize**2])
    block = op.as_value([blocksize])
    if mode == "DCR":
        split, perm = (n, block, block, depth, h, w), [0, 3, 4, 1, 5, 2]
    else:
        split, perm = (n, depth, block, block, h, w), [0, 1, 4, 2, 5, 3]
    moved = op.Transpose(op.Reshape(x, op.Concat(*split, axis=0), allowzero=1), perm=perm)
    return op.Reshape(moved, op.Concat(n, depth, op.Mul(h, block), op.Mul(w, block), axis=0), allowzero=1)


@rows.on("SpaceToDepth", D.BOOL, *_INTS)
def space_to_depth(op: Builder, x: Value, *, blocksize: int) -> Value:
    """Reshape, Transpose, Reshape."""
    n, c, h, w = _blocks(op, x)
    block = op.as_value([blocksize])
    high, wide = op.Div(h, block), op.Div(w, block)
    split = op.Reshape(x, op.Concat(n, c, high, block, wide, block, axis=0), allowzero=1)
    moved = op.Transpose(split, perm=[0, 3, 5, 1, 2, 4])
    return op.Reshape(moved, op.Concat(n, op.Mul(c, [blocksize**2]), high, wide, axis=0), allowzero=1)
