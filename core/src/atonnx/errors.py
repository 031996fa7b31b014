"""Every error and warning of atonnx.

Each class keeps what it says in fields, so that tools need not parse messages. Where Python
has a built-in kind for the fault, the class at the raise site is both (see :func:`both`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.onnx.errors import SymbolicValueError, UnsupportedOperatorError

    from atonnx.plugins import PluginRecord
    from atonnx.program import Verification

__all__ = [
    "BuildError",
    "CaptureError",
    "MissingOp",
    "OnnxExporterError",
    "OnnxExporterWarning",
    "PassError",
    "PluginApiError",
    "PluginConflictError",
    "PluginError",
    "PluginLoadError",
    "SymbolicValueError",
    "TranslationError",
    "UnsupportedOpError",
    "UnsupportedOperatorError",
    "VerificationError",
    "both",
]


class OnnxExporterWarning(UserWarning):
    """Warnings of the exporter."""


class OnnxExporterError(RuntimeError):
    """Base of all errors of the exporter.

    ``hint`` tells the way out; it is part of the message.
    """

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(f"{message}\n  hint: {hint}" if hint else message)
        self.hint = hint


OnnxExporterError.__module__ = "atonnx"


def both(error: type[OnnxExporterError], builtin: type[Exception]) -> type[OnnxExporterError]:
    """A class that is ``error`` and the built-in kind: ``raise both(BuildError, TypeError)(...)``."""
    key = (error, builtin)
    if key not in _BOTH:
        _BOTH[key] = type(error.__name__, (error, builtin), {"__module__": error.__module__})
    return _BOTH[key]


_BOTH: dict[tuple[type, type], type[OnnxExporterError]] = {}


class CaptureError(OnnxExporterError):
    """torch.export could not capture the model.

    ``attempts`` holds (strategy, exception) in order; the first is the ``__cause__``.
    """

    def __init__(
        self, message: str, *, attempts: Iterable[tuple[str, Exception]] = (), hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.attempts = tuple(attempts)


class BuildError(OnnxExporterError):
    """A call to the builder does not fit the ONNX operator's schema, or a size has no root."""


class _AtNode(OnnxExporterError):
    """An error at a node of the captured program.

    ``op`` is the operator (``aten::gelu``), ``node`` the FX node's name, ``source`` the user's
    ``file:line``, ``plugin`` the plugin whose row was at work.
    """

    def __init__(
        self,
        message: str,
        *,
        op: str = "",
        node: str = "",
        source: str = "",
        plugin: str = "",
        hint: str = "",
    ) -> None:
        where = [f"{op}: {message}" if op else message]
        if source:
            where.append(f"  in the model: {source}")
        if node:
            where.append(f"  FX node: {node}")
        if plugin:
            where.append(f"  plugin: {plugin}")
        super().__init__("\n".join(where), hint=hint)
        self.reason = message
        self.op = op
        self.node = node
        self.source = source
        self.plugin = plugin


class TranslationError(_AtNode):
    """A row failed, or returned another dtype, rank or count of values than the node has."""


@dataclass(frozen=True, slots=True)
class MissingOp:
    """One operator that has no row: how often it occurs, where, and why it is missing."""

    op: str
    count: int
    sources: tuple[str, ...]
    reason: str
    distribution: str | None = None


class UnsupportedOpError(_AtNode):
    """Operators without a translation, all of a model at once, or a case that a row refuses.

    ``missing`` holds the operators without a row; it is empty for a refused case.
    """

    def __init__(self, message: str, *, missing: Iterable[MissingOp] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.missing = tuple(missing)

    @classmethod
    def here(cls, op: Any, what: str, *, hint: str = "") -> UnsupportedOpError:
        """Refuse a case at the node that the Builder ``op`` is translating."""
        return cls(f"{what} is not supported", **op.where(), hint=hint)


class PassError(OnnxExporterError):
    """A graph pass failed; ``pass_name`` and ``plugin`` name it."""

    def __init__(self, message: str, *, pass_name: str = "", plugin: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.pass_name = pass_name
        self.plugin = plugin


class VerificationError(OnnxExporterError):
    """The model is not valid, does not run, or computes something else; ``verification`` tells all."""

    def __init__(self, verification: Verification) -> None:
        super().__init__(str(verification))
        self.verification = verification


class PluginError(OnnxExporterError):
    """A plugin does not keep its contract; ``plugins`` names those concerned."""

    def __init__(self, message: str, *, plugins: Iterable[str] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.plugins = tuple(plugins)


class PluginLoadError(PluginError):
    """A plugin failed to load; ``record`` tells which distribution and why."""

    def __init__(self, record: PluginRecord, message: str = "") -> None:
        super().__init__(message or str(record), plugins=(record.name,))
        self.record = record


class PluginApiError(PluginError):
    """A plugin was written for another API version, or has a hook that does not exist."""


class PluginConflictError(PluginError):
    """Two plugins offer the same thing at equal rank; ``target`` is what they both offer."""

    def __init__(self, message: str, *, target: str, plugins: Iterable[str], hint: str = "") -> None:
        super().__init__(message, plugins=plugins, hint=hint)
        self.target = target


def __getattr__(name: str) -> Any:
    """torch's two public error classes, imported when asked for."""
    if name in ("UnsupportedOperatorError", "SymbolicValueError"):
        import torch.onnx.errors

        return getattr(torch.onnx.errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
