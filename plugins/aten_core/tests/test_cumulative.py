"""Running sums and products give what eager torch gives."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten


@pytest.mark.parametrize("packet", [aten.cumsum, aten.cumprod], ids=str)
@given(
    opset=kit.opsets(low=14),
    x=kit.tensor(kit.dtypes("all"), kit.shapes(max_rank=3), finite=True, low=-2, high=2),
    dim=st.integers(-1, 0),
    dtype=st.sampled_from([None, None, torch.int8, torch.float64]),
)
def test_running_along_a_dim(packet, opset, x, dim, dtype):
    if dtype == torch.int8 and x.is_floating_point():
        dtype = None
    kit.check_op(packet.default, x, dim, dtype=dtype, opset=opset, atol=kit.ulps(64))
