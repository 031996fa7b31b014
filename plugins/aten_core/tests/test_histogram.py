"""Counting into bins."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
NAN = float("nan")
GRID = st.integers(-8, 8).map(lambda n: n / 4)  # exact, and often on an edge
POINTS = st.lists(GRID, min_size=1, max_size=12)
DTYPES = st.sampled_from([torch.float32, torch.float64])


@given(
    opset=kit.opsets(),
    values=st.lists(st.integers(0, 6), max_size=8),
    dtype=kit.dtypes("int"),
    least=st.integers(0, 9),
    weight=st.sampled_from([None, torch.float32, torch.float64, torch.int64]),
)
def test_bincount(
    opset: int, values: list[int], dtype: torch.dtype, least: int, weight: torch.dtype | None
) -> None:
    weights = None if weight is None else kit.make_tensor(weight, (len(values),), low=0, high=5)
    kit.check_op(aten.bincount.default, torch.tensor(values, dtype=dtype), weights, least, opset=opset)


@given(
    opset=kit.opsets(),
    values=st.lists(GRID | st.just(NAN), min_size=1, max_size=12),
    dtype=DTYPES,
    bins=st.integers(1, 6),
    low=GRID,
    more=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_histc(
    opset: int, values: list[float], dtype: torch.dtype, bins: int, low: float, more: float
) -> None:
    x = torch.tensor(values, dtype=dtype)
    kit.check_op(aten.histc.default, x, bins, low, low + more, opset=opset)
    kit.check_op(aten.histc.default, x.nan_to_num(), bins, 1, 1, opset=opset)


@given(
    opset=kit.opsets(),
    values=POINTS,
    dtype=DTYPES,
    bins=st.integers(1, 6),
    span=st.none() | st.sampled_from([[-1.0, 1.0], [0.0, 0.75], [0.5, 0.5]]),
    weighted=st.booleans(),
    density=st.booleans(),
)
def test_histogram(
    opset: int,
    values: list[float],
    dtype: torch.dtype,
    bins: int,
    span: list[float] | None,
    weighted: bool,
    density: bool,
) -> None:
    x = torch.tensor(values, dtype=dtype)
    weight = kit.make_tensor(dtype, x.shape, low=0, high=4) if weighted else None
    kit.check_op(
        aten.histogram.bin_ct, x, bins, range=span, weight=weight, density=density, opset=opset, atol=1e-5
    )


@given(
    opset=kit.opsets(),
    values=POINTS,
    edges=st.lists(GRID, min_size=2, max_size=5, unique=True).map(sorted),
    density=st.booleans(),
)
def test_histogram_between_edges(opset: int, values: list[float], edges: list[float], density: bool) -> None:
    x, bins = torch.tensor(values), torch.tensor(edges)
    kit.check_op(aten.histogram.bins_tensor, x, bins, density=density, opset=opset)
    points = torch.stack([x, x.flip(0)], -1)
    kit.check_op(
        aten._histogramdd_from_bin_tensors.default, points, [bins, bins[:2]], density=density, opset=opset
    )


@given(
    opset=kit.opsets(),
    values=POINTS,
    bins=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    whole=st.booleans(),
    density=st.booleans(),
)
def test_histogram_of_points(
    opset: int, values: list[float], bins: list[int], whole: bool, density: bool
) -> None:
    x = torch.stack([torch.tensor(values).roll(k) for k in range(len(bins))], -1)
    span = None if whole else [-1.0, 1.25] * len(bins)
    options = {"range": span, "density": density}
    kit.check_op(aten._histogramdd_bin_edges.default, x, bins, **options, opset=opset)
    kit.check_op(aten._histogramdd_from_bin_cts.default, x, bins, **options, opset=opset)


@pytest.mark.parametrize("overload", [aten.histc.default, aten.histogram.bin_ct])
def test_histogram_of_nothing(overload: torch._ops.OpOverload) -> None:
    kit.check_op(overload, torch.zeros(0), 3)
