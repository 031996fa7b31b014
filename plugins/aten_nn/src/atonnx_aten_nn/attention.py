"""Scaled dot product attention."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.sizes import of as size_of
from atonnx.dispatch import NodeView, Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_nn._common import HALVES, D, sizes_of, used
from atonnx_aten_nn.dropout import drop

aten = torch.ops.aten
table = Table(__name__)

_INFINITY = float("inf")
_LARGEST_MASK = 1 << 18  # elements of a causal mask that is stored as a constant


def _scaled(op: Builder, query: Value, scale: float | None) -> Value:
    """The query by the scale: it is mostly smaller than the scores."""
    size = sizes_of(query)[-1]
    if scale is None and isinstance(size, int):
        scale = 1 / math.sqrt(size) if size else None
    if scale is not None:
        return query if scale == 1 else op.Mul(query, scale)
    return op.Div(query, op.Sqrt(op.cast(op.size(size), query.dtype)))


def _causal(op: Builder, length: Any, keys: Any, dtype: ir.DataType) -> Value:
    """0 where a key is not later than its query, -inf elsewhere; counted from the first of both."""
    if isinstance(length, int) and isinstance(keys, int) and length * keys <= _LARGEST_MASK:
        mask = np.triu(np.full((length, keys), -np.inf, np.float32), 1)
        return op.const(mask.astype(np.float64) if dtype == D.DOUBLE else mask, dtype)
    return op.Trilu(op.Expand(op.const(-_INFINITY, dtype), op.shape([length, keys])), 1, upper=1)


def grouped(op: Builder, x: Value, heads: Any, groups: Any) -> Value:
    """The head axis in two: heads of the keys, and queries that share one."""
    sizes = list(sizes_of(x))
    return op.reshape(x, (*sizes[:-3], heads, groups, *sizes[-2:]))


def _grouped_mask(op: Builder, mask: Value, heads: Any, groups: Any) -> Value:
    if mask.rank < 3:
        return mask
    size = sizes_of(mask)[-3]
    if isinstance(size, int) and size == 1:
        return op.Unsqueeze(mask, [-3])
    return grouped(op, mask, heads, groups)


def attend(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    dropout: float,
    causal: bool,
    scale: float | None,
    gqa: bool,
) -> tuple[Value, Value]:
    """The result and the scores before the softmax, both in the computing dtype.

    Half types are computed in float32, as in eager. A row whose keys are all masked is zero:
    softmax has nan there, which the last Where takes out.
    """
    wide = D.FLOAT if query.dtype in HALVES else query.dtype
    q, k, v = (op.cast(x, wide) for x in (query, key, value))
    length, keys = sizes_of(q)[-2], sizes_of(k)[-2]
    heads = groups = None
    if gqa and sizes_of(q)[-3] != sizes_of(k)[-3]:
        heads = sizes_of(k)[-3]
        groups = sizes_of(q)[-3] // heads
        q = grouped(op, q, heads, groups)
        k, v = op.Unsqueeze(k, [-3]), op.Unsqueeze(v, [-3])
        if mask is not None:
            mask = _grouped_mask(op, mask, heads, groups)
    axes = list(range(k.rank))
    axes[-2:] = axes[:-3:-1]
    scores = op.MatMul(_scaled(op, q, scale), op.Transpose(k, perm=axes))
    if causal:
        scores = op.Add(scores, _causal(op, length, keys, wide))
    if mask is None:
        weights = op.Softmax(scores, axis=-1)
    elif mask.dtype == D.BOOL:
        scores = op.Where(mask, scores, -_INFINITY)
        weights = op.Where(mask, op.Softmax(scores, axis=-1), 0.0)
    else:
        mask = op.cast(mask, wide)
        scores = op.Add(scores, mask)
        weights = op.Where(op.Equal(mask, -_INFINITY), 0.0, op.Softmax(scores, axis=-1))
    if dropout:
        weights = drop(op, weights, dropout)
    result = op.MatMul(weights, v)
    if heads is not None:
        result = op.reshape(result, op.outs[0].dims)
        scores = op.reshape(scores, (*sizes_of(query)[:-1], keys))
    return result, scores


def _one_node(node: NodeView) -> bool:
    """Whether ONNX's Attention means the same and ONNX Runtime runs it right.

    Its kernel takes float masks of a row of lowest numbers for hidden keys, refuses empty tensors
    and scales that are not positive, and computes float64 in float32 in part.
    """
    query, key, value, mask = (node.arg(name) for name in ("query", "key", "value", "attn_mask"))
    scale = node.arg("scale")
    if node.arg("dropout_p") or (scale is not None and scale <= 0):
        return False
    q, k, v = (_dims(x) for x in (query, key, value))
    if not len(q) == len(k) == len(v) == 4 or 0 in (*q, *k, *v):
        return False
    alike = q[0] == k[0] == v[0] and k[1] == v[1] and k[2] == v[2] and q[3] == k[3]
    if not alike or not (q[1] == k[1] or node.arg("enable_gqa")):
        return False
    boolean = mask is None or mask.dtype in (D.BOOL, torch.bool)
    return boolean and query.dtype not in (D.DOUBLE, torch.float64)


def _dims(x: Any) -> tuple[Any, ...]:
    """Sizes of a node's tensor, or of one in a row's call; what is symbolic as an expression."""
    if isinstance(x, Value):
        return sizes_of(x)
    return tuple(size if isinstance(size, int) else size_of(size) for size in x.shape)


@table.translate(aten.scaled_dot_product_attention.default, since=23, when=_one_node)
def attention_node(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """Attention; a mask gets its last two sizes, which the runtime does not broadcast."""
    if attn_mask is not None:
        sizes = (sizes_of(query)[-2], sizes_of(key)[-2])
        attn_mask = op.expand(attn_mask, (*sizes_of(attn_mask)[:-2], *sizes))
    return op.Attention(query, key, value, attn_mask, is_causal=1 if is_causal else None, scale=scale)


@table.translate(aten.scaled_dot_product_attention.default)
def scaled_dot_product_attention(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """Two MatMul around a Softmax."""
    result = attend(op, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)[0]
    return op.cast(result, op.out.dtype)


def _log_sum(op: Builder, scores: Value, out: Any) -> Value:
    """The logarithm of the sums; cuDNN's form keeps the last axis."""
    sums: Value = op.translate(aten.logsumexp.default, scores, (-1,), out.rank == scores.rank)
    return op.cast(sums, out.dtype)


@table.translate(aten._scaled_dot_product_flash_attention_for_cpu.default)
def flash_attention_for_cpu(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[Value, Value | None]:
    """Two MatMul around a Softmax; ReduceLogSumExp where it is read."""
    y, scores = attend(op, query, key, value, attn_mask, dropout_p, is_causal, scale, False)
    rest = _log_sum(op, scores, op.outs[1]) if used(op, 1) else None
    return op.cast(y, op.outs[0].dtype), rest


@table.translate(aten._scaled_dot_product_attention_math.default)
def attention_math(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Value | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Value, Value | None]:
    """Two MatMul around a Softmax."""
    if dropout_mask is not None:
        raise UnsupportedOpError.here(op, "a dropout mask that is given", hint="export in evaluation mode")
    if used(op, 1):
        raise UnsupportedOpError.here(
            op, "reading the attention weights of this form", hint="compute them with matmul and softmax"
        )
    y = attend(op, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)[0]
    return op.cast(y, op.outs[0].dtype), None


def _fused(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    dropout: float,
    causal: bool,
    scale: float | None,
) -> tuple[Any, ...]:
    """A GPU kernel's results: the first, and the logarithm of the sums; the rest is for the gradient."""
    y, scores = attend(op, query, key, value, mask, dropout, causal, scale, False)
    log_sum = _log_sum(op, scores, op.outs[1]) if used(op, 1) else None
    return (op.cast(y, op.outs[0].dtype), log_sum, *(None,) * (len(op.outs) - 2))


@table.translate(aten._scaled_dot_product_flash_attention.default)
def flash_attention(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Two MatMul around a Softmax."""
    return _fused(op, query, key, value, None, dropout_p, is_causal, scale)


@table.translate(aten._scaled_dot_product_efficient_attention.default)
def efficient_attention(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Value | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Two MatMul around a Softmax."""
    return _fused(op, query, key, value, attn_bias, dropout_p, is_causal, scale)


@table.translate(aten._scaled_dot_product_cudnn_attention.default)
def cudnn_attention(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Value | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Two MatMul around a Softmax."""
    return _fused(op, query, key, value, attn_bias, dropout_p, is_causal, scale)


@table.translate(aten._scaled_dot_product_fused_attention_overrideable.default)
def overrideable_attention(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Two MatMul around a Softmax."""
    return _fused(op, query, key, value, attn_bias, dropout_p, is_causal, scale)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    def three(heads: int = 2) -> tuple[torch.Tensor, ...]:
        return torch.randn(2, 2, 3, 4), torch.randn(2, heads, 5, 4), torch.randn(2, heads, 5, 4)

    def mask() -> torch.Tensor:
        return torch.tensor([[True, False, True, True, False], [False] * 5, [True] * 5])

    main = aten.scaled_dot_product_attention.default
    cpu = aten._scaled_dot_product_flash_attention_for_cpu.default

    def on_gpu(*more: Any) -> tuple[Any, ...]:
        return (*three(), *more)

    first = {"outputs": (0,)}
    gpu: tuple[tuple[Any, tuple[Any, ...]], ...] = (
        (aten._scaled_dot_product_flash_attention.default, ()),
        (aten._scaled_dot_product_efficient_attention.default, (None, True)),
        (aten._scaled_dot_product_cudnn_attention.default, (None, True)),
        (aten._scaled_dot_product_fused_attention_overrideable.default, ()),
    )
    return [
        OpSample(main, three, expect="Softmax:1 MatMul:2", opsets=(11, 22)),
        OpSample(main, three, expect="Attention:1!", opsets=23, options={"dynamic": False}),
        OpSample(main, lambda: (*three(), mask())),
        OpSample(main, lambda: (*three(), torch.randn(3, 5))),
        OpSample(main, lambda: (*three(), None, 0.0, True)),
        OpSample(main, lambda: three(1), {"enable_gqa": True}),
        OpSample(cpu, three),
        OpSample(cpu, three, lambda: {"attn_mask": torch.randn(3, 5)}, options=first),
        OpSample(aten._scaled_dot_product_attention_math.default, three, options=first),
        *(
            OpSample(
                overload,
                functools.partial(on_gpu, *more),
                opsets=(0, 0),
                reason="torch has no CPU kernel: the tests compare it with the CPU's form",
            )
            for overload, more in gpu
        ),
    ]
