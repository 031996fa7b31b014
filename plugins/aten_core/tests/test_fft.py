"""Fourier transforms give what eager torch gives, at every length and opset."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import atonnx
from atonnx import testing as kit

aten = torch.ops.aten
NEAR = {"atol": 5e-5, "rtol": 1e-4}
NORMS = st.sampled_from([None, "forward", "ortho"])


def signal(dtype, *shape):
    return kit.make_tensor(dtype, shape, sum(shape))


@given(
    opset=kit.opsets(),
    kind=st.sampled_from(["fft", "ifft", "rfft", "ihfft", "irfft", "hfft"]),
    size=st.integers(2, 9),
    n=st.none() | st.integers(1, 10),
    dim=st.integers(-2, 1),
    norm=NORMS,
)
def test_one_axis(opset, kind, size, n, dim, norm):
    real = kind in ("rfft", "ihfft")
    x = signal(torch.float32 if real else torch.complex64, size, size)
    kit.check_op(getattr(aten, f"fft_{kind}").default, x, n, dim, norm, opset=opset, **NEAR)


@given(
    opset=kit.opsets(),
    kind=st.sampled_from(["fft", "ifft", "rfft", "ihfft", "irfft", "hfft"]),
    dims=st.sampled_from([(0, 1), (-1, 0), (2,), None]),
    norm=NORMS,
    sized=st.booleans(),
)
def test_several_axes(opset, kind, dims, norm, sized):
    real = kind in ("rfft", "ihfft")
    x = signal(torch.float32 if real else torch.complex64, 3, 4, 5)
    s = [4, 6][: len(dims)] if sized and dims is not None else None
    kit.check_op(getattr(aten, f"fft_{kind}n").default, x, s, dims, norm, opset=opset, **NEAR)


@pytest.mark.parametrize("size", [100, 257, 400])
@pytest.mark.parametrize("opset", [13, 17, 20])
def test_lengths_that_are_no_powers_of_2_keep_their_digits(size, opset):
    x = signal(torch.float32, size)
    kit.check_op(aten.fft_rfft.default, x, opset=opset, atol=4e-6 * size, rtol=0.0)
    kit.check_op(aten.fft_irfft.default, x + 0j, size, opset=opset, atol=1e-6, rtol=1e-5)


def test_a_power_of_2_is_transformed_as_it_is():
    kit.check_op(
        aten.fft_fft.default, signal(torch.complex64, 3, 8), opset=20, dynamic=False, expect="DFT:1", **NEAR
    )


@given(
    opset=kit.opsets(),
    size=st.integers(4, 10),
    hop=st.integers(1, 5),
    win=st.integers(1, 10),
    center=st.booleans(),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_stft(opset, size, hop, win, center, flags):
    normalized, onesided, is_complex = flags
    x = signal(torch.complex64 if is_complex else torch.float32, 2, 21)
    kit.check_op(
        aten.stft.center,
        *(x, size, hop, min(win, size), torch.hann_window(min(win, size), periodic=False) + 0.1),
        *(center, "reflect" if not is_complex else "constant", normalized, onesided and not is_complex),
        return_complex=True,
        opset=opset,
        **NEAR,
    )


# torch's own shape rule takes no odd size.
@given(
    opset=kit.opsets(),
    size=st.sampled_from([4, 6, 8, 10]),
    hop=st.integers(1, 4),
    center=st.booleans(),
    normalized=st.booleans(),
    length=st.none() | st.integers(12, 40),
)
def test_istft(opset, size, hop, center, normalized, length):
    z = signal(torch.complex64, 2, size // 2 + 1, 7)
    window = torch.hamming_window(size)
    kit.check_op(
        aten.istft.default,
        *(z, size, hop, None, window, center, normalized, None, length),
        opset=opset,
        **NEAR,
    )


class Shifted(torch.nn.Module):
    """A filter in the frequency domain."""

    def forward(self, x):
        z = torch.fft.fftshift(torch.fft.fft(x), dim=-1)
        return torch.fft.ifft(torch.fft.ifftshift(z * 2, dim=-1)).real


class Enhanced(torch.nn.Module):
    """A gate over the spectrogram of a signal."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))

    def forward(self, x):
        z = torch.stft(x, 16, 4, window=self.window, return_complex=True)
        return torch.istft(z * (z.abs() > 0.5), 16, 4, window=self.window)


@pytest.mark.parametrize("model", [Shifted(), Enhanced()], ids=["shifted", "enhanced"])
@pytest.mark.parametrize("opset", [11, 17, 20])
def test_models_of_any_length(model, opset):
    length = torch.export.Dim("length", min=10, max=100)
    program = atonnx.export(
        model.eval(),
        (torch.randn(2, 64),),
        opset_version=opset,
        dynamic_shapes=({1: 4 * length},),
        verbose=False,
    )
    for size in (64, 100, 244):
        x = torch.randn(2, size)
        (made,) = program(x)
        torch.testing.assert_close(made, model(x), atol=1e-4, rtol=1e-3)


@given(n=st.integers(1, 9), d=st.sampled_from([1.0, 0.3]), dtype=kit.dtypes("wide"))
def test_frequencies_of_a_transform(n: int, d: float, dtype: torch.dtype) -> None:
    for overload in (aten.fft_fftfreq.default, aten.fft_rfftfreq.default):
        kit.check_op(overload, n, d, dtype=dtype)
