"""Axes by the names of graph inputs: ``dynamic_axes``, and ``dynamic_shapes`` with renamed inputs.

torch.export wants them by the parameters of ``forward``, nested as the arguments are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from atonnx.capture.dynamic import Automatic, Extra, bound_arguments, children_of
from atonnx.errors import OnnxExporterError, both

__all__ = ["by_forward_names", "from_dynamic_axes"]

Labels = dict[int, str]


def from_dynamic_axes(
    dynamic_axes: Mapping[str, Any],
    model: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
) -> tuple[dict[str, Any], dict[str, Labels]]:
    """``dynamic_shapes`` of the inputs, and the axis names of the outputs.

    An input goes by its name in ``input_names``, or by the one it has without. Where there are no
    ``output_names``, what is no input is taken to be an output, whose name is only known later.

    Raises:
        OnnxExporterError: also a ValueError, for a name that nothing has, or for axes of another form.
    """
    labels = {name: _labels(name, axes) for name, axes in dynamic_axes.items()}
    shapes, rest = _by_parameter(labels, model, args, kwargs, input_names)
    if output_names:
        unknown = sorted(rest.keys() - set(output_names))
        if unknown:
            known = [*input_names, *(n for n in _input_names(model, args, kwargs) if n not in input_names)]
            raise both(OnnxExporterError, ValueError)(
                f"dynamic_axes names {', '.join(unknown)}, which is neither an input ({', '.join(known)}) "
                f"nor an output ({', '.join(output_names)})",
                hint="name inputs and outputs with input_names and output_names, or give dynamic_shapes",
            )
    return shapes, {name: axes for name, axes in rest.items() if axes}


def by_forward_names(
    dynamic_shapes: Any,
    model: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    input_names: Sequence[str],
) -> Any:
    """``dynamic_shapes``, entries that go by a name of ``input_names`` put where torch.export wants them."""
    if not isinstance(dynamic_shapes, dict):
        return dynamic_shapes
    parameters = bound_arguments(model, args, kwargs)
    renamed = {n: s for n, s in dynamic_shapes.items() if n not in parameters and n in input_names}
    if not renamed:
        return dynamic_shapes
    shapes, _ = _by_parameter(renamed, model, args, kwargs, input_names)
    given = {name: shape for name, shape in dynamic_shapes.items() if name not in renamed}
    return {**shapes, **given}


def _labels(name: str, axes: Any) -> Labels | None:
    """``{axis: name}`` of one entry; names are made for axes without."""
    if axes is None:
        return None
    if isinstance(axes, Mapping):
        labels = dict(axes)
    elif isinstance(axes, (list, tuple)):
        labels = {}
        for place, axis in enumerate(axes):
            labels.setdefault(axis, Automatic(f"{name}_dynamic_axes_{place + 1}"))
    else:
        labels = {None: None}
    if any(type(axis) is not int for axis in labels):
        raise both(OnnxExporterError, ValueError)(
            f"dynamic_axes[{name!r}] is {axes!r}: the form is {{int: name}} or [int, ...]",
            hint="or give dynamic_shapes",
        )
    return labels


def _by_parameter(
    labels: Mapping[str, Any],
    model: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    input_names: Sequence[str],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries nested by the parameters of forward, and those that are for no input."""
    bound = bound_arguments(model, args, kwargs)
    leaves = _named_leaves(bound, kwargs)
    tensors = sum(isinstance(leaf, torch.Tensor) for _, leaf in leaves)
    # A number is an input only where it is dynamic, which the count of names tells.
    kinds = (torch.Tensor,) if len(input_names) <= tensors else (torch.Tensor, int, float)
    inputs = [name for name, leaf in leaves if isinstance(leaf, kinds)]
    own = dict(zip(input_names, inputs, strict=False))
    own.update({name: name for name in inputs if name not in own})
    rest = {name: entry for name, entry in labels.items() if name not in own}
    found = {own[name]: entry for name, entry in labels.items() if name in own}
    shapes = {name: _nested(value, name, found) for name, value in bound.items()}
    return shapes, rest


def _input_names(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    leaves = _named_leaves(bound_arguments(model, args, kwargs), kwargs)
    return [name for name, leaf in leaves if isinstance(leaf, torch.Tensor)]


def _named_leaves(bound: Mapping[str, Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The leaves of the inputs under torch.export's names for them, in the order of the graph's inputs."""
    positional = {n: v for n, v in bound.items() if n not in kwargs and not isinstance(v, Extra)}
    return [pair for name, value in {**positional, **kwargs}.items() for pair in _leaves(value, name)]


def _leaves(value: Any, name: str) -> list[tuple[str, Any]]:
    children, keys = children_of(value)
    if children is None:
        return [(name, value)]
    parts = zip(keys, children, strict=True)
    return [pair for key, child in parts for pair in _leaves(child, _joined(value, name, key))]


def _nested(value: Any, name: str, found: Mapping[str, Any]) -> Any:
    """The entries for the leaves of ``value``, nested as it is."""
    children, keys = children_of(value)
    if children is None:
        entry = found.get(name)
        return _checked(entry, value, name) if isinstance(entry, dict) else entry
    parts = [
        _nested(child, _joined(value, name, key), found) for key, child in zip(keys, children, strict=True)
    ]
    if isinstance(value, dict):
        return dict(zip(keys, parts, strict=True))
    return tuple(parts) if isinstance(value, tuple) else parts


def _joined(whole: Any, name: str, key: Any) -> str:
    """The name of a part, as torch.export names placeholders."""
    if isinstance(whole, Extra):
        return str(key)
    return f"{name}_{re.sub(r'[^a-zA-Z0-9]', '_', str(key))}"


def _checked(axes: Mapping[int, Any], value: Any, name: str) -> dict[int, Any]:
    """The axes counted from the front."""
    if not isinstance(value, torch.Tensor):
        return dict(axes)
    rank = value.dim()
    wrong = [axis for axis in axes if not -rank <= axis < rank]
    if wrong:
        raise both(OnnxExporterError, ValueError)(
            f"input {name!r} has {rank} axes, there is no axis {wrong[0]}"
        )
    return {axis % rank: label for axis, label in axes.items()}
