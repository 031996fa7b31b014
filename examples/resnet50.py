"""torchvision's ResNet-50 with random weights and a dynamic batch; nothing is downloaded.

atonnx export examples/resnet50.py:model -o resnet50.onnx --verify
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.export import Dim
from torchvision.models import resnet50


def model() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], dict[str, Any]]:
    """The model, its example arguments and its dynamic axes, as `atonnx export` takes them."""
    torch.manual_seed(0)
    return resnet50(weights=None).eval(), (torch.randn(2, 3, 224, 224),), {}, {"x": {0: Dim("batch")}}
