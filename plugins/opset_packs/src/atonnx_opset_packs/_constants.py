"""What a row has to know at export: the numbers of a constant, the rank and sizes of a tensor."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.build.infer import int_content
from atonnx.errors import UnsupportedOpError

__all__ = [
    "FLOATS",
    "INTS",
    "LAST",
    "axes_of",
    "fixed_size",
    "known_ints",
    "rank_of",
    "refuse",
    "sizes",
    "zero",
]

FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16})
INTS = frozenset(
    getattr(ir.DataType, sign + str(bits)) for sign in ("INT", "UINT") for bits in (8, 16, 32, 64)
)
LAST = np.iinfo(np.int64).max
"""The end of a Slice that goes on to the last element."""


def refuse(op: Builder, what: str, opset: int) -> UnsupportedOpError:
    """The error for a form that only ``opset`` and newer have."""
    hint = f"export at opset {opset} or newer"
    return UnsupportedOpError.here(op, f"{what} at opset {op.opset}", hint=hint)


def known_ints(value: Value | None) -> list[int] | None:
    """The numbers of an integer tensor; None where it is not given or not a constant."""
    content = int_content(value)
    if content is None or not all(isinstance(item, int) for item in content):
        return None
    return list(content)


def axes_of(op: Builder, value: Value | None, what: str, opset: int) -> list[int] | None:
    """The numbers that become an attribute; None where the input is left out.

    Raises:
        UnsupportedOpError: the input is not a constant.
    """
    if value is None:
        return None
    found = known_ints(value)
    if found is None:
        raise refuse(op, f"{what} computed by the model", opset)
    return found


def rank_of(op: Builder, x: Value, what: str, opset: int) -> int:
    """The rank of ``x``.

    Raises:
        UnsupportedOpError: it is not known.
    """
    if x.dims is None:
        raise refuse(op, f"{what} of a tensor of unknown rank", opset)
    return x.rank


def fixed_size(x: Value, axis: int) -> int | None:
    """The size of one axis where the export knows it."""
    size = None if x.dims is None else x.dims[axis]
    return size if isinstance(size, int) else None


def sizes(op: Builder, x: Value, start: int = 0, end: int | None = None) -> Value:
    """The sizes from axis ``start`` to before ``end``: a constant where they are known."""
    dims = None if x.dims is None else x.dims[start:end]
    if dims is not None and all(isinstance(size, int) for size in dims):
        return op.const(list(dims), ir.DataType.INT64) if dims else op.const(np.zeros(0, np.int64))
    return op.Shape(x, start=start or None, end=end)


def zero(op: Builder, x: Value) -> Value:
    """A scalar zero of the dtype of ``x``."""
    return op.const(False if x.dtype == ir.DataType.BOOL else 0, x.dtype)
