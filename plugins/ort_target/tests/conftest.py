"""Small models of calls, legalized and run by ONNX Runtime."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from atonnx.build.builder import Builder
from atonnx.build.finish import ir_version
from atonnx.build.metadata import KEYS, Origin
from atonnx.build.scope import Session
from atonnx.dispatch import OpsetTable
from atonnx.errors import OnnxExporterWarning
from atonnx.passes import run_passes
from atonnx.plugins import load


class Legalized:
    """The model of ``write(op, *inputs)`` at an opset, after the passes of a target."""

    def __init__(
        self, write: Callable[..., Any], inputs: Mapping[str, np.ndarray], opset: int, target: str
    ) -> None:
        self.feeds = dict(inputs)
        session = Session(opset, OpsetTable(load().opset_rows()))
        op = Builder(session.root, Origin(metadata=dict.fromkeys(KEYS, "here"))).at(opset)
        values = [session.root.add_input(n, ir.tensor(a).dtype, (None,) * a.ndim) for n, a in inputs.items()]
        made = write(op, *values)
        graph = session.root.graph
        for index, value in enumerate(made if isinstance(made, tuple) else (made,)):
            value.name = f"out_{index}"
            graph.outputs.append(value)
        for value in session.root.constants.values():
            if value.uses() and not value.is_initializer():
                graph.register_initializer(value)
        graph.opset_imports.update(session.imports)
        functions = list(session.functions.values())
        version = ir_version(session.imports, functions=bool(functions), dtypes=set())
        self.model = ir.Model(graph, ir_version=version, functions=functions)
        self.before = self.ops()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", OnnxExporterWarning)
            run_passes(self.model, load().targets()[target].passes)
        self.warnings = [str(w.message) for w in caught if issubclass(w.category, OnnxExporterWarning)]

    def ops(self) -> list[str]:
        """The operators, in bodies and functions too."""
        graphs = [self.model.graph, *(f.graph for f in self.model.functions.values())]
        return [node.op_type for graph in graphs for node in ir.traversal.RecursiveGraphIterator(graph)]

    def run(self) -> list[np.ndarray]:
        """What ONNX Runtime makes of it; a missing kernel raises."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(
            ir.to_proto(self.model).SerializeToString(), options, ["CPUExecutionProvider"]
        )
        return list(session.run(None, self.feeds))


@pytest.fixture
def legalized() -> type[Legalized]:
    """``legalized(write, inputs, opset, target)``."""
    return Legalized
