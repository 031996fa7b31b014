"""Convolutions against eager torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

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


@given(
    opset=kit.opsets(),
    spatial=st.integers(1, 3),
    dtype=st.sampled_from([torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]),
    single=st.booleans(),
    bias=st.booleans(),
    groups=st.sampled_from([1, 2]),
    steps=st.tuples(*[st.integers(1, 3)] * 3),
    transposed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_integers_wrap_around(opset, spatial, dtype, single, bias, groups, steps, transposed, seed):
    stride, padding, dilation = ([step] * spatial for step in steps)
    # Of narrower integers torch has no kernel with dilation and none of transposed convolutions.
    dtype = torch.int64 if transposed else dtype
    dilation = dilation if dtype == torch.int64 else [1] * spatial
    shape = (4, 6 // groups) if transposed else (6, 4 // groups)

    def made(*sizes):
        return kit.make_tensor(dtype, sizes, seed, low=0 if dtype == torch.uint8 else -100, high=100)

    x = made(*([] if single else [2]), 4, *(9, 8, 7)[:spatial])
    weight = kit.Weight(made(*shape, *(3, 2, 3)[:spatial]))
    arguments = (x, weight, kit.Weight(made(6)) if bias else None, stride, padding)
    if transposed:
        more = [min(s, d) - 1 for s, d in zip(stride, dilation, strict=True)]
        kit.check_op(TRANSPOSED[spatial - 1], *arguments, more, groups, dilation, opset=opset)
    else:
        kit.check_op(PLAIN[spatial - 1].default, *arguments, dilation, groups, opset=opset)


@given(
    opset=kit.opsets(),
    dtype=kit.dtypes("wide"),
    t=st.integers(3, 6),
    pad=st.integers(0, 2),
    k=st.integers(1, 3),
)
def test_convolution_of_time_batch_channels(opset, dtype, t, pad, k):
    x, weight = kit.make_tensor(dtype, (t, 2, 4)), kit.make_tensor(dtype, (k, 4, 5), 1)
    kit.check_op(aten.conv_tbc.default, x, weight, kit.make_tensor(dtype, (5,), 2), pad, opset=opset)


@given(opset=kit.opsets(), stride=st.integers(1, 2), padding=st.integers(0, 1), biased=st.booleans())
def test_slow_transposed_convolution(opset, stride, padding, biased):
    x, weight = kit.make_tensor(torch.float32, (2, 4, 5, 6)), kit.make_tensor(torch.float32, (4, 3, 3, 2), 1)
    bias = kit.make_tensor(torch.float32, (3,), 2) if biased else None
    args = ([3, 2], bias, [stride, 1], [padding, 0], [stride - 1, 0])
    kit.check_op(aten.slow_conv_transpose2d.default, x, weight, *args, opset=opset)
