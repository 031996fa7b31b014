"""What hooks return, besides rows: passes, domains and targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from atonnx.errors import PluginError, both

__all__ = ["STAGES", "DomainInfo", "PassSpec", "Stage", "Target"]

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


@dataclass(frozen=True, slots=True)
class Target:
    """A runtime that models are exported for: ``export(..., target=name)``.

    ``opsets`` are the oldest and the newest that it runs. ``lacks(op_type, opset, dtypes)`` tells
    whether it has no kernel for an ONNX operator, ``dtypes`` being those of the schema's type variables:
    ``lacks("Erf", 20, {"T": "double"})``. ``forbidden`` are operators that a model must not have,
    ``"Op"`` or ``"domain::Op"``: one that is left after the passes is an error. ``passes`` run at
    their stages besides all others, and also where the user asks for no optimization. The host sets
    ``plugin``.
    """

    name: str
    opsets: tuple[int, int] | None = None
    lacks: Callable[[str, int, Mapping[str, str]], bool] | None = None
    forbidden: frozenset[str] = frozenset()
    passes: tuple[PassSpec, ...] = ()
    plugin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "forbidden", frozenset(self.forbidden))
        made = tuple(replace(spec, plugin=self.plugin) for spec in self.passes)
        object.__setattr__(self, "passes", made)


Prefer = Mapping[str, str]
"""Whose offer to take where several plugins offer the same: ``{"aten::gelu": "my_pack"}``."""
