"""Recurrent layers: gates, directions, layers, states; whole modules with dynamic time."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit
from atonnx.build.weights import Derived, leaves
from atonnx.errors import UnsupportedOpError

aten = torch.ops.aten
DYNAMIC = torch.export.Dim.DYNAMIC
KINDS = {
    "lstm": (aten.lstm.input, 4, 2, "LSTM"),
    "gru": (aten.gru.input, 3, 1, "GRU"),
    "rnn_tanh": (aten.rnn_tanh.input, 1, 1, "RNN"),
    "rnn_relu": (aten.rnn_relu.input, 1, 1, "RNN"),
}


@given(
    kind=st.sampled_from(sorted(KINDS)),
    opset=kit.opsets(),
    layers=st.integers(1, 3),
    both=st.booleans(),
    biases=st.booleans(),
    batch_first=st.booleans(),
    weights=st.booleans(),
    zero=st.booleans(),
    seed=st.integers(0, 99),
)
def test_one_node_a_layer(kind, opset, layers, both, biases, batch_first, weights, zero, seed):
    overload, gates, states, op_type = KINDS[kind]
    directions = 2 if both else 1

    def tensor(*shape):
        return kit.make_tensor(torch.float32, shape, seed, low=-1, high=1)

    wrap = kit.Weight if weights else lambda x: x
    params = []
    for layer in range(layers):
        size = 3 if layer == 0 else 4 * directions
        for _ in range(directions):
            shapes = [(gates * 4, size), (gates * 4, 4), *[(gates * 4,)] * (2 if biases else 0)]
            params += [wrap(tensor(*shape)) for shape in shapes]
    hidden = [tensor(layers * directions, 2, 4) * (0 if zero else 1) for _ in range(states)]
    x = tensor(2, 5, 3) if batch_first else tensor(5, 2, 3)
    flags = (biases, layers, 0.0, False, both, batch_first)
    first = hidden if states == 2 else hidden[0]
    kit.check_op(
        overload,
        x,
        first,
        params,
        *flags,
        opset=opset,
        dynamic=False,
        expect=f"{op_type}:{layers}",
        atol=1e-5,
    )


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(20, 6)
        self.layers = torch.nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.tags = torch.nn.Linear(10, 4)

    def forward(self, words):
        states, _ = self.layers(self.words(words))
        return self.tags(states)


@pytest.mark.parametrize("opset", [11, 14, 20, 28])
def test_a_tagger_with_dynamic_time_and_batch(opset, run):
    def made(*shape):
        return (torch.randint(0, 20, shape),)

    program = run(
        Tagger(), made(2, 5), ({0: DYNAMIC, 1: DYNAMIC},), [made(4, 9), made(1, 1), made(3, 2)], opset
    )
    ops = [node.op_type for node in program.model.graph]
    assert ops.count("LSTM") == 2
    assert not {"Loop", "Scan", "If"} & set(ops)


@pytest.mark.parametrize("make", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
@pytest.mark.parametrize("options", [{}, {"bias": False, "bidirectional": True}, {"num_layers": 2}])
def test_modules_with_dynamic_time_and_all_results(make, options, run):
    def made(time, batch):
        return (torch.randn(time, batch, 3),)

    run(make(3, 4, **options), made(5, 2), ({0: DYNAMIC, 1: DYNAMIC},), [made(8, 1), made(1, 3)], 20)


def test_initial_states_are_inputs_of_the_layers(run):
    def made(time, batch):
        return torch.randn(time, batch, 3), (torch.randn(2, batch, 4), torch.randn(2, batch, 4))

    state = {1: DYNAMIC}
    shapes = ({0: DYNAMIC, 1: DYNAMIC}, (state, state))
    run(torch.nn.LSTM(3, 4, num_layers=2), made(5, 2), shapes, [made(7, 3), made(1, 1)], 20)


def test_weights_are_derived_not_copied(run):
    module = torch.nn.GRU(3, 4)
    program = run(module, (torch.randn(5, 2, 3),), None, [], 20)
    tensors = [value.const_value for value in program.model.graph.initializers.values()]
    derived = [tensor for tensor in tensors if isinstance(tensor, Derived)]
    assert len(derived) == 3
    sources = {leaf.source for tensor in derived for leaf in leaves(tensor)}
    assert sources == {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}


def test_a_layer_that_runs_twice_has_its_weights_once():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.LSTM(3, 3)

        def forward(self, x):
            return self.layer(self.layer(x)[0])[0]

    import atonnx

    program = atonnx.export(Twice().eval(), (torch.randn(5, 2, 3),))
    nodes = [node for node in program.model.graph if node.op_type == "LSTM"]
    assert len(nodes) == 2
    assert [v.name for v in nodes[0].inputs[1:4]] == [v.name for v in nodes[1].inputs[1:4]]


def test_new_weights_reach_the_layer():
    import atonnx
    from atonnx.program import ONNXProgram

    module, other = torch.nn.LSTM(3, 4).eval(), torch.nn.LSTM(3, 4).eval()
    x = torch.randn(5, 2, 3)
    program = atonnx.export(module, (x,))
    assert isinstance(program, ONNXProgram)
    program.apply_weights(other.state_dict())
    torch.testing.assert_close(program(x)[0], other(x)[0], rtol=1e-4, atol=1e-5)


def test_a_projection_is_refused_with_a_way_out():
    import atonnx

    with pytest.raises(UnsupportedOpError, match="proj_size"):
        atonnx.export(torch.nn.LSTM(3, 4, proj_size=2).eval(), (torch.randn(5, 2, 3),))
