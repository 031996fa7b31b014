"""Comparisons of complex tensors, truth values of them, and choices among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._complex import as_pair, imaginary, paired, part_type, real
from atonnx_aten_core._promote import BOOL
from atonnx_aten_core.complex_math import added

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
prims = torch.ops.prims
table = Table(__name__)


def _both(op: Builder, x: Value) -> Value:
    """Whether a truth value holds of both parts."""
    return op.And(*_parts(op, x))


def _either(op: Builder, x: Value) -> Value:
    """Whether a truth value holds of a part."""
    return op.Or(*_parts(op, x))


def _parts(op: Builder, x: Value) -> tuple[Value, Value]:
    return real(op, paired(x)), imaginary(op, x)


def _equal(op: Builder, a: Any, b: Any) -> Value:
    dtype = part_type(a, b)
    return _both(op, op.Equal(as_pair(op, a, dtype), as_pair(op, b, dtype)))


@table.translate(aten.eq.Tensor, aten.eq.Scalar, prims.eq.default, complex="only")
def eq(op: Builder, self: Any, other: Any) -> Value:
    """Equal of both parts."""
    return _equal(op, self, other)


@table.translate(
    aten.ne.Tensor,
    aten.ne.Scalar,
    aten.not_equal.Tensor,
    aten.not_equal.Scalar,
    prims.ne.default,
    complex="only",
)
def ne(op: Builder, self: Any, other: Any) -> Value:
    """Not of Equal of both parts."""
    return op.Not(_equal(op, self, other))


@table.translate(aten.isclose.default, complex="only")
def isclose(
    op: Builder,
    self: Value,
    other: Value,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Value:
    """Equal, or a finite difference of a magnitude within atol + rtol * |other|; nans are equal if asked."""
    dtype = part_type(self, other)
    a, b = as_pair(op, self, dtype), as_pair(op, other, dtype)
    close = _both(op, op.Equal(a, b))
    if equal_nan:
        nans = [_either(op, op.IsNaN(x)) for x in (a, b)]
        close = op.Or(close, op.And(*nans))
    if rtol == 0 and atol == 0:
        return close
    allowed = op.Add(op.Mul(op.translate(aten.abs.default, b), rtol), atol)
    error = op.translate(aten.abs.default, added(op, a, b, 1, -1))
    near = op.And(op.LessOrEqual(error, allowed), op.Less(error, float("inf")))
    return op.Or(close, near)


@table.translate(aten.isnan.default, complex="only")
def isnan(op: Builder, self: Value) -> Value:
    """IsNaN of a part."""
    return _either(op, op.IsNaN(self))


@table.translate(aten.isinf.default, complex="only")
def isinf(op: Builder, self: Value) -> Value:
    """IsInf of a part."""
    return _either(op, op.IsInf(self))


@table.translate(aten.isfinite.default, prims.isfinite.default, complex="only")
def isfinite(op: Builder, self: Value) -> Value:
    """Less than infinity by magnitude, both parts."""
    return _both(op, op.Less(op.Abs(self), float("inf")))


@table.translate(aten.isreal.default, complex="only")
def isreal(op: Builder, self: Value) -> Value:
    """Whether the imaginary part is zero."""
    return op.Equal(imaginary(op, self), 0.0)


# ------------------------------------------------------------- truth values


def truths(op: Builder, x: Any) -> Value:
    """Whether elements are not zero, in one part at least; nan is not."""
    if not isinstance(x, Value):
        return op.const(bool(x), BOOL)
    made = op.cast(x, BOOL)
    return _either(op, made) if x.is_complex else made


@table.translate(aten.logical_not.default, complex="only")
def logical_not(op: Builder, self: Value) -> Value:
    """Not of the truth values."""
    return op.Not(truths(op, self))


@table.translate(aten.logical_and.default, complex="only")
def logical_and(op: Builder, self: Value, other: Value) -> Value:
    """And of the truth values."""
    return op.And(truths(op, self), truths(op, other))


@table.translate(aten.logical_or.default, complex="only")
def logical_or(op: Builder, self: Value, other: Value) -> Value:
    """Or of the truth values."""
    return op.Or(truths(op, self), truths(op, other))


@table.translate(aten.logical_xor.default, complex="only")
def logical_xor(op: Builder, self: Value, other: Value) -> Value:
    """Xor of the truth values."""
    return op.Xor(truths(op, self), truths(op, other))


@table.translate(aten.any.default, complex="only")
def any(op: Builder, self: Value) -> Value:
    """As for the truth values."""
    return op.translate(aten.any.default, truths(op, self))


@table.translate(aten.any.dim, complex="only")
def any_dim(op: Builder, self: Value, dim: int, keepdim: bool = False) -> Value:
    """As for the truth values."""
    return op.translate(aten.any.dim, truths(op, self), dim, keepdim)


@table.translate(aten.any.dims, complex="only")
def any_dims(op: Builder, self: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """As for the truth values."""
    return op.translate(aten.any.dims, truths(op, self), dim, keepdim)


@table.translate(aten.all.default, complex="only")
def all(op: Builder, self: Value) -> Value:
    """As for the truth values."""
    return op.translate(aten.all.default, truths(op, self))


@table.translate(aten.all.dim, complex="only")
def all_dim(op: Builder, self: Value, dim: int, keepdim: bool = False) -> Value:
    """As for the truth values."""
    return op.translate(aten.all.dim, truths(op, self), dim, keepdim)


@table.translate(aten.all.dims, complex="only")
def all_dims(op: Builder, self: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """As for the truth values."""
    return op.translate(aten.all.dims, truths(op, self), dim, keepdim)


@table.translate(aten.count_nonzero.default, complex="only")
def count_nonzero(op: Builder, self: Value, dim: int | None = None) -> Value:
    """As for the truth values."""
    return op.translate(aten.count_nonzero.default, truths(op, self), dim)


@table.translate(aten.count_nonzero.dim_IntList, complex="only")
def count_nonzero_dims(op: Builder, self: Value, dim: Any) -> Value:
    """As for the truth values."""
    return op.translate(aten.count_nonzero.dim_IntList, truths(op, self), dim)


@table.translate(aten.nonzero.default, complex="only")
def nonzero(op: Builder, self: Value) -> Value:
    """As for the truth values."""
    return op.translate(aten.nonzero.default, truths(op, self))


@table.translate(aten.nonzero_static.default, complex="only")
def nonzero_static(op: Builder, self: Value, *, size: Any, fill_value: int = -1) -> Value:
    """As for the truth values."""
    return op.translate(aten.nonzero_static.default, truths(op, self), size=size, fill_value=fill_value)


# ------------------------------------------------------------------ choices


def chosen(op: Builder, condition: Value, a: Any, b: Any) -> Value:
    """Where over pairs."""
    dtype = part_type(a, b)
    mask = op.Unsqueeze(op.cast(condition, BOOL), [-1])
    return paired(op.Where(mask, as_pair(op, a, dtype), as_pair(op, b, dtype)))


@table.translate(
    aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.where.Scalar, complex="only"
)
def where(op: Builder, condition: Value, self: Any, other: Any) -> Value:
    """Where over pairs."""
    return chosen(op, condition, self, other)


@table.translate(prims.where.default, complex="only")
def where_prim(op: Builder, pred: Value, a: Any, b: Any) -> Value:
    """Where over pairs."""
    return chosen(op, pred, a, b)


@table.translate(aten.masked_fill.Scalar, aten.masked_fill.Tensor, complex="only")
def masked_fill(op: Builder, self: Value, mask: Value, value: Any) -> Value:
    """Where over pairs."""
    filler = as_pair(op, value, self.dtype)
    return op.Where(op.Unsqueeze(op.cast(mask, BOOL), [-1]), filler, self)


@table.translate(aten.nan_to_num.default, complex="only")
def nan_to_num(
    op: Builder,
    self: Value,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Value:
    """As for each part."""
    return op.translate(aten.nan_to_num.default, _plain(op, self), nan, posinf, neginf)


def _plain(op: Builder, z: Value) -> Value:
    """The pairs as a real tensor."""
    return op.Identity(z)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    def z() -> torch.Tensor:
        return torch.tensor([[1 + 2j, 0j, -1j], [complex("nan"), 3.0, complex("infj")]])

    def w() -> torch.Tensor:
        return torch.tensor([1 + 2j, 0j, 1j])

    def condition() -> torch.Tensor:
        return torch.tensor([[True, False, True], [False, True, False]])

    unary: list[Any] = [
        *(aten.isnan, aten.isinf, aten.isfinite, aten.isreal, aten.logical_not, aten.any, aten.all),
        *(aten.count_nonzero, aten.nonzero, aten.nan_to_num),
    ]
    return [
        *(OpSample(getattr(aten, n).Tensor, lambda: (z(), w())) for n in ("eq", "ne", "not_equal")),
        *(OpSample(getattr(aten, n).Scalar, lambda: (z(), -1j)) for n in ("eq", "ne", "not_equal")),
        *(OpSample(f.default, lambda: (z(),)) for f in unary),
        *(
            OpSample(f.default, lambda: (z(), w()))
            for f in (aten.logical_and, aten.logical_or, aten.logical_xor, aten.isclose)
        ),
        OpSample(aten.isclose.default, lambda: (z(), z() + 0.25, 0.1, 0.1, True)),
        *(OpSample(f, lambda: (z(), -1, True)) for f in (aten.any.dim, aten.all.dim)),
        *(OpSample(f, lambda: (z(), [0])) for f in (aten.any.dims, aten.all.dims)),
        OpSample(aten.count_nonzero.dim_IntList, lambda: (z(), [0])),
        OpSample(aten.nonzero_static.default, lambda: (z(),), {"size": 7}),
        OpSample(aten.where.self, lambda: (condition(), z(), w().real)),
        OpSample(aten.where.ScalarSelf, lambda: (condition(), 2, z())),
        OpSample(aten.where.ScalarOther, lambda: (condition(), w(), 1j)),
        OpSample(aten.where.Scalar, lambda: (condition(), 2, 1j)),
        OpSample(aten.masked_fill.Scalar, lambda: (z(), condition(), 2j)),
        OpSample(aten.masked_fill.Tensor, lambda: (z(), condition(), torch.tensor(1j))),
    ]
