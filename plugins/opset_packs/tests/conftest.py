"""Lets the tests of this folder import the helper beside them."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile(
    "opset_packs",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=15,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("opset_packs")
