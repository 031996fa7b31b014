"""Eigenvalues of Hermitian matrices and singular values, by Jacobi's rotations.

A step rotates disjoint pairs of columns, all of them at once: those whose indices add up to the same,
as in a tournament. It computes in float64, in which the rounding of so many steps does not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.sizes import smax, smin
from atonnx.dispatch import Table
from atonnx.errors import BuildError
from atonnx_aten_core._axes import arange
from atonnx_aten_core._linalg import (
    Index,
    Lines,
    Num,
    diagonal_of,
    eye,
    first,
    nothing,
    numbers,
    out_dims,
    repeat,
    sized,
    spread,
    used,
    zeros,
)
from atonnx_aten_core.linalg_qr import multiplied, reflected

aten = torch.ops.aten
table = Table(__name__)

DOUBLE, INT64 = ir.DataType.DOUBLE, ir.DataType.INT64

# Ten rounds of all pairs are enough for any matrix; the rest is for those that never settle.
_ROUNDS = 30
# Pairs this near to orthogonal are left as they are.
_SMALL = 1e-14
_NOISE = 1e-34


class _Pairs:
    """Who is rotated with whom."""

    def __init__(self, op: Builder, count: Any) -> None:
        self.count = count
        self.line = arange(op, count)
        self.last = op.size(count - 1)
        self.even = count % 2 == 0 if isinstance(count, int) else op.Equal(op.Mod(op.size(count), 2), 0)
        # A round: an odd number of players has one who waits.
        if isinstance(self.even, bool):
            self.turns = op.size(count - 1 if self.even else count)
        else:
            self.turns = op.Where(self.even, self.last, op.size(count))
        self.half = op.size(count // 2)

    def partner(self, op: Builder, k: Index) -> Value:
        """Each column's partner in step ``k``; itself for one that waits."""
        place: Value = op.Mod(op.Sub(k, self.line), self.turns)
        if self.even is False:
            return place
        met = op.Where(op.Equal(place, self.line), self.last, place)
        met = op.Where(op.Equal(self.line, self.last), op.Mod(op.Mul(k, self.half), self.turns), met)
        return met if self.even is True else op.Where(self.even, met, place)


def _rotation(
    op: Builder, pairs: _Pairs, partner: Value, here: Value, there: Value, cross: Num
) -> tuple[Value, Num]:
    """Cosines, and sines with the phase of what is between two columns: ``x * cos - x[partner] * sin``."""
    size = op.Abs(cross.re) if cross.im is None else op.Sqrt(cross.square())
    none = op.Equal(size, 0)
    over = op.Where(none, 1, size)
    gap = op.Sub(there, here)
    slope = op.Div(gap, op.Mul(over, 2))
    order = op.Where(op.Less(pairs.line, partner), op.const(1.0, DOUBLE), -1)
    sign = op.Where(op.Equal(gap, 0), order, op.Sign(gap))
    tangent = op.Div(sign, op.Add(op.Abs(slope), op.Sqrt(op.Add(op.Mul(slope, slope), 1))))
    tangent = op.Where(none, 0, tangent)
    cosine = op.Reciprocal(op.Sqrt(op.Add(op.Mul(tangent, tangent), 1)))
    return cosine, (cross.conj() / over) * op.Mul(tangent, cosine)


def _turn(x: Num, partner: Value, axis: int, cosine: Value, sine: Num) -> Num:
    return x * cosine - x.take(partner, axis) * sine


def _quiet(op: Builder, loud: Value, quiet: Value) -> Value:
    """For how many steps no pair has been rotated that mattered."""
    any_loud = op.ReduceMax(op.cast(loud, ir.DataType.INT32), keepdims=0)
    made: Value = op.Where(op.cast(any_loud, ir.DataType.BOOL), 0, op.Add(quiet, 1))
    return made


def _settled(op: Builder, pairs: _Pairs, x: Num, step: Any, state: Sequence[Any]) -> list[Any]:
    """The state after so many steps that a whole round was quiet."""
    if pairs.count == 0 or 0 in x.dims:
        return list(state)
    return repeat(
        op,
        op.size(pairs.count * _ROUNDS),
        step,
        [*state, op.const(0, INT64)],
        going=lambda op, *state: op.Less(state[-1], pairs.turns),
    )[:-1]


def eigen(op: Builder, a: Num, vectors: bool) -> tuple[Value, Num | None]:
    """Eigenvalues of a Hermitian matrix in ascending order, and the vectors. float64."""
    a = a.cast(DOUBLE)
    *batch, n, _ = a.dims
    pairs = _Pairs(op, n)
    one = eye(op, Num(op, a.re), n, n).re
    on = op.cast(one, ir.DataType.BOOL)
    norm = op.ReduceSum(a.square(), [-2, -1], keepdims=1)
    limit = op.Mul(op.Sqrt(norm), _SMALL)

    def step(op: Builder, k: Index, a: Num, *rest: Any) -> Sequence[Any]:
        *basis, quiet = rest
        partner = pairs.partner(op, k)
        other = a.take(partner, -1)
        here = op.ReduceSum(op.Where(on, a.re, 0), [-2], keepdims=1)
        cross = other.where(on).total(-2).where(op.Not(op.Equal(partner, pairs.line)))
        there = op.Gather(here, partner, axis=-1)
        cosine, sine = _rotation(op, pairs, partner, here, there, cross)
        a = a * cosine - other * sine
        sides = Num(op, cosine).turned().re, sine.adjoint()
        a = _turn(a, partner, -2, *sides)
        basis = [_turn(v, partner, -1, cosine, sine) for v in basis]
        return a, *basis, _quiet(op, op.Greater(cross.size(), limit), quiet)

    start = [eye(op, a, n, n, batch)] if vectors else []
    a, *basis = _settled(op, pairs, a, step, [a, *start])
    values, order = op.TopK(diagonal_of(op, Num(op, a.re)).re, op.shape([n]), largest=0, outputs=2)
    sized(values, (*batch, n)), sized(order, (*batch, n))
    return values, _sorted(op, basis[0], order) if basis else None


def _sorted(op: Builder, x: Num, order: Value) -> Num:
    """Columns in an order that differs between matrices: a product with ones, which takes every size."""
    column = op.Unsqueeze(arange(op, x.dims[-1]), [1])
    chosen = op.cast(op.Equal(column, op.Unsqueeze(order, [-2])), DOUBLE)
    return x.each(lambda part: sized(op.MatMul(part, chosen), x.dims))


def singular(op: Builder, a: Num, vectors: bool, full: bool = False) -> tuple[Value, Num | None, Num | None]:
    """Singular values in descending order, and U and V. float64."""
    *batch, m, n = a.dims
    if isinstance(m, int) and isinstance(n, int) and m < n:
        values, v, u = singular(op, a.adjoint(), vectors, full)
        return values, u, v
    a = a.cast(DOUBLE)
    pairs = _Pairs(op, n)
    count = smin(m, n)
    # Columns that are zero but for rounding never become orthogonal.
    noise = op.Mul(op.ReduceSum(a.square(), [-2, -1], keepdims=1), _NOISE)

    def step(op: Builder, k: Index, w: Num, *rest: Any) -> Sequence[Any]:
        *basis, quiet = rest
        partner = pairs.partner(op, k)
        other = w.take(partner, -1)
        here = op.ReduceSum(w.square(), [-2], keepdims=1)
        there = op.Gather(here, partner, axis=-1)
        cross = (w.conj() * other).total(-2).where(op.Not(op.Equal(partner, pairs.line)))
        limit = op.Add(op.Mul(op.Sqrt(op.Mul(here, there)), _SMALL), noise)
        cosine, sine = _rotation(op, pairs, partner, here, there, cross)
        basis = [_turn(v, partner, -1, cosine, sine) for v in basis]
        loud = op.Greater(cross.size(), limit)
        return w * cosine - other * sine, *basis, _quiet(op, loud, quiet)

    start = [eye(op, a, n, n, batch)] if vectors else []
    w, *basis = _settled(op, pairs, a, step, [a, *start])
    norms = op.Sqrt(op.ReduceSum(w.square(), [-2], keepdims=0))
    values, order = op.TopK(norms, op.shape([n]), outputs=2)
    sized(values, (*batch, n)), sized(order, (*batch, n))
    values = first(Num(op, values), count, -1).re
    if not basis:
        return values, None, None
    # Reflections make all columns orthonormal, also where a singular value is zero.
    packed, factors = reflected(op, _sorted(op, w, order), unroll=0)
    u = multiplied(op, packed, factors, eye(op, a, m, m if full else count, batch), unroll=0)
    on = op.cast(eye(op, Num(op, a.re), m, n).re, ir.DataType.BOOL)
    heads = op.ReduceSum(op.Where(on, packed.re, 0), [-2], keepdims=1)
    v = _sorted(op, basis[0], order) * op.Where(op.Less(heads, 0), op.const(-1.0, DOUBLE), 1)
    return values, u, v if full else first(v, count, -1)


def symmetric(op: Builder, a: Num, lower: bool = True) -> Num:
    """The matrix that one triangle tells, with a real diagonal."""
    n = a.dims[-1]
    rows, columns = Lines(op, n, -2), Lines(op, n, -1)
    known = isinstance(n, int)
    below = op.const(np.tri(n, k=-1, dtype=bool)) if known else op.Greater(rows.index, columns.index)
    above = op.const(np.tri(n, k=-1, dtype=bool).T) if known else op.Less(rows.index, columns.index)
    if not lower:
        below, above = above, below
    other = a.adjoint()
    real = op.Where(above, other.re, a.re)
    if a.im is None or other.im is None:
        return Num(op, real)
    return Num(op, real, op.Where(above, other.im, op.Where(below, a.im, 0)))


# ------------------------------------------------------------------ eigenvalues


def _eigh(op: Builder, x: Value, uplo: str, vectors: bool) -> tuple[Value, Value | None]:
    values, basis = eigen(op, symmetric(op, numbers(op, x), uplo.upper() == "L"), vectors)
    return op.cast(values, x.dtype), None if basis is None else basis.cast(x.dtype).value()


@table.translate(aten.linalg_eigh.default, complex="also")
def linalg_eigh(op: Builder, self: Value, UPLO: str = "L") -> tuple[Value, Value | None]:
    """Jacobi's rotations in a Loop. Each vector has the sign that they end with, not LAPACK's."""
    return _eigh(op, self, UPLO, used(op, 1))


@table.translate(aten._linalg_eigh.default, complex="also")
def _linalg_eigh(
    op: Builder, A: Value, UPLO: str = "L", compute_v: bool = True
) -> tuple[Value, Value | None]:
    """Jacobi's rotations in a Loop. Each vector has the sign that they end with, not LAPACK's."""
    values, vectors = _eigh(op, A, UPLO, compute_v and used(op, 1))
    return values, vectors if compute_v else nothing(op, numbers(op, A))


@table.translate(aten.linalg_eigvalsh.default, complex="also")
def linalg_eigvalsh(op: Builder, self: Value, UPLO: str = "L") -> Value:
    """Jacobi's rotations in a Loop."""
    return _eigh(op, self, UPLO, False)[0]


@table.translate("aten::linalg_matrix_sqrth", complex="also")  # by name: not in torch 2.13
def linalg_matrix_sqrth(op: Builder, self: Value) -> Value:
    """The roots of the eigenvalues."""
    values, basis = eigen(op, symmetric(op, numbers(op, self)), True)
    return _composed(op, basis, op.Sqrt(op.Max(values, 0)), basis).cast(self.dtype).value()


def _composed(op: Builder, left: Num | None, values: Value, right: Num | None) -> Num:
    """``left @ diag(values) @ adjoint(right)``."""
    if left is None or right is None:
        raise BuildError("vectors are asked for")
    return (left * op.Unsqueeze(values, [-2])).matmul(right.adjoint())


# -------------------------------------------------------------- singular values


def _svd(op: Builder, x: Value, full: bool, vectors: bool) -> tuple[Value | None, Value, Value | None]:
    values, u, v = singular(op, numbers(op, x), vectors, full)
    s = op.cast(values, x.dtype)
    if u is None or v is None:
        return None, s, None
    return u.cast(x.dtype).value(), s, v.adjoint().cast(x.dtype).value()


@table.translate(aten.linalg_svd.default, complex="also")
def linalg_svd(
    op: Builder, A: Value, full_matrices: bool = True, *, driver: str | None = None
) -> tuple[Value | None, Value, Value | None]:
    """Jacobi's rotations in a Loop. Each pair of vectors has the sign that they end with, not LAPACK's."""
    return _svd(op, A, full_matrices, used(op, 0) or used(op, 2))


@table.translate(aten._linalg_svd.default, complex="also")
def _linalg_svd(
    op: Builder,
    A: Value,
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
) -> tuple[Value | None, Value, Value | None]:
    """Jacobi's rotations in a Loop. Each pair of vectors has the sign that they end with, not LAPACK's."""
    u, s, v = _svd(op, A, full_matrices, compute_uv and (used(op, 0) or used(op, 2)))
    if compute_uv:
        return u, s, v
    none = nothing(op, numbers(op, A))
    return none, s, none


@table.translate(aten.linalg_svdvals.default, complex="also")
def linalg_svdvals(op: Builder, A: Value, *, driver: str | None = None) -> Value:
    """Jacobi's rotations in a Loop."""
    return _svd(op, A, False, False)[1]


@table.translate("aten::linalg_polar", complex="also")  # by name: not in torch 2.13
def linalg_polar(op: Builder, A: Value) -> tuple[Value, Value]:
    """The unitary parts of the singular value decomposition, and the rest."""
    values, u, v = singular(op, numbers(op, A), True)
    ones = op.expand(op.const(1.0, DOUBLE), values.dims or ())
    factor = _composed(op, u, ones, v).cast(A.dtype).value()
    return factor, _composed(op, v, values, v).cast(A.dtype).value()


@table.translate(aten.linalg_pinv.atol_rtol_tensor, complex="also")
def linalg_pinv(
    op: Builder, self: Value, *, atol: Value | None = None, rtol: Value | None = None, hermitian: bool = False
) -> Value:
    """The reciprocals of the singular values that are not nearly zero."""
    a = numbers(op, self)
    if 0 in a.dims:
        return spread(zeros(op, a, ()), out_dims(op)).value()
    if hermitian:
        values, u = eigen(op, symmetric(op, a), True)
        v, sizes = u, op.Abs(values)
    else:
        values, u, v = singular(op, a, True)
        sizes = values
    *batch, m, n = a.dims
    largest = op.ReduceMax(sizes, [-1], keepdims=1) if hermitian else first(Num(op, sizes), 1, -1).re
    limit = limit_of(op, smax(m, n), largest, self.dtype, atol, rtol)
    kept = op.Greater(sizes, limit)
    inverse = op.Where(kept, op.Reciprocal(op.Where(kept, values, 1)), 0)
    return _composed(op, v, inverse, u).cast(self.dtype).value()


def limit_of(
    op: Builder, side: Any, largest: Value, dtype: ir.DataType, atol: Any = None, rtol: Any = None
) -> Value:
    """Up to where values count as zero. float64, with an axis of one as ``largest`` has."""
    near: Value = op.Mul(op.cast(op.size(side), DOUBLE), float(np.finfo(dtype.numpy()).eps))
    absolute = None if atol is None else op.Unsqueeze(op.cast(atol, DOUBLE), [-1])
    if rtol is not None:
        near = op.Unsqueeze(op.cast(rtol, DOUBLE), [-1])
    elif absolute is not None:
        near = op.Where(op.Greater(absolute, 0), 0, near)
    limit: Value = op.Mul(largest, near)
    return limit if absolute is None else op.Max(absolute, limit)


def samples() -> list[Any]:
    """Test inputs of the rows; vectors by what they compose, for their signs differ."""
    from atonnx.testing import OpSample

    a = torch.randn(2, 4, 3)
    symmetric = a.mT @ a
    tolerance: dict[str, Any] = {"atol": 1e-4, "rtol": 1e-4, "reason": "LAPACK computes in float32"}
    signs: dict[str, Any] = {"options": {"values": False}}
    newer = {"linalg_matrix_sqrth": symmetric, "linalg_polar": a}  # than torch 2.13
    return [
        *(
            OpSample(getattr(aten, n).default, (x,), **tolerance)
            for n, x in newer.items()
            if hasattr(aten, n)
        ),
        OpSample(aten.linalg_eigh.default, (symmetric,), **signs),
        OpSample(aten._linalg_eigh.default, (symmetric, "U", True), **signs),
        OpSample(aten.linalg_eigvalsh.default, (symmetric,), **tolerance),
        OpSample(aten.linalg_svd.default, (a,), **signs),
        OpSample(aten._linalg_svd.default, (a,), **signs),
        OpSample(aten.linalg_svdvals.default, (a,), **tolerance),
        OpSample(aten.linalg_pinv.atol_rtol_tensor, (a,), **tolerance),
    ]
