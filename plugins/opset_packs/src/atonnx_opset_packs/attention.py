"""Attention and rotary embedding."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import LAST, fixed_size, rank_of, refuse, sizes

pack = OpsetPack(__name__)

pack.same("Attention", 23, 24, 25)

_INT64 = ir.DataType.INT64


def _heads(op: Builder, x: Value, count: int | None) -> Value:
    """(batch, length, heads * size) as (batch, heads, length, size)."""
    if x.rank == 4:
        return x
    width = fixed_size(x, 2)
    if count is None:
        raise refuse(op, "Attention of three axes without the number of heads", 23)
    if width is not None:
        parted = op.Reshape(x, [0, 0, count, width // count])
    else:
        size = op.Div(sizes(op, x, 2), count)
        shape = op.Concat(sizes(op, x, 0, 2), op.const([count], _INT64), size, axis=0)
        parted = op.Reshape(x, shape)
    return op.Transpose(parted, perm=[0, 2, 1, 3])


def _repeated(op: Builder, x: Value, q: Value, heads: int | None, kv_heads: int | None) -> Value:
    """The heads of keys or values, each for as many heads of queries as share it."""
    heads = heads if heads is not None else fixed_size(q, 1)
    kv_heads = kv_heads if kv_heads is not None else fixed_size(x, 1)
    if heads is None or kv_heads is None:
        raise refuse(op, "Attention with an unknown number of heads", 23)
    if heads == kv_heads:
        return x
    tail = sizes(op, x, 2)
    each = op.const([kv_heads, heads // kv_heads], _INT64)
    wide = op.Expand(op.Unsqueeze(x, [2]), op.Concat(sizes(op, x, 0, 1), each, tail, axis=0))
    whole = op.const([heads], _INT64)
    return op.Reshape(wide, op.Concat(sizes(op, x, 0, 1), whole, tail, axis=0), allowzero=1)


def _length(op: Builder, x: Value) -> Value:
    """The size of axis 2, as a scalar."""
    return op.Squeeze(sizes(op, x, 2, 3), [0])


@pack.below(25, "Attention")
@pack.below(24, "Attention")
@pack.below(23, "Attention")
def attention(
    op: Builder,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    nonpad: Value | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> Any:
    """Products of queries and keys, their bias, Softmax, and the product with the values.

    A query that may look at nothing gets zeros.
    """
    dtype, flat = q.dtype, rank_of(op, q, "Attention", 23) == 3
    q, k, v = _heads(op, q, q_num_heads), _heads(op, k, kv_num_heads), _heads(op, v, kv_num_heads)
    if past_key is not None:
        k, v = op.Concat(past_key, k, axis=2), op.Concat(past_value, v, axis=2)
    present = (k, v)
    keys, values = (_repeated(op, x, q, q_num_heads, kv_num_heads) for x in (k, v))
    if scale is None and fixed_size(q, 3) is not None:
        scale = 1 / math.sqrt(fixed_size(q, 3) or 1)
    if scale is None:
        factor = op.Sqrt(op.Sqrt(op.Reciprocal(op.cast(op.Squeeze(sizes(op, q, 3), [0]), dtype))))
        left, right = op.Mul(q, factor), op.Mul(keys, factor)
    elif scale < 0:
        left, right = op.Mul(q, scale), keys
    else:
        left, right = op.Mul(q, math.sqrt(scale)), op.Mul(keys, math.sqrt(scale))
    raw = scores = op.MatMul(left, op.Transpose(right, perm=[0, 1, 3, 2]))
    if softcap > 0:
        scores = op.Mul(op.Tanh(op.Div(scores, softcap)), softcap)
    capped = scores
    offset: Value | None = None
    if past_key is not None:
        offset = _length(op, past_key)
    elif nonpad is not None:
        offset = op.Unsqueeze(op.Sub(nonpad, _length(op, q)), [1, 2, 3])
    allowed = _allowed(op, q, k, is_causal, left_window_size, right_window_size, offset)
    if nonpad is not None:
        there = op.Less(op.Range(0, _length(op, k), 1), op.Unsqueeze(nonpad, [1, 2, 3]))
        allowed = there if allowed is None else op.And(allowed, there)
    if mask is not None:
        mask = _whole_mask(op, mask, k)
        if mask.dtype == ir.DataType.BOOL:
            allowed = mask if allowed is None else op.And(allowed, mask)
        else:
            scores = op.Add(scores, mask)
    if allowed is not None:
        scores = op.Where(allowed, scores, op.const(-math.inf, dtype))
    biased = scores
    precision = dtype if softmax_precision is None else ir.DataType(softmax_precision)
    weights = op.Softmax(op.cast(scores, precision), axis=-1)
    empty_rows = mask is not None or nonpad is not None or left_window_size >= 0 or right_window_size >= 0
    if empty_rows:
        best = op.ReduceMax(op.cast(scores, precision), [-1])
        weights = op.Where(op.Equal(best, op.const(-math.inf, precision)), op.const(0, precision), weights)
    weights = op.cast(weights, dtype)
    result = op.MatMul(op.cast(weights, values.dtype), values)
    if flat:
        turned = op.Transpose(result, perm=[0, 2, 1, 3])
        width = None if fixed_size(turned, 2) is None else fixed_size(turned, 3)
        if width is not None:
            result = op.Reshape(turned, [0, 0, (fixed_size(turned, 2) or 0) * width])
        else:
            whole = op.ReduceProd(op.Shape(turned, start=2), [0])
            result = op.Reshape(turned, op.Concat(op.Shape(turned, end=2), whole, axis=0))
    if op.asked_outputs == 1:
        return result
    probes = (raw, capped, biased, weights)
    return (result, *present, probes[qk_matmul_output_mode])[: op.asked_outputs]


def _allowed(
    op: Builder, q: Value, k: Value, causal: int, left: int, right: int, offset: Value | None
) -> Value | None:
    """Which key each query may look at, by its position; None where all."""
    if not causal and left < 0 and right < 0:
        return None
    rows = op.Unsqueeze(op.Range(0, _length(op, q), 1), [1])
    if offset is not None:
        rows = op.Add(rows, offset)
    columns = op.Range(0, _length(op, k), 1)
    bounds = []
    if causal:
        bounds.append(op.LessOrEqual(columns, rows))
    if left >= 0:
        bounds.append(op.LessOrEqual(op.Sub(rows, left), columns))
    if right >= 0:
        bounds.append(op.LessOrEqual(columns, op.Add(rows, right)))
    allowed = bounds[0]
    for bound in bounds[1:]:
        allowed = op.And(allowed, bound)
    return allowed


def _whole_mask(op: Builder, mask: Value, k: Value) -> Value:
    """The mask with what it lacks of the keys shut off."""
    keys, own = fixed_size(k, 2), fixed_size(mask, -1)
    if own is not None and own in (keys, 1):
        return mask
    if (
        mask.dims is not None
        and k.dims is not None
        and mask.dims[-1] is not None
        and mask.dims[-1] == k.dims[2]
    ):
        return mask
    rank = rank_of(op, mask, "Attention", 23)
    missing = op.Max(op.Sub(sizes(op, k, 2, 3), sizes(op, mask, rank - 1)), 0)
    fill = op.const(False) if mask.dtype == ir.DataType.BOOL else op.const(-math.inf, mask.dtype)
    return op.Pad(mask, op.Concat(op.const([0], _INT64), missing, axis=0), fill, [-1])


@pack.below(23, "RotaryEmbedding")
def rotary_embedding(
    op: Builder,
    x: Value,
    cos: Value,
    sin: Value,
    positions: Value | None = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Value:
    """Pairs turned by their angle: real and imaginary part of a complex product."""
    shape = sizes(op, x)
    flat = rank_of(op, x, "RotaryEmbedding", 23) == 3
    if flat:
        width = fixed_size(x, 2)
        if width is None:
            raise refuse(op, "RotaryEmbedding of an unknown width", 23)
        x = op.Reshape(x, [0, 0, num_heads, width // num_heads])
    else:
        x = op.Transpose(x, perm=[0, 2, 1, 3])
    size = fixed_size(x, 3)
    if size is None:
        raise refuse(op, "RotaryEmbedding of an unknown width", 23)
    turned = rotary_embedding_dim or size
    rest = op.Slice(x, [turned], [LAST], [3]) if turned < size else None
    x = op.Slice(x, [0], [turned], [3]) if turned < size else x
    if positions is not None:
        cos, sin = op.Gather(cos, positions, axis=0), op.Gather(sin, positions, axis=0)
    cos, sin = op.Unsqueeze(cos, [2]), op.Unsqueeze(sin, [2])
    half = turned // 2
    if interleaved:
        one, other = (op.Slice(x, [start], [LAST], [3], [2]) for start in (0, 1))
    else:
        one, other = op.Split(x, [half, half], axis=3, outputs=2)
    real = op.Sub(op.Mul(cos, one), op.Mul(sin, other))
    imaginary = op.Add(op.Mul(sin, one), op.Mul(cos, other))
    if interleaved:
        pairs = op.Concat(op.Unsqueeze(real, [4]), op.Unsqueeze(imaginary, [4]), axis=4)
        result = op.Reshape(pairs, op.Shape(x))
    else:
        result = op.Concat(real, imaginary, axis=3)
    if rest is not None:
        result = op.Concat(result, rest, axis=3)
    return op.Reshape(result, shape) if flat else op.Transpose(result, perm=[0, 2, 1, 3])
