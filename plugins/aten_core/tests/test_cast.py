"""Changes of dtype, and operators that give back their argument."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given

from atonnx import testing as kit

aten = torch.ops.aten


@given(
    opset=kit.opsets(low=13),
    x=kit.tensor(kit.dtypes("all"), kit.shapes(max_rank=2), finite=True, low=0, high=100),
    dtype=kit.dtypes("all"),
)
def test_every_dtype_is_cast_to_every_other(opset, x, dtype):
    kit.check_op(aten.to.dtype, x, dtype, opset=opset)
    kit.check_op(aten._to_copy.default, x, dtype=dtype, opset=opset)
    kit.check_op(aten.type_as.default, x, torch.zeros(1, dtype=dtype), opset=opset)


def test_a_number_becomes_a_pair_and_a_pair_keeps_its_real_part():
    x = torch.randn(2, 3)
    kit.check_op(aten.to.dtype, x, torch.complex64)
    kit.check_op(aten.to.dtype, torch.complex(x, x), torch.float64)
    kit.check_op(aten.to.dtype, torch.complex(x, x), torch.complex128)


@pytest.mark.parametrize(
    "packet", [aten.clone, aten.detach, aten.alias, aten.contiguous, aten.lift_fresh_copy], ids=str
)
def test_the_tensor_itself_makes_no_node_but_an_identity_to_the_output(packet):
    kit.check_op(packet.default, torch.randn(2, 3), expect="Identity:1!")


@pytest.mark.parametrize("name", ["e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz"])
@pytest.mark.parametrize("opset", [20, 24])
def test_float_8_overflows_as_in_torch(name, opset):
    x = torch.tensor([0.0, -0.0, 1.5, -3.3, 300.0, -480.0, 1e6, float("inf"), float("-inf"), float("nan")])
    dtype = getattr(torch, f"float8_{name}")
    kit.check_op(aten.to.dtype, x, dtype, opset=opset)
    kit.check_op(aten.to.dtype, x[:4].to(dtype), torch.bool, opset=opset)
    kit.check_op(aten.to.dtype, x.to(dtype), torch.float32, opset=opset)
