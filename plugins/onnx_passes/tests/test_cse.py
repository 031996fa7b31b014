"""Equal nodes are one; nodes and initializers that nobody reads go."""

from __future__ import annotations

import numpy as np
import torch


def rand(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def test_equal_nodes_are_one(check, x):
    def write(op, v):
        return op.Concat(op.Softmax(v, axis=1), op.Softmax(v, axis=1), op.Softmax(v, axis=0), axis=0)

    check(write, {"v": x}, {"Softmax": 2, "Concat": 1})


def test_operands_may_be_swapped_where_that_changes_nothing(check, x):
    def write(op, v):
        w = op.Relu(v)
        return op.Concat(
            op.Add(v, w), op.Add(w, v), op.Sub(v, w), op.Sub(w, v), op.Max(v, w), op.Max(w, v), axis=0
        )

    check(write, {"v": x}, {"Relu": 1, "Add": 1, "Sub": 2, "Max": 2, "Concat": 1})


def test_outputs_keep_their_names(check, x):
    check(lambda op, v: (op.Relu(v), op.Neg(op.Relu(v))), {"v": x}, {"Relu": 1, "Neg": 1})
    check(lambda op, v: (op.Neg(op.Relu(v)), op.Relu(v)), {"v": x}, {"Relu": 1, "Neg": 1})
    check(lambda op, v: (op.Relu(v), op.Relu(v)), {"v": x}, {"Relu": 2})


def test_random_numbers_are_drawn_each_time(check):
    def write(op, v):
        a, b = (op.at("r").RandomNormalLike(v) for _ in range(2))
        return op.Shape(op.Add(a, b))

    made = check(write, {"v": rand(3)}, passes=["merge-equal"])
    assert made.counts()["RandomNormalLike"] == 2


def test_equal_sizes_are_read_once(check, n, m):
    def write(op, v, w):
        size = op.Concat(op.Shape(w, start=0, end=1), [1], axis=0)
        other = op.Concat(op.Shape(v, start=1, end=2), [1], axis=0)
        return op.Concat(op.Expand(op.Neg(1.0), size), op.Expand(2.0, other), axis=0)

    inputs = {"v": (rand(4, 6), (n, m)), "w": (rand(6, 2), (m, 2))}
    made = check(write, inputs)
    assert made.counts()["Shape"] == 1


def test_bodies_read_what_is_there_already(check, x):
    def write(op, c, v):
        outside = op.Exp(v)
        op_if = op.at("if")
        branches = []
        for sign in (2.0, -1.0):
            with op_if.body() as body:
                body.output(body.Mul(body.Exp(v), sign))
            branches.append(body.graph)
        return op_if.If(c, then_branch=branches[0], else_branch=branches[1]), op.Neg(outside)

    check(write, {"c": np.array(True), "v": rand(4, 6)}, {"Exp": 1, "If": 1, "Mul": 2, "Neg": 1})


def test_a_branch_is_not_read_from_outside(check):
    def write(op, c, v):
        op_if = op.at("if")
        branches = []
        for sign in (1.0, -1.0):
            with op_if.body() as body:
                body.output(body.Add(body.Exp(v), sign))
            branches.append(body.graph)
        y = op_if.If(c, then_branch=branches[0], else_branch=branches[1])
        return op.Add(y, op.Exp(v))

    made = check(write, {"c": np.array(False), "v": rand(4)})
    assert made.counts()["Exp"] == 3


def test_what_nobody_reads_goes(check, x):
    def write(op, v):
        op.Add(op.Exp(v), op.weight("unused", torch.ones(6)))
        op_if = op.at("if")
        with op_if.body() as body:
            body.output(body.Neg(op.Sqrt(v)))
        with op_if.body() as other:
            other.output(other.Relu(v))
        op_if.If(op.at("c").const(True), then_branch=body.graph, else_branch=other.graph)
        return op.Abs(v)

    made = check(write, {"v": x}, {"Abs": 1})
    assert not made.model.graph.initializers
