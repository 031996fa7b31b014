"""Padding against eager torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

import atonnx
from atonnx import testing as kit

aten = torch.ops.aten
DTYPES = st.sampled_from([torch.float32, torch.float64, torch.int64, torch.int32, torch.bool, torch.uint8])


@given(data=st.data(), opset=kit.opsets(), dtype=DTYPES, shape=kit.shapes(min_rank=1, max_rank=4))
def test_constants(data, opset, dtype, shape):
    count = data.draw(st.integers(0, len(shape)))
    pad = []
    for size in shape[::-1][:count]:
        first = data.draw(st.integers(-(size // 2), 3))
        pad += [first, data.draw(st.integers(-((size - 1) // 2) if size else 0, 3))]
    value = data.draw(st.sampled_from([0, 1, 2.5] if dtype.is_floating_point else [0, 1]))
    kit.check_op(aten.constant_pad_nd.default, kit.make_tensor(dtype, shape, 1), pad, value, opset=opset)


@given(
    data=st.data(),
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.int64]),
    spatial=st.integers(1, 3),
    mode=st.sampled_from(["reflect", "replicate", "circular"]),
)
def test_modes(data, opset, dtype, spatial, mode):
    low, high = (-2, 3)
    pad = [data.draw(st.integers(low, high)) for _ in range(2 * spatial)]
    x, other = (kit.make_tensor(dtype, (2, 1, *(5, 6, 7)[:spatial]), n) for n in (1, 2))
    kit.check_op(aten.pad.default, x, pad, mode, opset=opset, also=[(other, pad, mode)])


def test_sizes_of_another_tensor_pad(run):
    class Fit(torch.nn.Module):
        def __init__(self, mode):
            super().__init__()
            self.mode = mode

        def forward(self, x, y):
            more = y.shape[-1] - x.shape[-1]
            return torch.nn.functional.pad(x, (more // 2, more - more // 2), self.mode)

    auto = torch.export.Dim.DYNAMIC
    for mode in ("constant", "replicate"):
        sizes = ((5, 8), (5, 5), (7, 10), (8, 6) if mode == "constant" else (4, 6))
        args, *others = [(torch.randn(1, 2, a), torch.randn(1, 2, b)) for a, b in sizes]
        program = run(Fit(mode), args, ({2: auto}, {2: auto}), others, None)
        assert isinstance(program, atonnx.ONNXProgram)
