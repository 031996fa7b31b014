"""The only module of the build that touches private names of torch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.fx.experimental import _config as symbolic_config
from torch.fx.experimental.proxy_tensor import make_fx

__all__ = [
    "FakeTensor",
    "HigherOrderOperator",
    "OpOverload",
    "fake_mode_of",
    "functional_overload",
    "is_write",
    "oblivious",
    "recorded_guards",
    "storage_key",
    "trace",
    "unset_fake_temporarily",
    "written_by",
]

# Their schema says that they write, but no data changes.
_NOT_WRITES = {"aten::detach_", "aten::requires_grad_", "aten::rename_", "aten::resolve_conj"}


def oblivious() -> contextlib.AbstractContextManager[Any]:
    """Sizes 0 and 1 of a dynamic dim stay dynamic."""
    patch: Any = symbolic_config.patch  # type: ignore[attr-defined]
    return patch(backed_size_oblivious=True)  # type: ignore[no-any-return]


def fake_mode_of(values: Sequence[Any]) -> Any:
    """The FakeTensorMode of the first fake tensor among ``values``; None without one."""
    return detect_fake_mode(list(values))


def storage_key(value: Any) -> int | None:
    """Identity of a tensor's storage; None where it has none."""
    if not isinstance(value, torch.Tensor):
        return None
    try:
        return int(value.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return None


def is_write(target: Any) -> bool:
    """Whether the overload changes data of an argument."""
    return isinstance(target, OpOverload) and target._schema.is_mutable and target._name not in _NOT_WRITES


def _written_arguments(target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The arguments that the overload writes to, in the order of the schema."""
    found: list[Any] = []
    for index, argument in enumerate(target._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            found.extend(value if isinstance(value, (list, tuple)) else [value])
    return [value for value in found if value is not None]


def written_by(node: torch.fx.Node) -> list[Any]:
    """The arguments that a node writes to: nodes, or what stands in their place."""
    target = node.target
    return _written_arguments(target, node.args, node.kwargs) if isinstance(target, OpOverload) else []


def functional_overload(target: OpOverload) -> OpOverload | None:
    """The overload that computes what an in-place or ``out=`` one writes; None where there is none."""
    namespace, name = target._schema.name.split("::")
    outs = {a.name for a in target._schema.arguments if a.is_out}
    base = name if outs else name.removesuffix("_")
    if not outs and base == name:
        return None
    packet = getattr(getattr(torch.ops, namespace), base, None)
    if packet is None:
        return None
    wanted = [(a.name, str(a.type)) for a in target._schema.arguments if a.name not in outs]
    for overload in packet.overloads():
        candidate = getattr(packet, overload)
        schema = candidate._schema
        if not schema.is_mutable and [(a.name, str(a.type)) for a in schema.arguments] == wanted:
            return candidate  # type: ignore[no-any-return]
    return None


def recorded_guards(shape_env: Any) -> tuple[Any, ...]:
    """What tracing may add to a ShapeEnv: guards, replacements, ranges, deferred asserts."""
    return (
        len(shape_env.guards),
        dict(shape_env.replacements),
        dict(shape_env.var_to_range),
        {k: len(v) for k, v in shape_env.deferred_runtime_asserts.items()},
    )


@contextlib.contextmanager
def restored(shape_env: Any) -> Iterator[None]:
    """Put a ShapeEnv back as it was."""
    guards = list(shape_env.guards)
    replacements = dict(shape_env.replacements)
    ranges = dict(shape_env.var_to_range)
    asserts = {k: list(v) for k, v in shape_env.deferred_runtime_asserts.items()}
    axioms = dict(shape_env.axioms)
    try:
        yield
    finally:
        shape_env.guards[:] = guards
        shape_env.replacements.clear()
        shape_env.replacements.update(replacements)
        shape_env.var_to_range.clear()
        shape_env.var_to_range.update(ranges)
        shape_env.deferred_runtime_asserts.clear()
        shape_env.deferred_runtime_asserts.update(asserts)
        shape_env.axioms.clear()
        shape_env.axioms.update(axioms)
        shape_env._update_version_counter()


def trace(fn: Any, args: Sequence[Any]) -> torch.fx.GraphModule:
    """The graph of ``fn`` over fake tensors, under their own mode."""
    return make_fx(fn, tracing_mode="symbolic", _error_on_data_dependent_ops=True)(*args)
