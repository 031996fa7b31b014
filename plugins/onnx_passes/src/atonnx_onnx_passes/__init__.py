"""Graph passes that fold, clean and fuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atonnx.plugins import hookimpl

if TYPE_CHECKING:
    from atonnx.plugins import PassSpec

ATONNX_API = (1, 0)


@hookimpl
def atonnx_passes() -> list[PassSpec]:
    """The passes of this package."""
    return []
