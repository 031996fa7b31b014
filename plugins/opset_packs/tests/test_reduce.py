"""Reductions with their axes as an input and as an attribute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowered import agree, arrays, build, numbers, ops_of, opsets, shapes

from atonnx.errors import UnsupportedOpError

_NAMES = [
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
]


@st.composite
def _axes(draw, rank):
    chosen = draw(st.lists(st.integers(0, rank - 1), unique=True, max_size=rank))
    return [axis - rank if draw(st.booleans()) else axis for axis in chosen]


@pytest.mark.parametrize("name", _NAMES)
@given(data=st.data())
def test_axes_become_an_attribute_below(name, data):
    x = np.abs(data.draw(arrays(special=False))) + 0.1
    axes = data.draw(st.none() | _axes(x.ndim))
    keepdims = data.draw(st.sampled_from([0, 1]))
    opset = data.draw(opsets(11, 12, 13, 17, 18))
    dynamic = ["x"] if data.draw(st.booleans()) else []
    model = agree(
        lambda op, x: getattr(op, name)(x, axes, keepdims=keepdims),
        {"x": x},
        opset,
        newest=18,
        rtol=1e-4,
        dynamic=dynamic,
    )
    assert ops_of(model) == [name]


@pytest.mark.parametrize("name", _NAMES)
@given(data=st.data())
def test_axes_become_an_input_above(name, data):
    x = np.abs(data.draw(arrays(special=False))) + 0.1
    axes = data.draw(st.none() | _axes(x.ndim).filter(bool))
    opset = data.draw(opsets(11, 13, 18, 20))
    agree(lambda op, x: getattr(op.at(11), name)(x, axes=axes), {"x": x}, opset, newest=11, rtol=1e-4)


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("opset", [11, 17])
def test_no_axis_leaves_the_rest_of_a_composite(name, opset):
    x = np.array([[1.0, -2.0]], "f") if "Log" not in name else np.array([[1.0, 2.0]], "f")
    expected = {
        "ReduceL1": np.abs(x),
        "ReduceL2": np.abs(x),
        "ReduceLogSum": np.log(np.abs(x)),
        "ReduceSumSquare": x * x,
    }.get(name, x)
    if name == "ReduceSum" and opset > 12:
        return
    agree(
        lambda op, x: getattr(op, name)(x, [], noop_with_empty_axes=1), {"x": x}, opset, expected=[expected]
    )


@pytest.mark.parametrize(("name", "opset"), [("ReduceMax", 17), ("ReduceSum", 12)])
def test_axes_that_the_model_computes_are_refused(name, opset):
    inputs = {"x": numbers((2, 3)), "axes": np.array([1])}
    with pytest.raises(UnsupportedOpError, match="over axes computed by the model") as caught:
        build(lambda op, x, axes: getattr(op, name)(x, axes), inputs, opset)
    assert f"opset {opset + 1}" in str(caught.value)


@given(opset=opsets(11, 17, 18, 19, 20), x=arrays(dtype=np.bool_), keepdims=st.sampled_from([0, 1]))
def test_extremes_of_truth_values_are_there_below_20(opset, x, keepdims):
    axis = x.ndim - 1
    expected = x.max(axis=axis, keepdims=bool(keepdims))
    agree(lambda op, x: op.ReduceMax(x, [axis], keepdims=keepdims), {"x": x}, opset, expected=[expected])


@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
@given(data=st.data())
def test_the_last_of_equal_numbers_is_found_below_12(name, data):
    x = data.draw(arrays(dtype=np.int32)) % 3
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    keepdims = data.draw(st.sampled_from([0, 1]))
    agree(
        lambda op, x: getattr(op, name)(x, axis=axis, keepdims=keepdims, select_last_index=1),
        {"x": x},
        data.draw(opsets(11, 12, 13)),
        newest=13,
        dynamic=["x"] if data.draw(st.booleans()) else [],
    )


@given(data=st.data(), exclusive=st.sampled_from([0, 1]), reverse=st.sampled_from([0, 1]))
def test_cumulative_product_is_a_scan_below_26(data, exclusive, reverse):
    x = data.draw(arrays(special=False))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    turned = np.flip(x, axis) if reverse else x
    product = np.cumprod(turned, axis)
    if exclusive:
        first = np.ones_like(np.take(product, [0], axis))
        product = np.concatenate([first, np.take(product, range(x.shape[axis] - 1), axis)], axis)
    expected = np.flip(product, axis) if reverse else product
    agree(
        lambda op, x: op.CumProd(x, op.const(axis), exclusive=exclusive, reverse=reverse),
        {"x": x},
        data.draw(opsets(11, 20, 25)),
        expected=[expected],
        dynamic=["x"] if data.draw(st.booleans()) else [],
    )


@given(opset=opsets(11, 20, 26), dtype=st.sampled_from([np.float32, np.int64, np.float16]))
def test_range_of_half_precision_is_computed_in_float(opset, dtype):
    start, limit, delta = (np.array(n, dtype) for n in (1, 9, 2))
    inputs = {"a": start, "b": limit, "c": delta}
    agree(lambda op, a, b, c: op.Range(a, b, c), inputs, opset, expected=[np.arange(1, 9, 2).astype(dtype)])


@given(opset=opsets(11, 20, 24), x=arrays(shape=shapes(1, 2, min_side=3), special=False))
def test_topk_is_the_same_since_11(opset, x):
    agree(lambda op, x: op.TopK(x, [2], outputs=2), {"x": x}, opset, newest=11)
