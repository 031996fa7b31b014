"""What all passes keep: functions, metadata, and a cost that grows as the model does."""

from __future__ import annotations

import time

import numpy as np
import onnxscript
import torch
from onnxscript import opset20

from atonnx.passes import run_passes
from atonnx.plugins import load


@onnxscript.script(onnxscript.values.Opset("test.domain", 1))
def scaled(x, factor: float = 1.0):
    return opset20.Mul(
        opset20.Identity(opset20.Cast(x, to=1)), opset20.CastLike(opset20.Constant(value_float=factor), x)
    )


def test_functions_are_simplified_by_themselves(check):
    def write(op, v):
        return op.at("call").function(scaled, v, factor=2.0)

    made = check(write, {"v": np.arange(4, dtype=np.float32)})
    assert "Identity" not in made.counts()


def test_a_node_that_stands_for_several_tells_of_the_last(check, x):
    def reshapes(op, v):
        return op.at("second").Reshape(op.at("first").Reshape(v, [6, 4]), [3, 8])

    made = check(reshapes, {"v": x}, {"Reshape": 1})
    assert made.model.graph[0].metadata_props["namespace"] == "second"


def test_each_pass_has_a_name_of_its_own_and_leaves_an_optimized_model_alone(check, x):
    def write(op, v):
        return op.Relu(op.Transpose(op.Transpose(op.Mul(v, 1.0), perm=[1, 0]), perm=[1, 0]))

    made = check(write, {"v": x}, {"Relu": 1})
    timings = run_passes(made.model, load().passes())
    assert not any(timing.modified for timing in timings)


def blocks(count):
    def write(op, v):
        for index in range(count):
            w = op.weight(f"w{index}", torch.zeros(6, 6))
            y = op.Add(op.MatMul(op.Unsqueeze(v, [0]), op.Transpose(w, perm=[1, 0])), 1.0)
            y = op.Reshape(op.Squeeze(y, [0]), [4, 2, 3])
            v = op.Reshape(op.Transpose(op.Transpose(y, perm=[1, 0, 2]), perm=[1, 0, 2]), [4, 6])
        return v

    return write


def test_the_cost_grows_as_the_model_does(written):
    """A generous bound: a pass that is quadratic takes sixteen times as long for four times the nodes."""
    seconds = {}
    for count in (50, 200):
        model = written(blocks(count), {"v": np.zeros((4, 6), np.float32)})
        begin = time.process_time()
        model.optimize()
        seconds[count] = time.process_time() - begin
    assert seconds[200] < seconds[50] * 4 * 2
