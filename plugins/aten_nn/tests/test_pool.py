"""Pooling against eager torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
MAX = (aten.max_pool1d, aten.max_pool2d, aten.max_pool3d)
INDEXED = (aten.max_pool1d_with_indices, aten.max_pool2d_with_indices, aten.max_pool3d_with_indices)
AVERAGE = (aten.avg_pool1d, aten.avg_pool2d, aten.avg_pool3d)
ADAPTIVE_MAX = (aten.adaptive_max_pool1d, aten.adaptive_max_pool2d, aten.adaptive_max_pool3d)
ADAPTIVE = (aten.adaptive_avg_pool1d, aten.adaptive_avg_pool2d, aten.adaptive_avg_pool3d)


@st.composite
def inputs(draw, spatial, low=6, high=9):
    dtype = draw(st.sampled_from([torch.float32, torch.float32, torch.float64]))
    sizes = [draw(st.integers(low, high)) for _ in range(spatial)]
    batch = draw(st.sampled_from([(), (1,), (2,)]))
    return kit.make_tensor(dtype, (*batch, 2, *sizes), draw(st.integers(0, 99)))


@st.composite
def windows(draw, spatial):
    each = st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial)
    kernel, stride = draw(each), draw(each)
    return kernel, stride, [draw(st.integers(0, k // 2)) for k in kernel]


@given(data=st.data(), opset=kit.opsets(), spatial=st.integers(1, 3), ceil=st.booleans())
def test_max_pool(data, opset, spatial, ceil):
    x = data.draw(inputs(spatial))
    kernel, stride, padding = data.draw(windows(spatial))
    dilation = data.draw(st.sampled_from([1, 2] if ceil is False else [1]))
    arguments = (kernel, stride, padding, [dilation] * spatial, ceil)
    other = torch.randn(*x.shape[:-1], x.shape[-1] + 3, dtype=x.dtype)
    kit.check_op(MAX[spatial - 1].default, x, *arguments, opset=opset, also=[(other, *arguments)])
    kit.check_op(INDEXED[spatial - 1].default, x, *arguments, opset=opset, also=[(other, *arguments)])


@given(
    data=st.data(),
    opset=kit.opsets(),
    spatial=st.integers(1, 3),
    ceil=st.booleans(),
    count=st.booleans(),
    divisor=st.sampled_from([None, None, 3]),
)
def test_avg_pool(data, opset, spatial, ceil, count, divisor):
    x = data.draw(inputs(spatial))
    arguments = [*data.draw(windows(spatial)), ceil, count]
    if spatial > 1:
        arguments.append(divisor)
    other = torch.randn(*x.shape[:-1], x.shape[-1] + 3, dtype=x.dtype)
    kit.check_op(
        AVERAGE[spatial - 1].default, x, *arguments, opset=opset, also=[(other, *arguments)], atol=1e-5
    )


@given(data=st.data(), opset=kit.opsets(), spatial=st.integers(1, 3), dynamic=st.booleans())
def test_adaptive_avg_pool_has_torchs_windows_at_every_size(data, opset, spatial, dynamic):
    x = data.draw(inputs(spatial))
    counts = [data.draw(st.integers(1, 6)) for _ in range(spatial)]
    other = torch.randn(*x.shape[:-1], x.shape[-1] + 4, dtype=x.dtype)
    also = [(other, counts)] if dynamic else []
    kit.check_op(ADAPTIVE[spatial - 1].default, x, counts, opset=opset, dynamic=dynamic, also=also, atol=1e-5)


@given(data=st.data(), opset=kit.opsets(), spatial=st.integers(1, 3), dynamic=st.booleans())
def test_adaptive_max_pool_and_its_places(data, opset, spatial, dynamic):
    x = data.draw(inputs(spatial))
    counts = [data.draw(st.integers(1, 6)) for _ in range(spatial)]
    other = torch.randn(*x.shape[:-1], x.shape[-1] + 4, dtype=x.dtype)
    also = [(other, counts)] if dynamic else []
    overload = ADAPTIVE_MAX[spatial - 1].default
    for outputs in ((0,), (0, 1)):
        kit.check_op(overload, x, counts, opset=opset, dynamic=dynamic, also=also, outputs=outputs)


def test_adaptive_windows_that_are_alike_are_one_node():
    x = torch.randn(2, 3, 7, 8)
    for counts, expect in (
        ([1, 1], "GlobalAveragePool:1!"),
        ([3, 4], "AveragePool:1!"),
        ([7, 2], "AveragePool:1!"),
    ):
        kit.check_op(aten.adaptive_avg_pool2d.default, x, counts, dynamic=False, expect=expect)


def test_a_default_stride_is_the_kernel():
    kit.check_op(aten.max_pool2d.default, torch.randn(1, 2, 6, 6), [2, 3], expect="MaxPool:1!")
    kit.check_op(aten.avg_pool2d.default, torch.randn(1, 2, 6, 6), [2, 3], expect="AveragePool:1!")


INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


@given(
    opset=kit.opsets(),
    spatial=st.integers(1, 3),
    dtype=st.sampled_from(INTEGERS),
    single=st.booleans(),
    stride=st.integers(1, 3),
    padding=st.integers(0, 1),
    dilation=st.integers(1, 2),
    ceil=st.booleans(),
    lowest=st.booleans(),
    seed=st.integers(0, 99),
)
def test_maxima_of_integers(opset, spatial, dtype, single, stride, padding, dilation, ceil, lowest, seed):
    x = kit.make_tensor(dtype, (*([] if single else [2]), 2, *(7, 6, 5)[:spatial]), seed)
    if lowest:
        x = torch.full_like(x, torch.iinfo(dtype).min)
    overload = (aten.max_pool1d_with_indices, aten.max_pool2d_with_indices, aten.max_pool3d_with_indices)
    windows = ([n] * spatial for n in (2, stride, padding, dilation))
    kit.check_op(overload[spatial - 1].default, x, *windows, ceil, opset=opset)


@given(
    opset=kit.opsets(),
    spatial=st.integers(1, 3),
    single=st.booleans(),
    stride=st.integers(1, 3),
    padding=st.integers(0, 1),
    ceil=st.booleans(),
    include=st.booleans(),
    divisor=st.sampled_from([None, 5, -2]),
    seed=st.integers(0, 99),
)
def test_averages_of_integers_are_cut_off(
    opset, spatial, single, stride, padding, ceil, include, divisor, seed
):
    x = kit.make_tensor(torch.int64, (*([] if single else [2]), 2, *(7, 6, 5)[:spatial]), seed)
    overload = (aten.avg_pool1d, aten.avg_pool2d, aten.avg_pool3d)[spatial - 1].default
    windows = ([n] * spatial for n in (3, stride, padding))
    more = () if spatial == 1 else (divisor,)
    kit.check_op(overload, x, *windows, ceil, include, *more, opset=opset)
