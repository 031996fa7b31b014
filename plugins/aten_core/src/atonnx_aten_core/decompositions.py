"""torch's own decompositions, for operators that have no row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from atonnx_aten_core._torch import composite, registered

__all__ = ["decomposition"]

aten = torch.ops.aten

# Recurrent layers are written as a loop over time: unrolled, they hold for one length.
_UNROLLED = ("aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu", "aten::mkldnn_rnn_layer")


def decomposition(overload: Any) -> Callable[..., Any] | None:
    """What torch writes an overload with: a registered decomposition, else its composite kernel."""
    if overload.name().partition(".")[0] in _UNROLLED:
        return None
    return registered(overload) or composite(overload)
