"""Activations give the same numbers where they are spelled out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowered import agree, arrays, ops_of, opsets, shapes


@given(opset=opsets(11, 13, 19, 20), x=arrays(), approximate=st.sampled_from(["none", "tanh"]))
def test_gelu_is_spelled_out_below_20(opset, x, approximate):
    # ORT's Gelu of -inf is nan as well.
    model = agree(lambda op, x: op.Gelu(x, approximate=approximate), {"x": x}, opset, newest=20, atol=1e-5)
    assert (ops_of(model) == ["Gelu"]) == (opset >= 20)


@given(opset=opsets(11, 17, 23), x=arrays(special=False), alpha=st.sampled_from([1.0, 1.5]))
def test_swish_is_spelled_out_below_24(opset, x, alpha):
    expected = x / (1 + np.exp(-alpha * x))
    agree(lambda op, x: op.Swish(x, alpha=alpha), {"x": x}, opset, expected=[expected])


@given(opset=opsets(11, 23, 27), a=arrays(special=False))
def test_swiglu_is_spelled_out_below_28(opset, a):
    expected = a / (1 + np.exp(-a)) * (a + 1)
    agree(lambda op, a, b: op.SwiGLU(a, b), {"a": a, "b": a + 1}, opset, expected=[expected])


@pytest.mark.parametrize(("name", "since"), [("Mish", 18), ("HardSwish", 14)])
@given(data=st.data())
def test_mish_and_hard_swish_are_spelled_out(name, since, data):
    x, opset = data.draw(arrays(special=False)), data.draw(opsets(11, 13, since - 1, since))
    agree(lambda op, x: getattr(op, name)(x), {"x": x}, opset, newest=max(since, 18), atol=1e-5)


@given(
    opset=opsets(11, 12, 20, 27),
    x=arrays(),
    alpha=st.sampled_from([1.0, 0.5, 3.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_celu_of_every_float_at_every_opset(opset, x, alpha, dtype):
    x = x.astype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.maximum(x, 0) + np.minimum(0, dtype(alpha) * (np.exp(x / dtype(alpha)) - 1))
    agree(lambda op, x: op.Celu(x, alpha=alpha), {"x": x}, opset, expected=[expected.astype(dtype)])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.int8])
@pytest.mark.parametrize("opset", [11, 13])
def test_relu_of_integers_is_there_below_14(dtype, opset):
    x = np.array([-3, 0, 5], dtype)
    agree(lambda op, x: op.Relu(x), {"x": x}, opset, expected=[np.maximum(x, 0)])


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
@given(data=st.data())
def test_softmax_of_one_axis_is_kept_below_13(name, data):
    x = data.draw(arrays(special=False))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    dynamic = data.draw(st.booleans())
    agree(
        lambda op, x: getattr(op, name)(x, axis=axis),
        {"x": x},
        data.draw(opsets(11, 12, 13)),
        newest=13,
        dynamic=["x"] if dynamic else [],
    )


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
@given(data=st.data())
def test_softmax_as_of_opset_11_flattens_at_every_opset(name, data):
    x = data.draw(arrays(shape=shapes(2, 4), special=False))
    axis = data.draw(st.integers(0, x.ndim - 1))
    agree(
        lambda op, x: getattr(op.at(11), name)(x, axis=axis),
        {"x": x},
        data.draw(opsets(11, 13, 20)),
        newest=11,
    )
