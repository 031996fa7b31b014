"""The model of one operator call, through the rows of all loaded plugins."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import onnx_ir as ir

from atonnx.build.decompose import Decomposer
from atonnx.build.finish import finish
from atonnx.build.names import Names
from atonnx.build.scope import Session
from atonnx.build.sizes import SizeFacts
from atonnx.build.spec import register_schema
from atonnx.build.translator import Translator
from atonnx.dispatch import DEFAULT_OPSET, OpsetTable, Translation
from atonnx.dispatch.known import distribution_of
from atonnx.errors import TranslationError
from atonnx.pipeline import dispatch_table, opset_table
from atonnx.plugins import Plugins, load
from atonnx.testing.graphs import OneCall, capture_call

__all__ = ["counted", "custom_domains", "translate_call", "translate_op", "unexpected_operators"]


def translate_op(
    overload: Any,
    *args: Any,
    opset: int = DEFAULT_OPSET,
    dynamic: bool = True,
    outputs: Sequence[int] | None = None,
    rows: Iterable[Translation] = (),
    **kwargs: Any,
) -> ir.Model:
    """The model of one operator call, before passes; nothing is run. Options as of ``check_op``."""
    call = capture_call(overload, args, kwargs, dynamic=dynamic, outputs=outputs)
    return translate_call(call, opset, tuple(rows))


def translate_call(
    call: OneCall,
    opset: int,
    rows: Sequence[Translation] = (),
    lowerings: OpsetTable | None = None,
) -> ir.Model:
    """The model of a captured call. ``rows`` come before those of the plugins."""
    plugins = load()
    custom_domains()
    facts = SizeFacts(call.ranges)
    session = Session(opset, lowerings or opset_table(plugins, {}), facts=facts)
    table = dispatch_table(plugins, opset, {})
    if rows:
        table = table.with_custom(rows)
    functions, providers = _decompositions(plugins)
    translator = Translator(
        session,
        table,
        Decomposer(functions, providers, facts),
        missing=lambda node: plugins.missing_translation(node, opset),
        distribution_of=distribution_of,
        loaded=frozenset(r.distribution for r in plugins.records if r.state == "loaded"),
        failed_plugins=[str(record) for record in plugins.failed],
    )
    write = translator.plan(call.source)
    if write is not None:
        raise TranslationError("a single call writes through a view", op=str(write.target))
    inputs, results = translator.translate(call.source)
    translator.state.clear()  # an in-place operator's own result is what is compared
    return finish(
        translator,
        call.source,
        inputs,
        results,
        names=Names.of(call.source, (), ()),
        state="drop",
        default_opset=False,
    )


@functools.lru_cache(maxsize=4)
def _decompositions(plugins: Plugins) -> tuple[dict[Any, Any], list[Any]]:
    found = plugins.decompositions()
    functions = {target: found.table[target][1] for target in found.table}
    return functions, [provider for _, provider in found.providers]


@functools.cache
def custom_domains() -> tuple[list[str], list[Any]]:
    """Custom-op libraries and reference kernels of all plugins; their schemas become known."""
    libraries: list[str] = []
    kernels: list[Any] = []
    for info in load().domains().values():
        for schema in info.schemas:
            register_schema(schema)
        if info.ort_library is not None:
            libraries.append(str(info.ort_library))
        kernels += info.reference_ops
    return libraries, kernels


def counted(model: ir.Model) -> Counter[str]:
    """How many nodes there are of each operator, those of subgraphs and functions included."""
    graphs: list[Any] = [model.graph, *model.functions.values()]
    return Counter(
        f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        for graph in graphs
        for node in ir.traversal.RecursiveGraphIterator(graph)
    )


def unexpected_operators(model: ir.Model, expect: str) -> str:
    """How the graph's operators depart from ``expect``, or nothing."""
    only = expect.endswith("!")
    wanted: dict[str, int] = {}
    for part in expect.rstrip("!").split():
        name, _, count = part.rpartition(":")
        if not name or not count.isdigit():
            raise ValueError(f"expect={expect!r}: {part!r} is not Name:count")
        wanted[name] = int(count)
    found = counted(model)
    wrong = [name for name, count in wanted.items() if found[name] != count]
    if only:
        wrong += [name for name in found if name not in wanted]
    return f"the graph has {' '.join(f'{n}:{c}' for n, c in sorted(found.items()))}" if wrong else ""
