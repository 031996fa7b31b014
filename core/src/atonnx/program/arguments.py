"""From the arguments of a call to the graph's inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree

from atonnx.build.dtypes import to_torch
from atonnx.errors import OnnxExporterError, both

__all__ = ["INPUT_KIND", "bind", "copied", "flat", "state_inputs", "with_leaves"]

INPUT_KIND = "pkg.torch.export.graph_signature.InputSpec.kind"

_ABSENT: Any = object()


@dataclass(frozen=True)
class _Slot:
    """One argument of the captured call: its name, its structure, and what its leaves became."""

    name: str
    spec: Any
    leaves: tuple[Any, ...]

    @property
    def is_baked(self) -> bool:
        return all(isinstance(leaf, ConstantArgument) for leaf in self.leaves)


def bind(
    inputs: Sequence[ir.Value],
    exported_program: torch.export.ExportedProgram | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> dict[str, torch.Tensor]:
    """The tensors to feed, by the names of the graph's inputs.

    Arguments are those of the captured module: positional ones in order, keywords by name. Those
    that the capture made part of the graph may be left out, and cannot change. The values of buffers
    that are inputs of the graph are keywords under their names.

    Raises:
        OnnxExporterError: also a TypeError or a ValueError, where the arguments do not fit.
    """
    if exported_program is None:
        values = _by_input_names(inputs, args, kwargs)
    else:
        state = [str(value.name) for value in state_inputs(inputs)]
        values = _by_signature(
            exported_program, args, {name: value for name, value in kwargs.items() if name not in state}
        )
        missing = [name for name in state if kwargs.get(name) is None]
        if missing:
            raise both(OnnxExporterError, TypeError)(
                f"missing arguments: {', '.join(missing)}",
                hint="these are the states of buffers, which are inputs of the graph: pass them by name",
            )
        values += [(name, kwargs[name]) for name in state]
    if len(values) != len(inputs):
        raise both(OnnxExporterError, TypeError)(
            f"the graph has {len(inputs)} inputs ({', '.join(str(i.name) for i in inputs)}), "
            f"the arguments have {len(values)} tensors"
        )
    return {str(i.name): _tensor(i, name, value) for i, (name, value) in zip(inputs, values, strict=True)}


def state_inputs(inputs: Sequence[ir.Value]) -> list[ir.Value]:
    """Inputs that bring in the values of buffers, after those of the module (``state="io"``)."""
    return [v for v in inputs if v.metadata_props.get(INPUT_KIND, "USER_INPUT") != "USER_INPUT"]


def flat(exported_program: torch.export.ExportedProgram, args: Any, kwargs: Any) -> list[Any]:
    """The leaves of a call's arguments, in the order of the captured program's inputs."""
    return _flat(exported_program, args, kwargs)[0]


def with_leaves(
    exported_program: torch.export.ExportedProgram, args: Any, kwargs: Any, leaves: Iterable[Any]
) -> tuple[Any, Any]:
    """The arguments with other leaves, which are in the order of :func:`flat`."""
    made = pytree.tree_unflatten(list(leaves), _flat(exported_program, args, kwargs)[1])
    return made[0], made[1]


def copied(exported_program: torch.export.ExportedProgram, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments with tensors of their own, so that a run which writes into them does no harm."""
    leaves, spec = _flat(exported_program, args, kwargs)
    copies = [leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    made = pytree.tree_unflatten(copies, spec)
    return made[0], made[1]


def _flat(
    exported_program: torch.export.ExportedProgram, args: Any, kwargs: Any
) -> tuple[list[Any], pytree.TreeSpec]:
    """The leaves of a call and its structure: the captured one's where the call fits it."""
    spec = exported_program.call_spec.in_spec
    names = list(spec.child(1).context) if spec is not None else []
    if spec is not None and set(names) == set(kwargs):
        with suppress(ValueError, KeyError):
            return spec.flatten_up_to((tuple(args), {name: kwargs[name] for name in names})), spec
    leaves, own = pytree.tree_flatten((tuple(args), dict(kwargs)))
    return leaves, own


def _by_signature(
    exported_program: torch.export.ExportedProgram, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    slots, positional = _slots(exported_program)
    given = [_ABSENT] * len(slots)
    given[: min(len(args), positional)] = args[:positional]
    if any(value is not None for value in args[positional:]):
        raise both(OnnxExporterError, TypeError)(
            f"the program takes {positional} positional arguments but {len(args)} were given; "
            f"it was exported with ({', '.join(slot.name for slot in slots)})"
        )
    index = {slot.name: i for i, slot in enumerate(slots)}
    for name, value in kwargs.items():
        if name not in index:
            if value is not None:
                raise both(OnnxExporterError, TypeError)(
                    f"the program has no argument {name!r}; it was exported with ({', '.join(index)})"
                )
        elif given[index[name]] is not _ABSENT:
            raise both(OnnxExporterError, TypeError)(f"argument {name!r} was given twice")
        else:
            given[index[name]] = value

    missing = [s.name for s, value in zip(slots, given, strict=True) if value is _ABSENT and not s.is_baked]
    if missing:
        raise both(OnnxExporterError, TypeError)(f"missing arguments: {', '.join(missing)}")
    values = []
    for slot, value in zip(slots, given, strict=True):
        if value is not _ABSENT:
            values += _leaves(slot, value)
    return values


def _slots(exported_program: torch.export.ExportedProgram) -> tuple[list[_Slot], int]:
    """The arguments of the captured call, and how many of them are positional."""
    args_spec, kwargs_spec = exported_program.call_spec.in_spec.children()
    specs = [*args_spec.children(), *kwargs_spec.children()]
    names = [f"args[{i}]" for i in range(args_spec.num_children)] + list(kwargs_spec.context)
    signature = exported_program.module_call_graph[0].signature
    if signature is not None and len(signature.forward_arg_names or ()) == len(names):
        names = list(signature.forward_arg_names)
    user = [
        spec.arg for spec in exported_program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT
    ]
    slots = []
    for name, spec in zip(names, specs, strict=True):
        slots.append(_Slot(name, spec, tuple(user[: spec.num_leaves])))
        del user[: spec.num_leaves]
    return slots, args_spec.num_children


def _leaves(slot: _Slot, value: Any) -> list[tuple[str, Any]]:
    """The tensors and numbers in an argument that are inputs of the graph."""
    try:
        leaves = slot.spec.flatten_up_to(value)
    except (ValueError, KeyError) as error:
        raise both(OnnxExporterError, TypeError)(
            f"argument {slot.name!r} has another structure than at export: {error}"
        ) from error
    found = []
    for leaf, captured in zip(leaves, slot.leaves, strict=True):
        if isinstance(captured, ConstantArgument):
            if isinstance(leaf, torch.Tensor) or leaf != captured.value:
                shown = "a tensor" if isinstance(leaf, torch.Tensor) else repr(leaf)
                raise both(OnnxExporterError, ValueError)(
                    f"argument {slot.name!r} was {captured.value!r} at export, which is now part of the "
                    f"graph; it cannot be {shown}",
                    hint="export again with the other value, or pass a tensor",
                )
        elif leaf is None:
            raise both(OnnxExporterError, TypeError)(
                f"argument {slot.name!r} was a tensor at export; it cannot be None"
            )
        else:
            found.append((slot.name, leaf))
    return found


def _by_input_names(
    inputs: Sequence[ir.Value], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    """Without a captured program: leaves in order, keywords by the names of inputs."""
    leaves = [leaf for leaf in pytree.tree_leaves(tuple(args)) if leaf is not None]
    names = [str(i.name) for i in inputs]
    if len(leaves) > len(names):
        raise both(OnnxExporterError, TypeError)(
            f"the graph has {len(names)} inputs ({', '.join(names)}) but {len(leaves)} tensors were given"
        )
    values = dict(zip(names, leaves, strict=False))
    for name, value in kwargs.items():
        if value is None:
            continue
        if name not in names or name in values:
            problem = "was given twice" if name in values else f"is no input ({', '.join(names)})"
            raise both(OnnxExporterError, TypeError)(f"argument {name!r} {problem}")
        values[name] = value
    missing = [name for name in names if name not in values]
    if missing:
        raise both(OnnxExporterError, TypeError)(f"missing arguments: {', '.join(missing)}")
    return [(name, values[name]) for name in names]


def _tensor(value: ir.Value, name: str, given: Any) -> torch.Tensor:
    """What to feed to the input ``value``: a complex tensor as pairs, a number with the input's dtype."""
    wanted = None if value.dtype is None else to_torch(value.dtype)
    if isinstance(given, torch.Tensor):
        tensor = torch.view_as_real(given.detach().resolve_conj()) if given.is_complex() else given
        if wanted is not None and tensor.dtype != wanted:
            raise both(OnnxExporterError, TypeError)(
                f"argument {name!r}: input {value.name!r} has dtype {wanted}, the tensor has {tensor.dtype}"
            )
        return tensor
    if not isinstance(given, (bool, int, float)):
        raise both(OnnxExporterError, TypeError)(
            f"argument {name!r}: input {value.name!r} takes a tensor or a number, "
            f"not a {type(given).__name__}"
        )
    if isinstance(given, float) and wanted is not None and not wanted.is_floating_point:
        raise both(OnnxExporterError, TypeError)(
            f"argument {name!r}: input {value.name!r} has dtype {wanted}, it cannot be {given!r}"
        )
    natural = {bool: torch.bool, int: torch.int64, float: torch.float32}[type(given)]
    return torch.tensor(given, dtype=wanted or natural)
