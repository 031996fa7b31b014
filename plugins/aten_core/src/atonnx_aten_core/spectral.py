"""Short-time Fourier transforms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_core._axes import dims_of, rank_of
from atonnx_aten_core._complex import imaginary, real
from atonnx_aten_core._promote import HALF

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
# The longest transform of which the matrix is stored; a longer one is computed where the model is loaded.
_STORED = 1024


def _window(op: Builder, window: Value | None, length: int, size: int, dtype: ir.DataType) -> Value | None:
    """The window in the middle of ``size`` zeros; None for ones."""
    if window is None:
        if length == size:
            return None
        window = op.const(np.ones(length), dtype)
    made = op.cast(window, dtype)
    left = (size - length) // 2
    if size > length:
        made = op.Pad(made, [left, size - length - left], None, [0])
    made.is_complex = window.is_complex
    return made


def _circle(op: Builder, rows: int, size: int, dtype: ir.DataType) -> tuple[Value, Value]:
    """Cosines and sines of ``rows`` frequencies at ``size`` places."""
    if size <= _STORED:
        turns = np.outer(np.arange(rows), np.arange(size)) % size
        angles = turns * (2 * math.pi / size)
        return op.const(np.cos(angles), dtype), op.const(np.sin(angles), dtype)
    row = op.Unsqueeze(op.Range(0, op.size(rows), 1), [1])
    turns = op.Mod(op.Mul(row, op.Range(0, op.size(size), 1)), size)
    angle = op.Mul(op.cast(turns, dtype), 2 * math.pi / size)
    return op.Cos(angle), op.Sin(angle)


def _rows(op: Builder, *channels: tuple[Value, Value]) -> Value:
    """A kernel: for each channel its real rows, then its imaginary ones."""
    parts = [op.Unsqueeze(op.Concat(*channel, axis=0), [1]) for channel in channels]
    return parts[0] if len(parts) == 1 else op.Concat(*parts, axis=1)


# --------------------------------------------------------------------- stft


@table.translate(aten.stft.default, complex="also")
def stft(
    op: Builder,
    self: Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Value | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Value:
    """STFT, or Conv with the windowed waves."""
    frames = _Frames(n_fft, hop_length, win_length, align_to_window, False, "constant")
    return _stft(op, self, frames, window, normalized, onesided)


@table.translate(aten.stft.center, complex="also")
def stft_center(
    op: Builder,
    self: Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Value | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Value:
    """Pad, and STFT or Conv with the windowed waves."""
    frames = _Frames(n_fft, hop_length, win_length, align_to_window, center, pad_mode)
    return _stft(op, self, frames, window, normalized, onesided)


class _Frames(NamedTuple):
    """How a signal is cut into frames."""

    size: int
    hop: int | None
    length: int | None
    aligned: bool | None
    center: bool
    mode: str


def _stft(
    op: Builder, x: Value, frames: _Frames, window: Value | None, normalized: bool, onesided: bool | None
) -> Value:
    size, dtype = frames.size, x.dtype
    hop = size // 4 if frames.hop is None else frames.hop
    length = size if frames.length is None else frames.length
    if onesided is None:
        onesided = not (x.is_complex or window is not None and window.is_complex)
    batch = rank_of(x) == 2
    count = op.out.dims[-2]
    signal = x if batch else op.Unsqueeze(x, [0])
    if x.dtype in HALF:
        signal = op.cast(signal, ir.DataType.FLOAT)
    around = size // 2 if frames.center else (size - length) // 2 if frames.aligned else 0
    if around:
        signal = op.Pad(signal, [around, around], None, [1], mode=_MODES[frames.mode])
    shape = _window(op, window, length, size, signal.dtype)
    rows = size // 2 + 1 if onesided else size
    plain = shape is None or not shape.is_complex
    if op.opset >= 17 and plain and not size & (size - 1):
        made = _by_operator(op, signal, x.is_complex, shape, size, hop, onesided)
    else:
        made = _by_waves(op, signal, x.is_complex, shape, size, hop, onesided)
        # The parts lie behind each other along the channels.
        dims = ((x.dims or ())[0] if batch else 1, 2, rows, count)
        made.dims = (dims[0], 2 * rows, count)
        made = op.Transpose(op.reshape(made, dims), perm=[0, 2, 3, 1])
    if normalized:
        made = op.Mul(made, 1 / math.sqrt(size))
    made = op.cast(made, dtype)
    made = made if batch else op.Squeeze(made, [0])
    made.is_complex = op.out.is_complex
    return made


def _by_operator(
    op: Builder, signal: Value, is_complex: bool, window: Value | None, size: int, hop: int, half: bool
) -> Value:
    """STFT, whose frames come before frequencies.

    Only for powers of 2: ONNX Runtime's loses half of the digits at other lengths.
    """
    parts = signal if is_complex else op.Unsqueeze(signal, [2])
    made = op.STFT(parts, op.size(hop), window, op.size(size), onesided=int(half))
    return op.Transpose(made, perm=[0, 2, 1, 3])


def _by_waves(
    op: Builder, signal: Value, is_complex: bool, window: Value | None, size: int, hop: int, half: bool
) -> Value:
    """Conv with the waves times the window; a complex signal has two channels."""
    cosines, sines = _circle(op, size // 2 + 1 if half else size, size, signal.dtype)
    re, im = cosines, op.Neg(sines)
    if window is not None and window.is_complex:
        a, b = real(op, window), imaginary(op, window)
        re, im = op.Sub(op.Mul(re, a), op.Mul(im, b)), op.Add(op.Mul(re, b), op.Mul(im, a))
        window = None
    if is_complex:
        kernel = _rows(op, (re, im), (op.Neg(im), re))
        channels = op.Transpose(signal, perm=[0, 2, 1])
    else:
        kernel = _rows(op, (re, im))
        channels = op.Unsqueeze(signal, [1])
    if window is not None:
        kernel = op.Mul(kernel, window)
    made: Value = op.Conv(channels, kernel, strides=[hop], kernel_shape=[size])
    return made


# -------------------------------------------------------------------- istft


@table.translate(aten.istft.default, complex="also")
def istft(
    op: Builder,
    self: Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Value | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Value:
    """ConvTranspose with the windowed waves adds the frames up; Div by the added squares of the window."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    dtype = self.dtype
    batch = rank_of(self) == 3
    *_, bins, frames = dims_of(self)
    half = (bins != n_fft) if onesided is None else onesided
    spectrum = self if batch else op.Unsqueeze(self, [0])
    if dtype in HALF:
        spectrum = op.cast(spectrum, ir.DataType.FLOAT)
    kind = spectrum.dtype
    rows = n_fft if return_complex else n_fft // 2 + 1
    if not return_complex and not half:
        spectrum = op.Slice(spectrum, [0], [rows], [1])
    if window is not None and window.is_complex:
        raise UnsupportedOpError.here(
            op, "a complex window", hint="transform with torch.fft.ifft and add up the frames"
        )
    shape = _window(op, window, width, n_fft, kind)
    size = (self.dims or ())[0] if batch else 1
    # Batch, parts, frequencies, frames.
    channels = op.reshape(op.Transpose(spectrum, perm=[0, 3, 1, 2]), (size, 2 * rows, frames))
    kernel = _inverse(op, rows, n_fft, return_complex, normalized, kind)
    if shape is not None:
        kernel = op.Mul(kernel, shape)
    summed = op.ConvTranspose(channels, kernel, strides=[hop], kernel_shape=[n_fft])
    outputs = 2 if return_complex else 1
    total = n_fft + hop * (frames - 1)
    summed.dims = (size, outputs, total)
    begin = n_fft // 2 if center else 0
    wanted = op.out.dims[-1 - op.out.is_complex]
    have = total - 2 * begin if length is None else total - begin
    squares = op.Mul(shape, shape) if shape is not None else op.const(np.ones(n_fft), kind)
    ones = op.expand(op.const(1, kind), (1, 1, frames))
    weights = op.ConvTranspose(ones, op.Reshape(squares, [1, 1, n_fft]), strides=[hop], kernel_shape=[n_fft])
    weights.dims = (1, 1, total)
    parts = []
    for x in (summed, weights):
        if center or length is not None:
            end = op.shape([begin + wanted]) if length is not None else [-begin]
            x = op.Slice(x, [begin], end, [2])
        parts.append(x)
    made = op.Div(*parts)
    if length is not None:
        made.dims = (size, outputs, None)
        made = _filled_up(op, made, size, outputs, have, wanted)
    made = op.Transpose(made, perm=[0, 2, 1]) if return_complex else op.Squeeze(made, [1])
    made = op.cast(made, dtype)
    made = made if batch else op.Squeeze(made, [0])
    made.is_complex = return_complex
    return made


def _filled_up(op: Builder, x: Value, size: Any, outputs: int, have: Any, wanted: Any) -> Value:
    """Zeros after the end of what the frames give."""
    if op.session.facts.compare(have, ">=", wanted):
        return x
    have = op.Min(op.size(have), op.size(wanted))
    missing = op.Reshape(op.Sub(op.size(wanted), have), [1])
    return op.Pad(x, op.Concat(op.const([0]), missing, axis=0), None, [2])


def _inverse(
    op: Builder, rows: int, size: int, is_complex: bool, normalized: bool, dtype: ir.DataType
) -> Value:
    """The waves that parts of a spectrum stand for; of a half one all but the ends count twice."""
    cosines, sines = _circle(op, rows, size, dtype)
    scale = 1 / math.sqrt(size) if normalized else 1 / size
    falling = op.Neg(sines)
    if is_complex:
        waves = _rows(op, (cosines, falling), (sines, cosines))
        return op.Mul(waves, scale)
    counts = np.full((rows, 1), 2.0)
    counts[0] = 1
    if size % 2 == 0:
        counts[-1] = 1
    return op.Mul(_rows(op, (cosines, falling)), op.const(np.tile(counts * scale, (2, 1))[:, None], dtype))


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    def x() -> torch.Tensor:
        return torch.linspace(0, 9, 60).sin().reshape(2, 30)

    def z() -> torch.Tensor:
        return torch.complex(x(), x().flip(0))

    def half(size: int) -> torch.Tensor:
        return torch.stft(x(), size, window=torch.ones(size), return_complex=True)

    def full(size: int) -> torch.Tensor:
        return torch.stft(z(), size, window=torch.ones(size), return_complex=True)

    near: dict[str, Any] = {"atol": 2e-5, "reason": "the order of summation is not the same"}
    pairs = {"return_complex": True}
    return [
        OpSample(aten.stft.default, lambda: (x(), 8, 2, 6, torch.hann_window(6)), pairs, **near),
        OpSample(aten.stft.default, lambda: (x()[0], 6, 4), {**pairs, "align_to_window": True}, **near),
        OpSample(aten.stft.default, lambda: (z(), 6, 4, None, torch.hann_window(6), True), pairs, **near),
        OpSample(aten.stft.center, lambda: (x(), 8, None, None, torch.hann_window(8)), pairs, **near),
        OpSample(
            aten.stft.center,
            lambda: (x(), 10, 3, 7, torch.hann_window(7), True, "constant", True, False),
            pairs,
            **near,
        ),
        OpSample(aten.stft.center, lambda: (z(), 8, 3), pairs, **near),
        OpSample(aten.stft.center, lambda: (x(), 8, 3, 6, torch.hann_window(6) * 1j), pairs, **near),
        OpSample(aten.stft.center, lambda: (x(), 8, 3), {"return_complex": False}, **near),
        OpSample(aten.istft.default, lambda: (half(8), 8, 2, 8, torch.hann_window(8)), **near),
        OpSample(aten.istft.default, lambda: (half(10)[0], 10, None, None, None, True, True), **near),
        OpSample(aten.istft.default, lambda: (half(10), 10, None, None, None, True, False, None, 25), **near),
        OpSample(
            aten.istft.default, lambda: (half(10), 10, None, None, None, False, False, None, 60), **near
        ),
        OpSample(aten.istft.default, lambda: (full(8), 8), {"onesided": False}, **near),
        OpSample(aten.istft.default, lambda: (full(8), 8), {"onesided": False, **pairs}, **near),
    ]
