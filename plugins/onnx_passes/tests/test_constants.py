"""Small constants and static sizes are computed; weights are not looked at."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from atonnx.build.weights import Derived, Weight


def rand(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def test_sizes_that_are_static_are_numbers(check, n):
    def write(op, v):
        shape = op.Shape(v)
        last = op.Gather(shape, [2], axis=0)
        return op.Reshape(v, op.Concat([-1], op.Mul(last, [2]), axis=0))

    made = check(write, {"v": (rand(4, 6, 5), (n, 6, 5))}, {"Reshape": 1})
    assert made.model.graph[0].inputs[1].const_value.numpy().tolist() == [-1, 10]
    check(
        lambda op, v: op.Neg(op.Reshape(v, op.Unsqueeze(op.Size(v), [0]))),
        {"v": rand(2, 3)},
        {"Neg": 1, "Reshape": 1},
    )


def test_a_size_of_a_shape_is_read_alone(check, n, m):
    def write(op, v, w):
        at = op.Unsqueeze(op.Gather(op.Shape(v), 1, axis=0), [0])
        return op.Reshape(w, op.Concat(at, [-1], axis=0))

    inputs = {"v": (rand(4, 6), (n, m)), "w": (rand(6, 2), (m, 2))}
    check(write, inputs, {"Shape": 1, "Concat": 1, "Reshape": 1})
    made = check(write, inputs, opset=13)  # Shape has no range there
    assert made.counts()["Gather"] == 1


@pytest.mark.parametrize(
    ("write", "value"),
    [
        (lambda op: op.Add(op.Range(0, 4, 1), [1, 2, 3, 4]), [1, 3, 5, 7]),
        (lambda op: op.Div([-7, 7], [2, -2]), [-3, -3]),
        (lambda op: op.Mod([-7, 7], [2, -2]), [1, -1]),
        (lambda op: op.Slice([1, 2, 3, 4], [-1], [-(2**62)], [0], [-2]), [4, 2]),
        (lambda op: op.Expand([1], [2]), [1, 1]),
        (lambda op: op.ReduceSum([1, 2], [0], keepdims=1), [3]),
        (lambda op: op.Cast(op.Floor(op.at("c").const([1.5, -1.5])), to=7), [1, -2]),
        (lambda op: op.Where(op.Less([1, 5], [3, 3]), [1, 1], [2, 2]), [1, 2]),
        (lambda op: op.Squeeze(op.Transpose(op.at("c").const([[1], [2]]), perm=[1, 0]), [0]), [1, 2]),
        (lambda op: op.Gather(op.ConstantOfShape([2]), op.Unsqueeze(1, [0]), axis=0), [0.0]),
    ],
)
def test_constants_are_computed_as_the_runtime_does(check, write, value):
    zeros = np.zeros(len(value), np.float32 if isinstance(value[0], float) else np.int64)
    made = check(lambda op, v: op.Max(v, op.Identity(op.Add(write(op), zeros.tolist()))), {"v": zeros - 9})
    assert made.counts() == {"Max": 1}
    assert made.run()[0].tolist() == value


def test_what_kernels_answer_differently_is_left_to_them(check):
    nan = np.array([np.nan, 1e30], np.float32)
    check(
        lambda op, v: op.Add(v, op.Cast(op.at("c").const(nan), to=7)),
        {"v": np.arange(2)},
        {"Add": 1, "Cast": 1},
    )


def test_large_constants_and_weights_are_left(check):
    big = np.zeros(1024, np.float32)
    made = check(lambda op, v: op.Add(v, op.Neg(op.at("c").const(big))), {"v": big}, {"Add": 1})
    (stored,) = made.model.graph.initializers.values()
    assert isinstance(stored.const_value, Derived)  # a recipe
    made = check(
        lambda op, v: op.Add(v, op.Sign(op.weight("w", torch.ones(3)))), {"v": rand(3)}, {"Add": 1, "Sign": 1}
    )
    assert isinstance(made.model.graph.initializers["w"].const_value, Weight)


def test_a_constant_as_an_output_stays_a_node(check):
    check(lambda op, v: (op.Add([1], [2]), op.Neg(v)), {"v": rand(3)}, {"Add": 1, "Neg": 1})


def test_equal_constants_are_one_initializer(check, x):
    def write(op, v):
        return op.Add(op.Reshape(v, op.Add([2, 2], [2, 10])), op.Reshape(op.Neg(v), op.Add([3, 3], [1, 9])))

    made = check(write, {"v": rand(4, 12)})
    assert len(made.model.graph.initializers) <= 1
