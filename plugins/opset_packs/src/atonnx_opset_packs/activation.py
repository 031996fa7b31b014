"""Activations."""

from __future__ import annotations

import math

import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import FLOATS, rank_of

pack = OpsetPack(__name__)

pack.same("Relu", 6, 13)
pack.same("Sigmoid", 6, 13)
pack.same("Tanh", 6, 13)
pack.same("LeakyRelu", 6, 16)
pack.same("PRelu", 9, 16)
pack.same("ThresholdedRelu", 10, 22)
pack.same("HardSwish", 14, 22)
pack.same("Mish", 18, 22)
for _name in ("Elu", "HardSigmoid", "Selu"):
    pack.same(_name, 6, 22)
for _name in ("Softplus", "Softsign"):
    pack.same(_name, 1, 22)


@pack.below(20, "Gelu")
def gelu(op: Builder, x: Value, *, approximate: str = "none") -> Value:
    """Spelled out with Erf, or with Tanh when approximate="tanh"."""
    if approximate == "tanh":
        cubic = op.Mul(op.Mul(op.Mul(x, x), x), 0.044715)
        inner = op.Tanh(op.Mul(op.Add(x, cubic), math.sqrt(2 / math.pi)))
    else:
        inner = op.Erf(op.Div(x, math.sqrt(2)))
    return op.Mul(op.Mul(x, 0.5), op.Add(inner, 1))


@pack.below(24, "Swish")
def swish(op: Builder, x: Value, *, alpha: float = 1.0) -> Value:
    """x * Sigmoid(alpha * x)."""
    return op.Mul(x, op.Sigmoid(x if alpha == 1.0 else op.Mul(x, alpha)))


@pack.below(18, "Mish")
def mish(op: Builder, x: Value) -> Value:
    """x * Tanh(Softplus(x))."""
    return op.Mul(x, op.Tanh(op.Softplus(x)))


@pack.below(28, "SwiGLU")
def swiglu(op: Builder, a: Value, b: Value, *, alpha: float = 1.0) -> Value:
    """a * Sigmoid(alpha * a) * b."""
    return op.Mul(op.Mul(a, op.Sigmoid(a if alpha == 1.0 else op.Mul(a, alpha))), b)


@pack.below(14, "HardSwish")
def hard_swish(op: Builder, x: Value) -> Value:
    """x * HardSigmoid(x) with a slope of a sixth."""
    return op.Mul(x, op.HardSigmoid(x, alpha=1 / 6, beta=0.5))


def _celu(op: Builder, x: Value, alpha: float) -> Value:
    """Max(x, 0) + Min(0, alpha * (Exp(x / alpha) - 1))."""
    scaled = x if alpha == 1.0 else op.Div(x, alpha)
    curved = op.Sub(op.Exp(scaled), 1)
    return op.Add(op.Relu(x), op.Min(0, curved if alpha == 1.0 else op.Mul(curved, alpha)))


@pack.below(28, "Celu")
def celu(op: Builder, x: Value, *, alpha: float = 1.0) -> Value:
    """Celu of floats; spelled out for doubles and half precision, which it did not take."""
    return op.at(12).Celu(x, alpha=alpha) if x.dtype == ir.DataType.FLOAT else _celu(op, x, alpha)


@pack.below(12, "Celu")
def celu_12(op: Builder, x: Value, *, alpha: float = 1.0) -> Value:
    """Spelled out with Exp."""
    return _celu(op, x, alpha)


@pack.above(12, "Celu")
def celu_up(op: Builder, x: Value, *, alpha: float = 1.0) -> Value:
    """Celu, unchanged in what it took."""
    return op.Celu(x, alpha=alpha)


@pack.below(14, "Relu")
def relu(op: Builder, x: Value) -> Value:
    """Relu of floats; Max for integers."""
    return op.at(13).Relu(x) if x.dtype in FLOATS else op.Max(x, 0)


@pack.above(6, "Relu")
def relu_up(op: Builder, x: Value) -> Value:
    """Relu, unchanged in what it took."""
    return op.Relu(x)


def _softmax_2d(op: Builder, name: str, x: Value, axis: int) -> Value:
    """The operator as of opset 11, which flattens all axes from ``axis`` on, over one axis."""
    rank = rank_of(op, x, name, 13)
    axis %= max(rank, 1)
    if axis == rank - 1:
        return getattr(op.at(11), name)(x, axis=axis)
    perm = [i for i in range(rank) if i != axis] + [axis]
    turned = getattr(op.at(11), name)(op.Transpose(x, perm=perm), axis=rank - 1)
    back = [perm.index(i) for i in range(rank)]
    return op.Transpose(turned, perm=back)


@pack.below(13, "Softmax")
def softmax(op: Builder, x: Value, *, axis: int = -1) -> Value:
    """Softmax of the last axis, transposed to where it is not the last."""
    return _softmax_2d(op, "Softmax", x, axis)


@pack.below(13, "LogSoftmax")
def log_softmax(op: Builder, x: Value, *, axis: int = -1) -> Value:
    """LogSoftmax of the last axis, transposed to where it is not the last."""
    return _softmax_2d(op, "LogSoftmax", x, axis)


@pack.below(13, "Hardmax")
def hardmax(op: Builder, x: Value, *, axis: int = -1) -> Value:
    """Hardmax of the last axis, transposed to where it is not the last."""
    return _softmax_2d(op, "Hardmax", x, axis)


def _flattened(op: Builder, name: str, x: Value, axis: int) -> Value:
    """The operator over all axes from ``axis`` on, as one."""
    if x.dims is not None and axis % max(x.rank, 1) == x.rank - 1:
        return getattr(op, name)(x, axis=-1)
    flat = getattr(op, name)(op.Flatten(x, axis=axis), axis=-1)
    return op.Reshape(flat, op.Shape(x))


@pack.above(11, "Softmax")
def softmax_11(op: Builder, x: Value, *, axis: int = 1) -> Value:
    """Flatten, Softmax and Reshape where more than the last axis is meant."""
    return _flattened(op, "Softmax", x, axis)


@pack.above(11, "LogSoftmax")
def log_softmax_11(op: Builder, x: Value, *, axis: int = 1) -> Value:
    """Flatten, LogSoftmax and Reshape where more than the last axis is meant."""
    return _flattened(op, "LogSoftmax", x, axis)


@pack.above(11, "Hardmax")
def hardmax_11(op: Builder, x: Value, *, axis: int = 1) -> Value:
    """Flatten, Hardmax and Reshape where more than the last axis is meant."""
    return _flattened(op, "Hardmax", x, axis)
