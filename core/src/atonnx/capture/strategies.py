"""Capture: as is; or ``strict=False``, then ``strict=True``, then a draft export if the environment asks."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree

from atonnx.build.warn import warn_user
from atonnx.capture import _torch
from atonnx.capture.axes import by_forward_names, from_dynamic_axes
from atonnx.capture.dynamic import axis_names, check_axes, leaf_shapes, without_names
from atonnx.capture.flags import exporting
from atonnx.capture.functional import functional_form, needs_functional_form
from atonnx.errors import CaptureError, OnnxExporterWarning

__all__ = ["Axes", "Captured", "capture"]

Patches = Sequence[tuple[str, contextlib.AbstractContextManager[Any]]]


@dataclass(slots=True)
class Captured:
    """A captured program; ``program`` is the user's own object where one was given.

    ``working`` is what is translated: the same program, or its functional form. ``strategy`` is
    None for a program that was given. ``patches`` names what was active, as ``plugin:patch``.
    ``output_axes`` is what ``dynamic_axes`` has for outputs, by their names.
    """

    program: torch.export.ExportedProgram
    working: torch.export.ExportedProgram
    strategy: str | None
    axis_names: dict[sympy.Symbol, str] = field(default_factory=dict)
    patches: tuple[str, ...] = ()
    output_axes: dict[str, dict[int, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Axes:
    """What the user says of axes, and the names that it may go by."""

    dynamic_shapes: Any = None
    dynamic_axes: Mapping[str, Any] | None = None
    input_names: Sequence[str] = ()
    output_names: Sequence[str] = ()

    def resolved(
        self, model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, dict[str, dict[int, str]]]:
        """``dynamic_shapes`` by the parameters of forward, and axis names of outputs."""
        if self.dynamic_shapes is None and self.dynamic_axes is not None:
            return from_dynamic_axes(
                self.dynamic_axes, model, args, kwargs, self.input_names, self.output_names
            )
        shapes = by_forward_names(self.dynamic_shapes, model, args, kwargs, self.input_names)
        check_axes(leaf_shapes(model, args, kwargs, shapes))
        return shapes, {}

    def collected(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Axes:
        """With torch's ``ShapesCollection`` or ``AdditionalInputs`` as plain dynamic shapes."""
        collect = getattr(self.dynamic_shapes, "dynamic_shapes", None)
        return self if collect is None else replace(self, dynamic_shapes=collect(model, args, kwargs))


_NO_AXES = Axes()


def capture(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    axes: Axes = _NO_AXES,
    patches: Patches = (),
    progress: Callable[[str], None] = lambda text: None,
) -> Captured:
    """Capture a model with torch.export; an ExportedProgram is taken as it is.

    Raises:
        CaptureError: no strategy can; its cause is what the first said, its text has the others.
    """
    if isinstance(model, torch.export.ExportedProgram):
        if model.example_inputs is not None:
            args, kwargs = model.example_inputs
        shapes, output_axes = axes.resolved(model, args, kwargs)
        names = axis_names(model, leaf_shapes(model, args, kwargs, shapes))
        captured = Captured(model, model, None, names, output_axes=output_axes)
    else:
        captured = _capture_module(model, args, dict(kwargs), axes, patches, progress)
    if needs_functional_form(captured.working):
        captured.working = functional_form(captured.working)
    return captured


def _capture_module(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    axes: Axes,
    patches: Patches,
    progress: Callable[[str], None],
) -> Captured:
    if isinstance(model, torch.nn.Module) and model.training:
        warn_user(
            "Exporting a model while it is in training mode. Please ensure that this is intended, as it may "
            "lead to different behavior during inference. Calling model.eval() before export is recommended.",
            UserWarning,
        )
    active = tuple(f"{plugin}:{_patch_name(patch)}" for plugin, patch in patches)
    attempts: list[tuple[str, Exception]] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(exporting())
        for _, patch in patches:
            stack.enter_context(patch)
        axes = axes.collected(model, args, kwargs)
        args, kwargs = _distinct((args, kwargs))
        named, output_axes = axes.resolved(model, args, kwargs)
        shapes = without_names(named)
        for name, strategy in _strategies():
            progress(name)
            try:
                program = strategy(model, args, kwargs, shapes)
            except Exception as error:
                attempts.append((name, error))
                continue
            names = axis_names(program, leaf_shapes(model, args, kwargs, named))
            return Captured(program, program, name, names, active, output_axes)
    raise _failure(attempts) from attempts[0][1]


def _strategies() -> list[tuple[str, Callable[..., torch.export.ExportedProgram]]]:
    found: list[tuple[str, Callable[..., torch.export.ExportedProgram]]] = [
        ("strict=False", functools.partial(_export, strict=False)),
        ("strict=True", functools.partial(_export, strict=True)),
    ]
    if _torch.env_flag("TORCH_ONNX_ENABLE_DRAFT_EXPORT", False):
        found.append(("draft_export", _draft))
    return found


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


def _draft(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> Any:
    program, report = _torch.draft_export_module(model, args, kwargs, shapes)
    warn_user(
        f"The model was captured with torch.export.draft_export. Its report:\n{report}",
        OnnxExporterWarning,
    )
    return program


def _export(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, strict: bool) -> Any:
    try:
        return _torch.export_module(model, args, kwargs, shapes, strict)
    except Exception as error:
        refined = _torch.refine_shapes(error, shapes)
        if refined is None:
            raise
        frozen = _count_frozen(refined) - _count_frozen(shapes)
        if frozen > 0:
            warn_user(
                f"The model fixes {frozen} of the dynamic axes, which get the size of the example: {error}",
                OnnxExporterWarning,
            )
        return _torch.export_module(model, args, kwargs, refined, strict)


def _count_frozen(shapes: Any) -> int:
    """How many axes have one size only."""
    return sum(type(leaf) is int for leaf in pytree.tree_leaves(shapes))


def _failure(attempts: Sequence[tuple[str, Exception]]) -> CaptureError:
    step = "This is step 1/3"
    if sys.stderr.isatty():
        step = f"\033[96m{step}\033[0m"
    lines = [
        f"Failed to export the model with torch.export. {step} of exporting the model to ONNX.",
        "",
        "## Exception summary",
    ]
    for name, error in attempts:
        lines += ["", f"torch.export, {name}: {type(error).__name__}: {str(error).strip()}"]
    return CaptureError(
        "\n".join(lines),
        attempts=attempts,
        hint="make the model pass torch.export.export(model, args, kwargs, dynamic_shapes=..., strict=False) "
        "first; or export an ExportedProgram that you made yourself",
    )
