"""The arguments of ``export()``: what is deprecated, idle, not there yet, or of no value that is known."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import torch

from atonnx.build.metadata import METADATA
from atonnx.build.warn import warn_user
from atonnx.errors import OnnxExporterError, both

__all__ = ["check_options", "example_arguments", "refuse_not_there", "warn_deprecated", "warn_idle"]

_DEPRECATED = {
    "training": (torch.onnx.TrainingMode.EVAL, "call model.eval() or model.train() before the export"),
    "operator_export_type": (torch.onnx.OperatorExportTypes.ONNX, "it has no effect"),
    "do_constant_folding": (True, "constants are folded always; optimize=False leaves out the graph passes"),
    "custom_opsets": (None, "the version of a domain comes from the plugin that has it"),
    "export_modules_as_functions": (False, "it has no effect"),
    "autograd_inlining": (True, "it has no effect"),
}


def warn_deprecated(given: Mapping[str, Any]) -> None:
    """Warn of each deprecated parameter that has another value than its default."""
    for name, (default, instead) in _DEPRECATED.items():
        if given[name] != default:
            warn_user(f"{name}= is deprecated and ignored: {instead}", DeprecationWarning)


def warn_idle(
    destination: Any,
    *,
    export_params: bool,
    keep_initializers_as_inputs: bool,
    external_data: bool,
    dynamic_axes: Any,
    dynamic_shapes: Any,
) -> None:
    """Warn of parameters that have no effect in this call, of ``dynamic_axes``, of a stream to save to."""
    if isinstance(destination, io.IOBase):
        warn_user("saving to a BytesIO or another stream is deprecated: give a path", DeprecationWarning)
    if destination is None:
        idle = {
            "export_params=False": not export_params,
            "keep_initializers_as_inputs=True": keep_initializers_as_inputs,
            "external_data=False": not external_data,
        }
        for text in (text for text, is_given in idle.items() if is_given):
            warn_user(f"{text} has no effect without f: pass it to ONNXProgram.save()", UserWarning)
    if dynamic_axes is None:
        return
    if dynamic_shapes is not None:
        warn_user("dynamic_axes has no effect beside dynamic_shapes", UserWarning)
        return
    warn_user(
        "'dynamic_axes' is not recommended, and may lead to 'Constraints violated.' of torch.export. "
        "Supply 'dynamic_shapes' instead if the export does not succeed.",
        UserWarning,
    )
    warn_user(
        "dynamic_axes= is deprecated: give dynamic_shapes=, which takes axis names as well",
        DeprecationWarning,
    )


def refuse_not_there(given: Mapping[str, bool]) -> None:
    """Refuse what torch.onnx.export has and atonnx does not have yet.

    Raises:
        OnnxExporterError: also a ValueError.
    """
    ways_out = {
        "report": "errors name every operator that stops an export",
        "profile": "run the export under a profiler",
        "dump_exported_program": "save program.exported_program with torch.export.save",
    }
    for name, way_out in ways_out.items():
        if given[name]:
            raise both(OnnxExporterError, ValueError)(f"{name}=True is not there yet", hint=way_out)


def check_options(model: Any, *, dynamo: bool, state: str, metadata: str, verify: bool | str) -> None:
    """Check the options that have a few values only.

    Raises:
        OnnxExporterError: also a ValueError.
    """
    always_captured = (torch.export.ExportedProgram, torch.onnx.ExportableModule)
    if not dynamo and not isinstance(model, always_captured):
        raise both(OnnxExporterError, ValueError)(
            "atonnx exports with torch.export only", hint="leave out dynamo=False, or use torch.onnx.export"
        )
    if state not in ("drop", "io"):
        raise both(OnnxExporterError, ValueError)(f"state={state!r} is neither 'drop' nor 'io'")
    if metadata not in METADATA:
        raise both(OnnxExporterError, ValueError)(f"metadata={metadata!r} is none of {METADATA}")
    if not isinstance(verify, bool) and verify != "strict":
        raise both(OnnxExporterError, ValueError)(f"verify={verify!r} is neither a bool nor 'strict'")


def example_arguments(args: Any, kwargs: Mapping[str, Any] | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """``args`` as a tuple, and ``kwargs``, which a dict at the end of ``args`` may stand for.

    Raises:
        OnnxExporterError: also a TypeError, where ``args`` is neither a sequence nor a tensor.
    """
    if isinstance(args, torch.Tensor):
        args = (args,)
    if not isinstance(args, (tuple, list)):
        raise both(OnnxExporterError, TypeError)(
            f"args is a {type(args).__name__}, not a tuple of example inputs",
            hint="give one input as args=(input,), and inputs by name as kwargs={...}",
        )
    if kwargs is None and args and isinstance(args[-1], dict):
        return tuple(args[:-1]), dict(args[-1])
    return tuple(args), dict(kwargs or {})
