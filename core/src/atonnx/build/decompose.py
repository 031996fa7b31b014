"""Decomposition of a single node, on demand, refused where it would freeze a size.

The trace runs under the node's own fake mode with its recorded arguments. What it may not do is
learn: an added guard, replacement or range, or a result whose sizes are other expressions than the
node's, means that the decomposition holds for some sizes only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree

from atonnx.build import _torch
from atonnx.build._torch import OpOverload
from atonnx.build.sizes import SizeFacts

__all__ = ["Decomposer", "Refusal"]

Provider = Callable[[OpOverload], Callable[..., Any] | None]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node is not decomposed."""

    reason: str


class Decomposer:
    """Decomposes nodes of one program; graphs and refusals are kept by what determines them."""

    def __init__(
        self,
        table: Mapping[Any, Callable[..., Any] | None],
        providers: Iterable[Provider],
        facts: SizeFacts,
    ) -> None:
        self._table = table
        self._providers = tuple(providers)
        self._facts = facts
        self._made: dict[Any, torch.fx.GraphModule | Refusal] = {}

    def function_for(self, target: Any) -> Callable[..., Any] | None:
        """The decomposition that a plugin registered or a provider has; None where there is none."""
        if not isinstance(target, OpOverload):
            return None
        if target in self._table:
            return self._table[target]
        for provider in self._providers:
            found = provider(target)
            if found is not None:
                return found
        return None

    def decompose(self, node: torch.fx.Node) -> torch.fx.GraphModule | Refusal:
        """A graph whose placeholders are the node's tensor and size arguments, in order."""
        function = self.function_for(node.target)
        if function is None:
            return Refusal("no decomposition is registered")
        args = pytree.tree_map_only(
            torch.fx.Node, lambda n: n.meta.get("val"), (node.args, dict(node.kwargs))
        )
        leaves, spec = pytree.tree_flatten(args)
        key = (node.target, spec, tuple(_key(leaf) for leaf in leaves))
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._trace(node, function, leaves, spec)
        return made

    def _trace(
        self, node: torch.fx.Node, function: Callable[..., Any], leaves: list[Any], spec: Any
    ) -> torch.fx.GraphModule | Refusal:
        places = [i for i, leaf in enumerate(leaves) if _dynamic(leaf)]
        dynamic = [leaves[i] for i in places]

        def call(*values: Any) -> Any:
            full = list(leaves)
            for place, value in zip(places, values, strict=True):
                full[place] = value
            args, kwargs = pytree.tree_unflatten(full, spec)
            return function(*args, **kwargs)

        result = self.traced(node, call, dynamic)
        frozen = "" if isinstance(result, Refusal) else _frozen_output(node, result)
        return Refusal(f"its decomposition freezes a size: {frozen}") if frozen else result

    def traced(
        self, node: torch.fx.Node, call: Callable[..., Any], dynamic: list[Any]
    ) -> torch.fx.GraphModule | Refusal:
        """The graph of a function that the node's decomposition or row calls with fake tensors and sizes."""
        mode = _torch.fake_mode_of([v for v in dynamic if isinstance(v, torch.Tensor)])
        if mode is None:
            mode = _torch.fake_mode_of(pytree.tree_leaves(node.meta.get("val")))
        shape_env = mode.shape_env if mode is not None else None
        if shape_env is None:
            return self._plain_trace(node, call, dynamic)
        with _torch.oblivious(), _torch.recording(mode) as before:
            result = self._plain_trace(node, call, dynamic)
            if isinstance(result, Refusal):
                return result
            learnt = self._learnt(shape_env, before)
            return Refusal(f"its decomposition holds only where {learnt}") if learnt else result

    @staticmethod
    def _plain_trace(
        node: torch.fx.Node, call: Callable[..., Any], dynamic: list[Any]
    ) -> torch.fx.GraphModule | Refusal:
        try:
            graph_module = _torch.trace(call, dynamic)
        except Exception as error:
            return Refusal(
                f"its decomposition fails: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
            )
        calls = [n for n in graph_module.graph.nodes if n.op == "call_function"]
        if any(n.target is node.target for n in calls):
            return Refusal("it decomposes into itself")
        return graph_module

    def _learnt(self, shape_env: Any, before: _torch.Recorded) -> str:
        """What tracing added that the program's own ranges do not imply."""
        for guard, why in shape_env.guards.added:
            if not _is_harmless(guard.expr, why) and self._facts.truth(guard.expr) is not True:
                return str(guard.expr)
        for symbol, expr in shape_env.replacements.items():
            if before.replacements.get(symbol) != expr:
                return f"{symbol} == {expr}"
        for symbol, bounds in shape_env.var_to_range.items():
            old = before.ranges.get(symbol)
            if old is not None and old != bounds:
                return f"{symbol} is in {bounds}"
        return ""


def _is_harmless(guard: sympy.Basic, why: str) -> bool:
    """Whether a guard does not tell that other sizes would be computed otherwise.

    Where a check fails, the operator itself fails. Kernels ask whether a size is 0 or 1 to find
    strides and contiguity, which ONNX does not have. A condition in Python code is neither.
    """
    return why == "check" or why == "kernel" and isinstance(guard, sympy.Ne) and guard.args[1] in (0, 1)


def _dynamic(leaf: Any) -> bool:
    return isinstance(leaf, (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool))


def _expr(size: Any) -> Any:
    return size.node.expr if isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)) else size


def _key(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return (
            leaf.dtype,
            tuple(_expr(s) for s in leaf.shape),
            tuple(_expr(s) for s in leaf.stride()),
            str(leaf.device),
            leaf.requires_grad,
        )
    if isinstance(leaf, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return ("sym", _expr(leaf))
    return (type(leaf), repr(leaf))


def _frozen_output(node: torch.fx.Node, graph_module: torch.fx.GraphModule) -> str:
    """How the traced result's sizes depart from the node's; empty when they do not."""
    output = next(n for n in graph_module.graph.nodes if n.op == "output")
    traced = [
        n.meta.get("val") if isinstance(n, torch.fx.Node) else n for n in pytree.tree_leaves(output.args[0])
    ]
    promised = pytree.tree_leaves(node.meta.get("val"))
    for got, want in zip(traced, promised, strict=False):
        if not isinstance(got, torch.Tensor) or not isinstance(want, torch.Tensor):
            continue
        a, b = [tuple(_expr(s) for s in t.shape) for t in (got, want)]
        if a != b and not _symbols_fresh(a, b):
            return f"{a} for {b}"
    return ""


def _symbols_fresh(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether the sizes differ only in data-dependent symbols, which a second trace names anew."""
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        if x != y and not (str(x).startswith("u") and str(y).startswith("u")):
            return False
    return True
