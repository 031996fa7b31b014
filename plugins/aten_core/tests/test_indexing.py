"""Reading and writing by index tensors and masks."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
ALL = kit.dtypes("all")
NUMBERS = kit.dtypes("float", "int")
MATRIX = kit.shapes(min_rank=2, max_rank=3, min_side=1, max_side=4)


def fit(opset: int, *dtypes: torch.dtype) -> int:
    """The opset, or 13, the first at which most operators take bfloat16."""
    return max(opset, 13) if torch.bfloat16 in dtypes else opset


@st.composite
def indexed(draw: Any, min_rank: int = 1) -> tuple[tuple[int, ...], list[torch.Tensor | None]]:
    """A shape, and index tensors and masks with gaps between them."""
    shape = draw(kit.shapes(min_rank=min_rank, max_rank=4, min_side=1, max_side=4))
    common = draw(kit.shapes(max_rank=2, min_side=1, max_side=3))
    indices: list[torch.Tensor | None] = []
    axis = masks = 0
    while axis < len(shape):
        kind = draw(st.sampled_from(["index", "index", "none", "mask", "end"]))
        if kind == "end" and any(i is not None for i in indices):
            break
        if kind == "mask" and not masks and not any(i is not None for i in indices) and not common:
            count = draw(st.integers(1, len(shape) - axis))
            indices.append(kit.make_tensor(torch.bool, shape[axis : axis + count], draw(st.integers(0, 99))))
            axis, masks = axis + count, 1
            continue
        if kind == "index" or kind == "mask":
            form = draw(st.sampled_from([common, common, tuple(1 for _ in common), common[1:]]))
            values = torch.tensor(
                draw(st.lists(st.integers(-shape[axis], shape[axis] - 1), min_size=9, max_size=9))
            )
            dtype = draw(st.sampled_from([torch.int64, torch.int32]))
            indices.append(values[: torch.Size(form).numel()].reshape(form).to(dtype))
        else:
            indices.append(None)
        axis += 1
    assume(any(i is not None for i in indices))
    return shape, indices


@given(opset=kit.opsets(), dtype=ALL, given_=indexed(), dynamic=st.booleans())
def test_index(opset: int, dtype: torch.dtype, given_: Any, dynamic: bool) -> None:
    opset = fit(opset, dtype)
    shape, indices = given_
    kit.check_op(aten.index.Tensor, kit.make_tensor(dtype, shape), indices, opset=opset, dynamic=dynamic)


@given(opset=kit.opsets(), dtype=ALL, given_=indexed(), seed=st.integers(0, 99), data=st.data())
def test_index_put_of_values_that_broadcast(
    opset: int, dtype: torch.dtype, given_: Any, seed: int, data: Any
) -> None:
    opset = fit(opset, dtype)
    shape, indices = given_
    x = kit.make_tensor(dtype, shape)
    # Each place once: torch does not say which of two values stays.
    indices = [i if i is None or i.dtype == torch.bool else i.flatten()[:1] for i in indices]
    full = tuple(x[tuple(slice(None) if i is None else i for i in indices)].shape)
    form = data.draw(st.sampled_from([full, (), tuple(1 for _ in full), full[1:]]))
    kit.check_op(aten.index_put.default, x, indices, kit.make_tensor(dtype, form, seed), opset=opset)


@given(opset=kit.opsets(low=16), dtype=NUMBERS, given_=indexed(), seed=st.integers(0, 99))
def test_index_put_that_accumulates(opset: int, dtype: torch.dtype, given_: Any, seed: int) -> None:
    opset = fit(opset, dtype)
    shape, indices = given_
    x = kit.make_tensor(dtype, shape)
    full = x[tuple(slice(None) if i is None else i for i in indices)].shape
    values = kit.make_tensor(dtype, full, seed)
    kit.check_op(aten.index_put.default, x, indices, values, True, opset=opset)


def test_one_index_is_a_gather_and_one_mask_a_compress() -> None:
    x, rows = torch.randn(4, 5, 3), torch.tensor([0, -1])
    kit.check_op(aten.index.Tensor, x, [None, rows], expect="Gather:1!")
    kit.check_op(aten.index.Tensor, x, [torch.tensor([True, False, True, True])], expect="Compress:1!")


def test_index_tensors_that_span_a_grid_are_gathers() -> None:
    x, rows, columns = torch.randn(4, 5), torch.tensor([[0], [2]]), torch.tensor([1, 2, -1])
    kit.check_op(aten.index.Tensor, x, [rows, columns], expect="Gather:2 GatherND:0", dynamic=False)


@given(opset=kit.opsets(), dtype=ALL, shape=MATRIX, data=st.data())
def test_gather(opset: int, dtype: torch.dtype, shape: Any, data: Any) -> None:
    opset = fit(opset, dtype)
    x = kit.make_tensor(dtype, shape)
    dim = data.draw(kit.dims(x.dim()))
    form = [data.draw(st.integers(0, size)) for size in shape]
    index = kit.make_tensor(torch.int64, form, low=0, high=9) % shape[dim]
    kit.check_op(aten.gather.default, x, dim, index, opset=opset, expect="GatherElements:1!")


@given(opset=kit.opsets(), dtype=ALL, shape=kit.shapes(max_rank=3, min_side=1), data=st.data())
def test_index_select_and_take(opset: int, dtype: torch.dtype, shape: Any, data: Any) -> None:
    opset = fit(opset, dtype)
    x = kit.make_tensor(dtype, shape)
    dim = data.draw(kit.dims(x.dim()))
    size = x.shape[dim] if shape else 1
    index = torch.tensor(
        data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=1 if not shape else 4))
    )
    kit.check_op(aten.index_select.default, x, dim, index, opset=opset)
    kit.check_op(aten.take.default, x, index.neg(), opset=opset)


@given(opset=kit.opsets(), dtype=ALL, shape=MATRIX, seed=st.integers(0, 99), data=st.data())
def test_scatter(opset: int, dtype: torch.dtype, shape: Any, seed: int, data: Any) -> None:
    opset = fit(opset, dtype)
    x = kit.make_tensor(dtype, shape)
    dim = data.draw(kit.dims(x.dim()))
    lines = [data.draw(st.integers(0, size)) for size in shape]
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(shape, generator=generator).argsort(dim)
    index = order[tuple(slice(0, size) for size in lines)]
    src = kit.make_tensor(dtype, shape, seed)
    kit.check_op(aten.scatter.src, x, dim, index, src, opset=opset)
    kit.check_op(aten.scatter.value, x, dim, index, 1, opset=opset)


@given(opset=kit.opsets(low=16), dtype=NUMBERS, shape=MATRIX, seed=st.integers(0, 99), data=st.data())
def test_scatter_add(opset: int, dtype: torch.dtype, shape: Any, seed: int, data: Any) -> None:
    opset = fit(opset, dtype)
    x, src = kit.make_tensor(dtype, shape), kit.make_tensor(dtype, shape, seed)
    dim = data.draw(kit.dims(x.dim()))
    index = kit.make_tensor(torch.int64, shape, seed, low=0, high=9) % shape[dim]
    kit.check_op(aten.scatter_add.default, x, dim, index, src, opset=opset)


@given(
    opset=kit.opsets(low=18),
    dtype=NUMBERS,
    shape=MATRIX,
    seed=st.integers(0, 99),
    reduce=st.sampled_from("sum prod mean amax amin".split()),
    include=st.booleans(),
    data=st.data(),
)
def test_scatter_reduce(
    opset: int, dtype: torch.dtype, shape: Any, seed: int, reduce: str, include: bool, data: Any
) -> None:
    opset = fit(opset, dtype)
    x, src = (kit.make_tensor(dtype, shape, s, low=0, high=3) for s in (1, seed))
    dim = data.draw(kit.dims(x.dim()))
    index = kit.make_tensor(torch.int64, shape, seed, low=0, high=9) % shape[dim]
    kit.check_op(aten.scatter_reduce.two, x, dim, index, src, reduce, include_self=include, opset=opset)


@given(
    opset=kit.opsets(),
    dtype=ALL,
    shape=kit.shapes(min_rank=1, max_rank=3, min_side=1),
    start=st.none() | st.integers(-6, 6),
    end=st.none() | st.integers(-6, 6),
    step=st.integers(1, 2),
    dynamic=st.booleans(),
    data=st.data(),
)
def test_slice_scatter(
    opset: int, dtype: torch.dtype, shape: Any, start: Any, end: Any, step: int, dynamic: bool, data: Any
) -> None:
    opset = fit(opset, dtype)
    x = kit.make_tensor(dtype, shape)
    dim = data.draw(kit.dims(x.dim()))
    src = kit.make_tensor(dtype, aten.slice.Tensor(x, dim, start, end, step).shape, 1)
    kit.check_op(aten.slice_scatter.default, x, src, dim, start, end, step, opset=opset, dynamic=dynamic)
    index = data.draw(st.integers(-x.shape[dim], x.shape[dim] - 1))
    source = kit.make_tensor(dtype, x.select(dim, 0).shape, 2)
    kit.check_op(aten.select_scatter.default, x, source, dim, index, opset=opset, dynamic=dynamic)


@given(opset=kit.opsets(), dtype=ALL, shapes=kit.broadcastable(2, max_rank=3), seed=st.integers(0, 99))
def test_masked_fill_and_select(opset: int, dtype: torch.dtype, shapes: Any, seed: int) -> None:
    opset = fit(opset, dtype)
    x, mask = (
        kit.make_tensor(dtype, torch.broadcast_shapes(*shapes)),
        kit.make_tensor(torch.bool, shapes[1], seed),
    )
    kit.check_op(aten.masked_fill.Scalar, x, mask, 1, opset=opset, expect="Where:1!")
    kit.check_op(aten.masked_fill.Tensor, x, mask, kit.make_tensor(dtype, ()), opset=opset)
    kit.check_op(aten.masked_select.default, x, mask, opset=opset)


@given(opset=kit.opsets(), dtype=NUMBERS, shape=kit.shapes(max_rank=3), seed=st.integers(0, 99))
def test_masked_scatter(opset: int, dtype: torch.dtype, shape: Any, seed: int) -> None:
    opset = fit(opset, dtype)
    x, mask = kit.make_tensor(dtype, shape), kit.make_tensor(torch.bool, shape, seed)
    kit.check_op(aten.masked_scatter.default, x, mask, kit.make_tensor(dtype, (x.numel(),), 1), opset=opset)


@given(opset=kit.opsets(), x=kit.tensor(ALL, kit.shapes(max_rank=3)), size=st.integers(0, 9))
def test_nonzero(opset: int, x: torch.Tensor, size: int) -> None:
    opset = fit(opset, x.dtype)
    kit.check_op(aten.nonzero.default, x, opset=opset)
    if x.dim():
        kit.check_op(aten.nonzero_static.default, x, size=size, opset=opset)


@given(opset=kit.opsets(), dtype=NUMBERS, shape=kit.shapes(max_rank=3, min_side=1), data=st.data())
def test_writes_along_an_axis(opset: int, dtype: torch.dtype, shape: Any, data: Any) -> None:
    opset = fit(opset, dtype)
    x = kit.make_tensor(dtype, shape)
    dim = data.draw(kit.dims(x.dim()))
    size = x.shape[dim] if shape else 1
    rows = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True))
    index = torch.tensor(rows)
    form = [len(rows) if i == dim % x.dim() else n for i, n in enumerate(shape)]
    source = kit.make_tensor(dtype, form, 1)
    kit.check_op(aten.index_copy.default, x, dim, index, source, opset=opset)
    kit.check_op(aten.index_fill.int_Scalar, x, dim, index, 2, opset=opset)
    if opset >= 16:
        kit.check_op(aten.index_add.default, x, dim, index, source, alpha=2, opset=opset)


@given(opset=kit.opsets(), dtype=ALL, other=ALL, shapes=kit.broadcastable(2, max_rank=3))
def test_copy_and_fill_keep_the_dtype(
    opset: int, dtype: torch.dtype, other: torch.dtype, shapes: Any
) -> None:
    opset = fit(opset, dtype, other)
    x = kit.make_tensor(dtype, torch.broadcast_shapes(*shapes))
    kit.check_op(aten.copy.default, x, kit.make_tensor(other, shapes[1], low=0, high=3), opset=opset)
    kit.check_op(aten.fill.Scalar, x, 1, opset=opset)


@given(opset=kit.opsets(), seed=st.integers(0, 99), kind=st.sampled_from("sum prod amax amin".split()))
def test_truth_values_are_combined(opset: int, seed: int, kind: str) -> None:
    x, src = (kit.make_tensor(torch.bool, (4,), s) for s in (seed, seed + 1))
    index = torch.tensor([0, 2, 0, 2])
    kit.check_op(aten.scatter_reduce.two, x, 0, index, src, kind, opset=opset)
    kit.check_op(aten.index_put.default, x, [index], src, True, opset=opset)
    kit.check_op(aten.index_add.default, x, 0, index, src, opset=opset)
    kit.check_op(aten.put.default, x, index, src, True, opset=opset)


@given(opset=kit.opsets(), dtype=NUMBERS, alpha=st.integers(-2, 2), seed=st.integers(0, 99))
def test_index_add(opset: int, dtype: torch.dtype, alpha: int, seed: int) -> None:
    x, source = (kit.make_tensor(dtype, (4, 2), s, low=0, high=5) for s in (seed, seed + 1))
    index = torch.tensor([3, 1, 3, 0])
    kit.check_op(aten.index_add.default, x, 0, index, source, alpha=alpha, opset=fit(opset, dtype))
