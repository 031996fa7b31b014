"""The command ``atonnx``. Neither it nor ``atonnx plugins`` imports torch or onnx before a model needs it."""

from __future__ import annotations

from atonnx.cli.app import main

__all__ = ["main"]
