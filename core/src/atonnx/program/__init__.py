"""The result of an export: calling it, saving it, verifying it."""

from __future__ import annotations

from atonnx.program.program import ONNXProgram
from atonnx.program.verification import OutputCheck, Verification, verify_program

__all__ = ["ONNXProgram", "OutputCheck", "Verification", "verify_program"]
