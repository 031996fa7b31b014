"""Divisors and multiples are those of eager torch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given

from atonnx import testing as kit

aten = torch.ops.aten


@pytest.mark.parametrize("packet", [aten.gcd, aten.lcm], ids=str)
@given(opset=kit.opsets(), pair=kit.tensors(kit.dtypes("int"), kit.broadcastable(2), low=-60, high=60))
def test_integers_of_all_widths(packet, opset, pair):
    a, b = (x.clamp(max=90) if x.dtype == torch.uint8 else x.clamp(-90, 90) for x in pair)
    kit.check_op(packet.default, a, b, opset=opset)


def test_many_steps():
    kit.check_op(aten.gcd.default, torch.tensor([7540113804746346429]), torch.tensor([4660046610375530309]))


def test_zero_to_a_negative_power_is_zero():
    base, power = torch.tensor([0, 0, 2, -1, 3, -2]), torch.tensor([-3, 0, -1, -3, 4, -1])
    for dtype in (torch.int64, torch.int32, torch.int8):
        kit.check_op(aten.pow.Tensor_Tensor, base.to(dtype), power.to(dtype))
    kit.check_op(aten.pow.Scalar, 0, power)
