"""Checks that torch makes while the program runs: the ONNX model has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)


@table.translate(aten._assert_tensor_metadata.default, complex="also")
def _assert_tensor_metadata(
    op: Builder,
    a: Value,
    size: Sequence[Any] | None = None,
    stride: Sequence[Any] | None = None,
    dtype: torch.dtype | None = None,
    *,
    device: torch.device | None = None,
    layout: torch.layout | None = None,
) -> None:
    """Nothing."""


@table.translate(aten._assert_scalar.default)
def _assert_scalar(op: Builder, self: Any, assert_msg: str) -> None:
    """Nothing."""


@table.translate(aten._assert_async.default)
def _assert_async(op: Builder, self: Value) -> None:
    """Nothing."""


@table.translate(aten._assert_async.msg)
def _assert_async_msg(op: Builder, self: Value, assert_msg: str) -> None:
    """Nothing."""


@table.translate(aten.sym_constrain_range.default, aten.sym_constrain_range_for_size.default)
def sym_constrain_range(op: Builder, size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Nothing."""


@table.translate(aten._functional_assert_scalar.default, aten._functional_assert_async.msg)
def _functional_assert(op: Builder, self: Any, assert_msg: str, dep_token: Value) -> Value:
    """The token."""
    return dep_token


@table.translate(
    aten._functional_sym_constrain_range.default, aten._functional_sym_constrain_range_for_size.default
)
def _functional_sym_constrain_range(
    op: Builder, size: Any, min: int | None, max: int | None, dep_token: Value
) -> Value:
    """The token."""
    return dep_token


@table.translate(aten._make_dep_token.default)
def _make_dep_token(
    op: Builder,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> Value:
    """A constant, which nothing reads."""
    return op.const(0, op.out.dtype)


def samples() -> list[OpSample]:
    """Test inputs of the rows that return something."""
    from atonnx.testing import OpSample

    x, yes = torch.ones(2, 3), torch.tensor(True)
    return [
        OpSample(aten._functional_assert_scalar.default, (1, "why", x)),
        OpSample(aten._functional_assert_async.msg, (yes, "why", x)),
        OpSample(aten._functional_sym_constrain_range.default, (2, 1, None, x)),
        OpSample(aten._functional_sym_constrain_range_for_size.default, (2, 1, None, x)),
        OpSample(aten._make_dep_token.default, options={"values": False}, reason="torch leaves it unset"),
    ]
