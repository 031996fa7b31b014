"""Order along an axis: TopK."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._axes import axis_of

aten = torch.ops.aten
table = Table(__name__)

# ONNX Runtime has no TopK for them; int32 holds all of their values.
_NARROW = (
    ir.DataType.BOOL,
    ir.DataType.INT8,
    ir.DataType.UINT8,
    ir.DataType.INT16,
    ir.DataType.UINT16,
)


def _top(
    op: Builder, x: Value, k: Any, dim: int, largest: bool, in_order: bool = True
) -> tuple[Value, Value]:
    """The first ``k`` along an axis, equal ones in their order, and where they were."""
    flat = x if x.rank else op.reshape(x, (1,))
    axis = axis_of(dim, flat.rank)
    wide = op.cast(flat, ir.DataType.INT32) if x.dtype in _NARROW else flat
    values, indices = op.TopK(wide, [k], axis=axis, largest=int(largest), sorted=int(in_order))
    if not x.rank:
        values, indices = op.reshape(values, ()), op.reshape(indices, ())
    return op.cast(values, x.dtype), indices


def _sorted(op: Builder, x: Value, dim: int, descending: bool) -> tuple[Value, Value]:
    size = (x.dims or ())[axis_of(dim, x.rank)] if x.rank else 1
    return _top(op, x, size, dim, descending)


@table.translate(aten.topk.default)
def topk(
    op: Builder, self: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, Value]:
    """TopK."""
    return _top(op, self, k, dim, largest, sorted)


@table.translate(aten.sort.default)
def sort(op: Builder, self: Value, dim: int = -1, descending: bool = False) -> tuple[Value, Value]:
    """TopK of all elements."""
    return _sorted(op, self, dim, descending)


@table.translate(aten.sort.stable)
def sort_stable(
    op: Builder, self: Value, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> tuple[Value, Value]:
    """TopK of all elements, which leaves equal ones in their order."""
    return _sorted(op, self, dim, descending)


@table.translate(aten.argsort.default)
def argsort(op: Builder, self: Value, dim: int = -1, descending: bool = False) -> Value:
    """TopK of all elements."""
    return _sorted(op, self, dim, descending)[1]


@table.translate(aten.argsort.stable)
def argsort_stable(
    op: Builder, self: Value, *, stable: bool, dim: int = -1, descending: bool = False
) -> Value:
    """TopK of all elements, which leaves equal ones in their order."""
    return _sorted(op, self, dim, descending)[1]


@table.translate(aten.msort.default)
def msort(op: Builder, self: Value) -> Value:
    """TopK of all elements along the first axis."""
    return _sorted(op, self, 0, False)[0]


@table.translate(aten.kthvalue.default)
def kthvalue(op: Builder, self: Value, k: Any, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """The last of the k smallest by TopK."""
    values, indices = _top(op, self, k, dim, largest=False)
    if not self.rank:
        return values, indices
    axis = axis_of(dim, self.rank)
    pick = op.shape([k - 1]) if keepdim else op.size(k - 1)
    return op.Gather(values, pick, axis=axis), op.Gather(indices, pick, axis=axis)


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x = torch.randn(3, 5)
    return [
        OpSample(aten.topk.default, (x, 2)),
        OpSample(aten.sort.default, (x, 0, True)),
        OpSample(aten.sort.stable, (x,), {"stable": True}),
        OpSample(aten.argsort.default, (x,)),
        OpSample(aten.argsort.stable, (x,), {"stable": True}),
        OpSample(aten.msort.default, (x,)),
        OpSample(aten.kthvalue.default, (x, 2)),
    ]
