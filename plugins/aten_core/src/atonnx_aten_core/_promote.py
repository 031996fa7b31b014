"""torch's type promotion for operands of a row: dimensioned tensors before 0-d ones before numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.dtypes import FLOATS, INTS, to_ir, to_torch

__all__ = [
    "BOOL",
    "HALF",
    "arithmetic",
    "default_float",
    "float_type",
    "floating",
    "in_dtype",
    "promote",
    "result_type",
    "through_float",
]

BOOL = ir.DataType.BOOL
HALF = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16})


def default_float() -> ir.DataType:
    """The dtype that integers take in an operator for floats."""
    return to_ir(torch.get_default_dtype())


def result_type(*operands: Any) -> ir.DataType:
    """The dtype in which eager torch computes with these operands: values, numbers, sizes."""
    if len(operands) == 2 and all(isinstance(x, Value) for x in operands):
        first, second = operands
        if first.dtype == second.dtype:
            return first.dtype
    dims = zero = number = None
    for operand in operands:
        if isinstance(operand, Value):
            dtype = to_torch(operand.dtype)
            if operand.rank:
                dims = _joined(dims, dtype)
            else:
                zero = _joined(zero, dtype)
        elif operand is not None:
            number = _joined(number, _number_dtype(operand))
    found = _ranked(dims, _ranked(zero, number))
    return to_ir(found if found is not None else torch.get_default_dtype())


def _number_dtype(value: Any) -> torch.dtype:
    kind = value.kind if isinstance(value, SymSize) else type(value).__name__
    return {"bool": torch.bool, "int": torch.int64}.get(kind, torch.get_default_dtype())


def _joined(first: torch.dtype | None, second: torch.dtype) -> torch.dtype:
    return second if first is None or first == second else torch.promote_types(first, second)


def _ranked(higher: torch.dtype | None, lower: torch.dtype | None) -> torch.dtype | None:
    """The lower class counts only where it is of a higher kind (bool, integer, float)."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.is_floating_point:
        return higher
    if higher == torch.bool or lower.is_floating_point:
        return _joined(higher, lower)
    return higher


def in_dtype(op: Builder, operand: Any, dtype: ir.DataType) -> Value:
    """An operand in ``dtype``; an integer number wraps around as it does in torch."""
    if isinstance(operand, (Value, SymSize)):
        return op.cast(operand, dtype)
    if dtype == BOOL:
        return op.const(bool(operand), dtype)
    if dtype in INTS:
        limits = torch.iinfo(to_torch(dtype))
        return op.const((int(operand) - limits.min) % (1 << limits.bits) + limits.min, dtype)
    return op.const(operand, dtype)


def promote(op: Builder, *operands: Any) -> tuple[Value, ...]:
    """The operands in their common dtype."""
    dtype = result_type(*operands)
    return tuple(in_dtype(op, operand, dtype) for operand in operands)


def arithmetic(
    op: Builder,
    compute: Callable[..., Value],
    *operands: Any,
    dtype: ir.DataType | None = None,
    wide: bool = False,
) -> Value:
    """``compute`` over the operands in their common dtype (or ``dtype``).

    For half precision torch keeps a scalar operand in float32, and rounds once; so does this where
    that makes a difference, and always with ``wide``, for what consists of several operators.
    """
    kind = result_type(*operands) if dtype is None else dtype
    if kind in HALF and (wide or any(_is_sharper(x, kind) for x in operands)):
        floats = [
            in_dtype(op, op.cast(x, kind) if isinstance(x, Value) and x.rank else x, ir.DataType.FLOAT)
            for x in operands
        ]
        return op.cast(compute(*floats), kind)
    return compute(*(in_dtype(op, x, kind) for x in operands))


def _is_sharper(operand: Any, dtype: ir.DataType) -> bool:
    """Whether a scalar operand loses something in ``dtype``."""
    if isinstance(operand, Value):
        return operand.rank == 0 and operand.dtype != dtype and operand.dtype in FLOATS
    if not isinstance(operand, float) or operand != operand:
        return False
    return torch.tensor(operand, dtype=to_torch(dtype)).item() != operand


def float_type(*operands: Any) -> ir.DataType:
    """The operands' common dtype, the default float dtype for integers."""
    dtype = result_type(*operands)
    return dtype if dtype in FLOATS else default_float()


def floating(op: Builder, x: Value) -> Value:
    """``x``, an integer or bool one in the default float dtype."""
    return x if x.dtype in FLOATS else op.cast(x, default_float())


def through_float(op: Builder, x: Value, compute: Callable[[Value], Value]) -> Value:
    """``compute`` over ``x`` as floats; half precision in float32, rounded once."""
    x = floating(op, x)
    if x.dtype in HALF:
        return op.cast(compute(op.cast(x, ir.DataType.FLOAT)), x.dtype)
    return compute(x)
