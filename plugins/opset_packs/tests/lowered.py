"""Builds a model of one call at a target opset and runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from atonnx.build import Builder, Value
from atonnx.build.finish import ir_version
from atonnx.build.scope import NEWEST_OPSET, Session
from atonnx.dispatch import OpsetTable
from atonnx.plugins import load

__all__ = ["Call", "agree", "arrays", "build", "numbers", "ops_of", "opsets", "run", "shapes"]

# Writes the call with the inputs as values.
Call = Callable[..., Any]


def opsets(*choices: int) -> st.SearchStrategy[int]:
    """One of some opsets."""
    return st.sampled_from(choices)


def shapes(min_rank: int = 1, max_rank: int = 4, *, min_side: int = 1, max_side: int = 5) -> Any:
    """Sizes of a small tensor."""
    side = st.integers(min_side, max_side)
    return st.lists(side, min_size=min_rank, max_size=max_rank).map(tuple)


def numbers(
    shape: Sequence[int], dtype: Any = np.float32, *, seed: int = 0, low: int = -9, high: int = 9
) -> Any:
    """An array of random numbers: normal floats, or integers from ``low`` to before ``high``."""
    random = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return random.random(tuple(shape)) < 0.5
    if kind.kind in "iu":
        return random.integers(0 if kind.kind == "u" else -9, 9, tuple(shape)).astype(kind)
    return random.standard_normal(tuple(shape)).astype(kind)


@st.composite
def arrays(draw: Any, shape: Any = None, dtype: Any = np.float32, special: bool = True) -> Any:
    """A drawn array, floats with a few special numbers at drawn places."""
    sizes = draw(shapes() if shape is None else shape)
    found = numbers(sizes, dtype, seed=draw(st.integers(0, 999)))
    if special and found.dtype.kind == "f" and found.size:
        for value in draw(st.lists(st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 0.0]), max_size=3)):
            found.flat[draw(st.integers(0, found.size - 1))] = value
    return found


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
