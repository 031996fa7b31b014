"""Whether a result is that of eager torch."""

from __future__ import annotations

from dataclasses import dataclass

import torch

__all__ = ["Ulps", "difference", "graph_layout", "ulps"]

_TOLERANCE = {  # (rtol, atol), as torch.testing has them
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float8_e4m3fn: (0.125, 1e-3),
    torch.float8_e4m3fnuz: (0.125, 1e-3),
    torch.float8_e5m2: (0.25, 1e-3),
    torch.float8_e5m2fnuz: (0.25, 1e-3),
}
_HALF = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Ulps:
    """A tolerance in units of the dtype's precision, see :func:`ulps`."""

    count: float


def ulps(count: float) -> Ulps:
    """A tolerance of ``count`` steps of the result's dtype at the size of 1, or of the result if larger."""
    return Ulps(count)


def graph_layout(leaf: object) -> torch.Tensor:
    """A result as the graph has it: numbers as tensors, complex tensors as pairs."""
    if not isinstance(leaf, torch.Tensor):
        kinds = {bool: torch.bool, int: torch.int64, float: torch.float64}
        return torch.tensor(leaf, dtype=kinds.get(type(leaf)))
    leaf = leaf.detach()
    if leaf.is_complex():
        leaf = torch.view_as_real(leaf.resolve_conj())
    return leaf.resolve_neg()


def difference(
    expected: torch.Tensor,
    actual: torch.Tensor,
    *,
    rtol: float | None = None,
    atol: float | Ulps | None = None,
    exact: torch.Tensor | None = None,
) -> str:
    """How ``actual`` departs from eager torch's ``expected``, or nothing.

    ``exact`` is the result computed in float64: an element of a half type is then wrong only if it
    is also further from it than the expected one.
    """
    if expected.dtype != actual.dtype:
        return f"dtype {actual.dtype}, expected {expected.dtype}"
    if expected.shape != actual.shape:
        return f"shape {list(actual.shape)}, expected {list(expected.shape)}"
    if not expected.numel():
        return ""
    if not expected.dtype.is_floating_point:
        wrong = expected != actual
    else:
        wrong = _wrong_floats(expected, actual, rtol, atol)
        if exact is not None and expected.dtype in _HALF and exact.shape == expected.shape:
            ours, theirs = (actual.double() - exact).abs(), (expected.double() - exact).abs()
            wrong &= ~(ours <= theirs)
    count = int(wrong.sum())
    return _told(expected, actual, wrong, count) if count else ""


def _wrong_floats(
    expected: torch.Tensor, actual: torch.Tensor, rtol: float | None, atol: float | Ulps | None
) -> torch.Tensor:
    default_rtol, default_atol = _TOLERANCE[expected.dtype]
    a, b = expected.double(), actual.double()
    if isinstance(atol, Ulps):
        allowed = atol.count * torch.finfo(expected.dtype).eps * a.abs().clamp_min(1.0)
        allowed = allowed if rtol is None else allowed.maximum(rtol * a.abs())
    else:
        rtol = default_rtol if rtol is None else rtol
        allowed = (default_atol if atol is None else atol) + rtol * a.abs()
    same = (a == b) | (a.isnan() & b.isnan())
    near = a.isfinite() & b.isfinite() & ((a - b).abs() <= allowed)
    return ~(same | near)


def _told(expected: torch.Tensor, actual: torch.Tensor, wrong: torch.Tensor, count: int) -> str:
    lines = [f"{count} of {expected.numel()} elements differ"]
    for place in wrong.nonzero()[:5]:
        where = tuple(place.tolist())
        lines.append(f"  at {list(where)}: {actual[where].item()!r}, expected {expected[where].item()!r}")
    return "\n".join(lines)
