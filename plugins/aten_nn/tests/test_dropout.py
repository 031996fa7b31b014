"""Dropout against eager torch."""

import pytest
import torch

import atonnx
from atonnx import testing as kit

aten = torch.ops.aten
ALL = [
    aten.dropout,
    aten.native_dropout,
    aten.alpha_dropout,
    aten.feature_dropout,
    aten.feature_alpha_dropout,
]


@pytest.mark.parametrize("packet", ALL, ids=str)
def test_nothing_is_dropped_in_evaluation(packet):
    kit.check_op(packet.default, torch.randn(2, 3, 4), 0.5, False)


@pytest.mark.parametrize("packet", ALL, ids=str)
@pytest.mark.parametrize("opset", [11, 13, 20, 28])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_training_keeps_dtype_and_shape(packet, opset, dtype):
    if opset >= 13 or dtype != torch.bfloat16:
        kit.check_op(packet.default, torch.randn(2, 3, 4).to(dtype), 0.3, True, opset=opset, values=False)


@pytest.mark.parametrize("packet", [aten.dropout, aten.native_dropout], ids=str)
@pytest.mark.parametrize("opset", [11, 12, 20, 22])
def test_training_drops_and_scales_also_between_other_nodes(packet, opset):
    class Model(torch.nn.Module):
        def forward(self, x):
            y = packet(x.neg(), 0.25, True)
            return (y if isinstance(y, torch.Tensor) else y[0]).neg()

    program = atonnx.export(Model().eval(), (torch.ones(1000),), opset_version=opset)
    (y,), (again,) = program(torch.ones(1000)), program(torch.ones(1000))
    kept = y[y != 0]
    assert 600 < len(kept) < 850
    assert (kept - 4 / 3).abs().max() < 1e-6
    assert not torch.equal(y, again)


def test_all_are_dropped():
    for packet in (aten.dropout, aten.native_dropout):
        kit.check_op(packet.default, torch.ones(2, 3), 1.0, True)
