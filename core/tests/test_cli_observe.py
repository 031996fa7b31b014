"""``atonnx export --observe``: what a script may do, and what is made of it."""

from __future__ import annotations

import sys
import textwrap

import onnx
import pytest
import torch
import typer
from torch import nn

from atonnx.cli import main
from atonnx.cli.observe import observed

DYNAMIC = torch.export.Dim.DYNAMIC

SCRIPT = """
import sys
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x, mask=None, scale=1.0):
        y = self.linear(x) * scale
        return y if mask is None else y * mask

model = Model().eval()
if __name__ == "__main__":
    with torch.no_grad():
        for rows in (2, 3, 4, 5):
            model(torch.ones(rows, 4), mask=torch.ones(rows, 1), scale=2.0)
"""


@pytest.fixture
def script(tmp_path):
    """Write a script."""

    def write(text, name="script.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


@pytest.fixture
def run(capsys):
    """Run the command; gives exit code, standard output, standard error."""

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return call


def test_a_model_is_exported_as_the_script_calls_it(script, run):
    path = script(SCRIPT)
    out = path.with_name("model.onnx")
    code, told, err = run("export", "--observe", path, "-o", out, "--verify")
    assert code == 0, told + err
    assert [line.split(":")[0].strip() for line in told.splitlines()[-3:]] == [
        f"ok  observed call {i}" for i in range(3)
    ]
    inputs = onnx.load(out).graph.input
    assert [value.name for value in inputs] == ["x", "mask"]
    assert inputs[0].type.tensor_type.shape.dim[0].dim_param


def test_axes_may_be_named(script, run):
    path = script(SCRIPT)
    out = path.with_name("model.onnx")
    dynamic = ("--dynamic", "x:0=rows", "--dynamic", "mask:0=rows")
    code, told, err = run("export", "--observe", path, "-o", out, *dynamic)
    assert code == 0, told + err
    assert onnx.load(out).graph.input[1].type.tensor_type.shape.dim[0].dim_param == "rows"


def test_the_script_runs_as_a_program_of_its_own(script, tmp_path):
    script("answer = 42", "neighbour.py")
    path = script(
        SCRIPT
        + """
import neighbour
found = (__name__, sys.argv, sys.modules["__main__"].model is model, __file__)
sys.exit(0)
"""
    )
    before = sys.modules["__main__"], sys.argv, list(sys.path), nn.Module.__call__
    source, observer = observed(str(path))
    assert (sys.modules["__main__"], sys.argv, sys.path, nn.Module.__call__) == before
    found = source.model.forward.__globals__["found"]
    assert found == ("__main__", [str(path)], True, str(path))
    assert observer.num_obs() == 3
    assert "forward" not in vars(source.model)


def test_observed_arguments_and_shapes(script):
    source, _ = observed(str(script(SCRIPT)))
    assert (len(source.args), list(source.kwargs)) == (1, ["mask", "scale"])
    assert source.dynamic_shapes == {"x": {0: DYNAMIC}, "mask": {0: DYNAMIC}, "scale": None}


SEVERAL = (
    SCRIPT
    + """
    loss = nn.MSELoss()
    loss(model(torch.ones(1, 4)), torch.ones(1, 3))
"""
)


def test_one_of_several_models_by_its_variable(script):
    path = script(SEVERAL)
    with pytest.raises(
        typer.BadParameter, match=r"several modules: Model \(model\), MSELoss \(loss\); say which"
    ):
        observed(str(path))
    source, _ = observed(f"{path}:loss")
    assert type(source.model).__name__ == "MSELoss"
    with pytest.raises(typer.BadParameter, match=r"has no other when it ends"):
        observed(f"{path}:other")
    with pytest.raises(typer.BadParameter, match=r"model\.linear is no module that script\.py calls"):
        observed(f"{path}:model.linear")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "script.py calls no nn.Module"),
        (SCRIPT + "\nsys.exit('enough')", "script.py ended with enough"),
    ],
)
def test_a_script_without_a_model_or_with_an_end_of_its_own(script, text, words):
    with pytest.raises(typer.BadParameter, match=words):
        observed(str(script(text)))


def test_an_error_of_the_script_is_its_own(script):
    path = script(SCRIPT + "\nraise ZeroDivisionError('by nought')")
    call = nn.Module.__call__
    with pytest.raises(ZeroDivisionError, match="by nought"):
        observed(str(path))
    assert nn.Module.__call__ is call


def test_a_model_that_the_script_exports_itself_is_not_observed_in_that(script):
    path = script(SCRIPT + "\n    torch.export.export(model, (torch.ones(2, 4),))")
    source, observer = observed(str(path))
    assert observer.num_obs() == 3
    assert len(source.kwargs) + len(source.args) == 3
    path = script(SCRIPT.partition("if __name__")[0] + "torch.export.export(model, (torch.ones(2, 4),))")
    with pytest.raises(typer.BadParameter, match="calls no"):
        observed(str(path))


def test_a_model_or_a_script_but_not_both(script, run):
    path = script(SCRIPT)
    for arguments in ((), (f"{path}:model", "--observe", path)):
        code, _, err = run("export", *arguments, "-o", path.with_name("m.onnx"))
        assert code == 2 and "either a model or a script" in " ".join(err.split())
    code, _, err = run("export", "--observe", "nowhere.py", "-o", path.with_name("m.onnx"))
    assert code == 2 and "there is no file nowhere.py" in " ".join(err.split())
