"""What a row has to know at export: the numbers of a constant, the rank of a tensor."""

from __future__ import annotations

from atonnx.build import Builder, Value
from atonnx.build.infer import int_content
from atonnx.errors import UnsupportedOpError

__all__ = ["axes_of", "known_ints", "rank_of", "refuse"]


def refuse(op: Builder, what: str, opset: int) -> UnsupportedOpError:
    """The error for a form that only ``opset`` and newer have."""
    return UnsupportedOpError.here(
        op, f"{what} at opset {op.opset}", hint=f"export at opset {opset} or newer"
    )


def known_ints(value: Value | None) -> list[int] | None:
    """The numbers of an integer tensor; None where it is not given or not a constant."""
    content = int_content(value)
    if content is None or not all(isinstance(item, int) for item in content):
        return None
    return list(content)


def axes_of(op: Builder, value: Value | None, what: str, opset: int) -> list[int] | None:
    """The numbers that become an attribute; None where the input is left out.

    Raises:
        UnsupportedOpError: the input is not a constant.
    """
    if value is None:
        return None
    found = known_ints(value)
    if found is None:
        raise refuse(op, f"{what} computed by the model", opset)
    return found


def rank_of(op: Builder, x: Value, what: str, opset: int) -> int:
    """The rank of ``x``.

    Raises:
        UnsupportedOpError: it is not known.
    """
    if x.dims is None:
        raise refuse(op, f"{what} of a tensor of unknown rank", opset)
    return x.rank
