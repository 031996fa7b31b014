"""Axes as torch counts them: without the last one of a complex tensor, its pair of real numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from atonnx.build import Builder, Value

__all__ = ["INT_MAX", "INT_MIN", "arange", "axis_of", "dims_of", "numel", "pair", "rank_of", "transposed"]

INT_MAX = 2**63 - 1
INT_MIN = -(2**63)


def rank_of(x: Value) -> int:
    """The rank that torch sees."""
    return x.rank - x.is_complex


def dims_of(x: Value) -> tuple[Any, ...]:
    """The sizes that torch sees."""
    dims = x.dims or ()
    return dims[:-1] if x.is_complex else dims


def pair(x: Value) -> tuple[int, ...]:
    """What sizes end in, in the graph: the pair axis where ``x`` is complex."""
    return (2,) if x.is_complex else ()


def axis_of(dim: int, rank: int) -> int:
    """``dim`` counted from the front; a scalar has one axis, as in torch."""
    return dim + max(rank, 1) if dim < 0 else dim


def numel(dims: Iterable[Any]) -> Any:
    """Product of sizes."""
    total: Any = 1
    for size in dims:
        total = total * size
    return total


def arange(op: Builder, count: Any) -> Value:
    """0, 1, 2, … as int64: a constant where the count is known."""
    if isinstance(count, int):
        return op.const(np.arange(count, dtype=np.int64))
    made: Value = op.Range(0, op.size(count), 1)
    made.dims = (count,)
    return made


def transposed(op: Builder, x: Value, perm: Sequence[int]) -> Value:
    """Transpose by torch's axes; ``x`` itself where the order stays."""
    full = [*perm, len(perm)] if x.is_complex else list(perm)
    if full == sorted(full):
        return x
    made: Value = op.Transpose(x, perm=full)
    made.is_complex = x.is_complex
    return made
