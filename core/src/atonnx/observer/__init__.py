"""``InputObserver``: example arguments and dynamic shapes from calls of a model."""

from __future__ import annotations

from atonnx.observer.observer import InputObserver

__all__ = ["InputObserver"]
