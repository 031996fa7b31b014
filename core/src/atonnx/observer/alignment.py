"""Calls laid over each other: which axes vary, and what stands in for an input that a call leaves out."""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch
import torch.utils._pytree as pytree
from torch.export import Dim

from atonnx.errors import OnnxExporterError, OnnxExporterWarning, both
from atonnx.observer.calls import ABSENT, Call, Parameters, is_same

__all__ = ["Alignment"]

Slot = int | str
"""The place or the name of an argument."""

_DICTS = (dict, OrderedDict, defaultdict)
_PLAIN = (*_DICTS, list, tuple, deque, namedtuple)


@dataclass(slots=True)
class _Leaf:
    """One place for a tensor: those of all calls that have one there, or the constant that stands there."""

    slot: Slot
    tensors: list[torch.Tensor] = field(default_factory=list)
    constant: Any = None

    def dynamic(self, batched: bool) -> list[int]:
        """The axes whose sizes differ, and the first if it is said to be the batch."""
        ranks = sorted({tensor.dim() for tensor in self.tensors})
        if len(ranks) > 1:
            raise OnnxExporterError(
                f"{_title(self.slot)} has tensors with {' and '.join(map(str, ranks))} axes; "
                "all calls must have the same number"
            )
        sizes = zip(*(tensor.shape for tensor in self.tensors), strict=True)
        return [axis for axis, seen in enumerate(sizes) if len(set(seen)) > 1 or (axis == 0 and batched)]

    def add(self, value: Any) -> None:
        """One more call's value; None is no value."""
        if isinstance(value, torch.Tensor) and self.constant is None:
            self.tensors.append(value)
        elif value is not None and self.constant is None and not self.tensors:
            self.constant = value
        else:
            self.check(value)

    def check(self, value: Any) -> None:
        """Refuse another constant than there is, or a tensor for a constant."""
        if value is None or (self.tensors and isinstance(value, torch.Tensor)):
            return
        if self.tensors or not is_same(value, self.constant):
            raise OnnxExporterError(
                f"Two calls were made with different constant values, {_title(self.slot)} is "
                f"{_shown(value)} and {_shown(self.tensors[0] if self.tensors else self.constant)}",
                hint="a class that holds tensors is registered with "
                "torch.utils._pytree.register_pytree_node before the calls",
            )

    def stand_in(self) -> torch.Tensor | Any:
        """A tensor without elements, the last dynamic axis being 0; zeros where all axes are static."""
        if not self.tensors:
            return self.constant
        like = self.tensors[-1]
        axes = self.dynamic(False)
        if like.numel() == 0:
            return like
        shape = (
            [0 if axis == axes[-1] else size for axis, size in enumerate(like.shape)] if axes else like.shape
        )
        return torch.zeros(shape, dtype=like.dtype, device=like.device)


class Alignment:
    """Calls aligned on the one that has the most arguments.

    Raises:
        OnnxExporterError: no call has all arguments, two have different constants, or one argument has
            another structure in another call.
    """

    def __init__(self, parameters: Parameters, calls: Sequence[Call]) -> None:
        self._parameters = parameters
        self.best = max(calls, key=lambda call: (len(call.args) + len(call.kwargs), len(call.flat_list)))
        self.constants = self.best.constants
        self._slots: list[Slot] = [*range(len(self.best.args)), *self.best.kwargs]
        for call in calls:
            if call.constants.keys() != self.constants.keys():
                self._refuse(call)
            self._check_constants(call)
            unknown = self._unknown(call)
            if unknown:
                raise OnnxExporterError(
                    "At least one call to the observed model must contain all the named arguments. "
                    f"One call has {', '.join(unknown)} ({call.str_obs()}), which the one with the most "
                    f"arguments lacks: {self.best.str_obs()}"
                )
        self._specs = {slot: self._spec(slot, calls) for slot in self._slots}
        self._leaves = [_Leaf(slot) for slot in self._slots for _ in range(self._specs[slot].num_leaves)]
        for call in calls:
            for leaf, value in zip(self._leaves, self._flat(call), strict=True):
                leaf.add(value)
        for call in calls:
            self._check_absent(call)
            call.aligned_flat_list = self.tensors(self._flat(call))

    def leaves(self, call: Call) -> list[Any]:
        """A call's leaves, with stand-ins for those that it lacks."""
        return [
            leaf.stand_in() if value is None else value
            for leaf, value in zip(self._leaves, self._flat(call), strict=True)
        ]

    def given(self, call: Call) -> list[Any]:
        """The same of a call that was not observed.

        Raises:
            OnnxExporterError: also a ValueError, where it has an argument that no observed call has.
        """
        args, kwargs = list(call.args), dict(call.kwargs)
        for place in range(len(self.best.args)):
            name = self._parameters.keyword_at(place)
            if name is not None and name in kwargs:
                args += [None] * (place + 1 - len(args))
                args[place] = kwargs.pop(name)
        placed = Call(tuple(args), kwargs, call.constants)
        unknown = self._unknown(placed)
        if unknown:
            raise both(OnnxExporterError, ValueError)(
                f"the observed calls have no argument {', '.join(unknown)}; they have: {self.best.str_obs()}"
            )
        self._check_constants(placed)
        for leaf, value in zip(self._leaves, self._flat(placed), strict=True):
            leaf.check(value)
        return self.leaves(placed)

    def tensors(self, leaves: Sequence[Any]) -> list[Any]:
        """Those of aligned leaves that are inputs of the graph."""
        return [value for leaf, value in zip(self._leaves, leaves, strict=True) if leaf.tensors]

    def arguments(self, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Aligned leaves as arguments, the constants among them."""
        rest = iter(leaves)
        values = {
            slot: pytree.tree_unflatten([next(rest) for _ in range(spec.num_leaves)], spec)
            for slot, spec in self._specs.items()
        }
        args = tuple(values.pop(place) for place in range(len(self.best.args)))
        kwargs = {str(name): value for name, value in values.items()}
        return args, self._parameters.ordered({**kwargs, **self.constants})

    def by_name(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """Arguments under their names; None where one has no name."""
        names = [self._parameters.keyword_at(place) for place in range(len(args))]
        if None in names:
            return None
        return {**{str(name): value for name, value in zip(names, args, strict=True)}, **kwargs}

    def shapes(self, batched: bool | Collection[Slot] | None) -> Any:
        """The dynamic shapes, nested as the arguments are: a tuple, or a dict by the parameters."""
        self._warn_of_unknown(batched)
        rest = iter(
            dict.fromkeys(leaf.dynamic(self._is_batched(leaf.slot, batched)), Dim.DYNAMIC)
            if leaf.tensors
            else None
            for leaf in self._leaves
        )
        shapes = {slot: _nested(spec, rest) for slot, spec in self._specs.items()}
        parameters = self._parameters
        args = tuple(shapes.pop(place) for place in range(len(self.best.args)))
        if not shapes and not self.constants and parameters.var_positional is None:
            return args
        return self._by_parameter(args, {str(name): shape for name, shape in shapes.items()})

    def _by_parameter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        parameters = self._parameters
        found = dict(zip(parameters.positional, args, strict=False))
        if parameters.var_positional is not None and args:
            found[parameters.var_positional] = args[len(parameters.positional) :]
        kwargs = parameters.ordered({**kwargs, **dict.fromkeys(self.constants)})
        extra = {name: shape for name, shape in kwargs.items() if name not in parameters.order}
        found.update({name: shape for name, shape in kwargs.items() if name not in extra})
        if extra:
            found[str(parameters.var_keyword)] = extra
        return found

    def _warn_of_unknown(self, batched: bool | Collection[Slot] | None) -> None:
        names = () if batched is None or isinstance(batched, bool) else batched
        known = {*self._parameters.order, *self.best.kwargs}
        for name in names:
            if isinstance(name, str) and name not in known:
                warnings.warn(
                    f"set_batch_dimension_for has {name!r}, which is no argument of the observed method",
                    OnnxExporterWarning,
                    stacklevel=4,
                )

    def _is_batched(self, slot: Slot, batched: bool | Collection[Slot] | None) -> bool:
        if isinstance(batched, bool) or batched is None:
            return bool(batched)
        return slot in batched or (isinstance(slot, int) and self._parameters.name_at(slot) in batched)

    def _check_constants(self, call: Call) -> None:
        for name, value in call.constants.items():
            if not is_same(value, self.constants.get(name, self._parameters.default(name))):
                self._refuse(call)

    def _refuse(self, call: Call) -> NoReturn:
        raise OnnxExporterError(
            f"Two calls were made with different constant values, {call.constants} and {self.constants}",
            hint="observe them apart, and export the model once for each",
        )

    def _check_absent(self, call: Call) -> None:
        """A constant that a call leaves out must be the default, since it becomes part of the graph."""
        for leaf, value in zip(self._leaves, self._flat(call), strict=True):
            if value is None and leaf.constant is not None and self._specs[leaf.slot].is_leaf():
                place = leaf.slot
                name = self._parameters.name_at(place) if isinstance(place, int) else place
                leaf.check(self._parameters.default(name))

    def _unknown(self, call: Call) -> list[str]:
        """The arguments of a call for which there is no slot."""
        known = {*self.best.kwargs}
        found = [repr(name) for name in call.kwargs if name not in known]
        for place in range(len(self.best.args), len(call.args)):
            if self._parameters.keyword_at(place) not in known:
                found.append(f"positional argument {place}")
        return found

    def _value(self, call: Call, slot: Slot) -> Any:
        """A call's argument; ABSENT where it is not given, or given as None or as an empty container."""
        if isinstance(slot, int):
            value = call.args[slot] if slot < len(call.args) else ABSENT
        else:
            place = self._parameters.positional.index(slot) if slot in self._parameters.positional else -1
            value = call.args[place] if 0 <= place < len(call.args) else call.kwargs.get(slot, ABSENT)
        return ABSENT if all(leaf is None for leaf in pytree.tree_leaves(value)) else value

    def _spec(self, slot: Slot, calls: Sequence[Call]) -> pytree.TreeSpec:
        """The structure that an argument has in all calls that have it."""
        found: pytree.TreeSpec | None = None
        for value in (self._value(call, slot) for call in calls):
            if value is not ABSENT:
                spec = pytree.tree_structure(value)
                if found is not None:
                    _check_structure(slot, spec, found)
                found = found or spec
        if found is None:
            value = self.best.args[slot] if isinstance(slot, int) else self.best.kwargs[slot]
            return pytree.tree_structure(value)
        return found

    def _flat(self, call: Call) -> list[Any]:
        """The leaves of all slots, None for those that the call lacks."""
        flat: list[Any] = []
        for slot, spec in self._specs.items():
            value = self._value(call, slot)
            if value is ABSENT:
                flat += [None] * spec.num_leaves
                continue
            leaves, own = pytree.tree_flatten(value)
            _check_structure(slot, own, spec)
            if list(_keys(own)) != list(_keys(spec)):  # the same keys in another order
                leaves = spec.flatten_up_to(value)
            flat += leaves
        return flat


def _check_structure(slot: Slot, spec: pytree.TreeSpec, other: pytree.TreeSpec) -> None:
    if spec.num_leaves != other.num_leaves:
        raise OnnxExporterError(
            f"{_title(slot)} has {spec.num_leaves} tensors in one call and {other.num_leaves} in another"
        )
    if sorted(_keys(spec)) != sorted(_keys(other)):
        raise OnnxExporterError(f"{_title(slot)} has other keys in one call than in another")


def _keys(spec: pytree.TreeSpec) -> Iterator[str]:
    """The keys of all dicts in a structure."""
    if spec.type in _DICTS:
        yield from map(repr, spec.context[1] if spec.type is defaultdict else spec.context)
    for child in spec.children():
        yield from _keys(child)


def _nested(spec: pytree.TreeSpec, rest: Iterator[Any]) -> Any:
    """Leaves in the structure that torch.export has for dynamic shapes: classes are lists."""
    if spec.is_leaf():
        return next(rest)
    parts = [_nested(child, rest) for child in spec.children()]
    plain = spec.type in _PLAIN
    return pytree.SUPPORTED_NODES[spec.type].unflatten_fn(parts, spec.context) if plain else parts


def _title(slot: Slot) -> str:
    return f"Positional argument {slot}" if isinstance(slot, int) else f"Named argument {slot!r}"


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, (bool, int, float, str)) else f"a {type(value).__name__}"
