"""The public kit for testing operator packs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atonnx.testing.arguments import Size, Weight
    from atonnx.testing.check import Checked, check_op
    from atonnx.testing.compare import Ulps, ulps
    from atonnx.testing.conformance import check_plugin
    from atonnx.testing.runtimes import Gap, gaps
    from atonnx.testing.samples import OpSample, samples
    from atonnx.testing.strategies import (
        broadcastable,
        dim_lists,
        dims,
        dtypes,
        make_tensor,
        opsets,
        shapes,
        tensor,
        tensors,
    )
    from atonnx.testing.translate import translate_op

__all__ = [
    "Checked",
    "Gap",
    "OpSample",
    "Size",
    "Ulps",
    "Weight",
    "broadcastable",
    "check_op",
    "check_plugin",
    "dim_lists",
    "dims",
    "dtypes",
    "gaps",
    "make_tensor",
    "opsets",
    "samples",
    "shapes",
    "tensor",
    "tensors",
    "translate_op",
    "ulps",
]

# pytest imports this package in every run, with the pytest plugin, so its parts come when asked for.
_MODULES = {
    "arguments": ("Size", "Weight"),
    "check": ("Checked", "check_op"),
    "compare": ("Ulps", "ulps"),
    "conformance": ("check_plugin",),
    "runtimes": ("Gap", "gaps"),
    "samples": ("OpSample", "samples"),
    "strategies": (
        "broadcastable",
        "dim_lists",
        "dims",
        "dtypes",
        "make_tensor",
        "opsets",
        "shapes",
        "tensor",
        "tensors",
    ),
    "translate": ("translate_op",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
