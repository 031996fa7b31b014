"""Linear layers."""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import FLOATS, computed

aten = torch.ops.aten
table = Table(__name__)


@table.translate(aten.linear.default)
def linear(op: Builder, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """Gemm of a matrix; of other ranks and of integers MatMul and Add, over the weight transposed."""
    if input.rank == 2 and weight.rank == 2 and input.dtype in FLOATS:
        return op.Gemm(input, weight, bias, transB=1)
    wide = computed(input.dtype)
    if weight.rank == 2:
        weight = op.Transpose(weight, perm=[1, 0])
    product = op.MatMul(op.cast(input, wide), op.cast(weight, wide))
    return op.cast(product if bias is None else op.Add(product, op.cast(bias, wide)), input.dtype)


@table.translate(aten.bilinear.default)
def bilinear(op: Builder, input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    """Einsum over the weight, and Add."""
    wide = computed(input1.dtype)
    operands = [op.cast(x, wide) for x in (input1, weight, input2)]
    product = op.Einsum(*operands, equation="...i,oij,...j->...o")
    return op.cast(product if bias is None else op.Add(product, op.cast(bias, wide)), input1.dtype)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample, Weight

    return [
        OpSample(aten.linear.default, lambda: (torch.randn(4, 3), Weight(torch.randn(2, 3)), torch.randn(2))),
        OpSample(aten.linear.default, lambda: (torch.randn(2, 4, 3), Weight(torch.randn(2, 3)))),
        OpSample(
            aten.bilinear.default,
            lambda: (torch.randn(4, 3), torch.randn(4, 2), Weight(torch.randn(5, 3, 2)), torch.randn(5)),
            opsets=12,
        ),
    ]
