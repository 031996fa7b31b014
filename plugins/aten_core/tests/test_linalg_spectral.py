"""Singular values, eigenvalues of Hermitian matrices, and what is computed with them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matrices import BATCHES, DTYPES, EXACT, SEEDS, SIDES, numbers, positive, regular

import atonnx
from atonnx import testing as kit

aten = torch.ops.aten


class Eigh(torch.nn.Module):
    """What eigenvectors of any sign compose, and whether they are orthonormal."""

    def forward(self, a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, vectors = torch.linalg.eigh(a)
        return values, (vectors * values.unsqueeze(-2)) @ vectors.mT, vectors.mT @ vectors


class Svd(torch.nn.Module):
    """What singular vectors of any sign compose, and whether they are orthonormal."""

    def __init__(self, full: bool) -> None:
        super().__init__()
        self.full = full

    def forward(self, a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        u, s, vh = torch.linalg.svd(a, full_matrices=self.full)
        count = s.shape[-1]
        product = (u[..., :count] * s.unsqueeze(-2)) @ vh[..., :count, :]
        return s, product, u.mT @ u, vh @ vh.mT


def check_module(module: torch.nn.Module, a: torch.Tensor, dynamic: bool, opset: int) -> None:
    axes = dict.fromkeys(range(a.ndim), torch.export.Dim.AUTO)
    made = atonnx.export(
        module.eval(), (a,), dynamic_shapes=(axes,) if dynamic else None, opset_version=opset, verbose=False
    )
    near = 1e-4 if a.dtype == torch.float32 else 1e-11
    for got, want in zip(made(a), module(a), strict=True):
        torch.testing.assert_close(torch.as_tensor(got), want, atol=near, rtol=near)


def spread_out(dtype: torch.dtype, shape: tuple[int, ...], seed: int, kind: str) -> torch.Tensor:
    a = numbers(dtype, shape, seed)
    if kind == "zero":
        return torch.zeros_like(a)
    if kind == "deficient":
        a[..., -1] = a[..., 0]
        a[..., -1, :] = 0
    if kind == "scaled":
        a = a * torch.logspace(-3, 3, shape[-1], dtype=dtype)
    return a


KINDS = st.sampled_from(["plain", "zero", "deficient", "scaled"])
REAL = st.sampled_from([torch.float32, torch.float64])


@settings(max_examples=8)
@given(
    opset=kit.opsets(), dtype=REAL, side=st.sampled_from([1, 2, 3, 4, 5, 8]), kind=KINDS, seed=SEEDS,
    dynamic=st.booleans(),
)  # fmt: skip
def test_eigenvectors_compose_the_matrix(
    opset: int, dtype: torch.dtype, side: int, kind: str, seed: int, dynamic: bool
) -> None:
    a = spread_out(dtype, (2, side, side), seed, "plain" if kind == "scaled" else kind)
    check_module(Eigh(), a + a.mT, dynamic, opset)


@settings(max_examples=8)
@given(
    opset=kit.opsets(), dtype=REAL, rows=st.sampled_from([1, 2, 3, 6]), columns=st.sampled_from([1, 2, 3, 5]),
    full=st.booleans(), kind=KINDS, seed=SEEDS, dynamic=st.booleans(),
)  # fmt: skip
@example(20, torch.float64, 3, 6, True, "deficient", 0, True)
def test_singular_vectors_compose_the_matrix(
    opset: int, dtype: torch.dtype, rows: int, columns: int, full: bool, kind: str, seed: int, dynamic: bool
) -> None:
    a = spread_out(dtype, (2, rows, columns), seed, "plain" if kind == "scaled" else kind)
    check_module(Svd(full), a, dynamic, opset)


@given(opset=kit.opsets(), dtype=DTYPES, batch=BATCHES, rows=SIDES, columns=SIDES, kind=KINDS, seed=SEEDS)
def test_singular_values(
    opset: int,
    dtype: torch.dtype,
    batch: tuple[int, ...],
    rows: int,
    columns: int,
    kind: str,
    seed: int,
) -> None:
    shape = (*batch, rows, columns)
    a = spread_out(dtype, shape, seed, "plain" if 0 in shape else kind)
    near = {"atol": 1e-3, "rtol": 1e-4} if dtype in (torch.float32, torch.complex64) else EXACT[dtype]
    kit.check_op(aten.linalg_svdvals.default, a, opset=opset, **near)


@given(opset=kit.opsets(), dtype=DTYPES, batch=BATCHES, side=SIDES, uplo=st.sampled_from("LU"), seed=SEEDS)
def test_eigenvalues_read_one_triangle(
    opset: int, dtype: torch.dtype, batch: tuple[int, ...], side: int, uplo: str, seed: int
) -> None:
    a = numbers(dtype, (*batch, side, side), seed)
    kit.check_op(aten.linalg_eigvalsh.default, a, uplo, opset=opset, **EXACT[dtype])


@settings(max_examples=8)
@given(dtype=DTYPES, rows=st.integers(1, 5), columns=st.integers(1, 5), seed=SEEDS)
def test_pseudoinverses(dtype: torch.dtype, rows: int, columns: int, seed: int) -> None:
    a = numbers(dtype, (2, rows, columns), seed)
    a[0, 0] = 0
    near = {"atol": 1e-2, "rtol": 1e-2} if dtype in (torch.float32, torch.complex64) else {"atol": 1e-9}
    kit.check_op(aten.linalg_pinv.atol_rtol_tensor, a, **near)
    kit.check_op(aten.linalg_pinv.atol_rtol_tensor, positive(dtype, (2,), rows, seed), hermitian=True, **near)


@pytest.mark.skipif(not hasattr(aten, "linalg_polar"), reason="this torch does not have them")
@settings(max_examples=8)
@given(dtype=DTYPES, side=st.integers(1, 5), seed=SEEDS)
def test_functions_of_the_spectrum(dtype: torch.dtype, side: int, seed: int) -> None:
    kit.check_op(aten.linalg_polar.default, regular(dtype, (2,), side, seed), **EXACT[dtype])
    kit.check_op(aten.linalg_matrix_sqrth.default, positive(dtype, (2,), side, seed), **EXACT[dtype])


@pytest.mark.parametrize("tall", [True, False])
def test_ranks(tall: bool) -> None:
    a = torch.randn(3, 5, 3, generator=torch.Generator().manual_seed(0))
    a[0, :, 0] = a[0, :, 1]
    a[1] = 0
    a = a if tall else a.mT
    kit.check_op(aten.linalg_matrix_rank.atol_rtol_tensor, a)
    kit.check_op(aten.linalg_matrix_rank.default, a, 1e-3)
    kit.check_op(aten.linalg_matrix_rank.tol_tensor, a @ a.mT, torch.tensor([1e-3, 0.1, 1.0]), True)


@pytest.mark.parametrize("order", [2, -2])
@pytest.mark.parametrize(("dim", "keepdim"), [((-2, -1), False), ((2, 0), True)])
def test_spectral_norms(order: int, dim: tuple[int, int], keepdim: bool) -> None:
    a = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0))
    kit.check_op(aten.linalg_matrix_norm.default, a, order, dim, keepdim, **EXACT[torch.float32])
    kit.check_op(aten.linalg_norm.default, a, order, dim, keepdim, **EXACT[torch.float32])


@given(opset=kit.opsets(), dtype=DTYPES, batch=BATCHES, side=SIDES, scale=st.sampled_from([0.01, 1, 5]))
def test_exponentials(
    opset: int, dtype: torch.dtype, batch: tuple[int, ...], side: int, scale: float
) -> None:
    a = numbers(dtype, (*batch, side, side), 0) * scale / max(side, 1)
    near = {"atol": 1e-3, "rtol": 1e-3} if dtype in (torch.float32, torch.complex64) else {"atol": 1e-9}
    kit.check_op(aten.linalg_matrix_exp.default, a, opset=opset, **near)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("side", [1, 2, 7])
def test_exponentials_of_small_matrices_have_the_errors_of_eager(dtype: torch.dtype, side: int) -> None:
    a = numbers(dtype, (9, side, side), 0) * 6
    for dynamic in (False, True):
        kit.check_op(aten.linalg_matrix_exp.default, a, dynamic=dynamic and side > 1)


@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf, 1e30, -200.0])
@pytest.mark.parametrize("side", [1, 2, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exponentials_of_extremes(dtype: torch.dtype, side: int, number: float) -> None:
    a = torch.zeros(2, side, side, dtype=dtype)
    a[0, 0, 0] = number
    kit.check_op(aten.matrix_exp.default, a, dynamic=False)


def test_the_norm_of_an_empty_matrix_is_zero() -> None:
    kit.check_op(aten.linalg_norm.default, torch.empty(0, 5), 2, dynamic=False)
