"""Runs of equal neighbours: what is left when each is written once, and how long it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_core._axes import INT_MAX, arange, axis_of, numel

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_INT64 = ir.DataType.INT64
Runs = tuple[Value, Value, Value]


def _runs(op: Builder, x: Value, axis: int, inverse: bool, counts: bool) -> Runs:
    """Slices along an axis that differ from the one before, which run each is of, and the lengths."""
    nothing = op.const(np.zeros(0, np.int64))
    dims: Sequence[Any] = x.dims or ()
    size = dims[axis]
    same = op.Equal(*(op.Slice(x, [a], [b], [axis]) for a, b in ((1, INT_MAX), (0, -1))))
    if x.rank > 1:
        others = [at for at in range(x.rank) if at != axis]
        differ = op.ReduceMax(op.cast(op.Not(same), ir.DataType.INT32), others, keepdims=0)
    else:
        differ = op.cast(op.Not(same), ir.DataType.INT32)
    # The first is always new; of no element at all there is no first.
    never_empty = op.session.facts.provably_nonzero(size.expr) if isinstance(size, SymSize) else size != 0
    ahead = op.const([1], ir.DataType.INT32)
    if not never_empty:
        ahead = op.Slice(ahead, [0], op.shape([size]), [0])
    new = op.Concat(ahead, differ, axis=0)
    kept = op.Compress(x, op.cast(new, ir.DataType.BOOL), axis=axis)
    which = op.Sub(op.CumSum(op.cast(new, _INT64), op.const(0, _INT64)), 1) if inverse else nothing
    if not counts:
        return kept, which, nothing
    starts = op.Compress(arange(op, size), op.cast(new, ir.DataType.BOOL), axis=0)
    ends = op.Concat(op.Slice(starts, [1], [INT_MAX], [0]), op.shape([size]), axis=0)
    return kept, which, op.Sub(ends, starts)


def refuse_wrong_promise(op: Builder, x: Value, dim: int) -> None:
    """Refuse a ``dim`` for which torch states another rank of the result than it has: the last, as -1."""
    if op.outs[0].rank != x.rank:
        raise UnsupportedOpError.here(
            op, f"dim={dim}, for which torch states a wrong shape", hint="count dim from the front"
        )


@table.translate(aten.unique_consecutive.default)
def unique_consecutive(
    op: Builder,
    self: Value,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Runs:
    """Compress to what differs from its predecessor; CumSum numbers the runs."""
    if dim is not None:
        refuse_wrong_promise(op, self, dim)
        return _runs(op, self, axis_of(dim, self.rank), True, True)  # torch makes them all for a dim
    flat = op.reshape(self, (numel(self.dims or ()),))
    kept, which, lengths = _runs(op, flat, 0, return_inverse, return_counts)
    return kept, op.reshape(which, self.dims or ()) if return_inverse else which, lengths


@table.translate(aten._unique.default)
def _unique(
    op: Builder, self: Value, sorted: bool = True, return_inverse: bool = False
) -> tuple[Value, Value]:
    """Unique."""
    values, inverse, _ = op.translate(aten._unique2.default, self, sorted, return_inverse, False)
    return values, inverse if return_inverse else op.const(np.zeros(0, np.int64))


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x = torch.tensor([[1, 1, 2], [1, 1, 2], [2, 1, 2]])
    return [
        OpSample(aten.unique_consecutive.default, (x, True, True)),
        OpSample(aten.unique_consecutive.default, (x, True, True, 0)),
        OpSample(aten.unique_consecutive.default, (x, False, False, 1)),
        OpSample(aten._unique.default, (x, True, True)),
    ]
