"""Convolution, pooling and normalization of doubles give what eager torch gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

quick = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=20,
    suppress_health_check=list(HealthCheck),
)
opsets = st.sampled_from([11, 13, 17, 18, 20, 22])


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def close(made, expected: torch.Tensor) -> None:
    assert not made.warnings
    (found,) = made.run()
    assert found.shape == tuple(expected.shape) and found.dtype == np.float64
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-12, atol=1e-13)


def lists(draw, rank, low, high):
    return [draw(st.integers(low, high)) for _ in range(rank)]


@quick
@given(
    data=st.data(),
    opset=opsets,
    rank=st.integers(1, 3),
    group=st.sampled_from([1, 1, 2, 4]),
    bias=st.booleans(),
)
def test_conv(legalized, data, opset, rank, group, bias):
    kernel, strides, dilations = (lists(data.draw, rank, 1, 3) for _ in range(3))
    pads = lists(data.draw, rank, 0, 2)
    size = lists(data.draw, rank, 7, 9)
    x, w = numbers(2, 4, *size), numbers(8, 4 // group, *kernel)
    b = numbers(8) if bias else None
    fn = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    expected = fn(x, w, b, strides, pads, dilations, group)
    more = (b.numpy(),) if bias else ()
    made = legalized(
        lambda op, x: op.Conv(
            x,
            *map(op.const, (w.numpy(), *more)),
            strides=strides,
            pads=pads * 2,
            dilations=dilations,
            group=group,
        ),
        {"x": x.numpy()},
        opset,
        "onnxruntime",
    )
    close(made, expected)


@quick
@given(
    data=st.data(),
    opset=opsets,
    rank=st.integers(1, 3),
    group=st.sampled_from([1, 1, 2, 4]),
    bias=st.booleans(),
)
def test_conv_transpose(legalized, data, opset, rank, group, bias):
    kernel, strides, dilations = (lists(data.draw, rank, 1, 3) for _ in range(3))
    pads, more = lists(data.draw, rank, 0, 3), [data.draw(st.integers(0, s - 1)) for s in strides]
    size = lists(data.draw, rank, 3, 5)
    if any(
        (n - 1) * s - 2 * p + d * (k - 1) + m + 1 < 1
        for n, s, p, d, k, m in zip(size, strides, pads, dilations, kernel, more, strict=True)
    ):
        return
    x, w = numbers(2, 4, *size), numbers(4, 3, *kernel)
    b = numbers(3 * group) if bias else None
    fn = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    expected = fn(x, w, b, strides, pads, more, group, dilations)
    made = legalized(
        lambda op, x: op.ConvTranspose(
            x,
            *map(op.const, (w.numpy(), *((b.numpy(),) if bias else ()))),
            strides=strides,
            pads=pads * 2,
            dilations=dilations,
            output_padding=more,
            group=group,
        ),
        {"x": x.numpy()},
        opset,
        "onnxruntime",
    )
    close(made, expected)


@quick
@given(data=st.data(), opset=opsets, rank=st.integers(1, 3), include=st.booleans())
def test_average_pool(legalized, data, opset, rank, include):
    kernel, strides = lists(data.draw, rank, 1, 4), lists(data.draw, rank, 1, 3)
    pads = [data.draw(st.integers(0, k // 2)) for k in kernel]
    x = numbers(2, 3, *lists(data.draw, rank, 5, 8))
    fn = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1]
    expected = fn(x, kernel, strides, pads, False, include)
    made = legalized(
        lambda op, x: op.AveragePool(
            x, kernel_shape=kernel, strides=strides, pads=pads * 2, count_include_pad=int(include)
        ),
        {"x": x.numpy()},
        opset,
        "onnxruntime",
    )
    close(made, expected)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize(
    "size, kernel, stride, pad", [(7, 2, 2, 1), (7, 3, 2, 0), (8, 3, 3, 1), (5, 2, 3, 1)]
)
def test_average_pool_rounds_sizes_up_as_torch_does(size, kernel, stride, pad, include):
    import atonnx

    x = numbers(2, 3, size, size)
    model = torch.nn.AvgPool2d(kernel, stride, pad, ceil_mode=True, count_include_pad=include).eval()
    program = atonnx.export(model, (x,))
    torch.testing.assert_close(program(x)[0], model(x), rtol=1e-13, atol=1e-14)


def test_pooling_of_powers(legalized):
    x = numbers(2, 3, 8)
    for opset in (11, 18):
        made = legalized(
            lambda op, x: op.LpPool(x, kernel_shape=[3], strides=[2], p=3),
            {"x": x.abs().numpy()},
            opset,
            "onnxruntime",
        )
        close(made, F.lp_pool1d(x.abs(), 3, 3, 2))


@pytest.mark.parametrize("opset", [11, 17, 20, 22])
def test_global_pools(legalized, opset):
    x = numbers(2, 3, 4, 5)
    for name, expected in {
        "GlobalAveragePool": x.mean((2, 3), keepdim=True),
        "GlobalMaxPool": x.amax((2, 3), keepdim=True),
        "GlobalLpPool": x.square().sum((2, 3), keepdim=True).sqrt(),
    }.items():
        close(
            legalized(lambda op, x, name=name: getattr(op, name)(x), {"x": x.numpy()}, opset, "onnxruntime"),
            expected,
        )


@pytest.mark.parametrize("opset", [11, 18, 22])
def test_normalizations(legalized, opset):
    x, scale, bias = numbers(2, 3, 4, 5), numbers(3), numbers(3) + 1
    made = legalized(
        lambda op, x: op.InstanceNormalization(
            x, op.const(scale.numpy()), op.const(bias.numpy()), epsilon=0.01
        ),
        {"x": x.numpy()},
        opset,
        "onnxruntime",
    )
    close(made, F.instance_norm(x, weight=scale, bias=bias, eps=0.01))
    made = legalized(lambda op, x: op.LRN(x, size=2, alpha=0.5), {"x": x.numpy()}, opset, "onnxruntime")
    # torch counts the window from the other side where its size is even.
    expected = F.local_response_norm(x.flip(1), 2, alpha=0.5).flip(1)
    close(made, expected)


def test_a_model_of_convolutions_with_dynamic_sizes():
    import atonnx

    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2, padding=1, groups=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.GELU(),
        torch.nn.Conv2d(8, 8, 3, groups=8),
        torch.nn.ConvTranspose2d(8, 4, 2, stride=2),
        torch.nn.AvgPool2d(2, padding=1, count_include_pad=False),
        torch.nn.AdaptiveAvgPool2d(1),
    )
    model = model.double().eval()
    x = numbers(2, 3, 16, 18)
    axes = {0: "n", 2: "h", 3: "w"}
    program = atonnx.export(model, (x,), dynamic_shapes=(axes,))
    for value in (x, numbers(3, 3, 21, 17)):
        torch.testing.assert_close(program(value)[0], model(value), rtol=1e-12, atol=1e-13)
