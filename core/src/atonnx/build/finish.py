"""From translated values to an ``onnx_ir.Model``: outputs, names, signature, imports, IR version."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import onnx
import onnx_ir as ir
import torch

from atonnx.build.builder import Builder
from atonnx.build.metadata import Origin
from atonnx.build.names import Names
from atonnx.build.sizes import SymSize, text
from atonnx.build.source import USER_OUTPUTS, Source
from atonnx.build.translator import Translator
from atonnx.build.value import Value
from atonnx.build.warn import warn_user
from atonnx.errors import OnnxExporterWarning

__all__ = ["finish", "ir_version"]

_LOGGER = logging.getLogger("atonnx")
_SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
_RANGES = "pkg.torch.export.ExportedProgram.range_constraints"
_INPUT_KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
_PERSISTENT = "pkg.torch.export.graph_signature.InputSpec.persistent"
_OUTPUT_KIND = "pkg.torch.export.graph_signature.OutputSpec.kind"
_ORIGINAL = "pkg.torch.onnx.original_node_name"
_DEFAULT_IR_VERSION = 10  # of an export that asks for no opset, as torch.onnx


def ir_version(imports: dict[str, int], *, functions: bool, dtypes: set[ir.DataType]) -> int:
    """The lowest IR version that the opset, functions and dtypes of a model need."""
    standard = {domain: version for domain, version in imports.items() if domain in ("", "ai.onnx.ml")}
    found = int(
        onnx.helper.find_min_ir_version_for(
            [onnx.helper.make_opsetid(domain, version) for domain, version in standard.items()],
            ignore_unknown=True,
        )
    )
    if functions:
        found = max(found, 8)
    for dtype in dtypes:
        found = max(found, _DTYPE_IR.get(dtype, 3))
    return found


_DTYPE_IR = {
    ir.DataType.BFLOAT16: 4,
    ir.DataType.FLOAT8E4M3FN: 9,
    ir.DataType.FLOAT8E4M3FNUZ: 9,
    ir.DataType.FLOAT8E5M2: 9,
    ir.DataType.FLOAT8E5M2FNUZ: 9,
    ir.DataType.UINT4: 10,
    ir.DataType.INT4: 10,
    ir.DataType.FLOAT4E2M1: 11,
    ir.DataType.FLOAT8E8M0: 12,
    ir.DataType.UINT2: 13,
    ir.DataType.INT2: 13,
}


def finish(
    translator: Translator,
    source: Source,
    inputs: list[Value],
    outputs: list[Any],
    *,
    names: Names,
    state: str,
    default_opset: bool,
) -> ir.Model:
    """Make the model of what was translated."""
    session = translator.session
    graph = session.root.graph
    builder = Builder(session.root, Origin())
    for value in inputs:
        value.metadata_props[_INPUT_KIND] = "USER_INPUT"
        value.metadata_props[_PERSISTENT] = "None"
    made = _outputs(builder, translator, source, outputs, names)
    if state == "io":
        _state_pairs(builder, translator, made)
    elif translator.state:
        written = ", ".join(sorted(translator.state))
        warn_user(
            f"the model writes to {written}; the ONNX model does not keep these new values. "
            'Export with state="io" to have them as outputs.',
            OnnxExporterWarning,
        )
    for value, (original, name) in zip(inputs, names.inputs, strict=True):
        _rename(value, original, name or value.name or original)
    for value, kind in made:
        value.metadata_props[_OUTPUT_KIND] = kind
        graph.outputs.append(value)
    for value in [*translator.weights, *session.root.constants.values()]:
        if (
            (value.uses() or value.is_graph_output())
            and not value.is_initializer()
            and not value.is_graph_input()
        ):
            graph.register_initializer(value)
    graph.opset_imports.update(session.imports)
    graph.metadata_props[_SIGNATURE] = source.signature_text
    graph.metadata_props[_RANGES] = _range_text(translator, source)
    functions = list(session.functions.values())
    made_by_nodes = (out for node in ir.traversal.RecursiveGraphIterator(graph) for out in node.outputs)
    held = (*graph.inputs, *graph.initializers.values(), *made_by_nodes)
    dtypes = {value.dtype for value in held if value.dtype is not None}
    version = ir_version(session.imports, functions=bool(functions), dtypes=dtypes)
    if default_opset:
        version = max(version, _DEFAULT_IR_VERSION)
    from atonnx import __version__

    return ir.Model(
        graph,
        ir_version=version,
        producer_name="atonnx",
        producer_version=__version__,
        functions=functions,
        metadata_props={"torch_version": torch.__version__},
    )


def _outputs(
    builder: Builder, translator: Translator, source: Source, outputs: Sequence[Any], names: Names
) -> list[tuple[Value, str]]:
    made: list[tuple[Value, str]] = []
    taken: set[Value] = set()
    arguments = source.results()
    for index, (item, spec) in enumerate(zip(outputs, source.outputs, strict=True)):
        if spec.kind not in USER_OUTPUTS:
            if isinstance(item, Value):
                item.metadata_props[_OUTPUT_KIND] = spec.kind
                translator.state[spec.target or str(index)] = item
                translator.state_kinds[spec.target or str(index)] = "BUFFER"
            continue
        if item is None:
            _LOGGER.warning(
                "Output %s is None and is left out of the exported graph. Please ensure the graph output "
                "order is expected.",
                index,
            )
            continue
        argument = arguments[index]
        name = argument.name if isinstance(argument, torch.fx.Node) else f"output_{index}"
        origin = Origin(fx=argument if isinstance(argument, torch.fx.Node) else None)
        value = _as_output(Builder(builder.scope, origin), translator, item, argument, taken, name)
        taken.add(value)
        if index in names.outputs:
            _rename(value, name, names.outputs[index])
        made.append((value, spec.kind))
    return made


def _as_output(
    builder: Builder, translator: Translator, item: Any, argument: Any, taken: set[Value], name: str
) -> Value:
    # A float of Python has 64 bits, also one that the program computes from sizes.
    kind = ir.DataType.DOUBLE if isinstance(item, float) else None
    value = builder.size(item) if isinstance(item, SymSize) else builder.as_value(item, kind)
    if isinstance(argument, torch.fx.Node) and not builder.origin.metadata:
        producer = value.producer()
        if producer is not None:
            builder.origin.metadata.update(producer.metadata_props)
        else:
            from atonnx.build.metadata import fx_metadata

            builder.origin.metadata.update(fx_metadata(argument))
    if (
        value.producer() is None
        or value.scope is not builder.scope
        or value in taken
        or value.const_value is not None
    ):
        dims, is_complex = value.dims, value.is_complex
        value = builder.Identity(value)
        value.dims, value.is_complex = dims, is_complex
        value.name = translator.session.unique(name)
        value.producer().name = f"node_{value.name}"
    elif isinstance(item, SymSize):
        value.name = translator.session.unique(name)
    return value


def _state_pairs(builder: Builder, translator: Translator, made: list[tuple[Value, str]]) -> None:
    """Each written buffer as an input, its new value as an output."""
    weights = {value.const_value.name: value for value in translator.weights if value.const_value is not None}
    for target, new in sorted(translator.state.items()):
        old = weights.get(target)
        kind = translator.state_kinds[target]
        if old is not None:
            old.const_value = None
            builder.scope.graph.inputs.append(old)
            old.metadata_props[_INPUT_KIND] = kind
        value = new
        if value.producer() is None or value in {v for v, _ in made}:
            value = builder.Identity(new)
        value.name = translator.session.unique(f"{target}_new")
        made.append((value, "BUFFER_MUTATION" if old is not None else "USER_INPUT_MUTATION"))


def _rename(value: ir.Value, original: str, name: str) -> None:
    value.name = name
    if name != original:
        value.metadata_props[_ORIGINAL] = original


def _range_text(translator: Translator, source: Source) -> str:
    """The program's ranges, symbols that the user named under their names."""
    names = translator.session.axis_names
    ranges: dict[str, Any] = {}
    for symbol, bounds in source.ranges.items():
        ranges.setdefault(text(symbol, names), bounds)
    return "{" + ", ".join(f"{name}: {bounds}" for name, bounds in ranges.items()) + "}"
