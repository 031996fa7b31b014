"""Normalization against eager torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def at(opset, x):
    """The opset, or the first where ONNX's operators take the tensor's dtype."""
    return max(opset, 13) if x.dtype == torch.bfloat16 else opset


@st.composite
def inputs(draw, min_rank=2, max_rank=4, dtypes="float"):
    dtype = draw(kit.dtypes(dtypes))
    rank = draw(st.integers(min_rank, max_rank))
    return kit.make_tensor(dtype, (3, 4, 5, 2)[:rank], draw(st.integers(0, 99)))


def channel(x, seed=0, low=0.5, count=None):
    made = kit.make_tensor(torch.float32, (count or x.shape[1],), seed, low=low, high=2.0)
    return kit.Weight(made.to(x.dtype), "BUFFER")


@given(opset=kit.opsets(), x=inputs(), affine=st.booleans())
def test_batch_norm_by_running_statistics(opset, x, affine):
    weights = (channel(x), channel(x, 1)) if affine else (None, None)
    running = (channel(x, 2), channel(x, 3))
    kit.check_op(
        aten.batch_norm.default, x, *weights, *running, False, 0.1, 1e-5, False, opset=at(opset, x),
        expect="BatchNormalization:1", **TOLERANCE,
    )  # fmt: skip
    kit.check_op(
        aten._native_batch_norm_legit_no_training.default, x, *weights, *running, 0.1, 1e-5,
        opset=at(opset, x), outputs=(0,), **TOLERANCE,
    )  # fmt: skip


@given(opset=kit.opsets(), x=inputs(dtypes="wide"), affine=st.booleans())
def test_batch_norm_by_the_batchs_statistics(opset, x, affine):
    weights = (channel(x), channel(x, 1)) if affine else (None, None)
    kit.check_op(
        aten.batch_norm.default,
        x,
        *weights,
        None,
        None,
        True,
        0.1,
        1e-5,
        False,
        opset=at(opset, x),
        **TOLERANCE,
    )
    kit.check_op(
        aten._native_batch_norm_legit.no_stats, x, *weights, True, 0.1, 1e-5, opset=at(opset, x), **TOLERANCE
    )


@given(opset=kit.opsets(), x=inputs(dtypes="wide"))
def test_running_statistics_move_as_in_torch(opset, x):
    weights = [channel(x, seed) for seed in range(4)]
    kit.check_op(
        aten._native_batch_norm_legit_functional.default,
        x,
        *weights,
        True,
        0.3,
        1e-5,
        opset=at(opset, x),
        **TOLERANCE,
    )


def test_half_inputs_meet_float32_weights():
    x = torch.randn(2, 4, 3).bfloat16()
    weights = [kit.Weight(torch.rand(4) + 0.5, "BUFFER") for _ in range(4)]
    kit.check_op(aten.batch_norm.default, x, *weights, False, 0.1, 1e-5, False)


@given(opset=kit.opsets(), x=inputs(3, dtypes="wide"), affine=st.booleans())
def test_instance_norm_is_one_node(opset, x, affine):
    weights = (channel(x), channel(x, 1)) if affine else (None, None)
    arguments = (x, *weights, None, None, True, 0.1, 1e-5, False)
    kit.check_op(
        aten.instance_norm.default,
        *arguments,
        opset=at(opset, x),
        expect="InstanceNormalization:1",
        **TOLERANCE,
    )


@given(
    opset=kit.opsets(),
    x=inputs(1),
    count=st.integers(1, 2),
    affine=st.sampled_from(["none", "weight", "both"]),
)
def test_layer_norm(opset, x, count, affine):
    shape = list(x.shape[-min(count, x.dim()) :])
    made = [kit.Weight(kit.make_tensor(x.dtype, shape, seed)) for seed in range(2)]
    weights = {"none": (None, None), "weight": (made[0], None), "both": tuple(made)}[affine]
    kit.check_op(aten.layer_norm.default, x, shape, *weights, opset=at(opset, x), **TOLERANCE)
    kit.check_op(aten.native_layer_norm.default, x, shape, *weights, 1e-5, opset=at(opset, x), **TOLERANCE)


@given(opset=kit.opsets(), x=inputs(3), groups=st.sampled_from([1, 2, 4]), affine=st.booleans())
def test_group_norm(opset, x, groups, affine):
    weights = (channel(x), channel(x, 1)) if affine else (None, None)
    # torch's variance is the difference of two means, which cancel in small groups.
    kit.check_op(aten.group_norm.default, x, groups, *weights, opset=at(opset, x), rtol=1e-3, atol=1e-3)


@given(opset=kit.opsets(), x=inputs(2, dtypes="wide"), groups=st.sampled_from([1, 2]))
def test_native_group_norm_has_its_statistics(opset, x, groups):
    n, c, rest = x.shape[0], x.shape[1], x[0, 0].numel()
    arguments = (x, channel(x), channel(x, 1), n, c, rest, groups, 1e-5)
    kit.check_op(aten.native_group_norm.default, *arguments, opset=at(opset, x), dynamic=False, **TOLERANCE)


@given(
    opset=kit.opsets(),
    x=inputs(1),
    eps=st.sampled_from([None, 1e-3]),
    affine=st.booleans(),
    small=st.booleans(),
)
def test_rms_norm(opset, x, eps, affine, small):
    if small:  # where the epsilon is what counts
        x = x * 1e-3
    weight = kit.Weight(kit.make_tensor(x.dtype, x.shape[-1:], 1)) if affine else None
    kit.check_op(aten.rms_norm.default, x, [x.shape[-1]], weight, eps, opset=at(opset, x), **TOLERANCE)


def test_rms_norm_of_half_with_a_float32_weight_is_float32():
    x = torch.randn(3, 4).bfloat16()
    kit.check_op(aten.rms_norm.default, x, [4], kit.Weight(torch.randn(4)), 1e-5, rtol=1e-2, atol=1e-2)


def test_cudnns_form_is_that_of_batch_norm():
    arguments = (
        torch.randn(2, 3, 4),
        *(kit.Weight(torch.rand(3) + 0.5, "BUFFER") for _ in range(4)),
        False,
        0.1,
        1e-5,
    )
    made = kit.translate_op(aten.cudnn_batch_norm.default, *arguments, outputs=(0,))
    other = kit.translate_op(aten.batch_norm.default, *arguments, False)
    assert [n.op_type for n in made.graph] == [n.op_type for n in other.graph] == ["BatchNormalization"]


@given(opset=kit.opsets(), eps=st.sampled_from([1e-5, 1e-3, 2.0**-20, 1e-60]), seed=st.integers(0, 99))
def test_float64_is_computed_in_float64(opset, eps, seed):
    """Where the variance is as small as epsilon, a float32 epsilon shows."""
    x = kit.make_tensor(torch.float64, (3, 4, 5), seed) * 1e-3
    weights = (channel(x), channel(x, 1))
    last = channel(x, 4, count=5)
    exact = {"opset": opset, "rtol": 1e-12, "atol": 1e-12}
    running = (channel(x, 2), channel(x, 3, low=1e-6))
    kit.check_op(aten.batch_norm.default, x, *weights, *running, False, 0.1, eps, False, **exact)
    kit.check_op(aten.instance_norm.default, x, *weights, None, None, True, 0.1, eps, False, **exact)
    kit.check_op(aten.layer_norm.default, x, [5], last, None, eps, **exact)
    kit.check_op(aten.group_norm.default, x, 2, *weights, eps, **exact)
    kit.check_op(aten.rms_norm.default, x, [5], last, eps, **exact)
