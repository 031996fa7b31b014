"""Translations of quantized models."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from atonnx.plugins import hookimpl

if TYPE_CHECKING:
    from atonnx.dispatch import Table

ATONNX_API = (1, 0)

# The family modules of this package. Each defines `table` and `samples()`.
FAMILIES: tuple[str, ...] = ("choose", "decomposed", "fake_quantize")


def _families() -> list[ModuleType]:
    """The family modules; they import torch, so this module must not import them at its top."""
    return [import_module(f"{__name__}.{name}") for name in FAMILIES]


@hookimpl
def atonnx_translations() -> list[Table]:
    """The tables of all families."""
    return [family.table for family in _families()]


@hookimpl
def atonnx_op_samples() -> list[Any]:
    """The test inputs of all families' rows."""
    return [sample for family in _families() for sample in family.samples()]
