"""Symmetric factors with pivots of one or two rows (Bunch and Kaufman), as LAPACK's sytrf has them.

A step is one for every column; where the column is the second of a pair it does nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._axes import arange
from atonnx_aten_core._linalg import (
    Index,
    Lines,
    Num,
    diagonal_of,
    first_true,
    numbers,
    out_dims,
    repeat,
    sized,
    spread,
    triangle,
    used,
)

aten = torch.ops.aten
table = Table(__name__)

INT32, INT64 = ir.DataType.INT32, ir.DataType.INT64
_ALPHA = (1 + math.sqrt(17)) / 8


def _mirror(x: Num, hermitian: bool) -> Num:
    return x.adjoint() if hermitian else x.turned()


def _swapped(x: Num, at_first: Value, at_second: Value, axis: int) -> Num:
    """Two rows or columns in each other's place."""
    first, second = x.where(at_first).total(axis), x.where(at_second).total(axis)
    return second.where(at_first, first.where(at_second, x))


def _inverse(a: Num, b: Num, d11: Num, d21: Num, d12: Num, d22: Num) -> tuple[Num, Num]:
    """``(a, b)`` as a row times the inverse of ``((d11, d12), (d21, d22))``."""
    over = (d11 * d22 - d21 * d12).nonzero()
    return (a * d22 - b * d21) / over, (b * d11 - a * d12) / over


def _pair(
    op: Builder, x: Num, k: Index, following: Value, two: Value, hermitian: bool
) -> tuple[Num, Num, Num, Num, Num, Num]:
    """Columns k and k + 1 and the numbers of the pivot; a pivot of one row is that beside (0, 1)."""
    here, there = x.pick(k, -1), x.pick(following, -1).where(two)
    d11, d21 = here.pick(k, -2), here.pick(following, -2).where(two)
    d22 = there.pick(following, -2).where(two, 1)
    return here, there, d11, d21, d21.conj() if hermitian else d21, d22


def _factored(op: Builder, a: Num, hermitian: bool) -> tuple[Num, Value]:
    *batch, n, _ = a.dims
    rows, columns = Lines(op, n, -2), Lines(op, n, -1)
    line = arange(op, n)
    last = op.size(n - 1)
    # Only the lower triangle is read.
    a = a.where(op.GreaterOrEqual(rows.index, columns.index), _mirror(a, hermitian))

    def step(op: Builder, k: Index, a: Num, pivots: Value, second: Value) -> Sequence[Any]:
        following = op.Min(op.Add(k, 1), last)
        below = rows.after(op, k)
        column = a.pick(k, -1)
        sizes = op.Where(below, column.size(), -1)
        furthest = op.ArgMax(sizes, axis=-2, keepdims=1)
        largest = op.Max(op.ReduceMax(sizes, [-2], keepdims=1), 0)
        size = column.pick(k, -2).size()
        chosen = a.where(op.Equal(columns.index, furthest)).total(-1)
        at_furthest = op.Equal(rows.index, furthest)
        others = op.Where(op.Or(rows.before(op, k), at_furthest), 0, chosen.size())
        beside = op.ReduceMax(others, [-2], keepdims=1)
        corner = chosen.where(at_furthest).total(-2).size()
        here = op.Or(
            op.GreaterOrEqual(size, op.Mul(largest, _ALPHA)),
            op.GreaterOrEqual(op.Mul(size, beside), op.Mul(op.Mul(largest, largest), _ALPHA)),
        )
        there = op.GreaterOrEqual(corner, op.Mul(beside, _ALPHA))
        two = op.Not(op.Or(here, there))
        taken = op.Where(here, k, furthest)
        place = op.Where(two, following, k)
        made = _swapped(a, op.Equal(rows.index, place), op.Equal(rows.index, taken), -2)
        made = a.where(columns.before(op, k), made)
        made = _swapped(made, op.Equal(columns.index, place), op.Equal(columns.index, taken), -1)
        tail = op.Greater(rows.index, place)
        c1, c2, d11, d21, d12, d22 = _pair(op, made, k, following, two, hermitian)
        c1, c2 = c1.where(tail), c2.where(tail)
        w1, w2 = _inverse(c1, c2, d11, d21, d12, d22)
        rest = made - w1 * _mirror(c1, hermitian) - w2 * _mirror(c2, hermitian)
        of_second = op.And(op.And(tail, two), op.Equal(columns.index, following))
        rest = w1.where(op.And(tail, columns.at(op, k)), w2.where(of_second, rest))
        number = op.Add(taken, 1)
        number = op.Squeeze(op.Where(two, op.Neg(number), number), [-1])
        active = op.Not(second)
        pair = op.Or(op.Equal(line, k), op.And(op.Equal(line, following), op.Squeeze(two, [-1])))
        pivots = op.Where(op.And(pair, op.Squeeze(active, [-1])), number, pivots)
        return rest.where(active, a), pivots, op.And(two, active)

    start = [
        a.each(lambda part: sized(part, a.dims)),
        op.expand(op.const(0, INT64), (*batch, n)),
        op.expand(op.const(False), (*batch, 1, 1)),
    ]
    made, pivots, _ = repeat(op, n, step, start, unroll=0)
    return triangle(made, upper=False), pivots


def _factor(op: Builder, x: Value, hermitian: bool) -> tuple[Value, Value, Value | None]:
    a = numbers(op, x)
    if 0 in a.dims:
        pivots = op.expand(op.const(0, INT32), a.dims[:-1])
        return x, pivots, op.expand(op.const(0, INT32), a.dims[:-2]) if used(op, 2) else None
    factors, pivots = _factored(op, a, hermitian)
    info = None
    if used(op, 2):
        zero = diagonal_of(op, factors).is_zero()
        info = first_true(op, op.And(zero, op.Greater(pivots, 0)))
    return factors.value(), op.cast(pivots, INT32), info


@table.translate(aten.linalg_ldl_factor.default, complex="also")
def linalg_ldl_factor(op: Builder, self: Value, *, hermitian: bool = False) -> tuple[Value, Value]:
    """Elimination with pivots of one or two rows."""
    return _factor(op, self, hermitian)[:2]


@table.translate(aten.linalg_ldl_factor_ex.default, complex="also")
def linalg_ldl_factor_ex(
    op: Builder, self: Value, *, hermitian: bool = False, check_errors: bool = False
) -> tuple[Value, Value, Value | None]:
    """Elimination with pivots of one or two rows; the number of the first that is zero."""
    return _factor(op, self, hermitian)


@table.translate(aten.linalg_ldl_solve.default, complex="also")
def linalg_ldl_solve(op: Builder, LD: Value, pivots: Value, B: Value, *, hermitian: bool = False) -> Value:
    """The swaps and two substitutions, with a division by the pivots."""
    factors, b = numbers(op, LD), spread(numbers(op, B), out_dims(op))
    if 0 in b.dims:
        return b.value()
    n = factors.dims[-1]
    rows = Lines(op, n, -2)
    last = op.size(n - 1)
    signed = op.Unsqueeze(op.cast(pivots, INT64), [-1])
    batch = tuple(b.dims[:-2])

    def swapped(op: Builder, x: Num, place: Value, pivot: Value) -> Num:
        taken = op.Sub(op.Abs(pivot), 1)
        return _swapped(x, op.Equal(rows.index, place), op.Equal(rows.index, taken), -2)

    def forward(op: Builder, k: Index, x: Num, second: Value) -> Sequence[Any]:
        following = op.Min(op.Add(k, 1), last)
        pivot = op.Gather(signed, k, axis=-2)
        two = op.Less(pivot, 0)
        place = op.Where(two, following, k)
        made = swapped(op, x, place, pivot)
        w1, w2, d11, d21, d12, d22 = _pair(op, factors.on(op), k, following, two, hermitian)
        tail = op.Greater(rows.index, place)
        x1, x2 = made.pick(k, -2), made.pick(following, -2)
        made = made - w1.where(tail) * x1 - w2.where(tail) * x2
        # A column times the inverse is a row times that of the transposed one.
        y1, y2 = _inverse(x1, x2.where(two), d11, d12, d21, d22)
        made = y2.where(op.And(two, op.Equal(rows.index, following)), made)
        made = y1.where(rows.at(op, k), made)
        active = op.Not(second)
        return made.where(active, x), op.And(two, active)

    def backward(op: Builder, k: Index, x: Num, second: Value) -> Sequence[Any]:
        pivot = op.Gather(signed, k, axis=-2)
        two = op.Less(pivot, 0)
        ahead = op.Max(op.Sub(k, 1), 0)
        tail = rows.after(op, k)

        def seen(at: Index) -> Num:
            column = factors.on(op).pick(at, -1).where(tail)
            return ((column.conj() if hermitian else column) * x).total(-2)

        made = (x - seen(k)).where(rows.at(op, k), x)
        made = (x - seen(ahead)).where(op.And(two, op.Equal(rows.index, ahead)), made)
        made = swapped(op, made, k, pivot)
        active = op.Not(second)
        return made.where(active, x), op.And(two, active)

    none = op.expand(op.const(False), (*batch, 1, 1))
    x, _ = repeat(op, n, forward, [b, none], unroll=0)
    x, _ = repeat(op, n, backward, [x, none], backward=True, unroll=0)
    made: Value = x.value()
    return made


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    a = torch.randn(2, 5, 5)
    a = a + a.mT
    factors, pivots = torch.linalg.ldl_factor(a)
    near: dict[str, Any] = {"atol": 1e-3, "rtol": 1e-3, "reason": "LAPACK adds in another order"}
    return [
        OpSample(aten.linalg_ldl_factor.default, (a,), **near),
        OpSample(aten.linalg_ldl_factor_ex.default, (a,), **near),
        OpSample(aten.linalg_ldl_solve.default, (factors, pivots, torch.randn(2, 5, 2)), **near),
    ]
