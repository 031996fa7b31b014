"""Linear layers and embeddings against eager torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@given(
    opset=kit.opsets(),
    x=kit.tensor(kit.dtypes("float", *INTEGERS), kit.shapes(min_rank=1, max_rank=4, min_side=1), finite=True),
    bias=st.booleans(),
    weights=st.booleans(),
)
def test_linear_of_any_rank(opset, x, bias, weights):
    wrap = kit.Weight if weights else lambda tensor: tensor
    weight = wrap(kit.make_tensor(x.dtype, (2, x.shape[-1]), 1))
    arguments = [x, weight, wrap(kit.make_tensor(x.dtype, (2,), 2))] if bias else [x, weight]
    kit.check_op(aten.linear.default, *arguments, opset=at(opset, x), rtol=1e-4, atol=1e-4)


def at(opset, x):
    """The opset, or the first where ONNX's operators take the tensor's dtype."""
    return max(opset, 13) if x.dtype == torch.bfloat16 else opset


def test_a_matrix_needs_one_node():
    x, weight, bias = torch.randn(4, 3), kit.Weight(torch.randn(2, 3)), kit.Weight(torch.randn(2))
    kit.check_op(aten.linear.default, x, weight, bias, expect="Gemm:1!")
    kit.check_op(aten.linear.default, x, weight, expect="Gemm:1!")


def test_a_weight_of_one_row_without_its_axis():
    kit.check_op(aten.linear.default, torch.randn(2, 4, 3), torch.randn(3), dynamic=False)


def test_empty_batches():
    weight, bias = kit.Weight(torch.randn(2, 3)), kit.Weight(torch.randn(2))
    for shape in ((0, 3), (2, 0, 3)):
        kit.check_op(aten.linear.default, torch.randn(shape), weight, bias)


@given(
    opset=kit.opsets(low=12),
    dtype=st.sampled_from([torch.float32, *INTEGERS]),
    rank=st.integers(1, 3),
    bias=st.booleans(),
)
def test_bilinear(opset, dtype, rank, bias):
    lead = (2, 3)[: rank - 1]
    x, y, weight, added = (
        kit.make_tensor(dtype, shape, seed)
        for seed, shape in enumerate([(*lead, 3), (*lead, 2), (5, 3, 2), (5,)])
    )
    more = [added] if bias else []
    kit.check_op(aten.bilinear.default, x, y, kit.Weight(weight), *more, opset=opset, rtol=1e-4, atol=1e-4)


@given(
    opset=kit.opsets(),
    indices=kit.tensor(kit.dtypes("index"), kit.shapes(max_rank=3), low=0, high=6),
    dtype=kit.dtypes("float"),
    padding=st.sampled_from([-1, 0, 3]),
)
def test_embedding_is_a_gather(opset, indices, dtype, padding):
    weight = kit.Weight(kit.make_tensor(dtype, (7, 3), 0))
    opset = at(opset, weight.tensor)
    kit.check_op(
        aten.embedding.default, weight, indices, padding, opset=at(opset, weight.tensor), expect="Gather:1!"
    )
