"""A perceptron with three inputs, a tensor, a dict and a list, all with a dynamic batch.

atonnx export examples/mlp.py:model -o mlp.onnx --verify
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim


class MLPModel(nn.Module):
    """One branch for each input; the joined branches go through a last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.fc0 = nn.Linear(8, 8)
        self.fc1 = nn.Linear(8, 4)
        self.fc2 = nn.Linear(4, 2)
        self.fc3 = nn.Linear(6, 8)
        self.fc_combined = nn.Linear(8 + 2 + 8, 8)

    def forward(self, tensor_x: Tensor, input_dict: dict[str, Tensor], input_list: list[Tensor]) -> Tensor:
        """The logits of a batch."""
        x = torch.sigmoid(self.fc0(tensor_x))
        y = self.fc2(torch.relu(self.fc1(input_dict["left"] + input_dict["right"])))
        z = torch.tanh(self.fc3(torch.cat(input_list, dim=1)))
        return self.fc_combined(torch.cat((x, y, z), dim=1))


def model() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], dict[str, Any]]:
    """The model, its example arguments and its dynamic axes, as `atonnx export` takes them."""
    torch.manual_seed(0)
    batch = {0: Dim("batch")}
    args = (
        torch.randn(4, 8),
        {"left": torch.randn(4, 8), "right": torch.randn(4, 8)},
        [torch.randn(4, 2), torch.randn(4, 4)],
    )
    dynamic_shapes = {
        "tensor_x": batch,
        "input_dict": {"left": batch, "right": batch},
        "input_list": [batch, batch],
    }
    return MLPModel().eval(), args, {}, dynamic_shapes
