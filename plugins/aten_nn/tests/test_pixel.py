"""Pixel shuffles against eager torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
BATCH = st.sampled_from([(), (1,), (2,), (2, 3)])
DTYPES = st.sampled_from([torch.float32, torch.float64, torch.int64, torch.bool])


@given(opset=kit.opsets(), dtype=DTYPES, batch=BATCH, r=st.integers(1, 3), channels=st.integers(1, 2))
def test_pixel_shuffle(opset, dtype, batch, r, channels):
    x, other = (kit.make_tensor(dtype, (*batch, channels * r * r, *size), 1) for size in ((3, 4), (5, 2)))
    expect = "DepthToSpace:1!" if len(batch) == 1 and dtype == torch.float32 else None
    kit.check_op(aten.pixel_shuffle.default, x, r, opset=opset, also=[(other, r)], expect=expect)


@given(opset=kit.opsets(), dtype=DTYPES, batch=BATCH, r=st.integers(1, 3), channels=st.integers(1, 2))
def test_pixel_unshuffle(opset, dtype, batch, r, channels):
    x, other = (kit.make_tensor(dtype, (*batch, channels, h * r, w * r), 1) for h, w in ((3, 4), (5, 2)))
    kit.check_op(aten.pixel_unshuffle.default, x, r, opset=opset, also=[(other, r)])
