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


@pytest.mark.parametrize("packet", [aten.cummax, aten.cummin], ids=str)
@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("number"), kit.shapes(max_rank=3)),
    dim=st.integers(-1, 0),
    dynamic=st.booleans(),
)
def test_running_extremes_keep_the_last_of_equals(packet, opset, x, dim, dynamic):
    opset = max(opset, 13) if x.dtype == torch.bfloat16 else opset
    kit.check_op(packet.default, x, dim, opset=opset, dynamic=dynamic)


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float"), kit.shapes(max_rank=3), low=-30, high=30),
    dim=st.integers(-1, 0),
    dynamic=st.booleans(),
)
def test_running_log_of_sums(opset, x, dim, dynamic):
    opset = max(opset, 13) if x.dtype == torch.bfloat16 else opset
    kit.check_op(aten.logcumsumexp.default, x, dim, opset=opset, dynamic=dynamic, atol=kit.ulps(64))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0,)], ids=str)
def test_running_over_nothing(shape):
    for dim in range(len(shape)):
        kit.check_op(aten.cummax.default, torch.zeros(shape), dim)
        kit.check_op(aten.logcumsumexp.default, torch.zeros(shape), dim, dynamic=False)
        kit.check_op(aten.cumprod.default, torch.zeros(shape), dim, dynamic=False)
        full = torch.ones([2] * len(shape))
        kit.check_op(aten.cumprod.default, full, dim, also=[(torch.zeros(shape), dim)])
