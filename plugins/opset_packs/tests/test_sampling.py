"""Resizing and sampling at old and new opsets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lowered import agree, numbers, opsets

from atonnx.errors import UnsupportedOpError

_COORDINATES = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]


@given(
    opset=opsets(11, 15, 16, 19),
    rank=st.sampled_from([2, 3]),
    mode=st.sampled_from(["linear", "nearest", "cubic"]),
    padding=st.sampled_from(["zeros", "border", "reflection"]),
    align=st.sampled_from([0, 1]),
    dynamic=st.booleans(),
    seed=st.integers(0, 99),
)
def test_grid_sample(opset, rank, mode, padding, align, dynamic, seed):
    if rank == 3 and mode == "cubic":
        return  # ONNX Runtime has no kernel to compare with.
    x, grid = (
        numbers((2, 3, 5, 4, 3)[: rank + 2], seed=seed),
        numbers((2, 4, 3, 2)[: rank + 1] + (rank,), seed=seed),
    )
    agree(
        lambda op, x, g: op.GridSample(x, g, mode=mode, padding_mode=padding, align_corners=align),
        {"x": x, "g": grid * 1.2},
        opset,
        newest=20,
        rtol=1e-3,
        atol=1e-4,
        dynamic=["x", "g"] if dynamic else [],
    )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
@pytest.mark.parametrize("opset", [11, 16, 20])
def test_an_old_grid_sample_by_its_old_names(mode, opset):
    inputs = {"x": numbers((1, 2, 5, 4)), "g": numbers((1, 3, 3, 2))}
    agree(
        lambda op, x, g: op.at(16).GridSample(x, g, mode=mode), inputs, opset, newest=16, rtol=1e-3, atol=1e-4
    )


@given(
    opset=opsets(11, 19, 20),
    rank=st.sampled_from([2, 3]),
    align=st.sampled_from([0, 1]),
    constant=st.booleans(),
)
def test_affine_grid(opset, rank, align, constant):
    size = np.array([2, 3, 4, 5, 6][: rank + 2])
    inputs = {"t": numbers((2, rank, rank + 1))} | ({} if constant else {"s": size})
    agree(
        lambda op, t, s=None: op.AffineGrid(t, size.tolist() if s is None else s, align_corners=align),
        inputs,
        opset,
        newest=20,
        rtol=1e-4,
        atol=1e-5,
    )


@given(
    opset=opsets(11, 12, 13, 17, 18, 19),
    mode=st.sampled_from(["nearest", "linear", "cubic"]),
    coordinates=st.sampled_from(_COORDINATES),
    by_scale=st.booleans(),
    dynamic=st.booleans(),
)
def test_resize_of_some_axes(opset, mode, coordinates, by_scale, dynamic):
    scales, sizes = ([1.5, 2.0], None) if by_scale else (None, [7, 3])
    agree(
        lambda op, x: op.Resize(
            x, None, scales, sizes, axes=[2, 3], mode=mode, coordinate_transformation_mode=coordinates
        ),
        {"x": numbers((2, 3, 5, 4))},
        opset,
        newest=19,
        rtol=1e-4,
        atol=1e-5,
        dynamic=["x"] if dynamic else [],
    )


@given(
    opset=opsets(11, 17),
    mode=st.sampled_from(["linear", "cubic"]),
    coordinates=st.sampled_from(_COORDINATES),
    sizes=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    outside=st.sampled_from([0, 1]),
)
def test_resize_with_antialiasing_is_a_product_below_18(opset, mode, coordinates, sizes, outside):
    if coordinates == "align_corners" and 1 in sizes:
        return  # Where the one place lies is not agreed on.
    agree(
        lambda op, x: op.Resize(
            x,
            None,
            None,
            list(sizes),
            axes=[2, 3],
            mode=mode,
            antialias=1,
            exclude_outside=outside,
            coordinate_transformation_mode=coordinates,
        ),
        {"x": numbers((1, 2, 6, 5))},
        opset,
        newest=19,
        rtol=1e-3,
        atol=1e-4,
    )


@pytest.mark.parametrize("written", [11, 13, 18])
@pytest.mark.parametrize("opset", [11, 13, 18, 19, 20])
@pytest.mark.parametrize("by_scale", [False, True])
def test_an_old_resize_at_newer_opsets(written, opset, by_scale):
    x = numbers((1, 2, 4, 4))
    empty = np.zeros(0, np.float32)

    def call(op, x):
        scales = op.const(np.array([1, 1, 2, 2], np.float32)) if by_scale else op.const(empty)
        inputs = (op.const(empty), scales) if by_scale else (op.const(empty), scales, [1, 2, 8, 8])
        return op.at(11).Resize(x, *inputs, mode="linear")

    def newer(op, x):
        inputs = (None, [1.0, 1.0, 2.0, 2.0]) if by_scale else (None, None, [1, 2, 8, 8])
        return op.at(written).Resize(x, *inputs, mode="linear")

    agree(call if written == 11 else newer, {"x": x}, opset, newest=19)


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"coordinate_transformation_mode": "half_pixel_symmetric"}, "half_pixel_symmetric at opset 11"),
        ({"keep_aspect_ratio_policy": "not_larger"}, "not_larger at opset 11"),
    ],
)
def test_forms_of_resize_that_are_refused(attributes, text):
    with pytest.raises(UnsupportedOpError, match=text):
        agree(
            lambda op, x: op.Resize(x, None, None, [1, 1, 8, 8], mode="linear", **attributes),
            {"x": numbers((1, 1, 4, 4))},
            11,
        )


@given(
    opset=opsets(11, 17, 18),
    groups=st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2)]),
    stride=st.integers(1, 2),
    dilation=st.integers(1, 2),
    padding=st.integers(0, 1),
    masked=st.booleans(),
    biased=st.booleans(),
)
def test_deform_conv_is_gathers_and_a_product_below_19(
    opset, groups, stride, dilation, padding, masked, biased
):
    vision = pytest.importorskip("torchvision")
    group, offset_group = groups
    x, weight = numbers((2, 4, 6, 7)), numbers((6, 4 // group, 2, 3), seed=1)
    height, width = (
        (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
        for size, kernel in zip(x.shape[2:], weight.shape[2:], strict=True)
    )
    inputs = {"x": x, "w": weight, "o": numbers((2, offset_group * 12, height, width), seed=2)}
    if masked:
        inputs["m"] = np.abs(numbers((2, offset_group * 6, height, width), seed=3))
    if biased:
        inputs["b"] = numbers((6,), seed=4)
    expected = vision.ops.deform_conv2d(
        *(torch.tensor(inputs[name]) for name in "xow"),
        bias=torch.tensor(inputs["b"]) if biased else None,
        mask=torch.tensor(inputs["m"]) if masked else None,
        stride=stride,
        dilation=dilation,
        padding=padding,
    )
    agree(
        lambda op, x, w, o, m=None, b=None: op.DeformConv(
            x,
            w,
            o,
            b,
            m,
            group=group,
            offset_group=offset_group,
            strides=[stride] * 2,
            dilations=[dilation] * 2,
            pads=[padding] * 4,
        ),
        inputs,
        opset,
        expected=[expected.numpy()],
        rtol=1e-3,
        atol=1e-4,
    )
