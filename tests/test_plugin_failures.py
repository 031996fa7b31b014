"""A plugin that fails, or that is not there, is told apart by name and hurts only who needs it.

The plugins here are distributions of third parties, made in a folder and put on PYTHONPATH.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import textwrap
import venv
from pathlib import Path
from typing import Any

import pytest

SAME_ROW = """
    from atonnx.plugins import hookimpl

    ATONNX_API = (1, 0)


    @hookimpl
    def atonnx_translations():
        from atonnx.dispatch import Table

        table = Table(__name__)

        @table.translate("mylib::soft_threshold")
        def soft_threshold(op, x, threshold):
            '''Softplus as a stand-in.'''
            return op.{op_type}(x)

        return table
"""

# Module, distribution and code of each plugin.
RAISING = ("raising", "dist-raising", "import a_module_that_is_not_there\n")
MISSPELT = (
    "misspelt",
    "dist-misspelt",
    """
    from atonnx.plugins import hookimpl

    ATONNX_API = (1, 0)


    @hookimpl
    def atonnx_translation():
        return []
    """,
)
LATER = ("later", "dist-later", "ATONNX_API = (2, 0)\n")
LATE = (
    "late",
    "dist-late",
    """
    from atonnx.plugins import hookimpl

    ATONNX_API = (1, 0)


    @hookimpl
    def atonnx_translations():
        raise ValueError("no rows today")
    """,
)
FIRST = ("first_of_two", "dist-first", SAME_ROW.format(op_type="Softsign"))
SECOND = ("second_of_two", "dist-second", SAME_ROW.format(op_type="Softplus"))

# Exports models, tells what came of each.
RUN = """
import json
import sys
import warnings

import torch

import atonnx
import atonnx_custom_ops_example.ops


class Small(torch.nn.Module):
    args = (torch.ones(2, 3),)

    def forward(self, x):
        return torch.ops.mylib.clamp_scale(x, -1.0, 1.0)


class Needy(torch.nn.Module):
    args = (torch.ones(2, 3),)

    def forward(self, x):
        return torch.ops.mylib.soft_threshold(x, 0.5)


def resnet():
    import torchvision

    model = torchvision.models.resnet50()
    model.args = (torch.randn(1, 3, 64, 64),)
    return model


def export(make, **options):
    told = {}
    model = make().eval()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            program = atonnx.export(model, model.args, **options)
            told["ops"] = [node.op_type for node in program.model.graph]
            told["plugins"] = sorted({n.metadata_props["pkg.atonnx.plugin"] for n in program.model.graph})
        except atonnx.OnnxExporterError as error:
            told["error"] = type(error).__name__
            told["text"] = str(error)
            told["names"] = list(getattr(error, "plugins", ()))
            told["target"] = getattr(error, "target", "")
            missing = getattr(error, "missing", ())
            told["missing"] = [[m.op, m.count, m.distribution, m.reason] for m in missing]
    told["warnings"] = [str(w.message) for w in caught if w.category.__name__ == "OnnxExporterWarning"]
    return told


print(json.dumps([eval(call) for call in sys.argv[1:]]))
"""


def install(folder: Path, *plugins: tuple[str, str, str]) -> dict[str, str]:
    """Put distributions into a folder, as pip would; the environment that finds them."""
    folder.mkdir(exist_ok=True)
    for module, distribution, code in plugins:
        (folder / f"{module}.py").write_text(textwrap.dedent(code), encoding="utf-8")
        info = folder / f"{distribution.replace('-', '_')}-1.5.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[atonnx]\n{module} = {module}\n", encoding="utf-8")
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run(python: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own."""
    env = {**os.environ, **environment}
    return subprocess.run([python, *arguments], env=env, capture_output=True, text=True)


def listed(*, python: str = sys.executable, **environment: str) -> dict[str, dict[str, str]]:
    """What `atonnx plugins --json` says, by name."""
    done = run(python, "-m", "atonnx", "plugins", "--json", **environment)
    assert done.returncode == 0, done.stderr
    return {record["name"]: record for record in json.loads(done.stdout)}


def exported(
    folder: Path, *calls: str, python: str = sys.executable, **environment: str
) -> list[dict[str, Any]]:
    """What came of calls of RUN's `export`, in one process."""
    script = folder / "run.py"
    script.write_text(RUN, encoding="utf-8")
    done = run(python, str(script), *calls, **environment)
    assert done.returncode == 0, done.stderr
    told: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with three plugins that cannot be loaded, and a pair that conflicts."""
    folder = tmp_path_factory.mktemp("broken") / "site"
    return install(folder, RAISING, MISSPELT, LATER, FIRST, SECOND)


OFFERED = {"first_of_two": "Softsign", "second_of_two": "Softplus", "custom_ops_example": "SoftThreshold"}


@pytest.fixture(scope="module")
def told(broken: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Exports of a model that needs none of them, of one that conflicts, of one that does not by `prefer`."""
    preferring = [f"export(Needy, prefer={{'mylib::soft_threshold': {plugin!r}}})" for plugin in OFFERED]
    folder = tmp_path_factory.mktemp("exports")
    return exported(folder, "export(Small)", "export(Needy)", *preferring, **broken)


REASONS = {
    "raising": ("dist-raising", ["ModuleNotFoundError", "a_module_that_is_not_there"]),
    "misspelt": ("dist-misspelt", ["PluginApiError", "atonnx_translation,", "atonnx_translations"]),
    "later": ("dist-later", ["PluginApiError", "API 2.0", "has 1.0"]),
}


def test_each_kind_of_failure_is_listed_by_name_with_its_reason(broken: dict[str, str]) -> None:
    records = listed(**broken)
    for name, (distribution, reasons) in REASONS.items():
        record = records[name]
        assert (record["state"], record["distribution"]) == ("failed", distribution)
        assert record["version"] == "1.5"
        assert [reason for reason in reasons if reason not in record["reason"]] == []
    for name in ("first_of_two", "second_of_two", "custom_ops_example", "opset_packs"):
        assert records[name]["state"] == "loaded"


def test_a_model_that_does_not_need_them_is_exported(told: list[dict[str, Any]]) -> None:
    small = told[0]
    assert small["ops"] == ["Clip"]
    assert small["plugins"] == ["custom_ops_example"]


def test_each_failure_is_one_warning(told: list[dict[str, Any]]) -> None:
    first, *later = (export["warnings"] for export in told)
    for name, (distribution, reasons) in REASONS.items():
        (text,) = [w for w in first if w.startswith(f"plugin {name} ({distribution} 1.5)")]
        assert [reason for reason in reasons if reason not in text] == []
    assert len(first) == len(REASONS)
    assert later == [[]] * len(later)


def test_rows_of_equal_rank_are_an_error_for_the_model_that_uses_the_operator(
    told: list[dict[str, Any]],
) -> None:
    needy = told[1]
    assert needy["error"] == "PluginConflictError"
    assert needy["names"] == sorted(OFFERED)
    assert needy["target"] == "mylib::soft_threshold"
    for part in ("first_of_two.py:", "second_of_two.py:", "prefer="):
        assert part in needy["text"]


def test_prefer_settles_a_conflict(told: list[dict[str, Any]]) -> None:
    made = [(export.get("plugins"), export.get("ops")) for export in told[2:]]
    assert made == [([plugin], [op_type]) for plugin, op_type in OFFERED.items()]


def test_a_plugin_that_fails_in_a_hook_is_named_by_the_error_for_what_is_missing(tmp_path: Path) -> None:
    environment = install(tmp_path / "site", LATE, RAISING)
    (told,) = exported(tmp_path, "export(Needy)", ATONNX_DISABLE_PLUGINS="custom_ops_example", **environment)
    assert told["error"] == "UnsupportedOpError"
    assert [missing[:2] for missing in told["missing"]] == [["mylib::soft_threshold", 1]]
    for part in ("plugin late (dist-late 1.5)", "no rows today", "plugin raising (dist-raising 1.5)"):
        assert part in told["text"]
        assert part in "\n".join(told["warnings"])


def test_strict_plugins_make_a_failure_an_error(broken: dict[str, str]) -> None:
    done = run(sys.executable, "-m", "atonnx", "plugins", ATONNX_STRICT_PLUGINS="1", **broken)
    assert done.returncode == 1
    assert done.stderr.startswith("error: plugin later (dist-later 1.5): failed")


# ---------------------------------------------------------------- a known pack that is not there

OF_ATEN_NN = {
    "aten::adaptive_avg_pool2d": 1,
    "aten::batch_norm": 53,
    "aten::conv2d": 53,
    "aten::linear": 1,
    "aten::max_pool2d": 1,
    "aten::relu_": 49,
}


def check_all_missing(told: dict[str, Any]) -> None:
    """One error that names every operator of the pack, and how to have it."""
    assert told["error"] == "UnsupportedOpError", told
    assert {op: count for op, count, _, _ in told["missing"]} == OF_ATEN_NN
    assert {distribution for _, _, distribution, _ in told["missing"]} == {"atonnx-aten-nn"}
    assert all("pip install atonnx-aten-nn" in reason for *_, reason in told["missing"])
    assert "hint: pip install atonnx-aten-nn" in told["text"]
    assert [op for op, count in OF_ATEN_NN.items() if f"{op} ({count}x)" not in told["text"]] == []
    assert "torchvision/models/resnet.py:" in told["text"]


def test_without_a_known_pack_one_error_names_all_it_had(tmp_path: Path) -> None:
    pytest.importorskip("torchvision")
    (told,) = exported(tmp_path, "export(resnet)", ATONNX_DISABLE_PLUGINS="aten_nn")
    check_all_missing(told)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="makes symbolic links")
def test_an_uninstalled_pack_is_missed_in_the_same_way(tmp_path: Path) -> None:
    """In an environment that has all that this one has, but that distribution."""
    pytest.importorskip("torchvision")
    venv.create(tmp_path / "env", symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.run([python, "-c", where], capture_output=True, text=True).stdout.strip())
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "atonnx_aten_nn" not in entry.name:
            (site / entry.name).symlink_to(entry)
    assert "aten_nn" not in listed(python=str(python))
    (told,) = exported(tmp_path, "export(resnet)", python=str(python))
    check_all_missing(told)
