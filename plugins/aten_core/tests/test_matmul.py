"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit
from atonnx.errors import UnsupportedOpError

aten = torch.ops.aten
SIDE = st.integers(0, 4)
NUMBERS = kit.dtypes("float", "int")


def fit(opset: int, *dtypes: torch.dtype) -> int:
    """The opset, or 13, the first at which most operators take bfloat16."""
    return max(opset, 13) if torch.bfloat16 in dtypes else opset


@given(
    opset=kit.opsets(),
    dtype=NUMBERS,
    batches=kit.broadcastable(2, max_rank=2),
    n=SIDE,
    k=SIDE,
    m=SIDE,
    form=st.sampled_from("mm mv vm vv".split()),
)
def test_matmul_of_all_ranks(
    opset: int, dtype: torch.dtype, batches: Any, n: int, k: int, m: int, form: str
) -> None:
    opset = fit(opset, dtype)
    a = kit.make_tensor(dtype, (*batches[0], n, k) if form[0] == "m" else (k,))
    b = kit.make_tensor(dtype, (*batches[1], k, m) if form[1] == "m" else (k,), 1)
    kit.check_op(aten.matmul.default, a, b, opset=opset)


@given(
    opset=kit.opsets(),
    dtype=NUMBERS,
    n=SIDE,
    k=SIDE,
    m=SIDE,
    alpha=st.sampled_from([1, 2, -3]),
    beta=st.sampled_from([1, 0, 2]),
    added=st.sampled_from(["nm", "m", "n1", "1m", "1"]),
)
def test_addmm(
    opset: int, dtype: torch.dtype, n: int, k: int, m: int, alpha: int, beta: int, added: str
) -> None:
    opset = fit(opset, dtype)
    a, b = kit.make_tensor(dtype, (n, k)), kit.make_tensor(dtype, (k, m), 1)
    shape = [{"n": n, "m": m, "1": 1}[side] for side in added]
    c = kit.make_tensor(dtype, shape, 2)
    kit.check_op(aten.addmm.default, c, a, b, opset=opset, alpha=alpha, beta=beta)


def test_addmm_with_beta_zero_does_not_read_what_is_added() -> None:
    nan = torch.full((2,), float("nan"))
    kit.check_op(aten.addmm.default, nan, torch.randn(3, 4), torch.randn(4, 2), beta=0)
    kit.check_op(aten.baddbmm.default, nan, torch.randn(1, 3, 4), torch.randn(1, 4, 2), beta=0)


def test_factors_that_float32_does_not_hold_stay_exact_in_float64() -> None:
    a, b, c = (torch.randn(2, 2, dtype=torch.float64) for _ in range(3))
    kit.check_op(aten.addmm.default, c, a, b, alpha=0.1, beta=0.7, expect="Gemm:0", rtol=1e-14, atol=1e-14)


def test_a_linear_layer_by_addmm_is_one_gemm() -> None:
    kit.check_op(aten.addmm.default, torch.randn(5), torch.randn(3, 4), torch.randn(4, 5), expect="Gemm:1!")


@given(
    opset=kit.opsets(),
    dtype=NUMBERS,
    n=SIDE,
    k=SIDE,
    m=SIDE,
    batch=SIDE,
    factors=st.sampled_from([(1, 1), (2, 3), (0, 1)]),
)
def test_sums_of_batched_products(
    opset: int, dtype: torch.dtype, n: int, k: int, m: int, batch: int, factors: tuple[int, int]
) -> None:
    opset = fit(opset, dtype)
    a, b = kit.make_tensor(dtype, (batch, n, k)), kit.make_tensor(dtype, (batch, k, m), 1)
    c = kit.make_tensor(dtype, (n, m), 2)
    beta, alpha = factors
    kit.check_op(aten.baddbmm.default, c, a, b, opset=opset, beta=beta, alpha=alpha)
    kit.check_op(aten.addbmm.default, c, a, b, opset=opset, beta=beta, alpha=alpha)
    kit.check_op(aten.bmm.default, a, b, opset=opset, expect="MatMul:1")


@given(opset=kit.opsets(), dtype=NUMBERS, n=SIDE, k=SIDE)
def test_vectors(opset: int, dtype: torch.dtype, n: int, k: int) -> None:
    opset = fit(opset, dtype)
    a, v, w = (kit.make_tensor(dtype, shape, i) for i, shape in enumerate([(n, k), (k,), (n,)]))
    kit.check_op(aten.mv.default, a, v, opset=opset)
    kit.check_op(aten.dot.default, v, v * 2, opset=opset)
    kit.check_op(aten.outer.default, v, w, opset=opset)
    kit.check_op(aten.addmv.default, w, a, v, opset=opset, alpha=2)
    kit.check_op(aten.inner.default, a, a + 1, opset=opset)


@pytest.mark.parametrize("factors", [{"alpha": 0.5}, {"beta": -1.7}, {"alpha": 2.9, "beta": 0.6}], ids=str)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8], ids=str)
def test_a_fraction_beside_integers_is_cut_to_an_integer(dtype: torch.dtype, factors: Any) -> None:
    a, b = kit.make_tensor(dtype, (2, 3, 4)), kit.make_tensor(dtype, (2, 4, 5), 1)
    kit.check_op(aten.addmm.default, a[0, :, :1], a[0], b[0], **factors)
    kit.check_op(aten.addmv.default, a[0, :, 0], a[0], b[0, :, 0], **factors)
    kit.check_op(aten.baddbmm.default, a[:, :, :1], a, b, **factors)
    kit.check_op(aten.addbmm.default, a[0, :, :1], a, b, **factors)


@pytest.mark.parametrize("opset", [11, 12, 20])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bij, bjk -> bki", [(2, 3, 4), (2, 4, 5)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
        ("i,j->ij", [(2,), (3,)]),
        ("ij->", [(2, 3)]),
        ("bn,anm,bm->ba", [(2, 3), (4, 3, 5), (2, 5)]),
        ("Ab,bC->AC", [(2, 3), (3, 4)]),
        ("b...->...b", [(2, 3, 4)]),
        ("...a,...a", [(3, 4), (2, 3, 4)]),
        ("ij,ij->i", [(2, 3), (1, 3)]),
    ],
)
def test_einsum(opset: int, equation: str, shapes: list[tuple[int, ...]]) -> None:
    tensors = [torch.randn(s) for s in shapes]
    kit.check_op(aten.einsum.default, equation, tensors, opset=opset, dynamic=opset > 11)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
@pytest.mark.parametrize("equation", ["ij->", "ij->i", "ij,jk"])
def test_einsum_of_integers_has_the_dtype_of_torchs_sums(dtype: torch.dtype, equation: str) -> None:
    a, b = kit.make_tensor(dtype, (2, 3)), kit.make_tensor(dtype, (3, 4), 1)
    tensors = [a, b] if "," in equation else [a]
    kit.check_op(aten.einsum.default, equation, tensors, dynamic=False)


@given(opset=kit.opsets(), n=st.integers(17, 20), k=st.sampled_from([8, 16]))
def test_products_of_eight_bits(opset: int, n: int, k: int) -> None:
    a, b = kit.make_tensor(torch.int8, (n, k)), kit.make_tensor(torch.int8, (k, 8), 1)
    kit.check_op(aten._int_mm.default, a, b, opset=opset, expect="MatMulInteger:1!")


@given(opset=kit.opsets(), dtype=st.sampled_from([torch.float32, torch.bfloat16]), n=st.integers(1, 4))
def test_weights_of_eight_bits_are_scaled_by_columns(opset: int, dtype: torch.dtype, n: int) -> None:
    x, scales = kit.make_tensor(dtype, (n, 32)), kit.make_tensor(dtype, (16,), 2)
    weight = kit.make_tensor(torch.int8, (16, 32), 1)
    kit.check_op(aten._weight_int8pack_mm.default, x, weight, scales, opset=fit(opset, dtype))


@given(
    opset=kit.opsets(13),
    sizes=st.lists(st.integers(0, 3), min_size=1, max_size=3),
    form=st.sampled_from([(2, 3), (3, 2), (2, 2), (3, 3)]),
)
def test_groups_of_rows_columns_or_depths(opset: int, sizes: list[int], form: tuple[int, int]) -> None:
    ends = torch.tensor(sizes).cumsum(0).int() * 8
    total, groups = int(ends[-1]) + (8 if form == (2, 2) else 0), len(sizes)
    if total == 0:
        return
    left = {(2, 3): (total, 8), (3, 2): (groups, 4, 8), (2, 2): (8, total), (3, 3): (groups, 4, 8)}[form]
    right = {(2, 3): (groups, 8, 16), (3, 2): (8, total), (2, 2): (total, 16), (3, 3): (groups, 8, 16)}[form]
    a, b = kit.make_tensor(torch.bfloat16, left), kit.make_tensor(torch.bfloat16, right, 1)
    offs = None if form == (3, 3) else ends
    if b.dim() == 3 and offs is not None:
        kit.check_op(aten._grouped_mm.default, a, kit.Weight(b), offs, opset=opset)
    kit.check_op(aten._grouped_mm.default, a, b, offs, opset=opset, dynamic=offs is None)


@given(
    opset=kit.opsets(19),
    out=st.sampled_from([torch.float32, torch.bfloat16]),
    rows=st.booleans(),
    biased=st.booleans(),
)
def test_products_of_float8_are_scaled(opset: int, out: torch.dtype, rows: bool, biased: bool) -> None:
    a = kit.make_tensor(torch.float32, (16, 32)).to(torch.float8_e4m3fn)
    b = kit.make_tensor(torch.float32, (16, 32), 1).to(torch.float8_e4m3fn).t()
    scales = (torch.rand(16, 1), torch.rand(1, 16)) if rows else (torch.tensor(0.3), torch.tensor(1.7))
    bias = torch.randn(16) if biased else None
    kit.check_op(aten._scaled_mm.default, a, b, *scales, bias, out_dtype=out, opset=opset, dynamic=not rows)


def test_a_scaled_float8_result_is_refused() -> None:
    a = torch.ones(16, 32).to(torch.float8_e4m3fn)
    with pytest.raises(UnsupportedOpError, match="float8 result"):
        kit.check_op(aten._scaled_mm.default, a, a.t(), torch.tensor(1.0), torch.tensor(1.0), opset=20)
