"""Triangular systems and Cholesky factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._linalg import (
    Index,
    Lines,
    Num,
    batch_of,
    diagonal_of,
    eye,
    first_true,
    numbers,
    out_dims,
    repeat,
    spread,
    triangle,
    used,
)

aten = torch.ops.aten
table = Table(__name__)


def substituted(op: Builder, a: Num, b: Num, *, upper: bool, unit: bool = False) -> Num:
    """The solution of ``a @ x = b``, reading one triangle of ``a``; ``b`` has all batch axes."""
    n = a.dims[-1]
    rows = Lines(op, n, -2)

    def step(op: Builder, k: Index, x: Num) -> Sequence[Any]:
        column = a.on(op).pick(k, -1)
        row = x.pick(k, -2)
        if not unit:
            row = row / column.pick(k, -2)
        rest = column.where(rows.before(op, k) if upper else rows.after(op, k))
        left = x - rest * row
        return [left if unit else row.where(rows.at(op, k), left)]

    (x,) = repeat(op, n, step, [b], backward=upper)
    made: Num = x
    return made


@table.translate(aten.linalg_solve_triangular.default, complex="also")
def linalg_solve_triangular(
    op: Builder, self: Value, B: Value, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Value:
    """Substitution, row by row."""
    a, b = numbers(op, self), numbers(op, B)
    b = spread(b, out_dims(op))
    if left:
        return substituted(op, a, b, upper=upper, unit=unitriangular).value()
    return substituted(op, a.turned(), b.turned(), upper=not upper, unit=unitriangular).turned().value()


@table.translate(aten.triangular_solve.default, complex="also")
def triangular_solve(
    op: Builder,
    self: Value,
    A: Value,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Value, Value]:
    """Substitution, row by row; the matrix as it came."""
    a, b = numbers(op, A), numbers(op, self)
    b = spread(b, out_dims(op))
    matrix = a.turned() if transpose else a
    x = substituted(op, matrix, b, upper=upper != transpose, unit=unitriangular).value()
    copy = A
    if used(op, 1):
        batch = tuple(b.dims[:-2])
        copy = spread(a, (*batch, *a.dims[-2:])).value()
    return x, copy


# --------------------------------------------------------------------- Cholesky


def _cholesky(op: Builder, a: Num) -> Num:
    """The lower factor, which the lower triangle tells."""
    n = a.dims[-1]
    rows, columns = Lines(op, n, -2), Lines(op, n, -1)

    def step(op: Builder, k: Index, a: Num) -> Sequence[Any]:
        column = a.pick(k, -1)
        root = op.Sqrt(column.pick(k, -2).re)
        column = (column / root).where(op.Not(rows.before(op, k)))
        rest = a - column * column.adjoint().where(columns.after(op, k))
        return [column.where(columns.at(op, k), rest)]

    (made,) = repeat(op, n, step, [a])
    return triangle(made, upper=False)


def _factor(op: Builder, x: Value, upper: bool) -> Num:
    a = numbers(op, x)
    return _cholesky(op, a.adjoint()).adjoint() if upper else _cholesky(op, a)


@table.translate(aten.linalg_cholesky.default, complex="also")
def linalg_cholesky(op: Builder, self: Value, *, upper: bool = False) -> Value:
    """Column by column; Trilu."""
    return _factor(op, self, upper).value()


@table.translate(aten.linalg_cholesky_ex.default, complex="also")
def linalg_cholesky_ex(
    op: Builder, self: Value, *, upper: bool = False, check_errors: bool = False
) -> tuple[Value, Value | None]:
    """Column by column; which leading part is the first that is not positive definite."""
    factor = _factor(op, self, upper)
    info = None
    if used(op, 1):
        info = first_true(op, op.Not(op.Greater(diagonal_of(op, factor).re, 0)))
    return factor.value(), info


def _cholesky_solved(op: Builder, b: Num, factor: Num, upper: bool) -> Num:
    lower = factor.adjoint() if upper else factor
    y = substituted(op, lower, b, upper=False)
    return substituted(op, factor if upper else factor.adjoint(), y, upper=True)


@table.translate(aten.cholesky_solve.default, complex="also")
def cholesky_solve(op: Builder, self: Value, input2: Value, upper: bool = False) -> Value:
    """Two substitutions."""
    b = spread(numbers(op, self), out_dims(op))
    return _cholesky_solved(op, b, numbers(op, input2), upper).value()


@table.translate(aten._cholesky_solve_helper.default, complex="also")
def _cholesky_solve_helper(op: Builder, self: Value, A: Value, upper: bool) -> Value:
    """Two substitutions."""
    return cholesky_solve(op, self, A, upper)


@table.translate(aten.cholesky_inverse.default, complex="also")
def cholesky_inverse(op: Builder, self: Value, upper: bool = False) -> Value:
    """Two substitutions into the identity matrix."""
    factor = numbers(op, self)
    n = factor.dims[-1]
    return _cholesky_solved(op, eye(op, factor, n, n, batch_of(self)), factor, upper).value()


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    b = torch.randn(2, 3, 2)
    lower = torch.randn(2, 3, 3).tril() + 4 * torch.eye(3)
    positive = lower @ lower.mT
    tolerance: dict[str, Any] = {"atol": 1e-4, "rtol": 1e-4, "reason": "LAPACK adds in another order"}
    return [
        OpSample(aten.linalg_solve_triangular.default, (lower, b), {"upper": False}, **tolerance),
        OpSample(aten.triangular_solve.default, (b, lower, False, True), **tolerance),
        OpSample(aten.linalg_cholesky.default, (positive,), **tolerance),
        OpSample(aten.linalg_cholesky_ex.default, (positive,), {"upper": True}, **tolerance),
        OpSample(aten.cholesky_solve.default, (b, lower), **tolerance),
        OpSample(aten._cholesky_solve_helper.default, (b, lower, False), **tolerance),
        OpSample(aten.cholesky_inverse.default, (lower,), **tolerance),
    ]
