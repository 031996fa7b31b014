"""The loaded plugins, asked hook by hook and plugin by plugin.

The answers are sorted by plugin name, and nothing depends on that order: two answers of equal rank
are a conflict, which ``prefer`` settles.
"""

from __future__ import annotations

import dataclasses
import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import pluggy

from atonnx.errors import OnnxExporterWarning, PluginApiError, PluginConflictError, PluginLoadError
from atonnx.plugins.records import PluginRecord
from atonnx.plugins.types import DomainInfo, PassSpec, Prefer, Target

if TYPE_CHECKING:
    import torch.fx

    from atonnx.dispatch import OpsetRow, Translation

__all__ = ["Decompositions", "Offers", "Plugins"]

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
D = TypeVar("D", bound=Any)

Decomposition = Callable[..., Any]


class Offers(Mapping[K, V], Generic[K, V]):
    """What plugins offer, by key. Looking up a key with two different offers is a conflict.

    ``same`` gives what two offers are compared by.
    """

    def __init__(
        self,
        kind: str,
        offers: Iterable[tuple[K, str, V]],
        *,
        same: Callable[[V], object] = lambda value: value,
        prefer: Prefer | None = None,
    ) -> None:
        self._kind = kind
        self._all = tuple(offers)
        self._same = same
        self._prefer = dict(prefer or {})
        self._by_key: dict[K, list[tuple[str, V]]] = {}
        for key, plugin, value in self._all:
            self._by_key.setdefault(key, []).append((plugin, value))

    def __getitem__(self, key: K) -> V:
        offers = self._settled(key)
        first = offers[0][1]
        if all(self._same(value) == self._same(first) for _, value in offers[1:]):
            return first
        label = _label(key)
        plugins = [plugin for plugin, _ in offers]
        raise PluginConflictError(
            f"{self._kind} {label}: plugins {' and '.join(plugins)} each have their own",
            target=label,
            plugins=plugins,
            hint=f'choose one with prefer={{"{label}": "{plugins[0]}"}}',
        )

    def __iter__(self) -> Iterator[K]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def offers(self, key: K) -> tuple[tuple[str, V], ...]:
        """All (plugin, value) for a key."""
        return tuple(self._by_key.get(key, ()))

    @property
    def conflicts(self) -> dict[K, tuple[str, ...]]:
        """The keys that cannot be looked up, with the plugins concerned."""
        found = {}
        for key in self._by_key:
            try:
                self[key]
            except PluginConflictError as error:
                found[key] = error.plugins
        return found

    def preferring(self, prefer: Prefer) -> Offers[K, V]:
        """The same offers, conflicts settled by ``prefer``."""
        return Offers(self._kind, self._all, same=self._same, prefer=prefer)

    def _settled(self, key: K) -> list[tuple[str, V]]:
        offers = self._by_key[key]
        chosen = self._prefer.get(_label(key))
        return [offer for offer in offers if offer[0] == chosen] or offers


class Decompositions(NamedTuple):
    """Decompositions by overload, each (plugin, fn or None to keep whole), and (plugin, provider) pairs."""

    table: Offers[Any, tuple[str, Decomposition | None]]
    providers: list[tuple[str, Decomposition]]

    def functions(self, prefer: Prefer | None = None) -> Offers[Any, Decomposition | None]:
        """The table without plugins' names; a conflict that ``prefer`` does not settle is still lazy."""
        named = ((key, plugin, fn) for key in self.table for plugin, (_, fn) in self.table.offers(key))
        return Offers("decomposition of", named, prefer=prefer)


class Plugins:
    """Typed access to what the plugins of ``records`` return.

    What a hook gives once a process is asked for at first use and kept. A hook that raises, or returns
    what it should not, offers nothing: its plugin's record says so and a warning is given once.
    """

    def __init__(
        self, manager: pluggy.PluginManager, records: Iterable[PluginRecord], *, strict: bool = False
    ) -> None:
        self.records = tuple(records)
        self._manager = manager
        self._strict = strict
        self._kept: dict[str, Any] = {}
        self._told: set[tuple[str, str]] = set()
        self._lock = threading.RLock()

    @property
    def failed(self) -> tuple[PluginRecord, ...]:
        """The records of plugins that failed, at loading or in a hook."""
        return tuple(record for record in self.records if record.state == "failed")

    def record(self, name: str) -> PluginRecord | None:
        """The record of the plugin of that name."""
        return next((record for record in self.records if record.name == name), None)

    def translations(self) -> tuple[Translation, ...]:
        """All rows, each with its plugin's name."""

        def ask() -> tuple[Translation, ...]:
            answers = self._ask("atonnx_translations", lambda answer: _rows(answer, "Translation"))
            return tuple(_stamped(answers))

        return self._keep("translations", ask)

    def translation_tables(self, opset: int) -> list[tuple[str, dict[Any, Any]]]:
        """(plugin, plain table) for this opset."""
        answers = self._ask("atonnx_translation_tables", lambda answer: _listed(answer, dict), opset=opset)
        return [(plugin, table) for plugin, tables in answers for table in tables]

    def decompositions(self) -> Decompositions:
        """The decompositions by overload, and the providers."""

        def ask() -> Decompositions:
            table: list[tuple[Any, str, tuple[str, Decomposition | None]]] = []
            providers: list[tuple[str, Decomposition]] = []
            for plugin, parts in self._ask("atonnx_decompositions", _decompositions):
                for part in parts:
                    if isinstance(part, Mapping):
                        table.extend((overload, plugin, (plugin, fn)) for overload, fn in part.items())
                    else:
                        providers.append((plugin, part))
            return Decompositions(Offers("decomposition of", table, same=lambda pair: pair[1]), providers)

        return self._keep("decompositions", ask)

    def opset_rows(self) -> tuple[OpsetRow, ...]:
        """All rows of opset packs, each with its plugin's name."""

        def ask() -> tuple[OpsetRow, ...]:
            answers = self._ask("atonnx_opset_packs", lambda answer: _rows(answer, "OpsetRow"))
            return tuple(_stamped(answers))

        return self._keep("opset_rows", ask)

    def passes(self, prefer: Prefer | None = None) -> tuple[PassSpec, ...]:
        """All graph passes, each with its plugin's name. Two passes of one name are a conflict."""
        answers = self._ask("atonnx_passes", lambda answer: _listed(answer, PassSpec))
        specs = [(spec.name, spec.plugin, spec) for spec in _stamped(answers)]
        return tuple(Offers("pass", specs, prefer=prefer).values())

    def program_passes(self) -> tuple[tuple[str, Callable[..., Any]], ...]:
        """(plugin, function) of all passes over the captured program."""
        return self._pairs("atonnx_program_passes", _is_function)

    def capture_patches(self) -> tuple[tuple[str, Any], ...]:
        """(plugin, context manager) of all capture patches, new ones at each call."""
        return self._pairs("atonnx_capture_patches", lambda item: hasattr(item, "__enter__"))

    def domains(self) -> Offers[str, DomainInfo]:
        """The operator domains by name."""

        def ask() -> Offers[str, DomainInfo]:
            answers = self._ask("atonnx_domains", lambda answer: _listed(answer, DomainInfo))
            return Offers("domain", [(info.domain, info.plugin, info) for info in _stamped(answers)])

        return self._keep("domains", ask)

    def missing_translation(
        self, node: torch.fx.Node, opset: int, prefer: Prefer | None = None
    ) -> Translation | None:
        """The row that a plugin has for a node of an unknown operator; two answers are a conflict."""

        def convert(answer: Any) -> list[Any]:
            return [] if answer is None else _rows(answer, "Translation")

        answers = self._ask("atonnx_missing_translation", convert, node=node, opset=opset)
        rows = list(_stamped(answers))
        if not rows:
            return None
        target: str = rows[0].target
        offers: list[tuple[str, str, Translation]] = [(target, row.plugin, row) for row in rows]
        return Offers("translation of", offers, prefer=prefer)[target]

    def targets(self) -> Offers[str, Target]:
        """The runtimes to export for, by name."""

        def ask() -> Offers[str, Target]:
            answers = self._ask("atonnx_targets", lambda answer: _listed(answer, Target))
            return Offers("target", [(target.name, target.plugin, target) for target in _stamped(answers)])

        return self._keep("targets", ask)

    def op_samples(self) -> tuple[tuple[str, Any], ...]:
        """(plugin, sample) of all test inputs."""
        return self._keep("op_samples", lambda: self._pairs("atonnx_op_samples", lambda item: True))

    def cli(self, make: Callable[[], T]) -> list[tuple[str, T]]:
        """(plugin, its own ``make()``) of the plugins that add sub-commands to what they are given."""
        found: list[tuple[str, T]] = []
        for impl in self._impls("atonnx_cli"):
            own = make()
            asked = self._call(impl, "atonnx_cli", lambda answer: None, {"commands": own})
            found += [(plugin, own) for plugin, _ in asked]
        return found

    def _pairs(self, hook: str, fits: Callable[[Any], bool]) -> tuple[tuple[str, Any], ...]:
        def convert(answer: Any) -> list[Any]:
            items = _flat(answer)
            for item in items:
                if not fits(item):
                    raise PluginApiError(f"returned {item!r}, which is not what the hook is for")
            return items

        return tuple((plugin, item) for plugin, items in self._ask(hook, convert) for item in items)

    def _keep(self, name: str, ask: Callable[[], T]) -> T:
        with self._lock:
            if name not in self._kept:
                self._kept[name] = ask()
            return cast("T", self._kept[name])

    def _ask(self, hook: str, convert: Callable[[Any], T], **arguments: Any) -> list[tuple[str, T]]:
        """Every plugin's answer. Hooks are called one by one, so that a failure is one plugin's own."""
        answers: list[tuple[str, T]] = []
        for impl in self._impls(hook):
            answers += self._call(impl, hook, convert, arguments)
        return answers

    def _impls(self, hook: str) -> list[pluggy.HookImpl]:
        return sorted(getattr(self._manager.hook, hook).get_hookimpls(), key=lambda impl: impl.plugin_name)

    def _call(
        self, impl: pluggy.HookImpl, hook: str, convert: Callable[[Any], T], arguments: Mapping[str, Any]
    ) -> list[tuple[str, T]]:
        """One plugin's answer; none if it fails."""
        try:
            answer = impl.function(*(arguments[name] for name in impl.argnames))
            return [(impl.plugin_name, convert(answer))]
        except (Exception, SystemExit) as error:  # a plugin may fail in any way
            self._fail(impl.plugin_name, hook, error)
            return []

    def _fail(self, plugin: str, hook: str, error: BaseException) -> None:
        record = self.record(plugin)
        if record is None:
            raise error
        record.fail(error, during=hook)
        if self._strict:
            raise PluginLoadError(record) from error
        if (plugin, hook) not in self._told:
            self._told.add((plugin, hook))
            told = PluginRecord(record.name, record.distribution, record.version, record.value)
            told.fail(error, during=hook)
            warnings.warn(str(told), OnnxExporterWarning, stacklevel=6)


def _label(key: Any) -> str:
    """The key as the user writes it in ``prefer``: an overload's own name, else the text."""
    name = getattr(key, "name", None)
    return str(name()) if callable(name) else str(key)


def _flat(answer: Any) -> list[Any]:
    """A hook's answer as a list: None is nothing, one thing is a list of one, lists may be nested."""
    if answer is None:
        return []
    if isinstance(answer, (list, tuple)) and not hasattr(answer, "_fields"):
        return [item for part in answer for item in _flat(part)]
    if isinstance(answer, Iterator):
        return _flat(list(answer))
    return [answer]


def _listed(answer: Any, kind: type[T]) -> list[T]:
    items = _flat(answer)
    for item in items:
        if not isinstance(item, kind):
            raise PluginApiError(f"returned a {type(item).__name__}, expected {kind.__name__}")
    return items


def _rows(answer: Any, kind: str) -> list[Any]:
    """The rows of tables, packs and lists of both. Known by class name: the classes are in a later layer."""
    rows: list[Any] = []
    for item in _flat(answer):
        rows.extend(item.rows if hasattr(item, "rows") else [item])
    for row in rows:
        if type(row).__name__ != kind:
            raise PluginApiError(f"returned a {type(row).__name__}, expected rows of type {kind}")
    return rows


def _stamped(answers: Iterable[tuple[str, list[D]]]) -> Iterator[D]:
    for plugin, items in answers:
        for item in items:
            yield dataclasses.replace(item, plugin=plugin)


def _decompositions(answer: Any) -> list[Any]:
    parts = _flat(answer)
    for part in parts:
        if not isinstance(part, Mapping) and not _is_function(part):
            raise PluginApiError(f"returned a {type(part).__name__}, expected a dict or a provider")
    return parts


def _is_function(item: Any) -> bool:
    return callable(item) and not isinstance(item, type)
