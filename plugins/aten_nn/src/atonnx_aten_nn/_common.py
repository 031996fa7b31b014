"""What several families share: lists for each spatial axis, batches of one, results that are read."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import to_torch
from atonnx.errors import BuildError, UnsupportedOpError

D = ir.DataType
FLOATS = frozenset({D.FLOAT16, D.BFLOAT16, D.FLOAT, D.DOUBLE})
HALVES = frozenset({D.FLOAT16, D.BFLOAT16})
UNSIGNED = frozenset({D.UINT8, D.UINT16, D.UINT32, D.UINT64, D.BOOL})


def sizes_of(x: Value) -> tuple[Any, ...]:
    """The sizes of a tensor: ints and symbolic ones."""
    if x.dims is None:
        raise BuildError(f"the rank of {x.describe()} is not known")
    return x.dims


def spread(values: Any, count: int) -> tuple[Any, ...]:
    """One entry for each of ``count`` spatial axes; a single one serves all."""
    items = tuple(values) if isinstance(values, (list, tuple)) else (values,)
    return items * count if len(items) == 1 else items


def static(op: Builder, values: Any, count: int, what: str) -> tuple[int, ...]:
    """The same, where ONNX has an attribute and so needs numbers."""
    items = spread(values, count)
    if not all(isinstance(item, int) for item in items):
        raise UnsupportedOpError.here(
            op, f"a {what} that depends on input sizes", hint=f"make the {what} a number of the model"
        )
    return items


def known(op: Builder, size: Any, what: str) -> int:
    """A size that has to be a number."""
    if not isinstance(size, int):
        raise UnsupportedOpError.here(op, f"a dynamic {what}", hint=f"leave the {what} out of dynamic_shapes")
    return size


def used(op: Builder, index: int) -> bool:
    """Whether somebody reads the node's result of that index."""
    node = op.origin.fx
    if node is None:
        return True
    return any(
        user.op == "output"
        or (user.target is operator.getitem and user.args[1] == index and bool(user.users))
        for user in node.users
    )


def batched(op: Builder, x: Value, spatial: int) -> tuple[Value, bool]:
    """``x`` with a batch axis, and whether it had none."""
    if x.rank == spatial + 1:
        return op.Unsqueeze(x, [0]), True
    return x, False


def filled(op: Builder, number: float, sizes: Sequence[Any], dtype: Any) -> Value:
    """A tensor of one number: a constant where the sizes are known and small."""
    if all(isinstance(size, int) for size in sizes) and math.prod(sizes) <= 1 << 16:
        return op.const(torch.full(tuple(sizes), number, dtype=to_torch(dtype)))
    return op.expand(op.const(number, dtype), tuple(sizes))


def scalar_of(x: Value, number: Any) -> Any:
    """A number as eager compares it with a tensor of ``x``'s dtype: cut off for integers."""
    return number if x.dtype in FLOATS or not isinstance(number, float) else int(number)


def computed(dtype: Any) -> Any:
    """Where products are computed: narrow integers in int32, which wraps around to the same."""
    return dtype if dtype in FLOATS or dtype in (D.INT64, D.UINT64) else D.INT32


def exact_float32(number: float) -> bool:
    """Whether a float attribute, which ONNX keeps in float32, holds the number as it is."""
    return float(np.float32(number)) == float(number)
