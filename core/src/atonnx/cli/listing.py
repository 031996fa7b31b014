"""The texts that the sub-commands print."""

from __future__ import annotations

import difflib
import json
import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from atonnx.dispatch import MIN_OPSET, OpsetRow, OpsetTable, merge, target_name
from atonnx.dispatch.known import distribution_of
from atonnx.dispatch.row import canonical
from atonnx.errors import OnnxExporterError, PluginError, UnsupportedOpError
from atonnx.plugins import PluginRecord, Plugins

__all__ = [
    "compared",
    "explained",
    "missing",
    "operators",
    "problems",
    "record_lines",
    "records_json",
    "version_lines",
    "written",
]


def version_lines(plugins: Plugins) -> list[str]:
    """Our version and the plugins'."""
    import atonnx

    lines = [f"atonnx {atonnx.__version__} (Python {platform.python_version()})"]
    return lines + [str(record) for record in plugins.records]


def record_lines(records: Iterable[PluginRecord]) -> list[str]:
    """The records as a table; the reason of a state is on a line of its own."""
    records = list(records)
    if not records:
        return ["no plugins are installed"]
    rows = [("PLUGIN", "STATE", "DISTRIBUTION", "VERSION", "ENTRY POINT")]
    rows += [(r.name, r.state, r.distribution, r.version, r.value) for r in records]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    told = [lines[0].rstrip()]
    for record, line in zip(records, lines[1:], strict=True):
        told.append(line.rstrip())
        told += [f"    {part}" for part in record.reason.splitlines()]
    return told


def records_json(records: Iterable[PluginRecord]) -> str:
    """The records as a JSON list."""
    names = ("name", "distribution", "version", "value", "state", "reason")
    return json.dumps([{name: getattr(record, name) for name in names} for record in records], indent=2)


def compared(row: Mapping[str, Any]) -> str:
    """What the model computes beside what was observed of one call."""
    verdict = row.get("error") or f"max abs {row['abs']:.2e}, max rel {row['rel']:.2e}"
    return f"  {'ok' if row['SUCCESS'] else 'WRONG'}  observed call {row['index']}: {verdict}"


def written(path: Path, model: Any) -> str:
    """One line about the file that an export wrote."""
    graph = model.graph
    return (
        f"{path}: opset {model.opset_imports.get('', '?')}, {len(graph)} nodes, "
        f"inputs {_names(graph.inputs)}, outputs {_names(graph.outputs)}"
    )


def _names(values: Iterable[Any]) -> str:
    return ", ".join(str(value.name) for value in values) or "none"


def problems(plugins: Plugins) -> list[str]:
    """What is wrong with the plugins, each by itself and with one another; empty if nothing is."""
    # torch prints warnings about the operators of samples past Python's; it reads this when it is imported.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    try:
        from atonnx.testing import check_plugin
    except ModuleNotFoundError as error:
        raise OnnxExporterError(
            f"checking plugins needs {error.name}", hint="pip install atonnx-core[testing]"
        ) from error
    found: list[str] = []
    for record in plugins.records:
        if record.state == "loaded":
            found += [f"plugin {record.name}: {problem}" for problem in check_plugin(record.name)]
    rows = plugins.translations()
    bounds = {row.since for row in rows} | {row.until for row in rows if row.until is not None}
    conflicts: dict[str, None] = {}
    # Between two bounds the same rows apply.
    for opset in sorted(bounds | {MIN_OPSET}):
        conflicts.update(dict.fromkeys(str(error) for error in merge(rows, opset).conflicts()))
    for offers in (plugins.decompositions().table, plugins.domains(), plugins.targets()):
        conflicts.update(
            dict.fromkeys(f"{key}: conflict of {', '.join(names)}" for key, names in offers.conflicts.items())
        )
    try:
        plugins.passes()
    except PluginError as error:
        conflicts[str(error)] = None
    # Asking hooks may have failed a plugin that was loaded before.
    return [*(str(record) for record in plugins.failed), *found, *conflicts]


def operators(plugins: Plugins, opset: int, plugin: str | None) -> list[str]:
    """The operators that have a row at an opset, with the plugins that have it."""
    if plugin is not None and plugins.record(plugin) is None:
        names = ", ".join(record.name for record in plugins.records) or "none"
        raise PluginError(f"no plugin is named {plugin}", hint=f"the plugins are: {names}")
    owners: dict[str, set[str]] = {}
    for row in plugins.translations():
        if row.serves(opset) and plugin in (None, row.plugin):
            owners.setdefault(row.target, set()).add(row.plugin)
    width = max(map(len, owners), default=0)
    return [f"{target.ljust(width)}  {', '.join(sorted(owners[target]))}" for target in sorted(owners)]


def missing(plugins: Plugins, opset: int) -> list[str]:
    """The ATen operators that a captured model may call and that nothing translates."""
    from atonnx.build.decompose import Decomposer
    from atonnx.build.sizes import SizeFacts
    from atonnx.cli._torch import inference_overloads

    rows = {row.target for row in plugins.translations() if row.serves(opset)}
    found = plugins.decompositions()
    table = {overload: found.table[overload][1] for overload in found.table}
    decomposer = Decomposer(table, [provider for _, provider in found.providers], SizeFacts({}))
    return [
        overload.name()
        for overload in inference_overloads()
        if overload.name() not in rows and decomposer.function_for(overload) is None
    ]


def explained(plugins: Plugins, op: str, opset: int, prefer: Mapping[str, str]) -> list[str]:
    """The rows of an operator in the order of their rank, or those of an ONNX operator in opset packs."""
    table = merge(plugins.translations(), opset, prefer)
    known = sorted({row.target for row in plugins.translations()})
    lines: list[str] = []
    targets = _targets(op, known)
    for target in targets:
        lines.append(f"{target} at opset {opset}")
        lines += [f"  {place}. {candidate}" for place, candidate in enumerate(table.explain(target), 1)]
        lines += _shown(plugins, target, opset)
    lines += _decompositions(plugins, op, targets)
    lines += _opset_rows(plugins, op, opset)
    if not lines:
        raise _unknown(plugins, op, known)
    return lines


def _targets(op: str, known: Iterable[str]) -> list[str]:
    """The row keys that a user's text means: one operator, or all overloads of its packet."""
    name = _key(op)
    return [target for target in known if target == name or target.startswith(f"{name}.")]


def _key(op: str) -> str:
    return canonical(op if "::" in op or "." in op else f"aten::{op}")


def _decompositions(plugins: Plugins, op: str, targets: list[str]) -> list[str]:
    name = _key(op)
    table = plugins.decompositions().table
    lines = []
    for overload in table:
        target = target_name(overload)
        if target in targets or target == name or target.startswith(f"{name}."):
            for plugin, (_, fn) in table.offers(overload):
                lines.append(f"{target}: {'decomposed' if fn is not None else 'kept whole'} by {plugin}")
    return lines


def _shown(plugins: Plugins, target: str, opset: int) -> list[str]:
    """What the first sample of an operator becomes, and the rows of opset packs that this takes."""
    from atonnx.testing.graphs import capture_call
    from atonnx.testing.translate import counted, translate_call

    sample = next((s for _, s in plugins.op_samples() if target_name(s.overload) == target), None)
    if sample is None:
        return []
    table = _Recorder(plugins.opset_rows())
    try:
        call = capture_call(
            sample.overload,
            sample.made_args(),
            sample.made_kwargs(),
            dynamic=False,
            outputs=sample.options.get("outputs"),
        )
        counts = counted(translate_call(call, opset, lowerings=table))
    except OnnxExporterError as error:
        return [f"  its first sample: {str(error).splitlines()[0]}"]
    lines = [f"  its first sample becomes {', '.join(f'{n} {c}' for n, c in counts.items()) or 'nothing'}"]
    return lines + [f"    {_told(row)}" for row in table.taken]


class _Recorder(OpsetTable):
    """A table that remembers which rows were taken from it."""

    def __init__(self, rows: Iterable[OpsetRow]) -> None:
        super().__init__(rows)
        self.taken: dict[OpsetRow, None] = {}

    def _find(self, kind: str, op_type: str, domain: str, opset: int) -> OpsetRow | None:
        row = super()._find(kind, op_type, domain, opset)
        if row is not None:
            self.taken[row] = None
        return row


def _told(row: OpsetRow) -> str:
    name = f"{row.domain}::{row.op_type}" if row.domain else row.op_type
    return f"ONNX {name} {row.kind} opset {row.opset}: {row.plugin} {row.where}"


def _opset_rows(plugins: Plugins, op: str, opset: int) -> list[str]:
    domain, _, op_type = op.rpartition("::")
    table = OpsetTable(plugins.opset_rows())
    lines = []
    for row in table.of(op_type, domain):
        needed = opset < row.opset if row.kind == "below" else opset >= row.opset
        lines.append(f"{_told(row)} - {'taken' if needed else 'not needed'} at opset {opset}")
    same = [", ".join(map(str, versions)) for versions in table.same(op_type, domain)]
    return lines + [f"ONNX {op} means the same in versions {versions}" for versions in same]


def _unknown(plugins: Plugins, op: str, known: list[str]) -> OnnxExporterError:
    name = _key(op)
    hints = []
    distribution = distribution_of(name)
    if distribution:
        hints.append(f"pip install {distribution}")
    close = difflib.get_close_matches(name, known, 3)
    if close:
        hints.append(f"close names: {', '.join(close)}")
    hints += [str(record) for record in plugins.failed]
    return UnsupportedOpError("no plugin has a row for it", op=name, hint="; ".join(hints))
