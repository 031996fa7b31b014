"""One observed call: its arguments by the parameters of the method, and what came out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree

from atonnx.errors import OnnxExporterError, both

__all__ = ["ABSENT", "Call", "Info", "Parameters", "check_missing_keys", "cloned", "is_same", "sorted_out"]

ABSENT = inspect.Parameter.empty
"""In place of an argument that a call does not have, or of a default that a parameter does not have."""

_SIMPLE = (bool, int, float, str)


class Parameters:
    """The parameters of the observed method."""

    def __init__(self, signature: inspect.Signature) -> None:
        kinds = inspect.Parameter
        found = list(signature.parameters.values())
        self.order = tuple(parameter.name for parameter in found)
        self.positional = tuple(
            p.name for p in found if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        )
        self.unnamed = frozenset(p.name for p in found if p.kind == kinds.POSITIONAL_ONLY)
        self.var_positional = next((p.name for p in found if p.kind == kinds.VAR_POSITIONAL), None)
        self.var_keyword = next((p.name for p in found if p.kind == kinds.VAR_KEYWORD), None)
        self._defaults = {p.name: p.default for p in found}

    def default(self, name: str) -> Any:
        """The parameter's default; one that only ``**kwargs`` takes is None where it is not given."""
        return self._defaults.get(name)

    def keyword_at(self, place: int) -> str | None:
        """The name under which a positional argument may be given as well."""
        name = self.positional[place] if place < len(self.positional) else None
        return None if name in self.unnamed else name

    def name_at(self, place: int) -> str:
        """The parameter that takes a positional argument."""
        return self.positional[place] if place < len(self.positional) else str(self.var_positional)

    def takes(self, name: str) -> bool:
        """Whether there is such a keyword."""
        if self.var_keyword is not None:
            return name not in self.unnamed
        return name in self.order and name not in self.unnamed and name != self.var_positional

    def ordered(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Keywords in the order of the parameters, others behind."""
        names = [name for name in self.order if name in kwargs]
        return {name: kwargs[name] for name in dict.fromkeys([*names, *kwargs])}


@dataclass(eq=False)
class Call:
    """One call. ``constants`` are the bools, numbers and strings that are not the parameters' defaults.

    ``outputs`` are the leaves of the result, None for what is neither a tensor nor a number.
    ``aligned_flat_list`` has a place for each tensor of any call, None where this one has none.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    constants: dict[str, Any]
    outputs: list[Any] = field(default_factory=list)
    seconds: float = 0.0
    aligned_flat_list: list[torch.Tensor | None] | None = None

    @property
    def flat_list(self) -> list[torch.Tensor | None]:
        """The leaves of the arguments, None for what is no tensor."""
        leaves = pytree.tree_leaves((self.args, self.kwargs))
        return [leaf if isinstance(leaf, torch.Tensor) else None for leaf in leaves]

    def str_obs(self) -> str:
        """What was given, in short."""
        return f"{len(self.args)} positional, by name {list(self.kwargs)}, constant {self.constants}"

    def keep(self, result: Any, seconds: float) -> None:
        """Store copies of a result."""
        leaves = pytree.tree_leaves(cloned(result))
        kinds = (torch.Tensor, bool, int, float)
        self.outputs = [leaf if isinstance(leaf, kinds) else None for leaf in leaves]
        self.seconds = seconds


@dataclass
class Info:
    """What was observed of one method."""

    parameters: Parameters
    inputs: list[Call] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def flat_outputs(self) -> list[list[Any]]:
        """The leaves of each call's result."""
        return [call.outputs for call in self.inputs]

    @property
    def latencies(self) -> list[float]:
        """The seconds that each call took."""
        return [call.seconds for call in self.inputs]


def sorted_out(
    parameters: Parameters,
    value_if_missing: Mapping[str | int, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    keep_defaults: bool = False,
) -> Call:
    """A call with the missing values put in, and without constants that the defaults say anyway."""
    args, kwargs = _completed(parameters, value_if_missing, list(args), dict(kwargs))
    constants: dict[str, Any] = {}
    # A constant at the end is the same by name, where calls that leave it out can be compared.
    while args and (args[-1] is None or isinstance(args[-1], _SIMPLE)):
        name = parameters.keyword_at(len(args) - 1)
        if name is None:
            break
        kwargs[name] = args.pop()
    kept = {}
    for name, value in kwargs.items():
        if isinstance(value, _SIMPLE) and (keep_defaults or not is_same(value, parameters.default(name))):
            constants[name] = value
        elif not is_same(value, parameters.default(name)):
            kept[name] = value
    return Call(tuple(args), parameters.ordered(kept), parameters.ordered(constants))


def cloned(tree: Any) -> Any:
    """The same, with tensors of its own."""
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().clone(), tree)


def is_same(value: Any, other: Any) -> bool:
    """Whether two constants are the same; nan is nan, and True is not 1."""
    if value is other:
        return True
    if type(value) is not type(other) or isinstance(value, torch.Tensor):
        return False
    if isinstance(value, float) and value != value:
        return bool(other != other)
    try:
        return (value == other) is True
    except Exception:  # an object of the user's that holds tensors
        return False


def _completed(
    parameters: Parameters, value_if_missing: Mapping[str | int, Any], args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    given = {parameters.name_at(place) for place, value in enumerate(args) if value is not None}
    for name, value in value_if_missing.items():
        if isinstance(name, str) and name not in given and kwargs.get(name) is None:
            place = parameters.positional.index(name) if name in parameters.positional else len(args)
            if place < len(args):
                args[place] = value
            else:
                kwargs[name] = value
    for place in sorted(key for key in value_if_missing if isinstance(key, int)):
        name = parameters.name_at(place)
        if place < len(args):
            args[place] = value_if_missing[place] if args[place] is None else args[place]
        elif place == len(args) and kwargs.get(name) is None:
            kwargs.pop(name, None)
            args.append(value_if_missing[place])
        elif kwargs.get(name) is None:
            kwargs[name] = value_if_missing[place]
    return args, kwargs


def check_missing_keys(parameters: Parameters, value_if_missing: Mapping[str | int, Any]) -> None:
    """Refuse keys of ``value_if_missing`` that no call could have.

    Raises:
        OnnxExporterError: also a ValueError; a TypeError for a key that is neither a name nor a place.
    """
    for key in value_if_missing:
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            raise both(OnnxExporterError, TypeError)(
                f"value_if_missing has the key {key!r}: keys are names or places of arguments"
            )
        if isinstance(key, str):
            fits = parameters.takes(key)
        else:
            fits = 0 <= key < len(parameters.positional)
        if not fits:
            raise both(OnnxExporterError, ValueError)(
                f"Unexpected keyword argument {key!r} provided as a value_if_missing input; "
                f"the parameters are {parameters.order}"
            )
