"""The only module of the command line that touches private names of torch."""

from __future__ import annotations

import re
from typing import Any

import torch

__all__ = ["inference_overloads"]

# Of gradients, optimizers and torch's own tests.
_OTHER_USES = re.compile(r"backward|^aten::(_foreach_|_fused_ad|_fused_sgd|_amp_|_test_)")
_COMPOSITE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")


def inference_overloads() -> list[Any]:
    """The overloads of ``torch.ops.aten`` that a captured model may call.

    These return something, write nothing, and have kernels both for dense tensors on a CPU and for
    tensors without data, without which torch.export captures none.
    """
    found = []
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if not name.startswith("aten::") or _OTHER_USES.search(name):
            continue
        packet, _, overload_name = name.removeprefix("aten::").partition(".")
        overload = getattr(getattr(torch.ops.aten, packet, None), overload_name or "default", None)
        if overload is None or overload._schema.is_mutable or not overload._schema.returns:
            continue
        composite = _has_kernel(name, *_COMPOSITE)
        fake = composite or _has_kernel(name, "Meta") or torch.DispatchKey.Meta in overload.py_kernels
        if fake and (composite or _has_kernel(name, "CPU")):
            found.append(overload)
    return found


def _has_kernel(name: str, *keys: str) -> bool:
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys)
