"""Batch normalization as part of the weights of the convolution before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build.weights import Derived, Recipe
from atonnx_onnx_passes._rewrite import Rewriter, Rules
from atonnx_onnx_passes._values import attribute, dims_of, input_at, made_by

__all__ = ["ScaledWeight", "ShiftedBias", "rules"]

rules = Rules()


def _constant(tape: ir.tape.Tape, array: Any, name: str) -> ir.Value:
    return tape.initializer(ir.tensor(array, name=name))


def _scale(gamma: torch.Tensor, var: torch.Tensor, eps: float) -> torch.Tensor:
    """What a channel is multiplied with, in double precision."""
    return gamma.double() / torch.sqrt(var.double() + eps)


def _scale_nodes(
    tape: ir.tape.Tape, gamma: ir.Value, var: ir.Value, eps: float, dtype: torch.dtype
) -> ir.Value:
    wide = int(ir.DataType.DOUBLE)
    gamma, var = tape.op("Cast", [gamma], {"to": wide}), tape.op("Cast", [var], {"to": wide})
    root = tape.op("Sqrt", [tape.op("Add", [var, _constant(tape, np.asarray(eps), "eps")])])
    return _cast(tape, tape.op("Div", [gamma, root]), dtype)


def _cast(tape: ir.tape.Tape, x: ir.Value, dtype: torch.dtype) -> ir.Value:
    return tape.op("Cast", [x], {"to": int(ir.tensor_adapters.from_torch_dtype(dtype))})


@dataclass(frozen=True)
class ScaledWeight(Recipe):
    """A weight times gamma / sqrt(var + eps), by output channel; sources: weight, gamma, var.

    The weight, of shape ``original``, is brought to ``shape``, where the channels are on one axis or
    two (groups, and channels of a group), and the scale to ``scale``, which broadcasts with that.
    """

    eps: float
    dtype: torch.dtype
    original: tuple[int, ...]
    shape: tuple[int, ...]
    scale: tuple[int, ...]

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        """The product, in the precision of the weight."""
        weight, gamma, var = sources
        if weight.is_meta:  # only dtype and shape are asked, which many small operators are slow to tell
            return torch.empty(self.original, dtype=self.dtype, device="meta")
        scale = _scale(gamma, var, self.eps).to(self.dtype).reshape(self.scale)
        return (weight.reshape(self.shape) * scale).reshape(self.original)

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        """Mul, with what the scale is made of."""
        weight, gamma, var = sources
        scale = _scale_nodes(tape, gamma, var, self.eps, self.dtype)
        scale = tape.op("Reshape", [scale, _constant(tape, np.asarray(self.scale, np.int64), "shape")])
        if self.original == self.shape:
            return tape.op("Mul", [weight, scale])
        weight = tape.op("Reshape", [weight, _constant(tape, np.asarray(self.shape, np.int64), "shape")])
        product = tape.op("Mul", [weight, scale])
        return tape.op("Reshape", [product, _constant(tape, np.asarray(self.original, np.int64), "shape")])


@dataclass(frozen=True)
class ShiftedBias(Recipe):
    """beta + (bias - mean) * gamma / sqrt(var + eps); sources: gamma, beta, mean, var, and bias if any."""

    eps: float
    dtype: torch.dtype

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        """In double precision, then brought to the dtype."""
        if sources[0].is_meta:
            return torch.empty(sources[0].shape, dtype=self.dtype, device="meta")
        gamma, beta, mean, var, *bias = (source.double() for source in sources)
        shift = bias[0] - mean if bias else -mean
        return (beta + shift * _scale(gamma, var, self.eps)).to(self.dtype)

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        """The same with Sub, Mul and Add."""
        wide = {"to": int(ir.DataType.DOUBLE)}
        gamma, beta, mean, var, *bias = sources
        scale = _scale_nodes(tape, gamma, var, self.eps, torch.float64)
        mean = tape.op("Cast", [mean], wide)
        shift = tape.op("Sub", [tape.op("Cast", [bias[0]], wide), mean]) if bias else tape.op("Neg", [mean])
        total = tape.op("Add", [tape.op("Cast", [beta], wide), tape.op("Mul", [shift, scale])])
        return _cast(tape, total, self.dtype)


@rules.on("BatchNormalization")
def into_convolution(node: ir.Node, graph: Rewriter) -> bool:
    """BatchNormalization after Conv, ConvTranspose or Gemm goes into its weight and bias.

    A weight that is used elsewhere stays, and so does the normalization: the weight would be stored twice.
    """
    before = made_by(node.inputs[0], "Conv", "ConvTranspose", "Gemm")
    if before is None or attribute(node, "training_mode", 0) or len(node.outputs) > 1 or graph.in_function:
        return False
    value, weight, bias = before.outputs[0], before.inputs[1], input_at(before, 2)
    if len(value.uses()) != 1 or value.is_graph_output() or before.graph is not node.graph:
        return False
    statistics = list(node.inputs[1:5])
    if not all(_stored(v) for v in (weight, *statistics)) or (bias is not None and not _stored(bias)):
        return False
    if weight is None or len(weight.uses()) != 1 or weight.is_graph_output():
        return False
    if value.dtype != node.outputs[0].dtype:
        return False
    shapes = _shapes(before, weight, bias)
    if shapes is None:
        return False
    stored: list[Any] = [v.const_value for v in (weight, *statistics, bias) if v is not None]
    tensor, gamma, beta, mean, var, *rest = stored
    eps = float(attribute(node, "epsilon", 1e-5))
    dtype = ir.tensor_adapters.to_torch_dtype(tensor.dtype)
    scaling = ScaledWeight(eps, dtype, tuple(tensor.shape.numpy()), *shapes)
    scaled = Derived(scaling, tensor, gamma, var, name=weight.name)
    shifted = Derived(ShiftedBias(eps, dtype), gamma, beta, mean, var, *rest)
    weight.const_value = scaled
    if bias is not None and len(bias.uses()) == 1 and not bias.is_graph_output():
        bias.const_value, shifted.name = shifted, bias.name
    else:
        name = (weight.name or "weight").removesuffix("weight") + "bias"
        bias = graph.initializer(shifted, node.outputs[0], name=name)
    attributes = list(before.attributes.values())
    return graph.become(node, before.op_type, [before.inputs[0], weight, bias], attributes, [before])


def _stored(value: ir.Value | None) -> bool:
    return value is not None and value.is_initializer() and not value.is_graph_input()


def _shapes(
    node: ir.Node, weight: ir.Value, bias: ir.Value | None
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """How weight and scale are shaped for the product; None where the bias is not one of channels."""
    dims: Sequence[int] = dims_of(weight) or ()
    rest = (1,) * (len(dims) - 2)
    if node.op_type == "Conv":
        shape, scale = tuple(dims), (dims[0], 1, *rest)
    elif node.op_type == "ConvTranspose":
        groups = attribute(node, "group", 1)
        shape = (groups, dims[0] // groups, *dims[1:])
        scale = (groups, 1, dims[1], *rest)
    else:
        if attribute(node, "alpha", 1.0) != 1.0 or attribute(node, "beta", 1.0) != 1.0:
            return None
        shape = tuple(dims)
        scale = (dims[0], 1) if attribute(node, "transB", 0) else (1, dims[1])
    channels = int(np.prod(scale))
    if bias is not None and dims_of(bias) != (channels,):
        return None
    return shape, scale
