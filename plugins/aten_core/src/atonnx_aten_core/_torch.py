"""The only module of this pack that touches private names of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table

__all__ = ["captured_as_one", "composite", "prims", "registered"]


def registered(overload: Any) -> Callable[..., Any] | None:
    """The decomposition that torch registers for an overload; None without one."""
    return decomposition_table.get(overload)


def composite(overload: Any) -> Callable[..., Any] | None:
    """The kernel of an overload that torch writes with other operators; None without one."""
    if overload.has_kernel_for_dispatch_key(torch.DispatchKey.CompositeImplicitAutograd):
        kernel: Callable[..., Any] = overload.decompose
        return kernel
    return None


def captured_as_one(tensor: Any, axis: int) -> bool:
    """Whether the size along an axis was 1 in the example inputs, and yet is not fixed to it."""
    size = tensor.shape[axis] if isinstance(tensor, torch.Tensor) else None
    return isinstance(size, torch.SymInt) and size.node.hint == 1


def prims() -> Any:
    """The namespace of torch's primitive operators, all of them registered."""
    import torch._prims

    return torch.ops.prims
