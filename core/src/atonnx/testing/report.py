"""What a failed check says: the fault, whose it is, and a script that shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import torch

from atonnx.testing.arguments import Size, Weight

__all__ = ["failure_text", "script"]

_LONGEST = 60  # lines of a model's text


def failure_text(
    overload: Any,
    *,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    opset: int,
    dynamic: bool,
    model: onnx.ModelProto,
    problem: str,
    verdict: str = "",
) -> str:
    """The text of an AssertionError."""
    lines = onnx.printer.to_text(_plain(model)).splitlines()
    if len(lines) > _LONGEST:
        lines = [*lines[:_LONGEST], f"... {len(lines) - _LONGEST} more lines"]
    parts = [f"{overload} at opset {opset}: {problem}"]
    if verdict:
        parts.append(f"whose fault: {verdict}")
    parts += ["the model:", *(f"  {line}" for line in lines)]
    parts += ["to see it again:", *(f"  {line}" for line in script(overload, args, kwargs, opset, dynamic))]
    return "\n".join(parts)


def _plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without metadata."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for part in [made, made.graph, *made.graph.node, *made.graph.input, *made.graph.output]:
        del part.metadata_props[:]
    del made.graph.value_info[:]
    return made


def script(
    overload: Any, args: Sequence[Any], kwargs: Mapping[str, Any], opset: int, dynamic: bool
) -> list[str]:
    """Lines of Python that check the same call again."""
    names: dict[int, str] = {}
    lines = ["import torch", "from math import inf, nan", "from atonnx import testing as kit", ""]

    def spelled(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            if id(value) not in names:
                names[id(value)] = f"t{len(names)}"
                lines.append(f"{names[id(value)]} = {_tensor(value)}")
            return names[id(value)]
        if isinstance(value, Weight):
            return f"kit.Weight({spelled(value.tensor)}, {value.kind!r})"
        if isinstance(value, Size):
            if value.function is None:
                return f"kit.Size({spelled(value.operands[0])}, {value.operands[1]})"
            operands = [spelled(operand) for operand in value.operands]
            sign = _SIGNS[value.function.__name__]
            return f"({f' {sign} '.join(operands)})" if len(operands) > 1 else f"({sign}{operands[0]})"
        if isinstance(value, (list, tuple)):
            inner = ", ".join(spelled(item) for item in value)
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
        return repr(value)

    words = [spelled(arg) for arg in args]
    words += [f"{name}={spelled(value)}" for name, value in kwargs.items()]
    words += [f"opset={opset}"] + ([] if dynamic else ["dynamic=False"])
    return [*lines, f"kit.check_op(torch.ops.{overload}, {', '.join(words)})"]


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "neg": "-"}


def _tensor(tensor: torch.Tensor) -> str:
    data = tensor.detach().resolve_conj().resolve_neg()
    if data.dtype in (torch.float16, torch.bfloat16):
        data = data.double()
    if not data.numel():
        return f"torch.empty({list(tensor.shape)}, dtype={tensor.dtype})"
    return f"torch.tensor({data.tolist()}, dtype={tensor.dtype})"
