"""Recurrent cells, and layers that no ONNX operator has, as Scan of their cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import D, sizes_of

aten = torch.ops.aten
table = Table(__name__)

# One step: the input's part of the gates, the states, recurrent weights and biases.
Step = Callable[[Builder, Value, Sequence[Value], Value, "Value | None"], "list[Value]"]


def _linear(op: Builder, x: Value, weight: Value, bias: Value | None = None) -> Value:
    return op.translate(aten.linear.default, x, weight, bias)


def _gates(op: Builder, x: Value, count: int) -> Sequence[Value]:
    found: Sequence[Value] = op.Split(x, axis=-1, num_outputs=count, outputs=count)
    return found


def lstm_step(
    op: Builder, given: Value, states: Sequence[Value], weight: Value, bias: Value | None
) -> list[Value]:
    """The hidden state and the memory."""
    hidden, memory = states
    take, keep, new, give = _gates(op, op.Add(given, _linear(op, hidden, weight, bias)), 4)
    memory = op.Add(op.Mul(op.Sigmoid(keep), memory), op.Mul(op.Sigmoid(take), op.Tanh(new)))
    return [op.Mul(op.Sigmoid(give), op.Tanh(memory)), memory]


def gru_step(
    op: Builder, given: Value, states: Sequence[Value], weight: Value, bias: Value | None
) -> list[Value]:
    """The hidden state."""
    (state,) = states
    parts = zip(_gates(op, given, 3), _gates(op, _linear(op, state, weight, bias), 3), strict=True)
    (reset, held_reset), (keep, held_keep), (new, held) = parts
    gate = op.Sigmoid(op.Add(reset, held_reset))
    fresh = op.Tanh(op.Add(new, op.Mul(gate, held)))
    return [op.Add(fresh, op.Mul(op.Sigmoid(op.Add(keep, held_keep)), op.Sub(state, fresh)))]


def tanh_step(
    op: Builder, given: Value, states: Sequence[Value], weight: Value, bias: Value | None
) -> list[Value]:
    """The hidden state."""
    return [op.translate(aten.tanh.default, op.Add(given, _linear(op, states[0], weight, bias)))]


def relu_step(
    op: Builder, given: Value, states: Sequence[Value], weight: Value, bias: Value | None
) -> list[Value]:
    """The hidden state."""
    return [op.translate(aten.relu.default, op.Add(given, _linear(op, states[0], weight, bias)))]


def scanned(
    op: Builder,
    step: Step,
    x: Value,
    states: Sequence[Value],
    params: Sequence[Value],
    backwards: bool,
    active: Value | None,
) -> tuple[Value, ...]:
    """One direction of a layer: the outputs over time, then the last states.

    ``active`` tells which steps of each sequence are real: at others states stay and the output is 0.
    """
    weight, recurrent, *rest = params
    projection = rest.pop() if len(rest) % 2 else None
    bias, recurrent_bias = rest or (None, None)
    over_time = [_linear(op, x, weight, bias)]
    batch = sizes_of(states[0])[0]
    with op.body("step") as body:
        before = [body.input("state", state.dtype, sizes_of(state)) for state in states]
        now = body.input("input", x.dtype, (batch, None))
        after = step(body, now, before, recurrent, recurrent_bias)
        if projection is not None:
            after[0] = _linear(body, after[0], projection)
        emitted = after[0]
        if active is not None:
            over_time.append(active)
            real = body.input("active", D.BOOL, (batch, 1))
            emitted = body.Where(real, emitted, 0.0)
            after = [body.Where(real, new, old) for new, old in zip(after, before, strict=True)]
        body.output(*after, emitted)
    direction = 1 if backwards else 0
    *ends, every = op.Scan(
        *states,
        *over_time,
        body=body.graph,
        num_scan_inputs=len(over_time),
        scan_input_directions=[direction] * len(over_time),
        scan_output_directions=[direction],
        outputs=len(states) + 1,
    )
    return (every, *ends)


@table.translate(aten.lstm_cell.default)
def lstm_cell(
    op: Builder,
    input: Value,
    hx: Sequence[Value],
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None = None,
    b_hh: Value | None = None,
) -> tuple[Value, ...]:
    """Two linear layers, Split, Sigmoid and Tanh."""
    return tuple(lstm_step(op, _linear(op, input, w_ih, b_ih), hx, w_hh, b_hh))


@table.translate(aten.gru_cell.default)
def gru_cell(
    op: Builder,
    input: Value,
    hx: Value,
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None = None,
    b_hh: Value | None = None,
) -> Value:
    """Two linear layers, Split, Sigmoid and Tanh."""
    return gru_step(op, _linear(op, input, w_ih, b_ih), [hx], w_hh, b_hh)[0]


@table.translate(aten.rnn_tanh_cell.default)
def rnn_tanh_cell(
    op: Builder,
    input: Value,
    hx: Value,
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None = None,
    b_hh: Value | None = None,
) -> Value:
    """Tanh of the sum of two linear layers."""
    return tanh_step(op, _linear(op, input, w_ih, b_ih), [hx], w_hh, b_hh)[0]


@table.translate(aten.rnn_relu_cell.default)
def rnn_relu_cell(
    op: Builder,
    input: Value,
    hx: Value,
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None = None,
    b_hh: Value | None = None,
) -> Value:
    """Relu of the sum of two linear layers."""
    return relu_step(op, _linear(op, input, w_ih, b_ih), [hx], w_hh, b_hh)[0]


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample, Weight

    def one(gates: int, states: int, biases: bool = True) -> Callable[[], tuple[Any, ...]]:
        def made() -> tuple[Any, ...]:
            hidden = [torch.randn(2, 4) for _ in range(states)]
            shapes = ((gates * 4, 3), (gates * 4, 4), *[(gates * 4,)] * (2 if biases else 0))
            weights = [Weight(torch.randn(shape)) for shape in shapes]
            return torch.randn(2, 3), hidden if states > 1 else hidden[0], *weights

        return made

    return [
        OpSample(aten.lstm_cell.default, one(4, 2)),
        OpSample(aten.gru_cell.default, one(3, 1)),
        OpSample(aten.gru_cell.default, one(3, 1, biases=False)),
        OpSample(aten.rnn_tanh_cell.default, one(1, 1)),
        OpSample(aten.rnn_relu_cell.default, one(1, 1)),
    ]
