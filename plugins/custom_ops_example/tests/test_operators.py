"""Each operator's ONNX computes what the operator computes in PyTorch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import atonnx_custom_ops_example.ops  # noqa: F401  (registers torch.ops.mylib)
from atonnx import testing as kit

PLUGIN = "custom_ops_example"
mylib = torch.ops.mylib


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float"), kit.shapes(max_rank=3)),
    bounds=st.sampled_from([(-1.0, 2.0), (0.0, 0.0), (2.0, -1.0), (float("-inf"), 1.0)]),
    scale=st.sampled_from([1.0, 0.5, -2.0]),
)
def test_clamp_scale(opset: int, x: torch.Tensor, bounds: tuple[float, float], scale: float) -> None:
    expect = "Clip:1 Mul:0" if scale == 1 else "Clip:1 Mul:1"
    kit.check_op(mylib.clamp_scale.default, x, *bounds, scale, opset=opset, expect=expect)


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("wide", torch.float16), kit.shapes(max_rank=3)),
    threshold=st.sampled_from([0.0, 0.5, 100.0]),
)
def test_soft_threshold(opset: int, x: torch.Tensor, threshold: float) -> None:
    checked = kit.check_op(
        mylib.soft_threshold.default, x, threshold, opset=opset, expect="com.example::SoftThreshold:1!"
    )
    # ONNX Runtime has no kernel for it, so the domain's own one has run.
    assert checked.runtime == "reference"


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("wide"), st.tuples(st.integers(0, 3), st.just(65)), finite=True),
    mels=st.sampled_from([1, 8, 40]),
)
def test_mel_scale(opset: int, x: torch.Tensor, mels: int) -> None:
    # Below opset 17 the weights are a constant: OpsetPack.below in opsets.py.
    expect = "MelWeightMatrix:1 MatMul:1" if opset >= 17 else "MelWeightMatrix:0 MatMul:1!"
    kit.check_op(mylib.mel_scale.default, x, mels, 16000, opset=opset, dynamic=False, expect=expect)


def test_the_plugin_keeps_its_contract() -> None:
    assert kit.check_plugin(PLUGIN) == []


@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize("sample", kit.samples(PLUGIN), ids=lambda sample: sample.name)
def test_its_samples_are_right(sample: kit.OpSample, opset: int) -> None:
    sample.check(opset)
