"""Functions of matrices that need no decomposition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
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

# 2 to the power of more than this is no number; a matrix with a norm like that has no exponential.
_MOST = 1000

# torch multiplies matrices of up to this size without BLAS, so the order of its sums is known.
_SMALL = 7
# Taylor's polynomial of degree 18 by five products (Bader, Blanes, Casas 2019), as combinations of the
# powers 0, 1, 2, 3 and 6.
_COMBINATIONS = (
    (0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0),
    (
        0,
        3.97849749499645077844e-01,
        1.36783778460411720168,
        4.98289622525382669416e-01,
        -6.37898194594723280150e-04,
    ),
    (
        -1.09676396052962061844e01,
        1.68015813878906206114,
        5.71779846478865511061e-02,
        -6.98210122488052056106e-03,
        3.34975017086070470649e-05,
    ),
    (
        -9.04316832390810593223e-02,
        -6.76404519071381882256e-02,
        6.75961301770459654925e-02,
        2.95552570429315521194e-02,
        -1.39180257516060693404e-05,
    ),
    (0, 0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05),
)
# Up to which norm torch takes it.
_NORMS = {ir.DataType.FLOAT: 3.010066362817634, ir.DataType.DOUBLE: 1.090863719290036}


def _product(a: Num, b: Num) -> Num:
    """The product of matrices, added up one by one from the first, as torch does it for small ones.

    A CumSum keeps to that order, which a ReduceSum need not.
    """
    op = a.op
    columns = a.each(lambda x: op.Unsqueeze(x, [-1]))
    rows = b.each(lambda x: op.Unsqueeze(x, [-3]))
    last = op.const(-1)
    return (columns * rows).each(lambda x: op.Gather(op.CumSum(x, op.const(-2)), last, axis=-2))


def _exponential(op: Builder, a: Num, product: Callable[[Num, Num], Num]) -> Num:
    """The polynomial of each matrix halved until its norm is small, squared as often."""
    n = a.dims[-1]
    sizes = op.Abs(a.re) if a.im is None else op.Sqrt(a.square())
    norm = op.ReduceMax(op.ReduceSum(sizes, [-2], keepdims=1), [-1], keepdims=1)
    over = op.cast(op.Max(op.Div(norm, _NORMS[norm.dtype]), 1), ir.DataType.DOUBLE)
    # Rounded as torch rounds it: just above a power of 2 its logarithm is the power's.
    halvings = op.Ceil(op.cast(op.Div(op.Log(over), math.log(2)), norm.dtype))
    a = a * op.Pow(op.const(2.0, norm.dtype), op.Neg(halvings))
    second = product(a, a)
    third = product(a, second)
    powers = (eye(op, a, n, n), a, second, third, product(third, third))
    sums = []
    for factors in _COMBINATIONS:
        terms = (power * factor for power, factor in zip(powers, factors, strict=True) if factor)
        sums.append(reduce(Num.__add__, terms))
    right = sums[3] + product(sums[0], sums[4])
    made = sums[1] + product(sums[2] + right, right)

    def square(op: Builder, k: Index, x: Num) -> Sequence[Any]:
        return [product(x, x).where(op.Less(op.cast(k, x.re.dtype), halvings), x)]

    halvings = op.Where(op.Less(halvings, _MOST), halvings, 0)
    turns = op.cast(op.Reshape(halvings, [-1]), INT64)
    if norm.rank > 2:  # of none there is no maximum
        turns = op.Concat(turns, [0], axis=0)
    (made,) = repeat(op, op.ReduceMax(turns, keepdims=0), square, [made])
    return made


def _matrix_exp(op: Builder, x: Value) -> Value:
    size = dims_of(x)[-1]
    if size == 0:
        return x
    if size == 1:
        made: Value = op.translate(aten.exp.default, x)
        return made
    if x.dtype not in _NORMS or isinstance(size, int) and size > _SMALL:
        return _in_double(op, x)
    if isinstance(size, int):
        return _as_eager(op, x)
    with op.body("small") as small, op.body("large") as large:
        small.output(_as_eager(small, x))
        large.output(_in_double(large, x))
    few = op.LessOrEqual(op.size(size), _SMALL)
    made = op.If(few, then_branch=small.graph, else_branch=large.graph, outputs=1)[0]
    made.is_complex = x.is_complex
    return made


def _as_eager(op: Builder, x: Value) -> Value:
    """With eager's rounding errors, which are what the result of a large norm consists of."""
    return _exponential(op, numbers(op, x), _product).value()


def _in_double(op: Builder, x: Value) -> Value:
    return _exponential(op, numbers(op, x).cast(ir.DataType.DOUBLE), Num.matmul).cast(x.dtype).value()


@table.translate(aten.matrix_exp.default, complex="also")
def matrix_exp(op: Builder, self: Value) -> Value:
    """A polynomial of the matrix halved until its norm is small, squared as often.

    In float64, unless the matrix is small: there eager's own steps are taken.
    """
    return _matrix_exp(op, self)


@table.translate(aten.linalg_matrix_exp.default, complex="also")
def linalg_matrix_exp(op: Builder, self: Value) -> Value:
    """A polynomial of the matrix halved until its norm is small, squared as often.

    In float64, unless the matrix is small: there eager's own steps are taken.
    """
    return _matrix_exp(op, self)


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    a = torch.randn(2, 3, 3)
    return [OpSample(f, (a,)) for f in (aten.matrix_exp.default, aten.linalg_matrix_exp.default)]
