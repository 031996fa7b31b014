"""Layouts of attention: fewer reshapes and transposes, the same numbers at all sizes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import atonnx


def rand(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def test_heads_that_were_merged_with_the_batch_are_split_at_once(check, n):
    def write(op, v):
        merged = op.at("a").reshape(v, (5, n * 2, 3))
        return op.at("b").reshape(op.Transpose(merged, perm=[1, 0, 2]), (n, 2, 5, 3))

    check(write, {"v": (rand(5, 4, 6), (5, n, 6))}, {"Reshape": 1, "Transpose": 1})
    check(write, {"v": (rand(5, 0, 6), (5, n, 6))}, {"Reshape": 1, "Transpose": 1})


def test_a_reshape_that_joins_across_a_transpose_stays(check):
    def write(op, v):
        split = op.at("a").reshape(v, (4, 2, 3))
        return op.at("b").reshape(op.Transpose(split, perm=[1, 0, 2]), (8, 3))

    check(write, {"v": rand(4, 6)}, {"Reshape": 2, "Transpose": 1})


@pytest.mark.parametrize("opset", [11, 20])
def test_taking_a_moved_axis_apart_is_a_split(check, n, opset):
    def write(op, v, order=(0, 1, 2)):
        y = op.at("a").reshape(v, (1, 5, n, 3, 2))
        y = op.Squeeze(op.Transpose(y, perm=[3, 1, 2, 0, 4]), [3])
        parts = [op.Gather(y, index, axis=0) for index in order]
        return op.Sub(op.Exp(parts[0]), op.Mul(parts[1], parts[2]))

    inputs = {"v": (rand(5, 4, 6), (5, n, 6))}
    check(write, inputs, {"Split": 1, "Exp": 1, "Mul": 1, "Sub": 1}, opset=opset)
    made = check(lambda op, v: write(op, v, (2, -3, 1)), inputs, opset=opset)
    assert made.counts()["Split"] == 1
    assert "Split" not in check(lambda op, v: write(op, v, (0, 0, 1)), inputs, opset=opset).counts()


def test_taking_apart_in_another_order_stays(check):
    def write(op, v):
        y = op.Transpose(op.at("a").reshape(v, (5, 4, 3, 2)), perm=[2, 1, 0, 3])
        return op.Sub(op.Sub(op.Gather(y, 0, axis=0), op.Gather(y, 1, axis=0)), op.Gather(y, 2, axis=0))

    assert check(write, {"v": rand(5, 4, 6)}).counts()["Gather"] == 3


class Encoder(nn.Module):
    def __init__(self, batch_first):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.encoder(x)


@pytest.mark.parametrize("batch_first", [True, False])
def test_multi_head_attention(batch_first):
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        model, x = Encoder(batch_first).eval(), torch.randn(3, 5, 16)
        axes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
        programs = [atonnx.export(model, (x,), dynamic_shapes=(axes,), optimize=o) for o in (True, False)]
        for shape in ((3, 5, 16), (2, 7, 16)):
            value = torch.randn(shape)
            with torch.no_grad():
                want = model(value)
            for program in programs:
                torch.testing.assert_close(program(value)[0], want, atol=1e-5, rtol=1e-5)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    counts = [len(program.model.graph) for program in programs]
    assert counts[0] * 1.2 < counts[1]
