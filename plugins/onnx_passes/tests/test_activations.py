"""Functions that were spelled out."""

from __future__ import annotations

import math

import numpy as np


def numbers(dtype=np.float32):
    tiny = np.finfo(dtype).smallest_subnormal
    special = [0.0, -0.0, np.inf, np.nan, tiny, np.finfo(dtype).max]
    return np.concatenate([np.abs(np.random.default_rng(0).normal(size=26)), special]).astype(dtype)


def test_times_the_reciprocal_of_a_root_is_a_division(check):
    def write(op, x, v):
        return op.Mul(x, op.Reciprocal(op.Sqrt(v)))

    for x in (0.0, 1.0, -3.0, np.inf, np.nan):
        check(write, {"x": np.full(32, x, np.float32), "v": numbers()}, {"Sqrt": 1, "Div": 1}, same=False)


def test_a_reciprocal_that_is_read_elsewhere_stays(check):
    def write(op, x, v):
        inverse = op.Reciprocal(op.Sqrt(v))
        return op.Mul(x, inverse), op.Neg(inverse)

    check(write, {"x": numbers(), "v": numbers()}, {"Sqrt": 1, "Reciprocal": 1, "Mul": 1, "Neg": 1})


def new_gelu(op, x, cube):
    inner = op.Mul(op.Add(x, op.Mul(cube(op, x), 0.044715)), math.sqrt(2 / math.pi))
    return op.Mul(op.Mul(x, 0.5), op.Add(op.Tanh(inner), 1.0))


def test_gelu_by_tanh(check):
    cubes = [lambda op, x: op.Pow(x, 3.0), lambda op, x: op.Mul(x, op.Mul(x, x))]
    for cube in cubes:
        x = {"x": numbers()[:28]}
        check(lambda op, v, cube=cube: new_gelu(op, v, cube), x, {"Gelu": 1}, same=False)
        assert "Gelu" not in check(lambda op, v, cube=cube: new_gelu(op, v, cube), x, opset=18).counts()

    check(lambda op, v: new_gelu(op, v, lambda op, x: op.Pow(x, 2.0)), x, same=False)
