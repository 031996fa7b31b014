"""Elimination with partial pivoting: LU, determinants, inverses and linear systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.sizes import smin
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_core._axes import INT_MAX, arange, dims_of
from atonnx_aten_core._linalg import (
    Index,
    Lines,
    Num,
    batch_of,
    diagonal_of,
    eye,
    first,
    first_true,
    joined,
    nothing,
    numbers,
    out_dims,
    repeat,
    sized,
    spread,
    triangle,
    used,
)
from atonnx_aten_core.linalg_triangular import substituted

aten = torch.ops.aten
table = Table(__name__)

INT32, INT64 = ir.DataType.INT32, ir.DataType.INT64


def _pivot(op: Builder, rows: Lines, column: Num, k: Index) -> Value:
    """The row of the largest number of a column, not before row ``k``."""
    sizes = column.size()
    seen = rows.before(op, k)
    found: Value = op.ArgMax(op.Where(seen, -1, sizes), axis=-2, keepdims=1)
    return found


More = Callable[..., Sequence[Any]]


def factored(
    op: Builder, a: Num, more: Sequence[Any] = (), also: More = lambda op, k, swap, head: ()
) -> tuple[Num, Value, list[Any]]:
    """L and U in one matrix and the rows that were swapped in each step, counted from 0.

    ``also`` is run in each step over ``more`` state, with whether rows are swapped (-1, else 1) and the
    pivot.
    """
    *batch, m, n = a.dims
    rows, columns = Lines(op, m, -2), Lines(op, n, -1)
    count = smin(m, n)
    turns = arange(op, count)
    pivots = op.expand(op.const(0, INT64), (*batch, count))

    def step(op: Builder, k: Index, a: Num, pivots: Value, *more: Any) -> Sequence[Any]:
        pivot = _pivot(op, rows, a.pick(k, -1), k)
        chosen = op.Equal(rows.index, pivot)
        top = a.where(chosen).total(-2)
        a = top.where(rows.at(op, k), a.pick(k, -2).where(chosen, a))
        head = top.pick(k, -1)
        below = rows.after(op, k)
        factor = (a.pick(k, -1) / head.nonzero()).where(below)
        rest = a - factor * top.where(columns.after(op, k))
        a = factor.where(op.And(below, columns.at(op, k)), rest)
        pivots = op.Where(op.Equal(turns, k), op.Squeeze(pivot, [-1]), pivots)
        if not more:
            return a, pivots
        swap = op.Where(op.Equal(pivot, k), op.const(1.0, a.re.dtype), -1)
        return a, pivots, *also(op, k, swap, head, *more)

    lu, pivots, *rest = repeat(op, count, step, [a, pivots, *more])
    return lu, pivots, rest


def solved(op: Builder, a: Num, b: Num, info: bool = False) -> tuple[Num, Value | None]:
    """The solution of ``a @ x = b``, and where asked the number of the first pivot that is zero, or 0.

    The rows above are eliminated with those below (Gauss-Jordan), which needs one loop.
    """
    n = a.dims[-1]
    rows = Lines(op, n, -2)
    batch = a.dims[:-2]
    state: list[Any] = [joined(a, b)]
    if info:
        state.append(op.expand(op.const(0, INT64), (*batch, 1, 1)))

    def step(op: Builder, k: Index, m: Num, *zero: Value) -> Sequence[Any]:
        pivot = _pivot(op, rows, m.pick(k, -1), k)
        chosen = op.Equal(rows.index, pivot)
        top = m.where(chosen).total(-2)
        head = top.pick(k, -1)
        row = top / head
        m = m.pick(k, -2).where(chosen, m)
        made = [row.where(rows.at(op, k), m - m.pick(k, -1) * row)]
        if not zero:
            return made
        first = op.And(op.Equal(zero[0], 0), head.is_zero())
        return [*made, op.Where(first, k + 1 if isinstance(k, int) else op.Add(k, 1), zero[0])]

    m, *zero = repeat(op, n, step, state)
    x = m.each(lambda part: op.Slice(part, op.shape([n]), [INT_MAX], [-1]))
    x = x.each(lambda part: sized(part, (*batch, n, b.dims[-1])))
    return x, op.cast(op.Squeeze(zero[0], [-2, -1]), INT32) if zero else None


# ---------------------------------------------------------------- determinants


def _det(op: Builder, a: Value) -> Value:
    n = dims_of(a)[-1]
    if a.dtype == ir.DataType.FLOAT and not a.is_complex:
        return op.Det(a)
    x = numbers(op, a)
    one = eye(op, x, 1, 1, batch_of(a))

    def product(op: Builder, k: Index, swap: Value, head: Num, det: Num) -> Sequence[Any]:
        return [det * head * swap]

    if n == 1:
        return x.squeezed(-1).squeezed(-1).value()
    _, _, (det,) = factored(op, x, [one], product)
    return det.squeezed(-1).squeezed(-1).value()


@table.translate(aten.linalg_det.default, complex="also")
def linalg_det(op: Builder, A: Value) -> Value:
    """Det; for float64 and complex numbers, for which ONNX Runtime has none, the product of the pivots."""
    return _det(op, A)


@table.translate(aten.det.default, complex="also")
def det(op: Builder, self: Value) -> Value:
    """Det; for float64 and complex numbers, for which ONNX Runtime has none, the product of the pivots."""
    return _det(op, self)


@table.translate(aten._linalg_det.default, complex="also")
def _linalg_det(op: Builder, A: Value) -> tuple[Value, Value | None, Value | None]:
    """Det; the factors are for the gradient only."""
    return _det(op, A), *_no_factors(op, 1, 2)


def _no_factors(op: Builder, *results: int) -> tuple[None, None]:
    """The factors that torch keeps for the gradient, of the transposed matrix or not as memory has it."""
    if any(used(op, index) for index in results):
        raise UnsupportedOpError.here(
            op, "the factors that are kept for the gradient", hint="call torch.linalg.lu_factor for them"
        )
    return None, None


def _slogdet(op: Builder, a: Value) -> tuple[Value, Value]:
    x = numbers(op, a)
    sign = eye(op, x, 1, 1, batch_of(a))
    log = op.expand(op.const(0.0, x.re.dtype), sign.dims)

    def product(op: Builder, k: Index, swap: Value, head: Num, sign: Num, log: Value) -> Sequence[Any]:
        if head.im is None:
            unit, size = Num(op, op.Sign(head.re)), op.Abs(head.re)
        else:
            size = op.Sqrt(head.square())
            unit = head / op.Where(op.Equal(size, 0), 1, size)
        return [sign * unit * swap, op.Add(log, op.Log(size))]

    _, _, (sign, log) = factored(op, x, [sign, log], product)
    return sign.squeezed(-1).squeezed(-1).value(), op.Squeeze(log, [-2, -1])


@table.translate(aten.linalg_slogdet.default, complex="also")
def linalg_slogdet(op: Builder, A: Value) -> tuple[Value, Value]:
    """Signs and logarithms of the pivots."""
    return _slogdet(op, A)


@table.translate(aten.slogdet.default, complex="also")
def slogdet(op: Builder, self: Value) -> tuple[Value, Value]:
    """Signs and logarithms of the pivots."""
    return _slogdet(op, self)


@table.translate(aten._linalg_slogdet.default, complex="also")
def _linalg_slogdet(op: Builder, A: Value) -> tuple[Value | None, ...]:
    """Signs and logarithms of the pivots."""
    return *_slogdet(op, A), *_no_factors(op, 2, 3)


@table.translate(aten.logdet.default)
def logdet(op: Builder, self: Value) -> Value:
    """The logarithms of the pivots; nan where the determinant is negative."""
    sign, log = _slogdet(op, self)
    return op.Where(op.Equal(sign, -1), float("nan"), log)


# ------------------------------------------------------------ inverses, systems


def _inverse(op: Builder, a: Value, info: bool) -> tuple[Value, Value | None]:
    x = numbers(op, a)
    n = x.dims[-1]
    made, zero = solved(op, x, eye(op, x, n, n, batch_of(a)), info)
    return made.value(), zero


@table.translate(aten.linalg_inv.default, complex="also")
def linalg_inv(op: Builder, A: Value) -> Value:
    """Elimination beside the identity matrix."""
    return _inverse(op, A, False)[0]


@table.translate(aten.inverse.default, complex="also")
def inverse(op: Builder, self: Value) -> Value:
    """Elimination beside the identity matrix."""
    return _inverse(op, self, False)[0]


@table.translate(aten.linalg_inv_ex.default, complex="also")
def linalg_inv_ex(op: Builder, A: Value, *, check_errors: bool = False) -> tuple[Value, Value | None]:
    """Elimination beside the identity matrix; the number of the first pivot that is zero."""
    return _inverse(op, A, used(op, 1))


def _solution(op: Builder, A: Value, B: Value, left: bool, info: bool) -> tuple[Value, Value | None]:
    wide, narrow = dims_of(A), dims_of(B)
    vector = len(narrow) == 1 or (len(wide) - 1 == len(narrow) and narrow == wide[:-1])
    a, b = numbers(op, A), numbers(op, B)
    if vector:
        b = b.each(lambda part: op.Unsqueeze(part, [-1]))
    if not left:
        a, b = a.turned(), b.turned()
    out = out_dims(op)
    batch = out[:-1] if vector else out[:-2]
    own = a.dims[:-2] == tuple(batch)
    matrix, right = (spread(part, (*batch, *part.dims[-2:])) for part in (a, b))
    x, zero = solved(op, matrix, right, info and own)
    if info and not own:  # there is one for each matrix that was given
        zero = _lu_factor(op, a)[2]
    if not left:
        x = x.turned()
    return (x.squeezed(-1) if vector else x).value(), zero


@table.translate(aten.linalg_solve.default, complex="also")
def linalg_solve(op: Builder, A: Value, B: Value, *, left: bool = True) -> Value:
    """Elimination beside the right side."""
    return _solution(op, A, B, left, False)[0]


@table.translate(aten.linalg_solve_ex.default, complex="also")
def linalg_solve_ex(
    op: Builder, A: Value, B: Value, *, left: bool = True, check_errors: bool = False
) -> tuple[Value, Value | None]:
    """Elimination beside the right side; the number of the first pivot that is zero."""
    return _solution(op, A, B, left, used(op, 1))


@table.translate(aten._linalg_solve_ex.default, complex="also")
def _linalg_solve_ex(
    op: Builder, A: Value, B: Value, *, left: bool = True, check_errors: bool = False
) -> tuple[Value | None, ...]:
    """Elimination beside the right side; the factors are for the gradient only."""
    x, zero = _solution(op, A, B, left, used(op, 3))
    return x, *_no_factors(op, 1, 2), zero


@table.translate(aten._linalg_check_errors.default)
def _linalg_check_errors(op: Builder, info: Value, api_name: str, *, is_matrix: bool) -> None:
    """Nothing: where eager raises an error, the model has results that mean nothing."""


# --------------------------------------------------------------------------- LU


def _lu_factor(op: Builder, a: Num) -> tuple[Value, Value, Value]:
    lu, pivots, _ = factored(op, a)
    info = first_true(op, diagonal_of(op, lu).is_zero())
    return lu.value(), op.cast(op.Add(pivots, 1), INT32), info


@table.translate(aten.linalg_lu_factor.default, complex="also")
def linalg_lu_factor(op: Builder, A: Value, *, pivot: bool = True) -> tuple[Value, Value]:
    """Elimination with partial pivoting."""
    return _lu_factor(op, numbers(op, A))[:2]


@table.translate(aten.linalg_lu_factor_ex.default, complex="also")
def linalg_lu_factor_ex(
    op: Builder, A: Value, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Value, Value, Value]:
    """Elimination with partial pivoting; the number of the first pivot that is zero."""
    return _lu_factor(op, numbers(op, A))


@table.translate(aten._lu_with_info.default, complex="also")
def _lu_with_info(
    op: Builder, self: Value, pivot: bool = True, check_errors: bool = True
) -> tuple[Value, Value, Value]:
    """Elimination with partial pivoting; the number of the first pivot that is zero."""
    return _lu_factor(op, numbers(op, self))


def _order(op: Builder, pivots: Value, rows: Any) -> Value:
    """Where each row comes from when rows have been swapped as pivots, counted from 0, tell."""
    *batch, count = pivots.dims or ()
    line = arange(op, rows)

    def step(op: Builder, k: Index, order: Value) -> Sequence[Any]:
        at = op.const([k]) if isinstance(k, int) else k
        chosen = op.Equal(line, op.Gather(pivots, at, axis=-1))
        moved = op.ReduceSum(op.Where(chosen, order, 0), [-1], keepdims=1)
        rest = op.Where(chosen, op.Gather(order, at, axis=-1), order)
        return [op.Where(op.Equal(line, k), moved, rest)]

    (order,) = repeat(op, count, step, [op.expand(line, (*batch, rows))])
    made: Value = order
    return made


def _permutation(op: Builder, pivots: Value, rows: Any, dtype: Any) -> Value:
    """The matrix that takes the swapped rows back to where they were."""
    line = op.Unsqueeze(arange(op, rows), [1])
    on = op.Equal(line, op.Unsqueeze(_order(op, pivots, rows), [-2]))
    made: Value = op.cast(on, dtype)
    return sized(made, (*(pivots.dims or ())[:-1], rows, rows))


def _unpacked(op: Builder, lu: Num) -> tuple[Num, Num]:
    """L and U."""
    m, n = lu.dims[-2:]
    count = smin(m, n)
    left = triangle(first(lu, count, -1), -1, upper=False)
    ones = eye(op, lu, m, count).re
    lower = Num(op, op.Add(left.re, ones), *left.parts[1:])
    return lower, triangle(first(lu, count, -2), upper=True)


@table.translate(aten.linalg_lu.default, complex="also")
def linalg_lu(op: Builder, A: Value, *, pivot: bool = True) -> tuple[Value, Value, Value]:
    """Elimination with partial pivoting; Trilu."""
    x = numbers(op, A)
    lu, pivots, _ = factored(op, x)
    lower, upper = _unpacked(op, lu)
    return _real(op, _permutation(op, pivots, x.dims[-2], x.re.dtype), x), lower.value(), upper.value()


def _real(op: Builder, matrix: Value, like: Num) -> Value:
    """A real matrix as one of the kind that ``like`` is of."""
    if like.im is None:
        return matrix
    return Num(op, matrix, op.expand(op.const(0.0, matrix.dtype), matrix.dims or ())).value()


@table.translate(aten.lu_unpack.default, complex="also")
def lu_unpack(
    op: Builder, LU_data: Value, LU_pivots: Value, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Value, Value, Value]:
    """Trilu; the swaps one after the other. Truth values are unpacked as integers."""
    if LU_data.dtype == ir.DataType.BOOL:
        wide = op.cast(LU_data, INT64)
        made = lu_unpack(op, wide, LU_pivots, unpack_data, unpack_pivots)
        p, low, up = (op.cast(value, LU_data.dtype) for value in made)
        return p, low, up
    x = numbers(op, LU_data)
    none = nothing(op, x)
    permutation = none
    if unpack_pivots and used(op, 0):
        pivots = op.Sub(op.cast(LU_pivots, INT64), 1)
        permutation = _real(op, _permutation(op, pivots, x.dims[-2], x.re.dtype), x)
    if not unpack_data:
        return permutation, none, none
    lower, upper = _unpacked(op, x)
    return permutation, lower.value(), upper.value()


def _lu_solved(op: Builder, lu: Num, pivots: Value, b: Num, left: bool, adjoint: bool) -> Num:
    """The solution of a system whose matrix has been factored."""
    if not left:
        # x @ a = b is adj(a) @ adj(x) = adj(b)
        return _lu_solved(op, lu, pivots, b.adjoint(), True, not adjoint).adjoint()
    permutation = Num(op, _permutation(op, op.Sub(op.cast(pivots, INT64), 1), lu.dims[-1], lu.re.dtype))
    if adjoint:
        turned = lu.adjoint()
        y = substituted(op, turned, b, upper=False)
        return permutation.matmul(substituted(op, turned, y, upper=True, unit=True))
    y = substituted(op, lu, permutation.turned().matmul(b), upper=False, unit=True)
    return substituted(op, lu, y, upper=True)


@table.translate(aten.linalg_lu_solve.default, complex="also")
def linalg_lu_solve(
    op: Builder, LU: Value, pivots: Value, B: Value, *, left: bool = True, adjoint: bool = False
) -> Value:
    """The swaps as a matrix, then two substitutions."""
    lu, b = numbers(op, LU), numbers(op, B)
    return _lu_solved(op, lu, pivots, spread(b, out_dims(op)), left, adjoint).value()


@table.translate(aten.lu_solve.default, complex="also")
def lu_solve(op: Builder, self: Value, LU_data: Value, LU_pivots: Value) -> Value:
    """The swaps as a matrix, then two substitutions."""
    return linalg_lu_solve(op, LU_data, LU_pivots, self)


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    a, b = torch.randn(2, 3, 3), torch.randn(2, 3, 2)
    lu, pivots = torch.linalg.lu_factor(a)
    tolerance: dict[str, Any] = {
        "atol": 1e-4,
        "rtol": 1e-4,
        "reason": "LAPACK adds in another order; the condition of the matrix decides how much that matters",
    }
    one = (
        aten.linalg_det.default,
        aten.det.default,
        aten.linalg_slogdet.default,
        aten.slogdet.default,
        aten.logdet.default,
        aten.linalg_inv.default,
        aten.inverse.default,
        aten.linalg_inv_ex.default,
        aten.linalg_lu_factor.default,
        aten.linalg_lu_factor_ex.default,
        aten._lu_with_info.default,
        aten.linalg_lu.default,
    )
    return [
        *(OpSample(f, (a,), **tolerance) for f in one),
        OpSample(aten._linalg_det.default, (a.mT,), options={"outputs": [0]}, **tolerance),
        OpSample(aten._linalg_slogdet.default, (a,), options={"outputs": [0, 1]}, **tolerance),
        OpSample(aten.linalg_solve.default, (a, b), **tolerance),
        OpSample(aten.linalg_solve_ex.default, (a, b), **tolerance),
        OpSample(aten._linalg_solve_ex.default, (a, b), options={"outputs": [0, 3]}, **tolerance),
        OpSample(aten.lu_unpack.default, (lu, pivots)),
        OpSample(aten.linalg_lu_solve.default, (lu, pivots, b), {"adjoint": True}, **tolerance),
        OpSample(aten.lu_solve.default, (b, lu, pivots), **tolerance),
    ]
