"""Fourier transforms and windows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import axes_of, fixed_size, known_ints, rank_of, sizes

pack = OpsetPack(__name__)

_INT64 = ir.DataType.INT64


def _axis(op: Builder, axis: Value | None, opset: int) -> int:
    found = axes_of(op, axis, "DFT along an axis", opset)
    return -2 if found is None else found[0]


@pack.below(20, "DFT")
def dft_20(
    op: Builder,
    x: Value,
    length: Value | None = None,
    axis: Value | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Value:
    """DFT with its axis as an attribute."""
    along = _axis(op, axis, 20) % rank_of(op, x, "DFT", 20)
    if inverse and onesided:
        # A version that only knows the one-sided transform forward has no such inverse.
        return _dft(op, x, length, along, inverse, onesided)
    return op.at(17).DFT(x, length, axis=along, inverse=inverse, onesided=onesided)


@pack.above(17, "DFT")
def dft_up(
    op: Builder,
    x: Value,
    length: Value | None = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
) -> Value:
    """DFT with its axis as an input."""
    return op.DFT(x, length, op.const(axis, _INT64), inverse=inverse, onesided=onesided)


@pack.below(17, "DFT")
def dft_17(
    op: Builder,
    x: Value,
    length: Value | None = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
) -> Value:
    """Products with the matrices of cosines and sines."""
    return _dft(op, x, length, axis % rank_of(op, x, "DFT", 17), inverse, onesided)


def _dft(op: Builder, x: Value, length: Value | None, axis: int, inverse: int, onesided: int) -> Value:
    rank, dtype = x.rank, x.dtype
    back_to_real = bool(inverse and onesided)
    size = sizes(op, x, axis, axis + 1)
    count = op.Reshape(op.cast(length, _INT64), [1]) if length is not None else None
    if count is None:
        count = op.Mul(op.Sub(size, 1), 2) if back_to_real else size
    known = known_ints(length) if length is not None else None
    own = fixed_size(x, axis)
    total = known[0] if known else None
    if length is None and own is not None:
        total = 2 * (own - 1) if back_to_real else own
    used = op.Add(op.Div(count, 2), 1) if back_to_real else count
    pair = fixed_size(x, rank - 1)
    fitting = total is not None and own == (total // 2 + 1 if back_to_real else total)
    if not fitting:
        x = op.Slice(x, [0], used, [axis])
        missing = op.Max(op.Sub(used, size), 0)
        x = op.Pad(x, op.Concat(op.const([0], _INT64), missing, axis=0), None, [axis])
    outputs = op.Add(op.Div(count, 2), 1) if onesided and not inverse else count
    cosines, sines = _circle(op, used, outputs, count, total, back_to_real, onesided, dtype)
    perm = [i for i in range(rank - 1) if i != axis] + [axis]
    real = op.Transpose(op.Squeeze(op.Slice(x, [0], [1], [-1]), [-1]), perm=perm)
    imaginary: Value | None = None
    if pair != 1:
        # The sum is zero where a real signal has no such part.
        part = op.ReduceSum(op.Slice(x, [1], [2], [-1]), [-1], keepdims=0)
        imaginary = op.Transpose(part, perm=perm)
    sign = 1.0 if inverse else -1.0
    wave = op.Mul(sines, op.const(sign, dtype))
    parts = [op.MatMul(real, cosines)]
    if imaginary is not None:
        parts[0] = op.Sub(parts[0], op.MatMul(imaginary, wave))
    if not back_to_real:
        parts.append(op.MatMul(real, wave))
        if imaginary is not None:
            parts[1] = op.Add(parts[1], op.MatMul(imaginary, cosines))
    back = [perm.index(i) for i in range(rank - 1)]
    made = [op.Unsqueeze(op.Transpose(part, perm=back), [rank - 1]) for part in parts]
    result = made[0] if len(made) == 1 else op.Concat(*made, axis=-1)
    return op.Div(result, op.cast(op.Squeeze(count, [0]), dtype)) if inverse else result


def _circle(
    op: Builder,
    used: Value,
    outputs: Value,
    count: Value,
    total: int | None,
    back_to_real: bool,
    onesided: int,
    dtype: ir.DataType,
) -> tuple[Value, Value]:
    """Cosines and sines of each pair of positions; constants where the length is one.

    The product of the positions is brought below the length, so that the angle is exact.
    """
    if total is not None:
        rows = total // 2 + 1 if back_to_real else total
        columns = total // 2 + 1 if onesided and not back_to_real else total
        turns = np.outer(np.arange(rows), np.arange(columns)) % max(total, 1)
        angles = turns * (2 * math.pi / max(total, 1))
        weights = np.ones((rows, 1))
        if back_to_real:
            weights[1 : (total + 1) // 2] = 2
        kind = dtype.numpy()
        return (
            op.const((np.cos(angles) * weights).astype(kind)),
            op.const((np.sin(angles) * weights).astype(kind)),
        )
    row = op.Range(0, op.Squeeze(used, [0]), 1)
    column = op.Range(0, op.Squeeze(outputs, [0]), 1)
    rows_first = op.Unsqueeze(row, [1])
    turned = op.cast(op.Mod(op.Mul(rows_first, column), count), dtype)
    angle = op.Div(op.Mul(turned, 2 * math.pi), op.cast(count, dtype))
    cosines, sines = op.Cos(angle), op.Sin(angle)
    if back_to_real:
        twice = op.And(op.Greater(rows_first, 0), op.Less(op.Mul(rows_first, 2), count))
        weight = op.Where(twice, op.const(2, dtype), op.const(1, dtype))
        cosines, sines = op.Mul(cosines, weight), op.Mul(sines, weight)
    return cosines, sines


@pack.below(17, "STFT")
def stft(
    op: Builder,
    signal: Value,
    step: Value,
    window: Value | None = None,
    length: Value | None = None,
    *,
    onesided: int = 1,
) -> Value:
    """Frames by Gather, times the window, and their DFT."""
    if length is None:
        # One of the two is given.
        length = op.Size(window)
    length, step = op.cast(length, _INT64), op.cast(step, _INT64)
    total = op.Squeeze(sizes(op, signal, 1, 2), [0])
    frames = op.Add(op.Div(op.Sub(total, length), step), 1)
    starts = op.Mul(op.Range(0, frames, 1), step)
    places = op.Add(op.Unsqueeze(starts, [1]), op.Range(0, length, 1))
    parts = op.Gather(signal, places, axis=1)
    if window is not None:
        parts = op.Mul(parts, op.Unsqueeze(window, [1]))
    return op.DFT(parts, length, op.const(2, _INT64), onesided=onesided)


def _window(name: str, weights: tuple[float, ...]) -> Callable[..., Value]:
    def row(op: Builder, size: Value, *, output_datatype: int = 1, periodic: int = 1) -> Value:
        kind = ir.DataType(output_datatype)
        wide = ir.DataType.DOUBLE if kind == ir.DataType.DOUBLE else ir.DataType.FLOAT
        size = op.cast(size, _INT64)
        steps = op.cast(op.Range(0, size, 1), wide)
        period = op.cast(size if periodic else op.Sub(size, 1), wide)
        angle = op.Div(op.Mul(steps, 2 * math.pi), period)
        result = op.const(weights[0], wide)
        for times, weight in enumerate(weights[1:], 1):
            wave = op.Cos(angle if times == 1 else op.Mul(angle, times))
            result = op.Add(result, op.Mul(wave, weight))
        return op.cast(result, kind)

    row.__doc__ = f"{name} as its sum of cosines."
    return row


pack.below(17, "HannWindow")(_window("HannWindow", (0.5, -0.5)))
pack.below(17, "HammingWindow")(_window("HammingWindow", (25 / 46, 25 / 46 - 1)))
pack.below(17, "BlackmanWindow")(_window("BlackmanWindow", (0.42, -0.5, 0.08)))
