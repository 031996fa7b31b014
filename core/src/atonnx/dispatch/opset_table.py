"""Opset rows of all packs, found by operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from atonnx.dispatch.row import OpsetRow
from atonnx.errors import PluginConflictError

__all__ = ["OpsetTable"]


class OpsetTable:
    """The rows of opset packs. Two rows for one version change are a conflict when looked up.

    ``prefer`` settles it by operator: ``{"Gelu": "my_pack"}``, ``{"com.example::Op": "my_pack"}``.
    """

    def __init__(self, rows: Iterable[OpsetRow], prefer: Mapping[str, str] | None = None) -> None:
        self._prefer = dict(prefer or {})
        self._directed: dict[tuple[str, str, str, int], list[OpsetRow]] = {}
        groups: dict[tuple[str, str], set[tuple[int, ...]]] = {}
        for row in rows:
            if row.kind == "same":
                groups.setdefault((row.op_type, row.domain), set()).add(row.versions)
            else:
                self._directed.setdefault((row.kind, row.op_type, row.domain, row.opset), []).append(row)
        self._same = {key: tuple(sorted(found)) for key, found in groups.items()}

    def below(self, op_type: str, domain: str, opset: int) -> OpsetRow | None:
        """The row that writes the operator's version of ``opset`` for lower targets."""
        return self._find("below", op_type, domain, opset)

    def above(self, op_type: str, domain: str, opset: int) -> OpsetRow | None:
        """The row that writes the operator's version of ``opset`` for higher targets."""
        return self._find("above", op_type, domain, opset)

    def of(self, op_type: str, domain: str) -> tuple[OpsetRow, ...]:
        """The directed rows of an operator, by version."""
        found = [row for key, rows in self._directed.items() if key[1:3] == (op_type, domain) for row in rows]
        return tuple(sorted(found, key=lambda row: (row.kind, row.opset, row.plugin, row.where)))

    def same(self, op_type: str, domain: str) -> tuple[tuple[int, ...], ...]:
        """The groups of versions that mean the same."""
        return self._same.get((op_type, domain), ())

    def _find(self, kind: str, op_type: str, domain: str, opset: int) -> OpsetRow | None:
        rows = self._directed.get((kind, op_type, domain, opset))
        if rows is None:
            return None
        if len(rows) == 1:
            return rows[0]
        name = f"{domain}::{op_type}" if domain else op_type
        chosen = [row for row in rows if row.plugin == self._prefer.get(name)]
        if len(chosen) == 1:
            return chosen[0]
        plugins = [row.plugin for row in rows]
        places = "\n".join(f"  {row.plugin}: {row.where}" for row in rows)
        hint = (
            f'choose one with prefer={{"{name}": "{plugins[0]}"}}'
            if len(set(plugins)) > 1
            else "remove all but one"
        )
        raise PluginConflictError(
            f"{len(rows)} rows write {name} {kind} opset {opset}:\n{places}",
            target=name,
            plugins=plugins,
            hint=hint,
        )
