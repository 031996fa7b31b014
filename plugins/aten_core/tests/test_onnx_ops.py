"""``torch.onnx.ops``: operators of ONNX that a model calls by name."""

from __future__ import annotations

import onnx_ir as ir
import pytest
import torch
from torch import nn

import atonnx
from atonnx.testing import check_op
from atonnx_aten_core import onnx_ops

onnx = torch.ops.onnx


class Call(nn.Module):
    """A model of one call."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


@pytest.mark.parametrize("opset", [13, 20, 23, 24])
@pytest.mark.parametrize("sample", onnx_ops.samples(), ids=lambda sample: sample.name)
def test_an_operator_of_opset_23_at_every_opset(opset, sample):
    if sample.serves(opset):
        sample.check(opset)


@pytest.mark.parametrize("opset", [20, 23])
def test_attention_with_a_past_and_a_mask(opset):
    q, k, v, mask = (torch.randn(2, 3, 8), torch.randn(2, 3, 8), torch.randn(2, 3, 8), torch.zeros(3, 8))
    past_key, past_value = torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 4)
    heads = {"q_num_heads": 2, "kv_num_heads": 2}
    check_op(onnx.Attention.opset23, q, k, v, mask, past_key, past_value, **heads, scale=0.3, opset=opset)


def test_turned_by_position_and_interleaved():
    x, angles, positions = torch.randn(2, 3, 8), torch.rand(10, 2), torch.tensor([[0, 1, 2], [7, 8, 9]])
    args = (x, angles.cos(), angles.sin(), positions)
    check_op(onnx.RotaryEmbedding.opset23, *args, interleaved=True, num_heads=2, opset=20, dynamic=False)


def test_an_operator_of_ones_own_domain():
    attributes = {"i": 3, "b": True, "f": 0.5, "s": "a", "is": [1, 2], "fs": [0.5, 2.0], "ss": ["a", "b"]}

    def call(x):
        return torch.onnx.ops.symbolic(
            "mine::Op",
            (x, None, x),
            attributes,
            dtype=torch.int32,
            shape=(x.shape[0], 7),
            version=3,
            metadata_props={"note": "by hand"},
        )

    x = torch.ones(2, 3)
    program = atonnx.export(Call(call).eval(), (x,), dynamic_shapes={"args": ({0: "n"},)})
    (node,) = program.model.graph
    assert (node.domain, node.op_type, node.inputs[1]) == ("mine", "Op", None)
    assert {name: attr.value for name, attr in node.attributes.items()} == {
        **attributes,
        "b": 1,
        "is": (1, 2),
        "fs": (0.5, 2.0),
        "ss": ("a", "b"),
    }
    assert node.metadata_props["note"] == "by hand"
    assert program.model.opset_imports["mine"] == 3
    assert node.outputs[0].dtype == ir.DataType.INT32 and node.outputs[0].shape == ("n", 7)


def test_an_operator_of_onnx_itself():
    def call(x):
        values, indices = torch.onnx.ops.symbolic_multi_out(
            "TopK",
            (x, torch.tensor([2])),
            {"axis": 1},
            dtypes=(x.dtype, torch.int64),
            shapes=((x.shape[0], 2), (x.shape[0], 2)),
        )
        return values * 2, indices

    x = torch.randn(3, 5)
    program = atonnx.export(Call(call).eval(), (x,), opset_version=17)
    values, indices = program(x)
    expected = x.topk(2, 1)
    torch.testing.assert_close((values, indices), (expected.values * 2, expected.indices))
    assert program.model.opset_imports[""] == 17
