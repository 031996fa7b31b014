"""Convolution, pooling and normalization of doubles."""

from __future__ import annotations

from atonnx_ort_target.rows import Rows

rows = Rows()
