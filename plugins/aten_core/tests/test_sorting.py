"""Order along an axis, and what is counted by it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
NUMBERS = kit.dtypes("float", "int")


def fit(opset: int, *dtypes: torch.dtype) -> int:
    """The opset, or 13, the first at which most operators take bfloat16."""
    return max(opset, 13) if torch.bfloat16 in dtypes else opset


def distinct(dtype: torch.dtype, shape: Any, seed: int) -> torch.Tensor:
    """Values without ties, of which torch's order is not stated."""
    count = torch.Size(shape).numel()
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed)).reshape(shape).to(dtype)


@given(
    opset=kit.opsets(),
    dtype=NUMBERS,
    shape=kit.shapes(max_rank=3, min_side=1),
    seed=st.integers(0, 99),
    largest=st.booleans(),
    data=st.data(),
)
def test_topk(opset: int, dtype: torch.dtype, shape: Any, seed: int, largest: bool, data: Any) -> None:
    opset = fit(opset, dtype)
    x = distinct(dtype, shape, seed)
    dim = data.draw(kit.dims(x.dim()))
    k = data.draw(st.integers(0, x.shape[dim] if shape else 1))
    kit.check_op(aten.topk.default, x, k, dim, largest, opset=opset)
    if k:
        kit.check_op(aten.kthvalue.default, x, k, dim, largest, opset=opset)


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float", "int", "bool"), kit.shapes(max_rank=3), finite=True),
    descending=st.booleans(),
    data=st.data(),
)
def test_a_stable_sort_leaves_equal_elements_in_order(
    opset: int, x: torch.Tensor, descending: bool, data: Any
) -> None:
    opset = fit(opset, x.dtype)
    dim = data.draw(kit.dims(x.dim()))
    kit.check_op(aten.sort.stable, x, stable=True, dim=dim, descending=descending, opset=opset)


@pytest.mark.parametrize("descending", [False, True])
def test_infinities_are_in_order(descending: bool) -> None:
    x = torch.tensor([1.0, float("inf"), -2.0, float("-inf")])
    kit.check_op(aten.sort.default, x, 0, descending)


@given(
    opset=kit.opsets(),
    dtype=NUMBERS,
    right=st.booleans(),
    batch=kit.shapes(max_rank=1, min_side=1),
    n=st.integers(0, 5),
    m=st.integers(0, 4),
)
def test_searchsorted(opset: int, dtype: torch.dtype, right: bool, batch: Any, n: int, m: int) -> None:
    opset = fit(opset, dtype)
    edges = kit.make_tensor(dtype, (*batch, n), low=0, high=5).sort(-1).values
    values = kit.make_tensor(dtype, (*batch, m), 1, low=0, high=5)
    kit.check_op(aten.searchsorted.Tensor, edges, values, right=right, opset=opset)
    if not batch:
        kit.check_op(aten.bucketize.Tensor, values, edges, right=right, out_int32=True, opset=opset)


def test_nan_is_behind_all_boundaries() -> None:
    values = torch.tensor([float("nan"), 1.0, float("inf")])
    for right in (False, True):
        kit.check_op(aten.bucketize.Tensor, values, torch.tensor([0.0, 1.0]), right=right)


@given(opset=kit.opsets(), shape=kit.shapes(max_rank=2, min_side=1), seed=st.integers(0, 99))
def test_unique(opset: int, shape: Any, seed: int) -> None:
    x = kit.make_tensor(torch.int64, shape, seed, low=0, high=3)
    kit.check_op(aten._unique2.default, x, True, True, True, opset=opset)
    for dim in range(-x.dim(), x.dim()):
        kit.check_op(aten.unique_dim.default, x, dim, True, True, True, opset=opset)


@given(opset=kit.opsets(), repeats=st.lists(st.integers(0, 3), max_size=4), dtype=kit.dtypes("all"))
def test_repeat_interleave_by_a_tensor(opset: int, repeats: list[int], dtype: torch.dtype) -> None:
    opset = fit(opset, dtype)
    counts = torch.tensor(repeats, dtype=torch.int64)
    x = kit.make_tensor(dtype, (2, len(repeats)))
    kit.check_op(aten.repeat_interleave.Tensor, counts, opset=opset)
    kit.check_op(aten.repeat_interleave.self_Tensor, x, counts, 1, opset=opset)


@given(
    opset=kit.opsets(),
    dtype=NUMBERS,
    shape=kit.shapes(max_rank=3, min_side=1),
    seed=st.integers(0, 99),
    keep=st.booleans(),
    data=st.data(),
)
def test_median(opset: int, dtype: torch.dtype, shape: Any, seed: int, keep: bool, data: Any) -> None:
    opset = fit(opset, dtype)
    x = distinct(dtype, shape, seed)
    kit.check_op(aten.median.default, x, opset=opset)
    kit.check_op(aten.median.dim, x, data.draw(kit.dims(x.dim())), keep, opset=opset)


def test_the_median_of_what_holds_nan_is_nan() -> None:
    x = torch.tensor([[1.0, float("nan"), 0.0, float("nan")], [3.0, 1.0, 2.0, 0.0]])
    kit.check_op(aten.median.default, x)
    kit.check_op(aten.median.dim, x, 1)
    kit.check_op(aten.median.dim, x, 0, True)


@pytest.mark.parametrize("number", [0.5, -1, 0, 1, 2])
@pytest.mark.parametrize("right", [False, True])
def test_a_number_is_sought_among_truth_values(number: float, right: bool) -> None:
    truths = torch.tensor([False, False, True])
    kit.check_op(aten.bucketize.Scalar, number, truths, right=right)
    kit.check_op(aten.searchsorted.Scalar, truths, number, right=right)
