"""The only module of the capture that touches private names of torch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import sympy
import torch
from torch._ops import HigherOrderOperator, OpOverload

from atonnx.build._torch import FakeTensor, oblivious, unset_fake_temporarily

__all__ = [
    "HigherOrderOperator",
    "dim_names",
    "draft_export_module",
    "env_flag",
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
    deferred = env_flag("TORCH_ONNX_PREFER_DEFERRED_RUNTIME_ASSERTS_OVER_GUARDS", True)
    with oblivious(), _plain_isinstance() if strict else contextlib.nullcontext():
        return torch.export.export(
            model,
            args,
            kwargs,
            dynamic_shapes=dynamic_shapes,
            strict=strict,
            prefer_deferred_runtime_asserts_over_guards=deferred,
        )


def draft_export_module(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> tuple[torch.export.ExportedProgram, str]:
    """torch's draft export, which traces on where a condition hangs on data; what it reports."""
    with oblivious():
        program = torch.export.draft_export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    return program, str(getattr(program, "_report", ""))


def env_flag(name: str, default: bool) -> bool:
    """Whether a variable of the environment is 1, as torch.onnx reads its own."""
    value = os.environ.get(name)
    return default if value is None else value == "1"


@contextlib.contextmanager
def _plain_isinstance() -> Iterator[None]:
    """``torch.jit.isinstance`` is Python's own, which dynamo can trace."""
    before = torch.jit.isinstance
    torch.jit.isinstance = isinstance
    try:
        yield
    finally:
        torch.jit.isinstance = before


def dim_names(program: torch.export.ExportedProgram) -> dict[sympy.Symbol, str]:
    """Symbols under the names of the ``Dim`` objects that a program of this process was captured with."""
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"]
    env: Any = next((value.fake_mode.shape_env for value in values if isinstance(value, FakeTensor)), None)
    labels = getattr(env, "source_name_to_debug_name", None)
    if not labels:
        return {}
    names: dict[sympy.Symbol, str] = {}
    for symbol, sources in env.var_to_sources.items():
        current = env.replace(symbol)
        for source in sources:
            text = source.name() if callable(source.name) else source.name
            label = labels.get(text, "")
            if isinstance(current, sympy.Symbol) and label.isidentifier():
                names.setdefault(current, label)
    return names


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
    with oblivious(), unset_fake_temporarily():
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
