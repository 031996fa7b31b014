"""Reductions give what eager torch gives: of nothing, of one element, in any dtype."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten

MOMENTS = [aten.var, aten.std, aten.var_mean, aten.std_mean]


def at(opset: int, x: torch.Tensor) -> int:
    """The opset, or 13, the first that has casts of bfloat16, where the tensor needs one."""
    return max(opset, 13) if x.dtype == torch.bfloat16 else opset


def name(overload: object) -> str:
    return str(overload)


@st.composite
def reductions(draw, *groups, min_side=0, min_dims=0):
    """A tensor, dims of it and keepdim."""
    x = draw(
        kit.tensor(
            kit.dtypes(*groups), kit.shapes(max_rank=3, min_side=min_side), finite=True, low=-4, high=4
        )
    )
    return x, draw(kit.dim_lists(x.dim(), min_size=min(min_dims, x.dim()))), draw(st.booleans())


@pytest.mark.parametrize("overload", [aten.sum.dim_IntList, aten.nansum.default], ids=name)
@given(opset=kit.opsets(), call=reductions("all"))
def test_sums(overload, opset, call):
    if overload is aten.nansum.default and not call[1] and torch.__version__.startswith("2.13"):
        return  # its shape rule takes no dims for none, eager for all
    kit.check_op(overload, *call, opset=at(opset, call[0]), atol=kit.ulps(64))


@given(opset=kit.opsets(), call=reductions("float"))
def test_the_mean_of_nothing_is_nan(opset, call):
    kit.check_op(aten.mean.dim, *call, opset=at(opset, call[0]), atol=kit.ulps(64))


@pytest.mark.parametrize("overload", [aten.amax.default, aten.amin.default], ids=name)
@given(opset=kit.opsets(), call=reductions("all", min_side=1))
def test_extremes(overload, opset, call):
    kit.check_op(overload, *call, opset=at(opset, call[0]))


@pytest.mark.parametrize("overload", [aten.any.dims, aten.all.dims], ids=name)
@given(opset=kit.opsets(), call=reductions("all"))
def test_truth_of_several_dims(overload, opset, call):
    kit.check_op(overload, *call, opset=at(opset, call[0]))


@pytest.mark.parametrize("overload", [aten.any.dim, aten.all.dim, aten.prod.dim_int], ids=name)
@given(opset=kit.opsets(), call=reductions("all", min_dims=1))
def test_one_dim(overload, opset, call):
    x, dims, keepdim = call
    kit.check_op(overload, x, dims[0] if dims else 0, keepdim, opset=at(opset, x), atol=kit.ulps(64))


@pytest.mark.parametrize("overload", [aten.max.dim, aten.min.dim], ids=name)
@given(opset=kit.opsets(), call=reductions("all", min_side=1, min_dims=1))
def test_an_extreme_and_where_it_is(overload, opset, call):
    x, dims, keepdim = call
    kit.check_op(overload, x, dims[0] if dims else 0, keepdim, opset=at(opset, x))


@pytest.mark.parametrize("overload", [aten.argmax.default, aten.argmin.default], ids=name)
@given(opset=kit.opsets(), call=reductions("number", min_side=1, min_dims=1), everything=st.booleans())
def test_the_first_of_several_is_found(overload, opset, call, everything):
    x, dims, keepdim = call
    dim = None if everything or not dims else dims[0]
    kit.check_op(overload, x, dim, keepdim, opset=at(opset, x))


@pytest.mark.parametrize("packet", MOMENTS, ids=name)
@given(opset=kit.opsets(), call=reductions("float"), correction=st.sampled_from([None, 0, 1, 2, 0.5]))
def test_moments(packet, opset, call, correction):
    x, dims, keepdim = call
    near = kit.ulps(64)
    kit.check_op(
        packet.correction, x, dims, correction=correction, keepdim=keepdim, opset=at(opset, x), atol=near
    )


@given(
    opset=kit.opsets(),
    call=reductions("float", min_side=1),
    order=st.sampled_from([0, 1, 2, 3, 0.5, float("inf"), -float("inf")]),
)
def test_vector_norms(opset, call, order):
    x, dims, keepdim = call
    kit.check_op(
        aten.linalg_vector_norm.default, x, order, dims, keepdim, opset=at(opset, x), atol=kit.ulps(64)
    )


@given(opset=kit.opsets(), call=reductions("wide", "int", min_side=1, min_dims=1))
def test_logsumexp(opset, call):
    x, dims, keepdim = call
    kit.check_op(aten.logsumexp.default, x, dims or [0], keepdim, opset=opset, atol=kit.ulps(16))


@pytest.mark.parametrize("opset", [11, 18, 27, 28])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("keepdim", [False, True])
def test_logsumexp_does_not_overflow(opset, dtype, keepdim):
    inf = math.inf
    x = torch.tensor([[1e6, 2.0], [-1e6, -3e6], [inf, 1.0], [-inf, -inf], [-inf, 0.0], [math.nan, 1.0]])
    for dims in ([1], [0]):
        kit.check_op(aten.logsumexp.default, x.to(dtype), dims, keepdim, opset=opset)
    kit.check_op(aten.logsumexp.default, x[:2].to(dtype), [0, 1], keepdim, opset=opset)
    kit.check_op(aten.logsumexp.default, torch.zeros(2, 0, dtype=dtype), [1], keepdim, opset=opset)


@pytest.mark.parametrize(
    "overload",
    [
        aten.sum.default,
        aten.prod.default,
        aten.max.default,
        aten.min.default,
        aten.any.default,
        aten.all.default,
    ],
    ids=name,
)
@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("all"), kit.shapes(max_rank=2, min_side=1), finite=True, low=-2, high=2),
)
def test_all_axes(overload, opset, x):
    kit.check_op(overload, x, opset=at(opset, x), atol=kit.ulps(64))


def test_a_dtype_is_taken_before_the_sum():
    x = torch.tensor([[100, 100, 100]], dtype=torch.int8)
    for dtype in (torch.int8, torch.int32, torch.float16, torch.bool):
        kit.check_op(aten.sum.dim_IntList, x, [1], dtype=dtype)
