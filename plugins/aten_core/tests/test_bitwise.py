"""Operators on bits give what eager torch gives."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten

INTEGERS = kit.tensor(kit.dtypes("int", "bool"), (2, 3))


def name(packet: object) -> str:
    return str(packet)


@pytest.mark.parametrize("packet", [aten.bitwise_and, aten.bitwise_or, aten.bitwise_xor], ids=name)
@given(opset=kit.opsets(low=18), x=INTEGERS, y=INTEGERS, number=st.sampled_from([0, 3, -1, True]))
def test_bits_are_combined(packet, opset, x, y, number):
    kit.check_op(packet.Tensor, x, y, opset=opset)
    kit.check_op(packet.Scalar, x, number, opset=opset)


@given(opset=kit.opsets(), x=INTEGERS)
def test_bits_are_flipped(opset, x):
    kit.check_op(aten.bitwise_not.default, x, opset=opset)


@pytest.mark.parametrize("packet", [aten.bitwise_left_shift, aten.bitwise_right_shift], ids=name)
@given(opset=kit.opsets(), x=kit.tensor(kit.dtypes("int"), (2, 3)), count=st.integers(-1, 70))
def test_shifts_past_the_last_bit_leave_the_sign(packet, opset, x, count):
    kit.check_op(packet.Tensor_Scalar, x, count, opset=opset)
    kit.check_op(packet.Tensor, x, torch.tensor([0, count, 1]).to(x.dtype), opset=opset)


@pytest.mark.skipif(not hasattr(aten, "hash_tensor"), reason="this torch has none")
@given(
    opset=kit.opsets(low=13),
    x=kit.tensor(kit.dtypes("all"), kit.shapes(max_rank=2, min_side=1)),
    dim=st.sampled_from([[], [0], [-1]]),
    keepdim=st.booleans(),
)
def test_hashes_are_the_exclusive_or_of_patterns(opset, x, dim, keepdim):
    x = x.nan_to_num() if x.is_floating_point() else x
    kit.check_op(aten.hash_tensor.default, x, dim, keepdim=keepdim, opset=opset)


@pytest.mark.skipif(not hasattr(aten, "hash_tensor"), reason="this torch has none")
def test_hashes_of_special_numbers():
    tiny = torch.finfo(torch.float64).tiny
    numbers = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), tiny, -tiny / 3, 5e-324, 1.7e308, 1 / 3]
    x = torch.tensor(numbers, dtype=torch.float64)
    kit.check_op(aten.hash_tensor.default, x[:, None], [1])
    kit.check_op(aten.hash_tensor.default, torch.zeros(0, 2), [1], dynamic=False)
