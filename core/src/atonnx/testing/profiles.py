"""The Hypothesis profiles of the kit: ``ci`` (20 examples a test, always the same ones), ``all`` (200)."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, Phase, settings

__all__ = ["load_profile", "register_profiles"]

_VARIABLE = "ATONNX_HYPOTHESIS_PROFILE"


def register_profiles() -> None:
    """Register both; a profile of that name that was there is replaced."""
    common: dict[str, Any] = {
        "deadline": None,
        "print_blob": True,
        "derandomize": True,
        "database": None,
        # Explaining a failure costs more than all of its examples.
        "phases": [phase for phase in Phase if phase is not Phase.explain],
        "suppress_health_check": [HealthCheck.too_slow],  # a busy machine is no fault of a test
    }
    settings.register_profile("ci", max_examples=20, **common)
    settings.register_profile("all", max_examples=200, **common)


def load_profile() -> None:
    """Register both, and load the one that ``ATONNX_HYPOTHESIS_PROFILE`` names.

    Without it ``ci`` is loaded, unless another profile than Hypothesis's own is.
    """
    asked = os.environ.get(_VARIABLE)
    register_profiles()
    if asked or settings.get_current_profile_name() == "default":
        settings.load_profile(asked or "ci")
