"""Windows of signals. Their length is a number in every program, so each is a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import to_torch
from atonnx.dispatch import Table

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)


def _constant(op: Builder, overload: Any, *args: Any) -> Value:
    return op.const(overload(*args, dtype=to_torch(op.out.dtype)))


def _default(overload: Any) -> None:
    @table.translate(overload)
    def window(
        op: Builder,
        window_length: int,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
    ) -> Value:
        """A constant."""
        return _constant(op, overload, window_length)


def _periodic(overload: Any) -> None:
    @table.translate(overload)
    def window(
        op: Builder,
        window_length: int,
        periodic: bool,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
    ) -> Value:
        """A constant."""
        return _constant(op, overload, window_length, periodic)


_KINDS = (
    *(aten.hann_window, aten.hamming_window, aten.blackman_window),
    *(aten.bartlett_window, aten.kaiser_window),
)
for _kind in _KINDS:
    _default(_kind.default)
    _periodic(_kind.periodic)


@table.translate(aten.hamming_window.periodic_alpha)
def hamming_window_alpha(
    op: Builder,
    window_length: int,
    periodic: bool,
    alpha: float,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """A constant."""
    return _constant(op, aten.hamming_window.periodic_alpha, window_length, periodic, alpha)


@table.translate(aten.hamming_window.periodic_alpha_beta)
def hamming_window_alpha_beta(
    op: Builder,
    window_length: int,
    periodic: bool,
    alpha: float,
    beta: float,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """A constant."""
    return _constant(op, aten.hamming_window.periodic_alpha_beta, window_length, periodic, alpha, beta)


@table.translate(aten.kaiser_window.beta)
def kaiser_window_beta(
    op: Builder,
    window_length: int,
    periodic: bool,
    beta: float,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """A constant."""
    return _constant(op, aten.kaiser_window.beta, window_length, periodic, beta)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    return [
        *(OpSample(kind.default, lambda: (7,)) for kind in _KINDS),
        *(OpSample(kind.periodic, lambda: (7, False)) for kind in _KINDS),
        *(OpSample(kind.periodic, lambda: (1, False)) for kind in _KINDS),
        OpSample(aten.hann_window.default, lambda: (0,)),
        OpSample(aten.hann_window.default, lambda: (6,), {"dtype": torch.float64}),
        OpSample(aten.hamming_window.periodic_alpha, lambda: (7, True, 0.6)),
        OpSample(aten.hamming_window.periodic_alpha_beta, lambda: (7, True, 0.6, 0.4)),
        OpSample(aten.kaiser_window.beta, lambda: (7, True, 8.0)),
    ]
