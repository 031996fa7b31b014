"""Arithmetic goes only where it changes no number at all."""

from __future__ import annotations

import numpy as np
import pytest
import torch


@pytest.mark.parametrize(
    "write",
    [
        lambda op, v: op.Mul(v, 1.0),
        lambda op, v: op.Mul(op.at("one").const(np.ones((1, 1), np.float32)), v),
        lambda op, v: op.Div(v, 1.0),
        lambda op, v: op.Pow(v, 1.0),
        lambda op, v: op.Sub(v, 0.0),
        lambda op, v: op.Add(v, -0.0),
        lambda op, v: op.Neg(op.Neg(v)),
        lambda op, v: op.Mul(v, op.at("one").const(np.ones(6, np.float32))),
    ],
)
def test_what_changes_nothing_goes(check, x, write):
    check(lambda op, v: op.Relu(write(op, v)), {"v": x}, {"Relu": 1})


@pytest.mark.parametrize(
    "write",
    [
        lambda op, v: op.Add(v, 0.0),  # makes 0.0 of -0.0
        lambda op, v: op.Sub(v, -0.0),
        lambda op, v: op.Sub(0.0, v),
        lambda op, v: op.Div(1.0, v),
        lambda op, v: op.Mul(v, 0.0),
        lambda op, v: op.Mul(v, op.at("one").const(np.ones((2, 1, 1), np.float32))),  # adds an axis
        lambda op, v: op.Mul(v, op.weight("w", torch.ones(6))),  # a weight may change
    ],
)
def test_what_changes_something_stays(check, x, write):
    made = check(lambda op, v: op.Neg(write(op, v)), {"v": x})
    assert len(made.counts()) == 2


def test_of_integers_zero_can_be_added(check):
    check(lambda op, v: op.Neg(op.Add(v, 0)), {"v": np.arange(-3, 3)}, {"Neg": 1})


def test_truth_values(check):
    t = np.array([True, False])
    yes, no = np.ones(1, bool), np.zeros(1, bool)
    check(lambda op, v: op.Not(op.And(v, op.at("c").const(yes))), {"v": t}, {"Not": 1})
    check(lambda op, v: op.Not(op.Or(op.at("c").const(no), v)), {"v": t}, {"Not": 1})
    check(lambda op, v: op.And(op.And(v, v), op.Not(op.Not(op.Not(v)))), {"v": t}, {"And": 1, "Not": 1})
    check(lambda op, v: op.And(v, op.at("c").const(no)), {"v": t}, {"And": 1})


def test_a_size_one_operand_that_widens_stays(check):
    wide = np.ones((3, 4), np.float32)
    check(lambda op, v: op.Mul(v, op.at("c").const(wide)), {"v": np.zeros((1, 4), np.float32)}, {"Mul": 1})
