"""Runs of equal neighbours."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten


@given(
    opset=kit.opsets(),
    dtype=kit.dtypes(torch.float32, torch.float64, torch.int64, torch.int32, torch.bool),
    shape=kit.shapes(max_rank=3),
    seed=st.integers(0, 99),
    inverse=st.booleans(),
    counts=st.booleans(),
)
def test_runs_of_all_elements(
    opset: int, dtype: torch.dtype, shape: Any, seed: int, inverse: bool, counts: bool
) -> None:
    x = kit.make_tensor(dtype, shape, seed, low=0, high=2)
    kit.check_op(aten.unique_consecutive.default, x, inverse, counts, opset=opset)


@given(
    opset=kit.opsets(),
    shape=kit.shapes(min_rank=1, max_rank=3, min_side=1),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_runs_of_slices(opset: int, shape: Any, seed: int, data: Any) -> None:
    x = kit.make_tensor(torch.int64, shape, seed, low=0, high=2)
    dim = data.draw(st.integers(-x.dim(), x.dim() - 1).filter(lambda dim: dim != -1))
    kit.check_op(aten.unique_consecutive.default, x, True, True, dim, opset=opset)


def test_nan_is_a_run_of_its_own() -> None:
    nan = float("nan")
    kit.check_op(aten.unique_consecutive.default, torch.tensor([1.0, 1.0, nan, nan, 0.0, -0.0]), True, True)


@given(opset=kit.opsets(), shape=kit.shapes(max_rank=2), seed=st.integers(0, 99), inverse=st.booleans())
def test_unique(opset: int, shape: Any, seed: int, inverse: bool) -> None:
    x = kit.make_tensor(torch.int64, shape, seed, low=0, high=3)
    kit.check_op(aten._unique.default, x, True, inverse, opset=opset)
