"""Python and torch data as ONNX tensors, exact or refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build.dtypes import FLOATS, INTS, to_ir
from atonnx.errors import BuildError

__all__ = ["constant_tensor", "default_dtype", "scalar_key"]

_NUMBER = (bool, int, float, complex, np.generic)


def default_dtype(value: Any) -> ir.DataType:
    """INT64 for ints, BOOL for bools, FLOAT when a float is among them."""
    if isinstance(value, (list, tuple)):
        kinds = {default_dtype(item) for item in value}
        if ir.DataType.FLOAT in kinds:
            return ir.DataType.FLOAT
        return ir.DataType.BOOL if kinds == {ir.DataType.BOOL} else ir.DataType.INT64
    if isinstance(value, (bool, np.bool_)):
        return ir.DataType.BOOL
    if isinstance(value, (int, np.integer)):
        return ir.DataType.INT64
    if isinstance(value, (float, np.floating)):
        return ir.DataType.FLOAT
    raise BuildError(f"{value!r} is no number that a tensor can be made of")


def scalar_key(value: Any, dtype: ir.DataType) -> Any:
    """A key under which equal bytes meet: 0.0 and -0.0, 1 and True stay apart."""
    if isinstance(value, float):
        return (dtype, value, math.copysign(1.0, value), type(value)) if value == value else (dtype, "nan")
    return (dtype, value, type(value))


def _check_number(value: Any, dtype: ir.DataType) -> None:
    """Raise BuildError where ``dtype`` cannot hold ``value``; rounding of floats is no loss."""
    if dtype in FLOATS or value is True or value is False:
        return
    if dtype in INTS:
        if isinstance(value, (float, np.floating)) and not float(value).is_integer():
            raise BuildError(
                f"{value!r} is not exact in {dtype.name}", hint="cast the tensor beside it first"
            )
        info = np.iinfo(dtype.numpy())
        if not info.min <= int(value) <= info.max:
            raise BuildError(f"{value!r} is out of the range of {dtype.name}")
    elif dtype == ir.DataType.BOOL and value not in (0, 1):
        raise BuildError(f"{value!r} is not exact in BOOL")


def _check(value: Any, dtype: ir.DataType) -> None:
    if isinstance(value, (list, tuple)):
        for item in value:
            _check(item, dtype)
    else:
        _check_number(value, dtype)


def constant_tensor(value: Any, dtype: ir.DataType | None) -> ir.TensorProtocol:
    """A tensor with the value of a number, a nested list, an array or a torch tensor.

    Raises:
        BuildError: ``dtype`` cannot hold the value.
    """
    # The checks for tensors are slow, and most constants are numbers.
    if not isinstance(value, (*_NUMBER, list, tuple)):
        if isinstance(value, torch.Tensor):
            made = ir.tensor_adapters.TorchTensor(value.detach().contiguous())
            if dtype is not None and made.dtype != dtype:
                raise BuildError(f"a {made.dtype.name} tensor was given for a {dtype.name} constant")
            return made
        if isinstance(value, np.ndarray):
            return ir.Tensor(value if dtype is None else value.astype(dtype.numpy()))
        if isinstance(value, ir.TensorProtocol):
            return value
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise BuildError(f"{value!r} cannot be a constant")
    kind = to_ir(dtype) if dtype is not None else default_dtype(value)
    _check(value, kind)
    with np.errstate(over="ignore"):
        array = np.asarray(value, dtype=None if kind not in FLOATS else np.float64)
        array = array.astype(kind.numpy()) if array.size else np.zeros(array.shape, kind.numpy())
    return ir.Tensor(np.ascontiguousarray(array).reshape(array.shape), dtype=kind)
