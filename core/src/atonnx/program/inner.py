"""Values in bodies and functions, handed out by a copy of the model.

Each node on the way to such a value gets an output more. That of an If has a stand-in in the other
branch, and a flag tells which one was taken; that of a Loop or Scan has the values of all iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from atonnx.errors import OnnxExporterError, both

__all__ = ["Handed", "hand_out"]

_BRANCHES = ("then_branch", "else_branch")


@dataclass(frozen=True)
class Handed:
    """What the main graph of the copy has for a value: itself, and whether it was computed (None: always)."""

    value: ir.Value
    flag: ir.Value | None
    where: str


@dataclass(frozen=True)
class _Step:
    """From a node into its body ``attribute``, or into the function that it calls."""

    node: ir.Node
    inside: ir.Graph | ir.Function
    attribute: str = ""


def hand_out(model: ir.Model, names: Sequence[str]) -> tuple[ir.Model, dict[str, Handed]]:
    """A copy of the model where the main graph has the values ``names`` of its bodies and functions.

    A name may be preceded by those of the nodes on the way, ``node_call/value``, where a function is
    called more than once.

    Raises:
        OnnxExporterError: also a ValueError, where there is no such value or it cannot be given out.
    """
    copy = model.clone()
    found = {name: _found(copy, name) for name in names}
    lift = _Lift(copy)
    return copy, {name: lift.up(trail, value) for name, (trail, value) in found.items()}


def _found(model: ir.Model, name: str) -> tuple[tuple[_Step, ...], ir.Value]:
    places = [
        (trail, value)
        for trail, value in _inside(model.functions, model.graph, ())
        if f"/{_address(trail)}/{value.name}".endswith(f"/{name}")
    ]
    if not places:
        raise both(OnnxExporterError, ValueError)(
            f"Value {name!r} not found in the model. Please provide a valid value name."
        )
    if len(places) > 1:
        addresses = ", ".join(f"{_address(trail)}/{value.name}" for trail, value in places)
        raise both(OnnxExporterError, ValueError)(
            f"value {name!r} is computed in several places", hint=f"ask for one of {addresses}"
        )
    return places[0]


def _address(trail: Sequence[_Step]) -> str:
    return "/".join(str(step.node.name) for step in trail)


def _inside(
    functions: Mapping[ir.OperatorIdentifier, ir.Function],
    graph: ir.Graph | ir.Function,
    trail: tuple[_Step, ...],
) -> Iterator[tuple[tuple[_Step, ...], ir.Value]]:
    """All values of bodies and functions, with the way to them."""
    if trail:
        yield from ((trail, value) for value in graph.inputs)
        if isinstance(graph, ir.Graph):
            yield from ((trail, value) for value in graph.initializers.values())
    for node in graph:
        if trail:
            yield from ((trail, value) for value in node.outputs)
        for attribute in node.attributes.values():
            if isinstance(attribute, ir.Attr) and attribute.type == ir.AttributeType.GRAPH:
                body = attribute.as_graph()
                yield from _inside(functions, body, (*trail, _Step(node, body, attribute.name)))
        function = functions.get(node.op_identifier())
        if function is not None:
            yield from _inside(functions, function, (*trail, _Step(node, function)))


class _Lift:
    """Brings values up, node by node."""

    def __init__(self, model: ir.Model) -> None:
        self._count = 0
        self._calls: dict[ir.OperatorIdentifier, list[ir.Node]] = {name: [] for name in model.functions}
        for graph in (model.graph, *(function.graph for function in model.functions.values())):
            for node in ir.traversal.RecursiveGraphIterator(graph):
                if node.op_identifier() in self._calls:
                    self._calls[node.op_identifier()].append(node)

    def up(self, trail: Sequence[_Step], value: ir.Value) -> Handed:
        handed = Handed(value, None, f"{_address(trail)}/{value.name}")
        for step in reversed(trail):
            if not isinstance(handed.value.type, ir.TensorType):
                raise self._refused(handed, "is no tensor")
            if not step.attribute:
                handed = self._out(step, handed)
            elif step.node.op_type == "If" and step.attribute in _BRANCHES:
                handed = self._branch(step, handed)
            elif step.node.op_type in ("Loop", "Scan") and handed.flag is None:
                handed = self._iterations(step, handed)
            elif step.node.op_type in ("Loop", "Scan"):
                raise self._refused(handed, "lives in a branch that each iteration takes or not")
            else:
                raise self._refused(handed, f"lives in the body of a {step.node.op_type}")
        return handed

    def _refused(self, handed: Handed, why: str) -> OnnxExporterError:
        return both(OnnxExporterError, ValueError)(
            f"value {handed.where!r} {why}, so ONNX Runtime cannot give it out"
        )

    def _branch(self, step: _Step, handed: Handed) -> Handed:
        other = next(name for name in _BRANCHES if name != step.attribute)
        graph = step.node.attributes[other].as_graph()
        value = handed.value
        if value.dtype is None or value.dtype == ir.DataType.STRING:
            raise self._refused(handed, "has no number type that the other branch could stand in for")
        flag = handed.flag or self._constant(step.inside, ir.tensor(np.array(True)))
        result = self._out(step, replace(handed, flag=flag))
        empty = np.zeros((0,) * (1 if value.shape is None else len(value.shape)), value.dtype.numpy())
        for stand_in in (ir.tensor(empty, dtype=value.dtype), ir.tensor(np.array(False))):
            graph.outputs.append(self._constant(graph, stand_in))
        return result

    def _iterations(self, step: _Step, handed: Handed) -> Handed:
        for name in ("scan_output_axes", "scan_output_directions"):
            known = step.node.attributes.get(name)
            if known is not None:
                step.node.attributes[name] = ir.AttrInt64s(name, [*known.as_ints(), 0])
        result = self._out(step, handed)
        result.value.shape = None
        return result

    def _out(self, step: _Step, handed: Handed) -> Handed:
        """The same as outputs of a node."""
        value = self._output(step, handed.value)
        flag = None if handed.flag is None else self._output(step, handed.flag)
        return Handed(value, flag, handed.where)

    def _output(self, step: _Step, value: ir.Value) -> ir.Value:
        # An Identity, since a value may be an input of the body, or one of its outputs already.
        inner = ir.node("Identity", [value], name=self._name(), version=None)
        inner.outputs[0].name = self._name()
        inner.outputs[0].type, inner.outputs[0].shape = value.type, value.shape
        step.inside.append(inner)
        step.inside.outputs.append(inner.outputs[0])
        # All calls of a function have all its outputs.
        for node in [step.node] if step.attribute else self._calls[step.node.op_identifier()]:
            node.resize_outputs(len(node.outputs) + 1)
            node.outputs[-1].name, node.outputs[-1].type = self._name(), value.type
        return step.node.outputs[-1]

    def _constant(self, graph: ir.Graph | ir.Function, tensor: ir.TensorProtocol) -> ir.Value:
        node = ir.node("Constant", [], {"value": tensor}, name=self._name())
        node.outputs[0].name = self._name()
        node.outputs[0].type, node.outputs[0].shape = (
            ir.TensorType(tensor.dtype),
            ir.Shape(tensor.shape.numpy()),
        )
        graph.append(node)
        return node.outputs[0]

    def _name(self) -> str:
        self._count += 1
        return f"__handed_out_{self._count}"
