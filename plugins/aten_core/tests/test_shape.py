"""Views and other shapes of a tensor."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit
from atonnx.errors import UnsupportedOpError

aten = torch.ops.aten
ALL = kit.dtypes("all")
ANY = kit.tensor(ALL, kit.shapes(max_rank=4))


def fit(opset: int, *dtypes: torch.dtype) -> int:
    """The opset, or 13, the first at which most operators take bfloat16."""
    return max(opset, 13) if torch.bfloat16 in dtypes else opset


@given(opset=kit.opsets(), x=kit.tensor(ALL, kit.shapes(max_rank=3)), dynamic=st.booleans(), data=st.data())
def test_view_takes_every_way_to_write_a_shape(opset: int, x: torch.Tensor, dynamic: bool, data: Any) -> None:
    opset = fit(opset, x.dtype)
    shape = list(data.draw(st.permutations(list(x.shape))))
    if shape and data.draw(st.booleans()):
        shape[0:2] = [math.prod(shape[0:2])]
    if data.draw(st.booleans()):
        shape.insert(data.draw(st.integers(0, len(shape))), 1)
    rest = math.prod(shape[1:])
    if shape and rest and data.draw(st.booleans()):
        shape[0] = -1
    target = data.draw(st.sampled_from([aten.view.default, aten.reshape.default, aten._unsafe_view.default]))
    kit.check_op(target, x, shape, opset=opset, dynamic=dynamic)


def test_a_view_of_a_matrix_of_dynamic_rows_is_one_node() -> None:
    x = torch.randn(3, 4)
    kit.check_op(aten.view.default, x, [-1, 2, 2], expect="Reshape:1", dynamic=False)


@given(opset=kit.opsets(), x=ANY, data=st.data())
def test_flatten(opset: int, x: torch.Tensor, data: Any) -> None:
    opset = fit(opset, x.dtype)
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, max(x.dim() - 1, 0))] * 2)))
    kit.check_op(aten.flatten.using_ints, x, start, end - max(x.dim(), 1), opset=opset)


@given(opset=kit.opsets(), x=ANY, data=st.data())
def test_squeeze_of_one_axis(opset: int, x: torch.Tensor, data: Any) -> None:
    opset = fit(opset, x.dtype)
    kit.check_op(aten.squeeze.dim, x, data.draw(kit.dims(x.dim())), opset=opset, dynamic=False)


@given(opset=kit.opsets(), x=ANY, data=st.data())
def test_squeeze_of_axes(opset: int, x: torch.Tensor, data: Any) -> None:
    opset = fit(opset, x.dtype)
    kit.check_op(aten.squeeze.dims, x, data.draw(kit.dim_lists(x.dim())), opset=opset, dynamic=False)
    kit.check_op(aten.squeeze.default, x, opset=opset, dynamic=False)


@given(opset=kit.opsets(), x=ANY, data=st.data())
def test_unsqueeze(opset: int, x: torch.Tensor, data: Any) -> None:
    opset = fit(opset, x.dtype)
    kit.check_op(
        aten.unsqueeze.default, x, data.draw(kit.dims(x.dim() + 1)), opset=opset, expect="Unsqueeze:1!"
    )


@given(opset=kit.opsets(), x=ANY, data=st.data())
def test_permute(opset: int, x: torch.Tensor, data: Any) -> None:
    opset = fit(opset, x.dtype)
    order = data.draw(st.permutations(range(x.dim())))
    kit.check_op(aten.permute.default, x, order, opset=opset)


@given(opset=kit.opsets(), x=ANY, data=st.data())
def test_transpose(opset: int, x: torch.Tensor, data: Any) -> None:
    opset = fit(opset, x.dtype)
    pair = [data.draw(kit.dims(x.dim())) for _ in range(2)]
    kit.check_op(aten.transpose.int, x, *pair, opset=opset)


@given(opset=kit.opsets(), x=kit.tensor(ALL, kit.shapes(min_rank=2, max_rank=4)), data=st.data())
def test_movedim(opset: int, x: torch.Tensor, data: Any) -> None:
    opset = fit(opset, x.dtype)
    source = data.draw(kit.dim_lists(x.dim()))
    target = data.draw(kit.dim_lists(x.dim(), len(source), len(source)))
    kit.check_op(aten.movedim.intlist, x, source, target, opset=opset)


@given(opset=kit.opsets(), shapes=kit.broadcastable(2), dtype=ALL, data=st.data())
def test_expand(opset: int, shapes: Any, dtype: torch.dtype, data: Any) -> None:
    opset = fit(opset, dtype)
    full = torch.broadcast_shapes(*shapes)
    x = kit.make_tensor(dtype, shapes[0])
    ahead = len(full) - x.dim()
    size = [
        -1 if i >= ahead and n == x.shape[i - ahead] and data.draw(st.booleans()) else n
        for i, n in enumerate(full)
    ]
    kit.check_op(aten.expand.default, x, size, opset=opset)


@given(opset=kit.opsets(), x=kit.tensor(ALL, kit.shapes(max_rank=3)), data=st.data())
def test_repeat(opset: int, x: torch.Tensor, data: Any) -> None:
    opset = fit(opset, x.dtype)
    count = st.integers(0, 3)
    repeats = data.draw(st.lists(count, min_size=x.dim(), max_size=x.dim() + 2))
    kit.check_op(aten.repeat.default, x, repeats, opset=opset)
    kit.check_op(aten.tile.default, x, repeats[:2], opset=opset)


@given(
    opset=kit.opsets(),
    x=kit.tensor(ALL, kit.shapes(max_rank=3, min_side=1)),
    repeats=st.integers(0, 3),
    data=st.data(),
)
def test_repeat_interleave(opset: int, x: torch.Tensor, repeats: int, data: Any) -> None:
    opset = fit(opset, x.dtype)
    dim = data.draw(st.none() | kit.dims(x.dim())) if x.dim() else None
    kit.check_op(aten.repeat_interleave.self_int, x, repeats, dim, opset=opset)


@pytest.mark.parametrize("indexing", ["ij", "xy"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_meshgrid(indexing: str, count: int) -> None:
    lines = [torch.randn(size) for size in (2, 3, 4)][:count]
    kit.check_op(aten.meshgrid.indexing, lines, indexing=indexing, also=[([x[:-1] for x in lines],)])


def test_a_view_as_a_dtype_of_another_width_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="another width"):
        kit.check_op(aten.view.dtype, torch.randn(2, 4), torch.int16, opset=26)


@given(opset=kit.opsets(), data=st.data(), shape=kit.shapes(min_rank=1, max_rank=3, min_side=1))
def test_a_complex_tensor_keeps_its_pairs_together(opset: int, data: Any, shape: Any) -> None:
    z = kit.make_tensor(torch.complex64, shape)
    rank = z.dim()
    kit.check_op(aten.permute.default, z, data.draw(st.permutations(range(rank))), opset=opset)
    kit.check_op(aten.reshape.default, z, [-1], opset=opset)
    kit.check_op(aten.unsqueeze.default, z, data.draw(kit.dims(rank + 1)), opset=opset)
    kit.check_op(aten.select.int, z, data.draw(kit.dims(rank)), 0, opset=opset)
    kit.check_op(aten.slice.Tensor, z, data.draw(kit.dims(rank)), 1, opset=opset)
    kit.check_op(aten.stack.default, [z, z], data.draw(kit.dims(rank + 1)), opset=opset)
    kit.check_op(aten.cat.default, [z, z], data.draw(kit.dims(rank)), opset=opset)
    kit.check_op(aten.flip.default, z, data.draw(kit.dim_lists(rank)), opset=opset)
    kit.check_op(aten.repeat.default, z, [2] * rank, opset=opset)
    kit.check_op(aten.numpy_T.default, z, opset=opset)
