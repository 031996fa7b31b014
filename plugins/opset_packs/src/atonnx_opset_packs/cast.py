"""Casts and constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import refuse

pack = OpsetPack(__name__)

pack.same("Cast", 9, 13, 19, 21, 23)
pack.same("Cast", 24, 25, 28)
pack.same("CastLike", 15, 19, 21, 23)
pack.same("CastLike", 24, 25)
pack.same("Constant", 12, 13, 19, 21, 23, 24, 25)
pack.same("ConstantOfShape", 20, 21, 23, 24, 25)
pack.same("EyeLike", 9, 22)

# Float 8 types in which infinity saturates to the largest number since 24, and is nan before.
_NO_INFINITY = {ir.DataType.FLOAT8E4M3FNUZ: 240.0, ir.DataType.FLOAT8E5M2FNUZ: 57344.0}


def _changed(x: Value, to: ir.DataType, saturate: int) -> bool:
    return bool(saturate) and to in _NO_INFINITY and x.dtype.is_floating_point()


@pack.below(24, "Cast")
def cast(op: Builder, x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Value:
    """Cast; infinity is made finite where a cast that saturates would make it nan."""
    kind = ir.DataType(to)
    if _changed(x, kind, saturate):
        largest = _NO_INFINITY[kind]
        x = op.Where(op.IsInf(x), op.Mul(op.Sign(x), largest), x)
    return op.at(23).Cast(x, to=kind, saturate=saturate if saturate != 1 else None)


@pack.below(19, "Cast")
def cast_19(op: Builder, x: Value, *, to: int, saturate: int = 1) -> Value:
    """Cast, in which only the float 8 types, that opset 19 brought, saturate or not."""
    return op.at(13).Cast(x, to=ir.DataType(to))


@pack.above(9, "Cast")
def cast_up(op: Builder, x: Value, *, to: int, saturate: int = 1) -> Value:
    """Cast; infinity is made nan where a cast that saturates would make it finite."""
    kind = ir.DataType(to)
    if _changed(x, kind, saturate):
        x = op.Where(op.IsInf(x), op.const(float("nan"), x.dtype), x)
    return op.Cast(x, to=kind, saturate=saturate)


@pack.below(15, "CastLike")
@pack.below(19, "CastLike")
@pack.below(24, "CastLike")
def cast_like(op: Builder, x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Value:
    """Cast to the dtype of the other input, which the export knows."""
    return op.Cast(x, to=like.dtype, saturate=saturate, round_mode=round_mode)


@pack.above(15, "CastLike")
def cast_like_up(op: Builder, x: Value, like: Value, *, saturate: int = 1) -> Value:
    """Cast to the dtype of the other input, as it was."""
    return op.at(23).Cast(x, to=like.dtype, saturate=saturate)


@pack.below(26, "BitCast")
def bit_cast(op: Builder, x: Value, *, to: int) -> Value:
    """Cast between a signed and an unsigned integer of one width.

    Raises:
        UnsupportedOpError: the bits of a float are wanted, or made one.
    """
    kind = ir.DataType(to)
    if kind == x.dtype:
        return op.Identity(x)
    if x.dtype.is_integer() and kind.is_integer() and x.dtype.itemsize == kind.itemsize:
        return op.cast(x, kind)
    raise refuse(op, f"BitCast of {x.dtype.name} to {kind.name}", 26)


@pack.below(12, "Constant")
def constant(op: Builder, **attributes: Any) -> Value:
    """The one attribute that opset 11 has is a tensor."""
    ((name, value),) = attributes.items()
    if name in ("value", "sparse_value"):
        return op.at(11).Constant(**attributes)
    if name in ("value_string", "value_strings"):
        return op.at(11).Constant(value=ir.tensor(value, dtype=ir.DataType.STRING))
    dtype = np.dtype("float32" if "float" in name else "int64")
    return op.at(11).Constant(value=ir.tensor(np.array(value, dtype)))


@pack.above(11, "Constant")
def constant_up(op: Builder, **attributes: Any) -> Value:
    """Constant, unchanged in what it took."""
    return op.Constant(**attributes)


@pack.below(20, "ConstantOfShape")
def constant_of_shape(op: Builder, shape: Value, *, value: Any = None) -> Value:
    """ConstantOfShape in float for the dtypes that it did not make, and a cast."""
    tensor = None if value is None else ir.tensor(value)
    if tensor is None or tensor.dtype not in _LATE:
        return op.at(9).ConstantOfShape(shape, value=tensor)
    number = np.asarray(tensor.numpy(), np.float32).reshape(1)
    return op.cast(op.at(9).ConstantOfShape(shape, value=ir.tensor(number)), tensor.dtype)


_LATE = {
    ir.DataType.BFLOAT16,
    ir.DataType.FLOAT8E4M3FN,
    ir.DataType.FLOAT8E4M3FNUZ,
    ir.DataType.FLOAT8E5M2,
    ir.DataType.FLOAT8E5M2FNUZ,
}


@pack.above(9, "ConstantOfShape")
def constant_of_shape_up(op: Builder, shape: Value, *, value: Any = None) -> Value:
    """ConstantOfShape, unchanged in what it made."""
    return op.ConstantOfShape(shape, value=value)
