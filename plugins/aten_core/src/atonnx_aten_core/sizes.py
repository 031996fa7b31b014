"""Numbers that are read out of tensors."""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table

aten = torch.ops.aten
table = Table(__name__)


@table.translate(aten.item.default, aten._local_scalar_dense.default)
def item(op: Builder, self: Value) -> Value:
    """Cast to the scalar's dtype, of rank 0."""
    return op.cast(op.reshape(self, ()), op.out.dtype)


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    targets = (aten.item.default, aten._local_scalar_dense.default)
    return [OpSample(target, (torch.tensor([3]),)) for target in targets]
