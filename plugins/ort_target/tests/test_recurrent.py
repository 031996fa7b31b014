"""Recurrent networks of doubles give what eager torch gives."""

from __future__ import annotations

import pytest
import torch

import atonnx


class Last(torch.nn.Module):
    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        every, last = self.inner(x)
        return (every, *(last if isinstance(last, tuple) else (last,)))


@pytest.mark.parametrize("opset", [11, 20, 22])
@pytest.mark.parametrize("bidirectional, bias", [(False, False), (True, True)])
@pytest.mark.parametrize("kind", ["RNN", "RNN-relu", "GRU", "LSTM"])
def test_recurrent_networks(kind: str, bidirectional: bool, bias: bool, opset: int) -> None:
    name, _, nonlinearity = kind.partition("-")
    options = {"nonlinearity": nonlinearity} if nonlinearity else {}
    inner = getattr(torch.nn, name)(3, 4, 2, bidirectional=bidirectional, bias=bias, **options)
    model = Last(inner).double().eval()
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    program = atonnx.export(model, (x,), opset_version=opset, dynamic_shapes=({0: "time", 1: "n"},))
    with torch.no_grad():
        for value in (x, torch.randn(3, 4, 3, dtype=torch.float64)):
            for found, expected in zip(program(value), model(value), strict=True):
                torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
