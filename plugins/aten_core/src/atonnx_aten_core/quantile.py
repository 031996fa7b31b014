"""Quantiles: TopK of all elements, and one or two of them for each quantile.

TopK in ONNX Runtime has nan behind everything, as torch has, so that the last element tells of any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import to_torch
from atonnx.dispatch import Table
from atonnx_aten_core._axes import axis_of, numel
from atonnx_aten_core._promote import in_dtype

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_INT64 = ir.DataType.INT64


@table.translate(aten.quantile.default, aten.quantile.scalar)
def quantile(
    op: Builder,
    self: Value,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Value:
    """TopK, and Gather at the ranks; nan where there is one."""
    ordered, axis, size = _ordered(op, self, dim)
    ranks = _fixed_ranks(q, size, self.dtype)
    if ranks is None:
        last = op.cast(op.size(size - 1), self.dtype)
        ranks = op.Mul(in_dtype(op, q, self.dtype), last)
    found = _between(op, ordered, ranks, axis, interpolation)
    end = op.Gather(ordered, op.const([-1] if _is_vector(q) else -1, _INT64), axis=axis)
    return _placed(op, op.Where(op.IsNaN(end), end, found), q, axis, keepdim)


@table.translate(aten.nanquantile.default, aten.nanquantile.scalar)
def nanquantile(
    op: Builder,
    self: Value,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Value:
    """TopK, and GatherElements at the ranks among what is not nan."""
    ordered, axis, _ = _ordered(op, self, dim)
    numbers = op.cast(op.Not(op.IsNaN(ordered)), self.dtype)
    last = op.Max(op.Sub(op.ReduceSum(numbers, [axis], keepdims=1), 1.0), 0.0)
    wanted = in_dtype(op, q, self.dtype)
    if _is_vector(q):
        wanted = (
            op.Unsqueeze(wanted, list(range(1, ordered.rank - axis))) if ordered.rank - axis > 1 else wanted
        )
    made = _between(op, ordered, op.Mul(last, wanted), axis, interpolation, everywhere=True)
    made = made if _is_vector(q) else op.Squeeze(made, [axis])
    return _placed(op, made, q, axis, keepdim)


def _is_vector(q: Any) -> bool:
    return isinstance(q, Value) and q.rank > 0


def _ordered(op: Builder, x: Value, dim: int | None) -> tuple[Value, int, Any]:
    """All elements in order along the axis, which it is, and its size."""
    if dim is None or not x.rank:
        x = op.reshape(x, (numel(x.dims or ()),))
        dim = 0
    axis = axis_of(dim, x.rank)
    size = (x.dims or ())[axis]
    return op.TopK(x, [size], axis=axis, largest=0)[0], axis, size


def _fixed_ranks(q: Any, size: Any, dtype: ir.DataType) -> torch.Tensor | None:
    """The ranks where they are known now."""
    if isinstance(q, Value):
        if q.const_value is None or q.producer() is not None:
            return None
        q = torch.from_numpy(q.const_value.numpy().copy())
    if not isinstance(size, int):
        return None
    return torch.as_tensor(q, dtype=to_torch(dtype)) * (size - 1)


def _between(
    op: Builder,
    ordered: Value,
    ranks: Any,
    axis: int,
    interpolation: str,
    everywhere: bool = False,
) -> Value:
    """The elements at the ranks: a rank for all slices, or one ``everywhere``."""

    def at(place: Any) -> Value:
        index = op.cast(place, _INT64) if isinstance(place, Value) else op.const(place.to(torch.int64))
        gather = op.GatherElements if everywhere else op.Gather
        made: Value = gather(ordered, index, axis=axis)
        return made

    fixed = not isinstance(ranks, Value)
    below: Any = ranks.floor() if fixed else op.Floor(ranks)
    above: Any = ranks.ceil() if fixed else op.Ceil(ranks)
    if interpolation == "lower":
        return at(below)
    if interpolation == "higher":
        return at(above)
    if interpolation == "nearest":
        return at(ranks.round() if fixed else op.Round(ranks))
    low, high = at(below), at(above)
    step = op.Sub(high, low)
    if interpolation == "midpoint":
        return op.Sub(high, op.Mul(step, 0.5))
    # As lerp, which goes from the nearer end.
    part: Any = ranks - below if fixed else op.Sub(ranks, below)
    after = 0 if everywhere else ordered.rank - axis - 1

    def spread(value: Any) -> Value:
        return _spread(op, value if isinstance(value, Value) else op.const(value), after)

    if fixed:
        near = part < 0.5
        if bool(near.all()):
            return op.Add(low, op.Mul(step, spread(part)))
        if not bool(near.any()):
            return op.Sub(high, op.Mul(step, spread(1 - part)))
        first = spread(near)
        rest = spread(1 - part)
    else:
        first, rest = spread(op.Less(part, 0.5)), spread(op.Sub(1.0, part))
    up = op.Add(low, op.Mul(step, spread(part)))
    return op.Where(first, up, op.Sub(high, op.Mul(step, rest)))


def _spread(op: Builder, vector: Value, after: int) -> Value:
    """A vector of quantiles, with axes behind it to broadcast over."""
    return op.Unsqueeze(vector, list(range(1, 1 + after))) if vector.rank and after else vector


def _placed(op: Builder, x: Value, q: Any, axis: int, keepdim: bool) -> Value:
    """The quantiles as the first axis; the axis that was reduced kept, where asked for."""
    if _is_vector(q) and axis:
        rest = [at for at in range(x.rank) if at != axis]
        x = op.Transpose(x, perm=[axis, *rest])
    if not keepdim or x.rank == op.out.rank:
        return x
    if x.rank + 1 == op.out.rank:
        return op.Unsqueeze(x, [axis + 1 if _is_vector(q) else axis])
    return op.reshape(x, op.out.dims)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x = torch.tensor([[3.0, 1.0, 4.0, 1.5], [2.0, float("nan"), 2.5, 1.0], [9.0, 7.0, 5.0, 3.0]])
    several = torch.tensor([0.25, 0.9])
    kinds = ("linear", "lower", "higher", "nearest", "midpoint")
    return [
        *(OpSample(f.scalar, (x, 0.3, 1), {"interpolation": k}) for f in _both() for k in kinds),
        *(OpSample(f.default, (x, several, 1, True)) for f in _both()),
        *(OpSample(f.scalar, (x, 0.5)) for f in _both()),
    ]


def _both() -> tuple[Any, Any]:
    return aten.quantile, aten.nanquantile
