"""Images put together from their windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import D, sizes_of

aten = torch.ops.aten
table = Table(__name__)


@table.translate(aten.col2im.default)
def col2im(
    op: Builder,
    self: Value,
    output_size: Sequence[Any],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Value:
    """Col2Im; ScatterND of float64, which runtimes lack, and of dynamic sizes before opset 18."""
    fixed = all(isinstance(size, int) for size in (*output_size, sizes_of(self)[-2]))
    if self.dtype == D.DOUBLE or (op.opset < 18 and not fixed):
        return op.decompose()  # type: ignore[no-any-return]
    single = self.rank == 2
    x = op.Unsqueeze(self, [0]) if single else self
    image = op.Col2Im(
        x,
        op.shape(output_size),
        op.const(list(kernel_size), D.INT64),
        dilations=dilation,
        pads=[*padding, *padding],
        strides=stride,
    )
    return op.Squeeze(image, [0]) if single else image


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    one = [1, 1]
    return [
        OpSample(
            aten.col2im.default,
            lambda: (torch.randn(2, 12, 12), [4, 5], [2, 2], one, [0, 0], one),
            expect="Col2Im:1!",
            opsets=18,
        ),
        OpSample(
            aten.col2im.default, lambda: (torch.randn(8, 9), [5, 5], [2, 2], one, [1, 1], [2, 2]), opsets=18
        ),
    ]
