"""``--observe SCRIPT.py[:NAME]``: run a script, and take the model that it calls with its arguments."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import typer

from atonnx.cli.source import Source
from atonnx.observer import InputObserver

__all__ = ["observed"]

_HINT = "--observe"
_CALLS = 3


def observed(text: str) -> tuple[Source, InputObserver]:
    """The model that a script calls, as ``export()`` takes it, and what was observed of it."""
    path, name = _script(text)
    watch = _Watch()
    with watch.calls(), _as_main(path) as module:
        try:
            exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
        except SystemExit as error:
            if error.code not in (None, 0):
                raise typer.BadParameter(f"{path.name} ended with {error.code}", param_hint=_HINT) from error
    model, observer = _chosen(watch.seen, module, path, name)
    args, kwargs = observer.infer_arguments(as_args_kwargs=True)
    return Source(model, args, kwargs, observer.infer_dynamic_shapes()), observer


def _script(text: str) -> tuple[Path, str]:
    """The file, and the object's name or nothing."""
    name = ""
    if not Path(text).is_file():
        text, _, name = text.rpartition(":")
    if not text or not Path(text).is_file():
        raise typer.BadParameter(f"there is no file {text or name}", param_hint=_HINT)
    return Path(text).resolve(), name


@contextmanager
def _as_main(path: Path) -> Iterator[ModuleType]:
    """A module for the script, in the place that Python has for the one it was started with."""
    module = ModuleType("__main__")
    module.__file__ = str(path)
    before = sys.modules["__main__"], sys.argv, sys.path
    sys.modules["__main__"], sys.argv, sys.path = module, [str(path)], [str(path.parent), *sys.path]
    try:
        yield module
    finally:
        sys.modules["__main__"], sys.argv, sys.path = before


class _Watch:
    """The modules that are called from outside of other modules, each with its observer."""

    def __init__(self) -> None:
        self.seen: list[tuple[torch.nn.Module, InputObserver]] = []
        self._inside = threading.local()

    @contextmanager
    def calls(self) -> Iterator[None]:
        """Watch every call of a module."""
        original = torch.nn.Module.__call__

        def watched(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            return self._call(module, original, args, kwargs)

        torch.nn.Module.__call__ = watched  # type: ignore[method-assign]
        try:
            yield
        finally:
            torch.nn.Module.__call__ = original  # type: ignore[method-assign]

    def _call(self, module: torch.nn.Module, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        # A model that is traced has no example values.
        is_traced = torch.compiler.is_compiling() or torch.onnx.is_in_onnx_export()
        if is_traced or getattr(self._inside, "module", None) is not None:
            return original(module, *args, **kwargs)
        observer = next((known for seen, known in self.seen if seen is module), None)
        if observer is None:
            observer = InputObserver()
            self.seen.append((module, observer))
        self._inside.module = module
        try:
            with observer(module, store_n_calls=_CALLS - observer.num_obs()):
                return original(module, *args, **kwargs)
        finally:
            self._inside.module = None


def _chosen(
    seen: list[tuple[torch.nn.Module, InputObserver]], script: ModuleType, path: Path, name: str
) -> tuple[torch.nn.Module, InputObserver]:
    """The module that is meant: the script's only one, or the one under the name."""
    called = ", ".join(f"{type(module).__name__} ({_names(module, script)})" for module, _ in seen)
    if not seen:
        raise typer.BadParameter(f"{path.name} calls no nn.Module", param_hint=_HINT)
    if not name:
        if len(seen) > 1:
            raise typer.BadParameter(
                f"{path.name} calls several modules: {called}; say which as {path.name}:NAME",
                param_hint=_HINT,
            )
        return seen[0]
    found: Any = script
    for part in name.split("."):
        if not hasattr(found, part):
            raise typer.BadParameter(f"{path.name} has no {name} when it ends", param_hint=_HINT)
        found = getattr(found, part)
    for module, observer in seen:
        if module is found:
            return module, observer
    raise typer.BadParameter(
        f"{name} is no module that {path.name} calls, other than from within another; it calls: {called}",
        param_hint=_HINT,
    )


def _names(module: torch.nn.Module, script: ModuleType) -> str:
    names = [name for name, value in vars(script).items() if value is module]
    return " = ".join(names) or "in no variable"
