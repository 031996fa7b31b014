"""Products with a bias."""

from __future__ import annotations

import numpy as np
import torch

from atonnx.build.weights import Derived, Weight


def rand(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def test_product_and_bias_are_a_gemm_that_reads_the_weight_as_stored(check, n):
    weights = torch.randn(5, 6), torch.randn(5)

    def write(op, v):
        w, b = op.weight("w", weights[0]), op.weight("b", weights[1])
        return op.at("add").Add(op.at("mm").MatMul(v, op.Transpose(w, perm=[1, 0])), b)

    made = check(write, {"v": (rand(4, 6), (n, 6))}, {"Gemm": 1}, same=False)
    assert isinstance(made.model.graph.initializers["w"].const_value, Weight)
    assert made.model.graph[0].metadata_props["namespace"] == "add"
    check(write, {"v": (rand(0, 6), (n, 6))}, {"Gemm": 1}, same=False)


def test_a_bias_that_is_no_row_and_integers_stay(check):
    w = torch.randn(6, 5)

    def column(op, v, c):
        return op.Add(op.MatMul(v, op.weight("w", w)), c)

    check(column, {"v": rand(4, 6), "c": rand(4, 1)}, {"MatMul": 1, "Add": 1}, same=False)
    ints = np.arange(4).reshape(2, 2)
    check(lambda op, v: op.Add(op.MatMul(v, v), [1, 2]), {"v": ints}, {"MatMul": 1, "Add": 1})


def test_a_tied_weight_is_not_transposed(check):
    w = torch.randn(7, 6)

    def write(op, i):
        table = op.weight("w", w)
        h = op.Gather(table, i, axis=0)
        return op.MatMul(h, op.Transpose(table, perm=[1, 0]))

    made = check(write, {"i": np.array([3, 1])}, {"Gather": 1, "Gemm": 1}, same=False)
    assert list(made.model.graph.initializers) == ["w"]


def test_reshapes_around_a_gemm_go(check, n, m):
    w, b = torch.randn(5, 6), torch.randn(5)

    def write(op, v):
        flat = op.at("flat").reshape(v, (n * m, 6))
        y = op.at("gemm").Gemm(flat, op.weight("w", w), op.weight("b", b), transB=1)
        return op.at("view").reshape(y, (n, m, 5))

    made = check(write, {"v": (rand(2, 3, 6), (n, m, 6))}, {"MatMul": 1, "Add": 1}, same=False)
    assert isinstance(made.model.graph.initializers["w"].const_value, Derived)
    check(write, {"v": (rand(0, 3, 6), (n, m, 6))}, same=False)
