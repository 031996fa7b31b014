"""Householder reflections: QR and products with its orthogonal factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.build.sizes import smin
from atonnx.dispatch import Table
from atonnx_aten_core._axes import arange
from atonnx_aten_core._linalg import (
    UNROLLED,
    Index,
    Lines,
    Num,
    eye,
    first,
    nothing,
    numbers,
    out_dims,
    repeat,
    spread,
    triangle,
    used,
    zeros,
)

aten = torch.ops.aten
table = Table(__name__)


def reflected(op: Builder, a: Num, *, unroll: int = UNROLLED) -> tuple[Num, Num]:
    """R above the vectors of the reflections, and their factors, as LAPACK's geqrf has them."""
    *batch, m, n = a.dims
    rows, columns = Lines(op, m, -2), Lines(op, n, -1)
    count = smin(m, n)
    turns = arange(op, count)

    def step(op: Builder, k: Index, a: Num, factors: Num) -> Sequence[Any]:
        column = a.pick(k, -1)
        head = column.pick(k, -2)
        below = rows.after(op, k)
        tail = column.where(below)
        square = op.ReduceSum(tail.square(), [-2], keepdims=1)
        done = op.Equal(square, 0)
        if head.im is not None:
            done = op.And(done, op.Equal(head.im, 0))
        norm = op.Sqrt(op.Add(square, head.square()))
        end = op.Where(done, head.re, op.Where(op.Less(head.re, 0), norm, op.Neg(norm)))
        over = op.Where(done, 1, end)
        factor = Num(op, op.Div(op.Sub(end, head.re), over))
        if head.im is not None:
            factor = Num(op, factor.re, op.Div(op.Neg(head.im), over))
        shift = Num(op, op.Sub(head.re, end), *head.parts[1:])
        tail = tail / shift.nonzero()
        vector = tail.where(op.Not(rows.at(op, k)), 1)
        seen = (vector.conj() * a).total(-2)
        rest = a - vector * (factor.conj() * seen)
        kept = tail.where(below, Num(op, end, *zero_of(head)).where(rows.at(op, k), column))
        a = rest.where(columns.after(op, k), kept.where(columns.at(op, k), a))
        return a, factor.squeezed(-1).where(op.Equal(turns, k), factors)

    packed, factors = repeat(op, count, step, [a, zeros(op, a, (*batch, count))], unroll=unroll)
    return packed, factors


def zero_of(x: Num) -> list[Value]:
    """The imaginary part of a real number that is to be one like ``x``."""
    return [] if x.im is None else [x.op.Sub(x.im, x.im)]


def multiplied(
    op: Builder, packed: Num, factors: Num, c: Num, *, adjoint: bool = False, unroll: int = UNROLLED
) -> Num:
    """The product of the orthogonal factor, or its adjoint, with ``c``, which has all batch axes."""
    rows = Lines(op, packed.dims[-2], -2)

    def step(op: Builder, k: Index, c: Num) -> Sequence[Any]:
        tail = packed.on(op).pick(k, -1).where(rows.after(op, k))
        vector = tail.where(op.Not(rows.at(op, k)), 1)
        seen = (vector.conj() * c).total(-2)
        factor = factors.on(op).pick(k, -1).each(lambda part: op.Unsqueeze(part, [-1]))
        return [c - vector * ((factor.conj() if adjoint else factor) * seen)]

    (made,) = repeat(op, factors.dims[-1], step, [c], backward=not adjoint, unroll=unroll)
    product: Num = made
    return product


@table.translate(aten.geqrf.default, complex="also")
def geqrf(op: Builder, self: Value) -> tuple[Value, Value]:
    """Householder reflections, column by column."""
    packed, factors = reflected(op, numbers(op, self))
    return packed.value(), factors.value()


@table.translate(aten.linalg_qr.default, complex="also")
def linalg_qr(op: Builder, A: Value, mode: str = "reduced") -> tuple[Value | None, Value]:
    """Householder reflections, column by column; Trilu."""
    a = numbers(op, A)
    *batch, m, n = a.dims
    packed, factors = reflected(op, a)
    count = m if mode == "complete" else smin(m, n)
    q: Value | None = None
    if mode == "r":
        q = nothing(op, a)
    elif used(op, 0):
        q = multiplied(op, packed, factors, eye(op, a, m, count, batch)).value()
    return q, triangle(first(packed, count, -2), upper=True).value()


@table.translate(aten.linalg_householder_product.default, complex="also")
def linalg_householder_product(op: Builder, input: Value, tau: Value) -> Value:
    """The reflections of the identity matrix."""
    packed, factors = numbers(op, input), numbers(op, tau)
    *batch, m, n = packed.dims
    return multiplied(op, packed, factors, eye(op, packed, m, n, batch)).value()


@table.translate(aten.orgqr.default, complex="also")
def orgqr(op: Builder, self: Value, input2: Value) -> Value:
    """The reflections of the identity matrix."""
    return linalg_householder_product(op, self, input2)


@table.translate(aten.ormqr.default, complex="also")
def ormqr(
    op: Builder, self: Value, input2: Value, input3: Value, left: bool = True, transpose: bool = False
) -> Value:
    """The reflections of the other matrix."""
    packed, factors = numbers(op, self), numbers(op, input2)
    c = spread(numbers(op, input3), out_dims(op))
    if left:
        return multiplied(op, packed, factors, c, adjoint=transpose).value()
    return multiplied(op, packed, factors, c.adjoint(), adjoint=not transpose).adjoint().value()


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    a = torch.randn(2, 4, 3)
    packed, factors = torch.geqrf(a)
    tolerance: dict[str, Any] = {"atol": 1e-4, "rtol": 1e-4, "reason": "LAPACK adds in another order"}
    return [
        OpSample(aten.geqrf.default, (a,), **tolerance),
        *(OpSample(aten.linalg_qr.default, (a, mode), **tolerance) for mode in ("reduced", "complete", "r")),
        OpSample(aten.linalg_householder_product.default, (packed, factors), **tolerance),
        OpSample(aten.orgqr.default, (packed, factors), **tolerance),
        OpSample(aten.ormqr.default, (packed, factors, torch.randn(2, 2, 4), False, True), **tolerance),
    ]
