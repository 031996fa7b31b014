"""Choosing a row: merging is a pure function, rank never depends on the order of plugins.

Rank, highest first: the user's own rows, rows of the plugin that ``prefer`` names, ``priority``, rows
with ``when`` that holds, the highest ``since``. Equal rank is a conflict, raised when it is looked up.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from atonnx.dispatch.row import NodeView, Translation, canonical, target_name
from atonnx.errors import PluginConflictError, PluginError

__all__ = ["Candidate", "DispatchTable", "merge"]

Rows = tuple[Translation, ...]
Level = tuple[bool, bool, int, bool, int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of a target and what becomes of it; ``usable`` rows are asked in the order given."""

    row: Translation
    usable: bool
    verdict: str
    custom: bool = False

    def __str__(self) -> str:
        row = self.row
        span = f"opset {row.since}+" if row.until is None else f"opset {row.since}-{row.until - 1}"
        facts = [span]
        if row.when is not None:
            facts.append("when")
        if row.priority:
            facts.append(f"priority {row.priority}")
        if row.complex != "none":
            facts.append(f"complex {row.complex}")
        owner = row.plugin or ("custom" if self.custom else "(no plugin)")
        name = getattr(row.fn, "__qualname__", type(row.fn).__name__)
        return f"{owner}: {name} [{', '.join(facts)}] {row.where} - {self.verdict}"


class DispatchTable:
    """The rows for one opset. Immutable: :meth:`with_custom` makes another."""

    def __init__(
        self,
        opset: int,
        rows: Mapping[str, Rows],
        prefer: Mapping[str, str],
        custom: Mapping[str, Rows] | None = None,
    ) -> None:
        self.opset = opset
        self._rows = rows
        self._prefer = prefer
        self._custom = dict(custom or {})
        # Settled lookups, for real and for complex operands: most targets have one plain row.
        self._real: dict[str, Translation] = {}
        self._complex: dict[str, Translation] = {}
        for target, candidates in rows.items():
            if len(candidates) == 1 and target not in self._custom:
                row = candidates[0]
                if row.when is None and row.serves(opset):
                    self._settle(target, row)

    def find(self, target: str, node: NodeView | None = None, complex: bool = False) -> Translation | None:
        """The row for a node of the target, None if there is none.

        Without a node, rows with ``when`` do not apply. ``complex``: an operand or result is complex.
        """
        row = (self._complex if complex else self._real).get(target)
        return row if row is not None else self._search(target, node, complex)

    def explain(self, target: str) -> list[Candidate]:
        """All rows of the target in the order of their rank, those that cannot apply last, with reasons."""
        target = target_name(target)
        usable = sorted((row for row in self._of(target) if row.serves(self.opset)), key=self._order)
        rest = sorted((row for row in self._of(target) if not row.serves(self.opset)), key=self._order)
        found = [self._candidate(row, usable) for row in usable]
        found += [Candidate(row, False, f"not for opset {self.opset}", self._is_custom(row)) for row in rest]
        return found

    def targets(self) -> tuple[str, ...]:
        """The targets that have a row at this opset."""
        names = set(self._rows) | set(self._custom)
        return tuple(sorted(t for t in names if any(row.serves(self.opset) for row in self._of(t))))

    def conflicts(self) -> list[PluginConflictError]:
        """The targets that cannot be looked up, whatever the node: rows of equal rank without ``when``."""
        found: dict[str, PluginConflictError] = {}
        for target in self.targets():
            for complex in (False, True):
                try:
                    self.find(target, None, complex)
                except PluginConflictError as error:
                    found.setdefault(target, error)
        return list(found.values())

    def with_custom(self, rows: Iterable[Translation]) -> DispatchTable:
        """A table in which these rows, the user's own, come before all others."""
        custom = dict(self._custom)
        for row in rows:
            custom[row.target] = (*custom.get(row.target, ()), row)
        if custom == self._custom:
            return self
        return DispatchTable(self.opset, self._rows, self._prefer, custom)

    def _settle(self, target: str, row: Translation) -> None:
        if row.takes(False):
            self._real[target] = row
        if row.takes(True):
            self._complex[target] = row

    def _of(self, target: str) -> Rows:
        return (*self._custom.get(target, ()), *self._rows.get(target, ()))

    def _is_custom(self, row: Translation) -> bool:
        return any(row is own for own in self._custom.get(row.target, ()))

    def _owner(self, row: Translation) -> str:
        return row.plugin or ("custom" if self._is_custom(row) else "(no plugin)")

    def _level(self, row: Translation) -> Level:
        """The rank. ``since`` orders plain rows only: it does not say which of two conditions counts."""
        return (
            self._is_custom(row),
            bool(row.plugin) and self._prefer.get(row.target) == row.plugin,
            row.priority,
            row.when is not None,
            0 if row.when is not None else row.since,
        )

    def _order(self, row: Translation) -> tuple[Any, ...]:
        custom, preferred, priority, conditional, since = self._level(row)
        return (
            not custom,
            not preferred,
            -priority,
            not conditional,
            -since,
            -row.since,
            row.plugin,
            row.where,
        )

    def _search(self, target: str, node: NodeView | None, complex: bool) -> Translation | None:
        best: list[Translation] = []
        level: Level | None = None
        plain = True
        rows = [row for row in self._of(target) if row.takes(complex) and row.serves(self.opset)]
        for row in sorted(rows, key=self._order):
            if level is not None and self._level(row) != level:
                break
            if row.when is not None:
                plain = False
                if node is None or not _holds(row, node):
                    continue
            best.append(row)
            level = self._level(row)
        if len(best) > 1:
            raise self._conflict(target, best)
        if not best:
            return None
        if plain:
            (self._complex if complex else self._real)[target] = best[0]
        return best[0]

    def _conflict(self, target: str, rows: list[Translation]) -> PluginConflictError:
        plugins = list(dict.fromkeys(self._owner(row) for row in rows))
        places = "\n".join(f"  {self._owner(row)}: {row.where}" for row in rows)
        if len(plugins) > 1:
            text = f"plugins {' and '.join(plugins)} translate {target} at equal rank:\n{places}"
            hint = f'choose one with prefer={{"{target}": "{plugins[0]}"}}'
        else:
            text = f"plugin {plugins[0]} translates {target} twice at equal rank:\n{places}"
            hint = "give one a higher priority, or make their conditions exclude each other"
        return PluginConflictError(text, target=target, plugins=plugins, hint=hint)

    def _candidate(self, row: Translation, ranked: list[Translation]) -> Candidate:
        custom = self._is_custom(row)
        level = self._level(row)
        others = [other for other in ranked if other is not row and _overlap(row, other)]
        rivals = [other for other in others if self._level(other) == level]
        above = [other for other in others if self._level(other) > level]
        hidden = next((other for other in above if _covers(other, row)), None)
        if hidden is not None:
            why = _outranked(self._level(hidden), level)
            verdict = f"not chosen: {self._owner(hidden)} comes first ({why})"
            return Candidate(row, True, verdict, custom)
        if rivals and row.when is None:
            names = ", ".join(dict.fromkeys(other.plugin for other in rivals))
            return Candidate(row, True, f"conflict: {names} at equal rank", custom)
        if row.when is not None:
            verdict = "chosen where its condition holds"
            if rivals:
                verdict += "; a conflict where another's holds as well"
        else:
            verdict = "chosen where no row above it applies" if above else "chosen"
        return Candidate(row, True, verdict, custom)


def merge(rows: Iterable[Translation], opset: int, prefer: Mapping[Any, str] | None = None) -> DispatchTable:
    """Make the table of all rows for an opset.

    ``prefer`` names the plugin that comes first for a target: ``{"aten::gelu": "my_pack"}``; keys may be
    overloads. A key that no row has may belong to a decomposition or pass, and is left to it.
    """
    by_target: dict[str, list[Translation]] = {}
    for row in rows:
        by_target.setdefault(row.target, []).append(row)
    wanted: dict[str, str] = {}
    for key, plugin in (prefer or {}).items():
        name = _prefer_key(key, by_target)
        owners = sorted({row.plugin for row in by_target.get(name, ())})
        if owners and plugin not in owners:
            raise PluginError(
                f"prefer: plugin {plugin} has no translation of {name}",
                plugins=(plugin,),
                hint=f"those that have one: {', '.join(owners)}",
            )
        wanted[name] = plugin
    return DispatchTable(opset, {target: tuple(found) for target, found in by_target.items()}, wanted)


def _prefer_key(key: Any, targets: Container[str]) -> str:
    """A key of ``prefer`` as the table has it; what is no target (a pass, a domain) stays as it is."""
    if isinstance(key, str) and "::" not in key:
        name = canonical(key) if "." in key else key
        return name if name in targets else key
    return target_name(key)


def _holds(row: Translation, node: NodeView) -> bool:
    condition = row.when
    try:
        return condition is not None and bool(condition(node))
    except Exception as error:
        raise PluginError(
            f"the condition of {row.target} in plugin {row.plugin} failed ({row.where}): "
            f"{type(error).__name__}: {error}",
            plugins=(row.plugin,),
        ) from error


def _overlap(one: Translation, other: Translation) -> bool:
    """Whether some operand is for both rows."""
    return any(one.takes(kind) and other.takes(kind) for kind in (False, True))


def _covers(upper: Translation, lower: Translation) -> bool:
    """Whether the upper row always applies where the lower would."""
    return upper.when is None and all(upper.takes(kind) or not lower.takes(kind) for kind in (False, True))


def _outranked(upper: Level, lower: Level) -> str:
    reasons = ("the user's own", "preferred", "higher priority", "has a condition", "newer since")
    return next(
        (why for why, high, low in zip(reasons, upper, lower, strict=True) if high != low), "equal rank"
    )
