"""Recurrent operators of doubles, as Scan over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from atonnx.build import Body, Builder, Value
from atonnx_ort_target.rows import Rows

rows = Rows()
D = ir.DataType

_DIRECTIONS = {"forward": (0,), "reverse": (1,), "bidirectional": (0, 1)}
_END = 2**62

# Writes one step: the body, the input's part of the gates, the states, the recurrent weights and bias.
Cell = Callable[[Body, Value, "list[Value]", Value, "Value | None"], "list[Value]"]


def _scanned(
    op: Builder,
    cell: Cell,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None,
    states: Sequence[Value | None],
    direction: str,
    hidden: int,
    gates: int,
) -> tuple[Value, ...]:
    """All states over time of the first kind, then the last states, for each direction."""
    batch = op.Slice(op.Shape(x), [1], [2])
    zeros = op.Expand(op.const(0.0, x.dtype), op.Concat(batch, [hidden], axis=0))
    along: list[Value] = []
    last: list[list[Value]] = [[] for _ in states]
    for index, backwards in enumerate(_DIRECTIONS[direction]):
        mine = [zeros if state is None else op.Gather(state, index) for state in states]
        given = op.MatMul(x, op.Transpose(op.Gather(w, index), perm=[1, 0]))
        weights = op.Transpose(op.Gather(r, index), perm=[1, 0])
        bias = None
        if b is not None:
            both = op.Gather(b, index)
            given = op.Add(given, op.Slice(both, [0], [gates * hidden]))
            bias = op.Slice(both, [gates * hidden], [_END])
        with op.body("step") as body:
            inside = [body.input("state", x.dtype, (None, hidden)) for _ in mine]
            now = body.input("input", x.dtype, (None, gates * hidden))
            after = cell(body, now, inside, weights, bias)
            body.output(*after, after[0])
        *ends, every = op.Scan(
            *mine,
            given,
            body=body.graph,
            num_scan_inputs=1,
            scan_input_directions=[backwards],
            scan_output_directions=[backwards],
            outputs=len(mine) + 1,
        )
        along.append(op.Unsqueeze(every, [1]))
        for found, end in zip(last, ends, strict=True):
            found.append(op.Unsqueeze(end, [0]))
    joined = [along[0] if len(along) == 1 else op.Concat(*along, axis=1)]
    joined += [found[0] if len(found) == 1 else op.Concat(*found, axis=0) for found in last]
    return tuple(joined)


def _products(op: Body, state: Value, weights: Value, bias: Value | None) -> Value:
    made = op.MatMul(state, weights)
    return made if bias is None else op.Add(made, bias)


def _parts(op: Body, x: Value, hidden: int, count: int) -> list[Value]:
    return [op.Slice(x, [i * hidden], [(i + 1) * hidden], [1]) for i in range(count)]


def _usual(attrs: dict[str, Any], activations: Sequence[str], directions: int) -> bool:
    """Whether there is nothing that is not the default."""
    found = attrs.pop("activations", None)
    if found is not None and list(found) != list(activations) * directions:
        return False
    return not any(attrs.get(name) for name in ("layout", "clip", "input_forget", "activation_alpha"))


@rows.on("RNN", D.DOUBLE)
def rnn(
    op: Builder,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    lengths: Value | None = None,
    initial: Value | None = None,
    *,
    hidden_size: int,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    **attrs: Any,
) -> Any:
    """Scan of Tanh or Relu."""
    kinds = set(activations or ["Tanh"])
    kind = kinds.pop()
    if lengths is not None or kinds or kind not in ("Tanh", "Relu") or not _usual(attrs, (), 1):
        return NotImplemented

    def cell(op: Body, now: Value, states: list[Value], weights: Value, bias: Value | None) -> list[Value]:
        return [getattr(op, kind)(op.Add(now, _products(op, states[0], weights, bias)))]

    made = _scanned(op, cell, x, w, r, b, [initial], direction, hidden_size, 1)
    return made[: op.asked_outputs]


@rows.on("GRU", D.DOUBLE)
def gru(
    op: Builder,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    lengths: Value | None = None,
    initial: Value | None = None,
    *,
    hidden_size: int,
    direction: str = "forward",
    linear_before_reset: int = 0,
    **attrs: Any,
) -> Any:
    """Scan of the three gates."""
    usual = _usual(attrs, ("Sigmoid", "Tanh"), len(_DIRECTIONS[direction]))
    if lengths is not None or not usual or not linear_before_reset:
        return NotImplemented

    def cell(op: Body, now: Value, states: list[Value], weights: Value, bias: Value | None) -> list[Value]:
        (state,) = states
        given = _parts(op, now, hidden_size, 3)
        held = _parts(op, _products(op, state, weights, bias), hidden_size, 3)
        keep, reset = (op.Sigmoid(op.Add(given[i], held[i])) for i in (0, 1))
        new = op.Tanh(op.Add(given[2], op.Mul(reset, held[2])))
        return [op.Add(new, op.Mul(keep, op.Sub(state, new)))]

    made = _scanned(op, cell, x, w, r, b, [initial], direction, hidden_size, 3)
    return made[: op.asked_outputs]


@rows.on("LSTM", D.DOUBLE)
def lstm(
    op: Builder,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    lengths: Value | None = None,
    initial_h: Value | None = None,
    initial_c: Value | None = None,
    peepholes: Value | None = None,
    *,
    hidden_size: int,
    direction: str = "forward",
    **attrs: Any,
) -> Any:
    """Scan of the four gates."""
    usual = _usual(attrs, ("Sigmoid", "Tanh", "Tanh"), len(_DIRECTIONS[direction]))
    if lengths is not None or peepholes is not None or not usual:
        return NotImplemented

    def cell(op: Body, now: Value, states: list[Value], weights: Value, bias: Value | None) -> list[Value]:
        hidden, memory = states
        gates = _parts(op, op.Add(now, _products(op, hidden, weights, bias)), hidden_size, 4)
        take, give, keep = (op.Sigmoid(gate) for gate in gates[:3])
        memory = op.Add(op.Mul(keep, memory), op.Mul(take, op.Tanh(gates[3])))
        return [op.Mul(give, op.Tanh(memory)), memory]

    made = _scanned(op, cell, x, w, r, b, [initial_h, initial_c], direction, hidden_size, 4)
    return made[: op.asked_outputs]
