"""Normalization at opsets that lack it, or knew it by other rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowered import agree, arrays, build, numbers, ops_of, opsets, run, shapes

from atonnx.errors import UnsupportedOpError


@given(
    opset=opsets(11, 13, 16, 17),
    x=arrays(shape=shapes(2, 4, min_side=2), special=False),
    axis=st.integers(-2, -1),
    bias=st.booleans(),
    outputs=st.integers(1, 3),
    dynamic=st.booleans(),
)
def test_layer_normalization(opset, x, axis, bias, outputs, dynamic):
    shape = x.shape[axis:]
    inputs = {"x": x, "s": numbers(shape), "b": numbers(shape, seed=1)}
    agree(
        lambda op, x, s, b: op.LayerNormalization(x, s, b if bias else None, axis=axis, outputs=outputs),
        inputs,
        opset,
        newest=17,
        rtol=1e-3,
        atol=1e-4,
        dynamic=["x"] if dynamic else [],
    )


@given(
    opset=opsets(11, 17, 22, 23),
    x=arrays(shape=shapes(2, 3, min_side=2), special=False),
    half=st.booleans(),
)
def test_rms_normalization_is_computed_in_float(opset, x, half):
    kind = np.float16 if half else np.float32
    x, scale = x.astype(kind), numbers(x.shape[-1:]).astype(kind)
    wide = x.astype(np.float32)
    normal = (wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + np.float32(1e-5))).astype(kind)
    agree(
        lambda op, x, s: op.RMSNormalization(x, s),
        {"x": x, "s": scale},
        opset if not half else min(opset, 22),
        expected=[normal * scale],
        rtol=1e-2 if half else 1e-4,
    )


@given(
    opset=opsets(11, 17, 20, 21),
    spatial=st.lists(st.integers(1, 4), min_size=1, max_size=2),
    dynamic=st.booleans(),
    batch=st.integers(0, 2),
)
def test_group_normalization_scales_channels(opset, spatial, dynamic, batch):
    x = numbers((batch, 6, *spatial))
    inputs = {"x": x, "s": numbers((6,)), "b": numbers((6,), seed=1)}
    grouped = x.reshape(batch, 3, 2 * int(np.prod(spatial)))
    mean, spread = grouped.mean(-1, keepdims=True), grouped.var(-1, keepdims=True)
    normal = ((grouped - mean) / np.sqrt(spread + 1e-5)).reshape(x.shape)
    shape = (6, *[1] * len(spatial))
    expected = normal * inputs["s"].reshape(shape) + inputs["b"].reshape(shape)
    if opset >= 21 and batch == 0:
        return  # ONNX Runtime's own kernel does not take an empty batch.
    agree(
        lambda op, x, s, b: op.GroupNormalization(x, s, b, num_groups=3),
        inputs,
        opset,
        expected=[expected],
        rtol=1e-3,
        atol=1e-4,
        dynamic=["x"] if dynamic else [],
    )


def _batch(half=False):
    inputs = {"x": numbers((4, 3, 5))}
    inputs |= {name: numbers((3,), seed=i) for i, name in enumerate(("s", "b", "m"))}
    inputs["v"] = np.abs(numbers((3,), seed=4)) + 0.5
    if half:
        inputs["x"] = inputs["x"].astype(np.float16)
    return inputs


@pytest.mark.parametrize("opset", [11, 13, 14, 15])
@pytest.mark.parametrize("written", [11, 14, 15])
def test_batch_normalization_by_given_statistics(opset, written):
    model = agree(
        lambda op, x, s, b, m, v: op.at(written).BatchNormalization(x, s, b, m, v), _batch(), opset, newest=15
    )
    assert ops_of(model) == ["BatchNormalization"]


@pytest.mark.parametrize("opset", [11, 13, 14, 15])
def test_batch_normalization_in_training(opset):
    inputs = _batch()
    x = inputs["x"]
    center, spread = x.mean((0, 2)), x.var((0, 2))
    normal = (x - center[:, None]) / np.sqrt(spread[:, None] + 1e-5)
    expected = [
        normal * inputs["s"][:, None] + inputs["b"][:, None],
        inputs["m"] * 0.8 + center * 0.2,
        inputs["v"] * 0.8 + spread * 0.2,
    ]
    agree(
        lambda op, x, s, b, m, v: op.BatchNormalization(
            x, s, b, m, v, training_mode=1, momentum=0.8, outputs=3
        ),
        inputs,
        opset,
        expected=expected,
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("opset", [11, 14])
def test_batch_normalization_of_several_dtypes_is_computed_in_the_widest(opset):
    inputs = _batch(half=True)
    wide = {**inputs, "x": inputs["x"].astype(np.float32)}
    model = build(lambda op, x, s, b, m, v: op.BatchNormalization(x, s, b, m, v), wide, 15)
    (expected,) = run(model, wide)
    agree(
        lambda op, x, s, b, m, v: op.BatchNormalization(x, s, b, m, v),
        inputs,
        opset,
        expected=[expected.astype(np.float16)],
        rtol=1e-3,
        atol=1e-3,
    )


@pytest.mark.parametrize("opset", [11, 12, 13, 20])
def test_dropout_outside_training_keeps_everything(opset):
    x = numbers((2, 3))
    agree(
        lambda op, x: op.Dropout(x, 0.3, op.const(False), outputs=2),
        {"x": x},
        opset,
        expected=[x, np.ones_like(x, bool)],
    )
    agree(lambda op, x: op.at(11).Dropout(x, ratio=0.3, outputs=1)[0], {"x": x}, opset, expected=[x])


def test_dropout_in_training_draws_a_mask_below_12():
    x = np.ones(1000, np.float32)
    call = lambda op, x: op.Dropout(x, 0.25, op.const(True), outputs=2)  # noqa: E731
    y, mask = run(build(call, {"x": x}, 11), {"x": x})
    assert 650 < mask.sum() < 850
    np.testing.assert_allclose(y, np.where(mask, 4 / 3, 0), rtol=1e-6)


def test_dropout_whose_training_mode_is_computed_is_refused_below_12():
    inputs = {"x": numbers((2,)), "training": np.array(True)}
    with pytest.raises(UnsupportedOpError, match="training mode the model computes at opset 11"):
        build(lambda op, x, training: op.Dropout(x, 0.3, training), inputs, 11)
