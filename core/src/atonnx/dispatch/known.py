"""Which first-party distribution translates an operator, known also where it is not installed.

``python -m atonnx.dispatch.known`` writes ``known_rows.json`` anew from the installed packs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, cast

from atonnx.plugins import load

if TYPE_CHECKING:
    from atonnx.plugins import PluginRecord, Plugins

__all__ = ["collect", "distribution_of", "text_of"]

FILE = "known_rows.json"

# Ours by name, but not something to tell a user to install.
_EXAMPLES = frozenset({"atonnx-custom-ops-example"})


def distribution_of(target: str) -> str | None:
    """The first-party distribution that has a row for the target, None if there is none."""
    return _known().get(target)


def collect(plugins: Plugins) -> dict[str, str]:
    """The distribution of each target that the first-party packs among the plugins translate."""
    ours = _first_party(plugins.records)
    found: dict[str, str] = {}
    for row in plugins.translations():
        if row.plugin in ours:
            name = ours[row.plugin]
            found[row.target] = min(name, found.get(row.target, name))
    return found


def text_of(known: dict[str, str]) -> str:
    """The file's text: sorted, one operator a line."""
    return json.dumps(known, indent=0, sort_keys=True) + "\n"


def _first_party(records: Iterable[PluginRecord]) -> dict[str, str]:
    return {
        record.name: record.distribution
        for record in records
        if record.distribution.startswith("atonnx-") and record.distribution not in _EXAMPLES
    }


@cache
def _known() -> dict[str, str]:
    return cast("dict[str, str]", json.loads(files("atonnx.dispatch").joinpath(FILE).read_text("utf-8")))


def main() -> None:
    """Write the file."""
    path = Path(__file__).with_name(FILE)
    known = collect(load())
    path.write_text(text_of(known), encoding="utf-8")
    print(f"{len(known)} operators in {path.name}")


if __name__ == "__main__":
    main()
