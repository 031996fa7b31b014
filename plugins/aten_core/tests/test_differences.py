"""Differences of neighbours."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float", "int", "bool"), kit.shapes(min_rank=1, max_rank=3), finite=True),
    n=st.integers(0, 4),
    ahead=st.booleans(),
    behind=st.booleans(),
    data=st.data(),
)
def test_diff(opset: int, x: torch.Tensor, n: int, ahead: bool, behind: bool, data: Any) -> None:
    opset = max(opset, 13) if x.dtype == torch.bfloat16 else opset
    dim = data.draw(kit.dims(x.dim()))
    more = [x.narrow(dim, 0, min(x.shape[dim], 1)) if given else None for given in (ahead, behind)]
    kit.check_op(aten.diff.default, x, n, dim, *more, opset=opset)
