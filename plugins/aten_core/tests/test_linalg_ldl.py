"""Symmetric factors with pivots of one or two rows."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten


def indefinite(dtype: torch.dtype, side: int, seed: int, hermitian: bool, hollow: bool) -> torch.Tensor:
    """Symmetric matrices, of which hollow ones need pivots of two rows."""
    a = torch.randn(2, side, side, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    a = a + (a.mH if hermitian else a.mT)
    if hollow and side > 1:
        a[0].diagonal().zero_()
    return a


@given(
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.float64, torch.complex128]),
    side=st.integers(1, 6),
    hermitian=st.booleans(),
    hollow=st.booleans(),
    seed=st.integers(0, 24),
    dynamic=st.booleans(),
)
def test_factors_and_systems(
    opset: int, dtype: torch.dtype, side: int, hermitian: bool, hollow: bool, seed: int, dynamic: bool
) -> None:
    a = indefinite(dtype, side, seed, hermitian, hollow)
    kit.check_op(
        aten.linalg_ldl_factor_ex.default,
        a,
        hermitian=hermitian,
        opset=opset,
        dynamic=dynamic,
        atol=1e-9,
        rtol=1e-9,
    )
    factors, pivots, _ = torch.linalg.ldl_factor_ex(a, hermitian=hermitian)
    kit.check_op(
        aten.linalg_ldl_solve.default,
        factors,
        pivots,
        torch.randn(2, side, 3, dtype=dtype, generator=torch.Generator().manual_seed(seed)),
        hermitian=hermitian,
        opset=opset,
        dynamic=dynamic,
        atol=1e-6,
        rtol=1e-6,
    )


def test_a_matrix_of_zeros_tells_its_first_pivot() -> None:
    kit.check_op(aten.linalg_ldl_factor_ex.default, torch.zeros(2, 2), outputs=[2])
    kit.check_op(aten.linalg_ldl_factor_ex.default, torch.zeros(0, 0), dynamic=False)
