"""Modules that bring with them what an export asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

import atonnx
from atonnx.errors import OnnxExporterError, both

if TYPE_CHECKING:
    from atonnx.program import ONNXProgram

__all__ = ["ExportableModule", "Request", "resolve"]


class ExportableModule(torch.onnx.ExportableModule):
    """A module that knows its example arguments, so that it is exported by ``export(module)`` alone.

    ``example_arguments()`` returns a tuple of positional arguments, and a dict of keyword arguments or
    None. A subclass may also have ``dynamic_shapes()``, ``input_names()`` and ``output_names()``, which
    return None here. Arguments in the call of ``export()`` go before them: an example given there means
    that none of these methods is asked, names or shapes given there take the place of one method's.
    """

    def to_onnx(self, **kwargs: Any) -> ONNXProgram:  # type: ignore[override]
        """``export(self, **kwargs)``."""
        return atonnx.export(self, **kwargs)


@dataclass(frozen=True, slots=True)
class Request:
    """What ``export()`` is asked for; names and shapes are None where there are none."""

    args: Any
    kwargs: Mapping[str, Any] | None
    input_names: Sequence[str] | None
    output_names: Sequence[str] | None
    dynamic_shapes: Any


def resolve(model: Any, request: Request, *, has_axes: bool = False) -> Request:
    """The request, completed by what an exportable module tells of itself.

    ``has_axes`` says that the call has ``dynamic_axes``, which stand in the place of the module's shapes.

    Raises:
        OnnxExporterError: also a TypeError, where the example arguments are no such pair.
    """
    is_bare = isinstance(request.args, (tuple, list)) and not request.args and not request.kwargs
    if not (isinstance(model, torch.onnx.ExportableModule) and is_bare):
        return request
    found: Any = model.example_arguments()
    if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], (Mapping, type(None)))):
        raise both(OnnxExporterError, TypeError)(
            f"{type(model).__name__}.example_arguments() must return (args, kwargs): a tuple of positional "
            "arguments, and a dict of keyword arguments or None",
            hint="for a forward with one input: return (input,), None",
        )
    args, kwargs = found
    shapes = request.dynamic_shapes
    return Request(
        args,
        {} if kwargs is None else kwargs,
        model.input_names() if request.input_names is None else request.input_names,
        model.output_names() if request.output_names is None else request.output_names,
        model.dynamic_shapes() if shapes is None and not has_axes else shapes,
    )


ExportableModule.__module__ = "atonnx"
