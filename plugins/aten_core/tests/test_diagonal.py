"""Diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
ALL = kit.dtypes("all")
MATRIX = kit.shapes(min_rank=2, max_rank=3)


def fit(opset: int, *dtypes: torch.dtype) -> int:
    """The opset, or 13, the first at which most operators take bfloat16."""
    return max(opset, 13) if torch.bfloat16 in dtypes else opset


@given(
    opset=kit.opsets(),
    dtype=ALL,
    shape=MATRIX,
    offset=st.integers(-3, 3),
    dynamic=st.booleans(),
    data=st.data(),
)
def test_diagonal(opset: int, dtype: torch.dtype, shape: Any, offset: int, dynamic: bool, data: Any) -> None:
    opset = fit(opset, dtype)
    x = kit.make_tensor(dtype, shape)
    dims = data.draw(kit.dim_lists(x.dim(), 2, 2))
    kit.check_op(aten.diagonal.default, x, offset, *dims, opset=opset, dynamic=dynamic)
    src = kit.make_tensor(dtype, x.diagonal(offset, *dims).shape, 1)
    kit.check_op(aten.diagonal_scatter.default, x, src, offset, *dims, opset=opset, dynamic=dynamic)


@given(
    opset=kit.opsets(),
    dtype=ALL,
    shape=kit.shapes(min_rank=1, max_rank=3),
    offset=st.integers(-2, 2),
    dynamic=st.booleans(),
    data=st.data(),
)
def test_diag_embed(
    opset: int, dtype: torch.dtype, shape: Any, offset: int, dynamic: bool, data: Any
) -> None:
    opset = fit(opset, dtype)
    x = kit.make_tensor(dtype, shape)
    dims = data.draw(kit.dim_lists(x.dim() + 1, 2, 2))
    kit.check_op(aten.diag_embed.default, x, offset, *dims, opset=opset, dynamic=dynamic)


@given(opset=kit.opsets(), dtype=ALL, shape=MATRIX, k=st.integers(-5, 5), dynamic=st.booleans())
def test_triangles(opset: int, dtype: torch.dtype, shape: Any, k: int, dynamic: bool) -> None:
    opset = fit(opset, dtype)
    x = kit.make_tensor(dtype, shape)
    kit.check_op(aten.tril.default, x, k, opset=opset, dynamic=dynamic)
    kit.check_op(aten.triu.default, x, k, opset=opset, dynamic=dynamic)


def test_trace_sums_integers_in_int64() -> None:
    kit.check_op(aten.trace.default, torch.ones(3, 4, dtype=torch.int32))
    kit.check_op(aten.trace.default, torch.ones(0, 4, dtype=torch.int32))
