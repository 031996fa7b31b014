"""Resizing of signals, images and volumes: every ``upsample`` operator of torch."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn import _filters
from atonnx_aten_nn._common import D, sizes_of

aten = torch.ops.aten
table = Table(__name__)

Factors = tuple["float | None", ...]

# Input sizes up to which a rule is tried that cannot be proved for all.
_TRIED = 4096


def _factors(values: Any, spatial: int) -> Factors:
    """One factor an axis; None where the ratio of the sizes is the factor."""
    items = [None] * spatial if values is None else list(values)
    return tuple(float(item) if item is not None and item > 0 else None for item in items)


def _frame(op: Builder, x: Value, factors: Factors) -> tuple[list[Any], list[Any], Factors]:
    """The old and new spatial sizes, and the factors that are not just their ratio."""
    old, new = list(sizes_of(x)[2:]), list(op.out.dims[2:])
    kept = tuple(
        None if f is None or (isinstance(o, int) and o * f == n) else f
        for o, n, f in zip(old, new, factors, strict=True)
    )
    return old, new, kept


@functools.lru_cache(maxsize=256)
def _scale(factor: float, size: int | None) -> np.float32 | None:
    """The factor in float32, such that ONNX finds torch's size: at one input size, or at all tried."""
    olds = np.arange(1, _TRIED) if size is None else np.array([size])
    wanted = np.floor(olds * factor)
    for candidate in (np.float32(factor), np.nextafter(np.float32(factor), np.float32(np.inf))):
        if (np.floor(olds.astype(np.float32) * candidate) == wanted).all():
            return candidate
    return None


def _targets(
    op: Builder, old: Sequence[Any], new: Sequence[Any], factors: Factors
) -> dict[str, Value] | None:
    """Resize's ``scales`` or ``sizes``; None where neither has torch's places and sizes."""
    if all(factor is None for factor in factors):
        return {"sizes": op.shape(new)}
    scales = []
    for o, n, factor in zip(old, new, factors, strict=True):
        if factor is not None:
            scales.append(_scale(factor, o if isinstance(o, int) else None))
        elif isinstance(o, int) and isinstance(n, int):
            exact = n / o
            scales.append(_scale(exact, o) if o * exact == n else None)
        else:
            scales.append(None)
    if any(scale is None for scale in scales):
        return None
    return {"scales": op.const(np.array(scales, np.float32))}


def _written(op: Builder, x: Value, targets: dict[str, Value], **attributes: Any) -> Value:
    return op.Resize(
        x,
        None,
        targets.get("scales"),
        targets.get("sizes"),
        axes=list(range(2, x.rank)),
        **attributes,
    )


def _same(op: Builder, x: Value, old: Sequence[Any], new: Sequence[Any], factors: Factors) -> bool:
    return old == new and all(factor is None or factor == 1 for factor in factors)


# ---------------------------------------------------------- linear and cubic


def _smooth(op: Builder, x: Value, kind: str, align: bool, values: Any, antialias: bool = False) -> Value:
    """Resize; products with a matrix of weights for each axis where it has no such form.

    That is: float64, which runtimes do not resize; antialiasing with aligned corners, of which
    torch has its own notion; Lanczos' filter; factors that float32 cannot hold well enough.
    """
    old, new, factors = _frame(op, x, (None,) * (x.rank - 2) if align else _factors(values, x.rank - 2))
    if _same(op, x, old, new, factors):
        return x
    if x.dtype == D.UINT8:
        return _filters.resized_bytes(op, x, kind, align, antialias, factors)
    special = x.dtype == D.DOUBLE or kind == "lanczos" or (antialias and align)
    targets = None if special else _targets(op, old, new, factors)
    if targets is None:
        return _filters.resized(op, x, kind, align, antialias, factors)
    attributes: dict[str, Any] = {"mode": kind}
    if align:
        attributes["coordinate_transformation_mode"] = "align_corners"
    if kind == "cubic":
        attributes["cubic_coeff_a"] = -0.5 if antialias else -0.75
    if antialias:
        attributes.update(antialias=1, exclude_outside=1)
    return _written(op, x, targets, **attributes)


@table.translate(aten.upsample_linear1d.vec)
def linear1d_vec(
    op: Builder, input: Value, output_size: Any, align_corners: bool, scale_factors: Any
) -> Value:
    """Resize."""
    return _smooth(op, input, "linear", align_corners, scale_factors)


@table.translate(aten.upsample_bilinear2d.vec)
def bilinear2d_vec(
    op: Builder, input: Value, output_size: Any, align_corners: bool, scale_factors: Any
) -> Value:
    """Resize."""
    return _smooth(op, input, "linear", align_corners, scale_factors)


@table.translate(aten.upsample_trilinear3d.vec)
def trilinear3d_vec(
    op: Builder, input: Value, output_size: Any, align_corners: bool, scale_factors: Any
) -> Value:
    """Resize."""
    return _smooth(op, input, "linear", align_corners, scale_factors)


@table.translate(aten.upsample_bicubic2d.vec)
def bicubic2d_vec(
    op: Builder, input: Value, output_size: Any, align_corners: bool, scale_factors: Any
) -> Value:
    """Resize."""
    return _smooth(op, input, "cubic", align_corners, scale_factors)


@table.translate(aten._upsample_bilinear2d_aa.vec)
def bilinear2d_aa_vec(
    op: Builder, input: Value, output_size: Any, align_corners: bool, scale_factors: Any
) -> Value:
    """Resize; MatMul along each axis where corners are aligned."""
    return _smooth(op, input, "linear", align_corners, scale_factors, True)


@table.translate(aten._upsample_bicubic2d_aa.vec)
def bicubic2d_aa_vec(
    op: Builder, input: Value, output_size: Any, align_corners: bool, scale_factors: Any
) -> Value:
    """Resize; MatMul along each axis where corners are aligned."""
    return _smooth(op, input, "cubic", align_corners, scale_factors, True)


@table.translate(aten._upsample_lanczos2d_aa.vec)
def lanczos2d_aa_vec(
    op: Builder, input: Value, output_size: Any, align_corners: bool, scale_factors: Any
) -> Value:
    """MatMul along each axis, for ONNX has no such filter."""
    return _smooth(op, input, "lanczos", align_corners, scale_factors, True)


@table.translate(aten.upsample_linear1d.default)
def linear1d(
    op: Builder, self: Value, output_size: Any, align_corners: bool, scales: float | None = None
) -> Value:
    """Resize."""
    return _smooth(op, self, "linear", align_corners, (scales,))


@table.translate(aten.upsample_bilinear2d.default)
def bilinear2d(
    op: Builder,
    self: Value,
    output_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Value:
    """Resize."""
    return _smooth(op, self, "linear", align_corners, (scales_h, scales_w))


@table.translate(aten.upsample_trilinear3d.default)
def trilinear3d(
    op: Builder,
    self: Value,
    output_size: Any,
    align_corners: bool,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Value:
    """Resize."""
    return _smooth(op, self, "linear", align_corners, (scales_d, scales_h, scales_w))


@table.translate(aten.upsample_bicubic2d.default)
def bicubic2d(
    op: Builder,
    self: Value,
    output_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Value:
    """Resize."""
    return _smooth(op, self, "cubic", align_corners, (scales_h, scales_w))


@table.translate(aten._upsample_bilinear2d_aa.default)
def bilinear2d_aa(
    op: Builder,
    self: Value,
    output_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Value:
    """Resize; MatMul along each axis where corners are aligned."""
    return _smooth(op, self, "linear", align_corners, (scales_h, scales_w), True)


@table.translate(aten._upsample_bicubic2d_aa.default)
def bicubic2d_aa(
    op: Builder,
    self: Value,
    output_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Value:
    """Resize; MatMul along each axis where corners are aligned."""
    return _smooth(op, self, "cubic", align_corners, (scales_h, scales_w), True)


@table.translate(aten._upsample_lanczos2d_aa.default)
def lanczos2d_aa(
    op: Builder,
    self: Value,
    output_size: Any,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Value:
    """MatMul along each axis, for ONNX has no such filter."""
    return _smooth(op, self, "lanczos", align_corners, (scales_h, scales_w), True)


# -------------------------------------------------------------------- nearest


def _torch_places(old: int, new: int, factor: float | None, exact: bool) -> Any:
    """The input places that torch reads, in its float32 arithmetic."""
    ratio = np.float32(1 / factor) if factor is not None else np.float32(old) / np.float32(new)
    at = np.arange(new)
    if old == new or (not exact and new == 2 * old):
        return at * old // new
    found = ((at + 0.5) * np.float64(ratio)).astype(np.float32) if exact else at.astype(np.float32) * ratio
    return np.minimum(np.floor(found).astype(np.int64), old - 1)


def _resize_places(old: int, new: int, scale: np.float32 | None, exact: bool) -> Any:
    """Those that Resize reads, in the float32 arithmetic of runtimes."""
    ratio = np.float32(new) / np.float32(old) if scale is None else scale
    at = np.arange(new).astype(np.float32)
    if exact:
        at = (at + np.float32(0.5)) / ratio - np.float32(0.5)
        # Half away from zero.
        found = np.where(at < 0, np.ceil(at - np.float32(0.5)), np.floor(at + np.float32(0.5)))
    else:
        found = np.floor(at / ratio)
    return np.clip(found.astype(np.int64), 0, old - 1)


def _power_of_two(factor: float) -> bool:
    return math.frexp(factor)[0] == 0.5


@functools.lru_cache(maxsize=256)
def _alike(old: int | None, new: int | None, factor: float | None, exact: bool) -> bool:
    """Whether Resize reads what torch reads, at the sizes that are known or at all tried."""
    if factor is not None and _power_of_two(factor):
        return True
    if factor is None and (new is None or (old is None and new > _TRIED)):
        return False
    scale = None if factor is None else _scale(factor, old)
    if factor is not None and scale is None:
        return False
    for o in range(1, _TRIED // 4) if old is None else (old,):
        n = new if new is not None else math.floor(o * factor)  # type: ignore[operator]
        if (_torch_places(o, n, factor, exact) != _resize_places(o, n, scale, exact)).any():
            return False
    return True


def _nearest(op: Builder, x: Value, values: Any, exact: bool) -> Value:
    """Resize; where rounding makes it read other places than torch, Gather along each axis."""
    old, new, factors = _frame(op, x, _factors(values, x.rank - 2))
    if _same(op, x, old, new, factors):
        return x
    fits = x.dtype != D.DOUBLE and all(
        _alike(*(s if isinstance(s, int) else None for s in (o, n)), factor, exact)
        for o, n, factor in zip(old, new, factors, strict=True)
        if o != n or factor is not None
    )
    targets = _targets(op, old, new, factors) if fits else None
    if targets is not None:
        modes = (
            {"nearest_mode": "round_prefer_ceil"}
            if exact
            else {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        )
        return _written(op, x, targets, mode="nearest", **modes)
    for index, (o, n, factor) in enumerate(zip(old, new, factors, strict=True)):
        if o != n or factor is not None:
            x = op.Gather(x, _places(op, o, n, factor, exact), axis=index + 2)
    return x


def _places(op: Builder, old: Any, new: Any, factor: float | None, exact: bool) -> Value:
    if isinstance(old, int) and isinstance(new, int):
        return op.const(_torch_places(old, new, factor, exact))
    at = op.Range(0, op.size(new), 1)
    if factor is not None:
        ratio = op.const(np.float32(1 / factor))
    else:
        ratio = op.Div(op.cast(op.size(old), D.FLOAT), op.cast(op.size(new), D.FLOAT))
    if exact:
        middle = op.Add(op.cast(at, D.DOUBLE), 0.5)
        found = op.cast(op.Mul(middle, op.cast(ratio, D.DOUBLE)), D.FLOAT)
    else:
        found = op.Mul(op.cast(at, D.FLOAT), ratio)
    return op.Min(op.cast(op.Floor(found), D.INT64), op.size(old - 1))


@table.translate(aten.upsample_nearest1d.vec, aten.upsample_nearest2d.vec, aten.upsample_nearest3d.vec)
def nearest_vec(op: Builder, input: Value, output_size: Any, scale_factors: Any) -> Value:
    """Resize, or Gather along each axis where rounding tells them apart."""
    return _nearest(op, input, scale_factors, False)


@table.translate(
    aten._upsample_nearest_exact1d.vec, aten._upsample_nearest_exact2d.vec, aten._upsample_nearest_exact3d.vec
)
def nearest_exact_vec(op: Builder, input: Value, output_size: Any, scale_factors: Any) -> Value:
    """Resize, or Gather along each axis where rounding tells them apart."""
    return _nearest(op, input, scale_factors, True)


@table.translate(aten.upsample_nearest1d.default)
def nearest1d(op: Builder, self: Value, output_size: Any, scales: float | None = None) -> Value:
    """Resize, or Gather along each axis where rounding tells them apart."""
    return _nearest(op, self, (scales,), False)


@table.translate(aten.upsample_nearest2d.default)
def nearest2d(
    op: Builder, self: Value, output_size: Any, scales_h: float | None = None, scales_w: float | None = None
) -> Value:
    """Resize, or Gather along each axis where rounding tells them apart."""
    return _nearest(op, self, (scales_h, scales_w), False)


@table.translate(aten.upsample_nearest3d.default)
def nearest3d(
    op: Builder,
    self: Value,
    output_size: Any,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Value:
    """Resize, or Gather along each axis where rounding tells them apart."""
    return _nearest(op, self, (scales_d, scales_h, scales_w), False)


@table.translate(aten._upsample_nearest_exact1d.default)
def nearest_exact1d(op: Builder, self: Value, output_size: Any, scales: float | None = None) -> Value:
    """Resize, or Gather along each axis where rounding tells them apart."""
    return _nearest(op, self, (scales,), True)


@table.translate(aten._upsample_nearest_exact2d.default)
def nearest_exact2d(
    op: Builder, self: Value, output_size: Any, scales_h: float | None = None, scales_w: float | None = None
) -> Value:
    """Resize, or Gather along each axis where rounding tells them apart."""
    return _nearest(op, self, (scales_h, scales_w), True)


@table.translate(aten._upsample_nearest_exact3d.default)
def nearest_exact3d(
    op: Builder,
    self: Value,
    output_size: Any,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Value:
    """Resize, or Gather along each axis where rounding tells them apart."""
    return _nearest(op, self, (scales_d, scales_h, scales_w), True)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    def x(spatial: int, *more: Any) -> Callable[[], tuple[Any, ...]]:
        return lambda: (torch.randn(2, 3, *(7, 6, 8)[:spatial]), *more)

    nearest = (aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_nearest3d)
    exact = (
        aten._upsample_nearest_exact1d,
        aten._upsample_nearest_exact2d,
        aten._upsample_nearest_exact3d,
    )
    linear = (aten.upsample_linear1d, aten.upsample_bilinear2d, aten.upsample_trilinear3d)
    found = []
    for n in (1, 2, 3):
        double, half = [size * 2 for size in (7, 6, 8)[:n]], [s // 2 for s in (7, 6, 8)[:n]]
        for packet in (nearest[n - 1], exact[n - 1]):
            found.append(OpSample(packet.vec, x(n, None, [2.0] * n), expect="Resize:1!"))
            found.append(OpSample(packet.default, x(n, half), options={"dynamic": False}))
        found.append(OpSample(linear[n - 1].vec, x(n, None, False, [2.0] * n), expect="Resize:1!"))
        found.append(OpSample(linear[n - 1].default, x(n, double, True), expect="Resize:1"))
    for packet in (aten.upsample_bicubic2d, aten._upsample_bilinear2d_aa, aten._upsample_bicubic2d_aa):
        found.append(OpSample(packet.vec, x(2, [5, 9], False, None)))
        found.append(OpSample(packet.default, x(2, [5, 9], True)))
    found.append(OpSample(aten._upsample_lanczos2d_aa.vec, x(2, [5, 9], False, None)))
    found.append(OpSample(aten._upsample_lanczos2d_aa.default, x(2, [5, 9], True)))
    return found
