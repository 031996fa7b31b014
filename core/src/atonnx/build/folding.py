"""Folding of FX nodes that depend on constants only, evaluated by torch before translation."""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build._torch import OpOverload, is_write, unset_fake_temporarily

__all__ = ["fold_constants"]

LIMIT = 1 << 20  # bytes of a folded result, unless its inputs are larger

# Of their tensor argument they read the shape and dtype only.
_SHAPE_ONLY = {
    f"aten::{name}" for name in ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")
}


def fold_constants(
    graph: torch.fx.Graph,
    constants: dict[torch.fx.Node, torch.Tensor],
    excluded: set[torch.fx.Node],
) -> dict[torch.fx.Node, Any]:
    """Values of the nodes that can be computed now, ``constants`` among them.

    ``constants`` are lifted tensors, never parameters or buffers; ``excluded`` are nodes whose
    storage is written to. Random, writing and failing nodes are left.
    """
    folded: dict[torch.fx.Node, Any] = {n: t for n, t in constants.items() if n not in excluded}
    for node in graph.nodes:
        if node.op != "call_function" or node in excluded or node in folded:
            continue
        inputs = node.all_input_nodes
        known = {n: folded[n] for n in inputs if n in folded}
        if getattr(node.target, "_name", "") in _SHAPE_ONLY and inputs[:1] == [node.args[0]]:
            known.setdefault(inputs[0], _stand_in(inputs[0]))
        if any(known.get(n) is None for n in inputs) or not _foldable(node):
            continue
        args = torch.fx.map_arg(node.args, known.__getitem__)
        kwargs = dict(torch.fx.map_arg(dict(node.kwargs), known.__getitem__))
        if "device" in kwargs:
            kwargs["device"] = "cpu"
        value = _evaluate(node, args, kwargs)
        if value is None:
            continue
        budget = max(LIMIT, sum(_nbytes(folded.get(n)) for n in inputs))
        if _nbytes(value) <= budget:
            folded[node] = value
    return folded


def _stand_in(node: torch.fx.Node) -> torch.Tensor | None:
    """A tensor of the node's shape without data of its own; None where the shape is not static."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or not all(isinstance(s, int) for s in value.shape):
        return None
    with unset_fake_temporarily():
        return torch.zeros((), dtype=value.dtype).expand(value.shape)


def _foldable(node: torch.fx.Node) -> bool:
    target = node.target
    if not isinstance(target, OpOverload):
        return getattr(target, "__name__", "") == "getitem"
    if is_write(target) or torch.Tag.nondeterministic_seeded in target.tags or target.namespace != "aten":
        return False
    value = node.meta.get("val")
    values: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(v, torch.Tensor) and not v.is_complex() for v in values):
        return False
    static = all(isinstance(s, int) for v in values for s in v.shape)
    return static and sum(v.numel() * v.element_size() for v in values) <= LIMIT or bool(node.all_input_nodes)


def _evaluate(node: torch.fx.Node, args: Any, kwargs: Any) -> Any:
    if "empty" in getattr(node.target, "__name__", ""):
        return None
    with unset_fake_temporarily(), torch.no_grad():
        try:
            value = node.target(*args, **kwargs)  # type: ignore[operator]
        except Exception:
            return None  # the row, or eager at run time, says what is wrong
    promised = node.meta.get("val")
    if isinstance(value, torch.Tensor) and isinstance(promised, torch.Tensor):
        if value.dtype != promised.dtype or value.dim() != promised.dim():
            return None
    return value


def _nbytes(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, (list, tuple)):
        return sum(_nbytes(v) for v in value)
    return 0
