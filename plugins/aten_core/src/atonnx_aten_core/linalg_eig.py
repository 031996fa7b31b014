"""Eigenvalues of any matrix, by QR steps with shifts on complex numbers in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._linalg import (
    Index,
    Lines,
    Num,
    diagonal_of,
    eye,
    numbers,
    repeat,
    sized,
    triangle,
    used,
    zeros,
)
from atonnx_aten_core.linalg_qr import multiplied, reflected

aten = torch.ops.aten
table = Table(__name__)

DOUBLE = ir.DataType.DOUBLE

# Two or three steps settle an eigenvalue; the rest is for matrices that never settle.
_STEPS = 40
# What is this small beside the whole matrix is taken for zero.
_SMALL = 1e-14
# After so many steps one with another shift breaks a cycle, such as a permutation's.
_CYCLE = 8


def _root(x: Num) -> Num:
    """The square root with a real part that is not negative."""
    op = x.op
    size = op.Sqrt(x.square())
    real = op.Sqrt(op.Max(op.Div(op.Add(size, x.re), 2), 0))
    rest = op.Sqrt(op.Max(op.Div(op.Sub(size, x.re), 2), 0))
    return Num(op, real, op.Where(op.Less(_im(x), 0), op.Neg(rest), rest))


def _im(x: Num) -> Value:
    return x.parts[1]


def _shift(op: Builder, t: Num, rows: Lines, columns: Lines, last: Value, k: Index) -> Num:
    """The eigenvalue of the 2 x 2 matrix that ends in row ``last`` which is nearer to its end."""
    before = op.Sub(last, 1)
    ends = [
        t.where(op.And(op.Equal(rows.index, row), op.Equal(columns.index, column))).total(-1).total(-2)
        for row, column in ((before, before), (before, last), (last, before), (last, last))
    ]
    a, b, c, d = ends
    half = (a - d) * 0.5
    root = _root(half * half + b * c)
    # The larger of two sums, so that it does not cancel out.
    same = op.Less(op.Add(op.Mul(half.re, root.re), op.Mul(_im(half), _im(root))), 0)
    total = half + root * op.Where(same, op.const(-1.0, DOUBLE), 1)
    near = d - (b * c) / total.nonzero()
    other = op.Equal(op.Mod(k, _CYCLE), _CYCLE - 1)
    return (d + Num(op, c.size(), op.Mul(c.size(), 0.5))).where(other, near)


def _schur(op: Builder, a: Num, vectors: bool) -> tuple[Num, Num | None]:
    """A triangular matrix that is similar to ``a``, and the unitary one that leads there."""
    *batch, n, _ = a.dims
    rows, columns = Lines(op, n, -2), Lines(op, n, -1)
    below = op.Greater(rows.index, columns.index)
    one = eye(op, Num(op, a.re), n, n)
    limit = op.Mul(op.ReduceSum(a.square(), [-2, -1], keepdims=1), _SMALL**2)

    def step(op: Builder, k: Index, t: Num, *rest: Any) -> Sequence[Any]:
        *basis, _ = rest
        left = op.ReduceSum(op.Where(below, t.square(), 0), [-1], keepdims=1)
        loud = op.Greater(left, limit)
        t = t.where(op.Or(loud, op.Not(below)))
        last = op.ReduceMax(op.Where(loud, rows.index, 0), [-2], keepdims=1)
        shift = _shift(op, t, rows, columns, last, k)
        moved = Num(op, *(op.Mul(part, one.re) for part in shift.parts))
        packed, factors = reflected(op, t - moved, unroll=0)
        q = multiplied(op, packed, factors, eye(op, t, n, n, batch), unroll=0)
        t = triangle(packed, upper=True).matmul(q) + moved
        t = t.each(lambda part: sized(part, a.dims))
        basis = [v.matmul(q).each(lambda part: sized(part, a.dims)) for v in basis]
        return t, *basis, op.Greater(op.ReduceMax(last, keepdims=0), 0)

    start = [eye(op, a, n, n, batch)] if vectors else []
    state = repeat(
        op,
        op.size(n * _STEPS),
        step,
        [a, *start, op.const(True)],
        going=lambda op, *state: state[-1],
    )
    return state[0], state[1] if vectors else None


def _vectors(op: Builder, t: Num) -> Num:
    """The eigenvectors of a triangular matrix, from the last row to the first."""
    *batch, n, _ = t.dims
    rows, columns = Lines(op, n, -2), Lines(op, n, -1)
    values = diagonal_of(op, t).each(lambda part: op.Unsqueeze(part, [-2]))
    tiny = op.Mul(op.Sqrt(op.ReduceSum(t.square(), [-2, -1], keepdims=1)), _SMALL)
    tiny = op.Max(tiny, 1e-300)

    def step(op: Builder, k: Index, x: Num) -> Sequence[Any]:
        row = t.on(op).pick(k, -2)
        gap = row.pick(k, -1) - values.on(op)
        gap = gap.where(op.Greater(gap.size(), tiny), Num(op, tiny, op.Sub(tiny, tiny)))
        known = row.where(columns.after(op, k)).matmul(x) * -1.0
        made = (known / gap).where(columns.after(op, k))
        made = Num(op, op.Where(columns.at(op, k), 1, made.re), *made.parts[1:])
        return [made.where(rows.at(op, k), x).each(lambda part: sized(part, t.dims))]

    (x,) = repeat(op, n, step, [zeros(op, t, t.dims)], backward=True, unroll=0)
    made: Num = x
    return made


def _eig(op: Builder, x: Value, vectors: bool) -> tuple[Value, Value | None]:
    a = numbers(op, x).cast(DOUBLE)
    if a.im is None:
        a = Num(op, a.re, op.expand(op.const(0.0, DOUBLE), a.dims))
    dtype = x.dtype
    if 0 in a.dims:
        return diagonal_of(op, a).cast(dtype).value(), a.cast(dtype).value()
    t, basis = _schur(op, a, vectors)
    values = diagonal_of(op, t).cast(dtype).value()
    if basis is None:
        return values, None
    made = basis.matmul(_vectors(op, t))
    made = made / op.Sqrt(op.ReduceSum(made.square(), [-2], keepdims=1))
    return values, made.each(lambda part: sized(part, a.dims)).cast(dtype).value()


@table.translate(aten.linalg_eig.default, complex="also")
def linalg_eig(op: Builder, self: Value) -> tuple[Value, Value | None]:
    """QR steps in a Loop. The order of the values and the vectors' phases are not LAPACK's."""
    return _eig(op, self, used(op, 1))


@table.translate(aten.linalg_eigvals.default, complex="also")
def linalg_eigvals(op: Builder, self: Value) -> Value:
    """QR steps in a Loop. The order of the values is not LAPACK's."""
    return _eig(op, self, False)[0]


@table.translate(aten._linalg_eigvals.default, complex="also")
def _linalg_eigvals(op: Builder, self: Value) -> Value:
    """QR steps in a Loop. The order of the values is not LAPACK's."""
    return _eig(op, self, False)[0]


def samples() -> list[Any]:
    """Test inputs of the rows; in which order values come is not told."""
    from atonnx.testing import OpSample

    a = torch.randn(2, 3, 3)
    return [
        OpSample(f, (a,), options={"values": False})
        for f in (aten.linalg_eig.default, aten.linalg_eigvals.default, aten._linalg_eigvals.default)
    ]
