"""Quantiles."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
KINDS = st.sampled_from(["linear", "lower", "higher", "nearest", "midpoint"])
PARTS = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.75, 1.0])
FLOATS = kit.dtypes(torch.float32, torch.float64)


@given(
    opset=kit.opsets(),
    x=kit.tensor(FLOATS, kit.shapes(max_rank=3, min_side=1)),
    part=PARTS,
    kind=KINDS,
    keepdim=st.booleans(),
    dynamic=st.booleans(),
    data=st.data(),
)
def test_one_quantile(
    opset: int, x: torch.Tensor, part: float, kind: str, keepdim: bool, dynamic: bool, data: Any
) -> None:
    dim = data.draw(st.none() | kit.dims(x.dim()))
    options = {"interpolation": kind, "opset": opset, "dynamic": dynamic}
    kit.check_op(aten.quantile.scalar, x, part, dim, keepdim, **options)
    kit.check_op(aten.nanquantile.scalar, x, part, dim, keepdim, **options)


@given(
    opset=kit.opsets(),
    x=kit.tensor(FLOATS, kit.shapes(max_rank=3, min_side=1)),
    parts=PARTS | st.lists(PARTS, min_size=1, max_size=3),
    kind=KINDS,
    keepdim=st.booleans(),
    dynamic=st.booleans(),
    owned=st.booleans(),
    data=st.data(),
)
def test_several_quantiles(
    opset: int,
    x: torch.Tensor,
    parts: Any,
    kind: str,
    keepdim: bool,
    dynamic: bool,
    owned: bool,
    data: Any,
) -> None:
    dim = data.draw(st.none() | kit.dims(x.dim()))
    q: Any = torch.tensor(parts, dtype=x.dtype)
    q = kit.Weight(q) if owned else q
    options = {"interpolation": kind, "opset": opset, "dynamic": dynamic}
    kit.check_op(aten.quantile.default, x, q, dim, keepdim, **options)
    kit.check_op(aten.nanquantile.default, x, q, dim, keepdim, **options)


def test_a_known_quantile_takes_few_nodes() -> None:
    x = torch.randn(3, 8)
    kit.check_op(
        aten.quantile.scalar,
        x,
        0.3,
        1,
        dynamic=False,
        expect="TopK:1 Gather:3 Sub:1 Mul:1 Add:1 IsNaN:1 Where:1!",
    )
