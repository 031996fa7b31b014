"""Names of symbolic axes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import onnx_ir as ir

from atonnx.errors import OnnxExporterError, both

__all__ = ["rename_axes"]

_RANGES = "pkg.torch.export.ExportedProgram.range_constraints"
_RANGE = re.compile(r"(?<=[{ ])(?P<name>[^{}]+?): (?P<bounds>VR\[[^\]]*\])")


def rename_axes(model: ir.Model, mapping: Mapping[str | ir.SymbolicDim, str]) -> None:
    """Rename symbolic axes wherever a shape has them, in expressions and range constraints too.

    All renamings happen at once, so that names can be swapped; of two keys that fit at a place,
    the longer wins.
    """
    names = {_key(key): _name(value) for key, value in mapping.items()}
    if not names:
        return
    longest_first = sorted(names, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")

    def renamed_text(text: str) -> str:
        return names.get(text) or pattern.sub(lambda match: names[match.group()], text)

    def renamed(dim: int | ir.SymbolicDim) -> int | str | None:
        plain = _plain(dim)
        return renamed_text(plain) if isinstance(plain, str) else plain

    ranges = model.graph.metadata_props.get(_RANGES)
    if ranges:
        model.graph.metadata_props[_RANGES] = _RANGE.sub(
            lambda match: f"{renamed_text(match['name'])}: {match['bounds']}", ranges
        )

    for value in _values(model):
        shape = value.shape
        if shape is None or shape.is_static():
            continue
        dims = [renamed(dim) for dim in shape]
        if any(new != _plain(old) for new, old in zip(dims, shape, strict=True)):
            new_shape = ir.Shape(dims)
            for axis in range(len(dims)):
                new_shape.set_denotation(axis, shape.get_denotation(axis))
            value.shape = new_shape


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, ir.SymbolicDim):
        if isinstance(key.value, str):
            return key.value
        raise both(OnnxExporterError, ValueError)(f"{key!r} has no name that could be renamed")
    raise both(OnnxExporterError, ValueError)(
        f"axes are renamed by their names or ir.SymbolicDim objects, not by {key!r} ({type(key).__name__})"
    )


def _name(name: object) -> str:
    if isinstance(name, str) and name:
        return name
    raise both(OnnxExporterError, ValueError)(f"the new name of an axis must be a string, not {name!r}")


def _plain(dim: int | ir.SymbolicDim) -> int | str | None:
    return dim if isinstance(dim, int) else dim.value


def _values(model: ir.Model) -> Iterator[ir.Value]:
    """All values: of the graph, its bodies, and functions."""
    for graph in model.graphs():
        yield from graph.inputs
        yield from graph.initializers.values()
        for node in graph:
            yield from node.outputs
    for function in model.functions.values():
        yield from function.inputs
        for node in ir.traversal.RecursiveGraphIterator(function):
            yield from node.outputs
