"""Dropout against eager torch."""

import onnx_ir as ir
import onnxruntime
import pytest
import torch

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
@pytest.mark.parametrize("opset", [13, 20, 28])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_training_keeps_dtype_and_shape(packet, opset, dtype):
    kit.check_op(packet.default, torch.randn(2, 3, 4).to(dtype), 0.3, True, opset=opset, values=False)


def test_training_drops_and_scales():
    made = kit.translate_op(aten.dropout.default, torch.ones(1000), 0.25, True)
    session = onnxruntime.InferenceSession(ir.to_proto(made).SerializeToString())
    (y,) = session.run(None, {session.get_inputs()[0].name: torch.ones(1000).numpy()})
    kept = y[y != 0]
    assert 600 < len(kept) < 850
    assert abs(kept - 4 / 3).max() < 1e-6
