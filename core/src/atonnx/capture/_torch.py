"""The only module of the capture that touches private names of torch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload

from atonnx.build._torch import oblivious

__all__ = [
    "HigherOrderOperator",
    "export_module",
    "functional_retrace",
    "refine_shapes",
    "replaced_kernels",
    "torch_export_flag",
]


@contextlib.contextmanager
def torch_export_flag() -> Iterator[None]:
    """``torch.onnx.is_in_onnx_export()`` is True within."""
    from torch.onnx._internal.exporter import _flags

    before = _flags._is_onnx_exporting
    _flags._is_onnx_exporting = True
    try:
        yield
    finally:
        _flags._is_onnx_exporting = before


def export_module(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, strict: bool
) -> torch.export.ExportedProgram:
    """torch.export with sizes 0 and 1 of dynamic dims kept dynamic."""
    with oblivious():
        return torch.export.export(
            model,
            args,
            kwargs,
            dynamic_shapes=dynamic_shapes,
            strict=strict,
            prefer_deferred_runtime_asserts_over_guards=True,
        )


def refine_shapes(error: Exception, dynamic_shapes: Any) -> Any:
    """Dynamic shapes with the fixes that torch.export's error suggests; None where it suggests none."""
    if not isinstance(error, torch._dynamo.exc.UserError) or dynamic_shapes is None:
        return None
    try:
        return torch.export.dynamic_shapes.refine_dynamic_shapes_from_suggested_fixes(
            error.msg, dynamic_shapes
        )
    except Exception:
        return None


def functional_retrace(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program without writes and autocast regions.

    The guards module is left out, since it cannot be retraced where an input is a cache object.
    """
    graph_module = program.graph_module
    guards = [
        node
        for node in graph_module.graph.nodes
        if node.op == "call_module" and str(node.target).startswith("_guards")
    ]
    for node in guards:
        graph_module.graph.erase_node(node)
    with oblivious():
        retraced: torch.export.ExportedProgram = program.run_decompositions({})
        return retraced


@contextlib.contextmanager
def replaced_kernels(overload: OpOverload, kernel: Callable[..., Any]) -> Iterator[None]:
    """``kernel`` in place of the overload's composite and autograd kernels."""
    keys = (torch.DispatchKey.CompositeImplicitAutograd, torch.DispatchKey.Autograd)
    before = {key: overload.py_kernels.get(key) for key in keys}
    for key in keys:
        overload.py_kernels[key] = kernel
    overload._dispatch_cache.clear()
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                overload.py_kernels.pop(key, None)
            else:
                overload.py_kernels[key] = old
        overload._dispatch_cache.clear()
