"""Folding against eager torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
PAIR = st.lists(st.integers(1, 2), min_size=2, max_size=2)


@given(
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.float32, torch.float32, torch.float64]),
    size=st.lists(st.integers(4, 6), min_size=2, max_size=2),
    kernel=st.lists(st.integers(1, 3), min_size=2, max_size=2),
    dilation=PAIR,
    padding=st.lists(st.integers(0, 1), min_size=2, max_size=2),
    stride=PAIR,
    batch=st.sampled_from([(), (1,), (3,)]),
)
def test_fold(opset, dtype, size, kernel, dilation, padding, stride, batch):
    places = 1
    for i in range(2):
        room = size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1
        if room < 0:
            return
        places *= room // stride[i] + 1
    x = kit.make_tensor(dtype, (*batch, 2 * kernel[0] * kernel[1], places), 1)
    kit.check_op(
        aten.col2im.default, x, size, kernel, dilation, padding, stride, opset=opset, atol=1e-4, rtol=1e-4
    )


def test_the_size_of_another_image(run):
    class Fold(torch.nn.Module):
        def forward(self, x, like):
            return torch.nn.functional.fold(x, like.shape[-2:], (2, 2), stride=2)

    auto = torch.export.Dim.DYNAMIC
    args, *others = [
        (torch.randn(n, 12, h * w), torch.zeros(2 * h, 2 * w)) for n, h, w in ((2, 2, 3), (1, 3, 2))
    ]
    for opset in (17, 20):
        run(Fold(), args, ({0: auto, 2: auto}, {0: auto, 1: auto}), others, opset)


@given(
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    kernel=st.lists(st.integers(1, 3), min_size=2, max_size=2),
    dilation=PAIR,
    padding=st.lists(st.integers(0, 1), min_size=2, max_size=2),
    stride=PAIR,
    batch=st.sampled_from([(), (1,), (3,)]),
)
def test_unfold(opset, dtype, kernel, dilation, padding, stride, batch):
    calls = [
        (kit.make_tensor(dtype, (*batch, 2, *size), 1), kernel, dilation, padding, stride)
        for size in ((6, 7), (8, 5))
    ]
    kit.check_op(aten.im2col.default, *calls[0], opset=opset, also=calls[1:])


@given(
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    spatial=st.integers(2, 3),
    batch=st.sampled_from([(), (2,)]),
    more=st.integers(0, 1),
)
def test_unpool(opset, dtype, spatial, batch, more):
    x = kit.make_tensor(dtype, (*batch, 2, *(4, 6, 8)[:spatial]), 1)
    pool = (torch.nn.functional.max_pool2d, torch.nn.functional.max_pool3d)[spatial - 2]
    pooled, indices = pool(x, 2, return_indices=True)
    size = [n + more for n in x.shape[-spatial:]]
    if spatial == 2:
        kit.check_op(aten.max_unpool2d.default, pooled, indices, size, opset=opset)
    else:
        kit.check_op(aten.max_unpool3d.default, pooled, indices, size, [2] * 3, [0] * 3, opset=opset)
