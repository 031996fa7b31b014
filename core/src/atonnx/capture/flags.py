"""``is_in_onnx_export``: whether a model runs to be captured."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from atonnx.capture import _torch

__all__ = ["exporting", "is_in_onnx_export"]

_EXPORTING: ContextVar[bool] = ContextVar("atonnx_exporting", default=False)


def is_in_onnx_export() -> bool:
    """Whether this thread is exporting; a model may branch on it while it is captured."""
    return _EXPORTING.get()


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Within it ``is_in_onnx_export()`` is True, torch's own as well."""
    token = _EXPORTING.set(True)
    try:
        with _torch.torch_export_flag():
            yield
    finally:
        _EXPORTING.reset(token)
