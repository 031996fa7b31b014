"""From a module or a program to the ExportedProgram that is translated."""

from __future__ import annotations

from atonnx.capture.flags import exporting, is_in_onnx_export
from atonnx.capture.functional import functional_form
from atonnx.capture.strategies import Axes, Captured, capture

__all__ = ["Axes", "Captured", "capture", "exporting", "functional_form", "is_in_onnx_export"]
