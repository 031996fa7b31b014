"""Operators that change nothing go; the numbers and the names of outputs stay."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

D = ir.DataType


def test_identities_go_except_between_input_and_output(check, x):
    check(lambda op, v: op.Relu(op.Identity(op.Identity(v))), {"v": x}, {"Relu": 1})
    check(lambda op, v: op.Identity(v), {"v": x}, {"Identity": 1})
    check(lambda op, v: op.Identity(op.Relu(v)), {"v": x}, {"Relu": 1})


def test_an_output_that_is_read_keeps_its_own_value(check, x):
    def write(op, v):
        a = op.Relu(v)
        return op.Identity(a), a, op.Neg(a)

    check(write, {"v": x}, {"Relu": 1, "Identity": 1, "Neg": 1})


def test_the_survivor_takes_over_the_name_and_metadata_of_an_output(check, x):
    def write(op, v):
        y = op.Identity(op.Relu(v))
        y.metadata_props["kind"] = "USER_OUTPUT"
        return y

    (out,) = check(write, {"v": x}, {"Relu": 1}).model.graph.outputs
    assert out.name == "out0" and out.metadata_props["kind"] == "USER_OUTPUT"
    assert out.producer().op_type == "Relu"


def test_a_cast_to_the_same_dtype_goes(check, x):
    check(lambda op, v: op.Neg(op.Cast(v, to=D.FLOAT)), {"v": x}, {"Neg": 1})


@pytest.mark.parametrize(
    ("dtype", "middle", "to", "casts"),
    [
        (np.float16, D.FLOAT, D.FLOAT16, 0),
        (np.float16, D.FLOAT, D.DOUBLE, 1),
        (np.int8, D.INT64, D.FLOAT, 1),
        (np.bool_, D.FLOAT, D.INT64, 1),
        (np.float32, D.FLOAT16, D.FLOAT, 2),  # loses digits
        (np.int64, D.INT32, D.INT64, 2),
        (np.float32, D.BOOL, D.FLOAT, 2),
        (np.int64, D.DOUBLE, D.FLOAT, 2),  # may round twice
    ],
)
def test_the_first_of_two_casts_goes_if_it_loses_nothing(check, dtype, middle, to, casts):
    array = np.array([0, 1, 3, 100, -7]).astype(dtype)

    def write(op, v):
        once = op.Identity(op.Cast(v, to=middle))
        return op.Concat(op.Cast(once, to=to), op.Cast(once, to=to), axis=0)

    made = check(write, {"v": array})
    assert made.counts().get("Cast", 0) == casts


def test_a_slice_of_everything_goes_but_not_a_flip(check, x, n):
    check(lambda op, v: op.Neg(op.Slice(v, [0], [6], [1])), {"v": x}, {"Neg": 1})
    check(lambda op, v: op.Neg(op.Slice(v, [0], [2**63 - 1], [0])), {"v": (x, (n, 6))}, {"Neg": 1})
    check(lambda op, v: op.Neg(op.Slice(v, [-1], [-7], [1], [-1])), {"v": x}, {"Neg": 1, "Slice": 1})
    check(
        lambda op, v: op.Neg(op.Slice(v, [1], [2**63 - 1], [0])), {"v": (x, (n, 6))}, {"Neg": 1, "Slice": 1}
    )


def test_concatenations_are_flattened(check, x, n):
    check(lambda op, v: op.Neg(op.Concat(v, axis=0)), {"v": x}, {"Neg": 1})

    def nested(op, v):
        return op.Concat(op.Concat(v, op.Relu(v), axis=0), op.Neg(v), axis=-2)

    check(nested, {"v": (x, (n, 6))}, {"Concat": 1, "Relu": 1, "Neg": 1})
    empty = np.zeros((0, 6), np.float32)
    check(lambda op, v, e: op.Concat(v, e, op.Neg(v), axis=0), {"v": x, "e": empty}, {"Concat": 1, "Neg": 1})


def test_a_split_that_is_put_together_again_goes(check, x):
    def write(op, v):
        a, b = op.Split(v, [2, 4], axis=1, outputs=2)
        return op.Neg(op.Concat(a, b, axis=-1))

    check(write, {"v": x}, {"Neg": 1})

    def swapped(op, v):
        a, b = op.Split(v, [2, 4], axis=1, outputs=2)
        return op.Concat(b, a, axis=-1)

    check(swapped, {"v": x}, {"Split": 1, "Concat": 1})
