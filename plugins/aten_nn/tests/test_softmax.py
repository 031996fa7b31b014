"""Softmax against eager torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten


@st.composite
def with_dim(draw, dtypes="float", finite=False):
    x = draw(kit.tensor(kit.dtypes(dtypes), kit.shapes(max_rank=3), finite=finite))
    return x, draw(kit.dims(x.dim()))


def at(opset, x):
    """The opset, or the first where ONNX's operators take the tensor's dtype."""
    return max(opset, 13) if x.dtype == torch.bfloat16 else opset


@given(opset=kit.opsets(), case=with_dim(), log=st.booleans())
def test_softmax_along_any_axis(opset, case, log):
    overload = aten.log_softmax.int if log else aten.softmax.int
    gap = "the reference has its own way with infinities"
    kit.check_op(overload, *case, opset=at(opset, case[0]), ort_gap=gap)


@given(opset=kit.opsets(), case=with_dim("number", finite=True), dtype=kit.dtypes("float"), log=st.booleans())
def test_the_dtype_is_taken_before_the_softmax(opset, case, dtype, log):
    kit.check_op(
        aten.log_softmax.int if log else aten.softmax.int, *case, dtype, opset=max(at(opset, case[0]), 13)
    )


@given(opset=kit.opsets(), case=with_dim("float", finite=True))
def test_core_forms(opset, case):
    kit.check_op(aten._softmax.default, *case, False, opset=at(opset, case[0]))
    kit.check_op(aten._log_softmax.default, *case, False, opset=at(opset, case[0]))


@given(opset=kit.opsets(), dtype=kit.dtypes("float"), seed=st.integers(0, 99))
def test_safe_softmax_has_zeros_where_all_is_hidden(opset, dtype, seed):
    x = kit.make_tensor(dtype, (3, 4), seed)
    x[1] = -float("inf")
    x[2, :2] = -float("inf")
    kit.check_op(aten._safe_softmax.default, x, -1, opset=at(opset, x))


def test_one_node_from_opset_13():
    for opset in (13, 20, 28):
        kit.check_op(aten.softmax.int, torch.randn(2, 3, 4), 1, opset=opset, expect="Softmax:1!")
