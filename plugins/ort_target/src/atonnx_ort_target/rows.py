"""Rows for operators that ONNX Runtime has no kernel for, written with those that it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir

__all__ = ["Rows", "find"]

Row = Callable[..., Any]


class Rows:
    """Rows by operator, for some dtypes of its first type variable.

    A row is called as one of an opset pack: inputs, then the node's attributes by name. It returns
    NotImplemented where it has no answer.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[str, ir.DataType], Row] = {}

    def on(self, op_type: str, *dtypes: ir.DataType) -> Callable[[Row], Row]:
        """A row for an operator of these dtypes."""

        def add(row: Row) -> Row:
            for dtype in dtypes:
                self._rows[op_type, dtype] = row
            return row

        return add

    def get(self, op_type: str, dtype: ir.DataType) -> Row | None:
        """The row for an operator of a dtype."""
        return self._rows.get((op_type, dtype))


def find(op_type: str, dtypes: Mapping[str, ir.DataType]) -> Row | None:
    """The row for a node whose type variables have these dtypes."""
    from atonnx_ort_target import doubles, draws, integers, recurrent, windows

    first = next(iter(dtypes.values()), None)
    if first is None:
        return None
    for rows in (doubles.rows, windows.rows, recurrent.rows, integers.rows, draws.rows):
        row = rows.get(op_type, first)
        if row is not None:
            return row
    return None
