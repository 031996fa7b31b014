"""What runs the models of tests: ONNX Runtime, and onnx's reference evaluator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnxruntime as ort
import torch
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, RuntimeException
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as OrtNotImplemented

from atonnx.program.sessions import from_numpy, from_ort, to_numpy, to_ort

__all__ = ["Gap", "Missing", "Session", "gaps", "run_reference"]

_SILENT = 4
_NO_KERNEL = re.compile(
    r"implementation for (?P<op>[\w.:]+)\((?P<version>\d+)\) node with name '(?P<name>[^']*)'"
)
# An operator of a domain of its own that came without a library for ONNX Runtime.
_NO_OPERATOR = re.compile(r"(?P<domain>[\w.]+):(?P<op>\w+)\(-?\d+\) is not a registered function/op")
# A kernel that finds out for itself which dtypes it is not for.
_NO_DTYPE = re.compile(
    r"while running (?P<op>\w+) node\. Name:'(?P<name>[^']*)'.*data type is not supported", re.DOTALL
)


@dataclass(frozen=True, order=True)
class Gap:
    """A kernel that ONNX Runtime lacks; ``dtypes`` are those of the operator's inputs, where known.

    ``reason`` is empty for a kernel that is missing, else it says what is wrong with the one there is.
    """

    op: str
    version: int
    dtypes: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        kinds = f"({', '.join(self.dtypes)})" if self.dtypes else ""
        return f"{self.op}-{self.version}{kinds}{': ' if self.reason else ''}{self.reason}"


gaps: set[Gap] = set()
"""The gaps of ONNX Runtime that this process has met."""


class Missing(Exception):
    """ONNX Runtime has no kernel for a node of the model."""

    def __init__(self, gap: Gap) -> None:
        super().__init__(str(gap))
        self.gap = gap


class Session:
    """A model in ONNX Runtime, on the CPU, in one thread."""

    def __init__(self, model: onnx.ModelProto, data: bytes, libraries: Sequence[str] = ()) -> None:
        options = ort.SessionOptions()
        options.log_severity_level = _SILENT
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        for library in libraries:
            options.register_custom_ops_library(library)
        try:
            self._session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except OrtNotImplemented as error:
            raise Missing(_gap(model, str(error))) from error
        except Fail as error:
            unknown = _NO_OPERATOR.search(str(error))
            if unknown is None:
                raise
            raise Missing(Gap(f"{unknown['domain']}::{unknown['op']}", 0)) from error
        self._options = ort.RunOptions()
        self._options.log_severity_level = _SILENT
        self._model = model

    def run(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """All outputs."""
        names = [value.name for value in self._session.get_inputs()]
        feeds = {name: to_ort(tensor) for name, tensor in zip(names, inputs, strict=True)}
        try:
            found = self._session.run_with_ort_values(None, feeds, run_options=self._options)
        except OrtNotImplemented as error:
            raise Missing(_gap(self._model, str(error))) from error
        except RuntimeException as error:
            if _NO_DTYPE.search(str(error)):
                raise Missing(_gap(self._model, str(error))) from error
            raise
        return [from_ort(value) for value in found]


def run_reference(
    model: onnx.ModelProto, inputs: Sequence[torch.Tensor], kernels: Sequence[Any] = ()
) -> list[torch.Tensor]:
    """All outputs, computed by onnx's reference evaluator."""
    evaluator_class: Any = onnx.reference.ReferenceEvaluator
    evaluator = evaluator_class(model, new_ops=list(kernels) or None)
    feeds = {value.name: to_numpy(tensor) for value, tensor in zip(model.graph.input, inputs, strict=True)}
    with np.errstate(all="ignore"):
        found = evaluator.run(None, feeds)
    return [from_numpy(np.asarray(value)) for value in found]


def _gap(model: onnx.ModelProto, text: str) -> Gap:
    found = _NO_KERNEL.search(text) or _NO_DTYPE.search(text)
    if found is None:
        return Gap("?", 0, (), text)
    version = next((entry.version for entry in model.opset_import if not entry.domain), 0)
    if "version" in found.groupdict():
        version = int(found["version"])
    kinds: tuple[str, ...] = ()
    types = _types(model)
    for node in model.graph.node:
        if node.name == found["name"]:
            kinds = tuple(types.get(name, "") for name in node.input)
    return Gap(found["op"], version, kinds)


def _types(model: onnx.ModelProto) -> dict[str, str]:
    graph = model.graph
    known = {
        value.name: onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
        for value in [*graph.input, *graph.value_info, *graph.output]
    }
    known.update({t.name: onnx.TensorProto.DataType.Name(t.data_type).lower() for t in graph.initializer})
    return known
