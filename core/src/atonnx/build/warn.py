"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn_user"]

_PACKAGE = __name__.partition(".")[0]


def warn_user(text: str, category: type[Warning]) -> None:
    """Warn, the place being the innermost one that is not in this package."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)
