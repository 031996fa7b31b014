"""Views by strides, and tensors given another size in place."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import atonnx
from atonnx import testing as kit

aten = torch.ops.aten


def windows(draw: Any, count: int) -> tuple[list[int], list[int], int]:
    """Sizes, strides and an offset of a view of ``count`` elements."""
    size, stride, last = [], [], 0
    for _ in range(draw(st.integers(0, 3))):
        step = draw(st.integers(0, 4))
        most = 3 if step == 0 else min((count - 1 - last) // step + 1, 3)
        size.append(draw(st.integers(1, max(most, 1))))
        stride.append(step)
        last += (size[-1] - 1) * step
    return size, stride, draw(st.integers(0, count - 1 - last))


@given(
    opset=kit.opsets(),
    dtype=kit.dtypes(torch.float32, torch.int64, torch.bool, torch.complex64),
    shape=kit.shapes(max_rank=3, min_side=1),
    turned=st.booleans(),
    dynamic=st.booleans(),
    data=st.data(),
)
def test_views_by_strides(
    opset: int, dtype: torch.dtype, shape: Any, turned: bool, dynamic: bool, data: Any
) -> None:
    x = kit.make_tensor(dtype, shape)
    if turned and x.dim() > 1:
        x = x.transpose(0, -1)
        dynamic = dynamic and 1 not in shape  # the stride of a size 1 is any number
    size, stride, offset = windows(data.draw, x.numel())
    for overload in (aten.as_strided.default, aten.as_strided_copy.default):
        kit.check_op(overload, x, size, stride, offset, opset=opset, dynamic=dynamic)


@given(
    opset=kit.opsets(),
    dtype=kit.dtypes(torch.float32, torch.int64, torch.bool, torch.complex64),
    shape=kit.shapes(max_rank=3, min_side=1),
    turned=st.booleans(),
    start=st.integers(0, 2),
)
def test_writes_into_views_by_strides(
    opset: int, dtype: torch.dtype, shape: Any, turned: bool, start: int
) -> None:
    x = kit.make_tensor(dtype, shape)
    x = x.transpose(0, -1) if turned and x.dim() else x
    start = min(start, x.numel() - 1)
    size = [(x.numel() - 1 - start) // 2 + 1]
    for source in (dtype, torch.float32):
        y = kit.make_tensor(source, size, 1)
        kit.check_op(aten.as_strided_scatter.default, x, y, size, [2], start, opset=opset, dynamic=False)


def test_a_view_of_what_is_not_in_the_tensor_is_refused() -> None:
    class Beyond(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[1:, 1:].as_strided((2, 2), (1, 1), 0)

    with pytest.raises(atonnx.errors.UnsupportedOpError, match="gaps in memory"):
        atonnx.export(Beyond(), (torch.randn(3, 3),))


@given(
    opset=kit.opsets(),
    dtype=kit.dtypes(torch.float32, torch.complex64),
    shape=kit.shapes(max_rank=3, min_side=1),
    size=kit.shapes(max_rank=3, min_side=1),
)
def test_a_smaller_size_keeps_the_first_elements(
    opset: int, dtype: torch.dtype, shape: Any, size: Any
) -> None:
    x = kit.make_tensor(dtype, shape)
    if torch.Size(size).numel() <= x.numel():
        kit.check_op(aten.resize.default, x, list(size), opset=opset, dynamic=False)
        kit.check_op(aten.resize_as.default, x, torch.zeros(size), opset=opset, dynamic=False)


@given(opset=kit.opsets(), x=kit.tensor(kit.dtypes("all"), kit.shapes(max_rank=2)))
def test_zero(opset: int, x: torch.Tensor) -> None:
    kit.check_op(aten.zero.default, x, opset=max(opset, 13))
    kit.check_op(aten.zero_.default, x, opset=max(opset, 13))
