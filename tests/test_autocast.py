"""Autocast regions are exported with the casts that autocast makes."""

from __future__ import annotations

import onnx
import pytest
import torch
import torch.nn.functional as F

import atonnx


class Region(torch.nn.Module):
    def __init__(self, dtype, kind):
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)
        self.dtype, self.kind = dtype, kind

    def forward(self, x):
        with torch.autocast("cpu", dtype=self.dtype):
            if self.kind == "linear":
                return self.fc(x) * 2
            if self.kind == "softmax":
                return torch.softmax(self.fc(x), -1)
            if self.kind == "cat":
                return torch.cat([self.fc(x), x])
            if self.kind == "sdpa":
                q = x[None, None]
                return F.scaled_dot_product_attention(q, q, self.fc(x)[None, None].to(x.dtype))
            y = self.fc(x)
            with torch.autocast("cpu", enabled=False):
                z = self.fc(x)
            return y + z


@pytest.mark.parametrize("kind", ["linear", "softmax", "cat", "sdpa", "nested"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_region_has_autocasts_casts(dtype, kind):
    model = Region(dtype, kind).eval()
    program = atonnx.export(model, (torch.randn(3, 8),), dynamic_shapes=({0: "n"},))
    proto = program.model_proto
    onnx.checker.check_model(proto, full_check=True)
    types = {bf.name: v.type.tensor_type.elem_type for v in proto.graph.value_info for bf in [v]}
    small = onnx.TensorProto.BFLOAT16 if dtype is torch.bfloat16 else onnx.TensorProto.FLOAT16
    assert small in types.values()
    x = torch.randn(5, 8)
    expected = model(x)
    (got,) = reference_or_runtime(program, x)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    torch.testing.assert_close(got.float(), expected.float(), atol=5e-2, rtol=5e-2)


def reference_or_runtime(program, x):
    """ONNX Runtime's CPU provider lacks bfloat16 kernels; the reference evaluator has them."""
    try:
        return program(x)
    except Exception:
        return program.call_reference(x)


def test_gradient_modes_are_inlined():
    class Frozen(torch.nn.Module):
        def forward(self, x):
            with torch.no_grad():
                y = x * 2
            return y + x

    program = atonnx.export(Frozen(), (torch.randn(3),))
    assert sorted(node.op_type for node in program.model.graph) == ["Add", "Mul"]
