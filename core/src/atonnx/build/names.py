"""Names of the graph's inputs and outputs: the user's, else where the model returns an output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from atonnx.build.source import USER_OUTPUTS, Source
from atonnx.errors import OnnxExporterError, both

__all__ = ["Names", "check_names"]


def check_names(input_names: Sequence[str], output_names: Sequence[str]) -> None:
    """Check that no name is given twice.

    Raises:
        OnnxExporterError: also a ValueError.
    """
    for what, names in (("Input", input_names), ("Output", output_names)):
        double = sorted({name for name in names if list(names).count(name) > 1})
        if double:
            raise both(OnnxExporterError, ValueError)(f"{what} names cannot be duplicated: {double}")
    shared = sorted(set(input_names) & set(output_names))
    if shared:
        raise both(OnnxExporterError, ValueError)(
            f"{shared} are given both in input_names and in output_names",
            hint="every tensor of an ONNX graph has one name, also where an input is returned",
        )


@dataclass(frozen=True, slots=True)
class Names:
    """``inputs`` holds for each input its name in the program, and the one that was chosen or "".

    ``outputs`` has the chosen names, by the place among the program's outputs.
    """

    inputs: tuple[tuple[str, str], ...]
    outputs: dict[int, str]

    @classmethod
    def of(cls, source: Source, input_names: Sequence[str], output_names: Sequence[str]) -> Names:
        """The names for a program. Outputs without one go by their keys, joined by dots."""
        own = [
            spec.name
            for node, spec in zip(source.placeholders(), source.inputs, strict=True)
            if spec.kind == "USER_INPUT" and isinstance(node.meta.get("val"), _INPUTS)
        ]
        chosen = [*input_names, *[""] * len(own)]
        taken = {*input_names, *output_names, *own, *(spec.target for spec in source.inputs)}
        outputs: dict[int, str] = {}
        given = iter(output_names)
        for place, key in _keys_of_outputs(source):
            name = next(given, "")
            if not name and key:
                name = next(n for n in _numbered(key) if n not in taken)
                taken.add(name)
            if name:
                outputs[place] = name
        return cls(tuple(zip(own, chosen, strict=False)), outputs)

    def all(self) -> Iterator[str]:
        """All chosen names."""
        yield from (name for _, name in self.inputs if name)
        yield from self.outputs.values()


_INPUTS = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)


def _numbered(name: str) -> Iterator[str]:
    """The name, then with numbers."""
    yield name
    count = 1
    while True:
        yield f"{name}_{count}"
        count += 1


def _keys_of_outputs(source: Source) -> Iterator[tuple[int, str]]:
    """Place and key of each of the user's outputs that is not None."""
    places = [place for place, spec in enumerate(source.outputs) if spec.kind in USER_OUTPUTS]
    keys = list(_keys(source.structure)) if source.structure is not None else []
    if len(keys) != len(places):
        keys = [""] * len(places)
    arguments = source.results()
    return ((place, key) for place, key in zip(places, keys, strict=True) if arguments[place] is not None)


def _keys(spec: pytree.TreeSpec, path: str = "") -> Iterator[str]:
    """The key of each leaf. Places in sequences count only below a dict or an object with fields."""
    if spec.is_leaf():
        yield path
        return
    names = _fields(spec)
    for place, child in enumerate(spec.children()):
        step = str(names[place]) if names is not None else str(place) if path else ""
        yield from _keys(child, f"{path}.{step}" if path else step)


def _fields(spec: pytree.TreeSpec) -> Sequence[Any] | None:
    """The keys or fields of a container; None for a sequence."""
    kind, context = spec.type, spec.context
    if kind in (list, tuple):
        return None
    if hasattr(context, "_fields"):  # a namedtuple's context is its class
        return list(context._fields)
    # The context of a dict is its keys; of a defaultdict and of a dataclass, a pair that has them.
    for found in (context, *context) if isinstance(context, (list, tuple)) else ():
        if isinstance(found, (list, tuple)) and len(found) == spec.num_children:
            if all(isinstance(name, (str, int)) for name in found):
                return found
    return None
