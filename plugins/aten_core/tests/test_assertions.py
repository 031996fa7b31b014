"""Checks that torch makes while the program runs leave no trace in the model."""

from __future__ import annotations

import torch

import atonnx

aten = torch.ops.aten


class Checked(torch.nn.Module):
    """A product between checks of every kind that a program holds."""

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        aten._assert_async(x[0, 0] == x[0, 0])
        aten._assert_async.msg(x[0, 1] == x[0, 1], "a number")
        aten._assert_tensor_metadata(x, None, None, torch.float32)
        count = n.item()
        torch._check(count >= 2)
        torch._check(count < 9)
        aten.sym_constrain_range_for_size(count)
        aten.sym_constrain_range(count, min=2, max=8)
        return x.double() * torch.ones(count, 1)


def test_checks_become_nothing() -> None:
    x, n = torch.randn(1, 3), torch.tensor(4)
    program = atonnx.export(Checked(), (x, n))
    for count in (n, torch.tensor(2)):
        torch.testing.assert_close(program(x, count)[0], Checked()(x, count))
    kinds = {node.op_type for node in program.model.graph}
    assert not kinds & {"Equal", "If", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "And"}, kinds
