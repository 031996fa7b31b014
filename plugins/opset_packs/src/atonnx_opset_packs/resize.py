"""Resize."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import fixed_size, rank_of, refuse, sizes

pack = OpsetPack(__name__)

_FLOAT = ir.DataType.FLOAT


def _given(value: Value | None) -> Value | None:
    """None for a constant without elements, as for an input that is left out."""
    if value is None or (value.const_value is not None and value.const_value.size == 0):
        return None
    return value


@pack.below(19, "Resize")
def resize_19(op: Builder, x: Value, *inputs: Value | None, **attributes: Any) -> Value:
    """Resize, without the mode that opset 19 brought."""
    if attributes.get("coordinate_transformation_mode") == "half_pixel_symmetric":
        raise refuse(op, "Resize with half_pixel_symmetric", 19)
    return op.at(18).Resize(x, *inputs, **attributes)


@pack.above(11, "Resize")
def resize_up(
    op: Builder,
    x: Value,
    roi: Value | None = None,
    scales: Value | None = None,
    wanted: Value | None = None,
    **attributes: Any,
) -> Value:
    """Resize with the inputs left out that opset 11 has empty.

    Raises:
        UnsupportedOpError: the mode is one that opset 13 dropped.
    """
    if attributes.get("coordinate_transformation_mode") == "tf_half_pixel_for_nn":
        raise refuse(op, "Resize with tf_half_pixel_for_nn", 11)
    return op.Resize(x, _given(roi), _given(scales), _given(wanted), **attributes)


@pack.above(18, "Resize")
@pack.above(13, "Resize")
def resize_again(op: Builder, x: Value, *inputs: Value | None, **attributes: Any) -> Value:
    """Resize, unchanged in what it took."""
    return op.Resize(x, *inputs, **attributes)


@pack.below(18, "Resize")
def resize_18(
    op: Builder,
    x: Value,
    roi: Value | None = None,
    scales: Value | None = None,
    wanted: Value | None = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    keep_aspect_ratio_policy: str = "stretch",
    **attributes: Any,
) -> Value:
    """Resize with a number for each axis; with antialiasing, a product with the weights of each axis."""
    if keep_aspect_ratio_policy != "stretch":
        raise refuse(op, f"Resize that is {keep_aspect_ratio_policy}", 18)
    roi, scales, wanted = _given(roi), _given(scales), _given(wanted)
    rank = rank_of(op, x, "Resize", 18)
    where = list(range(rank)) if axes is None else [axis % rank for axis in axes]
    if antialias and attributes.get("mode", "nearest") != "nearest":
        return _antialiased(op, x, scales, wanted, where, **attributes)
    if axes is not None:
        one, zero = (op.const(np.array([n], np.float32)) for n in (1, 0))
        if scales is not None:
            scales = _spread(op, scales, where, [one] * rank)
        if wanted is not None:
            own = [sizes(op, x, axis, axis + 1 if axis + 1 < rank else None) for axis in range(rank)]
            wanted = _spread(op, wanted, where, own)
        if roi is not None:
            one, zero = op.cast(one, roi.dtype), op.cast(zero, roi.dtype)
            both = [*where, *(rank + axis for axis in where)]
            roi = _spread(op, roi, both, [zero] * rank + [one] * rank)
    return op.at(13).Resize(x, roi, scales, wanted, **attributes)


def _spread(op: Builder, values: Value, where: Sequence[int], others: Sequence[Value]) -> Value:
    """Numbers for some axes among those of all others."""
    if values.const_value is not None and all(other.const_value is not None for other in others):
        whole = np.concatenate([other.const_value.numpy().reshape(1) for other in others])  # type: ignore[union-attr]
        whole[list(where)] = values.const_value.numpy()
        return op.const(whole)
    parts = list(others)
    for index, axis in enumerate(where):
        parts[axis] = op.Slice(values, [index], [index + 1])
    return op.Concat(*parts, axis=0)


@pack.below(13, "Resize")
def resize_13(
    op: Builder,
    x: Value,
    roi: Value | None = None,
    scales: Value | None = None,
    wanted: Value | None = None,
    **attributes: Any,
) -> Value:
    """Resize with empty tensors for the inputs that opset 11 does not leave out."""
    empty = op.const(np.zeros(0, np.float32))
    roi, scales = (empty if value is None else value for value in (roi, scales))
    inputs = (x, roi, scales) if wanted is None else (x, roi, scales, wanted)
    return op.at(11).Resize(*inputs, **attributes)


def _antialiased(
    op: Builder,
    x: Value,
    scales: Value | None,
    wanted: Value | None,
    where: Sequence[int],
    *,
    mode: str,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    nearest_mode: str = "",
) -> Value:
    """Each axis in turn as a product with its matrix of weights."""
    if coordinate_transformation_mode not in (
        "half_pixel",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
    ):
        raise refuse(op, f"Resize with antialiasing and {coordinate_transformation_mode}", 18)
    rank = x.rank
    kernel = functools.partial(_filter, op, a=None if mode == "linear" else cubic_coeff_a)
    for index, axis in enumerate(where):
        length = sizes(op, x, axis, axis + 1 if axis + 1 < rank else None)
        ratio: Value | None = None
        if wanted is not None:
            size = op.cast(op.Slice(wanted, [index], [index + 1]), ir.DataType.INT64)
        else:
            ratio = op.Slice(scales, [index], [index + 1])
            size = op.cast(op.Floor(op.Mul(op.cast(length, _FLOAT), ratio)), ir.DataType.INT64)
        count = fixed_size(x, axis)
        constant = None if size.const_value is None else int(size.const_value.numpy().reshape(()))
        if wanted is not None and count is not None and constant == count:
            continue
        old, new = op.cast(length, _FLOAT), op.cast(size, _FLOAT)
        scale = op.Div(new, old) if ratio is None else ratio
        centers = op.cast(op.Range(0, op.Squeeze(size, [0]), 1), _FLOAT)
        centers = _original(op, centers, scale, old, new, coordinate_transformation_mode)
        low, high = op.const([0], ir.DataType.INT64), length
        shrunk = op.Min(scale, op.const(1, _FLOAT))
        if not exclude_outside:
            # The pixels at the ends stand for those beyond, as far as the filter reaches.
            reach = op.Ceil(op.Div(op.const(1 if mode == "linear" else 2, _FLOAT), shrunk))
            margin = op.Add(op.cast(reach, ir.DataType.INT64), 1)
            x = op.Pad(x, op.Concat(margin, margin, axis=0), None, [axis], mode="edge")
            low, high = op.Neg(margin), op.Add(length, margin)
        places = op.cast(op.Range(op.Squeeze(low, [0]), op.Squeeze(high, [0]), 1), _FLOAT)
        distance = op.Sub(places, op.Unsqueeze(centers, [1]))
        weights = kernel(op.Mul(distance, shrunk))
        weights = op.Div(weights, op.ReduceSum(weights, [1]))
        perm = [i for i in range(rank) if i != axis] + [axis]
        back = [perm.index(i) for i in range(rank)]
        rows = x if axis == rank - 1 else op.Transpose(x, perm=perm)
        made = op.cast(op.MatMul(op.cast(rows, _FLOAT), op.Transpose(weights, perm=[1, 0])), x.dtype)
        x = made if axis == rank - 1 else op.Transpose(made, perm=back)
    return x


def _original(op: Builder, at: Value, scale: Value, old: Value, new: Value, mode: str) -> Value:
    """Where in the input a place of the output lies."""
    if mode == "asymmetric":
        return op.Div(at, scale)
    if mode == "align_corners":
        last = op.Max(op.Sub(new, 1), op.const(1, _FLOAT))
        return op.Div(op.Mul(at, op.Sub(old, 1)), last)
    middle = op.Sub(op.Div(op.Add(at, 0.5), scale), 0.5)
    if mode == "pytorch_half_pixel":
        return op.Where(op.Greater(new, 1), middle, op.const(0, _FLOAT))
    return middle


def _filter(op: Builder, t: Value, a: float | None) -> Value:
    """The triangle, or the cubic filter with coefficient ``a``."""
    t = op.Abs(t)
    if a is None:
        return op.Max(op.Sub(1, t), op.const(0, _FLOAT))
    near = op.Add(op.Mul(op.Mul(op.Sub(op.Mul(t, a + 2), a + 3), t), t), 1)
    far = op.Mul(op.Sub(op.Mul(op.Add(op.Mul(op.Sub(t, 5), t), 8), t), 4), a)
    return op.Where(op.Less(t, 1), near, op.Where(op.Less(t, 2), far, op.const(0, _FLOAT)))
