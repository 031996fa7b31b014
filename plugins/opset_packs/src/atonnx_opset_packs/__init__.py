"""ONNX operators at opsets older and newer than the one that a translation was written for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from atonnx.plugins import hookimpl

if TYPE_CHECKING:
    from atonnx.dispatch import OpsetPack

ATONNX_API = (1, 0)

# The family modules of this package. Each defines `pack`.
FAMILIES: tuple[str, ...] = (
    "activation",
    "attention",
    "cast",
    "control",
    "elementwise",
    "linear",
    "loss",
    "nn",
    "normalization",
    "quantize",
    "random",
    "recurrent",
    "reduce",
    "resize",
    "sampling",
    "scatter",
    "shape",
    "signal",
)


@hookimpl
def atonnx_opset_packs() -> list[OpsetPack]:
    """The packs of all families, imported only when asked for."""
    return [import_module(f"{__name__}.{name}").pack for name in FAMILIES]
