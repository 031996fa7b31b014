"""Resizing as a product with a matrix of weights along each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atonnx.build import Builder, Value
from atonnx.errors import UnsupportedOpError
from atonnx_aten_nn._common import HALVES, D, sizes_of

# How far a filter reaches.
_LANCZOS = 3.0


class _Numbers:
    """A builder's arithmetic on numpy arrays, in float64: weights between known sizes are constants."""

    Abs, Add, Sub, Mul, Floor, Sin = np.abs, np.add, np.subtract, np.multiply, np.floor, np.sin
    Max, Min, Equal, Less, Greater = np.maximum, np.minimum, np.equal, np.less, np.greater
    Div, Where, Range, Unsqueeze = np.true_divide, np.where, np.arange, np.expand_dims

    @staticmethod
    def ReduceSum(x: Any, axes: list[int]) -> Any:
        return np.sum(x, axis=tuple(axes), keepdims=True)

    @staticmethod
    def cast(x: Any, dtype: Any) -> Any:
        return np.asarray(x, np.float64)

    const = cast

    @staticmethod
    def size(size: int) -> int:
        return size


def resized(
    op: Builder, x: Value, kind: str, align: bool, antialias: bool, factors: Sequence[float | None]
) -> Value:
    """``x`` with its spatial axes in new sizes; halves are computed in float32."""
    dtype = D.FLOAT if x.dtype in HALVES else x.dtype
    y = op.cast(x, dtype)
    for axis in reversed(range(2, x.rank)):
        old, new, factor = sizes_of(x)[axis], op.out.dims[axis], factors[axis - 2]
        if old == new and factor is None:
            continue
        call = (old, new, dtype, kind, align, antialias, factor)
        left = axis == x.rank - 2
        if isinstance(old, int) and isinstance(new, int):
            numbers = _weights(_Numbers, *call)
            weights = op.const(numbers if left else numbers.T, dtype)
        else:
            weights = _weights(op, *call)
            weights = weights if left else op.Transpose(weights, perm=[1, 0])
        y = op.MatMul(weights, y) if left else _along(op, y, weights, axis)
    return op.cast(y, x.dtype)


def resized_bytes(
    op: Builder, x: Value, kind: str, align: bool, antialias: bool, factors: Sequence[float | None]
) -> Value:
    """``x`` of uint8 as torch resizes it: by whole numbers, rounded after the width and after the height."""
    for axis in (3, 2):
        old, new, factor = sizes_of(x)[axis], op.out.dims[axis], factors[axis - 2]
        if old == new and factor is None:
            continue
        if not isinstance(old, int) or not isinstance(new, int):
            raise UnsupportedOpError.here(
                op,
                "resizing of uint8 from or to a dynamic size",
                hint="convert to float32 before, and round and convert back after",
            )
        weights = _weights(_Numbers, old, new, D.DOUBLE, kind, align, antialias, factor)
        bits = _bits(float(weights.max()))
        scaled = weights * (1 << bits)
        whole = np.trunc(scaled + np.where(scaled < 0, -0.5, 0.5))
        wide = op.cast(x, D.DOUBLE)
        if axis == 3:
            total = op.MatMul(wide, op.const(whole.T, D.DOUBLE))
        else:
            total = op.MatMul(op.const(whole, D.DOUBLE), wide)
        # Sums of whole numbers, which float64 has exactly.
        found = op.Floor(op.Div(op.Add(total, float(1 << (bits - 1))), float(1 << bits)))
        x = op.cast(op.Max(op.Min(found, op.const(255, D.DOUBLE)), op.const(0, D.DOUBLE)), D.UINT8)
    return x


def _bits(greatest: float) -> int:
    """How many bits behind the point a weight of 16 bits has."""
    return next((n for n in range(22) if int(0.5 + greatest * (1 << (n + 1))) >= 1 << 15), 22)


def _along(op: Builder, x: Value, weights: Value, axis: int) -> Value:
    """Each row of ``x`` along an axis times the weights."""
    last = x.rank - 1
    if axis == last:
        return op.MatMul(x, weights)
    perm = [i for i in range(last + 1) if i != axis] + [axis]
    back = [perm.index(i) for i in range(last + 1)]
    return op.Transpose(op.MatMul(op.Transpose(x, perm=perm), weights), perm=back)


def _ratio(op: Any, old: Any, new: Any, dtype: Any, align: bool, factor: float | None) -> Any:
    """How far apart in the input two neighbours of the output are."""
    if not align:
        if factor is not None:
            return op.const(1 / factor, dtype)
        return op.Div(op.cast(op.size(old), dtype), op.cast(op.size(new), dtype))
    # One pixel has no distance: its ratio is 0, as that of any size to an infinite one.
    gaps = op.cast(op.size(new - 1), dtype)
    span = op.cast(op.size(old - 1), dtype)
    return op.Where(op.Greater(gaps, 0), op.Div(span, op.Max(gaps, op.const(1, dtype))), op.const(0, dtype))


def _weights(
    op: Any,
    old: Any,
    new: Any,
    dtype: Any,
    kind: str,
    align: bool,
    antialias: bool,
    factor: float | None,
) -> Any:
    """A row for each place of the output, a column for each of the input; ``op`` may be _Numbers."""
    ratio = _ratio(op, old, new, dtype, align, factor)
    rows = op.Unsqueeze(op.cast(op.Range(0, op.size(new), 1), dtype), [1])
    columns = op.cast(op.Range(0, op.size(old), 1), dtype)
    if antialias:
        wide = op.Max(ratio, op.const(1, dtype))
        centers = op.Mul(op.Add(rows, 0.5), ratio)
        distance = op.Div(op.Add(op.Sub(columns, centers), 0.5), wide)
        weights = _filter(op, distance, kind, -0.5)
        total = op.ReduceSum(weights, [1])
        return op.Div(weights, op.Where(op.Equal(total, 0.0), op.const(1, dtype), total))
    last = op.cast(op.size(old - 1), dtype)
    zero = op.const(0, dtype)
    centers = op.Mul(rows, ratio) if align else op.Sub(op.Mul(op.Add(rows, 0.5), ratio), 0.5)
    if kind == "linear":
        centers = op.Max(op.Min(centers, last), zero)
        return _filter(op, op.Sub(columns, centers), kind, 0)
    first = op.Floor(centers)
    weights = None
    for tap in (-1, 0, 1, 2):
        place = op.Add(first, float(tap))
        share = _filter(op, op.Sub(place, centers), kind, -0.75)
        hit = op.Equal(columns, op.Max(op.Min(place, last), zero))
        part = op.Where(hit, share, zero)
        weights = part if weights is None else op.Add(weights, part)
    return weights


def _filter(op: Any, distance: Any, kind: str, a: float) -> Any:
    """The weight of a pixel at some distance."""
    t = op.Abs(distance)
    zero = op.const(0, t.dtype)
    if kind == "linear":
        return op.Max(op.Sub(1, t), zero)
    if kind == "lanczos":
        reach = _LANCZOS
        inside = op.Mul(_sinc(op, t), _sinc(op, op.Div(t, reach)))
        return op.Where(op.Less(t, reach), inside, zero)
    near = op.Add(op.Mul(op.Mul(op.Sub(op.Mul(t, a + 2), a + 3), t), t), 1)
    far = op.Mul(op.Sub(op.Mul(op.Add(op.Mul(op.Sub(t, 5), t), 8), t), 4), a)
    return op.Where(op.Less(t, 1), near, op.Where(op.Less(t, 2), far, zero))


def _sinc(op: Any, t: Value) -> Any:
    angle = op.Mul(t, math.pi)
    safe = op.Where(op.Equal(t, 0.0), op.const(1, t.dtype), angle)
    return op.Where(op.Equal(t, 0.0), op.const(1, t.dtype), op.Div(op.Sin(safe), safe))
