"""Every operator that has a row computes what eager torch does: its samples are checked.

Opset, and whether sizes are symbolic, are drawn by the operator's name, so that they are the same in every
run and differ from operator to operator. ``make test-all`` takes every sample at several opsets.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from atonnx.dispatch import MIN_OPSET
from atonnx.plugins import load
from atonnx.testing import OpSample, samples, translate_op
from atonnx.testing.conformance import overload_named
from atonnx.testing.pytest_plugin import SAMPLE_OPSETS

NEWEST = SAMPLE_OPSETS[-1]

# What a single call cannot show.
NO_SAMPLE = {
    "aten::detach_": "its result is its argument",
    "higher_order::": "takes graphs, which torch.export makes",
    "torch_nn::": "stands for a function that is captured whole",
}

# Operators without a kernel on the CPU: that they are translated is what can be seen.
NO_EAGER = frozenset(
    """aten::_scaled_dot_product_cudnn_attention aten::_scaled_dot_product_efficient_attention
    aten::_scaled_dot_product_flash_attention aten::_scaled_dot_product_fused_attention_overrideable
    aten::cudnn_batch_norm""".split()
)


def targets() -> list[str]:
    """Every operator that has a row."""
    return sorted({row.target for row in load().translations()})


def excuse(target: str) -> str:
    """Why the operator has no sample; empty if it has to have one."""
    overload = overload_named(target)
    if overload is None and target.startswith("aten::"):
        return "this torch does not have it"
    if overload is not None and not overload._schema.returns:
        return "a check, of which the model has nothing"
    return next(
        (why for name, why in NO_SAMPLE.items() if name in (target, f"{target.split('::')[0]}::")), ""
    )


@pytest.fixture(scope="module")
def given() -> dict[str, list[OpSample]]:
    """The samples of each operator."""
    found: dict[str, list[OpSample]] = {}
    for sample in samples():
        found.setdefault(sample.name, []).append(sample)
    return found


@pytest.fixture(autouse=True)
def same_numbers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Random tensors that depend on the test's name only; no warnings about what samples call."""
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(zlib.crc32(request.node.name.encode()))
        yield


@pytest.mark.parametrize("target", targets())
def test_every_operator_computes_what_eager_torch_does(target: str, given: dict[str, list[OpSample]]) -> None:
    if excuse(target):
        pytest.skip(excuse(target))
    if target == "aten::_grid_sampler_2d_cpu_fallback" and torch.__version__.startswith("2.13"):
        pytest.skip("this torch has no shape rule of it")
    assert given.get(target), "it has no sample"
    draw = zlib.crc32(target.encode())
    for number, sample in enumerate(given[target], draw):
        if target in NO_EAGER:
            translate_op(
                sample.overload,
                *sample.made_args(),
                opset=MIN_OPSET + number % (NEWEST - MIN_OPSET + 1),
                dynamic=False,
                **sample.made_kwargs(),
            )
            continue
        opsets = [opset for opset in range(MIN_OPSET, NEWEST + 1) if sample.serves(opset)]
        dynamic = bool((draw >> 8) + number & 1) and sample.options.get("dynamic", True)
        once = replace(sample, options={**sample.options, "dynamic": dynamic})
        once.check(opsets[number % len(opsets)])


@pytest.mark.slow
@pytest.mark.parametrize("target", targets())
def test_every_sample_is_right_at_old_and_new_opsets(target: str, given: dict[str, list[OpSample]]) -> None:
    for sample in given.get(target, []):
        for opset in SAMPLE_OPSETS:
            if sample.serves(opset):
                sample.check(opset)


def test_what_is_excused_is_so(given: dict[str, list[OpSample]]) -> None:
    assert set(targets()) >= NO_EAGER
    assert {target for target in given if excuse(target)} == set()
    run = {
        name
        for name in NO_EAGER
        for sample in given.get(name, [])
        if any(sample.serves(opset) for opset in range(MIN_OPSET, NEWEST + 1))
    }
    assert not run
