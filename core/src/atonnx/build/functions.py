"""onnxscript functions: written out in place, or kept as functions of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from atonnx.build.replay import replay
from atonnx.build.scope import Scope

if TYPE_CHECKING:
    from atonnx.build.builder import Builder

_DOMAIN = "pkg.atonnx.functions"

__all__ = ["bind_script", "call_function", "inline_script"]


def bind_script(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of an onnxscript function, parted into inputs and attributes by its signature.

    Raises:
        TypeError: an argument is missing or unknown.
    """
    inputs: list[Any] = []
    attributes: dict[str, Any] = {}
    rest = dict(kwargs)
    given = list(args)
    for position, param in enumerate(function.op_signature.params):
        is_input = isinstance(param, ir.schemas.Parameter)
        if position < len(given):
            value = given[position]
        elif param.name in rest:
            value = rest.pop(param.name)
        elif is_input:
            if param.required:
                raise TypeError(f"{function.name} misses the input {param.name!r}")
            value = None
        else:
            value = param.default.value if param.default is not None else None
        if is_input:
            inputs.append(value)
        else:
            attributes[param.name] = value
    if rest:
        raise TypeError(f"{function.name} takes no {', '.join(rest)}")
    return inputs, attributes


def _parsed(function: Any) -> ir.Function:
    parsed: ir.Function = ir.from_proto(function.to_function_proto())
    return parsed


def inline_script(op: Builder, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Write an onnxscript function's nodes here, at the model's opset."""
    inputs, attributes = bind_script(function, args, kwargs)
    parsed = _parsed(function)
    values = [None if value is None else op.as_value(value) for value in inputs]
    results = replay(op, parsed, values, attributes, parsed.opset_imports)
    return results if len(results) > 1 else results[0]


def call_function(op: Builder, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call an onnxscript function as a function of the model.

    Its body is written at the model's opset, once for each combination of dtypes, ranks and
    attributes that it is called with.
    """
    inputs, attributes = bind_script(function, args, kwargs)
    values = [None if value is None else op.as_value(value) for value in inputs]
    parsed = _parsed(function)
    key = (
        parsed.domain,
        parsed.name,
        tuple(None if v is None else (v.dtype, None if v.dims is None else len(v.dims)) for v in values),
        repr(sorted(attributes.items())),
    )
    made = op.session.functions.get(key)
    if made is None:
        made = op.session.functions[key] = _build(op, parsed, values, attributes, len(op.session.functions))
    outputs = made.outputs
    results = op._node(
        made.domain,
        made.name,
        values,
        [],
        [output.dtype for output in outputs],
        op.session.domain_version(made.domain),
    )
    for result, output in zip(results, outputs, strict=True):
        sizes = output.dims  # type: ignore[attr-defined]
        result.dims = None if sizes is None else (None,) * len(sizes)
    return results if len(results) > 1 else results[0]


def _build(
    op: Builder, parsed: ir.Function, values: Sequence[Any], attributes: Mapping[str, Any], number: int
) -> ir.Function:
    scope = Scope(op.session, "function", op.scope, parsed.name)
    builder = op._clone(scope)
    inputs = []
    for formal, value in zip(parsed.inputs, values, strict=True):
        dims = None if value is None or value.dims is None else (None,) * len(value.dims)
        made = scope.add_input(formal.name or "input", None if value is None else value.dtype, dims)
        inputs.append(None if value is None else made)
    outputs = replay(builder, parsed, inputs, attributes, parsed.opset_imports)
    for value in outputs:
        outside = value.producer() is None
        scope.graph.outputs.append(builder.Identity(value) if outside else value)
    scope.graph.opset_imports.update(op.session.imports)
    name = parsed.name if number == 0 else f"{parsed.name}_{number}"
    # ONNX's own domain may not hold functions, which script(opset18) would put there.
    domain = _DOMAIN if parsed.domain in ("", "ai.onnx") else parsed.domain
    return ir.Function(domain, name, graph=scope.graph, attributes=())
