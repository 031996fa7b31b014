"""The functional form of a program: for writes through views, autocast regions, vmap and Python calls."""

from __future__ import annotations

import copy

import torch

from atonnx.capture import _torch
from atonnx.errors import CaptureError

__all__ = ["functional_form", "needs_functional_form"]

# An autocast region, whose body lacks the casts that autocast makes, and a Python function's call.
_WRAPPED = ("wrap_with_autocast", "flat_apply")
_VMAP = "torch._functorch.predispatch"


def needs_functional_form(program: torch.export.ExportedProgram) -> bool:
    """Whether the program has what only a retrace writes out as operators."""
    return any(
        node.op == "call_function"
        and (
            getattr(node.target, "__name__", "") in _WRAPPED
            or getattr(node.target, "__module__", "") == _VMAP
        )
        for module in program.graph_module.modules()
        if isinstance(module, torch.fx.GraphModule)
        for node in module.graph.nodes
    )


def functional_form(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program retraced, every write a new value and every cast of autocast a node.

    Raises:
        CaptureError: torch cannot retrace it, or the retrace froze a dynamic size.
    """
    try:
        retraced = _torch.functional_retrace(copy.copy(program))
    except Exception as error:
        raise CaptureError(
            f"the functional form of the program cannot be made: {type(error).__name__}: {error}",
            attempts=[("run_decompositions", error)],
            hint="write the model without assigning to slices, e.g. with torch.where or torch.cat",
        ) from error
    before, after = _dynamic_sizes(program), _dynamic_sizes(retraced)
    if before != after:
        raise CaptureError(
            f"the functional form of the program froze sizes of its inputs: {before} became {after}",
            hint="write the model without assigning to slices of a tensor",
        )
    return retraced


def _dynamic_sizes(program: torch.export.ExportedProgram) -> list[tuple[str, ...]]:
    user = set(program.graph_signature.user_inputs)
    found = []
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in user:
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor):
                found.append(tuple(str(s) for s in value.shape))
    return found
