"""Branches, loops and wrapped subgraphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import atonnx

DYNAMIC = torch.export.Dim.DYNAMIC


def check(
    function: Callable[..., Any], *calls: tuple[torch.Tensor, ...], rows: bool = True, opset: int = 20
) -> list[str]:
    """Export at the first call, compare at all; the operators of the graph."""
    names = list(inspect.signature(function).parameters)

    class Model(torch.nn.Module):
        def forward(self, *inputs: torch.Tensor) -> Any:
            return function(*inputs)

    shapes = tuple({0: DYNAMIC} if rows and x.dim() else None for x in calls[0])
    program = atonnx.export(
        Model(), calls[0], opset_version=opset, dynamic_shapes=(shapes,), input_names=names
    )
    for inputs in calls:
        wanted = function(*inputs)
        wanted = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
        for got, want in zip(program(*inputs), wanted, strict=True):
            torch.testing.assert_close(torch.as_tensor(got), torch.as_tensor(want))
    return [node.op_type for node in program.model.graph]


X, Y = torch.randn(4, 3), torch.randn(2, 3)


@pytest.mark.parametrize("opset", [11, 13, 17, 20, 23])
def test_cond_is_an_if_whose_branches_read_from_outside(opset: int) -> None:
    def function(x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x + x.shape[0], (x,))

    assert "If" in check(function, (X,), (-X,), (Y,), opset=opset)


def test_cond_on_a_size() -> None:
    check(lambda x: torch.cond(x.shape[0] > 2, lambda x: x * 2, lambda x: x + 1, (x,)), (X,), (Y,))


def test_a_branch_reads_a_number_that_was_read_from_a_tensor() -> None:
    def function(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Any:
        n = c.item()
        return torch.cond(a.sum() > 0, lambda a, b: a + b + n, lambda a, b: a - b * n, (a, b))

    two, three = torch.tensor(2), torch.tensor(3)
    check(function, (X, X * 3, two), (-X.abs(), X, three), rows=False)


def test_branches_inside_branches() -> None:
    def inner(x: torch.Tensor) -> Any:
        return torch.cond(x.max() > 1, lambda x: x - 1, lambda x: x + 1, (x,))

    def function(x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, inner, lambda x: x * 2, (x,))

    check(function, (X.abs(),), (X.abs() + 2,), (-X.abs(),))


@pytest.mark.parametrize("opset", [11, 13, 17, 20, 23])
def test_while_loop_that_carries_a_counter_tensor(opset: int) -> None:
    def function(x: torch.Tensor) -> Any:
        return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))

    assert "Loop" in check(function, (X,), (Y,), opset=opset)


def test_while_loop_that_carries_a_number() -> None:
    def function(x: torch.Tensor) -> Any:
        return while_loop(lambda i, x: i < x.shape[0], lambda i, x: (i + 1, x * 2 + i), (0, x))

    check(function, (X,), (Y,), (X[:0],))


@pytest.mark.parametrize("opset", [11, 20])
def test_scan(opset: int) -> None:
    def function(x: torch.Tensor) -> Any:
        return scan(lambda c, x: (c + x, c * 2), torch.zeros(3), x, dim=0)

    assert "Scan" in check(function, (X,), rows=False, opset=opset)
    # torch 2.13 scans over no empty axis in eager.
    none = () if torch.__version__.startswith("2.13") else ((X[:0],),)
    assert "If" in check(function, (X,), (Y,), *none, opset=opset)


@pytest.mark.parametrize("opset", [11, 20])
def test_map(opset: int) -> None:
    assert "Scan" in check(
        lambda x, y: torch_map(lambda x, y: torch.tanh(x * y.sum()), x, y),
        (X, torch.randn(2)),
        (Y, torch.randn(5)),
        opset=opset,
    )


def test_what_only_wraps_a_subgraph_is_written_in_its_place() -> None:
    def function(x: torch.Tensor) -> Any:
        with torch.no_grad():
            y = x * 2
        return y + x

    assert check(function, (X,), (Y,)) == ["Mul", "Add"]
