"""Rows of operator translations, and the table that chooses among them.

Importing this package imports neither torch nor onnx.
"""

from __future__ import annotations

from atonnx.dispatch.opset_table import OpsetTable
from atonnx.dispatch.row import (
    DEFAULT_OPSET,
    MIN_OPSET,
    ComplexUse,
    NodeView,
    OpsetRow,
    Translation,
    target_name,
)
from atonnx.dispatch.select import Candidate, DispatchTable, merge
from atonnx.dispatch.signature import check_row, check_signature, python_name
from atonnx.dispatch.table import OpsetPack, Table

__all__ = [
    "DEFAULT_OPSET",
    "MIN_OPSET",
    "Candidate",
    "ComplexUse",
    "DispatchTable",
    "NodeView",
    "OpsetPack",
    "OpsetRow",
    "OpsetTable",
    "Table",
    "Translation",
    "check_row",
    "check_signature",
    "merge",
    "python_name",
    "target_name",
]
