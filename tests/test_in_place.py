"""Writes: renaming where aliases agree, the functional form where a view sees them, state where it is one."""

from __future__ import annotations

import warnings

import onnx
import pytest
import torch
from torch.export import Dim

import atonnx
from atonnx.build.aliases import plan_aliases
from atonnx.errors import OnnxExporterWarning


class WriteThroughView(torch.nn.Module):
    def forward(self, x):
        y = x + 0
        y[:, 0] = 1
        return y


class ViewSeesWrite(torch.nn.Module):
    def forward(self, x):
        v = x.view(-1)
        x.add_(1)
        return v


class AliasOrCopy(torch.nn.Module):
    def forward(self, x):
        y = x.to(x.dtype)
        y.add_(1)
        return x


class Chain(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        z = y
        y.relu_()
        y += 1
        y.mul_(z)
        return y, z


class MaskedAssign(torch.nn.Module):
    def forward(self, x):
        y = x.clone()
        y[y > 0] = 0
        y[..., 1:] += 2
        return y


class OnlyTheOldValue(torch.nn.Module):
    def forward(self, x):
        before = x + 1
        x.mul_(0)
        return before


class IntoNarrower(torch.nn.Module):
    def forward(self, x):
        y = x.to(torch.float16)
        y.add_(x)
        return y


class OutVariant(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        torch.add(x, 1, out=y)
        return y


MODELS = [
    WriteThroughView, ViewSeesWrite, AliasOrCopy, Chain, MaskedAssign,
    OnlyTheOldValue, IntoNarrower, OutVariant,
]  # fmt: skip


def captured(model, loaded, tmp_path):
    program = torch.export.export(
        model, (torch.randn(3, 4),), dynamic_shapes=({0: Dim.DYNAMIC},), strict=False
    )
    if loaded:
        torch.export.save(program, tmp_path / "program.pt2")
        return torch.export.load(tmp_path / "program.pt2")
    return program


@pytest.mark.parametrize("loaded", [False, True], ids=["captured", "loaded"])
@pytest.mark.parametrize("kind", MODELS)
def test_writes_are_as_in_eager(kind, loaded, tmp_path):
    model = kind()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnnxExporterWarning)
        program = atonnx.export(captured(model, loaded, tmp_path))
    onnx.checker.check_model(program.model_proto, full_check=True)
    x = torch.randn(5, 4)
    expected = model(x.clone())
    got = program(x.clone())
    for one, other in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


def test_a_write_that_no_view_sees_is_renaming():
    program = torch.export.export(Chain(), (torch.randn(3, 4),), strict=False)
    plan = plan_aliases(program.graph)
    assert plan.through_view is None
    assert len(plan.renamed) == 3
    assert not plan.state


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def test_state_is_dropped_with_a_warning():
    with pytest.warns(OnnxExporterWarning, match="calls"):
        program = atonnx.export(Counter().eval(), (torch.ones(2),))
    assert [v.name for v in program.model.graph.outputs] == ["mul"]
    assert program(torch.full((2,), 3.0))[0].tolist() == [3, 3]


def test_state_as_inputs_and_outputs():
    program = atonnx.export(Counter().eval(), (torch.ones(2),), state="io")
    graph = program.model_proto.graph
    assert [v.name for v in graph.input] == ["x", "calls"]
    assert [v.name for v in graph.output] == ["mul", "calls_new"]
    session = __import__("onnxruntime").InferenceSession(program.model_proto.SerializeToString())
    import numpy as np

    y, calls = session.run(None, {"x": np.ones(2, np.float32), "calls": np.array(4)})
    assert y.tolist() == [5, 5]
    assert calls == 5
