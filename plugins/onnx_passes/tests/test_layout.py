"""Reshape, Transpose and Expand: fewer of them, to the same effect at all sizes."""

from __future__ import annotations

import numpy as np
import pytest


def rand(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def test_a_reshape_to_the_shape_that_is_there_goes(check, n):
    def write(op, v):
        return op.Neg(op.Reshape(v, op.at("s").shape(v.dims)))

    check(write, {"v": (rand(4, 6), (n, 6))}, {"Neg": 1})


def test_reshapes_in_a_row_are_one(check, n, m):
    def write(op, v):
        a = op.at("a").reshape(v, (n, 2, 3))
        return op.at("b").reshape(op.Unsqueeze(a, [1]), (n, 6, 1))

    check(write, {"v": (rand(4, 6), (n, 6))}, {"Reshape": 1})
    check(write, {"v": (rand(0, 6), (n, 6))}, {"Reshape": 1})

    def there_and_back(op, v):
        return op.Relu(op.Squeeze(op.Unsqueeze(v, [0]), [0]))

    check(there_and_back, {"v": (rand(4, 6), (n, m))}, {"Relu": 1})


def test_a_reshape_that_something_else_reads_is_not_written_twice(check, m):
    def write(op, v):
        a = op.at("a").reshape(v, (m * 2, 3))
        return op.Neg(a), op.at("b").reshape(a, (m, 3, 2))

    check(write, {"v": (rand(4, 6), (m, 6))}, {"Reshape": 2, "Neg": 1})


def test_a_size_that_may_be_zero_is_not_guessed(check, n, m):
    """-1 beside a size of 0 has no answer, and none is invented."""

    def write(op, v):
        return op.at("s").reshape(op.Unsqueeze(v, [3]), (n, m * 2))

    for sizes in ((3, 5), (0, 5)):
        check(write, {"v": (rand(*sizes, 2), (n, m, 2))})


def test_transposes_in_a_row_are_one_or_none(check, n):
    def cycle(op, v):
        return op.Transpose(op.Transpose(v, perm=[1, 2, 0]), perm=[1, 0, 2])

    check(cycle, {"v": (rand(2, 3, 4), (n, 3, 4))}, {"Transpose": 1})

    def back(op, v):
        return op.Neg(op.Transpose(op.Transpose(v, perm=[1, 2, 0]), perm=[2, 0, 1]))

    check(back, {"v": (rand(2, 3, 4), (n, 3, 4))}, {"Neg": 1})


def test_an_expand_goes_where_the_operator_broadcasts(check, n):
    def write(op, v, b):
        return op.Add(v, op.at("e").expand(b, (n, 6)))

    check(write, {"v": (rand(4, 6), (n, 6)), "b": rand(1, 6)}, {"Add": 1})

    def condition(op, c, v):
        return op.Where(op.at("e").expand(c, (n, 6)), v, 0.0)

    mask = np.array([[True, False] * 3])
    check(condition, {"c": mask, "v": (rand(4, 6), (n, 6))}, {"Where": 1})


def test_an_expand_that_makes_the_size_stays(check, n):
    def write(op, v, b):
        return op.Add(op.at("e").expand(b, (n, 6)), 1.0), op.Shape(v)

    made = check(write, {"v": (rand(4, 6), (n, 6)), "b": rand(1, 6)})
    assert made.counts()["Expand"] == 1


def test_the_batch_of_a_product_is_broadcast_by_it(check, n):
    def write(op, a, b):
        return op.MatMul(a, op.at("e").expand(b, (n, 3, 5)))

    check(write, {"a": (rand(4, 2, 3), (n, 2, 3)), "b": rand(1, 3, 5)}, {"MatMul": 1})

    def alone(op, a, b, size):
        return op.MatMul(a, op.at("e").expand(b, (n, 3, 5)))

    inputs = {"a": rand(1, 2, 3), "b": rand(1, 3, 5), "size": (rand(4), (n,))}
    assert check(alone, inputs).counts()["Expand"] == 1


def test_where_of_a_constant_chooses(check, x):
    def write(op, v):
        yes = op.at("c").const(np.ones((4, 1), bool))
        return op.Neg(op.Where(yes, v, op.Relu(v)))

    check(write, {"v": np.abs(x)}, {"Neg": 1})  # ONNX Runtime's Where makes 0.0 of -0.0

    def widens(op, v):
        return op.Where(op.at("c").const(np.ones((2, 1, 1), bool)), v, 0.0)

    check(widens, {"v": x}, {"Where": 1})


def test_where_swaps_instead_of_not(check, x):
    def write(op, c, v):
        no = op.Not(c)
        return op.Where(no, v, 0.0), op.Where(no, 1.0, v)

    check(write, {"c": np.array([[True], [False], [True], [False]]), "v": x}, {"Where": 2})

    def read_elsewhere(op, c, v):
        no = op.Not(c)
        return op.Where(no, v, 0.0), op.And(no, no)

    made = check(read_elsewhere, {"c": np.array([[True], [False], [True], [False]]), "v": x})
    assert made.counts()["Not"] == 1


@pytest.mark.parametrize("opset", [11, 13, 18, 23])
def test_slices_that_share_a_tensor_out_are_a_split(check, opset):
    def write(op, v):
        return op.Concat(op.Neg(op.Slice(v, [4], [2**63 - 1], [-1])), op.Slice(v, [0], [4], [1]), axis=1)

    check(write, {"v": rand(3, 6)}, {"Split": 1, "Neg": 1, "Concat": 1}, opset=opset)


def test_slices_with_a_gap_or_an_overlap_stay(check, n):
    def gap(op, v):
        return op.Concat(op.Slice(v, [0], [2], [1]), op.Slice(v, [3], [6], [1]), axis=1)

    check(gap, {"v": rand(3, 6)}, {"Slice": 2, "Concat": 1})

    def overlap(op, v):
        return op.Concat(op.Slice(v, [0], [4], [1]), op.Slice(v, [3], [6], [1]), axis=1)

    check(overlap, {"v": rand(3, 6)}, {"Slice": 2, "Concat": 1})

    def outputs(op, v):
        return op.Slice(v, [0], [4], [1]), op.Slice(v, [4], [6], [1])

    check(outputs, {"v": rand(3, 6)}, {"Slice": 2})
