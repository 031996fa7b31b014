"""A third party's pack works once it is installed: no code at the call, and nothing of it in the core."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
import torch

import atonnx
from atonnx.errors import UnsupportedOpError

ops = pytest.importorskip("atonnx_custom_ops_example.ops")

PACK = "custom_ops_example"
MODEL = """
import torch
import atonnx_custom_ops_example.ops


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.ops.mylib.soft_threshold(torch.ops.mylib.clamp_scale(x, -1.0, 2.0, scale=0.5), 0.25)


class Standard(torch.nn.Module):
    def forward(self, x):
        return torch.ops.mylib.clamp_scale(x, -1.0, 2.0, 0.5)


def model():
    return Model().eval(), (torch.linspace(-3, 3, 12).reshape(4, 3),), {}, ({0: "batch"},)


def standard():
    return Standard().eval(), *model()[1:]
"""


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.ops.mylib.clamp_scale(x, -1.0, 2.0, scale=0.5)
        return torch.ops.mylib.soft_threshold(y, 0.25)


def command(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `atonnx` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "atonnx", *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `atonnx export FILE.py:model` writes."""
    folder = tmp_path_factory.mktemp("third-party")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    done = command("export", "model.py:model", "-o", "model.onnx", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "model.onnx"


def test_the_command_line_exports_a_model_with_its_operators(exported: Path) -> None:
    model = onnx.load(exported)
    onnx.checker.check_model(model, full_check=True)
    assert [(n.domain, n.op_type) for n in model.graph.node] == [
        ("", "Clip"),
        ("", "Mul"),
        ("com.example", "SoftThreshold"),
    ]
    assert {o.domain: o.version for o in model.opset_import} == {"": 20, "com.example": 1}


def test_each_node_names_the_pack_and_its_row(exported: Path) -> None:
    props = [{p.key: p.value for p in n.metadata_props} for n in onnx.load(exported).graph.node]
    assert {p["pkg.atonnx.plugin"] for p in props} == {PACK}
    assert [p["pkg.atonnx.translation"] for p in props] == [
        "mylib::clamp_scale",
        "mylib::clamp_scale",
        "mylib::soft_threshold",
    ]


@pytest.mark.parametrize("opset", [11, 13, 20, 28])
def test_its_reference_kernel_stands_in_for_a_runtime(opset: int) -> None:
    program = atonnx.export(
        Model().eval(), (torch.randn(4, 3),), opset_version=opset, dynamic_shapes=({0: "batch"},)
    )
    assert program.model.opset_imports == {"": opset, "com.example": 1}
    special = [float("nan"), float("inf"), -float("inf"), -0.0, 0.5, 4.0]
    for x in (torch.randn(7, 3), torch.tensor(special).reshape(2, 3), torch.empty(0, 3)):
        (result,) = program.call_reference(x)
        torch.testing.assert_close(result, Model()(x), equal_nan=True)


def test_its_schema_types_the_result() -> None:
    program = atonnx.export(Model().eval(), (torch.randn(4, 3, dtype=torch.float64),))
    node = program.model.graph[-1]
    assert (node.op_type, node.outputs[0].dtype) == ("SoftThreshold", ir.DataType.DOUBLE)


def test_its_row_refuses_a_case_at_the_users_line() -> None:
    with pytest.raises(UnsupportedOpError, match="bfloat16 tensor is not supported") as caught:
        atonnx.export(Model().eval(), (torch.randn(4, 3, dtype=torch.bfloat16),))
    assert caught.value.plugin == PACK
    assert Path(__file__).name in caught.value.source
    assert "cast it to float32" in caught.value.hint


def test_onnx_runtime_runs_what_needs_no_domain_of_its_own(exported: Path) -> None:
    done = command("export", "model.py:standard", "-o", "s.onnx", "--verify", cwd=exported.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_listed(tmp_path: Path) -> None:
    records = json.loads(command("plugins", "--json", cwd=tmp_path).stdout)
    (record,) = [r for r in records if r["name"] == PACK]
    assert record["state"] == "loaded"
    assert record["distribution"] == "atonnx-custom-ops-example"
    assert record["value"] == "atonnx_custom_ops_example"


def test_without_it_one_error_names_its_operators_and_their_lines(exported: Path) -> None:
    done = command(
        "export", "model.py:model", "-o", "none.onnx", cwd=exported.parent, ATONNX_DISABLE_PLUGINS=PACK
    )
    assert done.returncode == 1
    assert "mylib::clamp_scale" in done.stderr
    assert "mylib::soft_threshold" in done.stderr
    assert "model.py:8" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (exported.parent / "none.onnx").exists()
