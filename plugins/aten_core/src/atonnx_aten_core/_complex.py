"""Complex numbers as pairs of real ones, on a last axis of 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.dtypes import to_ir, to_torch
from atonnx_aten_core._promote import HALF, in_dtype

__all__ = [
    "Lanes",
    "as_pair",
    "column",
    "compute",
    "imaginary",
    "is_complex",
    "is_zero",
    "joined",
    "lanes",
    "magnitude",
    "paired",
    "part_type",
    "real",
    "scaled",
    "spread",
    "torch_dtype",
    "turned",
]

aten = torch.ops.aten


class Lanes(NamedTuple):
    """The real and the imaginary parts, each with a last axis of 1."""

    re: Value
    im: Value


def is_complex(x: Any) -> bool:
    """Whether an operand is a complex tensor or a complex number."""
    return x.is_complex if isinstance(x, Value) else isinstance(x, complex)


def torch_dtype(x: Value) -> torch.dtype:
    """The dtype that torch sees."""
    dtype = to_torch(x.dtype)
    return dtype.to_complex() if x.is_complex else dtype


def part_type(*operands: Any) -> ir.DataType:
    """The dtype of the parts in which eager torch computes with operands, one of them complex."""
    found: list[torch.dtype | None] = [None, None, None]
    for operand in operands:
        if operand is None:
            continue
        if isinstance(operand, Value):
            dtype = torch_dtype(operand)
            place = 0 if operand.rank > operand.is_complex else 1
        else:
            dtype, place = _number_dtype(operand), 2
        known = found[place]
        found[place] = dtype if known is None else torch.promote_types(known, dtype)
    dims, zero, number = found
    made = _ranked(dims, _ranked(zero, number)) or torch.get_default_dtype()
    return to_ir(made.to_real() if made.is_complex or made.is_floating_point else torch.get_default_dtype())


def _number_dtype(value: Any) -> torch.dtype:
    kind = value.kind if isinstance(value, SymSize) else type(value).__name__
    default = torch.get_default_dtype()
    return {"bool": torch.bool, "int": torch.int64, "complex": default.to_complex()}.get(kind, default)


def _ranked(higher: torch.dtype | None, lower: torch.dtype | None) -> torch.dtype | None:
    """The lower class counts only where it is of a higher kind (bool, integer, float, complex)."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if higher == torch.bool or lower.is_floating_point or lower.is_complex:
        return torch.promote_types(higher, lower)
    return higher


def paired(value: Value) -> Value:
    """The value, known to hold pairs."""
    value.is_complex = True
    return value


def as_pair(op: Builder, x: Any, dtype: ir.DataType) -> Value:
    """An operand as pairs of ``dtype``; a real one has zeros as its imaginary parts."""
    if not isinstance(x, (Value, SymSize)):
        number = complex(x)
        return paired(op.const([number.real, number.imag], dtype))
    made = op.cast(x, dtype)
    if isinstance(x, Value) and x.is_complex:
        return paired(made)
    dims = made.dims
    padded = op.Pad(op.Unsqueeze(made, [-1]), [0] * (2 * made.rank + 1) + [1])
    padded.dims = None if dims is None else (*dims, 2)  # Pad's pads do not tell
    return paired(padded)


def column(op: Builder, x: Any, dtype: ir.DataType) -> Value:
    """A real operand with a last axis of 1, so that it meets both parts of pairs."""
    if isinstance(x, Value):
        return op.Unsqueeze(op.cast(x, dtype), [-1])
    return in_dtype(op, x, dtype)


def lanes(op: Builder, z: Value) -> Lanes:
    """The parts of pairs, with a last axis of 1."""
    return Lanes(*op.Split(z, [1, 1], axis=-1, outputs=2))


def joined(op: Builder, re: Value, im: Value) -> Value:
    """Pairs of two parts of one shape that have a last axis of 1."""
    return paired(op.Concat(re, im, axis=-1))


def real(op: Builder, z: Value) -> Value:
    """The real parts, without the pair axis; a real tensor itself."""
    return op.Gather(z, op.size(0), axis=-1) if z.is_complex else z


def imaginary(op: Builder, z: Value) -> Value:
    """The imaginary parts, without the pair axis."""
    return op.Gather(z, op.size(1), axis=-1)


def spread(op: Builder, re: Value, im: Value) -> Value:
    """Pairs of two parts of one shape without a pair axis."""
    return joined(op, op.Unsqueeze(re, [-1]), op.Unsqueeze(im, [-1]))


def turned(op: Builder, z: Value) -> Value:
    """i z: the parts change places, and the new real one its sign."""
    return paired(op.Mul(op.Gather(z, [1, 0], axis=-1), op.const([-1, 1], z.dtype)))


def scaled(op: Builder, z: Value) -> tuple[Value, Value]:
    """``z`` over its larger part, so that squares neither overflow nor vanish, and that part.

    The divisor is kept a normal number: zero stays zero, infinity stays infinite.
    """
    limits = torch.finfo(to_torch(z.dtype))
    top = op.Clip(op.ReduceMax(op.Abs(z), [-1], keepdims=1), limits.tiny, limits.max)
    return paired(op.Div(z, top)), top


def magnitude(op: Builder, z: Value) -> Value:
    """ReduceL2 of the scaled pair, times the scale; with a last axis of 1."""
    if z.dtype in HALF:
        wide = op.cast(z, ir.DataType.FLOAT)
        return op.cast(op.ReduceL2(wide, [-1], keepdims=1), z.dtype)
    w, top = scaled(op, z)
    return op.Mul(op.ReduceL2(w, [-1], keepdims=1), top)


def is_zero(op: Builder, z: Value) -> Value:
    """Whether both parts are zero; with a last axis of 1."""
    return op.Equal(op.ReduceMax(op.Abs(z), [-1], keepdims=1), 0.0)


def compute(op: Builder, dtype: ir.DataType, function: Callable[[ir.DataType], Value]) -> Value:
    """``function`` of the dtype to compute in: half precision is computed in float32 and rounded once."""
    if dtype not in HALF:
        return function(dtype)
    return paired(op.cast(function(ir.DataType.FLOAT), dtype))
