"""The only module of the build that touches private names of torch."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensor, disable_fake_tensor_cache, unset_fake_temporarily
from torch.fx.experimental import _config as symbolic_config
from torch.fx.experimental.proxy_tensor import make_fx

__all__ = [
    "FakeTensor",
    "Guards",
    "HigherOrderOperator",
    "OpOverload",
    "Recorded",
    "fake_mode_of",
    "apart",
    "functional_overload",
    "is_write",
    "oblivious",
    "recording",
    "storage_key",
    "trace",
    "unset_fake_temporarily",
    "written_by",
]

# What functional forms of creation take besides.
_OPTIONS = {"dtype", "layout", "device", "pin_memory"}

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


_FUNCTIONAL = "_functional"


def apart(target: OpOverload, functional: OpOverload | None, results: Any) -> tuple[Any, tuple[Any, ...]]:
    """The results of ``target`` among those of its functional form, and what it writes if those tell."""
    if functional is None or not functional._schema.name.endswith(_FUNCTIONAL):
        return results, ()
    count = len(target._schema.returns)
    return results[0] if count == 1 else results[:count], results[count:]


def functional_overload(target: OpOverload) -> OpOverload | None:
    """The overload that computes what an in-place or ``out=`` one writes; None where there is none.

    Where an operator writes and has results of its own, the functional one's last results are what is
    written.
    """
    namespace, name = target._schema.name.split("::")
    outs = {a.name for a in target._schema.arguments if a.is_out}
    base = name if outs else name.removesuffix("_")
    if not outs and base == name:
        base = name + _FUNCTIONAL
    packet = getattr(getattr(torch.ops, namespace), base, None)
    if packet is None:
        return None
    wanted = [(a.name, str(a.type)) for a in target._schema.arguments if a.name not in outs]
    made = None
    for overload in packet.overloads():
        candidate = getattr(packet, overload)
        schema = candidate._schema
        if schema.is_mutable:
            continue
        found = [(a.name, str(a.type)) for a in schema.arguments]
        if found == wanted:
            return candidate  # type: ignore[no-any-return]
        if outs and [pair for pair in found if pair[0] not in _OPTIONS] == wanted:
            made = candidate  # a new tensor, which has the dtype of `out`
    return made


class Guards(list[Any]):
    """A ShapeEnv's guards; ``added`` are those of a trace, each with what made it.

    "condition": Python code took a truth value, ``if size == 1``. "check": the trace goes on only
    where it holds, as after ``torch._check``. "kernel": a kernel, or a tensor's own bookkeeping of its
    strides. "number": a size was turned into a number.
    """

    def __init__(self, guards: Sequence[Any]) -> None:
        super().__init__(guards)
        self.added: list[tuple[Any, str]] = []

    def append(self, guard: Any) -> None:
        """Keep a guard, with the reason for it that the stack tells."""
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_name not in ("guard_bool", "guard_int", "guard_float"):
            frame = frame.f_back
        if frame is None or frame.f_code.co_name != "guard_bool":
            why = "number"
        else:
            why = {"bool_": "condition", "expect_true": "check"}.get(frame.f_back.f_code.co_name, "kernel")
        self.added.append((guard, why))
        super().append(guard)


@dataclass(slots=True)
class Recorded:
    """What a ShapeEnv knew before a trace."""

    replacements: dict[Any, Any]
    ranges: dict[Any, Any]


@contextlib.contextmanager
def recording(mode: Any) -> Iterator[Recorded]:
    """Trace as if for the first time, and forget after what the ShapeEnv learnt of older symbols.

    Answers that torch has kept, of conditions and of fake kernels, would add no guards.
    """
    env = mode.shape_env
    before = Recorded(dict(env.replacements), dict(env.var_to_range))
    asserts = {symbol: list(found) for symbol, found in env.deferred_runtime_asserts.items()}
    guards, slocs = env.guards, dict(env.replacements_slocs)
    axioms, divisible = dict(env.axioms), set(env.divisible)
    count, pending = env.num_deferred_runtime_asserts, list(env.pending_fresh_unbacked_symbols)
    type(env)._inner_evaluate_expr.cache_clear()
    env.guards = Guards(guards)
    try:
        with disable_fake_tensor_cache(mode):
            yield before
    finally:
        env.guards = guards
        for known, old in (
            (env.replacements, before.replacements),
            (env.replacements_slocs, slocs),
            (env.deferred_runtime_asserts, asserts),
            (env.axioms, axioms),
        ):
            known.clear()
            known.update(old)
        env.var_to_range.update(before.ranges)
        env.divisible.clear()
        env.divisible.update(divisible)
        env.num_deferred_runtime_asserts = count
        env.pending_fresh_unbacked_symbols[:] = pending
        env._replacements_version_counter += 1
        env._version_counter += 1
        type(env)._inner_evaluate_expr.cache_clear()


def trace(fn: Any, args: Sequence[Any]) -> torch.fx.GraphModule:
    """The graph of ``fn`` over fake tensors, under their own mode."""
    with torch.no_grad():
        return make_fx(fn, tracing_mode="symbolic", _error_on_data_dependent_ops=True)(*args)
