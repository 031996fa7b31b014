"""Folding of the captured program: constants only, deterministic, never weights, not too large."""

from __future__ import annotations

import pytest
import torch

from atonnx.build.folding import LIMIT, fold_constants


class Constant(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x + torch.arange(3) * 2 + self.weight * 2


def folded(function, *args):
    class Wrap(torch.nn.Module):
        def forward(self, *values):
            return function(*values)

    program = torch.export.export(Wrap(), args, strict=False)
    return {node.name: value for node, value in fold_constants(program.graph, {}, set()).items()}


def test_what_depends_on_constants_only_is_folded():
    found = folded(lambda x: x + torch.arange(3, device="cpu") * 2, torch.ones(3))
    assert found["mul"].tolist() == [0, 2, 4]
    assert "add" not in found


def test_parameters_stay_live():
    program = torch.export.export(Constant(), (torch.ones(3),), strict=False)
    names = {node.name for node in fold_constants(program.graph, {}, set())}
    assert names == {"arange", "mul"}


def test_random_numbers_are_not_folded():
    assert not folded(lambda x: x + torch.rand(3), torch.ones(3))


def test_large_results_are_not_folded():
    count = LIMIT // 4 + 1
    assert not folded(lambda x: x + torch.zeros(count), torch.ones(1))


@pytest.mark.parametrize(
    "function",
    [torch.zeros_like, torch.ones_like, lambda x: torch.full_like(x, 2), lambda x: x.new_zeros(2)],
)
def test_of_some_operators_the_shape_of_an_argument_is_enough(function):
    assert len(folded(function, torch.randn(2, 3))) == 1


def test_excluded_nodes_are_left():
    program = torch.export.export(Constant(), (torch.ones(3),), strict=False)
    arange = next(node for node in program.graph.nodes if node.name == "arange")
    assert not fold_constants(program.graph, {}, {arange})
