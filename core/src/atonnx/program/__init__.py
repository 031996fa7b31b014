"""The result of an export: calling it, saving it, verifying it."""

from __future__ import annotations

from atonnx.program.program import ONNXProgram
from atonnx.program.verification import OutputCheck, Run, Verification

__all__ = ["ONNXProgram", "OutputCheck", "Run", "Verification"]
