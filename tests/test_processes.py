"""What a process has done before, and how it hashes, does not show in what is exported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
import torch
from torch import Tensor, nn

import atonnx

ROOT = Path(__file__).resolve().parents[1]

# Dynamic sizes, a tied weight, sizes computed from others, and several outputs in a dict.
MODEL = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.norm = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        batch, length = tokens.shape
        x = self.norm(self.embed(tokens))
        q, k, v = self.qkv(x).view(batch, length, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        y = x + y.transpose(1, 2).reshape(batch, length, 16)
        pooled = y.sum(1) / length
        return {"logits": self.head(torch.relu(y)), "pooled": pooled, "pairs": y.reshape(batch * length, 16)}


def model():
    torch.manual_seed(0)
    tokens = torch.arange(10).reshape(2, 5)
    return Block().eval(), (tokens,), {}, ({0: "batch", 1: "length"},)
"""


def export(folder: Path, source: Path, opset: int, seed: int) -> list[bytes]:
    """The files that `atonnx export` writes in a process with this hash seed."""
    folder.mkdir()
    command = ["export", f"{source}:model", "-o", "model.onnx", "--opset", str(opset)]
    done = subprocess.run(
        [sys.executable, "-m", "atonnx", *command],
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [(folder / name).read_bytes() for name in ("model.onnx", "model.onnx.data")]


@pytest.mark.parametrize(
    "opset, source",
    [
        (20, None),
        pytest.param(13, None, marks=pytest.mark.slow),
        pytest.param(20, ROOT / "examples" / "mlp.py", marks=pytest.mark.slow),
        pytest.param(20, ROOT / "examples" / "resnet50.py", marks=pytest.mark.slow),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else None,
)
def test_a_model_has_the_same_bytes_in_every_process(tmp_path: Path, opset: int, source: Path | None) -> None:
    if source is None:
        source = tmp_path / "block.py"
        source.write_text(MODEL, encoding="utf-8")
    elif source.stem == "resnet50":
        pytest.importorskip("torchvision")
    first, second = (export(tmp_path / f"seed{seed}", source, opset, seed) for seed in (1, 2))
    assert first[0] == second[0]
    assert first[1] == second[1]


class Gelu(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.gelu(x)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.linear(x)) * 2


def test_exports_in_one_process_do_not_touch_each_other() -> None:
    x = torch.randn(2, 4)
    first = atonnx.export(Scaled().eval(), (x,), opset_version=13)
    atonnx.export(Gelu().eval(), (x,), opset_version=20, dynamic_shapes=({0: "batch"},))
    model = Scaled().eval()
    model.load_state_dict(first.exported_program.state_dict)
    second = atonnx.export(model, (x,), opset_version=13)
    third = atonnx.export(model, (x,))

    def structure(program: atonnx.ONNXProgram) -> list[tuple[str, list[str], list[str]]]:
        proto: onnx.ModelProto = program.model_proto
        return [(n.op_type, list(n.input), list(n.output)) for n in proto.graph.node]

    assert structure(first) == structure(second)
    assert first.model.opset_imports == second.model.opset_imports == {"": 13}
    assert third.model.opset_imports == {"": 20}
    for program in (first, second, third):
        torch.testing.assert_close(program(x)[0], model(x))


def test_export_stays_the_function_after_its_first_call() -> None:
    export = atonnx.export
    atonnx.export(Gelu().eval(), (torch.randn(2),))
    assert atonnx.export is export
    assert callable(atonnx.export)
