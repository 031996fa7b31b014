"""``torch.onnx.ops``: operators of ONNX that a model calls by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch
import torch.onnx.ops

from atonnx.build import Builder, Value
from atonnx.dispatch import Table

if TYPE_CHECKING:
    from atonnx.testing import OpSample

onnx, onnx_symbolic = torch.ops.onnx, torch.ops.onnx_symbolic
table = Table(__name__)


@table.translate(onnx.RotaryEmbedding.opset23)
def rotary_embedding(
    op: Builder,
    x: Value,
    cos_cache: Value,
    sin_cache: Value,
    position_ids: Value | None = None,
    *,
    interleaved: bool = False,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Value:
    """RotaryEmbedding."""
    return op.at(23).RotaryEmbedding(
        x,
        cos_cache,
        sin_cache,
        position_ids,
        interleaved=int(interleaved),
        num_heads=num_heads or None,
        rotary_embedding_dim=rotary_embedding_dim or None,
    )


@table.translate(onnx.Attention.opset23)
def attention(
    op: Builder,
    Q: Value,
    K: Value,
    V: Value,
    attn_mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    *,
    is_causal: bool = False,
    kv_num_heads: int = 0,
    q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Value, ...]:
    """Attention with its four results."""
    return op.at(23).Attention(
        Q,
        K,
        V,
        attn_mask,
        past_key,
        past_value,
        outputs=4,
        is_causal=int(is_causal),
        kv_num_heads=kv_num_heads or None,
        q_num_heads=q_num_heads or None,
        qk_matmul_output_mode=qk_matmul_output_mode,
        scale=scale,
        softcap=softcap,
        softmax_precision=softmax_precision,
    )


@table.translate(onnx_symbolic._symbolic.default)
def _symbolic(
    op: Builder,
    inputs: Sequence[Value | None],
    op_type: str,
    onnx_dtype: int,
    *,
    shape: Sequence[Any],
    attr_keys: Sequence[str],
    attr_types: Sequence[str],
    attr_pos: Sequence[Sequence[int]],
    attr_ints: Sequence[int],
    attr_floats: Sequence[float],
    attr_strs: Sequence[str],
    metadata_props_keys: Sequence[str],
    metadata_props_values: Sequence[str],
    domain: str = "",
    version: int | None = None,
) -> Value:
    """The operator of that name."""
    attrs = _attributes(attr_keys, attr_types, attr_pos, attr_ints, attr_floats, attr_strs)
    props = dict(zip(metadata_props_keys, metadata_props_values, strict=True))
    return _named(op, domain, op_type, inputs, attrs, [onnx_dtype], version, props)[0]


@table.translate(onnx_symbolic._symbolic_multi_out.default)
def _symbolic_multi_out(
    op: Builder,
    inputs: Sequence[Value | None],
    op_type: str,
    onnx_dtypes: Sequence[int],
    *,
    shapes: Sequence[Sequence[Any]],
    attr_keys: Sequence[str],
    attr_types: Sequence[str],
    attr_pos: Sequence[Sequence[int]],
    attr_ints: Sequence[int],
    attr_floats: Sequence[float],
    attr_strs: Sequence[str],
    metadata_props_keys: Sequence[str],
    metadata_props_values: Sequence[str],
    domain: str = "",
    version: int | None = None,
) -> tuple[Value, ...]:
    """The operator of that name."""
    attrs = _attributes(attr_keys, attr_types, attr_pos, attr_ints, attr_floats, attr_strs)
    props = dict(zip(metadata_props_keys, metadata_props_values, strict=True))
    return _named(op, domain, op_type, inputs, attrs, onnx_dtypes, version, props)


def _attributes(
    keys: Sequence[str],
    types: Sequence[str],
    places: Sequence[Sequence[int]],
    ints: Sequence[int],
    floats: Sequence[float],
    strings: Sequence[str],
) -> dict[str, Any]:
    """The attributes, which come as slices of one list for each type."""
    values: Mapping[str, Sequence[Any]] = {"i": ints, "f": floats, "s": strings}
    return {
        key: list(values[kind[0]][start:end]) if kind.endswith("s") and len(kind) > 1 else values[kind][start]
        for key, kind, (start, end) in zip(keys, types, places, strict=True)
    }


def _named(
    op: Builder,
    domain: str,
    op_type: str,
    inputs: Sequence[Value | None],
    attrs: Mapping[str, Any],
    dtypes: Sequence[int],
    version: int | None,
    props: Mapping[str, str],
) -> tuple[Value, ...]:
    own = domain in ("", "ai.onnx")
    results: tuple[Value, ...] = op.call(
        domain,
        op_type,
        *inputs,
        outputs=len(dtypes),
        version=version or (op.opset if own else None),
        dtypes=() if own else [ir.DataType(dtype) for dtype in dtypes],
        **attrs,
    )
    node = results[0].producer()
    if node is not None:
        node.metadata_props.update(props)
    return results


def samples() -> list[OpSample]:
    """Test inputs of the rows. In eager torch a symbolic operator gives zeros, as these operators do."""
    from atonnx.testing import OpSample

    def heads() -> tuple[torch.Tensor, ...]:
        return torch.randn(1, 4, 3, 8), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)

    def angles() -> tuple[torch.Tensor, ...]:
        angle = torch.rand(1, 3, 4)
        return torch.randn(1, 4, 3, 8), angle.cos(), angle.sin()

    names = [argument.name for argument in onnx_symbolic._symbolic.default._schema.arguments]
    none: dict[str, Any] = {name: () for name in names if name.startswith(("attr_", "metadata_"))}
    zeros, static = torch.zeros(2, 3), {"dynamic": False}

    # Below opset 23 the number of heads and their width are to be known.
    return [
        OpSample(onnx.Attention.opset23, heads, opsets=23),
        OpSample(onnx.Attention.opset23, heads, opsets=(11, 22), options={"dynamic": False}),
        OpSample(onnx.RotaryEmbedding.opset23, angles, opsets=23),
        OpSample(onnx.RotaryEmbedding.opset23, angles, opsets=(11, 22), options={"dynamic": False}),
        OpSample(
            onnx_symbolic._symbolic.default,
            ([zeros], "Relu", 1),
            {**none, "shape": [2, 3]},
            options=static,
            expect="Relu:1!",
        ),
        OpSample(
            onnx_symbolic._symbolic_multi_out.default,
            ([zeros], "Identity", [1]),
            {**none, "shapes": [[2, 3]]},
            options=static,
            expect="Identity:1!",
        ),
    ]
