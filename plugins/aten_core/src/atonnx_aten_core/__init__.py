"""Translations of tensor operators, prims, symbolic scalars and control flow."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from atonnx.plugins import hookimpl

if TYPE_CHECKING:
    from atonnx.dispatch import Table

ATONNX_API = (1, 0)

# The family modules of this package. Each may define `table` and `samples()`.
FAMILIES: tuple[str, ...] = (
    "assertions",
    "bessel",
    "binary",
    "bitwise",
    "cast",
    "compare",
    "complex_compare",
    "complex_index",
    "complex_layout",
    "complex_linear",
    "complex_math",
    "complex_reduce",
    "control_flow",
    "creation",
    "cumulative",
    "diagonal",
    "differences",
    "distances",
    "error_functions",
    "fft",
    "float_parts",
    "gamma",
    "histogram",
    "incomplete_gamma",
    "indexing",
    "integers",
    "linalg_eig",
    "linalg_functions",
    "linalg_ldl",
    "linalg_lu",
    "linalg_norms",
    "linalg_qr",
    "linalg_spectral",
    "linalg_tensors",
    "linalg_triangular",
    "matmul",
    "onnx_ops",
    "order",
    "pointwise",
    "polynomials",
    "prims",
    "random",
    "quantile",
    "reduce",
    "runs",
    "segments",
    "shape",
    "sizes",
    "slicing",
    "sorting",
    "strided",
    "spectral",
    "windows",
)


def _families() -> list[ModuleType]:
    """The family modules; they import torch, so this module must not import them at its top."""
    return [import_module(f"{__name__}.{name}") for name in FAMILIES]


@hookimpl
def atonnx_translations() -> list[Table]:
    """The tables of all families."""
    return [family.table for family in _families() if hasattr(family, "table")]


@hookimpl
def atonnx_op_samples() -> list[Any]:
    """The test inputs of all families' rows."""
    return [sample for family in _families() if hasattr(family, "samples") for sample in family.samples()]


@hookimpl
def atonnx_decompositions() -> Any:
    """torch's decompositions, for operators without a row."""
    return import_module(f"{__name__}.decompositions").decomposition
