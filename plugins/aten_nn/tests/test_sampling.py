"""Sampling against eager torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
DTYPES = st.sampled_from([torch.float32, torch.float64])


def grid(shape, spatial, dtype, seed):
    """Places in and around the input, a few of them exactly at its ends."""
    torch.manual_seed(seed)
    found = torch.rand(*shape, spatial, dtype=dtype) * 3 - 1.5
    found.view(-1)[: spatial + 1] = torch.tensor([-1.0, 1.0, 0.0, -1.0][: spatial + 1], dtype=dtype)
    return found


@given(
    opset=kit.opsets(),
    dtype=DTYPES,
    mode=st.integers(0, 2),
    padding=st.integers(0, 2),
    align=st.booleans(),
    seed=st.integers(0, 9),
)
def test_images(opset, dtype, mode, padding, align, seed):
    if 16 <= opset < 20:
        dtype = torch.float32  # no runtime has the older GridSample of float64
    calls = [
        (kit.make_tensor(dtype, (2, 2, *size), seed), grid((2, *out), 2, dtype, seed), mode, padding, align)
        for size, out in (((4, 5), (3, 4)), ((6, 3), (2, 5)))
    ]
    # torch's kernels take long to find the size of a result from symbols, half a minute for the cubic mode.
    dynamic = mode == 1
    kit.check_op(
        aten.grid_sampler_2d.default,
        *calls[0],
        opset=opset,
        dynamic=dynamic,
        also=calls[1:] if dynamic else [],
        atol=1e-5,
        rtol=1e-4,
    )


def test_a_module_that_samples_cubically_at_every_size(run):
    class Sample(torch.nn.Module):
        def forward(self, x, places):
            return torch.nn.functional.grid_sample(x, places, "bicubic", "border", align_corners=False)

    auto = torch.export.Dim.DYNAMIC
    args, *others = [
        (torch.randn(2, 2, a, b), grid((2, b, a), 2, torch.float32, a)) for a, b in ((4, 5), (6, 3))
    ]
    run(Sample(), args, ({2: auto, 3: auto}, {1: auto, 2: auto}), others, 16)


@given(
    opset=kit.opsets(),
    dtype=DTYPES,
    mode=st.integers(0, 1),
    padding=st.integers(0, 2),
    align=st.booleans(),
    seed=st.integers(0, 9),
)
def test_volumes(opset, dtype, mode, padding, align, seed):
    x = kit.make_tensor(dtype, (2, 2, 3, 4, 5), seed)
    places = grid((2, 2, 3, 4), 3, dtype, seed)
    kit.check_op(
        aten.grid_sampler_3d.default, x, places, mode, padding, align, opset=opset, atol=1e-5, rtol=1e-4
    )


@given(opset=kit.opsets(), dtype=DTYPES, spatial=st.integers(2, 3), align=st.booleans(), one=st.booleans())
def test_affine_grid(opset, dtype, spatial, align, one):
    theta = kit.make_tensor(dtype, (2, spatial, spatial + 1), 1)
    image = torch.zeros(2, 3, *((1, 5, 4) if one else (3, 5, 4))[:spatial])
    size = [kit.Size(image, axis) for axis in range(spatial + 2)]
    kit.check_op(aten.affine_grid_generator.default, theta, size, align, opset=opset, atol=1e-5, rtol=1e-4)
