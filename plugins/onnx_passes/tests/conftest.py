"""Small graphs, written with the builder, before and after the passes."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
import sympy
import torch
from torch.utils._sympy.value_ranges import ValueRanges

from atonnx.build import Builder, SymSize, Value
from atonnx.build.metadata import KEYS, Origin
from atonnx.build.scope import Session
from atonnx.build.sizes import SizeFacts
from atonnx.build.weights import Weight
from atonnx.dispatch import OpsetTable
from atonnx.passes import run_passes
from atonnx.plugins import load
from atonnx.program.saving import to_proto

N = sympy.Symbol("n", integer=True, nonnegative=True)
"""The dynamic size of test graphs: 0 to 100."""
M = sympy.Symbol("m", integer=True, positive=True)
"""Another one: 1 to 100."""

Write = Callable[..., Any]


class Written:
    """A model that ``write(op, *inputs)`` writes; ``inputs`` are arrays, or arrays with dynamic dims."""

    def __init__(self, write: Write, inputs: Mapping[str, Any], opset: int = 20) -> None:
        facts = SizeFacts({N: ValueRanges(0, 100), M: ValueRanges(1, 100)})
        self.session = Session(opset, OpsetTable(load().opset_rows()), facts=facts)
        scope = self.session.root
        self.feeds: dict[str, np.ndarray] = {}
        values = []
        for name, given in inputs.items():
            array, dims = given if isinstance(given, tuple) else (given, given.shape)
            self.feeds[name] = array
            value = scope.add_input(name, ir.DataType.from_numpy(array.dtype), tuple(dims))
            scope.root_tensor(value)
            values.append(value)
        made = write(self, *values)
        graph = scope.graph
        for index, value in enumerate(made if isinstance(made, (list, tuple)) else [made]):
            value.name = f"out{index}"
            graph.outputs.append(value)
        for value in scope.constants.values():
            if value.uses() and not value.is_initializer():
                graph.register_initializer(value)
        graph.opset_imports.update(self.session.imports)
        self.model = ir.Model(graph, ir_version=10, functions=list(self.session.functions.values()))

    def __getattr__(self, name: str) -> Any:
        """``op.Add(...)``: an operator, written for a node of the name ``add``."""
        return getattr(self.at(name.lower()), name)

    def at(self, name: str) -> Builder:
        """A builder that stands for the node ``name`` of the user's model."""
        return Builder(self.session.root, Origin(metadata=dict.fromkeys(KEYS, name)))

    def weight(self, name: str, tensor: torch.Tensor) -> Value:
        """A parameter of the user's model."""
        weight = Weight(tensor, name)
        value = Value(
            scope=self.session.root,
            dtype=weight.dtype,
            dims=tuple(tensor.shape),
            name=name,
            const_value=weight,
        )
        self.session.root.graph.register_initializer(value)
        return value

    # ------------------------------------------------------------- results

    def run(self) -> list[np.ndarray]:
        """What ONNX Runtime makes of it."""
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(
            to_proto(self.model).SerializeToString(), options, ["CPUExecutionProvider"]
        )
        return list(session.run(None, {i.name: self.feeds[i.name] for i in session.get_inputs()}))

    def optimize(self, *names: str) -> None:
        """Run the passes of these names, or all."""
        run_passes(self.model, [s for s in load().passes() if not names or s.name in names])

    def counts(self) -> dict[str, int]:
        """How many nodes there are of each operator, in bodies and functions too."""
        found: collections.Counter[str] = collections.Counter()
        for graph in [self.model.graph, *(f.graph for f in self.model.functions.values())]:
            found.update(n.op_type for n in ir.traversal.RecursiveGraphIterator(graph))
        return dict(found)


Check = Callable[..., Written]


@pytest.fixture
def check() -> Check:
    """``check(write, inputs, after)``: the passes leave these operators, and the results as they are.

    ``same`` compares bits; else a difference of float32's rounding is allowed.
    """

    def run(
        write: Write,
        inputs: Mapping[str, Any],
        after: Mapping[str, int] | None = None,
        *,
        opset: int = 20,
        passes: Sequence[str] = (),
        same: bool = True,
    ) -> Written:
        plain, made = Written(write, inputs, opset), Written(write, inputs, opset)
        made.optimize(*passes)
        assert after is None or made.counts() == dict(after)
        names = [value.name for value in made.model.graph.outputs]
        assert names == [value.name for value in plain.model.graph.outputs]
        for node in ir.traversal.RecursiveGraphIterator(made.model.graph):
            assert all(node.metadata_props.get(key) for key in KEYS), node
        for got, want in zip(made.run(), plain.run(), strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            if same:
                # nan is nan, whatever its bits; 0.0 is not -0.0.
                np.testing.assert_array_equal(got, want)
                if want.dtype.kind == "f":
                    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
            else:
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        return made

    return run


@pytest.fixture
def written() -> type[Written]:
    """``written(write, inputs)``: the model alone."""
    return Written


@pytest.fixture
def n() -> SymSize:
    """A dynamic size, perhaps 0."""
    return SymSize(N)


@pytest.fixture
def m() -> SymSize:
    """A dynamic size, never 0."""
    return SymSize(M)


def special(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Numbers with -0.0, nan and infinities among them."""
    array = np.random.default_rng(0).normal(size=shape).astype(dtype)
    flat = array.reshape(-1)
    for index, number in enumerate((-0.0, 0.0, np.nan, np.inf, -np.inf)):
        if index < flat.size:
            flat[index] = number
    return array


@pytest.fixture
def x() -> np.ndarray:
    """A (4, 6) tensor with all kinds of numbers."""
    return special(4, 6)
