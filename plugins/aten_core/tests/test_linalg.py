"""Decompositions of matrices, and what is computed with them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import atonnx
from atonnx import testing as kit
from atonnx.errors import UnsupportedOpError

aten = torch.ops.aten
SEEDS = st.integers(0, 99)
BATCHES = st.sampled_from([(), (1,), (3,), (2, 2), (0,)])
# Around the number of steps up to which they are written out.
SIDES = st.sampled_from([0, 1, 2, 3, 4, 5, 7])
DTYPES = st.sampled_from([torch.float32, torch.float64, torch.complex64, torch.complex128])
EXACT: dict[torch.dtype, dict[str, Any]] = {
    torch.float32: {"atol": 1e-4, "rtol": 1e-4},
    torch.complex64: {"atol": 1e-4, "rtol": 1e-4},
    torch.float64: {"atol": 1e-11, "rtol": 1e-11},
    torch.complex128: {"atol": 1e-11, "rtol": 1e-11},
}


def numbers(dtype: torch.dtype, shape: Any, seed: int) -> torch.Tensor:
    made: torch.Tensor = torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    return made


def regular(dtype: torch.dtype, batch: tuple[int, ...], side: int, seed: int) -> torch.Tensor:
    """Matrices far from singular whose rows have to be swapped."""
    made = numbers(dtype, (*batch, side, side), seed) * 0.3 + 2 * torch.eye(side, dtype=dtype)
    return made.flip(-1)


def positive(dtype: torch.dtype, batch: tuple[int, ...], side: int, seed: int) -> torch.Tensor:
    root = numbers(dtype, (*batch, side, side), seed)
    return root @ root.mH + torch.eye(side, dtype=dtype)


# ------------------------------------------------------------------ elimination


@given(opset=kit.opsets(), dtype=DTYPES, batch=BATCHES, side=SIDES, seed=SEEDS, dynamic=st.booleans())
def test_determinants(
    opset: int, dtype: torch.dtype, batch: tuple[int, ...], side: int, seed: int, dynamic: bool
) -> None:
    a, same = regular(dtype, batch, side, seed), {"opset": opset, "dynamic": dynamic, **EXACT[dtype]}
    kit.check_op(aten.linalg_det.default, a, expect="Det:1!" if dtype == torch.float32 else None, **same)
    kit.check_op(aten.linalg_slogdet.default, a, **same)


@given(opset=kit.opsets(), dtype=DTYPES, batch=BATCHES, side=SIDES, seed=SEEDS, dynamic=st.booleans())
def test_inverses(
    opset: int, dtype: torch.dtype, batch: tuple[int, ...], side: int, seed: int, dynamic: bool
) -> None:
    a = regular(dtype, batch, side, seed)
    kit.check_op(aten.linalg_inv_ex.default, a, opset=opset, dynamic=dynamic, **EXACT[dtype])


@pytest.mark.parametrize("dynamic", [False, True])
def test_pivots_of_zero_are_swapped_away(dynamic: bool) -> None:
    turned = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    kit.check_op(aten.linalg_inv.default, turned, dynamic=dynamic)
    kit.check_op(aten.linalg_slogdet.default, turned, dynamic=dynamic)
    kit.check_op(aten.linalg_lu.default, turned, dynamic=dynamic)


@pytest.mark.parametrize("dynamic", [False, True])
def test_singular_matrices_have_a_determinant_of_zero_and_tell_the_step_that_fails(dynamic: bool) -> None:
    a = torch.zeros(2, 3, 3)
    a[0] = torch.diag(torch.tensor([1.0, 0.0, 2.0]))
    kit.check_op(aten.linalg_slogdet.default, a, dynamic=dynamic)
    kit.check_op(aten.logdet.default, a, dynamic=dynamic)
    kit.check_op(aten.linalg_lu_factor_ex.default, a, dynamic=dynamic)
    kit.check_op(aten.linalg_inv_ex.default, a, dynamic=dynamic, outputs=[1])


def test_the_logarithm_of_a_negative_determinant_is_nan() -> None:
    kit.check_op(aten.logdet.default, torch.tensor([[0.0, 1.0], [1.0, 0.0]]))


@given(
    opset=kit.opsets(),
    dtype=DTYPES,
    batches=kit.broadcastable(2, max_rank=2),
    side=SIDES,
    columns=st.integers(0, 3),
    left=st.booleans(),
    seed=SEEDS,
)
def test_systems(
    opset: int, dtype: torch.dtype, batches: Any, side: int, columns: int, left: bool, seed: int
) -> None:
    a = regular(dtype, batches[0], side, seed)
    shape = (side, columns) if left else (columns, side)
    b = numbers(dtype, (*batches[1], *shape), seed + 1)
    if a.shape[:-1] == b.shape:  # then b is a batch of vectors
        b = b.unsqueeze(0)
    kit.check_op(aten.linalg_solve_ex.default, a, b, left=left, opset=opset, **EXACT[dtype])


@given(batch=BATCHES, side=SIDES, seed=SEEDS, dynamic=st.booleans())
def test_systems_with_a_vector(batch: tuple[int, ...], side: int, seed: int, dynamic: bool) -> None:
    a, b = regular(torch.float32, batch, side, seed), numbers(torch.float32, (*batch, side), seed)
    kit.check_op(aten.linalg_solve.default, a, b, dynamic=dynamic, **EXACT[torch.float32])


@given(
    opset=kit.opsets(),
    dtype=DTYPES,
    batch=BATCHES,
    rows=st.integers(1, 6),
    columns=st.integers(1, 6),
    seed=SEEDS,
    dynamic=st.booleans(),
)
def test_lu(
    opset: int,
    dtype: torch.dtype,
    batch: tuple[int, ...],
    rows: int,
    columns: int,
    seed: int,
    dynamic: bool,
) -> None:
    a = numbers(dtype, (*batch, rows, columns), seed)
    same = {"opset": opset, "dynamic": dynamic, **EXACT[dtype]}
    kit.check_op(aten.linalg_lu_factor_ex.default, a, **same)
    kit.check_op(aten.linalg_lu.default, a, **same)
    kit.check_op(aten.lu_unpack.default, *torch.linalg.lu_factor(a), **same)


@given(opset=kit.opsets(), dtype=DTYPES, side=SIDES, left=st.booleans(), adjoint=st.booleans(), seed=SEEDS)
def test_systems_with_factors(
    opset: int, dtype: torch.dtype, side: int, left: bool, adjoint: bool, seed: int
) -> None:
    lu, pivots = torch.linalg.lu_factor(regular(dtype, (2,), side, seed))
    b = numbers(dtype, (2, side, 3) if left else (2, 3, side), seed)
    kit.check_op(
        aten.linalg_lu_solve.default,
        lu,
        pivots,
        b,
        left=left,
        adjoint=adjoint,
        opset=opset,
        **EXACT[dtype],
    )


def test_factors_for_the_gradient_are_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="gradient"):
        kit.check_op(aten._linalg_det.default, torch.eye(3))


# ------------------------------------------------------------------- triangular


@given(
    opset=kit.opsets(),
    dtype=DTYPES,
    side=SIDES,
    upper=st.booleans(),
    left=st.booleans(),
    unit=st.booleans(),
    seed=SEEDS,
    dynamic=st.booleans(),
)
def test_triangular_systems(
    opset: int,
    dtype: torch.dtype,
    side: int,
    upper: bool,
    left: bool,
    unit: bool,
    seed: int,
    dynamic: bool,
) -> None:
    a = numbers(dtype, (2, side, side), seed) * 0.3 + 2 * torch.eye(side, dtype=dtype)
    a = a.triu() if upper else a.tril()
    if unit:
        a = a - 1 * torch.eye(side, dtype=dtype)
    b = numbers(dtype, (side, 2) if left else (2, side), seed)
    kit.check_op(
        aten.linalg_solve_triangular.default,
        a,
        b,
        upper=upper,
        left=left,
        unitriangular=unit,
        opset=opset,
        dynamic=dynamic,
        **EXACT[dtype],
    )


@given(upper=st.booleans(), transpose=st.booleans(), unit=st.booleans(), side=SIDES)
def test_triangular_solve(upper: bool, transpose: bool, unit: bool, side: int) -> None:
    a = (torch.randn(side, side) * 0.3 + 2 * torch.eye(side))[None]
    kit.check_op(
        aten.triangular_solve.default,
        torch.randn(3, side, 2),
        a.triu() if upper else a.tril(),
        upper,
        transpose,
        unit,
        **EXACT[torch.float32],
    )


@given(
    opset=kit.opsets(),
    dtype=DTYPES,
    batch=BATCHES,
    side=SIDES,
    upper=st.booleans(),
    seed=SEEDS,
    dynamic=st.booleans(),
)
def test_cholesky(
    opset: int,
    dtype: torch.dtype,
    batch: tuple[int, ...],
    side: int,
    upper: bool,
    seed: int,
    dynamic: bool,
) -> None:
    a = positive(dtype, batch, side, seed)
    same = {"opset": opset, "dynamic": dynamic, **EXACT[dtype]}
    kit.check_op(aten.linalg_cholesky_ex.default, a, upper=upper, **same)
    factor = torch.linalg.cholesky(a, upper=upper)
    kit.check_op(aten.cholesky_inverse.default, factor, upper, **same)
    kit.check_op(aten.cholesky_solve.default, numbers(dtype, (*batch, side, 2), seed), factor, upper, **same)


def test_cholesky_tells_the_part_that_is_not_positive() -> None:
    a = torch.stack([torch.eye(3), torch.diag(torch.tensor([1.0, -1.0, 1.0])), -torch.eye(3)])
    kit.check_op(aten.linalg_cholesky_ex.default, a, outputs=[1])


# ------------------------------------------------------------------ reflections


@given(
    opset=kit.opsets(),
    dtype=DTYPES,
    batch=BATCHES,
    rows=st.integers(1, 6),
    columns=st.integers(1, 6),
    mode=st.sampled_from(["reduced", "complete", "r"]),
    seed=SEEDS,
    dynamic=st.booleans(),
)
@example(20, torch.float32, (), 3, 3, "reduced", -1, False)
def test_qr(
    opset: int,
    dtype: torch.dtype,
    batch: tuple[int, ...],
    rows: int,
    columns: int,
    mode: str,
    seed: int,
    dynamic: bool,
) -> None:
    a = torch.eye(rows) if seed < 0 else numbers(dtype, (*batch, rows, columns), seed)
    same = {"opset": opset, "dynamic": dynamic, **EXACT[dtype]}
    kit.check_op(aten.linalg_qr.default, a, mode, **same)
    kit.check_op(aten.geqrf.default, a, **same)


@given(opset=kit.opsets(), dtype=DTYPES, left=st.booleans(), transpose=st.booleans(), seed=SEEDS)
def test_products_with_reflections(
    opset: int, dtype: torch.dtype, left: bool, transpose: bool, seed: int
) -> None:
    packed, tau = torch.geqrf(numbers(dtype, (2, 5, 3), seed))
    other = numbers(dtype, (2, 5, 2) if left else (2, 2, 5), seed + 1)
    kit.check_op(aten.ormqr.default, packed, tau, other, left, transpose, opset=opset, **EXACT[dtype])
    kit.check_op(aten.linalg_householder_product.default, packed, tau, opset=opset, **EXACT[dtype])


# --------------------------------------------------------------------- spectrum


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


@given(
    opset=kit.opsets(), dtype=REAL, side=st.sampled_from([1, 2, 3, 4, 5, 8]), kind=KINDS, seed=SEEDS,
    dynamic=st.booleans(),
)  # fmt: skip
def test_eigenvectors_compose_the_matrix(
    opset: int, dtype: torch.dtype, side: int, kind: str, seed: int, dynamic: bool
) -> None:
    a = spread_out(dtype, (2, side, side), seed, "plain" if kind == "scaled" else kind)
    check_module(Eigh(), a + a.mT, dynamic, opset)


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


@given(dtype=DTYPES, rows=st.integers(1, 5), columns=st.integers(1, 5), seed=SEEDS)
def test_pseudoinverses(dtype: torch.dtype, rows: int, columns: int, seed: int) -> None:
    a = numbers(dtype, (2, rows, columns), seed)
    a[0, 0] = 0
    near = {"atol": 1e-2, "rtol": 1e-2} if dtype in (torch.float32, torch.complex64) else {"atol": 1e-9}
    kit.check_op(aten.linalg_pinv.atol_rtol_tensor, a, **near)
    kit.check_op(aten.linalg_pinv.atol_rtol_tensor, positive(dtype, (2,), rows, seed), hermitian=True, **near)


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
