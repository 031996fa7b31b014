"""The operators as torch knows them: importing this module registers ``torch.ops.mylib``.

A model that calls them imports this; it needs neither ONNX nor atonnx.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["clamp_scale", "mel_scale", "mel_weights", "soft_threshold"]


@torch.library.custom_op("mylib::clamp_scale", mutates_args=())
def clamp_scale(x: Tensor, low: float, high: float, scale: float = 1.0) -> Tensor:
    """``x`` kept between two bounds, then scaled."""
    return x.clamp(low, high) * scale


@torch.library.custom_op("mylib::soft_threshold", mutates_args=())
def soft_threshold(x: Tensor, threshold: float) -> Tensor:
    """``x`` moved towards zero by the threshold, and zero where it is nearer than that."""
    return x.sign() * (x.abs() - threshold).relu()


def mel_weights(mels: int, length: int, rate: int, low: float, high: float) -> np.ndarray:
    """How much each frequency of a spectrum of ``length`` samples gives to each mel band, a triangle."""
    ends = 2595 * np.log10(1 + np.array([low, high]) / 700)
    steps = ends[0] + np.arange(mels + 2) * (ends[1] - ends[0]) / (mels + 2)
    edges = ((length + 1) * 700 * (10 ** (steps / 2595) - 1)) // rate
    lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
    bins = np.arange(length // 2 + 1)[:, None]
    rise = np.where(center > lower, (bins - lower) / np.maximum(center - lower, 1), bins >= lower)
    fall = np.where(upper > center, (upper - bins) / np.maximum(upper - center, 1), bins <= upper)
    return np.maximum(np.minimum(rise, fall), 0)


@torch.library.custom_op("mylib::mel_scale", mutates_args=())
def mel_scale(x: Tensor, mels: int, rate: int) -> Tensor:
    """Spectra, along the last axis, in bands that are as wide as an ear's."""
    weights = mel_weights(mels, 2 * (x.shape[-1] - 1), rate, 0.0, rate / 2)
    return x @ torch.from_numpy(weights).to(x.dtype)


# With these torch.export knows dtype and sizes of a result without computing it.
@clamp_scale.register_fake
def _(x: Tensor, low: float, high: float, scale: float = 1.0) -> Tensor:
    torch._check(x.is_floating_point(), lambda: f"clamp_scale takes floating-point tensors, got {x.dtype}")
    return torch.empty_like(x)


@soft_threshold.register_fake
def _(x: Tensor, threshold: float) -> Tensor:
    torch._check(x.is_floating_point(), lambda: f"soft_threshold takes floating-point tensors, got {x.dtype}")
    return torch.empty_like(x)


@mel_scale.register_fake
def _(x: Tensor, mels: int, rate: int) -> Tensor:
    torch._check(x.is_floating_point(), lambda: f"mel_scale takes floating-point tensors, got {x.dtype}")
    return x.new_empty(*x.shape[:-1], mels)
