"""Decompositions of matrices, and what is computed with them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from matrices import BATCHES, DTYPES, EXACT, SEEDS, SIDES, numbers, positive, regular

from atonnx import testing as kit
from atonnx.errors import UnsupportedOpError

aten = torch.ops.aten


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


@given(opset=kit.opsets(), dtype=st.sampled_from([torch.float32, torch.int64]), flipped=st.booleans())
def test_tensors_are_multiplied_along_several_axes(opset: int, dtype: torch.dtype, flipped: bool) -> None:
    a, b = kit.make_tensor(dtype, (2, 3, 4)), kit.make_tensor(dtype, (4, 5, 3), 1)
    mine, other = ([2, 1], [0, 2]) if flipped else ([1, 2], [2, 0])
    kit.check_op(aten.tensordot.default, a, b, mine, other, opset=opset)
    kit.check_op(aten.tensordot.default, a[:, :1], b, mine, other, opset=opset, dynamic=False)
    narrow = (a * 4).int(), (b * 4).int()
    kit.check_op(aten.tensordot.default, narrow[0][:, :1], narrow[1], mine, other, opset=opset, dynamic=False)
    kit.check_op(aten.tensordot.default, a, b, [], [], opset=opset)


@given(
    opset=kit.opsets(),
    dtype=kit.dtypes("float", "int"),
    shapes=st.sampled_from([((2, 3), (2, 3)), ((3, 2, 3), (3, 1, 3)), ((1, 3), (4, 3)), ((3, 4), (3, 4))]),
    dynamic=st.booleans(),
)
def test_cross_products(opset: int, dtype: torch.dtype, shapes: Any, dynamic: bool) -> None:
    opset = max(opset, 14)
    a, b = (kit.make_tensor(dtype, shape, seed) for seed, shape in enumerate(shapes))
    kit.check_op(aten.cross.default, a, b, opset=opset, dynamic=dynamic)
    dim = 0 if shapes[0][0] == 3 else -1
    kit.check_op(aten.cross.default, a, b, dim, opset=opset, dynamic=dynamic)
    kit.check_op(aten.linalg_cross.default, a, b, dim=dim, opset=opset, dynamic=dynamic)


def test_cross_products_without_a_dim_find_it_in_the_sizes_of_each_call() -> None:
    a, b = torch.randn(3, 3, 2), torch.randn(2, 3, 3)
    also = [(x, x.flip(0)) for x in (b, torch.randn(4, 2, 3))]
    kit.check_op(aten.cross.default, a, a + 1, also=also)


def test_chains_of_products_begin_at_the_vector() -> None:
    a, b, c = torch.randn(3, 4), torch.randn(4, 5), torch.randn(5)
    kit.check_op(aten.linalg_multi_dot.default, [a, b, c])
    kit.check_op(aten.linalg_multi_dot.default, [a[0], b, torch.randn(5, 2)])


@given(dtype=DTYPES, seed=SEEDS)
def test_tensors_as_systems(dtype: torch.dtype, seed: int) -> None:
    a = regular(dtype, (), 6, seed)
    kit.check_op(aten.linalg_tensorinv.default, a.reshape(6, 2, 3), 1, **EXACT[dtype])
    b = numbers(dtype, (2, 3), seed)
    kit.check_op(aten.linalg_tensorsolve.default, a.reshape(2, 3, 6), b, **EXACT[dtype])
    kit.check_op(aten.linalg_tensorsolve.default, a.reshape(2, 3, 6).movedim(2, 0), b, [0], **EXACT[dtype])


@pytest.mark.parametrize("unpacked", [(True, True), (True, False), (False, True)])
def test_truth_values_are_unpacked(unpacked: tuple[bool, bool]) -> None:
    lu, pivots = torch.tensor([[True, False], [True, True]]), torch.tensor([2, 2], dtype=torch.int32)
    kit.check_op(aten.lu_unpack.default, lu, pivots, *unpacked)
