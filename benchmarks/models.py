"""The models that are measured: random weights from a seed, nothing is downloaded.

A builder returns the model, its example arguments and keyword arguments at a size, and its dynamic shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.export import Dim

__all__ = ["MODELS", "Chain", "Example", "build", "inputs"]

DYNAMIC = Dim.DYNAMIC
TEXT_AXES = {0: DYNAMIC, 1: DYNAMIC}

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Example(NamedTuple):
    """A model with what it is captured with."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic_shapes: Any


class Spec(NamedTuple):
    """How to make a model and, for a batch and a length, its arguments."""

    make: Callable[[], nn.Module]
    arguments: Callable[[int, int], Arguments]
    dynamic_shapes: Any


class TreeMLP(nn.Module):
    """A perceptron whose inputs come as a tensor, a dict and a list."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 32)
        self.left = nn.Linear(4, 32)
        self.rest = nn.ModuleList(nn.Linear(4, 32) for _ in range(2))
        self.last = nn.Sequential(nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 3))

    def forward(self, x: Tensor, pair: Mapping[str, Tensor], rest: list[Tensor]) -> dict[str, Tensor]:
        hidden = self.first(x) + self.left(pair["left"]) * torch.sigmoid(pair["right"])
        for layer, item in zip(self.rest, rest, strict=True):
            hidden = hidden + layer(item)
        logits = self.last(hidden)
        return {"logits": logits, "probabilities": logits.softmax(-1)}


class Chain(nn.Module):
    """A chain of operators, two kinds in turn."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def forward(self, x: Tensor) -> Tensor:
        for index in range(self.length):
            x = x + 1.5 if index % 2 else x.relu()
        return x


class Logits(nn.Module):
    """A decoder of the transformers package without its cache."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        result: Tensor = self.model(input_ids, attention_mask=attention_mask, use_cache=False).logits
        return result


def _tree(batch: int, length: int) -> Arguments:
    pair = {"left": torch.randn(batch, 4), "right": torch.randn(batch, 1)}
    return (torch.randn(batch, 8), pair, [torch.randn(batch, 4), torch.randn(batch, 4)]), {}


def _image(batch: int, length: int) -> Arguments:
    return (torch.randn(batch, 3, 224, 224),), {}


def _text(batch: int, length: int) -> Arguments:
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, length - 3 :] = 0
    return (), {"input_ids": torch.randint(5, 1000, (batch, length)), "attention_mask": mask}


def _vision(name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import torchvision

        model: nn.Module = torchvision.models.get_model(name, weights=None)
        return model

    return make


def _bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=1000,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
    )
    model: nn.Module = BertModel(config)
    return model


def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=2,
        intermediate_size=704,
    )
    return Logits(LlamaForCausalLM(config))


_TEXT = {"input_ids": TEXT_AXES, "attention_mask": TEXT_AXES}
_BATCH = {0: DYNAMIC}

MODELS = {
    "mlp": Spec(TreeMLP, _tree, (_BATCH, {"left": _BATCH, "right": _BATCH}, [_BATCH, _BATCH])),
    "resnet18": Spec(_vision("resnet18"), _image, (_BATCH,)),
    "resnet50": Spec(_vision("resnet50"), _image, (_BATCH,)),
    "bert": Spec(_bert, _text, _TEXT),
    "llama": Spec(_llama, _text, _TEXT),
}


def build(name: str) -> Example:
    """A model ready to be captured.

    Raises:
        ImportError: the package that it comes from is not installed.
    """
    spec = MODELS[name]
    torch.manual_seed(0)
    model = spec.make().eval().requires_grad_(False)
    for module in model.modules():
        # Running statistics of 0 and 1 would hide a fault in what is made of them.
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean = torch.randn(module.num_features) * 0.1
            module.running_var = torch.rand(module.num_features) + 0.5
    return Example(model, *spec.arguments(2, 16), spec.dynamic_shapes)


def inputs(name: str) -> list[Arguments]:
    """Arguments at the size of the example, and at another one."""
    torch.manual_seed(1)
    return [MODELS[name].arguments(2, 16), MODELS[name].arguments(3, 11)]
