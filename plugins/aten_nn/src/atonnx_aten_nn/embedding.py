"""Embeddings."""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table

aten = torch.ops.aten
table = Table(__name__)


@table.translate(aten.embedding.default)
def embedding(
    op: Builder,
    weight: Value,
    indices: Value,
    padding_idx: Any = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    """Gather of rows; the other arguments concern gradients."""
    return op.Gather(weight, indices, axis=0)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample, Weight

    return [
        OpSample(aten.embedding.default, lambda: (Weight(torch.randn(7, 3)), torch.tensor([[1, 6], [0, 1]]))),
    ]
