"""Test inputs of a pack's rows, which a pack gives through the hook ``atonnx_op_samples``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from atonnx.dispatch import MIN_OPSET
from atonnx.plugins import load
from atonnx.testing.compare import Ulps

__all__ = ["OpSample", "samples"]


@dataclass(frozen=True)
class OpSample:
    """One call of an operator, as :func:`check_op` takes it.

    ``args`` are the positional arguments or a function that makes them, so that a list of samples
    makes no tensors: ``OpSample(aten.gelu.default, lambda: (torch.randn(2, 3),))``. ``opsets`` is the
    lowest opset, or the lowest and the highest. ``reason`` says why a tolerance is what it is.
    ``options`` are further options of ``check_op``.
    """

    overload: Any
    args: Sequence[Any] | Callable[[], Sequence[Any]] = ()
    kwargs: Mapping[str, Any] | Callable[[], Mapping[str, Any]] = field(default_factory=dict)
    opsets: int | tuple[int, int] | None = None
    atol: float | Ulps | None = None
    rtol: float | None = None
    expect: str | None = None
    reason: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The overload's name."""
        return str(self.overload.name())

    def made_args(self) -> tuple[Any, ...]:
        """The positional arguments; new tensors at each call where ``args`` is a function."""
        return tuple(self.args() if callable(self.args) else self.args)

    def made_kwargs(self) -> dict[str, Any]:
        """The keyword arguments."""
        return dict(self.kwargs() if callable(self.kwargs) else self.kwargs)

    def serves(self, opset: int) -> bool:
        """Whether the sample is for this opset."""
        if self.opsets is None:
            return opset >= MIN_OPSET
        low, high = (self.opsets, None) if isinstance(self.opsets, int) else self.opsets
        return low <= opset and (high is None or opset <= high)

    def check(self, opset: int) -> Any:
        """Run :func:`check_op` on it."""
        from atonnx.testing.check import check_op

        return check_op(
            self.overload,
            *self.made_args(),
            opset=opset,
            expect=self.expect,
            atol=self.atol,
            rtol=self.rtol,
            **self.options,
            **self.made_kwargs(),
        )


def samples(plugin: str | None = None) -> list[OpSample]:
    """The samples of a plugin, or of all that are loaded."""
    return [sample for owner, sample in load().op_samples() if plugin is None or owner == plugin]
