"""Activation functions against eager torch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
X = kit.tensor(kit.dtypes("float"), kit.shapes(max_rank=3))
GLU = "Split:1 Sigmoid:1 Mul:1!"
NAN = "ONNX Runtime drops nan, or takes an infinity for one"


def at(opset, x):
    """The opset, or the first where ONNX's operators take the tensor's dtype."""
    return max(opset, 13) if x.dtype == torch.bfloat16 else opset


@given(
    opset=kit.opsets(),
    x=X,
    packet=st.sampled_from(
        [
            "relu",
            "relu6",
            "hardtanh",
            "hardsigmoid",
            "hardswish",
            "leaky_relu",
            "rrelu",
            "elu",
            "selu",
            "celu",
        ]
    ),
)
def test_functions_of_one_tensor_agree_at_every_opset_and_dtype(opset, x, packet):
    kit.check_op(getattr(aten, packet).default, x, opset=at(opset, x), ort_gap=NAN)


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float"), kit.shapes(max_rank=3), finite=True),
    packet=st.sampled_from(["silu", "mish", "softplus", "log_sigmoid", "softshrink", "hardshrink"]),
)
def test_smooth_and_shrinking_functions_agree_at_every_opset_and_dtype(opset, x, packet):
    kit.check_op(getattr(aten, packet).default, x, opset=at(opset, x), ort_gap=NAN)


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float"), kit.shapes(max_rank=3), finite=True),
    approximate=st.sampled_from(["none", "tanh"]),
)
def test_gelu_is_one_node_where_onnx_has_it(opset, x, approximate):
    expect = "Gelu:1!" if opset >= 20 else None
    kit.check_op(
        aten.gelu.default,
        x,
        approximate=approximate,
        opset=at(opset, x),
        expect=expect,
        atol=1e-5,
        ort_gap=NAN,
    )


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float"), kit.shapes(max_rank=2), finite=True),
    alpha=st.sampled_from([1, 0.3, 1.5]),
    scale=st.sampled_from([1, 0.7]),
    input_scale=st.sampled_from([1, 2.0]),
)
def test_elu_has_three_numbers(opset, x, alpha, scale, input_scale):
    kit.check_op(aten.elu.default, x, alpha, scale, input_scale, opset=at(opset, x))
    kit.check_op(aten.celu.default, x, alpha, opset=at(opset, x))


@given(opset=kit.opsets(), x=kit.tensor(kit.dtypes("wide", "int"), kit.shapes(max_rank=2), finite=True))
def test_numbers_are_cut_off_for_integers(opset, x):
    kit.check_op(aten.threshold.default, x, 1, 7, opset=at(opset, x))
    if x.dtype != torch.uint8:  # torch refuses a negative bound
        kit.check_op(aten.hardtanh.default, x, -1.5, 2.5, opset=at(opset, x))


@given(opset=kit.opsets(), x=kit.tensor(kit.dtypes("signed"), kit.shapes(max_rank=2)))
def test_relu_takes_integers(opset, x):
    kit.check_op(aten.relu.default, x, opset=at(opset, x))
    kit.check_op(aten.relu.default, x.to(torch.uint8), opset=at(opset, x))


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float"), kit.shapes(max_rank=2), finite=True),
    beta=st.sampled_from([1, 0.5, 3]),
    threshold=st.sampled_from([20, 2.0]),
)
def test_softplus_has_a_threshold(opset, x, beta, threshold):
    kit.check_op(aten.softplus.default, x, beta, threshold, opset=at(opset, x), atol=1e-6)


@given(opset=kit.opsets(), rank=st.integers(0, 4), dtype=kit.dtypes("float"), seed=st.integers(0, 99))
def test_prelu_slopes_go_along_the_channels(opset, rank, dtype, seed):
    x = kit.make_tensor(dtype, (2, 3, 2, 2)[:rank], seed)
    channels = 3 if rank > 1 else 1
    kit.check_op(
        aten.prelu.default, x, kit.Weight(kit.make_tensor(dtype, (channels,), seed)), opset=at(opset, x)
    )


@given(opset=kit.opsets(), dim=st.integers(-3, 2), dtype=kit.dtypes("float"), seed=st.integers(0, 99))
def test_glu_halves_any_axis(opset, dim, dtype, seed):
    x = kit.make_tensor(dtype, (2, 4, 6), seed)
    kit.check_op(aten.glu.default, x, dim, opset=at(opset, x), expect=GLU if opset >= 18 else None)


@pytest.mark.parametrize("slope", [0.01, 0.5])
def test_a_float64_tensor_meets_the_number_itself_not_its_float32(slope):
    x = torch.tensor([-1.0, -3.0, 2.0], dtype=torch.float64)
    kit.check_op(aten.leaky_relu.default, x, slope, rtol=0.0, atol=0.0)


def test_nan_survives_where_it_does_in_torch():
    x = torch.tensor([float("nan"), 1.0, -1.0, 0.2])
    for overload, args in (
        (aten.softshrink.default, ()),
        (aten.hardshrink.default, ()),
        (aten.threshold.default, (0, 5)),
    ):
        kit.check_op(overload, x, *args)


def test_random_slopes_in_training_keep_dtype_and_shape():
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.randn(3, 4).to(dtype)
        kit.check_op(aten.rrelu.default, x, 0.1, 0.3, True, values=False, expect="PRelu:1", opset=20)


@given(opset=kit.opsets(), x=kit.tensor(kit.dtypes("float"), kit.shapes(min_rank=1, max_rank=3)))
def test_random_slopes_and_their_noise(opset, x):
    rrelu, noise = aten.rrelu_with_noise_functional.default, torch.ones_like(x)
    kit.check_op(rrelu, x, noise, 0.1, 0.3, False, opset=at(opset, x), ort_gap=NAN)
    kit.check_op(rrelu, x, noise, 0.1, 0.3, True, opset=at(opset, x), values=False)
    kit.check_op(rrelu, x, noise, 0.25, 0.25, True, opset=at(opset, x), ort_gap=NAN)
