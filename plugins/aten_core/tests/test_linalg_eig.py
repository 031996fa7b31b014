"""Eigenvalues of matrices that are not symmetric."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import atonnx
from atonnx import testing as kit

aten = torch.ops.aten


class Eig(torch.nn.Module):
    """What eigenvalues in any order and eigenvectors of any phase have to keep."""

    def forward(self, a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, vectors = torch.linalg.eig(a)
        return torch.view_as_real(values), torch.view_as_real(vectors)


def check(a: torch.Tensor, dynamic: bool = False, opset: int = 20) -> None:
    axes = dict.fromkeys(range(a.ndim), torch.export.Dim.AUTO)
    made = atonnx.export(
        Eig().eval(), (a,), dynamic_shapes=(axes,) if dynamic else None, opset_version=opset, verbose=False
    )
    values, vectors = (torch.view_as_complex(torch.as_tensor(x).contiguous()) for x in made(a))
    near = 1e-4 if a.dtype == torch.float32 else 1e-11
    matrix = a.to(values.dtype)
    torch.testing.assert_close(matrix @ vectors, vectors * values.unsqueeze(-2), atol=near, rtol=near)
    norms = vectors.norm(dim=-2)
    torch.testing.assert_close(norms, torch.ones_like(norms), atol=near, rtol=near)
    torch.testing.assert_close(
        values.sum(-1), matrix.diagonal(dim1=-2, dim2=-1).sum(-1), atol=10 * near, rtol=10 * near
    )


@settings(max_examples=8)
@given(
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    side=st.integers(1, 5),
    seed=st.integers(0, 99),
    dynamic=st.booleans(),
)
def test_vectors_are_turned_into_multiples_of_themselves(
    opset: int, dtype: torch.dtype, side: int, seed: int, dynamic: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    check(torch.randn(2, side, side, dtype=dtype, generator=generator), dynamic, opset)


@pytest.mark.parametrize(
    "a",
    [
        torch.zeros(3, 3),
        torch.eye(4),
        torch.tensor([[0.0, 1.0], [-1.0, 0.0]]),
        torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),  # shifts of it cycle
        torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]),  # one vector only
        torch.diag(torch.tensor([3.0, 1.0, 2.0])),
    ],
)
def test_special_matrices(a: torch.Tensor) -> None:
    check(a)


def test_values_alone_are_those_that_come_with_vectors() -> None:
    a = torch.diag(torch.tensor([3.0, 1.0, 2.0]))
    kit.check_op(aten.linalg_eigvals.default, a)
    kit.check_op(aten.linalg_eig.default, torch.empty(2, 0, 0))
