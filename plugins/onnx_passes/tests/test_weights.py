"""Weights by recipe: rearranged when they are written, never copied before, and never stored twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import atonnx
from atonnx.build.weights import Derived, Transposed, Weight


def rand(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def initializers(made):
    return {name: value.const_value for name, value in made.model.graph.initializers.items()}


def test_a_transposed_weight_keeps_its_name(check):
    w = torch.randn(5, 6)

    def write(op, v):
        return op.MatMul(v, op.Transpose(op.weight("w", w), perm=[1, 0]))

    made = check(write, {"v": rand(2, 4, 6)}, {"MatMul": 1})
    assert isinstance(initializers(made)["w"], Transposed)


def test_a_weight_that_is_read_as_it_is_stays(check):
    w = torch.randn(6, 6)

    def write(op, v):
        stored = op.weight("w", w)
        return op.Add(op.MatMul(v, op.Transpose(stored, perm=[1, 0])), stored)

    made = check(write, {"v": rand(2, 4, 6)[:, :1].repeat(6, 1)}, {"MatMul": 1, "Transpose": 1, "Add": 1})
    assert isinstance(initializers(made)["w"], Weight)


def test_two_different_transposes_would_store_it_twice(check):
    w = torch.randn(6, 6, 64)

    def write(op, v):
        stored = op.weight("w", w)
        a = op.Transpose(stored, perm=[1, 0, 2])
        b = op.Transpose(stored, perm=[0, 2, 1])
        return op.MatMul(v, b), op.Mul(v, a)

    made = check(write, {"v": rand(6, 6, 64)}, {"MatMul": 1, "Transpose": 2, "Mul": 1})
    assert list(initializers(made)) == ["w"]


def test_gates_in_another_order(check):
    w, b = torch.randn(12, 5), torch.randn(12)

    def write(op, v):
        parts = op.Split(op.weight("w", w), [3, 3, 3, 3], axis=0, outputs=4)
        order = op.Concat(parts[0], parts[3], parts[1], parts[2], axis=0)
        bias = op.Concat(
            op.Slice(op.weight("b", b), [6], [12], [0]), op.Slice(op.weight("b2", b), [0], [6], [0]), axis=0
        )
        y = op.MatMul(v, op.Unsqueeze(op.Transpose(order, perm=[1, 0]), [0]))
        return op.Add(y, op.Neg(op.Unsqueeze(bias, [0])))

    made = check(write, {"v": rand(1, 4, 5)}, None, same=False)
    assert made.counts()["MatMul"] == 1 and sum(made.counts().values()) in (2, 7)
    assert isinstance(initializers(made)["w"], Derived)


@pytest.mark.parametrize(
    "write",
    [
        lambda op, w, u: op.Concat(w, u, axis=1),
        lambda op, w, u: op.Gather(w, [5, 4, 3, 2, 1, 0], axis=0),
        lambda op, w, u: op.Add(op.Mul(w, 2.0), u),
        lambda op, w, u: op.Neg(op.Exp(w)),
        lambda op, w, u: op.Reshape(w, [4, -1]),
        lambda op, w, u: op.Slice(w, [1], [6], [1], [2]),
        lambda op, w, u: op.Cast(w, to=10),
    ],
)
def test_expressions_of_weights_are_recipes_and_nodes_again(check, write):
    w, u = torch.randn(6, 8), torch.randn(6, 8)

    def graph(op, v):
        y = write(op, op.weight("w", w), op.weight("u", u))
        return op.Add(v, op.Cast(op.ReduceSum(op.Cast(y, to=1), keepdims=0), to=1))

    made = check(graph, {"v": np.zeros((), np.float32)}, same=False)
    assert any(isinstance(tensor, Derived) for tensor in initializers(made).values())


def test_relative_positions_are_looked_up_by_recipe(check):
    table, index = torch.randn(9, 4), torch.randint(-9, 9, (25,))

    def write(op, v):
        rows = op.Gather(op.weight("table", table), op.weight("index", index), axis=0)
        bias = op.Unsqueeze(op.Transpose(op.Reshape(rows, [5, 5, 4]), perm=[2, 0, 1]), [0])
        return op.Add(v, bias)

    made = check(write, {"v": rand(2, 4, 5, 5)}, {"Add": 1})
    (stored,) = initializers(made).values()
    assert isinstance(stored, Derived) and stored.shape.numpy() == (1, 4, 5, 5)


def test_what_would_grow_stays_a_node(check):
    w = torch.randn(512, 512).half()

    def write(op, v):
        return op.Add(v, op.ReduceMax(op.Cast(op.weight("w", w), to=1), keepdims=0))

    made = check(write, {"v": np.zeros((), np.float32)}, {"Cast": 1, "ReduceMax": 1, "Add": 1})
    assert isinstance(initializers(made)["w"], Weight)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.embed.weight
        self.other = nn.Linear(16, 16)

    def forward(self, tokens):
        return self.head(torch.tanh(self.other(self.embed(tokens))))


@pytest.mark.parametrize("include", [True, False])
def test_a_model_with_recipes_saved_in_all_ways_takes_the_state_dict(include, tmp_path):
    torch.manual_seed(0)
    model, tokens = Tied().eval(), torch.randint(0, 50, (2, 3))
    program = atonnx.export(model, (tokens,))
    assert sum(isinstance(v.const_value, Weight) for v in program.model.graph.initializers.values()) >= 2
    torch.manual_seed(1)
    new = Tied().eval()
    program.apply_weights(new.state_dict())
    path = tmp_path / "m.onnx"
    program.save(path, include_initializers=include, keep_initializers_as_inputs=True)
    import onnxruntime as ort

    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    state = {name: tensor.numpy() for name, tensor in new.state_dict().items()}
    feeds = {i.name: state.get(i.name, tokens.numpy()) for i in session.get_inputs()}
    with torch.no_grad():
        np.testing.assert_allclose(session.run(None, feeds)[0], new(tokens).numpy(), atol=1e-6)


def test_weights_without_data_are_no_hindrance():
    with torch.device("meta"):
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(2), nn.Linear(36, 5)).eval()
    x = torch.randn(1, 3, 8, 8, device="meta")
    program = atonnx.export(model, (x,))
    assert "BatchNormalization" not in {node.op_type for node in program.model.graph}
    filled = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(2), nn.Linear(36, 5)).eval()
    program.apply_weights(filled.state_dict())
    value = torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(program(value)[0], filled(value), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_a_weight_in_8_bits_is_stored_in_8_bits(check, dtype):
    w = torch.randn(6, 6).to(dtype)

    def write(op, v):
        return op.MatMul(v, op.Mul(op.cast(op.weight("w", w), torch.float32), 0.5))

    made = check(write, {"v": rand(2, 4, 6)}, {"MatMul": 1, "Cast": 1, "Mul": 1})
    assert initializers(made)["w"].dtype.bitwidth == 8
