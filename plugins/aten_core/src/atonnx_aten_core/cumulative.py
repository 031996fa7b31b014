"""Running sums, products and extremes along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import FLOATS
from atonnx.dispatch import Table
from atonnx_aten_core._axes import axis_of

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

# What CumSum and CumProd take; other integers are cast.
_SUMMED = frozenset({ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32, ir.DataType.UINT64}) | FLOATS


def _running(op: Builder, name: str, x: Value, dim: int, dtype: Any) -> Value:
    if dtype is not None:
        kind = ir.tensor_adapters.from_torch_dtype(dtype)
    else:
        kind = x.dtype if x.dtype in FLOATS else ir.DataType.INT64
    x = op.cast(x, kind)
    if not x.rank:
        return x
    axis = op.const(axis_of(dim, x.rank), ir.DataType.INT64)
    if kind in _SUMMED:
        return getattr(op, name)(x, axis)
    return op.cast(getattr(op, name)(op.cast(x, ir.DataType.INT64), axis), kind)


@table.translate(aten.cumsum.default)
def cumsum(op: Builder, self: Value, dim: int, *, dtype: Any = None) -> Value:
    """CumSum; integers and bools are summed as int64."""
    return _running(op, "CumSum", self, dim, dtype)


@table.translate(aten.cumprod.default)
def cumprod(op: Builder, self: Value, dim: int, *, dtype: Any = None) -> Value:
    """CumProd; integers and bools are multiplied as int64."""
    return _running(op, "CumProd", self, dim, dtype)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    def x() -> torch.Tensor:
        return torch.tensor([[0.5, -1.5, 2.25], [-0.75, 3.0, 1.0]])

    return [
        OpSample(f.default, args, kwargs)
        for f in (aten.cumsum, aten.cumprod)
        for args, kwargs in (
            (lambda: (x(), 0), {}),
            (lambda: (x(), -1), {"dtype": torch.float64}),
            (lambda: (x().to(torch.int8), 1), {}),
            (lambda: (x().to(torch.int8), 1), {"dtype": torch.int8}),
            (lambda: (x() > 0, 1), {}),
            (lambda: (x()[0, 0], 0), {}),
        )
    ]
