"""Orthogonal polynomials of any degree are those of eager torch."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
NAMES = [
    *(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"),
]


def packet(name):
    return getattr(aten, f"special_{name}")


@given(
    name=st.sampled_from(NAMES),
    opset=kit.opsets(),
    x=kit.tensor(st.sampled_from([torch.float32, torch.float64, torch.int64]), low=-1, high=2, finite=True),
    n=st.integers(-1, 12),
)
def test_a_constant_degree(name, opset, x, n):
    kit.check_op(packet(name).n_scalar, x.clamp(-3, 3), n, opset=opset, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_degree_for_each_element(name):
    x = torch.tensor([0.0, 1.0, -1.0, 0.3, -0.7, 1.5, math.inf, math.nan])[:, None]
    n = torch.tensor([-2.0, -0.5, 0.0, 1.0, 2.0, 5.75, 9.0, math.inf, math.nan])
    for opset in (11, 20):
        kit.check_op(packet(name).default, x, n, opset=opset, rtol=1e-4, atol=1e-4)
    kit.check_op(packet(name).x_scalar, 0.25, n, rtol=1e-4, atol=1e-4)
    kit.check_op(packet(name).default, torch.zeros(0, 1), n, rtol=1e-4)


def test_a_small_degree_is_written_out_and_a_large_one_is_a_loop():
    x = torch.rand(2, 3)
    kit.check_op(aten.special_legendre_polynomial_p.n_scalar, x, 5, expect="Loop:0", rtol=1e-4)
    kit.check_op(aten.special_legendre_polynomial_p.n_scalar, x, 30, expect="Loop:1", rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["hermite_polynomial_h", "hermite_polynomial_he"])
def test_hermite_polynomials_beyond_the_limit_are_nan(name, dtype):
    n = torch.tensor([600.0, 3.0, 130.0], dtype=dtype)
    kit.check_op(packet(name).default, torch.tensor([0.5], dtype=dtype), n, rtol=1e-4)
    kit.check_op(packet(name).n_scalar, torch.tensor([0.5], dtype=dtype), 600)
