"""What the decompositions of matrices are written with: numbers, real or complex, and steps that repeat.

Matrices are the last two axes (of complex ones, before the pair), all others a batch. A step works
on whole matrices under masks of rows and columns, so that it is the same for every step and size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx_aten_core._axes import arange, dims_of

aten = torch.ops.aten

__all__ = [
    "UNROLLED",
    "Index",
    "Lines",
    "Num",
    "batch_of",
    "diagonal_of",
    "eye",
    "first",
    "first_true",
    "joined",
    "nothing",
    "numbers",
    "out_dims",
    "repeat",
    "sized",
    "spread",
    "triangle",
    "used",
    "zeros",
]

# So many steps are written one after the other; a Loop is shorter for more, faster to export, and needs
# no known count.
UNROLLED = 2

Index = Any  # the number of a step: an int where steps are written out, else a value of one element


@dataclass(frozen=True, slots=True)
class Num:
    """A tensor of numbers; ``im`` is the imaginary part of complex ones."""

    op: Builder
    re: Value
    im: Value | None = None

    @property
    def parts(self) -> tuple[Value, ...]:
        """The tensors that it consists of."""
        return (self.re,) if self.im is None else (self.re, self.im)

    def with_parts(self, op: Builder, parts: Sequence[Value]) -> Num:
        """Other tensors in the same form."""
        return Num(op, *parts)

    def on(self, op: Builder) -> Num:
        """The same number for a builder of a body."""
        return Num(op, self.re, self.im)

    def each(self, function: Callable[[Value], Value]) -> Num:
        """The function over the real and the imaginary part."""
        return Num(self.op, function(self.re), None if self.im is None else function(self.im))

    def _both(self, other: Any, name: str) -> Num:
        emit = getattr(self.op, name)
        if not isinstance(other, Num):
            return Num(self.op, emit(self.re, other), self.im)
        if self.im is None or other.im is None:
            return Num(self.op, emit(self.re, other.re))
        return Num(self.op, emit(self.re, other.re), emit(self.im, other.im))

    def __add__(self, other: Num) -> Num:
        return self._both(other, "Add")

    def __sub__(self, other: Num) -> Num:
        return self._both(other, "Sub")

    def __mul__(self, other: Num | Value | float) -> Num:
        op = self.op
        if not isinstance(other, Num):
            return self.each(lambda part: op.Mul(part, other))
        if self.im is None or other.im is None:
            wide, narrow = (self, other) if other.im is None else (other, self)
            return Num(op, *(op.Mul(part, narrow.re) for part in wide.parts))
        return Num(
            op,
            op.Sub(op.Mul(self.re, other.re), op.Mul(self.im, other.im)),
            op.Add(op.Mul(self.re, other.im), op.Mul(self.im, other.re)),
        )

    def __truediv__(self, other: Num | Value) -> Num:
        op = self.op
        if not isinstance(other, Num):
            return self.each(lambda part: op.Div(part, other))
        if other.im is None:
            return self / other.re
        # Scaled, so that the square of a large or small divisor is still a number.
        scale = op.Max(op.Abs(other.re), op.Abs(other.im))
        unit = other / scale
        return (self * unit.conj()) / op.Mul(unit.square(), scale)

    def conj(self) -> Num:
        """The conjugate."""
        return Num(self.op, self.re, None if self.im is None else self.op.Neg(self.im))

    def square(self) -> Value:
        """The square of the magnitude."""
        op = self.op
        square: Value = op.Mul(self.re, self.re)
        return square if self.im is None else op.Add(square, op.Mul(self.im, self.im))

    def size(self) -> Value:
        """The magnitude; of complex ones the sum of the parts' magnitudes, as LAPACK chooses pivots by."""
        op = self.op
        size: Value = op.Abs(self.re)
        return size if self.im is None else op.Add(size, op.Abs(self.im))

    def is_zero(self) -> Value:
        """Where it is zero."""
        op = self.op
        zero: Value = op.Equal(self.re, 0)
        return zero if self.im is None else op.And(zero, op.Equal(self.im, 0))

    def nonzero(self) -> Num:
        """Itself, with ones for zeros: a divisor."""
        return self.where(self.op.Not(self.is_zero()), 1)

    def where(self, mask: Value, other: Any = 0) -> Num:
        """Itself under the mask, elsewhere ``other``, a number or a real constant."""
        op = self.op
        if isinstance(other, Num):
            rest = [*other.parts, 0]
            return Num(op, *(op.Where(mask, part, rest[i]) for i, part in enumerate(self.parts)))
        return Num(op, *(op.Where(mask, p, 0 if i else other) for i, p in enumerate(self.parts)))

    def pick(self, index: Index, axis: int) -> Num:
        """One row or column, kept as an axis of one."""
        at = self.op.const([index], ir.DataType.INT64) if isinstance(index, int) else index
        return self.each(lambda part: self.op.Gather(part, at, axis=axis))

    def take(self, index: Value, axis: int) -> Num:
        """The rows or columns that ``index`` lists."""
        return self.each(lambda part: self.op.Gather(part, index, axis=axis))

    def total(self, axis: int) -> Num:
        """The sum along an axis, which is kept as one of one."""
        return self.each(lambda part: self.op.ReduceSum(part, [axis], keepdims=1))

    def squeezed(self, axis: int) -> Num:
        """Without an axis of one."""
        return self.each(lambda part: self.op.Squeeze(part, [axis]))

    def turned(self) -> Num:
        """Transposed."""
        rank = self.re.rank
        perm = [*range(rank - 2), rank - 1, rank - 2]
        return self.each(lambda part: self.op.Transpose(part, perm=perm))

    def adjoint(self) -> Num:
        """Transposed and conjugated."""
        return self.turned().conj()

    def matmul(self, other: Num) -> Num:
        """The product of matrices."""
        op = self.op
        if self.im is None and other.im is None:
            return Num(op, op.MatMul(self.re, other.re))
        if self.im is None or other.im is None:
            return Num(op, *(op.MatMul(a, b) for a in self.parts for b in other.parts))
        return Num(
            op,
            op.Sub(op.MatMul(self.re, other.re), op.MatMul(self.im, other.im)),
            op.Add(op.MatMul(self.re, other.im), op.MatMul(self.im, other.re)),
        )

    def cast(self, dtype: Any) -> Num:
        """In another precision."""
        return self.each(lambda part: self.op.cast(part, dtype))

    def value(self) -> Value:
        """The tensor as the graph has it."""
        if self.im is None:
            return self.re
        op = self.op
        made: Value = op.Concat(*(op.Unsqueeze(part, [-1]) for part in self.parts), axis=-1)
        made.is_complex = True
        return made

    @property
    def dims(self) -> tuple[Any, ...]:
        """The sizes."""
        return self.re.dims or ()


def numbers(op: Builder, x: Value) -> Num:
    """A tensor of the graph as numbers."""
    if not x.is_complex:
        return Num(op, x)
    return Num(op, op.Gather(x, op.size(0), axis=-1), op.Gather(x, op.size(1), axis=-1))


def batch_of(x: Value) -> tuple[Any, ...]:
    """The sizes before those of the matrix."""
    return dims_of(x)[:-2]


def zeros(op: Builder, like: Num, dims: Sequence[Any]) -> Num:
    """Zeros of some size, real or complex as ``like`` is."""
    zero = op.expand(op.const(0.0, like.re.dtype), dims)
    return Num(op, *(zero for _ in like.parts))


def nothing(op: Builder, like: Num) -> Value:
    """What torch returns for a matrix that was not asked for: no elements."""
    return spread(zeros(op, like, ()), (0,)).value()


def out_dims(op: Builder, index: int = 0) -> tuple[Any, ...]:
    """The sizes that the node promises, as torch sees them."""
    out = op.outs[index]
    dims: tuple[Any, ...] = out.dims
    return dims[:-1] if out.is_complex else dims


def eye(op: Builder, like: Num, rows: Any, columns: Any, batch: Sequence[Any] = ()) -> Num:
    """The identity matrix, real or complex as ``like`` is."""
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= 1 << 12:
        one = op.const(np.eye(rows, columns, dtype=like.re.dtype.numpy()))
    else:
        one = op.cast(op.Equal(op.Unsqueeze(arange(op, rows), [1]), arange(op, columns)), like.re.dtype)
        one.dims = (rows, columns)
    made = (
        Num(op, one)
        if like.im is None
        else Num(op, one, op.expand(op.const(0.0, one.dtype), (rows, columns)))
    )
    return spread(made, (*batch, rows, columns))


def spread(x: Num, dims: Sequence[Any]) -> Num:
    """Expanded to some sizes."""
    return x.each(lambda part: x.op.expand(part, dims))


def sized(value: Value, dims: Sequence[Any]) -> Value:
    """A value of which only we know the sizes."""
    value.dims = tuple(dims)
    return value


def triangle(x: Num, diagonal: int = 0, *, upper: bool) -> Num:
    """Trilu."""
    op = x.op
    offset = diagonal or None
    return x.each(lambda part: sized(op.Trilu(part, offset, upper=int(upper)), part.dims or ()))


def first(x: Num, count: Any, axis: int) -> Num:
    """The first rows or columns."""
    dims = list(x.dims)
    if dims[axis] == count:
        return x
    dims[axis] = count
    op = x.op
    return x.each(lambda part: sized(op.Slice(part, [0], op.shape([count]), [axis]), dims))


def diagonal_of(op: Builder, a: Num) -> Num:
    """The diagonal."""
    return a.each(lambda part: op.translate(aten.diagonal.default, part, 0, -2, -1))


def first_true(op: Builder, truths: Value) -> Value:
    """The place, counted from 1, of the first of some truth values; 0 without one. int32."""
    dims = truths.dims or ()
    one = op.expand(op.const(False), (*dims[:-1], 1))
    places = op.cast(op.Concat(one, truths, axis=-1), ir.DataType.INT32)
    return op.cast(op.ArgMax(places, axis=-1, keepdims=0), ir.DataType.INT32)


def joined(first: Num, second: Num) -> Num:
    """Two matrices side by side."""
    op = first.op
    return Num(op, *(op.Concat(a, b, axis=-1) for a, b in zip(first.parts, second.parts, strict=True)))


class Lines:
    """The indices of rows or columns, compared with the number of a step.

    ``axis`` is -2 for rows, -1 for columns.
    """

    def __init__(self, op: Builder, count: Any, axis: int) -> None:
        self.count = count
        index = arange(op, count)
        self.index: Value = index if axis == -1 else op.Unsqueeze(index, [1])
        if axis == -2:
            self.index.dims = (count, 1)
        self._axis = axis

    def _compare(self, op: Builder, name: str, step: Index) -> Value:
        if isinstance(step, int) and isinstance(self.count, int):
            at = np.arange(self.count) if self._axis == -1 else np.arange(self.count)[:, None]
            return op.const({"Equal": at == step, "Greater": at > step, "Less": at < step}[name])
        made: Value = getattr(op, name)(self.index, step)
        return made

    def at(self, op: Builder, step: Index) -> Value:
        """True in the row or column of the step."""
        return self._compare(op, "Equal", step)

    def after(self, op: Builder, step: Index) -> Value:
        """True in those after it."""
        return self._compare(op, "Greater", step)

    def before(self, op: Builder, step: Index) -> Value:
        """True in those before it."""
        return self._compare(op, "Less", step)


State = Sequence[Any]


def _parts(state: State) -> list[Value]:
    return [part for item in state for part in (item.parts if isinstance(item, Num) else (item,))]


def _rebuilt(op: Builder, form: State, parts: Sequence[Value]) -> list[Any]:
    """Values in the form of a state."""
    made: list[Any] = []
    rest = list(parts)
    for item in form:
        if isinstance(item, Num):
            count = len(item.parts)
            made.append(item.with_parts(op, rest[:count]))
            del rest[:count]
        else:
            made.append(rest.pop(0))
    return made


def repeat(
    op: Builder,
    count: Any,
    step: Callable[..., Sequence[Any]],
    state: State,
    *,
    backward: bool = False,
    going: Callable[..., Value] | None = None,
    unroll: int = UNROLLED,
) -> list[Any]:
    """``state = step(op, k, *state)`` for k = 0, 1, … or, ``backward``, from the last one down to 0.

    ``count`` may be a value. Up to ``unroll`` steps are written out; more, or as many as a dynamic size,
    become a Loop. ``going(op, *state)`` tells after each step whether to go on. The state's sizes stay as
    they are.
    """
    if isinstance(count, int) and (count <= unroll and going is None or not count):
        for k in range(count)[::-1] if backward else range(count):
            state = step(op, k, *state)
        return list(state)
    begin = _parts(state)
    with op.body("steps") as body:
        k = body.Unsqueeze(body.input("step", ir.DataType.INT64, ()), [0])
        if backward:
            last = op.Sub(op.size(count), 1) if isinstance(count, SymSize) else op.const(count - 1)
            k = body.Sub(last, k)
        body.input("going", ir.DataType.BOOL, ())
        inputs = [body.input("state", part.dtype, part.dims) for part in begin]
        after = list(step(body, k, *_rebuilt(body, state, inputs)))
        body.output(body.const(True) if going is None else going(body, *after), *_parts(after))
    turns = count if isinstance(count, Value) else op.size(count)
    made = op.Loop(turns, None, *begin, body=body.graph, outputs=len(begin))
    for value, part in zip(made, begin, strict=True):
        value.dims = part.dims
    return _rebuilt(op, state, made)


def used(op: Builder, index: int) -> bool:
    """Whether somebody reads the node's result of that index."""
    node = op.origin.fx
    if node is None:
        return True
    return any(user.op == "output" or index in user.args and user.users for user in node.users)
