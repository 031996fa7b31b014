"""How many nodes a layer may be: one where ONNX has it, with static and with dynamic sizes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import atonnx

DYNAMIC = torch.export.Dim.DYNAMIC

# Sizes of the model's inputs as tensors; all layers of a model share them.
SIZES = {"Shape", "Concat"}
LAYOUT = {"Transpose", "Reshape", "Squeeze", "Concat"}


def nodes(layer: nn.Module, x: Tensor, opset: int, axes: tuple[int, ...] = ()) -> Counter[str]:
    shapes: Any = (dict.fromkeys(axes, DYNAMIC),) if axes else None
    program = atonnx.export(layer.eval(), (x,), opset_version=opset, dynamic_shapes=shapes)
    return Counter(node.op_type for node in program.model.graph)


def resized(mode: str, align_corners: bool | None = None, **size: Any) -> nn.Module:
    return nn.Upsample(mode=mode, align_corners=align_corners, **size)


SINGLE = [
    ("LayerNormalization", nn.LayerNorm(6), 17),
    ("LayerNormalization", nn.LayerNorm((4, 6), elementwise_affine=False), 17),
    ("InstanceNormalization", nn.InstanceNorm2d(3), 20),
    ("InstanceNormalization", nn.InstanceNorm2d(3, affine=True), 20),
    ("BatchNormalization", nn.BatchNorm2d(3), 20),
    ("GroupNormalization", nn.GroupNorm(3, 3), 21),
    ("GroupNormalization", nn.GroupNorm(1, 3, affine=False), 21),
    ("RMSNormalization", nn.RMSNorm(6), 23),
    ("Gelu", nn.GELU(), 20),
    ("Gelu", nn.GELU(approximate="tanh"), 20),
    ("HardSwish", nn.Hardswish(), 14),
    ("Mish", nn.Mish(), 18),
    ("Conv", nn.Conv2d(3, 4, 3, padding="same"), 20),
    ("ConvTranspose", nn.ConvTranspose2d(3, 4, 3, 2, 1, 1), 20),
    ("MaxPool", nn.MaxPool2d(3, 2, 1), 20),
    ("AveragePool", nn.AvgPool2d(3, 2, 1), 20),
    ("GlobalAveragePool", nn.AdaptiveAvgPool2d(1), 20),
    ("Resize", resized("nearest", scale_factor=2), 20),
    ("Resize", resized("bilinear", scale_factor=2), 20),
    ("Resize", resized("bicubic", size=(7, 8)), 20),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("op_type", "layer", "opset"), SINGLE, ids=str)
def test_one_node(op_type: str, layer: nn.Module, opset: int, dynamic: bool) -> None:
    axes = (0, 2, 3) if dynamic and not isinstance(layer, (nn.LayerNorm, nn.RMSNorm)) else (0,) * dynamic
    assert nodes(layer, torch.randn(2, 3, 4, 6), opset, axes) == {op_type: 1}


@pytest.mark.parametrize(
    "layer", [resized("bilinear", True, scale_factor=2), resized("nearest", size=(7, 8))], ids=str
)
def test_one_node_with_static_sizes(layer: nn.Module) -> None:
    assert nodes(layer, torch.randn(2, 3, 4, 6), 20) == {"Resize": 1}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("layers", "both", "batch_first"), [(1, False, False), (3, True, True)])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_recurrent_layer_is_a_node(
    kind: type[nn.RNNBase], layers: int, both: bool, batch_first: bool, dynamic: bool
) -> None:
    module = kind(3, 4, layers, bidirectional=both, batch_first=batch_first)
    found = nodes(module, torch.randn(5, 2, 3), 20, (0, 1) if dynamic else ())
    assert found.pop(kind.__name__) == layers
    assert not found.keys() - LAYOUT
    # In and out of time-major layout, and the directions side by side after each layer.
    assert found.total() <= (1 + 2 * layers + 1 + 2 if both else 1)


def test_group_norm_where_onnx_has_none() -> None:
    layer, x = nn.GroupNorm(3, 6), torch.randn(2, 6, 4, 5)
    expected = {"Reshape": 2, "InstanceNormalization": 1, "Mul": 1, "Add": 1}
    assert nodes(layer, x, 20) == expected


class Attention(nn.Module):
    """Three heads of one tensor attend to each other."""

    def __init__(self, causal: bool = False, masked: bool = False, groups: int = 1) -> None:
        super().__init__()
        self.causal, self.groups = causal, groups
        self.mask = nn.Buffer(torch.ones(5, 5, dtype=torch.bool).tril()) if masked else None

    def forward(self, x: Tensor) -> Tensor:
        keys = x[:, : x.shape[1] // self.groups]
        return nn.functional.scaled_dot_product_attention(
            x, keys, keys, self.mask, is_causal=self.causal, enable_gqa=self.groups > 1
        )


ATTENTION: list[dict[str, Any]] = [{}, {"causal": True}, {"masked": True}, {"groups": 2}]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("options", ATTENTION, ids=str)
def test_attention(options: dict[str, Any], dynamic: bool) -> None:
    axes = (0,) if "masked" in options else (0, 2)
    axes = axes if dynamic else ()
    x = torch.randn(2, 4, 5, 8)
    below = nodes(Attention(**options), x, 22, axes)
    keys = 1 if "groups" in options else 0
    assert sum(count for name, count in below.items() if name not in SIZES) <= 8 + keys
    above = nodes(Attention(**options), x, 23, axes)
    assert above["Attention"] == 1
    assert above.total() <= 1 + keys
