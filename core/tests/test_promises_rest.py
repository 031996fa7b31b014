"""Promises that belong to no other file: P39, V4 and V5."""

from __future__ import annotations

import onnx
import pytest
import torch
from torch import nn

import atonnx
from atonnx.build.metadata import KEYS


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        return torch.nn.functional.gelu(self.fc(x)).sum(1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*not recommended:UserWarning")
@pytest.mark.parametrize("axes", [{"x": {0: "x_dynamic_axes_1"}}, {"x": [0]}])
def test_P39_dynamic_axes_as_a_dict_and_as_a_list(axes):
    program = atonnx.export(Net().eval(), (torch.randn(2, 3),), input_names=["x"], dynamic_axes=axes)
    assert program.model.graph.inputs[0].shape == ("x_dynamic_axes_1", 3)
    assert program.model.graph.outputs[0].shape == ("x_dynamic_axes_1",)


@pytest.mark.parametrize("opset", [11, 17, 20, 23])
def test_V4_any_runtime_finds_nothing_but_the_operators_of_the_opset(opset):
    program = atonnx.export(Net().eval(), (torch.randn(2, 3),), opset_version=opset, target="portable")
    assert dict(program.model.opset_imports) == {"": opset}
    assert {node.domain for node in program.model.graph} == {""}
    assert not program.model.functions
    x = torch.randn(2, 3)
    torch.testing.assert_close(program.call_reference(x), program(x))


def test_V5_netron_finds_the_metadata_in_the_file(tmp_path):
    atonnx.export(Net().eval(), (torch.randn(2, 3),), tmp_path / "m.onnx", verbose=False)
    model = onnx.load(tmp_path / "m.onnx")
    assert model.producer_name == "atonnx" and model.graph.metadata_props
    assert all({p.key for p in node.metadata_props} >= set(KEYS) for node in model.graph.node)
