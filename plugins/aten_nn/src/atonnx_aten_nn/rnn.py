"""Recurrent layers: one ONNX node a layer, which runs both directions, where ONNX has the layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.weights import Derived, Recipe
from atonnx.dispatch import Table
from atonnx_aten_nn._common import known, sizes_of, used
from atonnx_aten_nn.dropout import drop
from atonnx_aten_nn.rnn_cells import Step, gru_step, lstm_step, relu_step, scanned, tanh_step

aten = torch.ops.aten
table = Table(__name__)

Params = Sequence[Value]
Emit = Callable[[str, Sequence[Any], dict[str, Any]], Any]


# ------------------------------------------------------------------- weights


@dataclass(frozen=True)
class Gates(Recipe):
    """A layer's weights or biases as ONNX has them: gates in ``order``, directions along a new first axis.

    Each direction has ``joined`` sources, one below the other.
    """

    order: tuple[int, ...]
    joined: int = 1

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        """A view where nothing has to move."""
        rows = [self._ordered(source) for source in sources]
        if self.joined > 1:
            rows = [torch.cat(rows[i : i + self.joined]) for i in range(0, len(rows), self.joined)]
        return rows[0][None] if len(rows) == 1 else torch.stack(rows)

    def _ordered(self, source: torch.Tensor) -> torch.Tensor:
        if self.order == tuple(range(len(self.order))):
            return source
        gates = source.chunk(len(self.order))
        return torch.cat([gates[i] for i in self.order])

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        """Gather of rows, Concat, Reshape."""

        def emit(op_type: str, inputs: Sequence[Any], attributes: dict[str, Any]) -> Any:
            values = [
                x if isinstance(x, ir.Value) else tape.initializer(ir.tensor(x), name=f"{op_type}_{i}")
                for i, x in enumerate(inputs)
            ]
            return tape.op(op_type, values, attributes)

        shapes = [tuple(source.shape.numpy()) for source in sources if source.shape is not None]
        return self.emit(emit, sources, shapes)

    def emit(self, emit: Emit, sources: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> Any:
        """The nodes, for weights that the model computes."""
        rows = []
        for source, shape in zip(sources, shapes, strict=True):
            index = np.arange(shape[0]).reshape(len(self.order), -1)[list(self.order)].reshape(-1)
            same = self.order == tuple(range(len(self.order)))
            rows.append(source if same else emit("Gather", [source, index], {"axis": 0}))
        stacked = []
        for i in range(0, len(rows), self.joined):
            row = rows[i] if self.joined == 1 else emit("Concat", rows[i : i + self.joined], {"axis": 0})
            target = np.array([1, self.joined * shapes[i][0], *shapes[i][1:]])
            stacked.append(emit("Reshape", [row, target], {}))
        return stacked[0] if len(stacked) == 1 else emit("Concat", stacked, {"axis": 0})


def _laid_out(op: Builder, recipe: Gates, sources: Sequence[Value]) -> Value:
    """A derived initializer; nodes where the model computes its weights."""
    tensors = [s.const_value for s in sources]
    found = [t for t in tensors if t is not None]
    if len(found) < len(tensors) or any(s.producer() is not None for s in sources):

        def emit(op_type: str, inputs: Sequence[Any], attributes: dict[str, Any]) -> Any:
            return op.call("", op_type, *inputs, **attributes)

        shapes = [tuple(known(op, size, "size of a weight") for size in sizes_of(s)) for s in sources]
        return recipe.emit(emit, sources, shapes)
    root = op.session.root
    key = (recipe, tuple(map(id, sources)))
    value = root.constants.get(key)
    if value is None:
        name = op.session.unique(f"{sources[0].name}_onnx")
        tensor = Derived(recipe, *found, name=name)
        dims = tuple(tensor.shape.numpy())
        value = Value(scope=root, dtype=tensor.dtype, dims=dims, name=name, const_value=tensor)
        root.constants[key] = value
    return value


# -------------------------------------------------------------------- layers


@dataclass(frozen=True)
class _Kind:
    """An ONNX operator, and the order in which it has torch's gates."""

    op_type: str
    order: tuple[int, ...]
    step: Step
    activation: str | None = None


_LSTM = _Kind("LSTM", (0, 3, 1, 2), lstm_step)
_KINDS = {
    "aten::gru": _Kind("GRU", (1, 0, 2), gru_step),
    "aten::rnn_tanh": _Kind("RNN", (0,), tanh_step, "Tanh"),
    "aten::rnn_relu": _Kind("RNN", (0,), relu_step, "Relu"),
}


def _is_zero(value: Value) -> bool:
    """Whether a state is the zeros that torch makes where the caller gives none: ONNX's default too."""
    node = value.producer()
    while node is not None and node.op_type in ("Expand", "Reshape", "Identity", "Transpose"):
        value = node.inputs[0]  # type: ignore[assignment]
        node = value.producer()
    if node is not None:
        fill = node.attributes.get("value")
        return node.op_type == "ConstantOfShape" and (fill is None or not fill.as_tensor().numpy().any())
    tensor = value.const_value
    return isinstance(tensor, ir.Tensor) and not tensor.numpy().any()


def _states(op: Builder, state: Value, layers: int, directions: int) -> Sequence[Value | None]:
    """The part of the initial state for each layer."""
    if _is_zero(state):
        return (None,) * layers
    if layers == 1:
        return (state,)
    return op.Split(state, [directions] * layers, axis=0, outputs=layers)


def recurrent(
    op: Builder,
    kind: _Kind,
    x: Value,
    states: Sequence[Value],
    params: Params,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    lengths: Value | None = None,
) -> tuple[Value | None, ...]:
    """All layers; the last output, and the final states of all layers."""
    directions = 2 if bidirectional else 1
    size = len(params) // (num_layers * directions)
    groups = [params[i : i + size] for i in range(0, len(params), size)]
    initial = [_states(op, state, num_layers, directions) for state in states]
    outputs = next((i + 1 for i in range(len(states), 0, -1) if used(op, i)), 1)
    final: list[list[Value]] = [[] for _ in range(outputs - 1)]
    if batch_first:
        x = op.Transpose(x, perm=[1, 0, 2])
    for layer in range(num_layers):
        mine = groups[layer * directions : (layer + 1) * directions]
        begin = [state[layer] for state in initial]
        hidden = sizes_of(mine[0][1])[-1]
        projected = size % 2 == 1
        if projected or not isinstance(hidden, int):
            y, *ends = _written_out(op, kind, x, begin, states, mine, lengths)
        else:
            y, *ends = _node(op, kind, x, begin, mine, hidden, has_biases, lengths, outputs)
        for collected, end in zip(final, ends, strict=False):
            collected.append(end)
        last = layer == num_layers - 1
        x = _sequence(op, y, directions, batch_first and last)
        if train and dropout and not last:
            x = drop(op, x, dropout)
    finals = [ends[0] if len(ends) == 1 else op.Concat(*ends, axis=0) for ends in final]
    return (x, *finals, *(None,) * (len(states) - len(finals)))


def _node(
    op: Builder,
    kind: _Kind,
    x: Value,
    begin: Sequence[Value | None],
    params: Sequence[Params],
    hidden: int,
    has_biases: bool,
    lengths: Value | None,
    outputs: int,
) -> Sequence[Value]:
    """A layer as ONNX's node: [time, directions, batch, hidden], and the last states."""
    biases = [b for group in params for b in group[2:]]
    made: Sequence[Value] = op.call(
        "",
        kind.op_type,
        x,
        _laid_out(op, Gates(kind.order), [group[0] for group in params]),
        _laid_out(op, Gates(kind.order), [group[1] for group in params]),
        _laid_out(op, Gates(kind.order, 2), biases) if has_biases else None,
        lengths,
        *begin,
        hidden_size=hidden,
        direction="bidirectional" if len(params) == 2 else None,
        activations=[kind.activation] * len(params) if kind.activation else None,
        linear_before_reset=1 if kind.op_type == "GRU" else None,
        outputs=outputs,
    )
    return made


def _written_out(
    op: Builder,
    kind: _Kind,
    x: Value,
    begin: Sequence[Value | None],
    states: Sequence[Value],
    params: Sequence[Params],
    lengths: Value | None,
) -> list[Value]:
    """The same as a Scan for each direction: ONNX has no projection, and fixes the hidden size."""
    active = None
    if lengths is not None:
        steps = op.Unsqueeze(op.Range(0, op.Squeeze(op.Shape(x, start=0, end=1), [0]), 1), [1, 2])
        active = op.Less(steps, op.Unsqueeze(op.cast(lengths, ir.DataType.INT64), [0, 2]))
    made = []
    for direction, mine in enumerate(params):
        first = [
            op.expand(op.const(0.0, x.dtype), sizes_of(whole)[1:])
            if state is None
            else op.reshape(op.Gather(state, direction, axis=0), sizes_of(whole)[1:])
            for state, whole in zip(begin, states, strict=True)
        ]
        made.append(scanned(op, kind.step, x, first, mine, direction == 1, active))
    joined = []
    for i, parts in enumerate(zip(*made, strict=True)):
        axis = 1 if i == 0 else 0
        apart = [op.Unsqueeze(part, [axis]) for part in parts]
        joined.append(apart[0] if len(apart) == 1 else op.Concat(*apart, axis=axis))
    return joined


def _sequence(op: Builder, y: Value, directions: int, batch_first: bool) -> Value:
    """[time, directions, batch, hidden] with the directions side by side."""
    if directions == 1:
        y = op.Squeeze(y, [1])
        return op.Transpose(y, perm=[1, 0, 2]) if batch_first else y
    y = op.Transpose(y, perm=[2, 0, 1, 3] if batch_first else [0, 2, 1, 3])
    return op.Reshape(y, op.shape([0, 0, op.outs[0].dims[-1]]))


def _packed(
    op: Builder,
    kind: _Kind,
    data: Value,
    batch_sizes: Value,
    states: Sequence[Value],
    params: Params,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Value | None, ...]:
    """A packed batch: padded, given to the layers with the lengths of its sequences, packed again."""
    sizes = op.Unsqueeze(batch_sizes, [1])
    numbers = op.Range(0, op.size(sizes_of(states[0])[1]), 1)
    real = op.Less(op.Unsqueeze(numbers, [0]), sizes)
    begins = op.Sub(op.CumSum(batch_sizes, op.const(0, ir.DataType.INT64)), batch_sizes)
    places = op.Where(real, op.Add(op.Unsqueeze(begins, [1]), numbers), 0)
    lengths = op.ReduceSum(op.cast(real, ir.DataType.INT32), [0], keepdims=0)
    x = op.Gather(data, places, axis=0)
    flags = (params, has_biases, num_layers, dropout, train, bidirectional)
    y, *ends = recurrent(op, kind, x, states, *flags, False, lengths)
    return (op.GatherND(y, op.Transpose(op.NonZero(real), perm=[1, 0])), *ends)


@table.translate(aten.lstm.input)
def lstm(
    op: Builder,
    input: Value,
    hx: Sequence[Value],
    params: Params,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value | None, ...]:
    """LSTM, once a layer."""
    return recurrent(
        op, _LSTM, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    )


@table.translate(aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input)
def gru_or_rnn(
    op: Builder,
    input: Value,
    hx: Value,
    params: Params,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value | None, ...]:
    """GRU, the reset gate after the linear part, or RNN, once a layer."""
    kind = _KINDS[op.origin.op.partition(".")[0]]
    return recurrent(
        op, kind, input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    )


@table.translate(aten.lstm.data)
def lstm_packed(
    op: Builder,
    data: Value,
    batch_sizes: Value,
    hx: Sequence[Value],
    params: Params,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Value | None, ...]:
    """LSTM, once a layer, with the lengths of the sequences."""
    return _packed(
        op,
        _LSTM,
        data,
        batch_sizes,
        hx,
        params,
        has_biases,
        num_layers,
        dropout,
        train,
        bidirectional,
    )


@table.translate(aten.gru.data, aten.rnn_tanh.data, aten.rnn_relu.data)
def packed_gru_or_rnn(
    op: Builder,
    data: Value,
    batch_sizes: Value,
    hx: Value,
    params: Params,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Value | None, ...]:
    """GRU or RNN, once a layer, with the lengths of the sequences."""
    kind = _KINDS[op.origin.op.partition(".")[0]]
    flags = (params, has_biases, num_layers, dropout, train, bidirectional)
    return _packed(op, kind, data, batch_sizes, [hx], *flags)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample, Weight

    def one(gates: int, states: int, packed: bool = False) -> Callable[[], tuple[Any, ...]]:
        def made() -> tuple[Any, ...]:
            hidden = [torch.randn(2, 2, 4) for _ in range(states)]
            shapes = ((gates * 4, 3), (gates * 4, 4), (gates * 4,), (gates * 4,))
            params = [Weight(torch.randn(shape)) for shape in shapes * 2]
            flags = (True, 1, 0.0, False, True)
            state = hidden if states > 1 else hidden[0]
            if packed:
                return torch.randn(8, 3), torch.tensor([2, 2, 2, 1, 1]), state, params, *flags
            return torch.randn(5, 2, 3), state, params, *flags, False

        return made

    return [
        OpSample(aten.lstm.input, one(4, 2), expect="LSTM:1"),
        OpSample(aten.lstm.data, one(4, 2, packed=True), expect="LSTM:1"),
        OpSample(aten.gru.input, one(3, 1), expect="GRU:1"),
        OpSample(aten.gru.data, one(3, 1, packed=True), expect="GRU:1"),
        OpSample(aten.rnn_tanh.input, one(1, 1), expect="RNN:1"),
        OpSample(aten.rnn_tanh.data, one(1, 1, packed=True), expect="RNN:1"),
        OpSample(aten.rnn_relu.input, one(1, 1), expect="RNN:1"),
        OpSample(aten.rnn_relu.data, one(1, 1, packed=True), expect="RNN:1"),
    ]
