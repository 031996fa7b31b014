"""``check_plugin``: whether a pack keeps the contract of rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch

from atonnx.build._torch import OpOverload
from atonnx.build.scope import NEWEST_OPSET
from atonnx.dispatch import MIN_OPSET, OpsetRow, Translation, check_row, target_name
from atonnx.errors import OnnxExporterError, PluginError
from atonnx.plugins import load
from atonnx.testing.op_samples import OpSample, samples
from atonnx.testing.translate import translate_op

__all__ = ["check_plugin", "overload_named"]


def check_plugin(name: str) -> list[str]:
    """What is wrong with a plugin's rows and samples; empty if nothing is.

    Rows: parameters are those of the overload's schema, there is a docstring, there is a sample.
    Samples: each is of an operator that the plugin has, and is translated at the lowest and at the
    newest opset that its row claims, with symbolic sizes where it is the operator's first. Rows of opset
    packs: there is a docstring. No model is run.
    """
    plugins = load()
    record = plugins.record(name)
    if record is None:
        known = ", ".join(r.name for r in plugins.records) or "none"
        raise PluginError(f"no plugin is named {name}", hint=f"the plugins are: {known}")
    rows = [row for row in plugins.translations() if row.plugin == name]
    opset_rows = [row for row in plugins.opset_rows() if row.plugin == name]
    given = samples(name)
    if record.state != "loaded":
        return [str(record)]
    found = [problem for row in rows for problem in _row_problems(row)]
    found += [problem for row in opset_rows for problem in _opset_row_problems(row)]
    found += _sample_problems(rows, given)
    return list(dict.fromkeys(found))


def _row_problems(row: Translation) -> list[str]:
    found = []
    overload = row.overload if row.overload is not None else overload_named(row.target)
    try:
        check_row(row, overload)
    except PluginError as error:
        found.append(str(error))
    if not (row.fn.__doc__ or "").strip():
        found.append(f"{row.target}: no docstring ({row.where})")
    return found


def _opset_row_problems(row: OpsetRow) -> list[str]:
    if row.fn is None or (row.fn.__doc__ or "").strip():
        return []
    return [f"ONNX {row.op_type} {row.kind} {row.opset}: no docstring ({row.where})"]


def _sample_problems(rows: Iterable[Translation], given: Iterable[OpSample]) -> list[str]:
    by_target: dict[str, list[Translation]] = {}
    for row in rows:
        by_target.setdefault(row.target, []).append(row)
    found = []
    sampled = set()
    for sample in given:
        target = target_name(sample.overload)
        # Symbolic sizes take three times as long to trace.
        dynamic = target not in sampled and sample.options.get("dynamic", True)
        sampled.add(target)
        if target not in by_target:
            if not _is_written(sample.overload):
                found.append(f"{target}: a sample, but no row")
            continue
        for opset in _claimed(by_target[target], sample):
            problem = _translation_problem(sample, opset, dynamic)
            if problem:
                found.append(f"{target}: a sample fails at opset {opset}: {problem}")
    for target, candidates in by_target.items():
        overload = candidates[0].overload
        overload = overload if overload is not None else overload_named(target)
        if target not in sampled and _has_own_result(overload):
            found.append(f"{target}: no sample ({candidates[0].where})")
    return found


def _claimed(rows: Iterable[Translation], sample: OpSample) -> list[int]:
    """The lowest and the highest opset that the rows and the sample are for."""
    ranged = range(MIN_OPSET, NEWEST_OPSET + 1)
    both = [o for o in ranged if sample.serves(o) and any(row.serves(o) for row in rows)]
    return sorted({both[0], both[-1]}) if both else []


def _translation_problem(sample: OpSample, opset: int, dynamic: bool) -> str:
    try:
        translate_op(
            sample.overload,
            *sample.made_args(),
            opset=opset,
            dynamic=dynamic,
            outputs=sample.options.get("outputs"),
            **sample.made_kwargs(),
        )
    except OnnxExporterError as error:
        return _first_line(error)
    except Exception as error:  # a row, or a sample, may fail in any way
        return f"{type(error).__name__}: {_first_line(error)}"
    return ""


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _is_written(overload: Any) -> bool:
    """In-place and out= overloads are served by the functional row."""
    schema = getattr(overload, "_schema", None)
    return schema is not None and schema.is_mutable


def _has_own_result(overload: Any) -> bool:
    """Whether it is an overload that computes something, not in place."""
    is_overload = isinstance(overload, OpOverload)
    return is_overload and not _is_written(overload) and bool(overload._schema.returns)


def overload_named(target: str) -> Any:
    """The overload that a row's target names; None for other callables and unknown names."""
    match = re.fullmatch(r"(\w+)::(\w+)(?:\.(\w+))?", target)
    if match is None or match[1].startswith("_"):
        return None
    packet = getattr(getattr(torch.ops, match[1]), match[2], None)
    return getattr(packet, match[3] or "default", None)
