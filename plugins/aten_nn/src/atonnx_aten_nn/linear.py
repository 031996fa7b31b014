"""Linear layers."""

from __future__ import annotations

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table

aten = torch.ops.aten
table = Table(__name__)


@table.translate(aten.linear.default)
def linear(op: Builder, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """Gemm of a matrix; of other ranks MatMul and Add, over the weight transposed."""
    if input.rank == 2 and weight.rank == 2:
        return op.Gemm(input, weight, bias, transB=1)
    if weight.rank == 2:
        weight = op.Transpose(weight, perm=[1, 0])
    product = op.MatMul(input, weight)
    return product if bias is None else op.Add(product, bias)


@table.translate(aten.bilinear.default)
def bilinear(op: Builder, input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    """Einsum over the weight, and Add."""
    product = op.Einsum(input1, weight, input2, equation="...i,oij,...j->...o")
    return product if bias is None else op.Add(product, bias)
