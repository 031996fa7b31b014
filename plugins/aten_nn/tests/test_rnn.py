"""Recurrent layers: gates, directions, layers, states; whole modules with dynamic time."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit
from atonnx.build.weights import Derived, leaves

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


CELLS = {"lstm": aten.lstm_cell, "gru": aten.gru_cell, "rnn_tanh": aten.rnn_tanh_cell}
CELLS["rnn_relu"] = aten.rnn_relu_cell


@given(
    kind=st.sampled_from(sorted(KINDS)),
    opset=kit.opsets(),
    batch=st.integers(0, 3),
    biases=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 99),
)
def test_cells(kind, opset, batch, biases, dtype, seed):
    _, gates, states, _ = KINDS[kind]

    def tensor(*shape):
        return kit.make_tensor(dtype, shape, seed, low=-1, high=1)

    shapes = [(gates * 4, 3), (gates * 4, 4), *[(gates * 4,)] * (2 if biases else 0)]
    hidden = [tensor(batch, 4) for _ in range(states)]
    weights = [kit.Weight(tensor(*shape)) for shape in shapes]
    first = hidden if states == 2 else hidden[0]
    kit.check_op(CELLS[kind].default, tensor(batch, 3), first, *weights, opset=opset, atol=1e-5)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("both", [False, True])
def test_a_dynamic_hidden_size_is_a_scan(kind, both):
    overload, gates, states, _ = KINDS[kind]
    directions = 2 if both else 1
    shapes = ((gates * 4, 3), (gates * 4, 4), (gates * 4,), (gates * 4,))
    params = [torch.randn(shape) for shape in shapes * directions]
    hidden = [torch.randn(directions, 2, 4) for _ in range(states)]
    first = hidden if states == 2 else hidden[0]
    flags = (True, 1, 0.0, False, both, False)
    expect = f"Scan:{directions}"
    kit.check_op(overload, torch.randn(5, 2, 3), first, params, *flags, expect=expect, atol=1e-5)


@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True, "bias": False}])
@pytest.mark.parametrize("opset", [11, 20])
def test_a_projection_is_a_scan(states, options, opset, run):
    layer = torch.nn.LSTM(3, 4, proj_size=2, **options)
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)

    def made(time, batch):
        state = (torch.randn(count, batch, 2), torch.randn(count, batch, 4))
        return (torch.randn(time, batch, 3), *([state] if states else []))

    shapes = ({0: DYNAMIC, 1: DYNAMIC}, *([({1: DYNAMIC}, {1: DYNAMIC})] if states else []))
    run(layer, made(5, 2), shapes, [made(7, 3), made(1, 1)], opset)


class Packed(torch.nn.Module):
    def __init__(self, layer, is_sorted, total, states):
        super().__init__()
        self.layer = layer
        self.is_sorted, self.total, self.states = is_sorted, total, states

    def forward(self, x, lengths, state):
        first = self.layer.batch_first
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            x, lengths, batch_first=first, enforce_sorted=self.is_sorted
        )
        y, end = self.layer(packed, state) if self.states else self.layer(packed)
        total = x.shape[1 if first else 0] if self.total else None
        y, n = torch.nn.utils.rnn.pad_packed_sequence(
            y, batch_first=first, padding_value=-3.0, total_length=total
        )
        return y, n, end, state


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.nn.GRU, {}),
        (torch.nn.RNN, {"bidirectional": True, "batch_first": True}),
        (torch.nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
        (torch.nn.LSTM, {"proj_size": 2, "bidirectional": True}),
    ],
)
def test_packed_sequences(kind, options, is_sorted, total, states, run):
    layer = kind(3, 4, **options)
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)

    def made(time, lengths):
        lengths = sorted(lengths, reverse=True) if is_sorted else lengths
        batch = len(lengths)
        x = torch.randn(batch, time, 3) if layer.batch_first else torch.randn(time, batch, 3)
        state = [torch.randn(count, batch, size) for size in (options.get("proj_size", 4), 4)]
        return x, torch.tensor(lengths), tuple(state) if kind is torch.nn.LSTM else state[0]

    batch = {1: DYNAMIC}
    shapes = ({0: DYNAMIC, 1: DYNAMIC}, {0: DYNAMIC}, (batch, batch) if kind is torch.nn.LSTM else batch)
    module = Packed(layer, is_sorted, total, states)
    run(module, made(6, [2, 5, 1]), shapes, [made(7, [3, 7]), made(4, [1]), made(3, [2, 3, 1, 1])], 20)


def test_lengths_that_the_model_knows(run):
    class Known(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.GRU(3, 4)

        def forward(self, x):
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, [4, 2])
            return torch.nn.utils.rnn.pad_packed_sequence(self.layer(packed)[0])[0]

    run(Known(), (torch.randn(5, 2, 3),), None, [(torch.randn(5, 2, 3),)], 20)


@given(dtype=kit.dtypes("int"), cell=st.sampled_from(["rnn_tanh", "rnn_relu"]))
def test_plain_cells_take_integers(dtype, cell):
    x, state = kit.make_tensor(dtype, (2, 3)), kit.make_tensor(dtype, (2, 4), 1)
    weights = kit.make_tensor(dtype, (4, 3), 2), kit.make_tensor(dtype, (4, 4), 3)
    kit.check_op(CELLS[cell].default, x, state, *weights)
