"""Reductions over what an index or a segment names, and indexing that a mask guards."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

import atonnx
from atonnx import testing as kit

aten = torch.ops.aten
REDUCTIONS = st.sampled_from(["sum", "mean", "max", "min", "prod"])


@given(
    opset=kit.opsets(),
    dtype=kit.dtypes(torch.float32, torch.float64, torch.int64, torch.int32),
    shape=kit.shapes(max_rank=3, min_side=1),
    count=st.integers(0, 4),
    reduce=st.sampled_from(["prod", "mean", "amax", "amin"]),
    include=st.booleans(),
    data=st.data(),
)
def test_index_reduce(
    opset: int, dtype: torch.dtype, shape: Any, count: int, reduce: str, include: bool, data: Any
) -> None:
    x = kit.make_tensor(dtype, shape, low=-4, high=5)
    dim = data.draw(kit.dims(x.dim()))
    size, count = (x.shape[dim], count) if shape else (1, 1)
    index = torch.tensor([data.draw(st.integers(0, size - 1)) for _ in range(count)], dtype=torch.int64)
    sizes = list(shape)
    if shape:
        sizes[dim] = count
    source = kit.make_tensor(dtype, sizes, 1, low=-4, high=5)
    kit.check_op(
        aten.index_reduce.default, x, dim, index, source, reduce, include_self=include, opset=opset, atol=1e-5
    )


@given(
    opset=kit.opsets(),
    lengths=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    batch=st.integers(0, 2),
    rest=kit.shapes(max_rank=1, min_side=1),
    reduce=REDUCTIONS,
    initial=st.none() | st.just(2.0),
    by_offsets=st.booleans(),
    unsafe=st.booleans(),
)
def test_segment_reduce(
    opset: int,
    lengths: list[int],
    batch: int,
    rest: Any,
    reduce: str,
    initial: float | None,
    by_offsets: bool,
    unsafe: bool,
) -> None:
    lead = [batch] if batch else []
    rows = torch.tensor(lengths).expand(*lead, -1).contiguous()
    if batch == 2:
        rows[1] = rows[1].flip(0)
    x = kit.make_tensor(torch.float32, (*lead, sum(lengths), *rest))
    given: dict[str, Any] = {"lengths": rows}
    if by_offsets:
        zero = torch.zeros(*lead, 1, dtype=torch.int64)
        given = {"offsets": torch.cat([zero, rows.cumsum(-1)], -1)}
    kit.check_op(
        aten.segment_reduce.default,
        x,
        reduce,
        **given,
        axis=len(lead),
        unsafe=unsafe,
        initial=initial,
        opset=opset,
        atol=1e-5,
    )


@given(
    opset=kit.opsets(),
    rows=st.lists(st.integers(-9, 9), min_size=1, max_size=4),
    shape=kit.shapes(min_rank=1, max_rank=2, min_side=1),
    seed=st.integers(0, 9),
)
def test_indexing_that_a_mask_guards(opset: int, rows: list[int], shape: Any, seed: int) -> None:
    x, index = torch.randn(shape), torch.tensor(rows)
    mask = kit.make_tensor(torch.bool, (len(rows), *(1 for _ in shape[1:])), seed)
    values = torch.randn(len(rows), *shape[1:])
    kit.check_op(aten._unsafe_masked_index.default, x, mask, [index], 0.5, opset=opset)
    kit.check_op(
        aten._unsafe_masked_index_put_accumulate.default, x, mask, [index], values, opset=opset, atol=1e-5
    )


@given(
    opset=kit.opsets(),
    dtype=kit.dtypes(torch.float32, torch.complex64),
    size=st.integers(0, 7),
    at=st.lists(st.integers(-3, 9), max_size=3),
    data=st.data(),
)
def test_split_at_a_tensor(opset: int, dtype: torch.dtype, size: int, at: list[int], data: Any) -> None:
    x = kit.make_tensor(dtype, (2, size))
    kit.check_op(
        aten.tensor_split.tensor_indices_or_sections,
        x,
        torch.tensor(at, dtype=torch.int64),
        data.draw(st.sampled_from([1, -1])),
        opset=opset,
        dynamic=False,
    )


class Sections(torch.nn.Module):
    """Split by a constant number of parts, which only a fixed tensor can give."""

    def forward(self, x: torch.Tensor) -> Any:
        return torch.tensor_split(x, torch.tensor(3), 0)


def test_split_into_a_number_of_parts() -> None:
    x = torch.randn(7, 2)
    program = atonnx.export(Sections().eval(), (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    for rows in (torch.randn(7, 2), torch.randn(5, 2)):
        for got, wanted in zip(program(rows), Sections()(rows), strict=True):
            torch.testing.assert_close(got, wanted)
