"""Every version change of every ONNX operator that our packs emit is accounted for, both ways.

A change is accounted for by a statement that the versions are the same, by a row that writes the
one with the other, or by a reason in ``EXEMPT``.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import pytest

from atonnx.build.scope import NEWEST_OPSET
from atonnx.dispatch import MIN_OPSET, OpsetRow
from atonnx.plugins import load

ROOT = Path(__file__).resolve().parents[1]

# (operator, older version or 0 where there is none, newer version, "up" or "down"): the reason.
EXEMPT: dict[tuple[str, int, int, str], str] = {}

_OPTION = onnx.defs.OpSchema.FormalParameterOption


@cache
def _history() -> dict[str, dict[int, Any]]:
    found: dict[str, dict[int, Any]] = defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST_OPSET:
            found[schema.name][schema.since_version] = schema
    return found


@cache
def _emitted() -> tuple[str, ...]:
    """ONNX operators that sources of ours call on a builder, or name in a string of a translation."""
    names: set[str] = set()
    for folder in ("plugins/*/src", "core/src"):
        for path in ROOT.glob(f"{folder}/**/*.py"):
            text = path.read_text(encoding="utf-8")
            names.update(re.findall(r"\.([A-Z]\w*)\(", text))
            # A target names the operators that it measures, which is not to write them.
            if folder != "core/src" and not {"opset_packs", "ort_target"}.intersection(path.parts):
                names.update(re.findall(r'"([A-Z]\w*)"', text))
    return tuple(sorted(names & _history().keys()))


@cache
def _rows() -> dict[str, tuple[OpsetRow, ...]]:
    found: dict[str, list[OpsetRow]] = defaultdict(list)
    for row in load().opset_rows():
        if row.domain == "":
            found[row.op_type].append(row)
    return {name: tuple(rows) for name, rows in found.items()}


def _group(name: str, version: int) -> tuple[int, ...]:
    return next(
        (row.versions for row in _rows().get(name, ()) if row.kind == "same" and version in row.versions),
        (version,),
    )


def _directed(name: str, kind: str) -> dict[int, OpsetRow]:
    return {row.opset: row for row in _rows().get(name, ()) if row.kind == kind}


def _versions(name: str) -> list[int]:
    """The version in force at the lowest opset, and all newer ones."""
    versions = sorted(_history()[name])
    return [*[v for v in versions if v <= MIN_OPSET][-1:], *[v for v in versions if v > MIN_OPSET]]


def _defaults(schema: Any) -> dict[str, Any]:
    return {
        name: onnx.helper.get_attribute_value(attribute.default_value)
        if attribute.default_value.name
        else None
        for name, attribute in schema.attributes.items()
    }


def _adds(older: Any, newer: Any) -> bool:
    """Whether the newer version has inputs or attributes that the older one lacks."""
    return len(newer.inputs) > len(older.inputs) or bool(newer.attributes.keys() - older.attributes.keys())


def _gaps(name: str) -> Iterator[tuple[str, int, int, str]]:
    """Version changes of an operator that nothing accounts for."""
    history, versions = _history()[name], _versions(name)
    below, above = _directed(name, "below"), _directed(name, "above")
    live = [version for version in versions if not history[version].deprecated]
    if live and live[0] > MIN_OPSET and live[0] not in below:
        yield name, 0, live[0], "down"
    for old, new in zip(live, live[1:], strict=False):
        same = new in _group(name, old)
        if (not same or _adds(history[old], history[new])) and new not in below:
            yield name, old, new, "down"
        if not same and not any(version in above for version in _group(name, old)):
            yield name, old, new, "up"


@pytest.mark.parametrize("name", _emitted())
def test_every_version_change_of_an_operator_that_we_emit_is_accounted_for(name: str) -> None:
    assert [gap for gap in _gaps(name) if gap not in EXEMPT] == []


def test_no_exemption_is_stale() -> None:
    needed = {gap for name in _emitted() for gap in _gaps(name)}
    assert EXEMPT.keys() - needed == set()


def _same_groups() -> list[tuple[str, tuple[int, ...]]]:
    return [
        (name, row.versions) for name, rows in sorted(_rows().items()) for row in rows if row.kind == "same"
    ]


@pytest.mark.parametrize(("name", "versions"), _same_groups())
def test_versions_that_are_said_to_be_the_same_have_equal_signatures(
    name: str, versions: tuple[int, ...]
) -> None:
    history = _history()[name]
    assert set(versions) <= history.keys(), "no such version"
    between = [version for version in history if versions[0] <= version <= versions[-1]]
    assert sorted(between) == list(versions), "a version between them is left out"
    for old, new in zip(versions, versions[1:], strict=False):
        older, newer = history[old], history[new]
        for was, now in ((older.inputs, newer.inputs), (older.outputs, newer.outputs)):
            assert [part.option for part in was] == [part.option for part in now[: len(was)]]
            assert all(part.option == _OPTION.Optional for part in now[len(was) :])
        was, now = _defaults(older), _defaults(newer)
        assert was.items() <= now.items(), "an attribute went or has another default"
        assert not any(newer.attributes[added].required for added in now.keys() - was.keys())


def test_groups_of_versions_do_not_overlap() -> None:
    seen: set[tuple[str, int]] = set()
    for name, versions in _same_groups():
        keys = {(name, version) for version in versions}
        assert not keys & seen, (name, versions)
        seen |= keys


def _served() -> list[Any]:
    """Each directed row with each version whose calls it is handed."""
    cases = []
    for name, rows in sorted(_rows().items()):
        if name not in _history():
            continue
        for row in rows:
            if row.kind == "same":
                continue
            for version in _group(name, row.opset):
                if row.kind == "below" and version < row.opset:
                    continue
                cases.append(pytest.param(row, version, id=f"{name}-{row.kind}{row.opset}-{version}"))
    return cases


@pytest.mark.parametrize(("row", "version"), _served())
def test_a_row_takes_what_its_operator_takes(row: OpsetRow, version: int) -> None:
    """Inputs by position, attributes by keyword, with the schema's defaults."""
    schema = _history()[row.op_type].get(version)
    assert schema is not None, f"{row.op_type} has no version {version}"
    assert row.fn is not None
    parameters = list(inspect.signature(row.fn).parameters.values())[1:]
    kinds = {parameter.kind for parameter in parameters}
    inputs = [p for p in parameters if p.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        assert len(inputs) >= schema.max_input
    needed = [p for p in inputs if p.default is inspect.Parameter.empty]
    assert len(needed) <= max(schema.min_input, 1)
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return
    keywords = {p.name: p for p in parameters if p.kind == inspect.Parameter.KEYWORD_ONLY}
    assert schema.attributes.keys() <= keywords.keys()
    for key, default in _defaults(schema).items():
        given = keywords[key].default
        if schema.attributes[key].required:
            continue
        if isinstance(default, bytes):
            default = default.decode()
        same = given == default or (isinstance(default, float) and given == pytest.approx(default))
        assert same or (key == "num_heads" and not given) or default is None, key
