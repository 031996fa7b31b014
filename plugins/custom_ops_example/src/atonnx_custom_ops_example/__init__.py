"""Example of a third party's plugin with operators of its own."""

from __future__ import annotations

ATONNX_API = (1, 0)
