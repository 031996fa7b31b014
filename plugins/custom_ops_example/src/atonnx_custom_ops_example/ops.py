"""The operators as torch knows them: importing this module registers ``torch.ops.mylib``.

A model that calls them imports this; it needs neither ONNX nor atonnx.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["clamp_scale", "soft_threshold"]


@torch.library.custom_op("mylib::clamp_scale", mutates_args=())
def clamp_scale(x: Tensor, low: float, high: float, scale: float = 1.0) -> Tensor:
    """``x`` kept between two bounds, then scaled."""
    return x.clamp(low, high) * scale


@torch.library.custom_op("mylib::soft_threshold", mutates_args=())
def soft_threshold(x: Tensor, threshold: float) -> Tensor:
    """``x`` moved towards zero by the threshold, and zero where it is nearer than that."""
    return x.sign() * (x.abs() - threshold).relu()


# With these torch.export knows dtype and sizes of a result without computing it.
@clamp_scale.register_fake
def _(x: Tensor, low: float, high: float, scale: float = 1.0) -> Tensor:
    torch._check(x.is_floating_point(), lambda: f"clamp_scale takes floating-point tensors, got {x.dtype}")
    return torch.empty_like(x)


@soft_threshold.register_fake
def _(x: Tensor, threshold: float) -> Tensor:
    torch._check(x.is_floating_point(), lambda: f"soft_threshold takes floating-point tensors, got {x.dtype}")
    return torch.empty_like(x)
