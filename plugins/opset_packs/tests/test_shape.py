"""Reshaping, joining and parting at older and newer opsets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lowered import agree, arrays, build, numbers, ops_of, opsets, run, shapes

from atonnx.errors import UnsupportedOpError


@given(opset=opsets(11, 12, 13, 21), data=st.data(), written=st.sampled_from([11, 25]))
def test_squeeze_and_unsqueeze_in_both_forms(opset, data, written):
    x = data.draw(arrays())
    axes = data.draw(st.lists(st.integers(0, x.ndim), min_size=1, max_size=2, unique=True))

    def call(op, x):
        if written == 11:
            return op.at(11).Squeeze(op.at(11).Unsqueeze(x, axes=axes), axes=axes)
        return op.Squeeze(op.Unsqueeze(x, axes), axes)

    model = agree(call, {"x": x}, opset, expected=[x])
    assert ops_of(model) == ["Unsqueeze", "Squeeze"]


@given(opset=opsets(11, 13), written=st.sampled_from([11, 25]))
def test_squeeze_without_axes_drops_every_single_one(opset, written):
    x = numbers((1, 3, 1))
    agree(lambda op, x: op.at(written).Squeeze(x), {"x": x}, opset, expected=[x.reshape(3)])


def test_axes_that_the_model_computes_are_refused():
    inputs = {"x": numbers((1, 3)), "axes": np.array([0])}
    with pytest.raises(UnsupportedOpError, match="Squeeze over axes computed by the model at opset 11"):
        build(lambda op, x, axes: op.Squeeze(x, axes), inputs, 11)


@given(opset=opsets(11, 13, 14, 15), x=arrays(), start=st.integers(-5, 5), end=st.none() | st.integers(-5, 5))
def test_part_of_a_shape(opset, x, start, end):
    expected = np.array(x.shape, np.int64)[start:end]
    agree(lambda op, x: op.Shape(x, start=start, end=end), {"x": x}, opset, expected=[expected])


@given(
    opset=opsets(11, 13, 14),
    sizes=st.sampled_from([((0, 3), (0, 7)), ((2, 0), (0, 2, 5)), ((2, 3), (3, 2))]),
    constant=st.booleans(),
)
def test_reshape_to_nothing_below_14(opset, sizes, constant):
    x, target = np.zeros(sizes[0], np.float32), np.array(sizes[1])
    inputs = {"x": x} if constant else {"x": x, "target": target}
    agree(
        lambda op, x, target=None: op.Reshape(x, list(sizes[1]) if target is None else target, allowzero=1),
        inputs,
        opset,
        expected=[x.reshape(sizes[1])],
    )


@given(
    opset=opsets(11, 13, 17, 18),
    size=st.integers(1, 9),
    count=st.integers(1, 4),
    axis=st.sampled_from([0, 1, -1]),
    dynamic=st.booleans(),
)
def test_split_into_a_number_of_parts(opset, size, count, axis, dynamic):
    each = -(-size // count)
    x = numbers((size, size))
    bounds = [min(i * each, size) for i in range(count + 1)]
    if bounds[-2] >= size:
        return
    expected = [np.take(x, range(a, b), axis) for a, b in zip(bounds, bounds[1:], strict=False)]
    agree(
        lambda op, x: op.Split(x, num_outputs=count, axis=axis, outputs=count),
        {"x": x},
        opset,
        expected=expected,
        dynamic=["x"] if dynamic else [],
    )


@given(
    opset=opsets(11, 12, 13, 18),
    parts=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    constant=st.booleans(),
)
def test_split_by_sizes(opset, parts, constant):
    x = numbers((2, sum(parts)))
    expected = np.split(x, np.cumsum(parts)[:-1], axis=1)
    inputs = {"x": x} if constant else {"x": x, "sizes": np.array(parts)}
    agree(
        lambda op, x, sizes=None: op.Split(x, parts if sizes is None else sizes, axis=1, outputs=len(parts)),
        inputs,
        opset,
        expected=expected,
    )


@given(opset=opsets(11, 13, 18, 20), written=st.sampled_from([11, 13]))
def test_an_old_split_at_newer_opsets(opset, written):
    x = numbers((6, 2))
    agree(lambda op, x: op.at(written).Split(x, outputs=3), {"x": x}, opset, expected=np.split(x, 3))
    sizes = {"split": [1, 5]}
    if written == 11:
        agree(
            lambda op, x: op.at(11).Split(x, outputs=2, **sizes), {"x": x}, opset, expected=np.split(x, [1])
        )


@given(
    opset=opsets(11, 13, 14),
    x=arrays(shape=shapes(2, 3)),
    k=st.integers(-3, 3),
    upper=st.sampled_from([0, 1]),
    dynamic=st.booleans(),
)
def test_trilu_is_a_mask_below_14(opset, x, k, upper, dynamic):
    expected = (np.triu if upper else np.tril)(x, k)
    agree(
        lambda op, x: op.Trilu(x, op.const(k), upper=upper),
        {"x": x},
        opset,
        expected=[expected],
        dynamic=["x"] if dynamic else [],
    )


@given(
    opset=opsets(11, 13, 17, 18, 20),
    pads=st.lists(st.integers(-1, 2), min_size=4, max_size=4),
    mode=st.sampled_from(["constant", "reflect", "edge", "wrap"]),
    constant=st.booleans(),
    dynamic=st.booleans(),
)
def test_pad_of_some_axes(opset, pads, mode, constant, dynamic):
    x = numbers((4, 3, 5))
    inputs = {"x": x} if constant else {"x": x, "pads": np.array(pads)}
    agree(
        lambda op, x, pads_=None, **v: op.Pad(x, v.get("pads", pads), None, [-1, 0], mode=mode),
        inputs,
        opset,
        newest=19,
        dynamic=["x"] if dynamic else [],
    )


@given(opset=opsets(11, 17, 18), before=st.integers(0, 9), after=st.integers(0, 9))
def test_wrapping_goes_round_more_than_once(opset, before, after):
    x = numbers((3,))
    expected = np.pad(x, (before, after), mode="wrap")
    agree(lambda op, x: op.Pad(x, [before, after], mode="wrap"), {"x": x}, opset, expected=[expected])


@pytest.mark.parametrize("written", [11, 13, 18])
@pytest.mark.parametrize("opset", [11, 13, 18, 19, 20])
def test_an_old_pad_at_newer_opsets(written, opset):
    x = numbers((2, 3))
    expected = np.pad(x, ((1, 0), (0, 2)), constant_values=4)
    agree(lambda op, x: op.at(written).Pad(x, [1, 0, 0, 2], 4.0), {"x": x}, opset, expected=[expected])


@pytest.mark.parametrize("opset", [11, 13, 27])
def test_space_to_depth_with_channels_first(opset):
    x = numbers((2, 3, 4, 6))
    expected = torch.nn.functional.pixel_unshuffle(torch.tensor(x), 2).numpy()
    for dynamic in ([], ["x"]):
        agree(
            lambda op, x: op.SpaceToDepth(x, blocksize=2, mode="CRD"),
            {"x": x},
            opset,
            expected=[expected],
            dynamic=dynamic,
        )


@given(opset=opsets(11, 17), wanted=st.lists(st.integers(1, 9), min_size=2, max_size=2))
def test_center_crop_pad(opset, wanted):
    x = numbers((3, 4, 5))
    call = lambda op, x: op.CenterCropPad(x, wanted, axes=[0, 2])  # noqa: E731
    agree(call, {"x": x}, opset, expected=run(build(call, {"x": x}, 18), {"x": x}))


@pytest.mark.parametrize("opset", [11, 12, 20])
@pytest.mark.parametrize("dtype", [np.bool_, np.float16, np.int8])
def test_pad_of_dtypes_that_an_old_version_lacks(opset, dtype):
    x = numbers((3,), dtype)
    agree(lambda op, x: op.Pad(x, [1, 1]), {"x": x}, opset, expected=[np.pad(x, 1)])
