"""New tensors have the sizes, the dtype and the values that eager torch gives them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import atonnx
from atonnx import testing as kit

aten = torch.ops.aten

NUMBERS = st.sampled_from([0, 3, -1, 2.5, True])


@given(opset=kit.opsets(low=13), x=kit.tensor(kit.dtypes("all"), kit.shapes(max_rank=3)), number=NUMBERS)
def test_full_of_a_number(opset, x, number):
    if number == -1 and x.dtype == torch.uint8:
        number = 7
    kit.check_op(aten.full_like.default, x, number, opset=opset)
    kit.check_op(aten.new_full.default, x, [2, kit.Size(x, 0)] if x.dim() else [2], number, opset=opset)
    kit.check_op(aten.zeros_like.default, x, opset=opset)
    kit.check_op(aten.ones_like.default, x, dtype=torch.int32, opset=opset)


class Grid(torch.nn.Module):
    """Every creation whose sizes come from an input's."""

    def forward(self, x):
        n = x.shape[0]
        return (
            torch.arange(n),
            torch.arange(n, dtype=torch.float32),
            torch.arange(1, 2 * n + 1, 2),
            torch.arange(n, -1, -1),
            torch.arange(0, n, 0.3),
            torch.arange(n * 0.5, 8.0),
            torch.zeros(n, 2),
            torch.full((n,), n),
            torch.eye(n),
            torch.eye(n, 4, dtype=torch.int64),
        )


@pytest.mark.parametrize("opset", [11, 20, 28])
def test_sizes_of_an_input_make_new_tensors_at_any_size(opset):
    program = atonnx.export(
        Grid(), (torch.ones(3, 2),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), opset_version=opset
    )
    for n in (3, 5, 1, 0):
        x = torch.ones(n, 2)
        for actual, expected in zip(program(x), Grid()(x), strict=True):
            torch.testing.assert_close(actual, expected)


@given(
    start=st.integers(-4, 4),
    step=st.sampled_from([1, 2, -1, 0.25, -0.5]),
    count=st.integers(0, 6),
    dtype=st.sampled_from([None, torch.float32, torch.float64, torch.int32]),
)
def test_arange_of_numbers(start, step, count, dtype):
    if dtype == torch.int32 and not isinstance(step, int):
        dtype = None
    kit.check_op(aten.arange.start_step, start, start + step * count, step, dtype=dtype)


@given(
    steps=st.integers(0, 9), dtype=kit.dtypes("wide", torch.int64), ends=st.tuples(*[st.integers(-9, 9)] * 2)
)
def test_linspace_is_counted_from_both_ends(steps, dtype, ends):
    start, end = (torch.tensor(float(n)) for n in ends)
    kit.check_op(aten.linspace.Tensor_Tensor, start, end, steps, dtype=dtype)


@given(
    start=st.integers(-4, 4),
    step=st.sampled_from([1, 2, -1, 0.25, -0.5, 0.3]),
    count=st.integers(0, 6),
    dtype=st.sampled_from([None, torch.float64, torch.int32]),
)
def test_range_counts_its_end(start, step, count, dtype):
    if dtype == torch.int32 and not isinstance(step, int):
        dtype = None
    kit.check_op(aten.range.step, start, start + step * count, step, dtype=dtype)
