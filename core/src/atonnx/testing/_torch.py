"""The only module of the kit that touches private names of torch."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode
from torch.fx.experimental import _config as symbolic_config
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    GuardOnDataDependentSymNode,
    ShapeEnv,
    StatelessSymbolicContext,
    compute_unbacked_bindings,
)

__all__ = [
    "DataDependent",
    "conditions",
    "fake_mode",
    "fake_tensor",
    "forget_pending",
    "frozen_symbols",
    "tracing",
    "unbacked_bindings",
    "value_of",
]

# An operator's fake kernel asks for what only data tells.
DataDependent = (DynamicOutputShapeException, GuardOnDataDependentSymNode)

_LOGGERS = [
    logging.getLogger(name)
    for name in ("torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes")
]


def _oblivious() -> contextlib.AbstractContextManager[Any]:
    config: Any = symbolic_config
    return config.patch(backed_size_oblivious=True)  # type: ignore[no-any-return]


def fake_mode() -> FakeTensorMode:
    """A mode like that of torch.export."""
    shape_env = ShapeEnv(
        allow_scalar_outputs=True,
        allow_dynamic_output_shape_ops=True,
        prefer_deferred_runtime_asserts_over_guards=True,
    )
    mode = FakeTensorMode(shape_env=shape_env, allow_non_fake_inputs=True, export=True)
    mode.cache_enabled = False  # making an entry costs as much as the operator
    return mode


def fake_tensor(
    mode: FakeTensorMode, tensor: torch.Tensor, name: str, dynamic: Iterable[int]
) -> torch.Tensor:
    """``tensor`` without data; the axes ``dynamic`` have symbols as sizes."""
    axes = set(dynamic)
    kinds = [DimDynamic.DYNAMIC if axis in axes else DimDynamic.STATIC for axis in range(tensor.dim())]
    context: Any = StatelessSymbolicContext(dynamic_sizes=kinds)
    with _oblivious():
        return mode.from_tensor(tensor, source=ConstantSource(name), symbolic_context=context)


@contextlib.contextmanager
def tracing(mode: FakeTensorMode) -> Iterator[None]:
    """Operators on fake tensors, sizes 0 and 1 like any other.

    A kernel that fails on a symbol is tried again without, so the log is not told of it. Warnings are about
    torch's own code.
    """
    levels = [logger.level for logger in _LOGGERS]
    for logger in _LOGGERS:
        logger.setLevel(logging.CRITICAL)
    try:
        with _oblivious(), enable_python_dispatcher(), mode, torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(_LOGGERS, levels, strict=True):
            logger.setLevel(level)


def unbacked_bindings(mode: FakeTensorMode, value: Any) -> Any:
    """Where in ``value`` the data-dependent sizes are that the last operator made."""
    return compute_unbacked_bindings(mode.shape_env, value)


def forget_pending(mode: FakeTensorMode) -> None:
    """Forget the data-dependent sizes that an operator made before it failed."""
    env: Any = mode.shape_env
    env.pending_fresh_unbacked_symbols.clear()


def frozen_symbols(mode: FakeTensorMode) -> set[Any]:
    """Symbols that tracing has found to be one number."""
    env: Any = mode.shape_env
    found = {s for s, expr in env.replacements.items() if not expr.free_symbols}
    return found | {s for s, bounds in env.var_to_range.items() if bounds.is_singleton()}


def conditions(mode: FakeTensorMode) -> list[Any]:
    """What must hold of the symbols for the trace to hold."""
    env: Any = mode.shape_env
    found = [guard.expr for guard in env.guards]
    found += [item.expr for items in env.deferred_runtime_asserts.values() for item in items]
    return found


def value_of(size: Any) -> Any:
    """The expression of a symbolic size; a number as it is."""
    return size.node._expr if isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)) else size
