"""The measured table: what ONNX Runtime's CPU provider has no kernel for."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir

from atonnx.build.spec import OpSpec, op_spec

__all__ = ["DATA", "NAMES", "Combination", "GapTable", "Gaps", "gap_table", "lacks"]

DATA = Path(__file__).parent / "kernel_gaps.json"

NAMES: Mapping[str, ir.DataType] = {
    "float": ir.DataType.FLOAT, "double": ir.DataType.DOUBLE, "float16": ir.DataType.FLOAT16,
    "bfloat16": ir.DataType.BFLOAT16, "bool": ir.DataType.BOOL,
    "int8": ir.DataType.INT8, "int16": ir.DataType.INT16, "int32": ir.DataType.INT32,
    "int64": ir.DataType.INT64, "uint8": ir.DataType.UINT8, "uint16": ir.DataType.UINT16,
    "uint32": ir.DataType.UINT32, "uint64": ir.DataType.UINT64,
    "float8e4m3fn": ir.DataType.FLOAT8E4M3FN, "float8e4m3fnuz": ir.DataType.FLOAT8E4M3FNUZ,
    "float8e5m2": ir.DataType.FLOAT8E5M2, "float8e5m2fnuz": ir.DataType.FLOAT8E5M2FNUZ,
}  # fmt: skip
"""The dtypes that are measured."""

Combination = tuple[tuple[str, str], ...]
"""(type variable, dtype) pairs, in the order of the variables' names."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """What is missing of one version of one operator.

    ``alone`` are dtypes of a type variable that never work, ``together`` further combinations of all
    ``variables``, ``dtypes`` all that occur in a gap.
    """

    spec: OpSpec
    alone: Mapping[str, frozenset[ir.DataType]]
    variables: tuple[str, ...]
    together: frozenset[tuple[ir.DataType, ...]]
    dtypes: frozenset[ir.DataType]

    def lacks(self, dtypes: Mapping[str, ir.DataType]) -> bool:
        """Whether there is no kernel. A variable of inputs that are left out counts as the first one."""
        if any(dtypes.get(key) in never for key, never in self.alone.items()):
            return True
        if not self.together or not dtypes:
            return False
        first = next(iter(dtypes.values()))
        return tuple(dtypes.get(key, first) for key in self.variables) in self.together

    def bound(self, node: ir.Node) -> dict[str, ir.DataType]:
        """The dtypes of the type variables at a node."""
        found: dict[str, ir.DataType] = {}
        for values, key_at in ((node.inputs, self.spec.input_key), (node.outputs, self.spec.output_key)):
            for index, value in enumerate(values):
                key = key_at(index)
                if isinstance(key, str) and value is not None and value.dtype is not None:
                    found.setdefault(key, value.dtype)
        return found


class GapTable:
    """The gaps by operator, for each opset.

    The data has an entry for a version, ``"18"``, and others for what an attribute makes of it,
    ``"18 reduction=add"``.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.version: str = data["onnxruntime"]
        self.data: Mapping[str, Mapping[str, Mapping[str, str]]] = data["gaps"]
        self._found: dict[tuple[str, int, str], Gaps | None] = {}

    def of(self, op_type: str, opset: int, attributes: Mapping[str, ir.Attr] | None = None) -> Gaps | None:
        """What is missing of an operator of ONNX's at an opset; None where nothing is."""
        versions = self.data.get(op_type)
        if versions is None:
            return None
        setting = self._setting(versions, attributes) if attributes else ""
        key = (op_type, opset, setting)
        if key not in self._found:
            spec = op_spec("", op_type, opset)
            entry = versions.get(f"{spec.since} {setting}".strip()) if spec is not None else None
            self._found[key] = _gaps(spec, entry) if spec is not None and entry else None
        return self._found[key]

    def _setting(self, versions: Mapping[str, Any], attributes: Mapping[str, ir.Attr]) -> str:
        known = {key.partition(" ")[2] for key in versions}
        return next((s for n, a in attributes.items() if (s := f"{n}={a.value}") in known), "")


def _gaps(spec: OpSpec, entry: Mapping[str, str]) -> Gaps:
    alone: dict[str, frozenset[ir.DataType]] = {}
    variables: tuple[str, ...] = ()
    together: frozenset[tuple[ir.DataType, ...]] = frozenset()
    for key, text in entry.items():
        if ";" in text or " " in key:
            variables = tuple(key.split())
            together = frozenset(tuple(NAMES[n] for n in each.split()) for each in text.split(";"))
        else:
            alone[key] = frozenset(NAMES[name] for name in text.split())
    dtypes = frozenset().union(*alone.values(), *together)
    return Gaps(spec, alone, variables, together, dtypes)


@functools.cache
def gap_table() -> GapTable:
    """The table of this package's data."""
    return GapTable(json.loads(DATA.read_text()))


def lacks(op_type: str, opset: int, dtypes: Mapping[str, str]) -> bool:
    """Whether ONNX Runtime's CPU provider has no kernel: ``lacks("Erf", 20, {"T": "double"})``.

    Attributes are those that an operator has by default.
    """
    gaps = gap_table().of(op_type, opset)
    return gaps is not None and gaps.lacks(
        {key: NAMES[name] for key, name in dtypes.items() if name in NAMES}
    )
