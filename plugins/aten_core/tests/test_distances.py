"""Distances between rows."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
NORMS = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, math.inf])


@given(
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    batches=kit.broadcastable(2, max_rank=2),
    rows=st.integers(0, 4),
    others=st.integers(0, 4),
    features=st.integers(0, 3),
    p=NORMS,
    dynamic=st.booleans(),
)
def test_cdist(
    opset: int,
    dtype: torch.dtype,
    batches: Any,
    rows: int,
    others: int,
    features: int,
    p: float,
    dynamic: bool,
) -> None:
    a = kit.make_tensor(dtype, (*batches[0], rows, features))
    b = kit.make_tensor(dtype, (*batches[1], others, features), 1)
    kit.check_op(aten.cdist.default, a, b, p, opset=opset, dynamic=dynamic)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("mode", [None, 0, 1, 2])
def test_euclidean_distances_of_many_rows(mode: int | None, dynamic: bool) -> None:
    a, b = torch.randn(30, 3), torch.randn(4, 3)
    few = torch.randn(5, 3)
    kit.check_op(aten.cdist.default, a, b, 2.0, mode, dynamic=dynamic, also=[(few, b, 2.0, mode)], atol=1e-4)


def test_a_static_size_decides_without_a_branch() -> None:
    few, many = torch.randn(4, 3), torch.randn(30, 3)
    kit.check_op(aten.cdist.default, few, few + 1, dynamic=False, expect="ReduceL2:1 If:0")
    kit.check_op(aten.cdist.default, many, few, dynamic=False, expect="MatMul:1 If:0", atol=1e-4)


@given(opset=kit.opsets(), rows=st.integers(0, 5), features=st.integers(0, 3), p=NORMS, dynamic=st.booleans())
def test_pdist(opset: int, rows: int, features: int, p: float, dynamic: bool) -> None:
    a = kit.make_tensor(torch.float32, (rows, features))
    kit.check_op(aten._pdist_forward.default, a, p, opset=opset, dynamic=dynamic)
