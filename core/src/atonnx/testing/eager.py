"""What eager torch computes, which is what a translation must compute."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree

from atonnx.testing.arguments import eager_value
from atonnx.testing.compare import graph_layout

__all__ = ["eager_result", "exact_results", "is_random", "used_results"]

HALF = (torch.float16, torch.bfloat16)
_UNSET_VALUES = frozenset(
    {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
)


def eager_result(
    overload: Any, args: Sequence[Any], kwargs: Mapping[str, Any], *, double: bool = False
) -> Any:
    """What the overload returns; its arguments stay as they are.

    ``double``: all floating-point tensors are taken as float64. In a property test, a dtype that the
    overload does not take makes no example.
    """

    def prepared(leaf: Any) -> Any:
        leaf = eager_value(leaf)
        if isinstance(leaf, torch.Tensor):
            leaf = leaf.detach().clone()
            return leaf.double() if double and leaf.is_floating_point() else leaf
        return torch.float64 if double and isinstance(leaf, torch.dtype) and leaf in HALF else leaf

    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    made = {id(leaf): prepared(leaf) for leaf in leaves}  # a tensor given twice is one tensor
    call_args, call_kwargs = pytree.tree_unflatten([made[id(leaf)] for leaf in leaves], spec)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return overload(*call_args, **call_kwargs)
        except (RuntimeError, NotImplementedError) as error:
            if not double and "not implemented for" in str(error):
                _reject()
            raise


def _reject() -> None:
    if "hypothesis" in sys.modules:
        import hypothesis

        if hypothesis.currently_in_test_context():
            hypothesis.reject()


def used_results(result: Any, outputs: Sequence[int] | None) -> list[torch.Tensor]:
    """The results that the model has, in the layout in which it has them."""
    if not isinstance(result, (list, tuple)):
        return [graph_layout(result)]
    return [
        graph_layout(item)
        for index, item in enumerate(result)
        if item is not None and (outputs is None or index in outputs)
    ]


def exact_results(
    overload: Any, args: Sequence[Any], kwargs: Mapping[str, Any], outputs: Sequence[int] | None
) -> list[torch.Tensor]:
    """The results computed in float64; none where the operator cannot."""
    try:
        result = eager_result(overload, args, kwargs, double=True)
    except Exception:  # the plain tolerance decides then
        return []
    return [tensor.double() for tensor in used_results(result, outputs)]


def is_random(overload: Any) -> bool:
    """Whether two calls give different values."""
    name = overload._schema.name.split("::")[-1]
    return torch.Tag.nondeterministic_seeded in overload.tags or name in _UNSET_VALUES
