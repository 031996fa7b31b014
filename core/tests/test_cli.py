"""The command line: what is printed, how it ends, and what it does not import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
import warnings

import pytest
import torch
import typer

import atonnx.cli.app as app_module
from atonnx.cli import main
from atonnx.cli.dynamic import dynamic_shapes, parse
from atonnx.cli.source import Source, load_source
from atonnx.dispatch import OpsetPack, Table
from atonnx.errors import CaptureError, OnnxExporterWarning
from atonnx.plugins import API, Policy, hookimpl, load


class Plugin:
    """An object to hang hooks on."""

    ATONNX_API = API


class Point:
    """An entry point whose plugin is given."""

    def __init__(self, name, plugin):
        self.name, self.value, self.plugin = name, f"{name}_module", plugin
        self.dist = types.SimpleNamespace(name=f"dist-{name}", version="1.0")

    def load(self):
        if isinstance(self.plugin, Exception):
            raise self.plugin
        return self.plugin


def plugin(**hooks):
    made = Plugin()
    for name, hook in hooks.items():
        setattr(made, name, hookimpl(hook))
    return made


@pytest.fixture
def installed(monkeypatch):
    """Make the command see just the plugins given."""

    def install(**plugins):
        points = [Point(name, made) for name, made in plugins.items()]
        made = None

        def loaded():
            nonlocal made
            made = made or load(entry_points=points, policy=Policy())
            return made

        monkeypatch.setattr(app_module, "load", loaded)

    install()
    return install


@pytest.fixture
def run(capsys):
    """Run the command; gives exit code, standard output, standard error."""

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return call


def aten_table():
    table = Table("t")

    @table.translate("aten::gelu", since=20)
    def gelu(op, self, *, approximate="none"): ...

    @table.translate("aten::add.Tensor", "aten::add.Scalar")
    def add(op, self, other, *, alpha=1): ...

    return table


@pytest.mark.parametrize("arguments", [["--help"], ["plugins"], ["plugins", "--json"], ["--version"]])
def test_help_and_plugins_import_neither_torch_nor_onnx(arguments):
    code = (
        "import sys, atexit; from atonnx.cli import main;"
        "heavy = {'torch', 'onnx', 'onnx_ir', 'numpy'};"
        "atexit.register(lambda: print('IMPORTED', heavy & set(sys.modules)));"
        f"main({arguments!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "IMPORTED set()"


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "atonnx", "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("atonnx ")


def test_output_is_readable_where_the_encoding_is_ascii(tmp_path):
    code = "from atonnx.cli import main; main(['explain', 'aten::g\\u00e9lu'])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 1
    assert b"g\\xe9lu" in done.stderr and b"Traceback" not in done.stderr


def test_plugins_lists_records_with_their_reasons(installed, run):
    installed(good=plugin(), bad=ImportError("no module named x"))
    code, out, err = run("plugins")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["PLUGIN", "STATE", "DISTRIBUTION", "VERSION", "ENTRY", "POINT"]
    assert lines[1].split() == ["bad", "failed", "dist-bad", "1.0", "bad_module"]
    assert lines[2] == "    ImportError: no module named x"
    assert lines[3].split() == ["good", "loaded", "dist-good", "1.0", "good_module"]
    assert err.startswith("warning: plugin bad (dist-bad 1.0): failed: ImportError")


def test_plugins_as_json(installed, run):
    installed(good=plugin())
    _, out, _ = run("plugins", "--json")
    assert json.loads(out) == [
        {
            "name": "good",
            "distribution": "dist-good",
            "version": "1.0",
            "value": "good_module",
            "state": "loaded",
            "reason": "",
        }
    ]


def test_plugins_without_plugins_says_so(run, installed):
    assert run("plugins")[1] == "no plugins are installed\n"


def test_check_prints_problems_and_conflicts_and_fails(installed, run, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "atonnx.testing.check_plugin", lambda name: asked.append(name) or [f"{name} is odd"], raising=False
    )
    installed(
        a=plugin(atonnx_translations=aten_table),
        b=plugin(atonnx_translations=aten_table, atonnx_decompositions=lambda: {"ns::a": print}),
        c=plugin(atonnx_decompositions=lambda: {"ns::a": len}),
    )
    code, out, _ = run("plugins", "--check")
    assert (code, asked) == (1, ["a", "b", "c"])
    assert "plugin a: a is odd" in out
    assert out.count("translate aten::gelu at equal rank") == 1
    assert "ns::a: conflict of b, c" in out


def test_check_without_problems_ends_well(installed, run, monkeypatch):
    monkeypatch.setattr("atonnx.testing.check_plugin", lambda name: [], raising=False)
    installed(a=plugin(atonnx_translations=aten_table))
    assert run("plugins", "--check")[:2] == (0, "1 plugins: no problems\n")


@pytest.mark.parametrize("name", ["aten::gelu", "aten.gelu.default", "gelu", "torch.ops.aten.gelu.default"])
def test_explain_takes_an_operator_as_users_write_it(installed, run, name):
    installed(mine=plugin(atonnx_translations=aten_table))
    code, out, _ = run("explain", name, "--opset", 20)
    assert code == 0
    first, second = out.splitlines()
    assert first == "aten::gelu at opset 20"
    assert second.startswith("  1. mine: ") and second.endswith("- chosen")
    assert "not for opset 17" in run("explain", name, "--opset", 17)[1]


def test_explain_shows_all_overloads_of_a_packet(installed, run):
    installed(mine=plugin(atonnx_translations=aten_table))
    out = run("explain", "aten::add")[1]
    assert "aten::add.Scalar at" in out and "aten::add.Tensor at" in out


def test_explain_shows_decompositions_and_rows_of_onnx_operators(installed, run):
    def packs():
        pack = OpsetPack("p")
        pack.below(20, "Gelu")(print)
        pack.same("Relu", 13, 14)
        return pack

    decompositions = plugin(atonnx_decompositions=lambda: {"ns::a": print, "ns::b": None})
    installed(packs=plugin(atonnx_opset_packs=packs), parts=decompositions)
    assert run("explain", "ns::a")[1] == "ns::a: decomposed by parts\n"
    assert run("explain", "ns::b")[1] == "ns::b: kept whole by parts\n"
    assert run("explain", "Gelu")[1].startswith("ONNX Gelu below opset 20: packs")
    assert run("explain", "Relu")[1] == "ONNX Relu means the same in versions 13, 14\n"


def test_explain_shows_which_opset_rows_are_taken(run):
    out = run("explain", "Gelu", "--opset", 19)[1]
    assert "below opset 20: opset_packs" in out and out.rstrip().endswith("taken at opset 19")
    assert run("explain", "Gelu", "--opset", 20)[1].rstrip().endswith("not needed at opset 20")


def test_explain_shows_what_a_sample_becomes_and_through_which_rows(run):
    old, new = (run("explain", "aten::gelu", "--opset", opset)[1].splitlines() for opset in (11, 20))
    assert old[2].startswith("  its first sample becomes Div 1, Erf 1")
    assert old[3].startswith("    ONNX Gelu below opset 20: opset_packs")
    assert new[2:] == ["  its first sample becomes Gelu 1"]


def test_ops_lists_operators_with_their_plugins(installed, run):
    def later():
        table = Table("later")
        table.translate("ns::new", since=20)(lambda op: None)
        table.translate("aten::gelu")(lambda op, self, *, approximate="none": None)
        return table

    installed(mine=plugin(atonnx_translations=aten_table), later=plugin(atonnx_translations=later))
    lines = run("ops", "--opset", 20)[1].splitlines()
    assert [line.split()[0] for line in lines] == [
        "aten::add.Scalar",
        "aten::add.Tensor",
        "aten::gelu",
        "ns::new",
    ]
    assert lines[2].split(maxsplit=1)[1] == "later, mine"
    assert "ns::new" not in run("ops", "--opset", 19)[1]
    assert [line.split()[0] for line in run("ops", "--plugin", "later", "--opset", 19)[1].splitlines()] == [
        "aten::gelu"
    ]
    code, _, err = run("ops", "--plugin", "nobody")
    assert code == 1 and "no plugin is named nobody" in err and "later, mine" in err


def test_ops_missing_has_neither_rows_nor_decompositions_nor_gradients(installed, run):
    def decompositions():
        return {torch.ops.aten.relu.default: print, torch.ops.aten.tanh.default: None}

    mine = plugin(atonnx_translations=aten_table, atonnx_decompositions=decompositions)
    installed(mine=mine)
    found = set(run("ops", "--missing")[1].split())
    assert {"aten::sub.Tensor", "aten::tanh", "aten::mm"} <= found
    assert not {"aten::add.Tensor", "aten::relu", "aten::add_.Tensor", "aten::tanh_backward"} & found
    assert run("ops", "--missing", "--plugin", "mine")[0] == 2


def test_explain_of_an_unknown_operator_names_close_ones(installed, run):
    installed(mine=plugin(atonnx_translations=aten_table))
    code, out, err = run("explain", "aten::gelo")
    assert (code, out) == (1, "")
    assert "aten::gelo: no plugin has a row" in err and "close names: aten::gelu" in err


def test_plugins_add_commands_and_clashing_ones_are_left_out(installed, run):
    def adding(*names):
        def hook(commands):
            for name in names:
                commands.command(name)(lambda name=name: print(f"{name} was run"))

        return plugin(atonnx_cli=hook)

    installed(one=adding("hello", "world"), two=adding("hello"), three=adding("plugins"))
    code, out, err = run("world")
    assert (code, out) == (0, "world was run\n")
    assert "plugin two is left out of the command line: one has a command hello" in err
    assert "plugin three is left out" in err and "atonnx has a command plugins" in err


def test_a_plugin_whose_commands_fail_leaves_the_others(installed, run):
    def failing(commands):
        raise ValueError("no luck")

    installed(bad=plugin(atonnx_cli=failing))
    code, _, err = run("plugins")
    assert code == 0 and "atonnx_cli: ValueError: no luck" in err


MODEL = """
import torch

class Twice(torch.nn.Module):
    def forward(self, x, scale=2.0):
        return x * scale

net = Twice()
program = torch.export.export(net, (torch.ones(2),))
number = 3
def full():
    return net, (torch.ones(2, 3),), {"scale": 3.0}, {"x": {0: "batch"}, "scale": None}
def short():
    return net, torch.ones(2, 3)
def captured():
    return program
def wrong():
    return 1, 2
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my_model.py"
    path.write_text(MODEL)
    return path


def test_an_object_is_a_module_a_function_or_a_program(file):
    full = load_source(f"{file}:full")
    assert (full.kwargs, full.dynamic_shapes) == ({"scale": 3.0}, {"x": {0: "batch"}, "scale": None})
    assert full.args[0].shape == (2, 3)
    short = load_source(f"{file}:short")
    assert (len(short.args), short.kwargs, short.dynamic_shapes) == (1, {}, None)
    for name in ("program", "captured"):
        source = load_source(f"{file}:{name}")
        assert source.is_program and source.inputs == (None, None)


def test_a_module_has_its_arguments_beside_it(file):
    with pytest.raises(typer.BadParameter, match="example_args"):
        load_source(f"{file}:net")
    file.write_text(
        MODEL + "\nexample_args = torch.ones(2)\nexample_kwargs = {}\ndynamic_shapes = {'x': {}}\n"
    )
    source = load_source(f"{file}:net")
    assert source.args[0].shape == (2,) and source.kwargs == {} and source.dynamic_shapes == {"x": {}}


def test_a_files_neighbours_can_be_imported(file):
    (file.parent / "beside_it.py").write_text("value = 5")
    file.write_text(MODEL + "\nfrom beside_it import value\n")
    assert load_source(f"{file}:short")


@pytest.mark.parametrize(
    "name, words",
    [
        ("nothing", "has no nothing"),
        ("number", "is a int"),
        ("Twice", "is a type"),
        ("wrong", "must return"),
    ],
)
def test_an_object_that_is_no_model_is_refused(file, name, words):
    with pytest.raises(typer.BadParameter, match=words):
        load_source(f"{file}:{name}")


def test_a_missing_file_or_object_is_a_usage_error(run, installed, tmp_path):
    for text, words in (("gone.py:model", "no file gone.py"), ("gone.py", "names no object")):
        code, _, err = run("export", text, "-o", tmp_path / "m.onnx")
        assert code == 2 and words in err


def test_dynamic_names_axes_by_input():
    assert parse(["x:0=batch,2=length", "d.left:1=n"]) == {"x": {0: "batch", 2: "length"}, "d.left": {1: "n"}}


@pytest.mark.parametrize("text", ["x", "x:", ":0=a", "x:a=b", "x:0", "x:0=", "x:0=a b"])
def test_a_dynamic_option_of_another_form_is_refused(text):
    with pytest.raises(typer.BadParameter):
        parse([text])


class Nested(torch.nn.Module):
    def forward(self, x, d, *rest, scale=1.0, **more):
        return x


def test_dynamic_shapes_are_nested_as_the_arguments_are():
    t = torch.ones(2, 3, 4)
    source = Source(Nested(), (t, {"left": t, "right": [t, t]}, t), {"scale": 2.0, "z": t})
    options = ["x:0=batch,-1=length", "d.left:0=batch", "d.right.1:1=n", "rest.0:0=batch", "z:0=batch"]
    assert dynamic_shapes(options, source) == {
        "x": {0: "batch", 2: "length"},
        "d": {"left": {0: "batch"}, "right": [{}, {1: "n"}]},
        "rest": ({0: "batch"},),
        "scale": None,
        "z": {0: "batch"},
    }
    with pytest.raises(typer.BadParameter, match="no tensor input is named y; there are: x, d.left"):
        dynamic_shapes(["y:0=batch"], source)
    with pytest.raises(typer.BadParameter, match="no axis 3"):
        dynamic_shapes(["x:3=batch"], source)


@pytest.fixture
def pipeline(monkeypatch):
    """A pipeline in place of the real one, which keeps its arguments."""
    module = types.ModuleType("atonnx.pipeline")
    calls = []

    class Graph(list):
        inputs = (types.SimpleNamespace(name="x"),)
        outputs = (types.SimpleNamespace(name="y"),)

    def export(model, args=(), f=None, **options):
        calls.append({"model": model, "args": args, "f": f, **options})
        if module.error:
            raise module.error
        graph = types.SimpleNamespace(graph=Graph("ab"), opset_imports={"": 20})
        return types.SimpleNamespace(model=graph, verify=lambda *arguments: module.verify(*arguments))

    module.export, module.error, module.calls = export, None, calls
    monkeypatch.setitem(sys.modules, "atonnx.pipeline", module)
    monkeypatch.setattr("atonnx.pipeline", module, raising=False)
    return module


def test_export_hands_everything_to_the_pipeline(installed, run, pipeline, file):
    out = file.parent / "new" / "m.onnx"
    code, told, err = run(
        "export", f"{file}:full", "-o", out, "--opset", 17, "--no-external-data",
        "--dynamic", "x:0=batch,1=length", "--prefer", "aten::gelu=mine",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert told == f"{out}: opset 20, 2 nodes, inputs x, outputs y\n"
    (call,) = pipeline.calls
    call.pop("model"), call.pop("args")
    assert call == {
        "f": str(out),
        "kwargs": {"scale": 3.0},
        "opset_version": 17,
        "external_data": False,
        "dynamic_shapes": {"x": {0: "batch", 1: "length"}, "scale": None},
        "prefer": {"aten::gelu": "mine"},
    }
    assert out.parent.is_dir()


def test_export_takes_the_files_dynamic_shapes(installed, run, pipeline, file):
    run("export", f"{file}:full", "-o", file.with_suffix(".onnx"))
    assert pipeline.calls[0]["dynamic_shapes"] == {"x": {0: "batch"}, "scale": None}
    assert pipeline.calls[0]["opset_version"] is None and pipeline.calls[0]["external_data"] is True


@pytest.mark.parametrize("ok, code", [(True, 0), (False, 1)])
def test_verify_prints_the_verdict_and_ends_by_it(installed, run, pipeline, file, ok, code):
    class Verification:
        def __str__(self):
            return "agrees" if ok else "departs"

    Verification.ok = ok
    asked = []
    pipeline.verify = lambda *arguments: asked.append(arguments) or Verification()
    ended, out, _ = run("export", f"{file}:full", "-o", file.with_suffix(".onnx"), "--verify")
    assert ended == code and out.splitlines()[-1] == str(Verification())
    assert asked[0][1] == {"scale": 3.0}
    run("export", f"{file}:program", "-o", file.with_suffix(".onnx"), "--verify")
    assert asked[1] == (None, None)


def test_our_errors_are_text_without_traceback(installed, run, pipeline, file):
    pipeline.error = CaptureError("the model has no forward", hint="write one")
    arguments = ("export", f"{file}:short", "-o", file.with_suffix(".onnx"))
    code, out, err = run(*arguments)
    assert (code, out, err) == (1, "", "error: the model has no forward\n  hint: write one\n")
    with pytest.raises(CaptureError):
        main([str(argument) for argument in arguments] + ["--traceback"])
    pipeline.error = PermissionError("not there")
    assert run(*arguments)[::2] == (1, "error: not there\n")


def test_prefer_needs_both_sides(installed, run, file):
    code, _, err = run("export", f"{file}:short", "-o", "m.onnx", "--prefer", "aten::gelu")
    assert code == 2 and "WHAT=PLUGIN" in err


def test_the_exporters_warnings_are_a_line(installed, run, pipeline, file, monkeypatch):
    plain = pipeline.export

    def export(*args, **options):
        warnings.warn("take care", OnnxExporterWarning, stacklevel=1)
        warnings.warn("of this", UserWarning, stacklevel=2)
        return plain(*args, **options)

    pipeline.export = export
    assert (
        run("export", f"{file}:short", "-o", file.with_suffix(".onnx"))[2]
        == "warning: take care\nwarning: of this\n"
    )
