"""Random numbers of ONNX in the shapes, dtypes and distributions of torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.dtypes import FLOATS, to_torch

__all__ = ["draw_type", "exponential", "integers", "normal", "span_of", "uniform", "uniform_of", "until"]

_FLOAT, _DOUBLE, _INT64 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT64
_DIGITS = {ir.DataType.FLOAT16: 11, ir.DataType.BFLOAT16: 8, _FLOAT: 24, _DOUBLE: 53}


def draw_type(dtype: ir.DataType) -> ir.DataType:
    """The dtype to draw in: no runtime draws half precision."""
    return _DOUBLE if dtype == _DOUBLE else _FLOAT


def _drawn(op: Builder, kind: str, dims: Sequence[Any], dtype: ir.DataType, like: Value | None) -> Value:
    """The operator by attribute where the shape is known, else like a tensor of that shape."""
    if any(not isinstance(d, int) for d in dims):
        model = op.ConstantOfShape(op.shape(dims)) if like is None else like
        return getattr(op, f"{kind}Like")(model, dtype=dtype)
    made = getattr(op, kind)(shape=list(dims) or [1], dtype=dtype)
    return made if dims else op.Reshape(made, op.shape([]))


def uniform(op: Builder, dims: Sequence[Any], dtype: ir.DataType, like: Value | None = None) -> Value:
    """RandomUniform in [0, 1), in float32 or float64."""
    return _drawn(op, "RandomUniform", dims, dtype, like)


def uniform_of(op: Builder, dims: Sequence[Any], dtype: ir.DataType, like: Value | None = None) -> Value:
    """RandomUniform in [0, 1), in any float dtype. Half precision takes its own steps, as in torch: rounded,
    numbers next to 1 would become 1."""
    made = uniform(op, dims, draw_type(dtype), like)
    if dtype in (_FLOAT, _DOUBLE):
        return made
    steps = float(2 ** _DIGITS[dtype])
    return op.cast(op.Div(op.Floor(op.Mul(made, steps)), steps), dtype)


def normal(op: Builder, dims: Sequence[Any], dtype: ir.DataType, like: Value | None = None) -> Value:
    """RandomNormal of mean 0 and deviation 1, in float32 or float64."""
    return _drawn(op, "RandomNormal", dims, draw_type(dtype), like)


def exponential(op: Builder, dims: Sequence[Any], dtype: ir.DataType, like: Value | None = None) -> Value:
    """The negative logarithm of a number in (0, 1]; never zero, so that one may divide by it."""
    drawn = op.Sub(op.const(1.0, dtype), uniform(op, dims, dtype, like))
    return op.Max(op.Neg(op.Log(drawn)), 2.0**-26)


def integers(op: Builder, dims: Sequence[Any], low: Any, high: Any, like: Value | None = None) -> Value:
    """int64 in [low, high): a uniform number times the span, rounded down.

    The bounds are numbers, sizes or values. A span beyond 2**53 takes two draws, for its high and its low
    half.
    """
    if isinstance(low, Value) or isinstance(high, Value):
        first, last = (op.cast(bound, _INT64) for bound in (low, high))
        span: Any = op.cast(op.Sub(last, first), _DOUBLE)
    else:
        first = low
        width = high - low
        if isinstance(width, int) and width > 2**53:
            upper = integers(op, dims, 0, width >> 32, like)
            lower = integers(op, dims, 0, 2**32, like)
            # In int64 the product wraps around, and so does the sum: torch's do as well.
            made = op.Add(op.Mul(upper, 2**32), lower)
            return op.Add(made, low) if low else made
        span = op.cast(op.size(width), _DOUBLE) if isinstance(width, SymSize) else float(width)
    kind = _FLOAT if isinstance(span, float) and span <= 4096 else _DOUBLE
    made = op.cast(op.Floor(op.Mul(uniform(op, dims, kind, like), span)), _INT64)
    return made if isinstance(first, int) and not first else op.Add(made, op.as_value(first, _INT64))


def span_of(dtype: ir.DataType) -> int:
    """One more than the largest number that ``random_`` gives: each up to it is exact in the dtype."""
    if dtype == ir.DataType.BOOL:
        return 2
    if dtype in FLOATS:
        return 2 ** _DIGITS[dtype] + 1
    return int(torch.iinfo(to_torch(dtype)).max) + 1


def until(op: Builder, state: Sequence[Value], step: Callable[..., Sequence[Value]]) -> tuple[Value, ...]:
    """Loop over ``active, *state = step(op, *state)`` until no element of ``active`` is true."""
    with op.body("draws") as body:
        body.input("draw", _INT64, ())
        body.input("going", ir.DataType.BOOL, ())
        inputs = [body.input("state", part.dtype, part.dims) for part in state]
        active, *after = step(body, *inputs)
        count = body.ReduceSum(body.cast(active, _INT64), None, keepdims=0)
        body.output(body.Greater(count, 0), *after)
    made: tuple[Value, ...] = op.Loop(None, True, *state, body=body.graph, outputs=len(state))
    for value, part in zip(made, state, strict=True):
        value.dims = part.dims
    return made
