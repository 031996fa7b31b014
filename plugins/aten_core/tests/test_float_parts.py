"""Mantissa, exponent and neighbours of floats are exact."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given

from atonnx import testing as kit

aten = torch.ops.aten
VIEWS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}


def spread(dtype: torch.dtype) -> torch.Tensor:
    """Numbers of all exponents, the least and the largest ones, and what is no number."""
    view = VIEWS[dtype]
    limits = torch.iinfo(view)
    generator = torch.Generator().manual_seed(0)
    some = torch.randint(limits.min, limits.max, (500,), dtype=view, generator=generator)
    ends = torch.tensor([0, 1, 2, 3, limits.min, limits.min + 1], dtype=view)
    info = torch.finfo(dtype)
    numbers = [1.0, 2.0, -0.5, math.inf, -math.inf, math.nan, info.max, info.min, info.tiny, -info.tiny]
    return torch.cat([some.view(dtype), ends.view(dtype), torch.tensor(numbers, dtype=dtype)])


@pytest.mark.parametrize("dtype", VIEWS, ids=str)
def test_frexp_of_all_exponents(dtype):
    kit.check_op(aten.frexp.Tensor, spread(dtype), rtol=0.0, atol=0.0)


@given(opset=kit.opsets(low=13), x=kit.tensor(kit.dtypes("float"), kit.shapes(max_rank=3)))
def test_frexp(opset, x):
    kit.check_op(aten.frexp.Tensor, x, opset=opset, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("dtype", VIEWS, ids=str)
def test_the_next_number_of_all_exponents(dtype):
    x = spread(dtype)
    for other in (math.inf, -math.inf, 0.0, 1.0, math.nan):
        kit.check_op(aten.nextafter.default, x, torch.tensor(other, dtype=dtype), rtol=0.0, atol=0.0)
    kit.check_op(aten.nextafter.default, x, x.flip(0), rtol=0.0, atol=0.0)


@given(opset=kit.opsets(low=13), pair=kit.tensors(kit.dtypes("float"), kit.broadcastable(2)))
def test_the_next_number(opset, pair):
    kit.check_op(aten.nextafter.default, *pair, opset=opset, rtol=0.0, atol=0.0)
