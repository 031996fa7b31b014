"""Random numbers of opset 22 and newer, of which ONNX Runtime has a kernel for Dropout only."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx_ort_target.rows import Rows

rows = Rows()
D = ir.DataType

_KINDS = (D.FLOAT, D.DOUBLE)
_BITS = {D.FLOAT: 24, D.DOUBLE: 53}


def _drawn(op: Builder, shape: Value, dtype: int, seed: float | None) -> Value:
    """Numbers from 0 to below 1: each bit of their fraction is what Dropout keeps or drops.

    Its mask is read, for ONNX Runtime takes out a Dropout whose mask is not.
    """
    kind = D(dtype)
    count = _BITS[kind]
    each = op.Expand(op.const(0.0), op.Concat(shape, op.const([count]), axis=0))
    # The runtime's seeds are whole numbers.
    _, mask = op.Dropout(each, 0.5, True, seed=None if seed is None else int(seed), outputs=2)
    return op.MatMul(op.Cast(mask, to=kind), op.const(np.ldexp(1.0, -np.arange(1, count + 1)), kind))


def _uniform(op: Builder, shape: Value, dtype: int, high: float, low: float, seed: float | None) -> Value:
    drawn = _drawn(op, shape, dtype, seed)
    scaled = drawn if high - low == 1 else op.Mul(drawn, high - low)
    return scaled if low == 0 else op.Add(scaled, low)


def _normal(op: Builder, shape: Value, dtype: int, mean: float, scale: float, seed: float | None) -> Value:
    """Box and Muller's pairs, of which one is taken."""
    radius = op.Sqrt(op.Mul(op.Log(op.Sub(1, _drawn(op, shape, dtype, seed))), -2))
    angle = op.Mul(_drawn(op, shape, dtype, None if seed is None else seed + 1), 2 * math.pi)
    drawn = op.Mul(radius, op.Cos(angle))
    scaled = drawn if scale == 1 else op.Mul(drawn, scale)
    return scaled if mean == 0 else op.Add(scaled, mean)


@rows.on("RandomUniform", *_KINDS)
def random_uniform(
    op: Builder,
    *,
    shape: Sequence[int],
    dtype: int = D.FLOAT,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Value:
    """Bits that Dropout draws, in the range asked for."""
    return _uniform(op, op.const(np.array(shape, np.int64)), dtype, high, low, seed)


@rows.on("RandomUniformLike", *_KINDS)
def random_uniform_like(
    op: Builder,
    x: Value,
    *,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Value:
    """As RandomUniform, of the sizes of ``x``."""
    return _uniform(op, op.Shape(x), dtype or x.dtype, high, low, seed)


@rows.on("RandomNormal", *_KINDS)
def random_normal(
    op: Builder,
    *,
    shape: Sequence[int],
    dtype: int = D.FLOAT,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Value:
    """Made of two uniform numbers each."""
    return _normal(op, op.const(np.array(shape, np.int64)), dtype, mean, scale, seed)


@rows.on("RandomNormalLike", *_KINDS)
def random_normal_like(
    op: Builder,
    x: Value,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Value:
    """As RandomNormal, of the sizes of ``x``."""
    return _normal(op, op.Shape(x), dtype or x.dtype, mean, scale, seed)
