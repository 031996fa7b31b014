"""Functions of matrices that need no decomposition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._axes import dims_of
from atonnx_aten_core._linalg import Index, Num, eye, numbers, repeat

aten = torch.ops.aten
table = Table(__name__)

INT64 = ir.DataType.INT64

# So many terms of the series are exact in float64 for matrices of a norm up to 1.
_TERMS = 18
# 2 to the power of more than this is no number; a matrix with a norm like that has no exponential.
_MOST = 1000


def _exponential(op: Builder, a: Num) -> Num:
    *batch, n, _ = a.dims
    sizes = op.Abs(a.re) if a.im is None else op.Sqrt(a.square())
    norm = op.ReduceMax(op.ReduceSum(sizes, [-2], keepdims=1), [-1], keepdims=1)
    halvings = op.Ceil(op.Div(op.Log(op.Max(norm, 1)), math.log(2)))
    halvings = op.Where(op.Less(halvings, _MOST), halvings, 0)
    a = a / op.Pow(op.const(2.0, a.re.dtype), halvings)
    one = eye(op, a, n, n)
    made = one + a * (1 / _TERMS)
    for term in range(_TERMS - 1, 0, -1):
        made = one + a.matmul(made) * (1 / term)

    def square(op: Builder, k: Index, x: Num) -> Sequence[Any]:
        return [x.matmul(x).where(op.Less(op.cast(k, x.re.dtype), halvings), x)]

    turns = op.cast(op.Reshape(halvings, [-1]), INT64)
    if batch:  # of none there is no maximum
        turns = op.Concat(turns, [0], axis=0)
    (made,) = repeat(op, op.ReduceMax(turns, keepdims=0), square, [made])
    return made


def _matrix_exp(op: Builder, x: Value) -> Value:
    size = dims_of(x)[-1]
    if size == 0:
        return x
    a = numbers(op, x)
    return _exponential(op, a.cast(ir.DataType.DOUBLE)).cast(x.dtype).value()


@table.translate(aten.matrix_exp.default, complex="also")
def matrix_exp(op: Builder, self: Value) -> Value:
    """Taylor's series of the matrix halved until its norm is at most 1, squared as often; in float64."""
    return _matrix_exp(op, self)


@table.translate(aten.linalg_matrix_exp.default, complex="also")
def linalg_matrix_exp(op: Builder, self: Value) -> Value:
    """Taylor's series of the matrix halved until its norm is at most 1, squared as often; in float64."""
    return _matrix_exp(op, self)


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    a = torch.randn(2, 3, 3)
    return [
        OpSample(f, (a,), atol=1e-4, rtol=1e-4, reason="eager takes another polynomial")
        for f in (aten.matrix_exp.default, aten.linalg_matrix_exp.default)
    ]
