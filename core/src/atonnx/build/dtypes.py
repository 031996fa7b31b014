"""Between torch's dtypes and ONNX's."""

from __future__ import annotations

import functools
from typing import Any

import onnx_ir as ir
import torch

from atonnx.errors import BuildError, both

__all__ = ["FLOATS", "INTS", "is_float", "real_of", "to_ir", "to_torch"]

FLOATS = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE})
INTS = frozenset(
    {
        ir.DataType.INT8,
        ir.DataType.INT16,
        ir.DataType.INT32,
        ir.DataType.INT64,
        ir.DataType.UINT8,
        ir.DataType.UINT16,
        ir.DataType.UINT32,
        ir.DataType.UINT64,
    }
)

_REAL = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}


@functools.cache
def _from_torch(dtype: torch.dtype) -> ir.DataType:
    try:
        return ir.tensor_adapters.from_torch_dtype(dtype)
    except TypeError:
        raise both(BuildError, TypeError)(f"ONNX has no dtype for {dtype}") from None


def to_ir(dtype: Any) -> ir.DataType:
    """``ir.DataType`` of a torch.dtype or of one that is one already.

    Raises:
        BuildError: also a TypeError, where ONNX has no such dtype.
    """
    if isinstance(dtype, ir.DataType):
        return dtype
    if isinstance(dtype, torch.dtype):
        return _from_torch(dtype)
    raise both(BuildError, TypeError)(f"{dtype!r} is not a dtype")


def to_torch(dtype: ir.DataType) -> torch.dtype:
    """torch.dtype of an ``ir.DataType``."""
    return ir.tensor_adapters.to_torch_dtype(dtype)


def real_of(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the parts of a complex number; others as they are."""
    return _REAL.get(dtype, dtype)


def is_float(dtype: ir.DataType | None) -> bool:
    """Whether ``dtype`` is float16, bfloat16, float32 or float64."""
    return dtype in FLOATS
