"""The two pluggy markers of the project."""

from __future__ import annotations

import pluggy

PROJECT = "atonnx"

hookspec = pluggy.HookspecMarker(PROJECT)
"""Marks a function of :mod:`atonnx.plugins.specs` as a hook."""

hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a plugin's function as its implementation of the hook of the same name."""
