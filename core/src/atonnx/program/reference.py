"""What the captured program computes, in the layout of the graph's outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir
import torch
from torch.export.graph_signature import InputKind

from atonnx.program.arguments import copied, flat, state_inputs

__all__ = ["Reference", "graph_layout"]

_OUTPUT_KIND = "pkg.torch.export.graph_signature.OutputSpec.kind"
_ORIGINAL = "pkg.torch.onnx.original_node_name"


class Reference:
    """The captured program in eager mode, with the weights that were applied.

    Calling it changes neither the arguments nor the program's state, nor the random numbers to come.
    """

    def __init__(
        self,
        captured: torch.export.ExportedProgram,
        model: ir.Model,
        applied: Mapping[str, torch.Tensor],
        *,
        guarded: bool = False,
    ) -> None:
        self._captured = captured
        self._model = model
        self._applied = applied
        self._module = captured.module(check_guards=guarded)
        self._buffers = dict(self._module.named_buffers(remove_duplicate=False))
        known = {n for n, _ in self._module.named_parameters(remove_duplicate=False)} | self._buffers.keys()
        self._weights = {name: tensor for name, tensor in applied.items() if name in known}

    def guarded(self) -> Reference:
        """The same, which refuses what the capture did not allow for."""
        return Reference(self._captured, self._model, self._applied, guarded=True)

    def state(self) -> dict[str, torch.Tensor]:
        """The buffers that are inputs of the graph, by the inputs' names."""
        return {name: self._buffer(target).clone() for name, target in self._state_targets().items()}

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
        """The outputs as the graph has them: numbers as tensors, complex tensors as pairs, no None."""
        args, kwargs = copied(self._captured, args, kwargs)
        with self._undone(), torch.no_grad(), torch.random.fork_rng(devices=[]):
            result = torch.func.functional_call(self._module, self._weights, tuple(args), dict(kwargs))
            leaves = self._captured.call_spec.out_spec.flatten_up_to(result)
            outputs = [leaf for leaf in leaves if leaf is not None] + self._written(args, kwargs)
            return [graph_layout(output).clone() for output in outputs]

    def intermediates(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The tensors that nodes of the captured program give, by the nodes' names."""
        recorder = _Recorder(self._module)
        leaves = flat(self._captured, *copied(self._captured, args, kwargs))
        with self._undone(), torch.no_grad(), torch.random.fork_rng(devices=[]):
            weights = {f"module.{name}": tensor for name, tensor in self._weights.items()}
            torch.func.functional_call(recorder, weights, tuple(leaves))
        return recorder.found

    @contextmanager
    def _undone(self) -> Iterator[None]:
        """What is written meanwhile into the module's state, which is the user's model's, is undone."""
        written = {*self._buffers.values(), *(self._weights[n] for n in self._weights if n in self._buffers)}
        states = [(buffer, buffer._version, buffer.clone()) for buffer in written]
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, version, before in states:
                    if buffer._version != version:
                        buffer.copy_(before)

    def _written(self, args: Any, kwargs: Any) -> list[torch.Tensor]:
        """What the run wrote into buffers and inputs, for the outputs that have it."""
        leaves = dict(zip(self._input_names(), flat(self._captured, args, kwargs), strict=False))
        targets = iter(self._state_targets().values())
        values = []
        for output in self._model.graph.outputs:
            kind = output.metadata_props.get(_OUTPUT_KIND)
            if kind == "BUFFER_MUTATION":
                values.append(self._buffer(next(targets)))
            elif kind == "USER_INPUT_MUTATION":
                values.append(leaves[str(output.name).removesuffix("_new")])
        return values

    def _buffer(self, target: str) -> torch.Tensor:
        return self._weights.get(target, self._buffers[target])

    def _input_names(self) -> list[str]:
        specs = self._captured.graph_signature.input_specs
        return [getattr(spec.arg, "name", "") for spec in specs if spec.kind == InputKind.USER_INPUT]

    def _state_targets(self) -> dict[str, str]:
        """The buffer of each input that brings one in."""
        found = {}
        targets = {getattr(s.arg, "name", ""): s.target for s in self._captured.graph_signature.input_specs}
        for value in state_inputs(self._model.graph.inputs):
            original = value.metadata_props.get(_ORIGINAL, "")
            names = (value.name, original, targets.get(original))
            found[str(value.name)] = str(next(name for name in names if name in self._buffers))
        return found


class _Recorder(torch.nn.Module):
    """Runs a graph module node by node, and keeps the tensors as they are when they are made."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__()
        self.module = module
        self.found: dict[str, torch.Tensor] = {}

    def forward(self, *leaves: Any) -> None:
        found = self.found

        class Interpreter(torch.fx.Interpreter):
            def run_node(self, n: torch.fx.Node) -> Any:
                result = super().run_node(n)
                if isinstance(result, torch.Tensor):
                    found[n.name] = graph_layout(result).clone()
                return result

        Interpreter(self.module).run(*leaves, enable_io_processing=False)


def graph_layout(leaf: Any) -> torch.Tensor:
    """A result as the graph has it."""
    if isinstance(leaf, float):
        return torch.tensor(leaf, dtype=torch.float64)
    if not isinstance(leaf, torch.Tensor):
        return torch.tensor(leaf)
    leaf = leaf.detach()
    return torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf
