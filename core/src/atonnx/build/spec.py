"""Schemas of ONNX operators, cached in the form that the builder binds calls with."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from atonnx.build.dtypes import to_ir
from atonnx.errors import BuildError

__all__ = ["OpSpec", "TypeKey", "op_spec", "register_schema"]

# What the schema says of one input or output: a type variable's name, a dtype, or None for
# sequences, optionals and everything that is not a plain tensor.
TypeKey = str | ir.DataType | None

_TENSOR = {f"tensor({text})": dtype for text, dtype in {
    "float": ir.DataType.FLOAT, "double": ir.DataType.DOUBLE, "float16": ir.DataType.FLOAT16,
    "bfloat16": ir.DataType.BFLOAT16, "int8": ir.DataType.INT8, "int16": ir.DataType.INT16,
    "int32": ir.DataType.INT32, "int64": ir.DataType.INT64, "uint8": ir.DataType.UINT8,
    "uint16": ir.DataType.UINT16, "uint32": ir.DataType.UINT32, "uint64": ir.DataType.UINT64,
    "bool": ir.DataType.BOOL, "string": ir.DataType.STRING, "complex64": ir.DataType.COMPLEX64,
    "complex128": ir.DataType.COMPLEX128, "int4": ir.DataType.INT4, "uint4": ir.DataType.UINT4,
    "float4e2m1": ir.DataType.FLOAT4E2M1, "float8e4m3fn": ir.DataType.FLOAT8E4M3FN,
    "float8e4m3fnuz": ir.DataType.FLOAT8E4M3FNUZ, "float8e5m2": ir.DataType.FLOAT8E5M2,
    "float8e5m2fnuz": ir.DataType.FLOAT8E5M2FNUZ, "float8e8m0": ir.DataType.FLOAT8E8M0,
    "int2": ir.DataType.INT2, "uint2": ir.DataType.UINT2,
}.items()}  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One version of one ONNX operator."""

    domain: str
    op_type: str
    since: int
    min_inputs: int
    max_inputs: int
    inputs: tuple[TypeKey, ...]
    variadic_input: bool
    homogeneous: bool  # of the variadic input
    optional: tuple[bool, ...]
    outputs: tuple[TypeKey, ...]
    variadic_output: bool
    min_outputs: int
    attributes: Mapping[str, ir.AttributeType]
    required: frozenset[str]
    allowed: Mapping[str, frozenset[ir.DataType]]
    schema: Any

    def input_key(self, index: int) -> TypeKey:
        """Type of input ``index``; a heterogeneous variadic input has none."""
        last = len(self.inputs) - 1
        if index < last or not self.variadic_input:
            return self.inputs[index]
        return self.inputs[last] if self.homogeneous else None

    def output_key(self, index: int) -> TypeKey:
        """Type of output ``index``."""
        last = len(self.outputs) - 1
        if index > last and not self.variadic_output:
            return None
        return self.outputs[min(index, last)]

    def check_arity(self, count: int) -> None:
        """Raise BuildError unless the operator takes ``count`` inputs."""
        if not self.min_inputs <= count <= self.max_inputs:
            expected = (
                str(self.min_inputs)
                if self.min_inputs == self.max_inputs
                else f"{self.min_inputs} to {self.max_inputs}"
            )
            raise BuildError(f"{self} takes {expected} inputs, got {count}")

    def make_attributes(self, attrs: Mapping[str, Any]) -> list[ir.Attr]:
        """Typed attributes; ``None`` leaves one out.

        Raises:
            BuildError: an attribute is unknown, missing or of the wrong kind.
        """
        made = []
        for name, value in attrs.items():
            if value is None:
                continue
            kind = self.attributes.get(name)
            if kind is None:
                known = ", ".join(sorted(self.attributes)) or "none"
                raise BuildError(f"{self} has no attribute {name!r}; it has: {known}")
            try:
                made.append(_MAKERS[kind](name, value))
            except (TypeError, ValueError, KeyError) as error:
                raise BuildError(f"{self}: attribute {name}={value!r} is no {kind.name}: {error}") from error
        for name in self.required:
            if attrs.get(name) is None:
                raise BuildError(f"{self} needs the attribute {name!r}")
        return made

    def __str__(self) -> str:
        domain = f"{self.domain}::" if self.domain else ""
        return f"{domain}{self.op_type}-{self.since}"


def _int(name: str, value: Any) -> ir.Attr:
    if not isinstance(value, int):
        value = int(to_ir(value))
    return ir.Attr(name, ir.AttributeType.INT, int(value))


def _ints(name: str, value: Sequence[Any]) -> ir.Attr:
    for item in value:
        if not isinstance(item, (int, np.integer)):
            raise TypeError(f"{item!r} is not an int")
    return ir.Attr(name, ir.AttributeType.INTS, value)


def _string(name: str, value: Any) -> ir.Attr:
    if not isinstance(value, str):
        raise TypeError("not a str")
    return ir.Attr(name, ir.AttributeType.STRING, value)


def _tensor(name: str, value: Any) -> ir.Attr:
    if not isinstance(value, ir.TensorProtocol):
        value = ir.tensor(value)
    return ir.Attr(name, ir.AttributeType.TENSOR, value)


def _graph(name: str, value: Any) -> ir.Attr:
    if not isinstance(value, ir.Graph):
        raise TypeError("not an onnx_ir.Graph")
    return ir.Attr(name, ir.AttributeType.GRAPH, value)


def _as(kind: ir.AttributeType) -> Any:
    return lambda name, value: ir.Attr(name, kind, value)


_MAKERS: dict[ir.AttributeType, Any] = {kind: _as(kind) for kind in ir.AttributeType} | {
    ir.AttributeType.INT: _int,
    ir.AttributeType.INTS: _ints,
    ir.AttributeType.STRING: _string,
    ir.AttributeType.TENSOR: _tensor,
    ir.AttributeType.GRAPH: _graph,
}


def _key(type_str: str, constraints: Mapping[str, frozenset[ir.DataType]]) -> TypeKey:
    if type_str in constraints:
        allowed = constraints[type_str]
        return next(iter(allowed)) if len(allowed) == 1 else type_str
    return _TENSOR.get(type_str)


def _convert(schema: Any) -> OpSpec:
    option = onnx.defs.OpSchema.FormalParameterOption
    allowed = {
        c.type_param_str: frozenset(_TENSOR[t] for t in c.allowed_type_strs if t in _TENSOR)
        for c in schema.type_constraints
    }
    inputs, outputs = schema.inputs, schema.outputs
    return OpSpec(
        domain=schema.domain,
        op_type=schema.name,
        since=schema.since_version,
        min_inputs=schema.min_input,
        max_inputs=schema.max_input,
        inputs=tuple(_key(i.type_str, allowed) for i in inputs),
        variadic_input=bool(inputs) and inputs[-1].option == option.Variadic,
        homogeneous=bool(inputs) and inputs[-1].is_homogeneous,
        optional=tuple(i.option == option.Optional for i in inputs),
        outputs=tuple(_key(o.type_str, allowed) for o in outputs),
        variadic_output=bool(outputs) and outputs[-1].option == option.Variadic,
        min_outputs=schema.min_output,
        attributes={n: ir.AttributeType(int(a.type.value)) for n, a in schema.attributes.items()},
        required=frozenset(n for n, a in schema.attributes.items() if a.required),
        allowed=allowed,
        schema=schema,
    )


_CUSTOM: dict[tuple[str, str], dict[int, OpSpec]] = {}


def register_schema(schema: Any) -> None:
    """Make the onnx.defs.OpSchema of a custom domain known to the builder."""
    _CUSTOM.setdefault((schema.domain, schema.name), {})[schema.since_version] = _convert(schema)
    op_spec.cache_clear()


@functools.cache
def op_spec(domain: str, op_type: str, opset: int) -> OpSpec | None:
    """The operator's version that is in force at ``opset``; None where there is none."""
    custom = _CUSTOM.get((domain, op_type))
    if custom:
        versions = [v for v in custom if v <= opset]
        return custom[max(versions)] if versions else None
    try:
        schema = onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None
    return None if schema.deprecated else _convert(schema)
