"""What a plugin imports, and how the host finds and asks plugins.

A plugin is a module (or object) behind an entry point of group ``atonnx``. It states
``ATONNX_API = (1, 0)`` and implements hooks of :mod:`atonnx.plugins.specs`, marked with
:data:`hookimpl`. Importing this package imports neither torch nor onnx.
"""

from __future__ import annotations

from atonnx.plugins.loading import API, GROUP, Policy, load
from atonnx.plugins.manager import Decompositions, Offers, Plugins
from atonnx.plugins.markers import hookimpl, hookspec
from atonnx.plugins.records import PluginRecord
from atonnx.plugins.types import STAGES, DomainInfo, PassSpec, Stage, Target

__all__ = [
    "API",
    "GROUP",
    "STAGES",
    "Decompositions",
    "DomainInfo",
    "Offers",
    "PassSpec",
    "PluginRecord",
    "Plugins",
    "Policy",
    "Stage",
    "Target",
    "hookimpl",
    "hookspec",
    "load",
]
