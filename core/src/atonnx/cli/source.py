"""The model that ``FILE.py:OBJECT`` names, with its example arguments."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import typer

__all__ = ["Source", "load_source"]

_HINT = "FILE.py:OBJECT"


@dataclass(frozen=True, slots=True)
class Source:
    """A model as ``export()`` takes it. An ExportedProgram has its arguments with it."""

    model: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    dynamic_shapes: Any = None

    @property
    def is_program(self) -> bool:
        """Whether the model is captured already."""
        return isinstance(self.model, torch.export.ExportedProgram)

    @property
    def inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]] | tuple[None, None]:
        """The arguments to verify with, nothing for those that a program has with it."""
        return (
            (None, None)
            if self.is_program and not self.args and not self.kwargs
            else (self.args, self.kwargs)
        )


def load_source(text: str) -> Source:
    """Import the file and make of its object what ``export()`` takes."""
    name, colon, path_of_object = text.rpartition(":")
    if not (name and colon and path_of_object):
        raise typer.BadParameter(f"{text!r} names no object of the file", param_hint=_HINT)
    path = Path(name)
    if not path.is_file():
        raise typer.BadParameter(f"there is no file {name}", param_hint=_HINT)
    module = _imported(path)
    found: Any = module
    for part in path_of_object.split("."):
        if not hasattr(found, part):
            raise typer.BadParameter(f"{path.name} has no {path_of_object}", param_hint=_HINT)
        found = getattr(found, part)
    if isinstance(found, torch.export.ExportedProgram):
        return Source(found)
    if not isinstance(found, torch.nn.Module):
        if not callable(found) or isinstance(found, type):
            raise typer.BadParameter(
                f"{path_of_object} is a {type(found).__name__}: it must be an nn.Module, an ExportedProgram, "
                "or a function that returns (model, args, kwargs, dynamic_shapes)",
                param_hint=_HINT,
            )
        found = found()
        if isinstance(found, tuple):
            return _of_tuple(found, path_of_object)
        if isinstance(found, torch.export.ExportedProgram):
            return Source(found)
    return _beside(found, module, path)


def _imported(path: Path) -> ModuleType:
    """Import the file as a script's directory is imported from: what lies beside it can be imported."""
    path = path.resolve()
    name = path.stem if path.stem not in sys.modules else f"_exported_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise typer.BadParameter(f"{path.name} is no Python file", param_hint=_HINT)
    module = module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    # Under its name, so that classes of the file can be pickled and their source found.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _of_tuple(found: tuple[Any, ...], name: str) -> Source:
    if not 1 <= len(found) <= 4 or not isinstance(found[0], (torch.nn.Module, torch.export.ExportedProgram)):
        raise typer.BadParameter(
            f"{name}() must return (model, args, kwargs, dynamic_shapes) or a shorter such tuple",
            param_hint=_HINT,
        )
    missing: tuple[Any, ...] = (None,) * (4 - len(found))
    model, args, kwargs, dynamic_shapes = found + missing
    return Source(model, _tuple_of(args), dict(kwargs or {}), dynamic_shapes)


def _beside(model: Any, module: ModuleType, path: Path) -> Source:
    """A module with the arguments that its file has under fixed names."""
    if not isinstance(model, torch.nn.Module):
        raise typer.BadParameter(
            f"the function returned a {type(model).__name__}, not a model or a tuple", param_hint=_HINT
        )
    args, kwargs = getattr(module, "example_args", None), getattr(module, "example_kwargs", None)
    if args is None and kwargs is None:
        raise typer.BadParameter(
            f"{path.name} has no example arguments: set example_args = (...), "
            "or name a function that returns (model, args, kwargs, dynamic_shapes)",
            param_hint=_HINT,
        )
    return Source(model, _tuple_of(args), dict(kwargs or {}), getattr(module, "dynamic_shapes", None))


def _tuple_of(args: Any) -> tuple[Any, ...]:
    if args is None:
        return ()
    return tuple(args) if isinstance(args, (tuple, list)) else (args,)
