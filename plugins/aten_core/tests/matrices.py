"""Matrices, and what the tests of linear algebra draw."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st

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
