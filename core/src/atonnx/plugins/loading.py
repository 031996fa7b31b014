"""Finding and loading plugins: one bad plugin is one record, not a crash."""

from __future__ import annotations

import difflib
import inspect
import os
import threading
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import importlib_metadata
import pluggy

from atonnx.errors import OnnxExporterWarning, PluginApiError, PluginConflictError, PluginLoadError
from atonnx.plugins import specs
from atonnx.plugins.manager import Plugins
from atonnx.plugins.markers import PROJECT
from atonnx.plugins.records import PluginRecord

__all__ = ["API", "GROUP", "EntryPoint", "Policy", "load"]

GROUP = "atonnx"
"""The entry-point group."""

API = (1, 0)
"""Version of the plugin interface. A plugin's ``ATONNX_API`` has the same major and no higher minor."""


class EntryPoint(Protocol):
    """What loading needs of an ``importlib_metadata.EntryPoint``."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def dist(self) -> Any: ...
    def load(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Policy:
    """Which plugins may load, and whether a failure is an error."""

    allow: frozenset[str] | None = None
    block: frozenset[str] = frozenset()
    strict: bool = False

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Policy:
        """Read ATONNX_PLUGINS (set but empty: none), ATONNX_DISABLE_PLUGINS and ATONNX_STRICT_PLUGINS."""
        allow = environment.get("ATONNX_PLUGINS")
        return cls(
            allow=None if allow is None else _names(allow),
            block=_names(environment.get("ATONNX_DISABLE_PLUGINS", "")),
            strict=environment.get("ATONNX_STRICT_PLUGINS", "") not in ("", "0"),
        )

    def refusal(self, name: str) -> str:
        """Why the plugin may not load; empty when it may."""
        if name in self.block:
            return "named by ATONNX_DISABLE_PLUGINS"
        if self.allow is not None and name not in self.allow:
            return "not named by ATONNX_PLUGINS"
        return ""


def load(
    *, refresh: bool = False, entry_points: Iterable[EntryPoint] | None = None, policy: Policy | None = None
) -> Plugins:
    """The plugins of this process, loaded at the first call.

    ``refresh`` loads them anew. ``entry_points`` (with ``policy``) takes the place of what is installed:
    such a set is the caller's own, unless ``refresh`` makes it that of the process.
    """
    global _cached
    with _lock:
        if (entry_points is not None or policy is not None) and not refresh:
            return _load(entry_points, policy)
        if _cached is None or refresh:
            _cached = _load(entry_points, policy)
        return _cached


_cached: Plugins | None = None
_lock = threading.RLock()


def _load(entry_points: Iterable[EntryPoint] | None, policy: Policy | None) -> Plugins:
    policy = Policy.of(os.environ) if policy is None else policy
    found: Iterable[Any] = (
        importlib_metadata.entry_points(group=GROUP) if entry_points is None else entry_points
    )
    points = sorted(found, key=lambda point: (point.name, point.value))
    _warn_of_absent(policy, [point.name for point in points])
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(specs)
    hooks = frozenset(specs.__all__)
    counts = Counter(point.name for point in points)
    records = []
    for point in points:
        record = _record(point)
        records.append(record)
        if refusal := policy.refusal(point.name):
            record.block(refusal)
            continue
        try:
            if counts[point.name] > 1:
                raise _same_name(point.name, points)
            plugin = point.load()
            _check_api(plugin, point.name)
            _check_hooks(plugin, point.name, manager, hooks)
            _register(plugin, point.name, manager)
        except (Exception, SystemExit) as error:  # a plugin may fail in any way
            record.fail(error)
            if policy.strict:
                raise PluginLoadError(record) from error
            warnings.warn(str(record), OnnxExporterWarning, stacklevel=3)
    return Plugins(manager, records, strict=policy.strict)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.replace(",", " ").split())


def _record(point: EntryPoint) -> PluginRecord:
    dist = point.dist
    return PluginRecord(point.name, dist.name if dist else "", dist.version if dist else "", point.value)


def _warn_of_absent(policy: Policy, names: list[str]) -> None:
    for name in sorted((policy.allow or frozenset()).difference(names)):
        close = difflib.get_close_matches(name, names, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        warnings.warn(
            f"ATONNX_PLUGINS names {name}, which is not installed{hint}", OnnxExporterWarning, stacklevel=4
        )


def _same_name(name: str, points: list[Any]) -> PluginConflictError:
    owners = [f"{_record(p).distribution or '?'} ({p.value})" for p in points if p.name == name]
    return PluginConflictError(
        f"several distributions have a plugin named {name}: {', '.join(owners)}",
        target=name,
        plugins=(name,) * len(owners),
        hint="uninstall all but one",
    )


def _check_api(plugin: Any, name: str) -> None:
    """Refuse a plugin for another version of the interface, or for none."""
    ours = f"{API[0]}.{API[1]}"
    stated = getattr(plugin, "ATONNX_API", None)
    if stated is None:
        raise PluginApiError(
            f"plugin {name} does not state ATONNX_API", plugins=(name,), hint=f"ATONNX_API = {API}"
        )
    if not (isinstance(stated, tuple) and len(stated) == 2 and all(type(part) is int for part in stated)):
        raise PluginApiError(
            f"plugin {name} has ATONNX_API = {stated!r}, which is not a pair of integers",
            plugins=(name,),
            hint=f"ATONNX_API = {API}",
        )
    major, minor = stated
    if major != API[0] or minor > API[1]:
        wanted = "update atonnx-core" if (major, minor) > API else "update the plugin"
        raise PluginApiError(
            f"plugin {name} is written for plugin API {major}.{minor}, this atonnx has {ours}",
            plugins=(name,),
            hint=wanted,
        )


def _check_hooks(plugin: Any, name: str, manager: pluggy.PluginManager, hooks: frozenset[str]) -> None:
    """Refuse hooks that do not exist, and hooks that would never be called.

    Done before registering: pluggy keeps a caller for an unknown hook in the manager that all share.
    """
    for attribute in dir(plugin):
        options = manager.parse_hookimpl_opts(plugin, attribute)
        if options is None:
            if attribute in hooks and inspect.isroutine(getattr(plugin, attribute)):
                raise PluginApiError(
                    f"plugin {name}: {attribute} is not marked as a hook",
                    plugins=(name,),
                    hint="add @hookimpl",
                )
            continue
        hook = options.get("specname") or attribute
        if hook not in hooks and not options.get("optionalhook"):
            close = difflib.get_close_matches(hook, sorted(hooks), 1, cutoff=0.0)[0]
            raise PluginApiError(
                f"plugin {name} implements {hook}, which is no hook; the closest is {close}", plugins=(name,)
            )
        if options.get("wrapper") or options.get("hookwrapper"):
            raise PluginApiError(
                f"plugin {name}: {hook} is a hook wrapper; every plugin's hooks are called by themselves",
                plugins=(name,),
            )


def _register(plugin: Any, name: str, manager: pluggy.PluginManager) -> None:
    try:
        manager.register(plugin, name=name)
    except pluggy.PluginValidationError as error:
        # The name and the hooks before the bad one stay registered otherwise.
        manager.unregister(name=name)
        raise PluginApiError(f"plugin {name}: {error}", plugins=(name,)) from error
