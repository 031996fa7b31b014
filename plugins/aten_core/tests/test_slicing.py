"""Parts of a tensor along an axis, and joining parts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
ALL = kit.dtypes("all")
SOME = kit.tensor(ALL, kit.shapes(min_rank=1, max_rank=3))
BOUND = st.none() | st.integers(-7, 7) | st.sampled_from([2**63 - 1, -(2**63) + 1])


def fit(opset: int, *dtypes: torch.dtype) -> int:
    """The opset, or 13, the first at which most operators take bfloat16."""
    return max(opset, 13) if torch.bfloat16 in dtypes else opset


@given(
    opset=kit.opsets(),
    x=SOME,
    start=BOUND,
    end=BOUND,
    step=st.integers(1, 3),
    dynamic=st.booleans(),
    data=st.data(),
)
def test_slice_clamps_as_torch_does(
    opset: int, x: torch.Tensor, start: Any, end: Any, step: int, dynamic: bool, data: Any
) -> None:
    opset = fit(opset, x.dtype)
    dim = data.draw(kit.dims(x.dim()))
    kit.check_op(aten.slice.Tensor, x, dim, start, end, step, opset=opset, dynamic=dynamic)


@pytest.mark.parametrize("bounds", [(0, 2**63 - 1), (None, None), (0, 4), (-4, 9)])
def test_a_slice_of_all_is_the_tensor(bounds: tuple[Any, Any]) -> None:
    kit.check_op(aten.slice.Tensor, torch.randn(4, 3), 0, *bounds, dynamic=False, expect="Slice:0")


@given(opset=kit.opsets(), x=kit.tensor(ALL, kit.shapes(min_rank=1, max_rank=3, min_side=1)), data=st.data())
def test_select(opset: int, x: torch.Tensor, data: Any) -> None:
    opset = fit(opset, x.dtype)
    dim = data.draw(kit.dims(x.dim()))
    size = x.shape[dim]
    index = data.draw(st.integers(-size, size - 1))
    kit.check_op(aten.select.int, x, dim, index, opset=opset, dynamic=False, expect="Gather:1!")
    kit.check_op(aten.unbind.int, x, dim, opset=opset)
    length = data.draw(st.integers(0, size - index % size))
    kit.check_op(aten.narrow.default, x, dim, index, length, opset=opset)


@given(opset=kit.opsets(), x=SOME, size=st.integers(1, 6), dynamic=st.booleans(), data=st.data())
def test_split_and_chunk(opset: int, x: torch.Tensor, size: int, dynamic: bool, data: Any) -> None:
    opset = fit(opset, x.dtype)
    dim = data.draw(kit.dims(x.dim()))
    kit.check_op(aten.split.Tensor, x, size, dim, opset=opset, dynamic=dynamic)
    kit.check_op(aten.chunk.default, x, size, dim, opset=opset, dynamic=dynamic)
    kit.check_op(aten.tensor_split.sections, x, size, dim, opset=opset, dynamic=dynamic)


@given(opset=kit.opsets(), x=SOME, cuts=st.lists(st.integers(-6, 6), max_size=3), data=st.data())
def test_split_at_places(opset: int, x: torch.Tensor, cuts: list[int], data: Any) -> None:
    opset = fit(opset, x.dtype)
    dim = data.draw(kit.dims(x.dim()))
    kit.check_op(aten.tensor_split.indices, x, cuts, dim, opset=opset)
    total = x.shape[dim]
    sizes = [total // 2, 0, total - total // 2]
    kit.check_op(aten.split_with_sizes.default, x, sizes, dim, opset=opset)


@given(
    opset=kit.opsets(),
    first=kit.dtypes("number", "bool"),
    second=kit.dtypes("number", "bool"),
    data=st.data(),
)
def test_cat_promotes(opset: int, first: torch.dtype, second: torch.dtype, data: Any) -> None:
    opset = fit(opset, first, second)
    shape = list(data.draw(kit.shapes(min_rank=1, max_rank=3)))
    dim = data.draw(kit.dims(len(shape)))
    other = list(shape)
    other[dim] = data.draw(st.integers(0, 3))
    tensors = [kit.make_tensor(first, shape), kit.make_tensor(second, other, 1)]
    kit.check_op(aten.cat.default, tensors, dim, opset=opset)
    if first == second:
        kit.check_op(aten.stack.default, [tensors[0], tensors[0] * 1], dim, opset=opset)


def test_cat_skips_empty_vectors_among_tensors_of_another_rank() -> None:
    kit.check_op(aten.cat.default, [torch.zeros(0), torch.randn(2, 3)], -1, dynamic=False, expect="Concat:0")
    kit.check_op(aten.cat.default, [torch.zeros(0), torch.randn(2)], 0, dynamic=False)
    kit.check_op(
        aten.cat.default, [torch.zeros(0, dtype=torch.int64), torch.ones(2, 3).half()], 0, dynamic=False
    )


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 2)])
def test_stacking_by_rows_columns_and_layers(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    for target in (aten.hstack.default, aten.vstack.default, aten.dstack.default, aten.column_stack.default):
        kit.check_op(target, [x, x + 1])


@given(opset=kit.opsets(), x=kit.tensor(ALL, kit.shapes(max_rank=3)), data=st.data())
def test_flip(opset: int, x: torch.Tensor, data: Any) -> None:
    opset = fit(opset, x.dtype)
    kit.check_op(aten.flip.default, x, data.draw(kit.dim_lists(x.dim())), opset=opset)


@given(opset=kit.opsets(), x=SOME, shift=st.integers(-7, 7), dynamic=st.booleans(), data=st.data())
@example(opset=20, x=torch.zeros(0, 2), shift=3, dynamic=True, data=None)
def test_roll(opset: int, x: torch.Tensor, shift: int, dynamic: bool, data: Any) -> None:
    opset = fit(opset, x.dtype)
    dim = data.draw(kit.dims(x.dim())) if data is not None else 0
    kit.check_op(aten.roll.default, x, [shift], [dim], opset=opset, dynamic=dynamic)
    kit.check_op(aten.roll.default, x, [shift], opset=opset, dynamic=dynamic)


@given(
    opset=kit.opsets(),
    x=kit.tensor(ALL, kit.shapes(min_rank=2, max_rank=3)),
    k=st.integers(-2, 3),
    data=st.data(),
)
def test_rot90(opset: int, x: torch.Tensor, k: int, data: Any) -> None:
    opset = fit(opset, x.dtype)
    kit.check_op(aten.rot90.default, x, k, data.draw(kit.dim_lists(x.dim(), 2, 2)), opset=opset)


@given(
    opset=kit.opsets(),
    x=kit.tensor(ALL, kit.shapes(max_rank=3, min_side=1)),
    step=st.integers(1, 3),
    data=st.data(),
)
def test_unfold(opset: int, x: torch.Tensor, step: int, data: Any) -> None:
    opset = fit(opset, x.dtype)
    dim = data.draw(kit.dims(x.dim()))
    size = data.draw(st.integers(0, x.shape[dim] if x.dim() else 1))
    kit.check_op(aten.unfold.default, x, dim, size, step, opset=opset)


@given(
    opset=kit.opsets(),
    dtype=kit.dtypes(torch.float32, torch.int64, torch.complex64),
    sides=st.lists(st.integers(1, 5), min_size=3, max_size=3),
    chunks=st.integers(1, 4),
    dim=st.integers(0, 1),
    dynamic=st.booleans(),
)
def test_chunks_are_filled_up_and_joined(
    opset: int, dtype: torch.dtype, sides: list[int], chunks: int, dim: int, dynamic: bool
) -> None:
    shapes = [(2, *sides), (2, sides[1], 3)] if dim else [sides, (sides[2], 2)]
    xs = [kit.make_tensor(dtype, shape) for shape in shapes]
    kit.check_op(aten._chunk_cat.default, xs, dim, chunks, opset=opset, dynamic=dynamic)


def test_one_model_holds_for_other_sizes() -> None:
    x, y = torch.randn(4, 6), torch.randn(7, 8)
    kit.check_op(aten._chunk_cat.default, [x, x], 1, 4, also=[([y, y], 1, 4)])
    kit.check_op(aten.slice.Tensor, x, 1, 1, -1, also=[(y, 1, 1, -1)])
    kit.check_op(aten.roll.default, x, [3], [1], also=[(y, [3], [1])])
    kit.check_op(aten.unfold.default, x, 1, 3, 2, also=[(y, 1, 3, 2)])
    kit.check_op(aten.view.default, x, [-1], also=[(y, [-1])])
    kit.check_op(aten.repeat_interleave.self_int, x, 2, 1, also=[(y, 2, 1)])
