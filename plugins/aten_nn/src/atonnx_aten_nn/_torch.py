"""The only module of this package that touches private names of torch."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils import _pytree as pytree

__all__ = ["deregister", "is_registered", "is_traced", "original_kernel"]


def is_traced(tensors: tuple[torch.Tensor, ...]) -> bool:
    """Whether a call is made by a capture, and not by user code that computes with real numbers."""
    return get_proxy_mode() is not None or any(isinstance(t, FakeTensor) or t.is_meta for t in tensors)


def original_kernel(overload: Any, *args: Any) -> Any:
    """The overload's own composite kernel, whatever Python has put in its place."""
    return overload._op_dk(torch.DispatchKey.CompositeImplicitAutograd, *args)


def is_registered(cls: type) -> bool:
    """Whether pytrees take instances of the class apart."""
    return cls in pytree.SUPPORTED_NODES


def deregister(cls: type) -> None:
    """Let pytrees take instances of the class as leaves again."""
    pytree._deregister_pytree_node(cls)
    torch.fx._pytree.SUPPORTED_NODES.pop(cls, None)
    torch.fx._pytree.SUPPORTED_NODES_EXACT_MATCH.pop(cls, None)
