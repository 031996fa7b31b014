"""One record for each entry point: what it is and how loading it went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["PluginRecord", "State"]

State = Literal["loaded", "blocked", "failed"]


@dataclass(slots=True)
class PluginRecord:
    """An entry point of group ``atonnx``; ``error`` says why it failed or is blocked."""

    name: str
    distribution: str
    version: str
    value: str
    state: State = "loaded"
    error: BaseException | None = None
    reason: str = ""

    def fail(self, error: BaseException, during: str = "") -> None:
        """Set the state to ``failed``. The first failure is kept; ``during`` names the hook, if one was."""
        if self.state == "failed":
            return
        self.state = "failed"
        self.error = error
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        self.reason = f"{during}: {told}" if during else told

    def block(self, reason: str) -> None:
        """Set the state to ``blocked``: the user's environment asks not to load it."""
        self.state = "blocked"
        self.reason = reason

    def __str__(self) -> str:
        origin = f"{self.distribution} {self.version}".strip()
        text = f"plugin {self.name} ({origin or self.value}): {self.state}"
        return f"{text}: {self.reason}" if self.reason else text
