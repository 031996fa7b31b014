"""Quantized models compute what eager torch computes, with QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from hypothesis import given
from hypothesis import strategies as st

import atonnx
from atonnx import testing as kit

aten = torch.ops.aten
ops = torch.ops.quantized_decomposed

# Powers of two: no division by the scale is rounded, so that no element is near a tie by chance.
SCALES = st.sampled_from([0.25, 0.5, 1.0, 4.0])
RANGES = st.sampled_from(
    [(0, 255), (-128, 127), (-127, 127), (0, 15), (-8, 7), (-(2**15), 2**15 - 1), (0, 2**20)]
)
PAIR = "QuantizeLinear:1 DequantizeLinear:1"


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 20


@given(
    opset=kit.opsets(low=13),
    shape=kit.shapes(max_rank=3),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.float16]),
    scale=SCALES,
    limits=RANGES,
    place=st.floats(0, 1),
)
def test_fake_quantization_of_a_tensor(opset, shape, dtype, scale, limits, place):
    x = numbers(*shape).to(dtype)
    zero = round(limits[0] + place * (limits[1] - limits[0]))
    kit.check_op(aten.fake_quantize_per_tensor_affine.default, x, scale, zero, *limits, opset=opset)
    kit.check_op(aten.fake_quantize_per_tensor_affine_cachemask.default, x, scale, zero, *limits, opset=opset)
    tensors = torch.tensor([scale]), torch.tensor([zero], dtype=torch.int32)
    kit.check_op(aten.fake_quantize_per_tensor_affine.tensor_qparams, x, *tensors, *limits, opset=opset)


@given(opset=kit.opsets(low=13), axis=st.integers(0, 2), limits=RANGES, whole=st.booleans())
def test_fake_quantization_of_channels(opset, axis, limits, whole):
    x = numbers(2, 3, 4)
    count = x.shape[axis]
    scales = torch.tensor([0.25, 1.0, 4.0, 0.5][:count])
    zeros = torch.tensor([2.0, 0.0, 1.0, 3.0][:count]) if whole else torch.tensor([2, 0, 1, 3][:count])
    args = (x, scales, zeros.to(torch.float32 if whole else torch.int32), axis, *limits)
    kit.check_op(aten.fake_quantize_per_channel_affine.default, *args, opset=opset)
    kit.check_op(aten.fake_quantize_per_channel_affine_cachemask.default, *args, opset=opset)
    learnt = (x, scales, zeros + 0.3, axis, *limits)
    kit.check_op(aten._fake_quantize_learnable_per_channel_affine.default, *learnt, opset=opset)


@given(
    opset=kit.opsets(low=13),
    dtype=st.sampled_from([torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32]),
    scale=SCALES,
    narrow=st.integers(0, 2),
    axis=st.integers(0, 1),
)
def test_quantization_to_every_dtype(opset, dtype, scale, narrow, axis):
    info = torch.iinfo(dtype)
    limits = info.min + narrow, info.max - narrow
    x = numbers(3, 4)
    zeros = torch.tensor([3, 0, 1, 2][: x.shape[axis]])
    scales = torch.tensor([0.25, 1.0, 4.0, 0.5][: x.shape[axis]])
    kit.check_op(ops.quantize_per_tensor.default, x, scale, 3, *limits, dtype, opset=opset)
    kit.check_op(ops.quantize_per_channel.default, x, scales, zeros, axis, *limits, dtype, opset=opset)
    q = numbers(3, 4).abs().to(dtype)
    kit.check_op(ops.dequantize_per_tensor.default, q, scale, 3, *limits, dtype, opset=opset)
    if dtype != torch.uint16:
        kit.check_op(ops.dequantize_per_channel.default, q, scales, zeros, axis, *limits, dtype, opset=opset)


def test_one_pair_of_nodes_where_the_dtype_has_the_range():
    x = numbers(2, 3)
    for limits in ((0, 255), (-128, 127)):
        kit.check_op(aten.fake_quantize_per_tensor_affine.default, x, 0.5, 3, *limits, expect=PAIR + "!")
    kit.check_op(aten.fake_quantize_per_tensor_affine.default, x, 0.5, 3, -127, 127, expect=PAIR + " Clip:1!")


class Dynamic(torch.nn.Module):
    """Scale and zero point found from the activation, as dynamic quantization has it."""

    def forward(self, x):
        scale, zero = ops.choose_qparams.tensor(x, 0, 255, 1e-5, torch.uint8)
        q = ops.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
        return ops.dequantize_per_tensor.tensor(q, scale, zero, 0, 255, torch.uint8)


@pytest.mark.parametrize("opset", [13, 20])
def test_dynamic_quantization_at_another_size(opset):
    module = Dynamic()
    shapes = ({0: torch.export.Dim.DYNAMIC},)
    program = atonnx.export(module, (numbers(3, 4),), dynamic_shapes=shapes, opset_version=opset)
    for x in (numbers(3, 4), numbers(7, 4, seed=1)):
        step = float((x.max() - x.min()) / 255)
        torch.testing.assert_close(program(x)[0], module(x), rtol=0, atol=step * 1.01)


class Blocks(torch.nn.Module):
    """A weight of 4 bits in bytes, with a scale for each 8 numbers of a row."""

    def __init__(self):
        super().__init__()
        self.register_buffer("q", torch.arange(-8, 8, dtype=torch.int8).repeat(6, 1))
        self.register_buffer("scales", torch.linspace(0.1, 1, 12).view(6, 2))

    def forward(self, x):
        w = ops.dequantize_per_channel_group(self.q, self.scales, None, -8, 7, torch.int8, 8, torch.float32)
        return torch.nn.functional.linear(x, w)


@pytest.mark.parametrize("opset", [13, 21])
def test_a_weight_in_blocks_stays_integer(opset):
    module, x = Blocks(), numbers(3, 16)
    program = atonnx.export(module, (x,), opset_version=opset)
    torch.testing.assert_close(program(x)[0], module(x))
    assert any(w.name == "q" and w.data_type == 3 for w in program.model_proto.graph.initializer)
    if opset == 21:
        assert [n.op_type for n in program.model_proto.graph.node].count("DequantizeLinear") == 1
