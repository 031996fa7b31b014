"""Fourier transforms and windows as products and sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowered import agree, numbers, opsets


def _transformed(x, length, axis, inverse, onesided):
    signal = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    if inverse and onesided:
        return np.fft.irfft(signal, length, axis=axis)[..., None].astype(np.float32)
    function = np.fft.rfft if onesided else np.fft.ifft if inverse else np.fft.fft
    made = function(signal.real if onesided else signal, length, axis=axis)
    return np.stack([made.real, made.imag], -1).astype(np.float32)


@given(
    opset=opsets(11, 16, 17, 19),
    kind=st.sampled_from([(0, 0, 1), (0, 1, 1), (0, 0, 2), (1, 0, 2), (1, 1, 2)]),
    length=st.sampled_from([None, 8, 5, 1]),
    axis=st.sampled_from([0, 1, 2]),
    dynamic=st.booleans(),
)
def test_dft(opset, kind, length, axis, dynamic):
    inverse, onesided, pair = kind
    x = numbers((3, 6, 7, pair))
    if opset >= 17 and not (inverse and onesided) and length == 1:
        return  # ONNX Runtime's own kernel is not asked for this.
    agree(
        lambda op, x: op.DFT(
            x,
            None if length is None else op.const(length),
            op.const(axis),
            inverse=inverse,
            onesided=onesided,
        ),
        {"x": x},
        opset,
        expected=[_transformed(x, length, axis, inverse, onesided)],
        rtol=1e-3,
        atol=1e-4,
        dynamic=["x"] if dynamic else [],
    )


@pytest.mark.parametrize("opset", [11, 17, 20])
def test_an_old_dft_has_its_axis_as_an_attribute(opset):
    x = numbers((2, 6, 7, 2))
    agree(
        lambda op, x: op.at(17).DFT(x, axis=2),
        {"x": x},
        opset,
        expected=[_transformed(x, None, 2, 0, 0)],
        rtol=1e-3,
        atol=1e-4,
    )
    agree(
        lambda op, x: op.at(17).DFT(x),
        {"x": x},
        opset,
        expected=[_transformed(x, None, 1, 0, 0)],
        rtol=1e-3,
        atol=1e-4,
    )


@given(
    opset=opsets(11, 16, 17),
    length=st.integers(2, 9),
    step=st.integers(1, 4),
    window=st.booleans(),
    onesided=st.sampled_from([0, 1]),
)
def test_stft(opset, length, step, window, onesided):
    inputs = {"x": numbers((2, 20, 1)), "w": np.abs(numbers((length,)))}
    agree(
        lambda op, x, w: op.STFT(
            x, op.const(step), w if window else None, op.const(length), onesided=onesided
        ),
        inputs,
        opset,
        newest=17,
        rtol=1e-3,
        atol=1e-4,
    )


@pytest.mark.parametrize("name", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("opset", [11, 16])
@pytest.mark.parametrize("dtype", [1, 11])
def test_windows(name, periodic, opset, dtype):
    agree(
        lambda op, n: getattr(op, name)(n, periodic=periodic, output_datatype=dtype),
        {"n": np.array(9)},
        opset,
        newest=17,
    )
