"""Two transposes with indifferent operators between them."""

from __future__ import annotations

import numpy as np
import torch


def rand(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def test_a_chain_between_transposes_needs_one(check, n):
    w, b, g = torch.randn(6, 8), torch.randn(8), torch.ones(8)

    def write(op, v):
        y = op.MatMul(op.Transpose(v, perm=[1, 0, 2]), op.weight("w", w))
        y = op.Gelu(op.Add(op.weight("b", b), y), approximate="none")
        y = op.LayerNormalization(y, op.weight("g", g), axis=-1)
        y = op.at("heads").reshape(y, (5, n, 2, 4))
        return op.Neg(op.Transpose(y, perm=[1, 2, 0, 3]))

    between = ["MatMul", "Add", "Gelu", "LayerNormalization", "Reshape"]
    after = dict.fromkeys([*between, "Transpose", "Neg"], 1)
    made = check(write, {"v": (rand(4, 5, 6), (n, 5, 6))}, after, same=False)
    check(write, {"v": (rand(0, 5, 6), (n, 5, 6))}, after, same=False)
    # What has another layout than the tensor of the user's model does not have its name.
    moved = [node.op_type for node in made.model.graph if node.outputs[0].name.endswith("_moved")]
    assert moved == between


def test_all_ways_from_a_transpose_must_end_in_one(check, n):
    def write(op, v, last):
        a, b = op.Split(op.Relu(op.Transpose(v, perm=[1, 0, 2])), [2, 4], axis=-1, outputs=2)
        a = op.Transpose(op.at("r").reshape(a, (5, n, 2, 1)), perm=[3, 1, 0, 2])
        return op.Neg(a), last(op, b)

    inputs = {"v": (rand(4, 5, 6), (n, 5, 6))}
    both = check(lambda op, v: write(op, v, lambda op, b: op.Exp(op.Transpose(b, perm=[1, 0, 2]))), inputs)
    assert both.counts()["Transpose"] == 1
    one = check(lambda op, v: write(op, v, lambda op, b: op.Exp(b)), inputs)
    assert one.counts()["Transpose"] == 2


def test_a_chain_from_an_earlier_transpose(check, m):
    w = torch.randn(6, 6)

    def write(op, v):
        y = op.at("r").reshape(op.Transpose(v, perm=[2, 0, 1, 3]), (5, m, 6))
        return op.Transpose(op.Add(op.MatMul(y, op.weight("w", w)), 1.0), perm=[1, 0, 2])

    made = check(
        write, {"v": (rand(4, 2, 5, 3), (m, 2, 5, 3))}, {"Transpose": 1, "Reshape": 1, "MatMul": 1, "Add": 1}
    )
    (out,) = made.model.graph.outputs
    assert out.producer().op_type == "Add"


def test_what_minds_the_order_is_not_passed(check):
    def last_axis_moves(op, v):
        return op.Transpose(op.Softmax(op.Transpose(v, perm=[0, 2, 1]), axis=-1), perm=[0, 2, 1])

    check(last_axis_moves, {"v": rand(2, 3, 4)}, {"Transpose": 2, "Softmax": 1})

    def wide_operand(op, v, u):
        return op.Transpose(op.Add(op.Transpose(v, perm=[1, 0, 2]), u), perm=[1, 0, 2])

    check(wide_operand, {"v": rand(2, 3, 4), "u": rand(3, 1, 1)}, {"Transpose": 2, "Add": 1})

    def output_between(op, v):
        y = op.Relu(op.Transpose(v, perm=[1, 0, 2]))
        return y, op.Transpose(y, perm=[1, 0, 2])

    check(output_between, {"v": rand(2, 3, 4)}, {"Transpose": 2, "Relu": 1})


def test_any_order_passes_what_works_by_element(check):
    def write(op, v):
        return op.Transpose(op.Mul(op.Tanh(op.Transpose(v, perm=[2, 0, 1])), 2.0), perm=[1, 2, 0])

    check(write, {"v": rand(2, 3, 4)}, {"Tanh": 1, "Mul": 1})
