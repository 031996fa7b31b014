"""Fractional pooling against eager torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten


@given(
    data=st.data(),
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    spatial=st.integers(2, 3),
    batch=st.sampled_from([(), (2,)]),
    outputs=st.sampled_from([(0,), (0, 1)]),
)
def test_fractional_max_pool(data, opset, dtype, spatial, batch, outputs):
    kernel = [data.draw(st.integers(1, 3)) for _ in range(spatial)]
    counts = [data.draw(st.integers(1, 4)) for _ in range(spatial)]
    calls = []
    for seed, size in enumerate(((7, 8, 9), (9, 7, 8))):
        x = kit.make_tensor(dtype, (*batch, 2, *size[:spatial]), seed)
        torch.manual_seed(seed)
        drawn = torch.rand(*(batch or (1,)), 2, spatial, dtype=dtype)
        calls.append((x, kernel, counts, drawn))
    overload = (aten.fractional_max_pool2d if spatial == 2 else aten.fractional_max_pool3d).default
    kit.check_op(overload, *calls[0], opset=opset, outputs=outputs, also=calls[1:])
