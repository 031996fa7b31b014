"""``--dynamic x:0=batch,2=length`` as the ``dynamic_shapes`` of ``export()``."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import torch
import typer

from atonnx.cli.source import Source

__all__ = ["dynamic_shapes", "parse"]

_HINT = "--dynamic"


def parse(texts: Iterable[str]) -> dict[str, dict[int, str]]:
    """Axis names by input, then axis."""
    found: dict[str, dict[int, str]] = {}
    for text in texts:
        name, colon, axes = text.partition(":")
        if not (name and colon and axes):
            raise _wrong(f"{text!r} is not of the form INPUT:AXIS=NAME,...")
        for part in axes.split(","):
            axis, _, label = part.partition("=")
            try:
                number = int(axis)
            except ValueError:
                raise _wrong(f"{part!r} in {text!r} does not begin with an axis number") from None
            if not label.strip().isidentifier():
                raise _wrong(f"{part!r} in {text!r} gives the axis no name such as batch")
            found.setdefault(name, {})[number] = label.strip()
    return found


def dynamic_shapes(texts: Iterable[str], source: Source) -> dict[str, Any]:
    """The axes by the model's parameters, nested as the example arguments are."""
    if source.is_program:
        raise _wrong("an ExportedProgram keeps the shapes that it was captured with")
    wanted = parse(texts)
    parameters = inspect.signature(source.model.forward)
    try:
        bound = parameters.bind(*source.args, **source.kwargs).arguments
    except TypeError as error:
        raise _wrong(f"the example arguments do not fit the model: {error}") from error
    for parameter in parameters.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            bound.update(bound.pop(parameter.name, {}))
    seen: list[str] = []
    shapes = {name: _shape(value, name, wanted, seen) for name, value in bound.items()}
    unknown = sorted(set(wanted).difference(seen))
    if unknown:
        raise _wrong(f"no tensor input is named {', '.join(unknown)}; there are: {', '.join(seen)}")
    return shapes


def _shape(value: Any, name: str, wanted: dict[str, dict[int, str]], seen: list[str]) -> Any:
    if isinstance(value, torch.Tensor):
        seen.append(name)
        return {_axis(axis, value, name): label for axis, label in wanted.get(name, {}).items()}
    if type(value) is dict:
        return {key: _shape(item, f"{name}.{key}", wanted, seen) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_shape(item, f"{name}.{i}", wanted, seen) for i, item in enumerate(value))
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return None
    raise _wrong(
        f"{name} is a {type(value).__name__}, whose axes cannot be named here: "
        "give dynamic_shapes in the file"
    )


def _axis(axis: int, value: torch.Tensor, name: str) -> int:
    if not -value.dim() <= axis < value.dim():
        raise _wrong(f"{name} has {value.dim()} axes, there is no axis {axis}")
    return axis % value.dim()


def _wrong(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=_HINT)
