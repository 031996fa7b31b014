"""Convolutions against eager torch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit
from atonnx.errors import UnsupportedOpError

aten = torch.ops.aten
PLAIN = (aten.conv1d, aten.conv2d, aten.conv3d)
TRANSPOSED = (aten.conv_transpose1d.default, aten.conv_transpose2d.input, aten.conv_transpose3d.input)


@st.composite
def convolutions(draw, transposed=False):
    spatial = draw(st.integers(1, 3))
    each = st.lists(st.integers(1, 2), min_size=spatial, max_size=spatial)
    kernel = draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    groups = draw(st.sampled_from([1, 2]))
    # Of ConvTranspose neither ONNX Runtime nor the reference has float64 with groups.
    others = [] if transposed else [torch.float64, torch.float16]
    dtype = draw(st.sampled_from([torch.float32, *others]))
    batch = draw(st.sampled_from([(), (1,), (3,)]))
    sizes = draw(st.lists(st.integers(5, 7), min_size=spatial, max_size=spatial))
    seed = draw(st.integers(0, 99))
    channels = (4, 6 // groups) if transposed else (6, 4 // groups)
    x = kit.make_tensor(dtype, (*batch, 4, *sizes), seed)
    weight = kit.Weight(kit.make_tensor(dtype, (*channels, *kernel), seed + 1))
    bias = draw(st.sampled_from([None, kit.Weight(kit.make_tensor(dtype, (6,), seed + 2))]))
    return x, weight, bias, draw(each), [k // 2 for k in kernel], draw(each), groups


@given(opset=kit.opsets(), case=convolutions())
def test_conv(opset, case):
    x, weight, bias, stride, padding, dilation, groups = case
    packet = PLAIN[len(stride) - 1]
    arguments = (x, weight, bias, stride, padding, dilation, groups)
    kit.check_op(packet.default, *arguments, opset=opset, expect="Conv:1", rtol=1e-3, atol=1e-3)


@given(opset=kit.opsets(), case=convolutions(), name=st.sampled_from(["same", "valid"]))
def test_conv_with_named_padding(opset, case, name):
    x, weight, bias, stride, _, dilation, groups = case
    stride = [1] * len(stride) if name == "same" else stride
    overload = PLAIN[len(stride) - 1].padding
    arguments = (x, weight, bias, stride, name, dilation, groups)
    kit.check_op(overload, *arguments, opset=opset, expect="Conv:1", rtol=1e-3, atol=1e-3)


@given(opset=kit.opsets(), case=convolutions(transposed=True), more=st.booleans())
def test_conv_transpose(opset, case, more):
    x, weight, bias, stride, padding, dilation, groups = case
    extra = [1 if more and s > 1 else 0 for s in stride]
    overload = TRANSPOSED[len(stride) - 1]
    arguments = (x, weight, bias, stride, padding, extra, groups, dilation)
    kit.check_op(overload, *arguments, opset=opset, expect="ConvTranspose:1", rtol=1e-3, atol=1e-3)


@given(opset=kit.opsets(), case=convolutions(), transposed=st.just(False))
def test_core_convolution(opset, case, transposed):
    x, weight, bias, stride, padding, dilation, groups = case
    if x.dim() == len(stride) + 1:
        x = x[None]
    arguments = (x, weight, bias, stride, padding, dilation, transposed, [0] * len(stride), groups)
    kit.check_op(aten.convolution.default, *arguments, opset=opset, expect="Conv:1!", rtol=1e-3, atol=1e-3)


def test_a_padding_that_depends_on_the_input_is_padded_before():
    weight = kit.Weight(torch.randn(4, 3, 2))

    def arguments(x):
        return x, weight, None, [1], [kit.Size(x, 2) // 2]

    also = [arguments(torch.randn(1, 3, 9))]
    kit.check_op(aten.conv1d.default, *arguments(torch.randn(2, 3, 6)), expect="Pad:1 Conv:1", also=also)


def test_integers_are_refused_with_a_way_out():
    x, weight = torch.ones(1, 1, 4, dtype=torch.int64), torch.ones(1, 1, 2, dtype=torch.int64)
    with pytest.raises(UnsupportedOpError, match="cast input and weight"):
        kit.check_op(aten.conv1d.default, x, weight, dynamic=False)
