"""Writing an existing ONNX function or graph again, node by node, at the builder's opset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from atonnx.errors import BuildError

if TYPE_CHECKING:
    from atonnx.build.builder import Builder

__all__ = ["replay"]


def replay(
    op: Builder,
    graph: ir.Function | ir.Graph,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any],
    imports: Mapping[str, int],
    outer: Mapping[ir.Value, Any] | None = None,
) -> tuple[Any, ...]:
    """Emit the nodes of ``graph`` through ``op``; its outputs.

    ``inputs`` stand for the graph's inputs, ``attributes`` for a function's attribute parameters;
    ``imports`` are the versions that the nodes were written for.
    """
    env: dict[ir.Value, Any] = dict(outer or {})
    for index, value in enumerate(graph.inputs):
        env[value] = inputs[index] if index < len(inputs) else None
    if isinstance(graph, ir.Graph):
        for value in graph.initializers.values():
            env[value] = op.const(value.const_value)
    for node in graph:
        _node(op, node, env, attributes, imports)
    return tuple(env[value] for value in graph.outputs)


def _node(
    op: Builder,
    node: ir.Node,
    env: dict[ir.Value, Any],
    attributes: Mapping[str, Any],
    imports: Mapping[str, int],
) -> None:
    attrs: dict[str, Any] = {}
    args: list[Any] = [None if value is None else env[value] for value in node.inputs]
    for name, attr in node.attributes.items():
        if attr.is_ref():
            attrs[name] = attributes.get(str(attr.ref_attr_name))
        elif attr.type == ir.AttributeType.GRAPH:
            attrs[name] = _body(op, node, attr.value, args, env, attributes, imports)
        else:
            attrs[name] = attr.value
    if node.op_type == "Constant" and not node.domain:
        made: Any = op.const(_constant(attrs))
        results: Sequence[Any] = (made,)
    elif node.op_type == "CastLike" and not node.domain and args[1].dtype is not None:
        results = (_cast_like(op, args[0], args[1].dtype),)
    else:
        version = imports.get(node.domain)
        if version is None:
            raise BuildError(f"{node.op_type}: the domain {node.domain!r} is not imported by the function")
        results = op.call(
            node.domain, node.op_type, *args, outputs=len(node.outputs), version=version, **attrs
        )
    for value, result in zip(node.outputs, results, strict=False):
        env[value] = result


def _cast_like(op: Builder, value: Any, dtype: ir.DataType) -> Any:
    """A cast to a dtype that is known here; of a constant, the constant in that dtype."""
    const = value.const_value
    if const is not None and const.size == 1 and value.dtype != dtype:
        number = const.numpy().reshape(-1)[0].item()
        return op.reshape(op.const(number, dtype), tuple(const.shape.numpy()))
    return op.cast(value, dtype)


def _constant(attrs: Mapping[str, Any]) -> Any:
    for name, value in attrs.items():
        if name in ("value", "value_int", "value_float"):
            return value
        if name in ("value_ints", "value_floats"):
            return list(value) if value else ir.tensor([], dtype=ir.DataType.INT64)
    raise BuildError(f"a Constant with {', '.join(attrs) or 'no value'} cannot be written")


def _body(
    op: Builder,
    node: ir.Node,
    graph: ir.Graph,
    args: Sequence[Any],
    env: Mapping[ir.Value, Any],
    attributes: Mapping[str, Any],
    imports: Mapping[str, int],
) -> ir.Graph:
    """A body graph, its inputs typed by what the operator hands it."""
    with op.body(graph.name or "body") as body:
        kinds = _body_types(node, args, len(graph.inputs))
        inputs = [
            body.input(value.name or "input", dtype, dims)
            for value, (dtype, dims) in zip(graph.inputs, kinds, strict=True)
        ]
        body.output(*replay(body, graph, inputs, attributes, imports, env))
    return body.graph


def _body_types(node: ir.Node, args: Sequence[Any], count: int) -> list[tuple[ir.DataType, Any]]:
    if node.op_type == "Loop":
        kinds: list[tuple[ir.DataType, Any]] = [(ir.DataType.INT64, ()), (ir.DataType.BOOL, ())]
        return kinds + [(arg.dtype, None) for arg in args[2:]]
    if node.op_type == "Scan":
        scanned = int(node.attributes["num_scan_inputs"].value)
        states = len(args) - scanned
        return [(arg.dtype, arg.dims if i < states else None) for i, arg in enumerate(args)]
    if count:
        raise BuildError(f"the body of {node.op_type} has inputs that cannot be typed")
    return []
