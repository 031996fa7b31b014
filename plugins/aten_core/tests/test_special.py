"""Special functions are near eager torch's over their whole domain, and go where it goes at its ends."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten

LINE = [
    *(aten.special_erfcx, aten.special_log_ndtr, aten.special_entr, aten.i0, aten.special_i0e),
    *(aten.special_i1, aten.special_i1e, aten.special_modified_bessel_i0, aten.special_modified_bessel_i1),
    *(aten.special_bessel_j0, aten.special_bessel_j1, aten.special_spherical_bessel_j0),
    *(aten.special_airy_ai, aten.special_modified_bessel_k0, aten.special_modified_bessel_k1),
    *(aten.special_scaled_modified_bessel_k0, aten.special_scaled_modified_bessel_k1),
    *(aten.special_bessel_y0, aten.special_bessel_y1, aten.lgamma, aten.digamma),
]
UNIT = [aten.erfinv, aten.special_ndtri]
ENDS = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-30, -1e-30, 2.0, 5.0, 8.0, -8.0, 1.91])
# As opinfo has them; both sides compute in float32, and waves and cancellation cost digits.
NEAR = {torch.float32: (1e-4, 1e-5), torch.float64: (1e-6, 1e-7)}


def near(dtype: torch.dtype) -> dict[str, float]:
    if dtype in (torch.float16, torch.bfloat16):
        return {}
    rtol, atol = NEAR.get(dtype, NEAR[torch.float32])
    return {"rtol": rtol, "atol": atol}


def at(opset: int, *operands: object) -> int:
    """The opset, or 13, the first that has casts of bfloat16, where an operand needs one."""
    needs = any(isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16 for x in operands)
    return max(opset, 13) if needs else opset


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64], ids=str)
@given(
    packet=st.sampled_from(LINE),
    opset=kit.opsets(),
    shape=kit.shapes(max_rank=2),
    data=st.data(),
)
def test_a_function_of_the_whole_line(dtype, packet, opset, shape, data):
    x = data.draw(kit.tensor(dtype, st.just(shape), low=-12, high=12, finite=True))
    kit.check_op(packet.default, x.clamp(-100, 100), opset=opset, **near(dtype))


@pytest.mark.parametrize("packet", [*LINE, *UNIT], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_dense_line_and_its_ends(packet, dtype):
    # Off the integers, where poles of torch's own rounding would be compared.
    wide, narrow = torch.linspace(-120.03, 120.02, 1500), torch.linspace(-1.0, 1.0, 501)
    tiny = torch.logspace(-37, 0, 200)
    kit.check_op(packet.default, torch.cat([ENDS, wide, narrow, tiny]).to(dtype), **near(dtype))


@pytest.mark.parametrize("packet", UNIT, ids=str)
@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float"), kit.shapes(max_rank=2), low=-1, high=1, finite=True),
)
def test_a_function_of_the_unit_interval(packet, opset, x):
    kit.check_op(packet.default, x, opset=at(opset, x), **near(x.dtype))


@pytest.mark.parametrize("packet", [aten.special_i1, aten.special_bessel_j1, aten.erfinv], ids=str)
def test_small_arguments_of_odd_functions_keep_their_digits(packet):
    kit.check_op(packet.default, torch.tensor([1e-7, -3e-6, 2e-4, 1e-20, -1e-10]), rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("packet", [aten.special_erfcx, aten.special_i0e, aten.special_airy_ai], ids=str)
def test_decay_keeps_its_digits(packet):
    kit.check_op(packet.default, torch.tensor([2.0, 4.0, 9.0, 17.0, 25.0]), rtol=2e-5, atol=0.0)


@given(opset=kit.opsets(), n=st.integers(0, 5), x=kit.tensor(torch.float32, low=0.5, high=30, finite=True))
def test_polygamma(opset, n, x):
    kit.check_op(aten.polygamma.default, n, x.abs() + 0.125, opset=opset, **near(x.dtype))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8])
def test_polygamma_below_zero(n):
    x = torch.tensor([-9.5, -3.75, -0.25, -1e-3, 1e-3, 0.0, math.nan])
    kit.check_op(aten.polygamma.default, n, x, rtol=1e-4, atol=1e-5)


@given(
    opset=kit.opsets(), p=st.integers(1, 5), x=kit.tensor(kit.dtypes("float"), low=3, high=20, finite=True)
)
def test_mvlgamma(opset, p, x):
    kit.check_op(aten.mvlgamma.default, x.abs() + 3, p, opset=at(opset, x), **near(x.dtype))


@given(
    opset=kit.opsets(),
    pair=kit.tensors(torch.float32, kit.broadcastable(2), low=-6, high=12, finite=True),
)
def test_zeta(opset, pair):
    kit.check_op(aten.special_zeta.default, *pair, opset=opset, **near(torch.float32))


def test_zeta_at_its_poles_and_below():
    x = torch.tensor([[math.nan], [-1.0], [1.0], [1.5], [2.0], [3.0], [40.0]])
    q = torch.tensor([-2.0, -1.5, 0.0, 0.25, 1.0, 1e4, math.nan])
    kit.check_op(aten.special_zeta.default, x, q, rtol=1e-5)
    kit.check_op(aten.special_zeta.self_scalar, 3, q, rtol=1e-5)
    kit.check_op(aten.special_zeta.other_scalar, x, 0.5, rtol=1e-5)


@pytest.mark.parametrize("packet", [aten.igamma, aten.igammac], ids=str)
@given(
    opset=kit.opsets(),
    pair=kit.tensors(kit.dtypes("float"), kit.broadcastable(2), low=0, high=40, finite=True),
)
def test_incomplete_gamma(packet, opset, pair):
    a, x = (x.abs().clamp(max=1000) for x in pair)
    kit.check_op(packet.default, a, x, opset=at(opset, a, x), **near(a.dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("packet", [aten.igamma, aten.igammac], ids=str)
def test_incomplete_gamma_from_small_to_large(packet, dtype):
    a = torch.cat([torch.tensor([0.0, math.inf, -1.0]), torch.logspace(-3, 4.5, 40)]).to(dtype)
    x = torch.cat([torch.tensor([0.0, math.inf, -1.0]), torch.logspace(-5, 5, 60)]).to(dtype)
    kit.check_op(packet.default, a[:, None], x, **near(dtype))
    kit.check_op(
        packet.default, a[:, None], a[:, None] * torch.linspace(0.7, 1.3, 13).to(dtype), **near(dtype)
    )


@given(opset=kit.opsets(), pair=kit.tensors(kit.dtypes("float"), kit.broadcastable(2), low=-3, high=9))
def test_xlog1py(opset, pair):
    kit.check_op(aten.special_xlog1py.default, *pair, opset=at(opset, *pair), **near(pair[0].dtype))


@pytest.mark.parametrize("eps", [None, 0.0, 0.2, 0.5, 0.7])
def test_logit_with_crossed_bounds_takes_the_lower_first(eps):
    kit.check_op(aten.logit.default, torch.tensor([0.1, 0.4, 0.5, 0.65, 0.9, math.nan]), eps, atol=1e-6)


def test_nothing_gives_nothing():
    for packet in (aten.lgamma, aten.special_bessel_j0):
        kit.check_op(packet.default, torch.zeros(0, 3))
    kit.check_op(aten.special_zeta.default, torch.zeros(0), torch.zeros(3, 1))
    kit.check_op(aten.igamma.default, torch.zeros(2, 0), torch.zeros(1))
