"""Activation functions.

ONNX keeps float attributes in float32. Where that would round a number that a float64 tensor
meets, the function is spelled out with tensors of its dtype.
"""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import UNSIGNED, D, exact_float32, scalar_of, sizes_of
from atonnx_aten_nn.dropout import draw

aten = torch.ops.aten
table = Table(__name__)


def _rounds(x: Value, *numbers: float) -> bool:
    """Whether one of the numbers as an attribute would be another one to ``x``."""
    return x.dtype == D.DOUBLE and not all(exact_float32(number) for number in numbers)


@table.translate(aten.relu.default)
def relu(op: Builder, self: Value) -> Value:
    """Relu; unsigned integers are as they are."""
    return self if self.dtype in UNSIGNED else op.Relu(self)


@table.translate(aten.relu6.default)
def relu6(op: Builder, self: Value) -> Value:
    """Clip to [0, 6]."""
    return op.Clip(self, 0, 6)


@table.translate(aten.hardtanh.default)
def hardtanh(op: Builder, self: Value, min_val: Any = -1, max_val: Any = 1) -> Value:
    """Clip."""
    return op.Clip(self, scalar_of(self, min_val), scalar_of(self, max_val))


@table.translate(aten.gelu.default)
def gelu(op: Builder, self: Value, *, approximate: str = "none") -> Value:
    """Gelu."""
    return op.Gelu(self, approximate=approximate)


@table.translate(aten.silu.default)
def silu(op: Builder, self: Value) -> Value:
    """Mul by the Sigmoid. ONNX Runtime has no kernel for Swish, and fuses these two."""
    return op.Mul(self, op.Sigmoid(self))


@table.translate(aten.mish.default)
def mish(op: Builder, self: Value) -> Value:
    """Mish."""
    return op.Mish(self)


@table.translate(aten.hardsigmoid.default)
def hardsigmoid(op: Builder, self: Value) -> Value:
    """HardSigmoid."""
    if self.dtype == D.DOUBLE:
        return op.Div(op.Clip(op.Add(self, 3.0), 0.0, 6.0), 6.0)
    return op.HardSigmoid(self, alpha=1 / 6, beta=0.5)


@table.translate(aten.hardswish.default)
def hardswish(op: Builder, self: Value) -> Value:
    """HardSwish."""
    if self.dtype == D.DOUBLE:
        return op.Div(op.Mul(self, op.Clip(op.Add(self, 3.0), 0.0, 6.0)), 6.0)
    return op.HardSwish(self)


@table.translate(aten.leaky_relu.default)
def leaky_relu(op: Builder, self: Value, negative_slope: Any = 0.01) -> Value:
    """LeakyRelu; PRelu where the slope needs float64."""
    if _rounds(self, negative_slope):
        return op.PRelu(self, negative_slope)
    return op.LeakyRelu(self, alpha=float(negative_slope))


@table.translate(aten.prelu.default)
def prelu(op: Builder, self: Value, weight: Value) -> Value:
    """PRelu, the slopes along the channel axis."""
    if weight.dims == (1,) or not weight.rank:
        slopes = weight if self.rank else op.Reshape(weight, op.shape([]))
    else:
        channels = sizes_of(weight)[0]
        slopes = op.reshape(weight, (channels, *(1,) * (self.rank - 2)))
    return op.PRelu(self, slopes)


@table.translate(aten._prelu_kernel.default)
def prelu_kernel(op: Builder, self: Value, weight: Value) -> Value:
    """PRelu; the slopes have the rank of the input already."""
    return op.PRelu(self, weight)


@table.translate(aten.rrelu.default)
def rrelu(
    op: Builder,
    self: Value,
    lower: Any = 0.125,
    upper: Any = 0.33333333333333331,
    training: bool = False,
    generator: Any = None,
) -> Value:
    """LeakyRelu with the mean slope; PRelu with random slopes in training."""
    if training:
        return op.PRelu(self, op.cast(draw(op, self, float(lower), float(upper)), self.dtype))
    return leaky_relu(op, self, (lower + upper) / 2)


@table.translate(aten.rrelu_with_noise_functional.default)
def rrelu_with_noise_functional(
    op: Builder,
    self: Value,
    noise: Value,
    lower: Any = 0.125,
    upper: Any = 0.33333333333333331,
    training: bool = False,
    generator: Any = None,
) -> tuple[Value, Value]:
    """LeakyRelu with the mean slope; in training Mul by the noise, which is random slopes and ones."""
    if not training:
        return leaky_relu(op, self, (lower + upper) / 2), noise
    slopes = op.cast(draw(op, self, float(lower), float(upper)), self.dtype)
    slopes = op.Where(op.LessOrEqual(self, 0.0), slopes, 1.0)
    return op.Mul(self, slopes), slopes


@table.translate(aten.elu.default)
def elu(op: Builder, self: Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Value:
    """Elu; Selu for its two numbers; else spelled out around Elu."""
    if input_scale == 1 and not _rounds(self, alpha):
        if scale == 1:
            return op.Elu(self, alpha=float(alpha))
        if not _rounds(self, scale):
            return op.Selu(self, alpha=float(alpha), gamma=float(scale))
    negative = op.Elu(self if input_scale == 1 else op.Mul(self, float(input_scale)))
    if alpha != 1:
        negative = op.Mul(negative, float(alpha))
    result = op.Where(op.Greater(self, 0.0), self, negative)
    return result if scale == 1 else op.Mul(result, float(scale))


@table.translate(aten.selu.default)
def selu(op: Builder, self: Value) -> Value:
    """Selu."""
    return elu(op, self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@table.translate(aten.celu.default)
def celu(op: Builder, self: Value, alpha: Any = 1.0) -> Value:
    """Elu where alpha is 1, else Celu."""
    if alpha == 1:
        return op.Elu(self)
    if self.dtype == D.FLOAT:
        return op.Celu(self, alpha=float(alpha))
    return elu(op, self, alpha, 1, 1 / alpha)


@table.translate(aten.softplus.default)
def softplus(op: Builder, self: Value, beta: Any = 1, threshold: Any = 20) -> Value:
    """Softplus; where it is the identity to float32 anyway, the threshold is left out."""
    scaled = self if beta == 1 else op.Mul(self, float(beta))
    result = op.Softplus(scaled)
    if beta != 1:
        result = op.Div(result, float(beta))
    if threshold >= 20 and self.dtype != D.DOUBLE:
        return result
    return op.Where(op.Greater(scaled, float(threshold)), self, result)


@table.translate(aten.glu.default)
def glu(op: Builder, self: Value, dim: int = -1) -> Value:
    """Split in two, one half by the Sigmoid of the other."""
    value, gate = op.Split(self, axis=dim, num_outputs=2)
    return op.Mul(value, op.Sigmoid(gate))


@table.translate(aten.log_sigmoid.default)
def log_sigmoid(op: Builder, self: Value) -> Value:
    """Softplus between two Neg."""
    return op.Neg(op.Softplus(op.Neg(self)))


@table.translate(aten.log_sigmoid_forward.default)
def log_sigmoid_forward(op: Builder, self: Value) -> tuple[Value, Value]:
    """Softplus between two Neg; the second result is what torch keeps for the gradient."""
    return log_sigmoid(op, self), op.Exp(op.Neg(op.Abs(self)))


@table.translate(aten.threshold.default)
def threshold(op: Builder, self: Value, threshold: Any, value: Any) -> Value:
    """Where; nan stays."""
    low = op.LessOrEqual(self, scalar_of(self, threshold))
    return op.Where(low, scalar_of(self, value), self)


@table.translate(aten.softshrink.default)
def softshrink(op: Builder, self: Value, lambd: Any = 0.5) -> Value:
    """What is left of the input without its part in [-lambd, lambd]; unlike of Shrink, nan stays."""
    return op.Sub(self, op.Clip(self, -float(lambd), float(lambd)))


@table.translate(aten.hardshrink.default)
def hardshrink(op: Builder, self: Value, lambd: Any = 0.5) -> Value:
    """Where; unlike of Shrink, nan stays."""
    return op.Where(op.LessOrEqual(op.Abs(self), float(lambd)), 0.0, self)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample, Weight

    def x() -> tuple[torch.Tensor]:
        return (torch.randn(2, 4, 3),)

    plain = (
        aten.relu,
        aten.relu6,
        aten.hardtanh,
        aten.gelu,
        aten.silu,
        aten.mish,
        aten.hardsigmoid,
        aten.hardswish,
        aten.leaky_relu,
        aten.rrelu,
        aten.elu,
        aten.selu,
        aten.celu,
        aten.softplus,
        aten.log_sigmoid,
        aten.log_sigmoid_forward,
        aten.softshrink,
        aten.hardshrink,
    )
    return [
        *(OpSample(packet.default, x) for packet in plain),
        OpSample(aten.gelu.default, x, {"approximate": "tanh"}),
        OpSample(
            aten.rrelu_with_noise_functional.default,
            lambda: (torch.randn(5), torch.ones(5), 0.1, 0.3, True),
            options={"values": False},
        ),
        OpSample(aten.elu.default, lambda: (torch.randn(5), 1.5, 0.5, 2.0)),
        OpSample(aten.celu.default, lambda: (torch.randn(5), 0.3)),
        OpSample(aten.softplus.default, lambda: (torch.randn(5) * 4, 2.0, 3.0)),
        OpSample(aten.threshold.default, lambda: (torch.randn(5), 0.1, 7)),
        OpSample(aten.glu.default, lambda: (torch.randn(2, 4), -1)),
        OpSample(aten.prelu.default, lambda: (torch.randn(2, 4, 3), Weight(torch.randn(4)))),
        OpSample(aten._prelu_kernel.default, lambda: (torch.randn(2, 4, 3), Weight(torch.randn(1, 4, 1)))),
    ]
