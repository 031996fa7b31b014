"""Attention whose scores and mask are functions of the model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree

from atonnx.build import Builder, Value
from atonnx.build.decompose import Refusal
from atonnx.build.dtypes import to_torch
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_nn._common import HALVES, D, sizes_of, used
from atonnx_aten_nn._torch import flex_scores
from atonnx_aten_nn.attention import grouped

aten = torch.ops.aten
table = Table(__name__)

Graph = torch.fx.GraphModule


@table.translate("higher_order::flex_attention")
def flex_attention(
    op: Builder,
    query: Value,
    key: Value,
    value: Value,
    score_mod: Graph,
    block_mask: Sequence[Any],
    scale: float,
    kernel_options: Mapping[str, Any],
    score_mod_other_buffers: Sequence[Any] = (),
    mask_mod_other_buffers: Sequence[Any] = (),
) -> tuple[Value | None, ...]:
    """Two MatMul around both functions and a Softmax; the mask's lists of blocks are for GPU kernels."""
    wide = D.FLOAT if query.dtype in HALVES else query.dtype
    heads, shared = sizes_of(key)[-3], sizes_of(query)[-3] != sizes_of(key)[-3]
    q, k, v = op.cast(query, wide), op.cast(key, wide), op.cast(value, query.dtype)
    if shared:
        q = grouped(op, q, heads, sizes_of(q)[-3] // heads)
        k, v = op.Unsqueeze(k, [-3]), op.Unsqueeze(v, [-3])
    axes = list(range(k.rank))
    axes[-2:] = axes[:-3:-1]
    scores = op.Mul(op.MatMul(q, op.Transpose(k, perm=axes)), scale)
    places = (*sizes_of(query)[:-1], sizes_of(key)[-2])
    if shared:
        scores = op.reshape(scores, places)
    buffers = (tuple(score_mod_other_buffers), tuple(mask_mod_other_buffers))
    scores = _changed(op, scores, score_mod, block_mask[-1], buffers)
    weights = op.cast(op.translate(aten._safe_softmax.default, scores, -1), query.dtype)
    if shared:
        weights = grouped(op, weights, heads, places[1] // heads)
    result = op.reshape(op.MatMul(weights, v), op.outs[0].dims)
    total = op.translate(aten.logsumexp.default, scores, [-1]) if used(op, 1) else None
    best = op.ReduceMax(scores, [-1], keepdims=0) if used(op, 2) else None
    # These are of the base that GPU kernels compute with.
    rest = (None if x is None else op.Div(x, math.log(2)) for x in (total, best))
    return (result, *rest)


def _changed(op: Builder, scores: Value, score_mod: Graph, mask_mod: Graph, buffers: Any) -> Value:
    """Scores by both functions, which are traced for one place and applied to all."""
    node = op.origin.fx
    if node is None:
        raise UnsupportedOpError.here(op, "flex_attention outside of a captured program")
    arguments = [*node.args, *[()] * (9 - len(node.args))]
    taken = (*arguments[:2], *arguments[7:])
    query, key, of_scores, of_mask = pytree.tree_map_only(torch.fx.Node, lambda n: n.meta["val"], taken)
    given = query.new_empty((*query.shape[:-1], key.shape[-2]), dtype=to_torch(scores.dtype))
    tensors, spec = pytree.tree_flatten((given, tuple(of_scores), tuple(of_mask)))

    def call(*values: Any) -> Any:
        now, scores_buffers, mask_buffers = pytree.tree_unflatten(list(values), spec)
        return flex_scores(now, score_mod, mask_mod, scores_buffers, mask_buffers)

    traced = op.session.translator.decomposer.traced(node, call, tensors)
    if isinstance(traced, Refusal):
        raise UnsupportedOpError.here(
            op, f"this score_mod or mask_mod ({traced.reason})", hint="use scaled_dot_product_attention"
        )
    changed: Value = op.inline(traced, pytree.tree_leaves((scores, *buffers)))[0]
    return changed
