"""Quantization at opsets that lack an axis, blocks or a dtype."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowered import agree, numbers, ops_of, opsets

_KINDS = [np.uint8, np.int8, np.uint16, np.int16]
_OPSETS = (11, 13, 19, 20, 21, 22)


@st.composite
def _case(draw):
    """A form, with scales and zero points of its shape for a (3, 5) tensor."""
    form = draw(st.sampled_from(["tensor", "axis", "block"]))
    shape = {"tensor": (), "axis": (5,), "block": (3, 3)}[form]
    kind = draw(st.sampled_from(_KINDS))
    seed = draw(st.integers(0, 99))
    scale = np.abs(numbers(shape, seed=seed)) + np.float32(0.05)
    zero = np.full(shape, draw(st.sampled_from([0, 3, 100])), kind)
    attributes = {"axis": 1} | ({"block_size": 2} if form == "block" else {})
    wide = scale if form != "block" else np.repeat(scale, 2, axis=1)[:, :5]
    return kind, seed, scale, zero, wide, zero if form != "block" else zero[0, 0], attributes


@given(opset=opsets(*_OPSETS), case=_case(), given_zero=st.booleans())
def test_quantize(opset, case, given_zero):
    kind, seed, scale, zero, wide, point, attributes = case
    x = numbers((3, 5), seed=seed) * 20
    info = np.iinfo(kind)
    shift = np.float32(0) if not given_zero else np.asarray(point).astype(np.float32)
    expected = np.clip(np.rint(x / wide) + shift, info.min, info.max).astype(kind)
    dtype = {np.uint8: 2, np.int8: 3, np.uint16: 4, np.int16: 5}[kind]
    inputs = {"x": x, "s": np.asarray(scale)} | ({"z": zero} if given_zero else {})
    agree(
        lambda op, x, s, z=None: op.QuantizeLinear(
            x, s, z, output_dtype=None if given_zero else dtype, **attributes
        ),
        inputs,
        opset,
        expected=[expected],
    )


@given(opset=opsets(*_OPSETS), case=_case(), given_zero=st.booleans())
def test_dequantize(opset, case, given_zero):
    kind, seed, scale, zero, wide, point, attributes = case
    x = numbers((3, 5), kind, seed=seed)
    shift = np.asarray(point).astype(np.float32) if given_zero else np.float32(0)
    expected = (x.astype(np.float32) - shift) * wide
    inputs = {"x": x, "s": np.asarray(scale)} | ({"z": zero} if given_zero else {})
    agree(
        lambda op, x, s, z=None: op.DequantizeLinear(x, s, z, **attributes),
        inputs,
        opset,
        expected=[expected],
    )


@pytest.mark.parametrize("written", [11, 13, 19, 21])
@pytest.mark.parametrize("opset", [11, 13, 19, 21, 23])
def test_old_quantization_at_newer_opsets(written, opset):
    x = numbers((2, 3)) * 20

    def call(op, x):
        scale, zero = op.const(np.array(0.5, np.float32)), op.const(np.array(7, np.uint8))
        older = op.at(written)
        return older.DequantizeLinear(older.QuantizeLinear(x, scale, zero), scale, zero)

    expected = (np.clip(np.rint(x / 0.5) + 7, 0, 255) - 7) * np.float32(0.5)
    model = agree(call, {"x": x}, opset, expected=[expected.astype(np.float32)])
    assert ops_of(model) == ["QuantizeLinear", "DequantizeLinear"]
