"""Bags of embeddings against eager torch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten


@given(
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.float32, torch.float32, torch.float64]),
    index=st.sampled_from([torch.int64, torch.int32]),
    ends=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    mode=st.integers(0, 2),
    weighted=st.booleans(),
    last=st.booleans(),
    padding=st.sampled_from([-1, 0, 2]),
)
def test_bags_by_offsets(opset, dtype, index, ends, mode, weighted, last, padding):
    weight = kit.make_tensor(dtype, (5, 3), 1)
    indices = torch.tensor([1, 4, 2, 0, 0, 2], dtype=index)
    offsets = torch.tensor([0, *sorted(ends), *([6] if last else [])], dtype=index)
    samples = kit.make_tensor(dtype, (6,), 2) if weighted and mode == 0 else None
    arguments = (weight, indices, offsets, False, mode, False, samples, last, padding)
    kit.check_op(aten._embedding_bag.default, *arguments, opset=opset, outputs=(0,), atol=1e-5)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 1])
def test_indices_in_rows_are_reduced_over_an_axis(run, mode, padding):
    bag = torch.nn.EmbeddingBag(9, 4, mode=mode, padding_idx=padding)
    args, *others = [(torch.randint(0, 9, (n, 3)),) for n in (2, 5)]
    auto = torch.export.Dim.DYNAMIC
    program = run(bag, args, ({0: auto},), others, None)
    assert not any("Scatter" in node.op_type for node in program.model_proto.graph.node)


def test_offsets_of_a_dynamic_number(run):
    class Bags(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bag = torch.nn.EmbeddingBag(9, 4, mode="mean")

        def forward(self, indices, offsets):
            return self.bag(indices, offsets)

    auto = torch.export.Dim.DYNAMIC
    args = (torch.tensor([1, 2, 3, 4]), torch.tensor([0, 1]))
    others = [(torch.tensor([8, 7, 6, 5, 4]), torch.tensor([0, 0, 3]))]
    run(Bags(), args, ({0: auto}, {0: auto}), others, None)


@given(
    opset=kit.opsets(),
    shape=st.sampled_from([(3,), (2, 2), ()]),
    norm=st.sampled_from([2.0, 1.0, float("inf")]),
    most=st.sampled_from([0.5, 2.0]),
)
def test_renormed_rows(opset, shape, norm, most):
    weight = kit.make_tensor(torch.float32, (5, 3), 1)
    indices = torch.randint(0, 5, shape, generator=torch.Generator().manual_seed(1))
    kit.check_op(aten.embedding_renorm.default, weight, indices, most, norm, opset=opset, atol=1e-5)
