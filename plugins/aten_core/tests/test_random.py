"""Random numbers have torch's shape and dtype, and come from torch's distribution."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import atonnx
from atonnx import testing as kit

aten = torch.ops.aten


@given(opset=kit.opsets(low=13), x=kit.tensor(kit.dtypes("float"), kit.shapes(max_rank=3)))
def test_a_draw_has_the_shape_and_dtype_of_its_argument(opset, x):
    kit.check_op(aten.rand_like.default, x, opset=opset)
    kit.check_op(aten.randn_like.default, x, opset=opset)
    kit.check_op(aten.randint_like.default, x, 5, opset=opset)
    kit.check_op(aten.uniform.default, x, -2.0, 3.0, opset=opset)
    kit.check_op(aten.bernoulli.p, x, 0.25, opset=opset)
    kit.check_op(aten.exponential.default, x, 2.0, opset=opset)
    kit.check_op(aten.cauchy.default, x, opset=opset)
    kit.check_op(aten.log_normal.default, x, opset=opset)
    kit.check_op(aten.normal_functional.default, x, 1.0, 2.0, opset=opset)


@given(
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.uint8, torch.int8, torch.int32, torch.int64, torch.float32, torch.float64]),
    size=st.lists(st.integers(0, 3), max_size=3),
    low=st.integers(0, 3),
)
def test_integers_in_every_dtype(opset, dtype, size, low):
    kit.check_op(aten.randint.low, low, 7, size, dtype=dtype, opset=opset)
    kit.check_op(aten.random.default, torch.zeros(size, dtype=dtype), opset=opset)
    kit.check_op(aten.geometric.default, torch.zeros(size, dtype=dtype), 0.5, opset=opset)
    kit.check_op(aten.randperm.default, sum(size), dtype=dtype, opset=opset)


def drawn(function, opset=20):
    """What a program draws, once, with a size known while it runs only."""

    class Draw(torch.nn.Module):
        def forward(self, x):
            return function(x)

    shapes = ({0: torch.export.Dim.DYNAMIC},)
    program = atonnx.export(Draw(), (torch.zeros(100, 200),), dynamic_shapes=shapes, opset_version=opset)
    return program(torch.zeros(150, 200))[0]


# The mean and the deviation of each, and the values between which all lie.
MOMENTS = [
    (lambda x: torch.rand_like(x), 1 / 2, math.sqrt(1 / 12), 0, 1),
    (lambda x: torch.rand(x.shape, dtype=torch.float16).float(), 1 / 2, math.sqrt(1 / 12), 0, 0.9999),
    (lambda x: torch.randn(x.shape), 0, 1, -9, 9),
    (lambda x: torch.view_as_real(torch.randn(x.shape, dtype=torch.complex64)), 0, math.sqrt(0.5), -9, 9),
    (lambda x: torch.randint(2, 12, x.shape).double(), 6.5, math.sqrt(99 / 12), 2, 11),
    (lambda x: torch.randint(0, 2**62, x.shape).double() / 2**62, 1 / 2, math.sqrt(1 / 12), 0, 1),
    (lambda x: torch.randint(-3, x.shape[0] - 3, x.shape).double(), 71.5, math.sqrt(22499 / 12), -3, 146),
    (lambda x: x.clone().uniform_(-2, 4), 1, math.sqrt(3), -2, 4),
    (lambda x: x.clone().normal_(3, 2), 3, 2, -15, 21),
    (lambda x: torch.normal(x + 3, 2.0), 3, 2, -15, 21),
    (lambda x: torch.bernoulli(x + 0.25), 0.25, math.sqrt(3) / 4, 0, 1),
    (lambda x: x.clone().bernoulli_(0.25), 0.25, math.sqrt(3) / 4, 0, 1),
    (lambda x: x.clone().exponential_(2), 1 / 2, 1 / 2, 0, 20),
    (lambda x: x.clone().geometric_(0.25), 4, math.sqrt(12), 1, 200),
    (lambda x: x.clone().cauchy_(3, 2).sub(3).div(2).atan(), 0, math.pi / math.sqrt(12), -1.6, 1.6),
    (lambda x: x.clone().log_normal_(1, 0.5).log(), 1, 0.5, -4, 6),
    (lambda x: x.clone().random_().div(2**24), 1 / 2, math.sqrt(1 / 12), 0, 1),
    (lambda x: x.clone().random_(9), 4, math.sqrt(80 / 12), 0, 8),
    (lambda x: torch.poisson(x + 7), 7, math.sqrt(7), 0, 40),
    (lambda x: torch._standard_gamma(x + 2.5), 2.5, math.sqrt(2.5), 0, 30),
    (lambda x: torch._standard_gamma(x + 0.5), 0.5, math.sqrt(0.5), 0, 30),
    (lambda x: torch.multinomial(torch.tensor([0.0, 3.0, 0.0, 1.0]), 3000, True) / 1.0, 1.5, 0.866, 1, 3),
]


@pytest.mark.parametrize("place", range(len(MOMENTS)))
def test_distribution(place):
    function, mean, deviation, low, high = MOMENTS[place]
    made = drawn(function).double()
    margin = 8 / math.sqrt(made.numel())
    assert abs(float(made.mean()) - mean) < deviation * margin
    assert abs(float(made.std()) - deviation) < deviation * margin * 3
    assert low <= float(made.min()) and float(made.max()) <= high


def test_a_permutation_has_every_number_once():
    made = drawn(lambda x: torch.randperm(x.shape[0]))
    assert made.tolist() != list(range(150))
    assert sorted(made.tolist()) == list(range(150))


def test_without_replacement_no_place_is_drawn_twice_nor_one_of_weight_zero():
    weights = torch.tensor([[1.0, 0.0, 2.0, 5.0], [1e-3, 1e3, 0.0, 1.0]])
    made = drawn(lambda x: torch.multinomial(weights + x[0, 0], 3))
    assert sorted(made[0].tolist()) == [0, 2, 3]
    assert sorted(made[1].tolist()) == [0, 1, 3]


def test_a_program_draws_anew_at_every_place_and_in_every_run():
    class Twice(torch.nn.Module):
        def forward(self, x):
            return torch.rand(50), torch.rand(50), torch.rand_like(x), torch.rand_like(x)

    program = atonnx.export(Twice(), (torch.zeros(50),))
    first, again = program(torch.zeros(50)), program(torch.zeros(50))
    made = [tuple(part.tolist()) for part in (*first, *again)]
    assert len(set(made)) == 8
