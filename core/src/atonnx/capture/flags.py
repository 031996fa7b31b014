"""``is_in_onnx_export``: whether a model runs to be exported."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar

from atonnx.capture import _torch

__all__ = ["exporting", "is_in_onnx_export"]

_EXPORTING: ContextVar[bool] = ContextVar("atonnx_exporting", default=False)


def is_in_onnx_export() -> bool:
    """Whether this thread is exporting; a model may branch on it while it is captured."""
    return _EXPORTING.get()


class _Shared:
    """torch's own flag, which all threads share: set by the first export, put back by the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._exports = 0
        self._flag = contextlib.ExitStack()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        with self._lock:
            if self._exports == 0:
                self._flag.enter_context(_torch.torch_export_flag())
            self._exports += 1
        try:
            yield
        finally:
            with self._lock:
                self._exports -= 1
                if self._exports == 0:
                    self._flag.close()


_SHARED = _Shared()


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Within it ``is_in_onnx_export()`` is True, torch's own as well."""
    token = _EXPORTING.set(True)
    try:
        with _SHARED.held():
            yield
    finally:
        _EXPORTING.reset(token)
