"""Windows of signals have torch's values."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
KINDS = [getattr(aten, f"{name}_window") for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")]


@given(
    opset=kit.opsets(),
    window=st.sampled_from(KINDS),
    length=st.integers(0, 9),
    periodic=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.float16]),
)
def test_windows(opset, window, length, periodic, dtype):
    kit.check_op(window.periodic, length, periodic, dtype=dtype, opset=opset)
    kit.check_op(window.default, length, opset=opset)
