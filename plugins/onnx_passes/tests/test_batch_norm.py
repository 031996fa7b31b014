"""Batch normalization goes into the weights before it."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
import torch
from torch import nn

import atonnx


def normalized(layer, channels, kind=nn.BatchNorm2d):
    norm = kind(channels)
    for tensor in (norm.weight.data, norm.bias.data, norm.running_mean):
        tensor.normal_()
    norm.running_var.uniform_(0.5, 2)
    return nn.Sequential(layer, norm, nn.ReLU()).eval()


CASES = {
    "conv": lambda: (normalized(nn.Conv2d(4, 6, 3, bias=False), 6), torch.randn(2, 4, 8, 8)),
    "conv with bias": lambda: (normalized(nn.Conv2d(4, 6, 3), 6), torch.randn(2, 4, 8, 8)),
    "groups": lambda: (normalized(nn.Conv2d(4, 8, 3, groups=2), 8), torch.randn(2, 4, 8, 8)),
    "one dimension": lambda: (normalized(nn.Conv1d(4, 6, 3), 6, nn.BatchNorm1d), torch.randn(2, 4, 8)),
    "transposed": lambda: (normalized(nn.ConvTranspose2d(4, 6, 3, stride=2), 6), torch.randn(2, 4, 5, 5)),
    "transposed, groups": lambda: (
        normalized(nn.ConvTranspose2d(4, 6, 3, groups=2, bias=False), 6),
        torch.randn(2, 4, 5, 5),
    ),
    "linear": lambda: (normalized(nn.Linear(4, 6), 6, nn.BatchNorm1d), torch.randn(2, 4)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("opset", [11, 20])
def test_no_batch_normalization_remains(case, opset, tmp_path):
    torch.manual_seed(0)
    model, x = CASES[case]()
    program = atonnx.export(model, (x,), opset_version=opset)
    types = [node.op_type for node in program.model.graph]
    assert len(types) == 2 and "BatchNormalization" not in types
    with torch.no_grad():
        want = model(x)
    torch.testing.assert_close(program(x)[0], want, atol=1e-5, rtol=1e-5)
    # The recipe in nodes, over the weights of the state dict.
    path = tmp_path / "m.onnx"
    program.save(path, include_initializers=False, keep_initializers_as_inputs=True)
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    feeds = {i.name: state.get(i.name, x.numpy()) for i in session.get_inputs()}
    np.testing.assert_allclose(session.run(None, feeds)[0], want.numpy(), atol=1e-5, rtol=1e-5)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)
        self.a, self.b = nn.BatchNorm2d(4), nn.BatchNorm2d(4)

    def forward(self, x):
        return self.a(self.conv(x)), self.b(self.conv(x * 2))


class ReadTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)

    def forward(self, x):
        y = self.conv(x)
        return self.norm(y), y


@pytest.mark.parametrize("kind", [Shared, ReadTwice])
def test_a_convolution_or_weight_that_is_used_twice_stays(kind):
    torch.manual_seed(0)
    model, x = kind().eval(), torch.randn(1, 3, 4, 4)
    program = atonnx.export(model, (x,))
    assert "BatchNormalization" in [node.op_type for node in program.model.graph]
    with torch.no_grad():
        for got, want in zip(program(x), model(x), strict=True):
            torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


def test_the_node_tells_of_the_normalization_which_is_nearer_to_the_output():
    model, x = CASES["conv"]()
    program = atonnx.export(model, (x,))
    (conv, _) = program.model.graph
    assert "BatchNorm2d" in conv.metadata_props["namespace"]
    assert set(program.model.graph.initializers) == {"0.weight", "0.bias"}
