"""Running graph passes. No pass lives here: they come from plugins."""

from __future__ import annotations

from atonnx.passes.runner import PassTiming, optimize, ordered, run_passes

__all__ = ["PassTiming", "optimize", "ordered", "run_passes"]
