"""Builds a model of one call at a target opset and runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx.reference import ReferenceEvaluator

from atonnx.build import Builder, Value
from atonnx.build.finish import ir_version
from atonnx.build.scope import NEWEST_OPSET, Session
from atonnx.dispatch import OpsetTable
from atonnx.plugins import load

__all__ = ["Call", "agree", "build", "ops_of", "run"]

# Writes the call with the inputs as values.
Call = Callable[..., Any]


@cache
def _table() -> OpsetTable:
    return OpsetTable(load().opset_rows())


def build(
    call: Call, inputs: Mapping[str, np.ndarray], opset: int, *, dynamic: Sequence[str] = ()
) -> onnx.ModelProto:
    """The model of ``call(op, **inputs)`` at ``opset``.

    An input named in ``dynamic`` has no known sizes, only its rank; all others are inputs with
    known sizes. Whatever else the call has are constants.
    """
    session = Session(opset, _table())
    op: Builder = session.builder()
    values: dict[str, Value] = {}
    for name, array in inputs.items():
        dims = (None,) * array.ndim if name in dynamic else array.shape
        values[name] = session.root.add_input(name, ir.tensor(array).dtype, dims)
    results = call(op, **values)
    results = results if isinstance(results, tuple) else (results,)
    graph = session.root.graph
    for i, result in enumerate(results):
        made = op.Identity(result)
        made.name = f"out_{i}"
        graph.outputs.append(made)
    for value in session.root.constants.values():
        if value.uses() and not value.is_initializer():
            graph.register_initializer(value)
    graph.opset_imports.update(session.imports)
    for value in graph.inputs:
        value.shape = ir.Shape([None if d is None else d for d in value.dims])  # type: ignore[attr-defined]
    version = ir_version(session.imports, functions=bool(session.functions), dtypes=set())
    model = ir.Model(graph, ir_version=version, functions=list(session.functions.values()))
    proto = ir.to_proto(model)
    return proto


def run(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray], *, reference: bool = False) -> list[Any]:
    """Outputs by ONNX Runtime, or by onnx's reference implementation."""
    # ONNX Runtime writes the running mean of a BatchNormalization into what it is fed.
    feeds = {name: array.copy() for name, array in inputs.items()}
    if reference:
        return list(ReferenceEvaluator(model).run(None, feeds))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def ops_of(model: onnx.ModelProto) -> list[str]:
    """The operators of the main graph, without the Identity of each output."""
    outputs = {o.name for o in model.graph.output}
    return [n.op_type for n in model.graph.node if not outputs & set(n.output)]


def agree(
    call: Call,
    inputs: Mapping[str, np.ndarray],
    opset: int,
    *,
    expected: Sequence[np.ndarray] | None = None,
    dynamic: Sequence[str] = (),
    reference: bool = False,
    newest: int = NEWEST_OPSET,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> onnx.ModelProto:
    """Check that the call gives the same numbers at ``opset`` as it does at ``newest``.

    ``expected`` takes the place of the newest form where that cannot be run; ``reference`` runs
    both by onnx's reference implementation. Returns the model.
    """
    model = build(call, inputs, opset, dynamic=dynamic)
    if expected is None:
        expected = run(build(call, inputs, newest), inputs, reference=reference)
    found = run(model, inputs, reference=reference)
    if len(found) != len(expected):
        raise AssertionError(f"{len(found)} outputs, expected {len(expected)}")
    for one, other in zip(found, expected, strict=True):
        other = np.asarray(other)
        if one.dtype != other.dtype or one.shape != other.shape:
            raise AssertionError(f"{one.dtype}{one.shape}, expected {other.dtype}{other.shape}")
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(one, other)
    return model
