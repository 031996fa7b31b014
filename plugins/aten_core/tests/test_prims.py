"""Programs that come in decomposed, to core ATen or down to prims, are right as well."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._decomp import decomposition_table

import atonnx


class Block(nn.Module):
    """Convolution, norm, attention, activations, reductions."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        x = self.layer(x.flatten(2).transpose(1, 2))
        return nn.functional.gelu(x).mean(1), x.softmax(-1).amax(1), x.var(1)


class Numbers(nn.Module):
    """Functions of one and two tensors, integers, conditions, sizes."""

    def forward(self, x):
        n = (x * 10).to(torch.int32)
        places = torch.arange(x.shape[0])
        return (
            *(x.sin(), x.erf(), x.abs().rsqrt(), x.sign(), torch.copysign(x, -x), torch.logaddexp(x, x + 1)),
            *(n // 3, n % 5, n & 6, n << 1, torch.where(x > 0, x, -x), x.clamp(-0.5, 0.5)),
            *(x.flip(0), x.unsqueeze(1).expand(-1, 2, -1), places, x.prod(1), x.sum(), x[places]),
        )


class Inverse(nn.Module):
    """Operators that check their result, as effects in order."""

    def forward(self, x):
        square = x[:3, :3] + 4 * torch.eye(3)
        return torch.linalg.inv(square), torch.linalg.cholesky(square @ square.T)


@pytest.mark.parametrize("level", ["core", "prims"])
@pytest.mark.parametrize(
    ("module", "shape"), [(Block, (2, 3, 6, 6)), (Numbers, (4, 3)), (Inverse, (3, 3))], ids=lambda x: str(x)
)
def test_decomposed_programs(module, shape, level):
    torch.manual_seed(0)
    model = module().eval()
    x = torch.randn(shape)
    program = torch.export.export(model, (x,), strict=False)
    program = program.run_decompositions(None if level == "core" else dict(decomposition_table))
    made = atonnx.export(program)
    for found, wanted in zip(made(x), model(x), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
