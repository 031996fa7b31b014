"""``export()``: the stages, one after the other."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, TypeVar

import onnx_ir as ir
import torch

from atonnx.build._torch import unset_fake_temporarily
from atonnx.build.custom import custom_rows
from atonnx.build.decompose import Decomposer
from atonnx.build.finish import finish
from atonnx.build.metadata import FX_NODE, complete_metadata, reduce_metadata
from atonnx.build.names import Names, check_names
from atonnx.build.scope import NEWEST_OPSET, Session
from atonnx.build.sizes import SizeFacts
from atonnx.build.source import from_program
from atonnx.build.translator import Translator
from atonnx.capture import Axes, Captured, capture, exporting, functional_form
from atonnx.capture.arguments import (
    check_options,
    example_arguments,
    refuse_not_there,
    warn_deprecated,
    warn_idle,
)
from atonnx.dispatch import DEFAULT_OPSET, MIN_OPSET, DispatchTable, OpsetTable, merge, target_name
from atonnx.dispatch.known import distribution_of
from atonnx.errors import MissingOp, OnnxExporterError, UnsupportedOpError, VerificationError, both
from atonnx.exportable import Request, resolve
from atonnx.passes import run_passes
from atonnx.plugins import Plugins, Target, load
from atonnx.program import ONNXProgram, saving
from atonnx.program.outputs import name_output_axes
from atonnx.program.progress import DONE, SAVE, Report, shown

__all__ = ["CAPTURE_LOCK", "export"]

_T = TypeVar("_T")

_DEFAULT_TARGET = "onnxruntime"
CAPTURE_LOCK = threading.RLock()  # around what is global to the process: capture and its patches


def export(
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | BinaryIO | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: Mapping[Any, Any] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool | str = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Any] | None = None,
    training: Any = torch.onnx.TrainingMode.EVAL,
    operator_export_type: Any = torch.onnx.OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: Any = False,
    autograd_inlining: bool = True,
    prefer: Mapping[Any, str] | None = None,
    state: str = "drop",
    target: str = _DEFAULT_TARGET,
    metadata: str = "full",
    progress: Report | None = None,
) -> ONNXProgram:
    """Export a model to ONNX.

    Args:
        model: An ``nn.Module`` or an ``ExportedProgram``; an ``ExportableModule`` brings its arguments.
        args: Example positional inputs: a tuple, or one tensor. A dict at its end is ``kwargs``. Tensors
            become inputs of the graph, other values become part of it.
        f: Where to save the model; the program is returned all the same.
        kwargs: Example keyword inputs.
        verbose: Print a line per stage. ``None`` shows a progress bar on a terminal only, False nothing.
        input_names: Names for the graph inputs, in order; inputs without one keep the model's name.
        output_names: Names for the graph outputs, in order. An output without one that the model returns
            under a key has the key as its name, keys within keys joined by dots: ``boxes.raw``.
        opset_version: The opset that the model is to have, 11 to 28. Default 20.
        dynamo: Accepted as in ``torch.onnx.export``; only True is possible.
        external_data: Save weights beside the model, in ``<f>.data``.
        dynamic_shapes: As in ``torch.export.export``; an axis may also be given as a name, an input also
            under its name in ``input_names``.
        custom_translation_table: ``{torch.ops.ns.op.overload: function}``, before all other rows.
        report: Not there yet, as are ``profile``, ``dump_exported_program`` and ``artifacts_dir``.
        optimize: Run the graph passes.
        verify: Check the model, run it in ONNX Runtime and compare with the captured program; see
            ``ONNXProgram.verify``. What was found is printed, unless ``verbose`` is False, and kept as
            ``program.verification``; ``"strict"`` makes an error of it where something is wrong.
        profile: See ``report``.
        dump_exported_program: See ``report``.
        artifacts_dir: See ``report``.
        export_params: Save the weights; without ``f`` it has no effect.
        keep_initializers_as_inputs: Make weights inputs as well when saving.
        dynamic_axes: Deprecated: ``{name: {axis: axis name}}`` or ``{name: [axis, ...]}`` of inputs and
            outputs; where no axis name is given, it is ``<name>_dynamic_axes_<n>``.
        training: Deprecated and ignored, as are the next five.
        operator_export_type: See ``training``.
        do_constant_folding: See ``training``.
        custom_opsets: See ``training``.
        export_modules_as_functions: See ``training``.
        autograd_inlining: See ``training``.
        prefer: ``{"aten::op": "plugin"}`` settles which plugin's row is taken.
        state: What becomes of writes to buffers and inputs: ``"drop"`` warns and drops them,
            ``"io"`` makes each buffer an input and its new value an output.
        target: The runtime to export for: ``"onnxruntime"``, ``"onnxruntime-cpu"`` (half precision runs
            on a CPU too), ``"portable"`` (nothing is done for a runtime), or one that a plugin has.
            Where no plugin has the default, nothing is done either.
        metadata: What the nodes tell of the model: ``"full"`` as torch.onnx.export, ``"compact"`` without
            stack traces and paths, so that the file tells nothing of the machine, ``"none"`` nothing.
        progress: Called with (stage, done, total) as the export goes on.

    Returns:
        The program: callable with torch tensors, and with ``save``.

    Raises:
        CaptureError: torch.export cannot capture the model.
        UnsupportedOpError: operators have no translation; all are named.
        VerificationError: ``verify="strict"``, and the model is wrong.
        OnnxExporterError: base of all errors.
    """
    warn_deprecated(
        {
            "training": training,
            "operator_export_type": operator_export_type,
            "do_constant_folding": do_constant_folding,
            "custom_opsets": custom_opsets,
            "export_modules_as_functions": export_modules_as_functions,
            "autograd_inlining": autograd_inlining,
        }
    )
    warn_idle(
        f,
        export_params=export_params,
        keep_initializers_as_inputs=keep_initializers_as_inputs,
        external_data=external_data,
        dynamic_axes=dynamic_axes,
        dynamic_shapes=dynamic_shapes,
    )
    refuse_not_there({"report": report, "profile": profile, "dump_exported_program": dump_exported_program})
    check_options(model, dynamo=dynamo, state=state, metadata=metadata, verify=verify)
    how = _conversion(opset_version, custom_translation_table, prefer, target, optimize, state)
    asked = resolve(
        model,
        Request(args, kwargs, input_names, output_names, dynamic_shapes),
        has_axes=dynamic_axes is not None,
    )
    args, kwargs = example_arguments(asked.args, asked.kwargs)
    axes = Axes(
        asked.dynamic_shapes, dynamic_axes, tuple(asked.input_names or ()), tuple(asked.output_names or ())
    )
    check_names(axes.input_names, axes.output_names)
    say = _speaker(verbose)
    with exporting(), shown(verbose, progress) as tell:
        say("Obtain model graph with torch.export...")
        tell("capture", 0, 1)
        with CAPTURE_LOCK:
            captured = capture(
                model,
                args,
                kwargs,
                axes,
                how.plugins.capture_patches(),
                progress=lambda text: say(f"  torch.export, {text}"),
            )
        say("Translate the graph into ONNX...")
        # A model of fake tensors may be exported under their mode, which computes nothing.
        with _collector_suspended(), unset_fake_temporarily():
            program = _convert(captured, how, axes, tell, say)
        name_output_axes(program, captured.output_axes, captured.axis_names.values())
        reduce_metadata(program.model, metadata)
        if verify:
            tell("verify", 0, 1)
            say("Verify the ONNX model...")
            verification = program.verify()
            if verify == "strict" and not verification.ok:
                raise VerificationError(verification)
        if f is not None:
            saving.save(
                program.model,
                f,
                progress=partial(tell, SAVE),
                include_initializers=export_params,
                keep_initializers_as_inputs=keep_initializers_as_inputs,
                external_data=external_data,
            )
            say(f"Saved to {f}")
        tell(DONE, 1, 1)
    if verify and verbose is not False:
        print(program.verification)
    return program


@dataclass(frozen=True, slots=True)
class _Conversion:
    """How a captured program is converted: what was asked for, checked, and who does it."""

    opset: int
    opset_was_asked: bool
    plugins: Plugins
    table: DispatchTable
    lowerings: OpsetTable
    prefer: Mapping[Any, str]
    runtime: Target
    optimize: bool
    state: str


def _conversion(
    opset_version: int | None,
    custom_translation_table: Mapping[Any, Any] | None,
    prefer: Mapping[Any, str] | None,
    target: str,
    optimize: bool,
    state: str,
) -> _Conversion:
    opset = _checked_opset(opset_version)
    plugins = load()
    prefer = prefer or {}
    runtime = _checked_target(target, opset, plugins, prefer)
    table = dispatch_table(plugins, opset, prefer).with_custom(custom_rows(custom_translation_table))
    lowerings = opset_table(plugins, prefer)
    asked = opset_version is not None
    return _Conversion(opset, asked, plugins, table, lowerings, prefer, runtime, optimize, state)


def _convert(
    captured: Captured, how: _Conversion, axes: Axes, tell: Report, say: Callable[[str], None]
) -> ONNXProgram:
    for _, program_pass in how.plugins.program_passes():
        captured.working = program_pass(captured.working)
    translator = _translator(captured, how, tell)
    source = from_program(captured.working)
    if translator.plan(source) is not None:
        with CAPTURE_LOCK:
            captured.working = functional_form(captured.working)
        translator = _translator(captured, how, tell)
        source = from_program(captured.working)
        write = translator.plan(source)
        if write is not None:
            raise OnnxExporterError(f"{write.target} writes through a view, which the functional form kept")
    names = Names.of(source, axes.input_names, axes.output_names)
    translator.session.reserve(names.all())
    inputs, outputs = translator.translate(source)
    model = finish(
        translator, source, inputs, outputs,
        names=names, state=how.state, default_opset=not how.opset_was_asked,
    )  # fmt: skip
    if how.optimize:
        say("Optimize the ONNX graph...")
    passes = [*(how.plugins.passes(how.prefer) if how.optimize else ()), *how.runtime.passes]
    if passes:
        run_passes(model, passes, tell)
    complete_metadata(model)
    if how.runtime.forbidden:
        _check_forbidden(model, how.runtime)
    program = ONNXProgram(model, captured.program)
    program.capture_strategy = captured.strategy
    return program


def _translator(captured: Captured, how: _Conversion, tell: Report) -> Translator:
    facts = SizeFacts(captured.working.range_constraints)
    plugins, prefer = how.plugins, how.prefer
    session = Session(
        how.opset,
        how.lowerings,
        facts=facts,
        axis_names=captured.axis_names,
        domains=plugins.domains().preferring(prefer),
    )
    decompositions = plugins.decompositions()
    decomposer = Decomposer(
        decompositions.functions(prefer), [provider for _, provider in decompositions.providers], facts
    )
    return Translator(
        session,
        how.table,
        decomposer,
        missing=lambda node: plugins.missing_translation(node, how.opset, prefer),
        distribution_of=distribution_of,
        loaded=frozenset(r.distribution for r in plugins.records if r.state == "loaded"),
        failed_plugins=[str(record) for record in plugins.failed],
        progress=tell,
    )


def dispatch_table(plugins: Plugins, opset: int, prefer: Mapping[Any, str]) -> DispatchTable:
    """All plugins' rows, merged for an opset; kept as long as the plugins are."""
    plain = [row for name, table in plugins.translation_tables(opset) for row in custom_rows(table, name)]
    if plain:
        return merge([*plugins.translations(), *plain], opset, prefer)
    return _kept(plugins, (opset, _settled(prefer)), lambda: merge(plugins.translations(), opset, prefer))


def opset_table(plugins: Plugins, prefer: Mapping[Any, str]) -> OpsetTable:
    """All plugins' rows for ONNX operators at other opsets; kept as long as the plugins are."""
    return _kept(plugins, _settled(prefer), lambda: OpsetTable(plugins.opset_rows(), prefer))


def _settled(prefer: Mapping[Any, str]) -> frozenset[tuple[str, str]]:
    return frozenset((target_name(what), plugin) for what, plugin in prefer.items())


def _kept(plugins: Plugins, key: Any, make: Callable[[], _T]) -> _T:
    kept = _TABLES.setdefault(plugins, {})
    if key not in kept:
        kept[key] = make()
    found: _T = kept[key]
    return found


_TABLES: weakref.WeakKeyDictionary[Plugins, dict[Any, Any]] = weakref.WeakKeyDictionary()


def _checked_opset(opset_version: int | None) -> int:
    if opset_version is None:
        return DEFAULT_OPSET
    if not MIN_OPSET <= opset_version <= NEWEST_OPSET:
        raise both(OnnxExporterError, ValueError)(
            f"opset_version={opset_version} cannot be exported",
            hint=f"ask for an opset from {MIN_OPSET} to {NEWEST_OPSET}",
        )
    return opset_version


def _checked_target(name: str, opset: int, plugins: Plugins, prefer: Mapping[Any, str]) -> Target:
    targets = plugins.targets().preferring(prefer)
    if name not in targets and name == _DEFAULT_TARGET:
        return Target(name)
    if name not in targets:
        known = ", ".join(sorted(targets)) or "none"
        raise both(OnnxExporterError, ValueError)(
            f"target={name!r} is not known; known are: {known}",
            hint="they come from plugins, ours from atonnx-ort-target",
        )
    found = targets[name]
    if found.opsets is not None and not found.opsets[0] <= opset <= found.opsets[1]:
        raise both(OnnxExporterError, ValueError)(
            f"{name} runs the opsets {found.opsets[0]} to {found.opsets[1]}, not {opset}",
            hint='ask for another opset_version, or target="portable"',
        )
    return found


def _check_forbidden(model: ir.Model, runtime: Target) -> None:
    found: dict[str, list[str]] = {}
    for graph in [model.graph, *(function.graph for function in model.functions.values())]:
        for node in ir.traversal.RecursiveGraphIterator(graph):
            name = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
            if name in runtime.forbidden:
                found.setdefault(name, []).append(node.metadata_props.get(FX_NODE, ""))
    if found:
        raise UnsupportedOpError(
            f"{runtime.name} does not have the operators {', '.join(sorted(found))}",
            missing=[
                MissingOp(name, len(nodes), tuple(dict.fromkeys(nodes)), f"{runtime.name} does not have it")
                for name, nodes in sorted(found.items())
            ],
            plugin=runtime.plugin,
            hint="export for another target, or give the operators another translation",
        )


def _speaker(verbose: bool | None) -> Callable[[str], None]:
    if not verbose:
        return lambda text: None
    return lambda text: print(f"[atonnx] {text}")


@contextmanager
def _collector_suspended() -> Iterator[None]:
    """No cyclic garbage collection: it would walk all of torch's heap, over and over."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
