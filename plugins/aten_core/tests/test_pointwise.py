"""Functions of one tensor compute what eager torch computes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten

SMOOTH = [
    *(aten.sqrt, aten.tanh, aten.sigmoid, aten.sin, aten.cos, aten.atan, aten.asinh, aten.erf, aten.log),
    *(aten.reciprocal, aten.rsqrt, aten.log1p, aten.log2, aten.log10, aten.asin, aten.acos, aten.atanh),
    *(aten.acosh, aten.deg2rad, aten.rad2deg, aten.sinc, aten.erfc),
]
GROWING = [aten.exp, aten.expm1, aten.exp2, aten.sinh, aten.cosh]
EXACT = [
    *(
        aten.abs,
        aten.neg,
        aten.sign,
        aten.signbit,
        aten.floor,
        aten.ceil,
        aten.round,
        aten.trunc,
        aten.square,
    ),
    *(aten.isnan, aten.isinf, aten.isposinf, aten.isneginf, aten.isfinite, aten.nan_to_num),
]


def at(opset: int, *operands: object) -> int:
    """The opset, or 13, the first that has casts of bfloat16, where an operand needs one."""
    needs = any(isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16 for x in operands)
    return max(opset, 13) if needs else opset


def name(packet: object) -> str:
    return str(packet)


@pytest.mark.parametrize("packet", SMOOTH, ids=name)
@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float", "int", "bool"), kit.shapes(max_rank=3), low=-9, high=9),
)
def test_a_float_function_takes_floats_integers_and_bools(packet, opset, x):
    if packet in (aten.erf, aten.erfc) and x.dtype == torch.float64:
        x = x.float()
    kit.check_op(packet.default, x, opset=at(opset, x), atol=kit.ulps(32))


@pytest.mark.parametrize("packet", GROWING, ids=name)
@given(opset=kit.opsets(), x=kit.tensor(kit.dtypes("float", "int"), kit.shapes(max_rank=3), low=-6, high=6))
def test_a_growing_function_is_near_in_proportion(packet, opset, x):
    kit.check_op(packet.default, x, opset=at(opset, x), atol=kit.ulps(32))


@pytest.mark.parametrize("packet", [*SMOOTH, *GROWING], ids=name)
def test_zeros_infinities_and_nan_go_where_torch_sends_them(packet):
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan")])
    kit.check_op(packet.default, x, atol=kit.ulps(32))


@given(opset=kit.opsets(), x=kit.tensor(torch.float64, kit.shapes(max_rank=2), low=-3, high=3))
def test_erf_of_doubles(opset, x):
    # ONNX Runtime has no kernel, and the reference evaluator computes in float32.
    kit.check_op(aten.erf.default, x, opset=opset, atol=1e-6)
    kit.check_op(aten.erfc.default, x, opset=opset, atol=1e-6)


@pytest.mark.parametrize("packet", EXACT, ids=name)
@given(opset=kit.opsets(), x=kit.tensor(kit.dtypes("number"), kit.shapes(max_rank=3)))
def test_an_exact_function_is_exact(packet, opset, x):
    if packet is aten.square and x.is_floating_point():
        x = x.clamp(-100, 100)
    kit.check_op(packet.default, x, opset=at(opset, x))


@given(opset=kit.opsets(), decimals=st.integers(-2, 3), x=kit.tensor(kit.dtypes("wide"), low=-99, high=99))
def test_round_to_decimals(opset, decimals, x):
    kit.check_op(aten.round.decimals, x, decimals=decimals, opset=at(opset, x))


@pytest.mark.parametrize("packet", [aten.expm1, aten.log1p], ids=name)
def test_small_arguments_keep_their_digits(packet):
    x = torch.tensor([1e-7, -3e-6, 2e-4, 1e-20, -1e-10])
    kit.check_op(packet.default, x, opset=20, rtol=1e-6, atol=0.0)
