"""Differences of neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._axes import INT_MAX, axis_of
from atonnx_aten_core._promote import BOOL

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)


@table.translate(aten.diff.default)
def diff(
    op: Builder,
    self: Value,
    n: int = 1,
    dim: int = -1,
    prepend: Value | None = None,
    append: Value | None = None,
) -> Value:
    """A Slice without the first minus one without the last, n times; Xor of truth values."""
    if n == 0:
        return op.cast(self, op.out.dtype)
    axis = axis_of(dim, self.rank)
    parts = [op.cast(x, op.out.dtype) for x in (prepend, self, append) if x is not None]
    x = op.Concat(*parts, axis=axis) if len(parts) > 1 else parts[0]
    size: Any = (x.dims or ())[axis]
    for _ in range(min(n, size) if isinstance(size, int) else n):
        after, before = (op.Slice(x, [a], [b], [axis]) for a, b in ((1, INT_MAX), (0, -1)))
        x = op.Xor(after, before) if x.dtype == BOOL else op.Sub(after, before)
    return x


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x = torch.randn(3, 4)
    return [
        OpSample(aten.diff.default, (x,)),
        OpSample(aten.diff.default, (x, 2, 0, x[:1], x[:2])),
        OpSample(aten.diff.default, (x > 0,)),
    ]
