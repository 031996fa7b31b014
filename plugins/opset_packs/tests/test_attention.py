"""Attention and rotary embedding, spelled out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowered import agree, build, numbers, opsets, run

_NEWEST = 25


def _expected(call, inputs):
    """By onnx's reference implementation, which has all of Attention-25."""
    return run(build(call, inputs, _NEWEST), inputs, reference=True)


@given(
    opset=opsets(11, 13, 17, 22, 23),
    heads=st.sampled_from([(2, 2), (4, 2), (3, 1)]),
    flat=st.booleans(),
    mask=st.sampled_from(["none", "bool", "float"]),
    causal=st.booleans(),
    scale=st.sampled_from([None, 0.3]),
    softcap=st.sampled_from([0.0, 2.0]),
    dynamic=st.booleans(),
    seed=st.integers(0, 99),
)
def test_attention(opset, heads, flat, mask, causal, scale, softcap, dynamic, seed):
    count, shared = heads
    q, k, v = (numbers((2, n, s, 4), seed=seed + n) for n, s in ((count, 3), (shared, 5), (shared, 5)))
    inputs = {"q": q, "k": k, "v": v}
    if flat:
        inputs = {n: x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for n, x in inputs.items()}
    if mask == "bool":
        inputs["mask"] = numbers((2, 1, 3, 5), np.bool_, seed=seed)
    elif mask == "float":
        inputs["mask"] = numbers((3, 5), seed=seed)
    number = {"q_num_heads": count, "kv_num_heads": shared} if flat else {}

    def call(op, q, k, v, mask=None):
        return op.Attention(q, k, v, mask, is_causal=int(causal), scale=scale, softcap=softcap, **number)

    agree(
        call,
        inputs,
        opset if opset < 23 else 22,
        expected=_expected(call, inputs),
        rtol=1e-4,
        atol=1e-5,
        dynamic=list(inputs) if dynamic and flat else [],
    )


@given(
    opset=opsets(11, 17, 22, 23, 24),
    causal=st.sampled_from([0, 1]),
    left=st.integers(-1, 3),
    right=st.integers(-1, 3),
    cache=st.sampled_from(["none", "past", "nonpad"]),
)
def test_windows_and_caches(opset, causal, left, right, cache):
    inputs = {
        "q": numbers((2, 2, 4, 3)),
        "k": numbers((2, 2, 6, 3), seed=1),
        "v": numbers((2, 2, 6, 3), seed=2),
    }
    if cache == "past":
        inputs |= {"pk": numbers((2, 2, 2, 3), seed=3), "pv": numbers((2, 2, 2, 3), seed=4)}
    if cache == "nonpad":
        inputs["n"] = np.array([6, 3])

    def call(op, q, k, v, pk=None, pv=None, n=None):
        window = {"left_window_size": left, "right_window_size": right}
        return op.Attention(q, k, v, None, pk, pv, n, is_causal=causal, **window)

    if opset >= 23 and (left, right) == (-1, -1):
        opset = 22
    agree(call, inputs, opset, expected=_expected(call, inputs), rtol=1e-4, atol=1e-5, reference=opset >= 23)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("opset", [11, 22])
def test_all_four_outputs(mode, opset):
    inputs = {"q": numbers((1, 2, 3, 4)), "k": numbers((1, 2, 5, 4)), "v": numbers((1, 2, 5, 4))}
    inputs |= {"pk": numbers((1, 2, 2, 4)), "pv": numbers((1, 2, 2, 4))}

    # onnx's reference implementation has the cap in mode 0 as well, which the standard has not.
    cap = 1.5 if mode else 0.0

    def call(op, q, k, v, pk, pv):
        return op.Attention(
            q, k, v, None, pk, pv, is_causal=1, softcap=cap, qk_matmul_output_mode=mode, outputs=4
        )

    agree(call, inputs, opset, expected=_expected(call, inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [11, 22])
def test_a_query_that_may_look_at_nothing_gets_zeros(opset):
    inputs = {"q": numbers((1, 1, 2, 4)), "k": numbers((1, 1, 3, 4)), "v": numbers((1, 1, 3, 4))}
    mask = np.array([[True, False, True], [False, False, False]])
    model = build(lambda op, q, k, v: op.Attention(q, k, v, op.const(mask)), inputs, opset)
    (found,) = run(model, inputs)
    assert not found[0, 0, 1].any()
    assert np.isfinite(found).all()


@given(
    opset=opsets(11, 20, 23),
    flat=st.booleans(),
    interleaved=st.sampled_from([0, 1]),
    part=st.sampled_from([0, 4]),
    positions=st.booleans(),
)
def test_rotary_embedding(opset, flat, interleaved, part, positions):
    half = (part or 8) // 2
    inputs = {"x": numbers((2, 3, 16) if flat else (2, 2, 3, 8))}
    shape = (9, half) if positions else (2, 3, half)
    inputs |= {"cos": numbers(shape, seed=1), "sin": numbers(shape, seed=2)}
    if positions:
        inputs["at"] = np.array([[0, 1, 2], [5, 8, 3]])

    def call(op, x, cos, sin, at=None):
        heads = 2 if flat else None
        return op.RotaryEmbedding(
            x, cos, sin, at, interleaved=interleaved, rotary_embedding_dim=part, num_heads=heads
        )

    agree(call, inputs, opset, newest=23, rtol=1e-4, atol=1e-5)
