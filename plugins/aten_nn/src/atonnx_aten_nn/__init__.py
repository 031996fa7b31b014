"""Translations of neural-network operators."""

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
    "activation",
    "adaptive_pool",
    "attention",
    "conv",
    "ctc",
    "dropout",
    "embedding",
    "embedding_bag",
    "flex_attention",
    "fold",
    "fractional_pool",
    "linear",
    "loss",
    "norm",
    "pad",
    "pixel",
    "pool",
    "resize",
    "rnn",
    "rnn_cells",
    "sampling",
    "softmax",
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
def atonnx_capture_patches() -> list[Any]:
    """Layers and losses stay whole or are captured in a form that has no sizes which depend on values."""
    from atonnx_aten_nn import capture_patches as patches

    return [
        patches.whole_recurrent_layers(),
        patches.whole_ctc_loss(),
        patches.packed_sequences(),
        patches.adaptive_softmax(),
        patches.cross_map_norms(),
        patches.dynamic_shape_rules(),
        patches.gaussian_loss(),
        patches.transformers_caches(),
    ]
