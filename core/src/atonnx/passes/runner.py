"""The pass runner: stages, the order within one, and what each pass cost and changed."""

from __future__ import annotations

import graphlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from atonnx.build.metadata import complete_metadata
from atonnx.errors import OnnxExporterError, PassError
from atonnx.plugins.types import STAGES, PassSpec

__all__ = ["PassTiming", "optimize", "ordered", "run_passes"]


@dataclass(frozen=True, slots=True)
class PassTiming:
    """One run of one pass: CPU seconds, and whether it changed the model."""

    name: str
    plugin: str
    seconds: float
    modified: bool


def ordered(specs: Iterable[PassSpec]) -> list[PassSpec]:
    """Passes by stage, then by ``before``/``after``, then by name: never by the order of plugins.

    Raises:
        PassError: two passes of one stage have one name, or the constraints are a circle.
    """
    result = []
    for stage in STAGES:
        found: dict[str, PassSpec] = {}
        for spec in specs:
            if spec.stage != stage:
                continue
            if spec.name in found:
                raise PassError(
                    f"the plugins {found[spec.name].plugin} and {spec.plugin} both have a pass {spec.name}",
                    pass_name=spec.name,
                    plugin=spec.plugin,
                )
            found[spec.name] = spec
        after: dict[str, set[str]] = {name: set() for name in found}
        for name, spec in found.items():
            after[name].update(n for n in spec.after if n in found)
            for later in spec.before:
                if later in found:
                    after[later].add(name)
        sorter = graphlib.TopologicalSorter(after)
        try:
            sorter.prepare()
        except graphlib.CycleError as error:
            raise PassError(f"passes of the stage {stage} wait for each other: {error.args[1]}") from error
        while sorter.is_active():
            ready = sorted(sorter.get_ready())
            for name in ready:
                result.append(found[name])
            sorter.done(*ready)
    return result


def run_passes(
    model: ir.Model,
    specs: Sequence[PassSpec],
    progress: Callable[[str, int, int], None] | None = None,
) -> list[PassTiming]:
    """Run passes over a model in place.

    Raises:
        PassError: a pass failed; it names the pass and the plugin.
    """
    timings = []
    steps = ordered(specs)
    for done, spec in enumerate(steps):
        if progress is not None:
            progress("passes", done, len(steps))
        begin = time.process_time()
        try:
            modified = _run_one(model, spec.factory())
        except OnnxExporterError:
            raise
        except Exception as error:
            raise PassError(
                f"the pass {spec.name} of plugin {spec.plugin} failed: {type(error).__name__}: {error}",
                pass_name=spec.name,
                plugin=spec.plugin,
                hint="export with optimize=False",
            ) from error
        timings.append(PassTiming(spec.name, spec.plugin, time.process_time() - begin, modified))
    return timings


def _run_one(model: ir.Model, made: Any) -> bool:
    if isinstance(made, ir.passes.PassBase):
        result = made(model)
        if result.model is not model:
            model.graph = result.model.graph
        return bool(result.modified)
    if hasattr(made, "apply_to_model"):
        return bool(made.apply_to_model(model))
    raise TypeError(f"the factory returned {type(made).__name__}, which is no onnx_ir pass and no rule set")


def optimize(model: ir.Model) -> None:
    """Run the passes of all installed plugins over a model in place."""
    from atonnx.plugins import load

    run_passes(model, load().passes())
    if any(node.metadata_props for node in model.graph):
        complete_metadata(model)
