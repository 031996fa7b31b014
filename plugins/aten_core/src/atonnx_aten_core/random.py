"""Random numbers: shape, dtype and distribution are torch's, the numbers the runtime's own.

A generator has no part in a program, so each run draws anew; docs/random.md tells how to have the same
numbers twice.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._axes import dims_of
from atonnx_aten_core._random import (
    draw_type,
    exponential,
    integers,
    normal,
    span_of,
    uniform,
    uniform_of,
    until,
)

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_INT64, _FLOAT = ir.DataType.INT64, ir.DataType.FLOAT


def _uniform_out(op: Builder, like: Value | None = None) -> Value:
    """Uniform numbers as the node promises them; complex ones have uniform parts."""
    return uniform_of(op, op.out.dims, op.out.dtype, like)


def _normal_out(op: Builder, like: Value | None = None) -> Value:
    """Normal numbers as the node promises them; complex ones have a variance of 1 in all."""
    made = normal(op, op.out.dims, op.out.dtype, like)
    if op.out.is_complex:
        made = op.Mul(made, math.sqrt(0.5))
    return op.cast(made, op.out.dtype)


@table.translate(aten.rand.default, complex="also")
def rand(
    op: Builder,
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """RandomUniform."""
    return _uniform_out(op)


@table.translate(aten.rand.generator, complex="also")
def rand_generator(
    op: Builder,
    size: Any,
    *,
    generator: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """RandomUniform."""
    return _uniform_out(op)


@table.translate(aten.randn.default, complex="also")
def randn(
    op: Builder,
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """RandomNormal."""
    return _normal_out(op)


@table.translate(aten.randn.generator, complex="also")
def randn_generator(
    op: Builder,
    size: Any,
    *,
    generator: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """RandomNormal."""
    return _normal_out(op)


@table.translate(aten.rand_like.default, complex="also")
def rand_like(
    op: Builder,
    self: Value,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """RandomUniform; RandomUniformLike where the shape is dynamic."""
    return _uniform_out(op, _model(op, self))


@table.translate(aten.rand_like.generator, complex="also")
def rand_like_generator(
    op: Builder,
    self: Value,
    *,
    generator: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """RandomUniform; RandomUniformLike where the shape is dynamic."""
    return _uniform_out(op, _model(op, self))


@table.translate(aten.randn_like.default, complex="also")
def randn_like(
    op: Builder,
    self: Value,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """RandomNormal; RandomNormalLike where the shape is dynamic."""
    return _normal_out(op, _model(op, self))


@table.translate(aten.randn_like.generator, complex="also")
def randn_like_generator(
    op: Builder,
    self: Value,
    *,
    generator: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """RandomNormal; RandomNormalLike where the shape is dynamic."""
    return _normal_out(op, _model(op, self))


def _model(op: Builder, x: Value) -> Value | None:
    """A tensor that has the result's shape in the graph."""
    return x if x.dims == op.out.dims else None


def _randint(op: Builder, low: Any, high: Any, like: Value | None = None) -> Value:
    return op.cast(integers(op, op.out.dims, low, high, like), op.out.dtype)


@table.translate(aten.randint.default)
def randint(
    op: Builder,
    high: Any,
    size: Any,
    *,
    dtype: Any = torch.int64,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """RandomUniform, times the span, rounded down."""
    return _randint(op, 0, high)


@table.translate(aten.randint.generator)
def randint_generator(
    op: Builder,
    high: Any,
    size: Any,
    *,
    generator: Any,
    dtype: Any = torch.int64,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """RandomUniform, times the span, rounded down."""
    return _randint(op, 0, high)


@table.translate(aten.randint.low)
def randint_low(
    op: Builder,
    low: Any,
    high: Any,
    size: Any,
    *,
    dtype: Any = torch.int64,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """RandomUniform, times the span, rounded down."""
    return _randint(op, low, high)


@table.translate(aten.randint.low_generator)
def randint_low_generator(
    op: Builder,
    low: Any,
    high: Any,
    size: Any,
    *,
    generator: Any,
    dtype: Any = torch.int64,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """RandomUniform, times the span, rounded down."""
    return _randint(op, low, high)


@table.translate(aten.randint_like.default, aten.randint_like.Tensor)
def randint_like(
    op: Builder,
    self: Value,
    high: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """RandomUniform, times the span, rounded down."""
    return _randint(op, 0, high, self)


@table.translate(aten.randint_like.generator)
def randint_like_generator(
    op: Builder,
    self: Value,
    high: Any,
    *,
    generator: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """RandomUniform, times the span, rounded down."""
    return _randint(op, 0, high, self)


@table.translate(aten.randint_like.low_dtype)
def randint_like_low(
    op: Builder,
    self: Value,
    low: Any,
    high: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """RandomUniform, times the span, rounded down."""
    return _randint(op, low, high, self)


@table.translate(aten.randint_like.low_generator_dtype)
def randint_like_low_generator(
    op: Builder,
    self: Value,
    low: Any,
    high: Any,
    *,
    generator: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """RandomUniform, times the span, rounded down."""
    return _randint(op, low, high, self)


def _randperm(op: Builder, n: Any) -> Value:
    """The order of random numbers: of float64, in which ties are rare."""
    drawn = uniform(op, (n,), ir.DataType.DOUBLE)
    _, places = op.TopK(drawn, op.shape([n]), axis=0, outputs=2)
    return op.cast(places, op.out.dtype)


@table.translate(aten.randperm.default)
def randperm(
    op: Builder,
    n: Any,
    *,
    dtype: Any = torch.int64,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """TopK of RandomUniform: the places in their order."""
    return _randperm(op, n)


@table.translate(aten.randperm.generator)
def randperm_generator(
    op: Builder,
    n: Any,
    *,
    generator: Any,
    dtype: Any = torch.int64,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """TopK of RandomUniform: the places in their order."""
    return _randperm(op, n)


def _normal(op: Builder, mean: Any, std: Any) -> Value:
    """mean + std * RandomNormal, in the result's dtype, or in float32 where that is a half."""
    kind = draw_type(op.out.dtype)
    made = normal(op, op.out.dims, kind)
    if op.out.is_complex:
        # A complex deviation is of both parts together, a real mean of the real part.
        made = op.Mul(made, math.sqrt(0.5))
    if isinstance(std, Value) or std != 1:
        made = op.Mul(made, op.cast(std, kind))
    if isinstance(mean, Value) or mean != 0:
        shift = op.const([mean, 0.0], kind) if op.out.is_complex else op.cast(mean, kind)
        made = op.Add(made, shift)
    return op.cast(made, op.out.dtype)


@table.translate(aten.normal.Tensor_float)
def normal_tensor_float(op: Builder, mean: Value, std: float = 1.0, *, generator: Any = None) -> Value:
    """RandomNormal, scaled and moved."""
    return _normal(op, mean, std)


@table.translate(aten.normal.float_Tensor, aten.normal.Tensor_Tensor)
def normal_tensor(op: Builder, mean: Any, std: Value, *, generator: Any = None) -> Value:
    """RandomNormal, scaled and moved."""
    return _normal(op, mean, std)


@table.translate(aten.normal.float_float, complex="also")
def normal_float(
    op: Builder,
    mean: float,
    std: float,
    size: Any,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """RandomNormal, scaled and moved."""
    return _normal(op, mean, std)


# `aten::normal` itself only writes to `out`, so that no rule leads from `normal_` to a functional form.
@table.translate(aten.normal_functional.default, aten.normal_.default, complex="also")
def normal_functional(
    op: Builder, self: Value, mean: float = 0.0, std: float = 1.0, *, generator: Any = None
) -> Value:
    """RandomNormal, scaled and moved."""
    return _normal(op, mean, std)


@table.translate(aten.uniform.default, complex="also")
def uniform_to(
    op: Builder, self: Value, from_: float = 0.0, to: float = 1.0, *, generator: Any = None
) -> Value:
    """RandomUniform, scaled and moved."""
    if (from_, to) == (0, 1):
        return _uniform_out(op, _model(op, self))
    made = uniform(op, op.out.dims, draw_type(op.out.dtype), _model(op, self))
    made = op.Mul(made, float(to - from_))
    return op.cast(op.Add(made, float(from_)) if from_ else made, op.out.dtype)


# Bernoulli is not used: ONNX Runtime's kernel gives 1 with the probability of 0.
def _bernoulli(op: Builder, p: Any, like: Value | None) -> Value:
    kind = draw_type(p.dtype) if isinstance(p, Value) else _FLOAT
    drawn = uniform(op, op.out.dims, kind, like)
    return op.cast(op.Less(drawn, op.cast(p, kind)), op.out.dtype)


@table.translate(aten.bernoulli.default)
def bernoulli(op: Builder, self: Value, *, generator: Any = None) -> Value:
    """Whether RandomUniform is less than the probability."""
    return _bernoulli(op, self, self)


@table.translate(aten.bernoulli.p)
def bernoulli_p(op: Builder, self: Value, p: float, *, generator: Any = None) -> Value:
    """Whether RandomUniform is less than the probability."""
    return _bernoulli(op, float(p), _model(op, self))


@table.translate(aten.bernoulli.Tensor)
def bernoulli_tensor(op: Builder, self: Value, p: Value, *, generator: Any = None) -> Value:
    """Whether RandomUniform is less than the probability."""
    return _bernoulli(op, p, _model(op, self))


@table.translate(aten.multinomial.default)
def multinomial(
    op: Builder, self: Value, num_samples: Any, replacement: bool = False, *, generator: Any = None
) -> Value:
    """The places of the largest weights over exponential numbers, which come in proportion to the weights.

    Multinomial of ONNX takes logarithms, a fixed number of draws, and has no kernel in ONNX Runtime since
    opset 22.
    """
    kind = draw_type(self.dtype)
    weights = op.cast(self if self.rank == 2 else op.Unsqueeze(self, [0]), kind)
    rows, choices = (1, *dims_of(self))[-2:]
    if replacement and num_samples != 1:
        keys = op.Div(op.Unsqueeze(weights, [1]), exponential(op, (rows, num_samples, choices), kind))
        places = op.ArgMax(keys, axis=2, keepdims=0)
    else:
        keys = op.Div(weights, exponential(op, (rows, choices), kind))
        _, places = op.TopK(keys, op.shape([num_samples]), axis=1, outputs=2)
    return places if self.rank == 2 else op.Squeeze(places, [0])


@table.translate(aten.exponential.default)
def exponential_of(op: Builder, self: Value, lambd: float = 1.0, *, generator: Any = None) -> Value:
    """The logarithm of RandomUniform over minus the rate."""
    if math.isinf(lambd):
        return op.expand(op.const(0.0, op.out.dtype), op.out.dims)
    made = exponential(op, op.out.dims, draw_type(op.out.dtype), _model(op, self))
    return op.cast(made if lambd == 1 else op.Div(made, float(lambd)), op.out.dtype)


@table.translate(aten.geometric.default)
def geometric(op: Builder, self: Value, p: float, *, generator: Any = None) -> Value:
    """An exponential number in units of the logarithm of failing, rounded up."""
    made = exponential(op, op.out.dims, draw_type(op.out.dtype), _model(op, self))
    return op.cast(op.Ceil(op.Div(made, -math.log1p(-p))), op.out.dtype)


@table.translate(aten.cauchy.default)
def cauchy(
    op: Builder, self: Value, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None
) -> Value:
    """Tan of a random angle."""
    drawn = uniform(op, op.out.dims, draw_type(op.out.dtype), _model(op, self))
    made = op.Tan(op.Mul(op.Sub(drawn, 0.5), math.pi))
    return op.cast(op.Add(op.Mul(made, float(sigma)), float(median)), op.out.dtype)


@table.translate(aten.log_normal.default)
def log_normal(
    op: Builder, self: Value, mean: float = 1.0, std: float = 2.0, *, generator: Any = None
) -> Value:
    """Exp of RandomNormal."""
    drawn = normal(op, op.out.dims, op.out.dtype, _model(op, self))
    made = op.Exp(op.Add(op.Mul(drawn, float(std)), float(mean)))
    return op.cast(made, op.out.dtype)


@table.translate(aten.random.default)
def random(op: Builder, self: Value, *, generator: Any = None) -> Value:
    """Integers from 0 to the largest that is exact in the dtype."""
    return _randint(op, 0, span_of(op.out.dtype), _model(op, self))


@table.translate(aten.random.to)
def random_to(op: Builder, self: Value, to: int, *, generator: Any = None) -> Value:
    """Integers from 0."""
    return _randint(op, 0, to, _model(op, self))


@table.translate(aten.poisson.default)
def poisson(op: Builder, self: Value, generator: Any = None) -> Value:
    """A Loop that counts arrivals: exponential steps until their sum exceeds the rate."""
    kind = draw_type(self.dtype)
    left = op.cast(self, kind)

    def step(body: Builder, left: Value, count: Value) -> tuple[Value, ...]:
        left = body.Sub(left, exponential(body, dims_of(self), kind))
        active = body.GreaterOrEqual(left, 0.0)
        return active, left, body.Add(count, body.cast(active, kind))

    zeros = op.expand(op.const(0.0, kind), dims_of(self))
    return op.cast(until(op, (left, zeros), step)[1], op.out.dtype)


def _gamma(op: Builder, alpha: Value) -> Value:
    """A Loop of Marsaglia and Tsang's rejections, until each element has been accepted.

    A shape below 1 is drawn from the shape above it, and turned by a power of a uniform number.
    """
    kind, dims = alpha.dtype, dims_of(alpha)
    small = op.Less(alpha, 1.0)
    shape = op.Sub(op.Where(small, op.Add(alpha, 1.0), alpha), 1 / 3)
    width = op.Reciprocal(op.Sqrt(op.Mul(shape, 9.0)))

    def step(body: Builder, active: Value, kept: Value) -> tuple[Value, ...]:
        x = normal(body, dims, kind)
        v = body.Add(body.Mul(x, width), 1.0)
        v = body.Mul(body.Mul(v, v), v)
        safe = body.Max(v, 1e-30)
        bound = body.Add(body.Mul(body.Mul(x, x), 0.5), shape)
        bound = body.Add(bound, body.Mul(shape, body.Sub(body.Log(safe), safe)))
        taken = body.And(body.Greater(v, 0.0), body.Less(body.Neg(exponential(body, dims, kind)), bound))
        kept = body.Where(body.And(active, taken), body.Mul(shape, safe), kept)
        active = body.And(active, body.Not(taken))
        return active, active, kept

    every = op.expand(op.const(True), dims)
    _, made = until(op, (every, op.expand(op.const(0.0, kind), dims)), step)
    turn = op.Exp(op.Neg(op.Div(exponential(op, dims, kind), alpha)))
    return op.Where(small, op.Mul(made, turn), made)


@table.translate(aten._standard_gamma.default)
def _standard_gamma(op: Builder, self: Value, generator: Any = None) -> Value:
    """A Loop of rejections."""
    return op.cast(_gamma(op, op.cast(self, draw_type(self.dtype))), op.out.dtype)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    def x() -> torch.Tensor:
        return torch.tensor([[0.5, 0.25, 0.75], [0.125, 1.0, 0.0]])

    generator = {"generator": None}
    plain: list[tuple[Any, Any, dict[str, Any]]] = [
        (aten.rand.default, lambda: ([3, 2],), {}),
        (aten.rand.default, lambda: ([3, 0],), {"dtype": torch.complex64}),
        (aten.rand.generator, lambda: ([],), generator),
        (aten.randn.default, lambda: ([3, 2],), {"dtype": torch.float16}),
        (aten.randn.generator, lambda: ([3, 2],), generator),
        (aten.rand_like.default, lambda: (x(),), {}),
        (aten.rand_like.generator, lambda: (x(),), {**generator, "dtype": torch.float64}),
        (aten.randn_like.default, lambda: (x().to(torch.complex64),), {}),
        (aten.randn_like.generator, lambda: (x(),), generator),
        (aten.randint.default, lambda: (7, [3, 2]), {}),
        (aten.randint.generator, lambda: (2**40, [3, 2]), generator),
        (aten.randint.low, lambda: (-7, 7, [3]), {"dtype": torch.int8}),
        (aten.randint.low_generator, lambda: (-(2**63), 2**63 - 1, [3]), generator),
        (aten.randint_like.default, lambda: (x(), 5), {}),
        (aten.randint_like.Tensor, lambda: (x(), torch.tensor(5)), {}),
        (aten.randint_like.generator, lambda: (x(), 5), generator),
        (aten.randint_like.low_dtype, lambda: (x(), -5, 5), {"dtype": torch.int32}),
        (aten.randint_like.low_generator_dtype, lambda: (x(), -5, 5), generator),
        (aten.randperm.default, lambda: (5,), {}),
        (aten.randperm.generator, lambda: (0,), {**generator, "dtype": torch.int32}),
        (aten.normal.Tensor_float, lambda: (x(), 2.0), {}),
        (aten.normal.float_Tensor, lambda: (1.0, x()), {}),
        (aten.normal.Tensor_Tensor, lambda: (x(), x()[0]), {}),
        (aten.normal.float_float, lambda: (1.0, 2.0, [3]), {}),
        (aten.normal_functional.default, lambda: (x(), 1.0), {}),
        (aten.normal_.default, lambda: (x(), 1.0), {}),
        (aten.uniform.default, lambda: (x(), -1.0, 3.0), {}),
        (aten.bernoulli.default, lambda: (x(),), {}),
        (aten.bernoulli.p, lambda: (x().to(torch.int32), 0.3), {}),
        (aten.bernoulli.Tensor, lambda: (x(), x()[0]), {}),
        (aten.multinomial.default, lambda: (x(), 2, True), {}),
        (aten.multinomial.default, lambda: (x()[0], 2), {}),
        (aten.exponential.default, lambda: (x(), 2.0), {}),
        (aten.geometric.default, lambda: (x().to(torch.int64), 0.3), {}),
        (aten.cauchy.default, lambda: (x(),), {}),
        (aten.log_normal.default, lambda: (x(),), {}),
        (aten.random.default, lambda: (x().to(torch.uint8),), {}),
        (aten.random.to, lambda: (x(), 9), {}),
        (aten.poisson.default, lambda: (x(),), {}),
        (aten._standard_gamma.default, lambda: (x() + 0.5,), {}),
    ]
    return [
        OpSample(overload, args, kwargs, reason="random", options={"values": False})
        for overload, args, kwargs in plain
    ]
