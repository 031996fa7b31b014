"""Padding and, by negative numbers, cropping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.sizes import smax
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_nn._common import D, filled, scalar_of, sizes_of

aten = torch.ops.aten
table = Table(__name__)

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_ENUM = ("reflect", "replicate", "circular", "constant")
_LAST = (1 << 63) - 1


def _ends(x: Value, pad: Sequence[Any]) -> tuple[list[int], list[Any], list[Any]]:
    """Axes that change, and how much is put before and behind each; torch begins with the last axis."""
    rank = x.rank
    axes, before, after = [], [], []
    for i in range(len(pad) // 2):
        first, last = pad[2 * i], pad[2 * i + 1]
        if first != 0 or last != 0:
            axes.append(rank - 1 - i)
            before.append(first)
            after.append(last)
    return axes[::-1], before[::-1], after[::-1]


def _sign(op: Builder, number: Any) -> int | None:
    """1 for what is never negative, -1 for what is never positive, None where it depends."""
    if isinstance(number, SymSize):
        bounds = op.session.facts.bounds(number.expr)
        if bounds is None:
            return None
        return 1 if bounds[0] >= 0 else -1 if bounds[1] <= 0 else None
    return 1 if number >= 0 else -1


def _part(op: Builder, numbers: Sequence[Any], positive: bool) -> list[Any]:
    """The positive or the negative part of each number; the latter without its sign."""
    wanted = 1 if positive else -1
    parts: list[Any] = []
    for number in numbers:
        sign = _sign(op, number)
        signed = number if positive else -number
        parts.append(smax(signed, 0) if sign is None else signed if sign == wanted else 0)
    return parts


def _cropped(
    op: Builder, x: Value, axes: list[int], before: list[Any], after: list[Any], sizes: Sequence[Any]
) -> Value:
    """``x``, of the given sizes, without what negative numbers cut off."""
    starts, behind = _part(op, before, False), _part(op, after, False)
    found = [i for i in range(len(axes)) if starts[i] != 0 or behind[i] != 0]
    if not found:
        return x
    ends = []
    for i in found:
        if isinstance(behind[i], int):
            ends.append(-behind[i] if behind[i] else _LAST)
        else:
            ends.append(sizes[axes[i]] - behind[i])
    return op.Slice(x, op.shape([starts[i] for i in found]), op.shape(ends), [axes[i] for i in found])


def _never_zero(op: Builder, size: Any) -> bool:
    return op.session.facts.provably_nonzero(size.expr) if isinstance(size, SymSize) else size != 0


def _wrapped(op: Builder, x: Value, axes: list[int], adds: Sequence[Any]) -> Value:
    """Both ends put before and behind: ONNX Runtime does not wrap what is empty."""
    for i, axis in enumerate(axes):
        before, after = adds[i], adds[i + len(axes)]
        parts = [x]
        if before != 0:
            # Not from the end: a size that turns out to be 0 would ask for everything.
            length = op.Shape(x, start=axis, end=axis + 1 if axis + 1 < x.rank else None)
            parts.insert(0, op.Slice(x, op.Sub(length, op.shape([before])), length, [axis]))
        if after != 0:
            parts.append(op.Slice(x, [0], op.shape([after]), [axis]))
        x = op.Concat(*parts, axis=axis) if len(parts) > 1 else x
    return x


def padded(op: Builder, x: Value, pad: Sequence[Any], mode: str, value: Any = None) -> Value:
    """Pad; where it is not by a constant, numbers below zero are a Slice.

    Reflection and replication may read what is cropped at the other end, wrapping around may not.
    """
    axes, before, after = _ends(x, pad)
    if not axes:
        return x
    if mode == "constant":
        if value is not None:
            value = bool(value) if x.dtype == D.BOOL else scalar_of(x, value)
        fill = None if value is None or value == 0 else op.const(value, x.dtype)
        return op.Pad(x, op.shape([*before, *after]), fill, axes)
    if any(isinstance(size, int) and size == 0 for size in sizes_of(x)):
        return filled(op, 0, op.out.dims, x.dtype)  # runtimes do not pad nothing
    wraps = mode == "circular"
    sizes = list(sizes_of(x))
    y = _cropped(op, x, axes, before, after, sizes) if wraps else x
    adds = [*_part(op, before, True), *_part(op, after, True)]
    if wraps and not all(_never_zero(op, size) for size in sizes):
        return _wrapped(op, y, axes, adds)
    if any(number != 0 for number in adds):
        y = op.Pad(y, op.shape(adds), None, axes, mode=_MODES[mode])
    if wraps:
        return y
    for i, axis in enumerate(axes):
        sizes[axis] = sizes[axis] + adds[i] + adds[i + len(axes)]
    return _cropped(op, y, axes, before, after, sizes)


@table.translate(aten.pad.default)
def pad(op: Builder, self: Value, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Value:
    """Pad, with a Slice for what is cropped."""
    if mode not in _MODES:
        raise UnsupportedOpError.here(op, f"padding by {mode}", hint=f"the modes are {', '.join(_MODES)}")
    return padded(op, self, pad, mode, value)


@table.translate(aten._pad_enum.default)
def pad_enum(op: Builder, self: Value, pad: Sequence[Any], mode: int, value: float | None = None) -> Value:
    """Pad, with a Slice for what is cropped."""
    return padded(op, self, pad, _ENUM[mode], value)


@table.translate(aten._pad_circular.default)
def pad_circular(op: Builder, self: Value, pad: Sequence[Any]) -> Value:
    """Pad that wraps around."""
    return padded(op, self, pad, "circular")


@table.translate(aten.constant_pad_nd.default)
def constant_pad_nd(op: Builder, self: Value, pad: Sequence[Any], value: Any = 0) -> Value:
    """Pad."""
    return padded(op, self, pad, "constant", value)


@table.translate(
    aten.reflection_pad1d.default,
    aten.reflection_pad2d.default,
    aten.reflection_pad3d.default,
)
def reflection_pad(op: Builder, self: Value, padding: Sequence[Any]) -> Value:
    """Pad by reflection."""
    return padded(op, self, padding, "reflect")


@table.translate(
    aten.replication_pad1d.default,
    aten.replication_pad2d.default,
    aten.replication_pad3d.default,
)
def replication_pad(op: Builder, self: Value, padding: Sequence[Any]) -> Value:
    """Pad with the elements at the edges."""
    return padded(op, self, padding, "replicate")


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    def x(spatial: int, *more: Any) -> Any:
        return lambda: (torch.randn(2, 3, *(5, 4, 6)[:spatial]), *more)

    one: dict[str, Any] = {"expect": "Pad:1!"}
    reflection = (aten.reflection_pad1d, aten.reflection_pad2d, aten.reflection_pad3d)
    replication = (aten.replication_pad1d, aten.replication_pad2d, aten.replication_pad3d)
    return [
        *(OpSample(aten.pad.default, x(2, [1, 2, 0, 1], mode), **one) for mode in ("constant", "reflect")),
        *(OpSample(aten.pad.default, x(2, [1, 2, -1, 1], mode)) for mode in ("replicate", "circular")),
        OpSample(aten._pad_enum.default, x(1, [1, 2], 1)),
        OpSample(aten._pad_circular.default, x(1, [1, 2])),
        OpSample(aten.constant_pad_nd.default, x(2, [1, -1, 0, 2], 1.5), **one),
        *(OpSample(p.default, x(n + 1, [1, 2] * (n + 1))) for n, p in enumerate(reflection)),
        *(OpSample(p.default, x(n + 1, [1, 2] * (n + 1))) for n, p in enumerate(replication)),
    ]
