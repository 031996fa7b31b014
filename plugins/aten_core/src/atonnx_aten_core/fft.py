"""Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.dtypes import FLOATS
from atonnx.dispatch import Table
from atonnx_aten_core._axes import axis_of, dims_of, numel
from atonnx_aten_core._complex import as_pair, paired
from atonnx_aten_core._promote import HALF, default_float
from atonnx_aten_core.complex_math import conjugate

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
prims = torch.ops.prims
table = Table(__name__)

# What a transform is divided by: nothing, the root of its length, its length.
_NONE, _ROOT, _LENGTH = range(3)


def _norm(norm: str | None, forward: bool) -> int:
    if norm == "ortho":
        return _ROOT
    return _LENGTH if (norm == "forward") == forward else _NONE


class _Transform:
    """A transform over several axes: what DFT has divided by is made what was asked for at the end.

    ONNX Runtime's DFT of float32 loses half of the digits unless the length is a power of 2, so that
    other lengths are transformed in float64.
    """

    def __init__(self, op: Builder, x: Value, lengths: Sequence[Any]) -> None:
        self.op = op
        dtype = x.dtype if x.dtype in FLOATS else default_float()
        self.dtype = dtype
        native = op.opset >= 17
        plain = not native or all(_is_power_of_2(n) for n in lengths)
        kind = ir.DataType.FLOAT if dtype in HALF else dtype
        kind = kind if plain else ir.DataType.DOUBLE
        made = op.cast(x, kind)
        self.x: Value = paired(made) if x.is_complex else op.Unsqueeze(made, [-1])
        self.x.dims = (*dims_of(x), 2 if x.is_complex else 1)
        self.divided: Any = 1
        self.total = numel(lengths)

    def step(self, axis: int, length: Any, *, inverse: bool = False, onesided: bool = False) -> None:
        """DFT along an axis, which is brought to the length first."""
        op, dims = self.op, list(self.x.dims or ())
        half = onesided and inverse
        needed = length // 2 + 1 if half else length
        if half:
            self.x = resized(op, self.x, axis, dims[axis], needed)
            given: Value | None = op.size(length)
        else:
            given = None if dims[axis] == length else op.size(length)
        self.x = op.DFT(
            self.x,
            given,
            op.size(axis),
            inverse=int(inverse) or None,
            onesided=int(onesided) or None,
        )
        dims[axis] = length // 2 + 1 if onesided and not inverse else length
        dims[-1] = 1 if half else 2
        self.x.dims = tuple(dims)
        if inverse:
            self.divided = self.divided * length

    def conjugate(self) -> None:
        """The complex conjugates of what is transformed so far."""
        if (self.x.dims or ())[-1] == 2:
            dims = self.x.dims
            self.x = conjugate(self.op, paired(self.x))
            self.x.dims = dims

    def result(self, divisor: int) -> Value:
        """Divided as asked for, in the dtype of the input; real where the last transform made it so."""
        op, x = self.op, self.x
        dims = x.dims or ()
        is_real = dims[-1] == 1
        if is_real:
            x = op.Squeeze(x, [-1])
            x.dims = dims[:-1]
        x = self._divided(x, divisor)
        made = op.cast(x, self.dtype)
        return made if is_real else paired(made)

    def _divided(self, x: Value, divisor: int) -> Value:
        total, done, op = self.total, self.divided, self.op
        if divisor == _LENGTH and done == total or divisor == _NONE and _is_one(done):
            return x
        if not isinstance(total, SymSize) and not isinstance(done, SymSize):
            wanted = (1.0, math.sqrt(total), float(total))[divisor]
            factor = done / wanted
            return op.Mul(x, factor) if factor != 1 else x
        length = op.cast(op.size(total), x.dtype)
        if divisor == _ROOT:
            length = op.Sqrt(length)
            if done == total:
                return op.Mul(x, length)
        if not _is_one(done):
            x = op.Mul(x, op.cast(op.size(done), x.dtype))
        return x if divisor == _NONE else op.Div(x, length)


def _is_one(n: Any) -> bool:
    return isinstance(n, int) and n == 1


def _is_power_of_2(n: Any) -> bool:
    return isinstance(n, int) and n > 0 and not n & (n - 1)


def resized(op: Builder, x: Value, axis: int, size: Any, wanted: Any) -> Value:
    """An axis cut off, or filled up with zeros."""
    if size == wanted:
        return x
    facts = op.session.facts
    dims = list(x.dims or ())
    dims[axis] = wanted
    if not facts.compare(size, "<=", wanted):
        x = op.Slice(x, [0], op.shape([wanted]), [axis])
    if not facts.compare(size, ">=", wanted):
        missing = op.Max(op.Sub(op.size(wanted), op.size(size)), 0)
        x = op.Pad(x, op.Concat(op.const([0]), op.Reshape(missing, [1]), axis=0), None, [axis])
    x.dims = tuple(dims)
    return x


# ------------------------------------------------------- kinds of transforms


def _c2c(
    op: Builder, x: Value, axes: Sequence[int], lengths: Sequence[Any], divisor: int, forward: bool
) -> Value:
    if not axes:
        return as_pair(op, x, x.dtype if x.dtype in FLOATS else default_float())
    transform = _Transform(op, x, lengths)
    for axis, length in zip(axes, lengths, strict=True):
        transform.step(axis, length, inverse=not forward)
    return transform.result(divisor)


def _r2c(
    op: Builder,
    x: Value,
    axes: Sequence[int],
    lengths: Sequence[Any],
    divisor: int,
    forward: bool = True,
    onesided: bool = True,
) -> Value:
    """The last axis from real to half complex; the inverse is that of the conjugate."""
    transform = _Transform(op, x, lengths)
    transform.step(axes[-1], lengths[-1], onesided=onesided)
    if not forward:
        transform.conjugate()
    for axis, length in zip(axes[:-1], lengths[:-1], strict=True):
        transform.step(axis, length, inverse=not forward)
    return transform.result(divisor)


def _c2r(
    op: Builder, x: Value, axes: Sequence[int], lengths: Sequence[Any], divisor: int, forward: bool = False
) -> Value:
    """The last axis from half complex to real; forward it is the inverse of the conjugate."""
    z = x if x.is_complex else as_pair(op, x, x.dtype if x.dtype in FLOATS else default_float())
    if not x.is_complex:
        z.dims = (*dims_of(x), 2)
    transform = _Transform(op, z, lengths)
    for axis, length in zip(axes[:-1], lengths[:-1], strict=True):
        transform.step(axis, length, inverse=not forward)
    if forward:
        transform.conjugate()
    transform.step(axes[-1], lengths[-1], inverse=True, onesided=True)
    return transform.result(divisor)


@table.translate(aten._fft_c2c.default, complex="only")
def _fft_c2c(op: Builder, self: Value, dim: Sequence[int], normalization: int, forward: bool) -> Value:
    """DFT along each axis."""
    axes, lengths = _own(self, dim)
    return _c2c(op, self, axes, lengths, normalization, forward)


@table.translate(aten._fft_r2c.default, complex="only")
def _fft_r2c(op: Builder, self: Value, dim: Sequence[int], normalization: int, onesided: bool) -> Value:
    """DFT along each axis, one-sided along the last."""
    axes, lengths = _own(self, dim)
    return _r2c(op, self, axes, lengths, normalization, onesided=onesided)


@table.translate(aten._fft_c2r.default, complex="only")
def _fft_c2r(op: Builder, self: Value, dim: Sequence[int], normalization: int, last_dim_size: Any) -> Value:
    """Inverse DFT along each axis, one-sided along the last."""
    axes, lengths = _own(self, dim)
    return _c2r(op, self, axes, [*lengths[:-1], last_dim_size], normalization)


@table.translate(prims.fft_c2c.default, complex="only")
def fft_c2c(op: Builder, self: Value, *, dim: Sequence[int], forward: bool) -> Value:
    """DFT along each axis."""
    return _fft_c2c(op, self, dim, _NONE, forward)


@table.translate(prims.fft_r2c.default, complex="only")
def fft_r2c(op: Builder, self: Value, *, dim: Sequence[int], onesided: bool) -> Value:
    """DFT along each axis, one-sided along the last."""
    return _fft_r2c(op, self, dim, _NONE, onesided)


@table.translate(prims.fft_c2r.default, complex="only")
def fft_c2r(op: Builder, self: Value, *, dim: Sequence[int], last_dim_size: Any) -> Value:
    """Inverse DFT along each axis, one-sided along the last."""
    return _fft_c2r(op, self, dim, _NONE, last_dim_size)


def _own(x: Value, dim: Sequence[int]) -> tuple[list[int], list[Any]]:
    """Axes counted from the front, and their sizes."""
    sizes = dims_of(x)
    axes = [axis_of(d, len(sizes)) for d in dim]
    return axes, [sizes[axis] for axis in axes]


# ----------------------------------------------------------- one axis at once


@table.translate(aten.fft_fft.default, complex="also")
def fft_fft(op: Builder, self: Value, n: Any = None, dim: int = -1, norm: str | None = None) -> Value:
    """DFT."""
    axes, lengths = _given(self, None if n is None else [n], [dim])
    return _c2c(op, self, axes, lengths, _norm(norm, True), True)


@table.translate(aten.fft_ifft.default, complex="also")
def fft_ifft(op: Builder, self: Value, n: Any = None, dim: int = -1, norm: str | None = None) -> Value:
    """Inverse DFT."""
    axes, lengths = _given(self, None if n is None else [n], [dim])
    return _c2c(op, self, axes, lengths, _norm(norm, False), False)


@table.translate(aten.fft_rfft.default, complex="also")
def fft_rfft(op: Builder, self: Value, n: Any = None, dim: int = -1, norm: str | None = None) -> Value:
    """One-sided DFT."""
    axes, lengths = _given(self, None if n is None else [n], [dim])
    return _r2c(op, self, axes, lengths, _norm(norm, True))


@table.translate(aten.fft_ihfft.default, complex="also")
def fft_ihfft(op: Builder, self: Value, n: Any = None, dim: int = -1, norm: str | None = None) -> Value:
    """One-sided DFT, conjugated."""
    axes, lengths = _given(self, None if n is None else [n], [dim])
    return _r2c(op, self, axes, lengths, _norm(norm, False), forward=False)


@table.translate(aten.fft_irfft.default, complex="also")
def fft_irfft(op: Builder, self: Value, n: Any = None, dim: int = -1, norm: str | None = None) -> Value:
    """Inverse one-sided DFT."""
    axes, lengths = _given(self, None if n is None else [n], [dim], half=True)
    return _c2r(op, self, axes, lengths, _norm(norm, False))


@table.translate(aten.fft_hfft.default, complex="also")
def fft_hfft(op: Builder, self: Value, n: Any = None, dim: int = -1, norm: str | None = None) -> Value:
    """Inverse one-sided DFT of the conjugate, times its length."""
    axes, lengths = _given(self, None if n is None else [n], [dim], half=True)
    return _c2r(op, self, axes, lengths, _norm(norm, True), forward=True)


# --------------------------------------------------------------- several axes


def _given(x: Value, s: Any, dim: Any, half: bool = False) -> tuple[list[int], list[Any]]:
    """The axes of a transform, all without ``dim`` and ``s``, and its lengths.

    ``half``: the last axis is that of a one-sided spectrum, of which the default length is twice one less.
    """
    sizes = dims_of(x)
    if dim is not None:
        axes = [axis_of(d, len(sizes)) for d in dim]
    elif s is not None:
        axes = list(range(len(sizes) - len(s), len(sizes)))
    else:
        axes = list(range(len(sizes)))
    lengths = [sizes[axis] for axis in axes]
    if half and lengths:
        lengths[-1] = 2 * (lengths[-1] - 1)
    for i, length in enumerate(s or ()):
        if not (isinstance(length, int) and length == -1):
            lengths[i] = length
    return axes, lengths


@table.translate(aten.fft_fft2.default, complex="also")
def fft_fft2(
    op: Builder, self: Value, s: Any = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Value:
    """DFT along each axis."""
    return _c2c(op, self, *_given(self, s, dim), _norm(norm, True), True)


@table.translate(aten.fft_ifft2.default, complex="also")
def fft_ifft2(
    op: Builder, self: Value, s: Any = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Value:
    """Inverse DFT along each axis."""
    return _c2c(op, self, *_given(self, s, dim), _norm(norm, False), False)


@table.translate(aten.fft_rfft2.default, complex="also")
def fft_rfft2(
    op: Builder, self: Value, s: Any = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Value:
    """DFT along each axis, one-sided along the last."""
    return _r2c(op, self, *_given(self, s, dim), _norm(norm, True))


@table.translate(aten.fft_ihfft2.default, complex="also")
def fft_ihfft2(
    op: Builder, self: Value, s: Any = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Value:
    """One-sided DFT along the last axis, conjugated; inverse DFT along the others."""
    return _r2c(op, self, *_given(self, s, dim), _norm(norm, False), forward=False)


@table.translate(aten.fft_irfft2.default, complex="also")
def fft_irfft2(
    op: Builder, self: Value, s: Any = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Value:
    """Inverse DFT along each axis, one-sided along the last."""
    return _c2r(op, self, *_given(self, s, dim, half=True), _norm(norm, False))


@table.translate(aten.fft_hfft2.default, complex="also")
def fft_hfft2(
    op: Builder, self: Value, s: Any = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Value:
    """DFT along each axis; along the last the inverse one-sided one of the conjugate."""
    return _c2r(op, self, *_given(self, s, dim, half=True), _norm(norm, True), forward=True)


@table.translate(aten.fft_fftn.default, complex="also")
def fft_fftn(op: Builder, self: Value, s: Any = None, dim: Any = None, norm: str | None = None) -> Value:
    """DFT along each axis."""
    return _c2c(op, self, *_given(self, s, dim), _norm(norm, True), True)


@table.translate(aten.fft_ifftn.default, complex="also")
def fft_ifftn(op: Builder, self: Value, s: Any = None, dim: Any = None, norm: str | None = None) -> Value:
    """Inverse DFT along each axis."""
    return _c2c(op, self, *_given(self, s, dim), _norm(norm, False), False)


@table.translate(aten.fft_rfftn.default, complex="also")
def fft_rfftn(op: Builder, self: Value, s: Any = None, dim: Any = None, norm: str | None = None) -> Value:
    """DFT along each axis, one-sided along the last."""
    return _r2c(op, self, *_given(self, s, dim), _norm(norm, True))


@table.translate(aten.fft_ihfftn.default, complex="also")
def fft_ihfftn(op: Builder, self: Value, s: Any = None, dim: Any = None, norm: str | None = None) -> Value:
    """One-sided DFT along the last axis, conjugated; inverse DFT along the others."""
    return _r2c(op, self, *_given(self, s, dim), _norm(norm, False), forward=False)


@table.translate(aten.fft_irfftn.default, complex="also")
def fft_irfftn(op: Builder, self: Value, s: Any = None, dim: Any = None, norm: str | None = None) -> Value:
    """Inverse DFT along each axis, one-sided along the last."""
    return _c2r(op, self, *_given(self, s, dim, half=True), _norm(norm, False))


@table.translate(aten.fft_hfftn.default, complex="also")
def fft_hfftn(op: Builder, self: Value, s: Any = None, dim: Any = None, norm: str | None = None) -> Value:
    """DFT along each axis; along the last the inverse one-sided one of the conjugate."""
    return _c2r(op, self, *_given(self, s, dim, half=True), _norm(norm, True), forward=True)


@table.translate(aten.fft_fftfreq.default)
def fft_fftfreq(
    op: Builder,
    n: int,
    d: float = 1.0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """A constant."""
    return op.const(torch.fft.fftfreq(n, d, dtype=op.out.torch_dtype))


@table.translate(aten.fft_rfftfreq.default)
def fft_rfftfreq(
    op: Builder,
    n: int,
    d: float = 1.0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """A constant."""
    return op.const(torch.fft.rfftfreq(n, d, dtype=op.out.torch_dtype))


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    def x() -> torch.Tensor:
        return torch.linspace(-1, 2, 60).sin().reshape(3, 5, 4)

    def z() -> torch.Tensor:
        return torch.complex(x(), x().flip(0))

    near: dict[str, Any] = {"atol": 2e-5, "reason": "the order of summation is not the same"}
    c2c, halves = ("fft", "ifft"), ("irfft", "hfft")
    found = []
    for end in ("", "2", "n"):
        lengths, several = ((6, 1), (3, 0)) if not end else (([6, 3], [1, 2]), ([3, 4], [0, 1]))
        for args in ((), (*lengths, "ortho"), (*several, "forward")):
            for name in c2c:
                overload = getattr(aten, f"fft_{name}{end}").default
                found += [OpSample(overload, (t(), *args), **near) for t in (x, z)]
            for name in halves:
                overload = getattr(aten, f"fft_{name}{end}").default
                found.append(OpSample(overload, (z(), *args), **near))
            for name in ("rfft", "ihfft"):
                overload = getattr(aten, f"fft_{name}{end}").default
                found.append(OpSample(overload, (x(), *args), **near))
    return [
        *found,
        *(
            OpSample(f.default, args, kwargs)
            for f in (aten.fft_fftfreq, aten.fft_rfftfreq)
            for args, kwargs in (((5,), {}), ((6, 0.3), {"dtype": torch.float16}))
        ),
        OpSample(aten._fft_c2c.default, (z(), [0, 1], 1, False), **near),
        OpSample(aten._fft_r2c.default, (x(), [0, 1], 2, True), **near),
        OpSample(aten._fft_r2c.default, (x(), [1], 0, False), **near),
        OpSample(aten._fft_c2r.default, (z(), [0, 1], 2, 9), **near),
        OpSample(prims.fft_c2c.default, (z(),), {"dim": [1], "forward": True}, **near),
        OpSample(prims.fft_r2c.default, (x(),), {"dim": [1], "onesided": True}, **near),
        OpSample(prims.fft_c2r.default, (z(),), {"dim": [1], "last_dim_size": 8}, **near),
    ]
