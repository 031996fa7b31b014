"""Comparisons and logic give what eager torch gives."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten

COMPARISONS = [aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge]
TENSORS = kit.tensor(kit.dtypes("all"), (2, 3))


def at(opset: int, *operands: object) -> int:
    """The opset, or 13, the first that has casts of bfloat16, where an operand needs one."""
    needs = any(isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16 for x in operands)
    return max(opset, 13) if needs else opset


def name(packet: object) -> str:
    return str(packet)


@pytest.mark.parametrize("packet", COMPARISONS, ids=name)
@given(opset=kit.opsets(), x=TENSORS, y=kit.tensor(kit.dtypes("all"), kit.shapes(max_rank=0) | st.just((3,))))
def test_operands_are_compared_in_their_common_dtype(packet, opset, x, y):
    kit.check_op(packet.Tensor, x, y, opset=at(opset, x, y))


@pytest.mark.parametrize("packet", COMPARISONS, ids=name)
@given(opset=kit.opsets(), x=TENSORS, number=st.sampled_from([0, 1, -1, 3, 0.5, True, 300]))
def test_a_number_is_compared_as_torch_does(packet, opset, x, number):
    kit.check_op(packet.Scalar, x, number, opset=at(opset, x))


@pytest.mark.parametrize("packet", [aten.logical_and, aten.logical_or, aten.logical_xor], ids=name)
@given(opset=kit.opsets(), x=TENSORS, y=TENSORS)
def test_logic_on_any_dtype(packet, opset, x, y):
    kit.check_op(packet.default, x, y, opset=at(opset, x, y))
    kit.check_op(aten.logical_not.default, x, opset=at(opset, x))


@given(opset=kit.opsets(), condition=kit.tensor(torch.bool, (2, 1)), x=TENSORS, y=TENSORS)
def test_where_promotes_its_branches(opset, condition, x, y):
    kit.check_op(aten.where.self, condition, x, y, opset=at(opset, x, y))


@given(
    opset=kit.opsets(),
    condition=kit.tensor(torch.bool, (2, 1)),
    x=TENSORS,
    number=st.sampled_from([1, 0.5, True]),
)
def test_where_takes_numbers(opset, condition, x, number):
    kit.check_op(aten.where.ScalarSelf, condition, number, x, opset=at(opset, x))
    kit.check_op(aten.where.ScalarOther, condition, x, number, opset=at(opset, x))
    kit.check_op(aten.where.Scalar, condition, number, 2, opset=opset)


@given(opset=kit.opsets(), x=kit.tensor(kit.dtypes("wide", "int"), (2, 3)), equal_nan=st.booleans())
def test_isclose(opset, x, equal_nan):
    kit.check_op(aten.isclose.default, x, x.flip(0), 0.1, 0.5, equal_nan, opset=at(opset, x))
