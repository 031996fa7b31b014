"""Building ONNX: ``Builder`` and ``Value`` are what rows are written with."""

from __future__ import annotations

from atonnx.build.builder import Body, Builder
from atonnx.build.sizes import SymSize
from atonnx.build.value import Value

__all__ = ["Body", "Builder", "SymSize", "Value"]
