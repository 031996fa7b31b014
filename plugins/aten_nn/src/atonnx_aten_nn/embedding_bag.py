"""Bags of embeddings, and rows scaled down to a greatest norm."""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_nn._common import D, filled, sizes_of, used

aten = torch.ops.aten
table = Table(__name__)

_SUM, _MEAN, _MAX = 0, 1, 2
_INFINITY = float("inf")


def _length(op: Builder, indices: Value, offsets: Value, count: Any) -> int | None:
    """How long each bag is, where all are alike: as torch makes offsets of indices in rows."""
    total = sizes_of(indices)[0]
    if offsets.const_value is not None:
        begins = offsets.const_value.numpy().tolist()
        step = begins[1] if len(begins) > 1 else total
        if not isinstance(step, int) or begins != [i * step for i in range(len(begins))]:
            return None
    else:
        made = offsets.producer()
        if made is None or made.op_type != "Range":
            return None
        start, _, delta = (value.const_value for value in made.inputs)  # type: ignore[union-attr]
        if start is None or delta is None or int(start.numpy()) != 0:
            return None
        step = int(delta.numpy())
    if isinstance(count, int) and isinstance(total, int):
        return step if step > 0 and count * step == total else None
    facts = op.session.facts
    whole = step > 0 and facts.provably_equal(_expression(count * step), _expression(total))
    return step if whole else None


def _expression(size: Any) -> Any:
    return getattr(size, "expr", size)


def _bags(
    op: Builder,
    weight: Value,
    indices: Value,
    offsets: Value,
    mode: int,
    per_sample_weights: Value | None,
    include_last_offset: bool,
    padding: int | None,
) -> tuple[Value, None, None, None]:
    if any(used(op, index) for index in (1, 2, 3)):
        raise UnsupportedOpError.here(
            op, "what embedding_bag keeps for its gradient", hint="use its first result only"
        )
    count = op.outs[0].dims[0]
    rows = op.Gather(weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = op.Mul(rows, op.Unsqueeze(per_sample_weights, [1]))
    counted: Value | None = None
    if padding is not None:
        counted = op.Unsqueeze(op.Not(op.Equal(indices, padding)), [1])
        rows = op.Where(counted, rows, -_INFINITY if mode == _MAX else 0.0)
    length = None if include_last_offset else _length(op, indices, offsets, count)
    if length is not None:
        result = _of_rows(op, rows, counted, mode, (count, length))
    else:
        result = _of_offsets(op, rows, counted, indices, offsets, mode, count)
    return result, None, None, None


def _of_rows(op: Builder, rows: Value, counted: Value | None, mode: int, bags: tuple[Any, Any]) -> Value:
    """Bags of one length: a Reduce operator over an axis of their own."""
    parted = op.reshape(rows, (*bags, sizes_of(rows)[1]))
    if counted is None:
        names = {_SUM: op.ReduceSum, _MEAN: op.ReduceMean, _MAX: op.ReduceMax}
        return names[mode](parted, [1], keepdims=0)
    number = None
    if mode != _SUM:
        number = op.ReduceSum(op.reshape(op.cast(counted, rows.dtype), (*bags, 1)), [1], keepdims=0)
    if mode == _MAX:
        return op.Where(op.Greater(number, 0.0), op.ReduceMax(parted, [1], keepdims=0), 0.0)
    total = op.ReduceSum(parted, [1], keepdims=0)
    return total if number is None else op.Div(total, op.Max(number, op.const(1, rows.dtype)))


def _of_offsets(
    op: Builder, rows: Value, counted: Value | None, indices: Value, offsets: Value, mode: int, count: Any
) -> Value:
    """Each row is scattered to its bag: the number of bags that begin before it or with it, less one."""
    total = sizes_of(indices)[0]
    begins = op.cast(offsets, D.INT64)
    marks = op.ScatterElements(
        filled(op, 0, (total + 1,), D.INT64),
        begins,
        op.expand(op.const([1], D.INT64), sizes_of(offsets)),
        axis=0,
        reduction="add",
    )
    bag = op.Sub(op.Slice(op.CumSum(marks, 0), [0], op.shape([total])), 1)
    place = op.Unsqueeze(bag, [1])
    zeros = filled(op, 0.0, (count, sizes_of(rows)[1]), rows.dtype)
    if mode == _MAX:
        lowest = filled(op, -_INFINITY, (count, sizes_of(rows)[1]), rows.dtype)
        greatest = op.ScatterND(lowest, place, rows, reduction="max")
        return op.Where(op.Equal(greatest, -_INFINITY), 0.0, greatest)
    summed = op.ScatterND(zeros, place, rows, reduction="add")
    if mode == _SUM:
        return summed
    if counted is None:
        ones = op.expand(op.const([[1.0]], rows.dtype), (total, 1))
    else:
        ones = op.cast(counted, rows.dtype)
    number = op.ScatterND(filled(op, 0.0, (count, 1), rows.dtype), place, ones, reduction="add")
    return op.Div(summed, op.Max(number, op.const(1, rows.dtype)))


@table.translate(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag_core(
    op: Builder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Value, None, None, None]:
    """Gather, and a Reduce over bags of one length or a ScatterND into others."""
    padding = padding_idx if padding_idx >= 0 else None
    return _bags(op, weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding)


@table.translate(aten.embedding_bag.default)
def embedding_bag(
    op: Builder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
) -> tuple[Value, None, None, None]:
    """Gather, and a Reduce over bags of one length or a ScatterND into others."""
    return _bags(op, weight, indices, offsets, mode, per_sample_weights, include_last_offset, None)


@table.translate(aten.embedding_bag.padding_idx)
def embedding_bag_padded(
    op: Builder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Value | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> tuple[Value, None, None, None]:
    """Gather, and a Reduce over bags of one length or a ScatterND into others."""
    padding = padding_idx
    if padding is not None and padding < 0:
        padding = sizes_of(weight)[0] + padding
    return _bags(op, weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding)


@table.translate(aten.embedding_renorm.default)
def embedding_renorm(op: Builder, self: Value, indices: Value, max_norm: float, norm_type: float) -> Value:
    """Where of the rows that are read and too long, scaled down."""
    length = op.translate(aten.linalg_vector_norm.default, self, norm_type, [1], True)
    flat = indices if indices.rank == 1 else op.Reshape(indices, [-1])
    # 0 and 1 rather than bools, which runtimes do not scatter.
    nothing = filled(op, 0, sizes_of(self)[:1], D.INT64)
    once = op.expand(op.const([1], D.INT64), sizes_of(flat))
    read = op.cast(op.ScatterElements(nothing, flat, once, axis=0), D.BOOL)
    far = op.And(op.Unsqueeze(read, [1]), op.Greater(length, max_norm))
    return op.Where(far, op.Mul(self, op.Div(max_norm, op.Add(length, 1e-7))), self)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample, Weight

    def bag(*more: Any) -> Any:
        return lambda: (
            Weight(torch.randn(7, 3)),
            torch.tensor([1, 4, 2, 6, 0, 1]),
            torch.tensor([0, 2, 2, 5]),
            False,
            *more,
        )

    first: dict[str, Any] = {"options": {"outputs": (0,)}}
    return [
        OpSample(aten.embedding_bag.default, bag(), **first),
        OpSample(aten.embedding_bag.padding_idx, bag(1, False, None, False, 2), **first),
        OpSample(aten._embedding_bag.default, bag(1), **first),
        OpSample(aten._embedding_bag_forward_only.default, bag(2), **first),
        OpSample(aten.embedding_renorm.default, lambda: (torch.randn(5, 3), torch.tensor([1, 3]), 1.0, 2.0)),
    ]
