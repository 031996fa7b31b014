"""Dynamic shapes as users write them: axis names taken out for torch.export, and found again after."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree

from atonnx.build.warn import warn_user
from atonnx.capture._torch import dim_names
from atonnx.errors import OnnxExporterError, both

__all__ = [
    "Automatic",
    "Extra",
    "axis_names",
    "bound_arguments",
    "check_axes",
    "children_of",
    "leaf_shapes",
    "without_names",
]


class Automatic(str):
    """An axis name that the user did not choose; one that the user did goes before it."""

    __slots__ = ()


def without_names(dynamic_shapes: Any) -> Any:
    """The same tree, axes that have a name given as ``Dim.DYNAMIC``."""
    dynamic = torch.export.Dim.DYNAMIC
    return pytree.tree_map(lambda leaf: dynamic if isinstance(leaf, str) else leaf, dynamic_shapes)


def leaf_shapes(
    model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any
) -> list[tuple[Any, Any]]:
    """(leaf, its dynamic shape or None) for every leaf of the inputs, in the order of flattening."""
    if dynamic_shapes is None:
        return []
    bound = bound_arguments(model, args, kwargs)
    if isinstance(dynamic_shapes, dict):
        shapes = dynamic_shapes
    else:
        shapes = dict(zip(bound, dynamic_shapes, strict=False))
    pairs: list[tuple[Any, Any]] = []
    for name, value in bound.items():
        if name not in kwargs:
            pairs += _leaves(value, shapes.get(name))
    extra = next((name for name, value in bound.items() if isinstance(value, Extra)), "")
    for name, value in kwargs.items():
        shape = shapes.get(name) if name in bound else (shapes.get(extra) or {}).get(name)
        pairs += _leaves(value, shape)
    return pairs


def check_axes(pairs: Iterable[tuple[Any, Any]]) -> None:
    """Check that the tensors have the axes that are named: torch.export passes over what they lack.

    Raises:
        OnnxExporterError: also a ValueError.
    """
    for value, shape in pairs:
        if not isinstance(value, torch.Tensor) or not isinstance(shape, dict):
            continue
        wrong = [axis for axis in shape if type(axis) is not int or not 0 <= axis < value.dim()]
        if wrong:
            raise both(OnnxExporterError, ValueError)(
                f"dynamic_shapes has {shape} for an input of shape {list(value.shape)}: "
                f"there is no axis {wrong[0]!r}",
                hint="axes are ints that count from the front",
            )


class Extra(dict[str, Any]):
    """Keyword arguments that forward takes as ``**kwargs``; they follow on their own."""


def bound_arguments(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the parameters of forward; ``*args`` is one tuple, ``**kwargs`` one dict.

    An ExportedProgram has one parameter for each argument that it was captured with.
    """
    if isinstance(model, torch.export.ExportedProgram):
        signature = model.module_call_graph[0].signature
        names = (signature.forward_arg_names or []) if signature is not None else []
        if len(names) == len(args) + len(kwargs):
            return dict(zip(names, [*args, *kwargs.values()], strict=True))
        model = model.module()
    forward = model.forward if isinstance(model, torch.nn.Module) else model
    try:
        parameters = inspect.signature(forward)
        found = dict(parameters.bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {**{str(i): value for i, value in enumerate(args)}, **kwargs}
    for name, parameter in parameters.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD and name in found:
            found[name] = Extra(found[name])
    return found


def _leaves(value: Any, spec: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Extra):
        return
    children, keys = children_of(value)
    if children is None:
        yield value, spec
        return
    if isinstance(spec, dict):
        order = keys if set(spec) <= set(keys) else list(spec)
        parts: list[Any] = [spec.get(key) for key in order]
    elif isinstance(spec, (list, tuple)):
        parts = list(spec)
    else:
        parts = []
    parts += [None] * (len(children) - len(parts))
    for child, part in zip(children, parts, strict=False):
        yield from _leaves(child, part)


def children_of(value: Any) -> tuple[list[Any] | None, list[Any]]:
    """The parts of a container and their keys or places; None for what is a leaf."""
    if isinstance(value, dict):
        return list(value.values()), list(value)
    if isinstance(value, (list, tuple)):
        return list(value), list(range(len(value)))
    node = pytree.SUPPORTED_NODES.get(type(value))
    if node is None:
        return None, []
    if node.flatten_with_keys_fn is None:
        children, _ = node.flatten_fn(value)
        return list(children), list(range(len(children)))
    pairs, _ = node.flatten_with_keys_fn(value)
    return [child for _, child in pairs], [_plain_key(key) for key, _ in pairs]


def _plain_key(key: Any) -> Any:
    """The key, place or attribute of a pytree's key entry."""
    return next((getattr(key, kind) for kind in ("key", "idx", "name") if hasattr(key, kind)), str(key))


def axis_names(
    program: torch.export.ExportedProgram, shapes: Sequence[tuple[Any, Any]]
) -> dict[sympy.Symbol, str]:
    """Symbols of the program under the names that the user gave their axes.

    The first name of a symbol holds; another one for it is a warning. Symbols without one have the name
    of the ``Dim`` that the program was captured with, as long as the program was not saved and loaded.
    """
    names: dict[sympy.Symbol, str] = {}
    user = [s for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    if shapes and len(user) != len(shapes):
        warn_user(
            "The model has another number of inputs than the flat dynamic_shapes. Axes are not renamed.",
            UserWarning,
        )
        return dim_names(program)
    for spec, (_, shape) in zip(user, shapes, strict=False):
        value = values.get(getattr(spec.arg, "name", ""))
        if not isinstance(value, torch.Tensor) or shape is None:
            continue
        axes = shape.items() if isinstance(shape, dict) else enumerate(shape)
        for axis, label in axes:
            name = label if isinstance(label, str) else _dim_name(label)
            size = value.shape[axis]
            if name is None or not isinstance(size, torch.SymInt):
                continue
            expr = size.node.expr
            if not isinstance(expr, sympy.Symbol):
                continue
            known = names.setdefault(expr, name)
            if isinstance(known, Automatic):
                names[expr] = known if isinstance(name, Automatic) else name
            elif known != name and not isinstance(name, Automatic):
                warn_user(
                    f"# The axis name: {name} will not be used, since it shares "
                    f"the same shape constraints with another axis: {known}.",
                    UserWarning,
                )
    for symbol, name in dim_names(program).items():
        names.setdefault(symbol, name)
    return names


def _dim_name(label: Any) -> str | None:
    name = getattr(label, "__name__", None)
    return name if isinstance(name, str) and isinstance(label, torch.export.Dim) else None
