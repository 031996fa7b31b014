"""Recurrent networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack

pack = OpsetPack(__name__)


def _sequence_first(name: str, states: tuple[int, ...]) -> Callable[..., Any]:
    def row(op: Builder, x: Value, *inputs: Value | None, layout: int = 0, **attributes: Any) -> Any:
        values = list(inputs)
        for index in states:
            if index < len(values) and values[index] is not None:
                values[index] = op.Transpose(values[index], perm=[1, 0, 2])
        made = getattr(op, name)(
            op.Transpose(x, perm=[1, 0, 2]), *values, outputs=op.asked_outputs, **attributes
        )
        turned = [op.Transpose(made[0], perm=[2, 0, 1, 3])]
        turned += [op.Transpose(state, perm=[1, 0, 2]) for state in made[1:]]
        return tuple(turned)

    row.__doc__ = f"{name} with the sequence as its first axis; layout=1 has the batch there."
    return row


# Places of the states among the inputs after the first.
for _name, _states in {"GRU": (4,), "LSTM": (4, 5), "RNN": (4,)}.items():
    pack.same(_name, 7, 14, 22)
    pack.below(14, _name)(_sequence_first(_name, _states))
