"""In-place operators as renaming.

The training IR writes in place and its signature lists no mutations. A write whose live aliases are
all the same view of the storage is a renaming: from there on they mean the new value. A write that
a live alias of another geometry sees needs the functional form of the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from atonnx.build._torch import OpOverload, fake_mode_of, is_write, storage_key, written_by

__all__ = ["AliasPlan", "plan_aliases"]

Geometry = tuple[Any, ...]


@dataclass(slots=True)
class AliasPlan:
    """What follows from each write.

    ``renamed``: for a writing node, the (written argument, nodes that mean the new value). ``state``:
    placeholders that are written to. ``touched``: nodes of every storage that is written to.
    ``through_view``: the first write that renaming cannot express.
    """

    renamed: dict[torch.fx.Node, list[tuple[torch.fx.Node, list[torch.fx.Node]]]] = field(
        default_factory=dict
    )
    state: set[torch.fx.Node] = field(default_factory=set)
    touched: set[torch.fx.Node] = field(default_factory=set)
    through_view: torch.fx.Node | None = None


def plan_aliases(graph: torch.fx.Graph, *, nested: bool = False) -> AliasPlan:
    """Find what every write of ``graph`` renames.

    ``nested``: the graph is a body; a write to one of its placeholders is then a write through a view.
    """
    plan = AliasPlan()
    nodes = list(graph.nodes)
    writes = [n for n in nodes if n.op == "call_function" and is_write(n.target)]
    if not writes:
        return plan
    values = _values(nodes, writes)
    order = {node: i for i, node in enumerate(nodes)}
    last_use = {n: max((order[u] for u in n.users), default=-1) for n in nodes}
    families: dict[int, list[torch.fx.Node]] = {}
    for node in nodes:
        key = storage_key(values.get(node))
        if key is not None and not (isinstance(values[node], torch.Tensor) and _is_empty(values[node])):
            families.setdefault(key, []).append(node)
    for node in writes:
        pairs = []
        for written in written_by(node):
            if not isinstance(written, torch.fx.Node):
                continue
            value = values.get(written)
            key = storage_key(value)
            family = families.get(key, [written]) if key is not None else [written]
            plan.touched.update(family)
            same = []
            for alias in family:
                live = last_use[alias] > order[node] or (alias.op == "placeholder")
                if alias is node or order[alias] > order[node] or not (live or alias is written):
                    continue
                if _geometry(values[alias]) == _geometry(value):
                    same.append(alias)
                elif plan.through_view is None:
                    plan.through_view = node
                if alias.op == "placeholder":
                    plan.state.add(alias)
                    if nested and plan.through_view is None:
                        plan.through_view = node
            pairs.append((written, same))
        plan.renamed[node] = pairs
    return plan


def _is_empty(tensor: torch.Tensor) -> bool:
    return all(isinstance(s, int) for s in tensor.shape) and 0 in tensor.shape


def _geometry(tensor: Any) -> Geometry:
    """Sizes, strides and offset, symbols by their expressions."""
    return (
        tensor.dtype,
        *(_plain(s) for s in tensor.shape),
        *(_plain(s) for s in tensor.stride()),
        _plain(tensor.storage_offset()),
    )


def _plain(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size


def _values(nodes: list[torch.fx.Node], writes: list[torch.fx.Node]) -> Mapping[torch.fx.Node, Any]:
    """Fake values whose storages tell the aliases.

    In a program captured in this process the recorded values do. In a loaded one no two share a
    storage, so one propagation of fakes makes values that do.
    """
    recorded = {n: n.meta.get("val") for n in nodes}
    for node in writes:
        for written in written_by(node):
            if not isinstance(written, torch.fx.Node):
                continue
            result = recorded.get(node)
            if isinstance(result, torch.Tensor) and _returns_self(node.target):
                if storage_key(result) == storage_key(recorded.get(written)):
                    continue
                return _propagated(nodes, recorded)
    return recorded


def _returns_self(target: Any) -> bool:
    returns = target._schema.returns
    return bool(returns) and returns[0].alias_info is not None and returns[0].alias_info.is_write


def _propagated(
    nodes: list[torch.fx.Node], recorded: Mapping[torch.fx.Node, Any]
) -> Mapping[torch.fx.Node, Any]:
    mode = fake_mode_of([v for v in recorded.values() if isinstance(v, torch.Tensor)])
    env: dict[torch.fx.Node, Any] = {}
    for node in nodes:
        value = recorded.get(node)
        env[node] = value
        if node.op != "call_function" or not isinstance(value, (torch.Tensor, list, tuple)):
            continue
        if isinstance(node.target, OpOverload) and not _may_alias(node.target):
            continue
        if not isinstance(node.target, OpOverload) and getattr(node.target, "__name__", "") != "getitem":
            continue
        args = torch.fx.map_arg(node.args, lambda n: env[n])
        kwargs = torch.fx.map_arg(node.kwargs, lambda n: env[n])
        with mode:
            env[node] = node.target(*args, **kwargs)  # type: ignore[operator]
    return env


def _may_alias(target: OpOverload) -> bool:
    """Whether a result can share storage with an argument: by schema, or because its kernel is composite."""
    if any(r.alias_info is not None for r in target._schema.returns):
        return True
    return target.has_kernel_for_dispatch_key(torch.DispatchKey.CompositeImplicitAutograd)
