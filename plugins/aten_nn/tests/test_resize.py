"""Resizing against eager torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
LINEAR = (aten.upsample_linear1d, aten.upsample_bilinear2d, aten.upsample_trilinear3d)
NEAREST = (aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_nearest3d)
EXACT = (aten._upsample_nearest_exact1d, aten._upsample_nearest_exact2d, aten._upsample_nearest_exact3d)
ANTIALIASED = (aten._upsample_bilinear2d_aa, aten._upsample_bicubic2d_aa, aten._upsample_lanczos2d_aa)

FACTORS = st.sampled_from([0.3, 0.5, 0.7, 1.0, 1.3, 1.5, 1.7, 2.0, 3.0])


@st.composite
def calls(draw, spatial):
    """An input, another of other sizes, and sizes or factors."""
    dtype = draw(st.sampled_from([torch.float32, torch.float32, torch.float64]))
    x, other = (
        kit.make_tensor(dtype, (2, 1, *draw(st.tuples(*[st.integers(4, 9)] * spatial))), seed)
        for seed in (3, 4)
    )
    if draw(st.booleans()):
        return x, other, list(draw(st.tuples(*[st.integers(1, 12)] * spatial))), None
    return x, other, None, list(draw(st.tuples(*[FACTORS] * spatial)))


def check(overload, call, *more, dynamic=True, **options):
    x, other, sizes, factors = call
    arguments = (sizes, *more, factors)
    also = [(other, *arguments)] if dynamic else []
    kit.check_op(overload, x, *arguments, dynamic=dynamic, also=also, atol=2e-5, rtol=1e-4, **options)


@given(
    data=st.data(), opset=kit.opsets(), spatial=st.integers(1, 3), align=st.booleans(), dynamic=st.booleans()
)
def test_linear(data, opset, spatial, align, dynamic):
    check(LINEAR[spatial - 1].vec, data.draw(calls(spatial)), align, dynamic=dynamic, opset=opset)


@given(data=st.data(), opset=kit.opsets(), align=st.booleans(), dynamic=st.booleans())
def test_cubic(data, opset, align, dynamic):
    check(aten.upsample_bicubic2d.vec, data.draw(calls(2)), align, dynamic=dynamic, opset=opset)


@given(
    data=st.data(),
    opset=kit.opsets(),
    packet=st.sampled_from(ANTIALIASED),
    align=st.booleans(),
    dynamic=st.booleans(),
)
def test_antialiased(data, opset, packet, align, dynamic):
    check(packet.vec, data.draw(calls(2)), align, dynamic=dynamic, opset=opset)


@given(
    data=st.data(), opset=kit.opsets(), spatial=st.integers(1, 3), exact=st.booleans(), dynamic=st.booleans()
)
def test_nearest(data, opset, spatial, exact, dynamic):
    packet = (EXACT if exact else NEAREST)[spatial - 1]
    check(packet.vec, data.draw(calls(spatial)), dynamic=dynamic, opset=opset)


@given(
    opset=kit.opsets(),
    packet=st.sampled_from([aten.upsample_bilinear2d, aten.upsample_bicubic2d, *ANTIALIASED[:2]]),
    channels=st.sampled_from([1, 3, 5]),
    size=st.lists(
        st.integers(2, 12), min_size=2, max_size=2
    ),  # at a width of 1 eager fails or reads elsewhere
    align=st.booleans(),
    seed=st.integers(0, 99),
)
def test_bytes_are_rounded_after_each_axis(opset, packet, channels, size, align, seed):
    torch.manual_seed(seed)
    x = torch.randint(0, 256, (2, channels, 7, 9), dtype=torch.uint8)
    kit.check_op(packet.vec, x, size, align, None, opset=opset, dynamic=False)
