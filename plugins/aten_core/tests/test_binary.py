"""Arithmetic on several tensors computes what eager torch computes, in torch's dtype."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten

# Every kind, dimensioned and 0-d.
OPERANDS = kit.tensor(kit.dtypes("all"), kit.shapes(max_rank=2), finite=True)
NUMBERS = st.one_of(st.booleans(), st.integers(-5, 9), st.sampled_from([0.1, -2.5, 0.5, 3.0]))


def shaped(pair):
    """The second operand with the shape of the first, or as a scalar."""
    first, second = pair
    if second.dim():
        second = torch.resize_as_(
            second.flatten().repeat(max(first.numel(), 1))[: first.numel()].clone(), first
        )
    return first, second


PAIRS = st.tuples(OPERANDS, OPERANDS).filter(lambda p: p[0].numel() and p[1].numel()).map(shaped)


def at(opset: int, *operands: object) -> int:
    """The opset, or 13, the first that has casts of bfloat16, where an operand needs one."""
    needs = any(isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16 for x in operands)
    return max(opset, 13) if needs else opset


def name(packet: object) -> str:
    return str(packet)


def no_bools(*operands: object) -> bool:
    return any(
        x.dtype != torch.bool if isinstance(x, torch.Tensor) else not isinstance(x, bool) for x in operands
    )


def in_integers(*operands: object) -> bool:
    return not torch.result_type(*operands).is_floating_point


def nonzero(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x == 0, torch.ones_like(x), x)


@pytest.mark.parametrize("packet", [aten.add, aten.mul, aten.div, aten.maximum, aten.minimum], ids=name)
@given(opset=kit.opsets(), pair=PAIRS)
def test_operands_of_different_dtypes_meet_in_torchs_dtype(packet, opset, pair):
    overload = packet.default if packet in (aten.maximum, aten.minimum) else packet.Tensor
    kit.check_op(overload, *pair, opset=at(opset, *pair))


@pytest.mark.parametrize("packet", [aten.add, aten.sub, aten.rsub, aten.mul, aten.div], ids=name)
@given(opset=kit.opsets(), x=OPERANDS, number=NUMBERS)
def test_a_number_does_not_change_the_dtype_of_its_own_kind(packet, opset, x, number):
    if packet in (aten.sub, aten.rsub) and (x.dtype == torch.bool or isinstance(number, bool)):
        return  # torch refuses to subtract bools
    kit.check_op(packet.Scalar, x, number, opset=at(opset, x))
    if packet is not aten.rsub:
        kit.check_op(packet.Tensor, x, number, opset=at(opset, x))


@pytest.mark.parametrize("packet", [aten.add, aten.sub], ids=name)
@given(opset=kit.opsets(), pair=PAIRS, alpha=st.integers(-3, 3))
def test_alpha_scales_the_second_operand(packet, opset, pair, alpha):
    if not no_bools(*pair) or (packet is aten.sub and not all(no_bools(x) for x in pair)):
        return
    kit.check_op(packet.Tensor, *pair, alpha=alpha, opset=at(opset, *pair))


@given(opset=kit.opsets(), shapes=kit.broadcastable(2, max_rank=3), seed=st.integers(0, 99))
def test_operands_broadcast(opset, shapes, seed):
    a, b = (kit.make_tensor(torch.float32, shape, seed + i) for i, shape in enumerate(shapes))
    kit.check_op(aten.add.Tensor, a, b, opset=opset)


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
@given(
    opset=kit.opsets(), x=kit.tensor(kit.dtypes("number"), (2, 3)), y=kit.tensor(kit.dtypes("number"), (3,))
)
def test_division_rounds_as_asked(mode, opset, x, y):
    if in_integers(x, y):
        y = nonzero(y)
    kit.check_op(aten.div.Tensor_mode, x, y, rounding_mode=mode, opset=at(opset, x, y))


@pytest.mark.parametrize("packet", [aten.remainder, aten.fmod], ids=name)
@given(
    opset=kit.opsets(), x=kit.tensor(kit.dtypes("number"), (2, 3)), y=kit.tensor(kit.dtypes("number"), (3,))
)
def test_remainders_have_torchs_sign(packet, opset, x, y):
    if in_integers(x, y):
        y = nonzero(y)
    kit.check_op(packet.Tensor, x, y, opset=at(opset, x, y))


def test_floor_division_is_exact_at_the_ends_of_a_range():
    x = torch.tensor([-128, -127, 127, 126], dtype=torch.int8)
    for divisor in (3, -3, 127):
        kit.check_op(aten.floor_divide.Scalar, x, divisor)
        kit.check_op(aten.floor_divide.default, x, torch.full((4,), divisor, dtype=torch.int8))


def test_floor_division_of_floats_takes_the_remainder_first():
    x = torch.tensor([1.0, -1.0, 0.3, float("inf"), 5.0, -5.0])
    kit.check_op(aten.floor_divide.Scalar, x, 0.1)
    kit.check_op(aten.floor_divide.default, x, torch.tensor([0.1, 0.1, 0.1, 2.0, float("inf"), float("inf")]))
    kit.check_op(aten.floor_divide.Scalar, x, 0)


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float", "int"), (2, 3), finite=True),
    exponent=st.sampled_from([0, 1, 2, 3, 5, 0.5, -0.5, -1, -2, 1.5, -2.0]),
)
def test_a_power_with_a_constant_exponent(opset, x, exponent):
    if not x.is_floating_point() and isinstance(exponent, int) and exponent < 0:
        return  # torch refuses negative powers of integers
    kit.check_op(
        aten.pow.Tensor_Scalar, x.abs() if x.is_floating_point() else x, exponent, opset=at(opset, x)
    )


@given(
    opset=kit.opsets(low=12), x=kit.tensor(kit.dtypes("number"), (2, 3), low=0, high=5), y=st.integers(0, 3)
)
def test_a_power_of_two_tensors(opset, x, y):
    kit.check_op(aten.pow.Tensor_Tensor, x, torch.tensor([y, 1, 2]), opset=at(opset, x, y))
    kit.check_op(aten.pow.Scalar, 2, x, opset=at(opset, x))


BOUNDS = st.one_of(st.none(), st.integers(0, 4), st.sampled_from([-1.5, 2.5]))


@given(
    opset=kit.opsets(), x=kit.tensor(kit.dtypes("number"), kit.shapes(max_rank=2)), low=BOUNDS, high=BOUNDS
)
def test_clamp_keeps_nan_and_infinities_within_its_bounds(opset, x, low, high):
    if low is None and high is None:
        return  # torch refuses
    kit.check_op(aten.clamp.default, x, low, high, opset=at(opset, x))


@given(opset=kit.opsets(), x=kit.tensor(kit.dtypes("wide"), (2, 3)), low=kit.tensor(torch.float32, (3,)))
def test_clamp_takes_tensors_for_bounds(opset, x, low):
    kit.check_op(aten.clamp.Tensor, x, low, torch.tensor(1.5), opset=at(opset, x))
    kit.check_op(aten.clamp_min.Tensor, x, low, opset=at(opset, x))
    kit.check_op(aten.clamp_max.Tensor, x, low, opset=at(opset, x))


def test_bounds_of_bools_are_or_and_and():
    x, y = torch.tensor([[True], [False]]), torch.tensor([True, False])
    kit.check_op(aten.clamp_min.Tensor, x, y, expect="Or:1")
    kit.check_op(aten.clamp_max.Tensor, x, y, expect="And:1")


@pytest.mark.parametrize("packet", [aten.fmax, aten.fmin, aten.copysign, aten.atan2, aten.hypot], ids=name)
@given(opset=kit.opsets(), pair=kit.tensors(kit.dtypes("wide"), ((2, 3), (3,))))
def test_special_values_of_two_floats(packet, opset, pair):
    overload = packet.Tensor if packet is aten.copysign else packet.default
    kit.check_op(overload, *pair, opset=at(opset, *pair), atol=kit.ulps(16))


@pytest.mark.parametrize("packet", [aten.logaddexp, aten.logaddexp2, aten.xlogy], ids=name)
@given(opset=kit.opsets(), pair=kit.tensors(kit.dtypes("wide"), ((2, 3), (3,)), low=-50, high=50))
def test_sums_of_logarithms(packet, opset, pair):
    overload = packet.Tensor if packet is aten.xlogy else packet.default
    kit.check_op(overload, *pair, opset=at(opset, *pair), atol=kit.ulps(16))


@given(
    opset=kit.opsets(),
    xs=kit.tensors(kit.dtypes("float"), ((2, 3), (3,), (2, 1)), finite=True, low=-5, high=5),
)
def test_three_operands(opset, xs):
    near = kit.ulps(64)
    kit.check_op(aten.addcmul.default, *xs, value=2, opset=at(opset, *xs), atol=near)
    kit.check_op(
        aten.addcdiv.default, xs[0], xs[1], xs[2].abs() + 1, value=0.5, opset=at(opset, *xs), atol=near
    )
    kit.check_op(aten.lerp.Tensor, *xs, opset=at(opset, *xs), atol=near)
    kit.check_op(aten.lerp.Scalar, xs[0], xs[1], 0.7, opset=at(opset, *xs), atol=near)


def test_a_size_stands_for_a_number():
    x = torch.randn(2, 3)
    for overload in (aten.add.Tensor, aten.mul.Tensor, aten.sub.Tensor, aten.div.Tensor):
        kit.check_op(overload, x, kit.Size(x, 1))


def test_a_scalar_stays_in_float32_beside_half_precision():
    x = torch.linspace(-3, 3, 64).to(torch.bfloat16)
    kit.check_op(aten.mul.Tensor, x, 0.1, rtol=0.0, atol=0.0)
