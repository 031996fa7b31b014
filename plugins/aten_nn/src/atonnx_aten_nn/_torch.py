"""The only module of this package that touches private names of torch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn.attention.flex_attention import _vmap_for_bhqkv
from torch.nn.modules.adaptive import _ASMoutput as AdaptiveOutput
from torch.utils import _pytree as pytree

__all__ = [
    "AdaptiveOutput",
    "flex_scores",
    "is_registered",
    "is_surely",
    "is_traced",
    "meta_kernel",
    "original_kernel",
    "replaced",
]


def is_traced(args: Sequence[Any]) -> bool:
    """Whether a call is made by a capture, and not by user code that computes with real numbers."""
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    return get_proxy_mode() is not None or any(isinstance(t, FakeTensor) or t.is_meta for t in tensors)


def original_kernel(overload: Any, *args: Any) -> Any:
    """The overload's own composite kernel, whatever Python has put in its place."""
    for key in (torch.DispatchKey.CompositeImplicitAutograd, torch.DispatchKey.CompositeExplicitAutograd):
        if torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), key):
            return overload._op_dk(key, *args)
    raise NotImplementedError(f"{overload.name()} has no composite kernel")


def is_registered(cls: type) -> bool:
    """Whether pytrees take instances of the class apart."""
    return cls in pytree.SUPPORTED_NODES


def is_surely(condition: Any) -> bool:
    """Whether a condition on sizes holds whatever they are."""
    return statically_known_true(condition)


def flex_scores(
    scores: torch.Tensor, score_mod: Any, mask_mod: Any, of_scores: Sequence[Any], of_mask: Sequence[Any]
) -> torch.Tensor:
    """Scores as ``flex_attention`` changes them, -inf where its mask hides them."""
    places = [torch.arange(size) for size in scores.shape]
    score = _vmap_for_bhqkv(score_mod, prefix=(0,), suffix=(None,) * len(of_scores))
    mask = _vmap_for_bhqkv(mask_mod, prefix=(), suffix=(None,) * len(of_mask))
    with TransformGetItemToIndex():
        hidden = torch.tensor(-float("inf"), dtype=scores.dtype)
        return torch.where(mask(*places, *of_mask), score(scores, *places, *of_scores), hidden)


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """An attribute has another value within."""
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


@contextlib.contextmanager
def meta_kernel(overload: Any, kernel: Callable[..., Any]) -> Iterator[None]:
    """``kernel`` tells the sizes of an overload's results within."""
    key = torch.DispatchKey.Meta
    before = overload.py_kernels.get(key)
    overload.py_kernels[key] = kernel
    overload._dispatch_cache.clear()
    try:
        yield
    finally:
        if before is None:
            del overload.py_kernels[key]
        else:
            overload.py_kernels[key] = before
        overload._dispatch_cache.clear()
