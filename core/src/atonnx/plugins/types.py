"""What hooks return, besides rows: passes and domains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from atonnx.errors import PluginError, both

__all__ = ["STAGES", "DomainInfo", "PassSpec", "Stage"]

Stage = Literal["simplify", "fold", "fuse", "legalize", "cleanup"]

STAGES: tuple[Stage, ...] = get_args(Stage)
"""The stages of graph passes in the order in which they run."""


@dataclass(frozen=True, slots=True)
class PassSpec:
    """A graph pass and its place.

    ``factory()`` returns an ``onnx_ir`` pass or an ``onnxscript.rewriter`` rule set. ``before`` and
    ``after`` name passes of the same stage; names that are not there have no effect. The host sets
    ``plugin``.
    """

    name: str
    factory: Callable[[], Any]
    stage: Stage
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    plugin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.stage not in STAGES:
            raise both(PluginError, ValueError)(
                f"pass {self.name}: stage {self.stage!r} is none of {', '.join(STAGES)}"
            )
        for side in ("before", "after"):
            names = getattr(self, side)
            if isinstance(names, str):
                raise both(PluginError, TypeError)(
                    f"pass {self.name}: {side}={names!r} must be a tuple of names", hint=f"({names!r},)"
                )
            object.__setattr__(self, side, tuple(names))


@dataclass(frozen=True, slots=True)
class DomainInfo:
    """An operator domain besides ONNX's own.

    ``schemas`` are ``onnx.defs.OpSchema`` objects, ``ort_library`` is the path of a custom-op library
    for ONNX Runtime, ``reference_ops`` are ``onnx.reference.op_run.OpRun`` classes. The host sets
    ``plugin``.
    """

    domain: str
    version: int = 1
    schemas: tuple[Any, ...] = ()
    ort_library: str | Path | None = None
    reference_ops: tuple[type, ...] = ()
    plugin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schemas", tuple(self.schemas))
        object.__setattr__(self, "reference_ops", tuple(self.reference_ops))


Prefer = Mapping[str, str]
"""Whose offer to take where several plugins offer the same: ``{"aten::gelu": "my_pack"}``."""
