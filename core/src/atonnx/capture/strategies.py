"""Capture: as is, then ``strict=False``, then ``strict=True``."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree

from atonnx.capture import _torch
from atonnx.capture.dynamic import axis_names, leaf_shapes, without_names
from atonnx.capture.flags import exporting
from atonnx.capture.functional import functional_form, needs_functional_form
from atonnx.errors import CaptureError

__all__ = ["Captured", "capture"]

Patches = Sequence[tuple[str, contextlib.AbstractContextManager[Any]]]


@dataclass(slots=True)
class Captured:
    """A captured program; ``program`` is the user's own object where one was given.

    ``working`` is what is translated: the same program, or its functional form. ``strategy`` is
    None for a program that was given. ``patches`` names what was active, as ``plugin:patch``.
    """

    program: torch.export.ExportedProgram
    working: torch.export.ExportedProgram
    strategy: str | None
    axis_names: dict[sympy.Symbol, str] = field(default_factory=dict)
    patches: tuple[str, ...] = ()


def capture(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    patches: Patches = (),
    progress: Callable[[str], None] = lambda text: None,
) -> Captured:
    """Capture a model with torch.export; an ExportedProgram is taken as it is.

    Raises:
        CaptureError: no strategy can; its cause is what the first said, its text has the others.
    """
    if isinstance(model, torch.export.ExportedProgram):
        captured = Captured(model, model, None)
        shapes = leaf_shapes(model.module(), args, kwargs, dynamic_shapes) if dynamic_shapes else []
        captured.axis_names = axis_names(model, shapes) if shapes else {}
    else:
        captured = _capture_module(model, args, dict(kwargs), dynamic_shapes, patches, progress)
    if needs_functional_form(captured.working):
        captured.working = functional_form(captured.working)
    return captured


def _capture_module(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    patches: Patches,
    progress: Callable[[str], None],
) -> Captured:
    if isinstance(model, torch.nn.Module) and model.training:
        warnings.warn(
            "Exporting a model while it is in training mode. Please ensure that this is intended, as it may "
            "lead to different behavior during inference. Calling model.eval() before export is recommended.",
            UserWarning,
            stacklevel=4,
        )
    args, kwargs = _distinct((args, kwargs))
    shapes = without_names(dynamic_shapes)
    active = tuple(f"{plugin}:{_patch_name(patch)}" for plugin, patch in patches)
    attempts: list[tuple[str, Exception]] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(exporting())
        for _, patch in patches:
            stack.enter_context(patch)
        for strict in (False, True):
            name = f"strict={strict}"
            progress(name)
            try:
                program = _export(model, args, kwargs, shapes, strict)
            except Exception as error:
                attempts.append((name, error))
                continue
            names = axis_names(program, leaf_shapes(model, args, kwargs, dynamic_shapes))
            return Captured(program, program, name, names, active)
    raise _failure(attempts) from attempts[0][1]


def _patch_name(patch: Any) -> str:
    """The name of a context manager's function or class."""
    name: str = getattr(getattr(patch, "func", None), "__name__", type(patch).__name__)
    return name


def _distinct(tree: Any) -> Any:
    """The same inputs, a tensor that occurs twice given as two: torch.export would make one input of it."""
    seen: set[int] = set()

    def fresh(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            if id(leaf) in seen:
                return leaf.detach().clone()
            seen.add(id(leaf))
        return leaf

    return pytree.tree_map(fresh, tree)


def _export(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, strict: bool) -> Any:
    try:
        return _torch.export_module(model, args, kwargs, shapes, strict)
    except Exception as error:
        refined = _torch.refine_shapes(error, shapes)
        if refined is None:
            raise
        return _torch.export_module(model, args, kwargs, refined, strict)


def _failure(attempts: Sequence[tuple[str, Exception]]) -> CaptureError:
    lines = [
        "Failed to export the model with torch.export. This is step 1/3 of exporting the model to ONNX.",
        "",
        "## Exception summary",
    ]
    for name, error in attempts:
        text = str(error).strip()
        lines += ["", f"torch.export.export(..., {name}): {type(error).__name__}: {text}"]
    return CaptureError(
        "\n".join(lines),
        attempts=attempts,
        hint="make the model pass torch.export.export(model, args, kwargs, dynamic_shapes=..., strict=False) "
        "first; or export an ExportedProgram that you made yourself",
    )
