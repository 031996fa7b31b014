"""PyTorch models to ONNX; every operator translation comes from a plugin.

Importing this package is cheap: torch and onnx are imported when a name that needs them is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from atonnx import errors
from atonnx.errors import OnnxExporterError

if TYPE_CHECKING:
    from atonnx.capture import is_in_onnx_export
    from atonnx.exportable import ExportableModule
    from atonnx.observer import InputObserver
    from atonnx.pipeline import export
    from atonnx.program import ONNXProgram

    __version__: str

__all__ = [
    "ExportableModule",
    "InputObserver",
    "ONNXProgram",
    "OnnxExporterError",
    "__version__",
    "errors",
    "export",
    "is_in_onnx_export",
]

_LAZY = {
    "ExportableModule": "atonnx.exportable",
    "InputObserver": "atonnx.observer",
    "ONNXProgram": "atonnx.program",
    "export": "atonnx.pipeline",
    "is_in_onnx_export": "atonnx.capture",
}


def __getattr__(name: str) -> Any:
    """Import the module that has a public name at the name's first use."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("atonnx-core")
    elif name in _LAZY:
        value = getattr(import_module(_LAZY[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names too, before their first use."""
    return sorted({*globals(), *__all__})
