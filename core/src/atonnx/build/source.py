"""What the translator works on: a graph module with what its placeholders and outputs stand for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree

__all__ = ["USER_OUTPUTS", "InputSpec", "OutputSpec", "Source", "from_program"]

USER_OUTPUTS = ("USER_OUTPUT", "LOSS_OUTPUT")


@dataclass(frozen=True, slots=True)
class InputSpec:
    """A placeholder: ``kind`` is the name of torch.export's InputKind; ``tensor`` a weight's data."""

    kind: str
    name: str
    target: str | None = None
    persistent: bool | None = None
    tensor: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """An output: ``kind`` is the name of torch.export's OutputKind."""

    kind: str
    target: str | None = None


@dataclass(slots=True)
class Source:
    """A graph module, its inputs in the order of the placeholders, its outputs in theirs.

    ``structure`` is how the user's outputs are nested.
    """

    graph_module: torch.fx.GraphModule
    inputs: list[InputSpec]
    outputs: list[OutputSpec]
    ranges: dict[Any, Any] = field(default_factory=dict)
    signature_text: str = ""
    structure: pytree.TreeSpec | None = None

    def placeholders(self) -> list[torch.fx.Node]:
        """The nodes of the inputs."""
        return [node for node in self.graph_module.graph.nodes if node.op == "placeholder"]

    def results(self) -> tuple[Any, ...]:
        """What the graph returns: nodes and constants."""
        (found,) = self.graph_module.graph.output_node().args
        return tuple(found) if isinstance(found, (list, tuple)) else (found,)


def from_program(program: torch.export.ExportedProgram) -> Source:
    """The parts of an ExportedProgram that translation needs; no tensor is copied."""
    constants = program.constants
    state = program.state_dict
    inputs = []
    for spec in program.graph_signature.input_specs:
        kind = spec.kind.name
        tensor = None
        if kind in ("PARAMETER", "BUFFER"):
            tensor = state.get(spec.target)
            if tensor is None:
                tensor = constants.get(spec.target)
        elif kind == "CONSTANT_TENSOR":
            tensor = constants.get(spec.target)
        name = getattr(spec.arg, "name", "")
        inputs.append(InputSpec(kind, name, spec.target, spec.persistent, tensor))
    outputs = [OutputSpec(spec.kind.name, spec.target) for spec in program.graph_signature.output_specs]
    return Source(
        program.graph_module,
        inputs,
        outputs,
        dict(program.range_constraints),
        str(program.graph_signature),
        program.call_spec.out_spec,
    )
