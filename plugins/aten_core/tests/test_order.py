"""Median and mode."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
NAN, INF = float("nan"), float("inf")


def fit(opset: int, dtype: torch.dtype) -> int:
    """The opset, or 13, the first at which most operators take bfloat16."""
    return max(opset, 13) if dtype == torch.bfloat16 else opset


@given(opset=kit.opsets(), x=kit.tensor(kit.dtypes("float", "int"), kit.shapes(max_rank=3)))
def test_median_of_all(opset: int, x: torch.Tensor) -> None:
    for overload in (aten.median.default, aten.nanmedian.default):
        kit.check_op(overload, x, opset=fit(opset, x.dtype))


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float", "int"), kit.shapes(max_rank=3, min_side=1)),
    keepdim=st.booleans(),
    data=st.data(),
)
def test_median_along_an_axis(opset: int, x: torch.Tensor, keepdim: bool, data: Any) -> None:
    dim = data.draw(kit.dims(x.dim()))
    for overload in (aten.median.dim, aten.nanmedian.dim):
        kit.check_op(overload, x, dim, keepdim, opset=fit(opset, x.dtype))


@given(
    opset=kit.opsets(), values=st.lists(st.sampled_from([NAN, INF, -INF, 0.0, 1.0]), min_size=1, max_size=7)
)
def test_median_takes_the_first_of_equal_elements_and_of_nans(opset: int, values: list[float]) -> None:
    for overload in (aten.median.dim, aten.nanmedian.dim):
        kit.check_op(overload, torch.tensor(values), 0, opset=opset)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_median_of_nothing(dtype: torch.dtype) -> None:
    for overload in (aten.median.default, aten.nanmedian.default):
        kit.check_op(overload, torch.zeros(0, 2, dtype=dtype))


@given(
    opset=kit.opsets(),
    dtype=kit.dtypes("float", "int", "bool"),
    shape=kit.shapes(max_rank=3, min_side=1),
    seed=st.integers(0, 99),
    keepdim=st.booleans(),
    data=st.data(),
)
def test_mode(opset: int, dtype: torch.dtype, shape: Any, seed: int, keepdim: bool, data: Any) -> None:
    x = kit.make_tensor(dtype, shape, seed, low=0, high=3)
    dim = data.draw(kit.dims(x.dim()))
    kit.check_op(aten.mode.default, x, dim, keepdim, opset=fit(opset, dtype))
