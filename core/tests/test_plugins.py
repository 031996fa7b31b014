"""Loading plugins and asking their hooks: a bad plugin is told apart by name, and hurts no other."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import pytest

from atonnx.dispatch import OpsetPack, Table, Translation
from atonnx.errors import (
    OnnxExporterWarning,
    PluginApiError,
    PluginConflictError,
    PluginError,
    PluginLoadError,
)
from atonnx.plugins import API, DomainInfo, PassSpec, PluginRecord, Policy, Target, hookimpl, load


@dataclass
class Dist:
    name: str
    version: str = "1.0"


class Point:
    """An entry point whose plugin is given, or whose loading raises."""

    def __init__(self, name: str, plugin: Any, dist: str = "") -> None:
        self.name = name
        self.value = f"{name}_module"
        self.plugin = plugin
        self.dist = Dist(dist or f"dist-{name}")

    def load(self) -> Any:
        if isinstance(self.plugin, BaseException):
            raise self.plugin
        return self.plugin


class Plugin:
    """An object to hang hooks on."""


def plugin(api: Any = API, **hooks: Any) -> Plugin:
    """A plugin with these hooks; a value that is not a function is what the hook returns."""
    made = Plugin()
    if api is not None:
        made.ATONNX_API = api
    for name, answer in hooks.items():
        setattr(made, name, hookimpl(answer if callable(answer) else (lambda value: lambda: value)(answer)))
    return made


def loaded(*points: Point, **policy: Any):
    return load(entry_points=points, policy=Policy(**policy))


def quietly(*points: Point, **policy: Any):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnnxExporterWarning)
        return loaded(*points, **policy)


def row(target: str = "aten::gelu") -> Translation:
    return Translation(target, lambda op: None)


GOOD = Point("good", plugin(atonnx_translations=[row("aten::relu")]))


def refuse() -> Any:
    raise ValueError("no luck")


def sole_failure(*points: Point) -> PluginRecord:
    """The one failure among the points and GOOD, which must still work."""
    with pytest.warns(OnnxExporterWarning) as warned:
        plugins = loaded(GOOD, *points)
    assert len(warned) == 1
    assert [found.target for found in plugins.translations()] == ["aten::relu"]
    (record,) = plugins.failed
    assert str(warned[0].message) == str(record)
    return record


def test_a_plugin_that_raises_at_import_is_one_record():
    record = sole_failure(Point("bad", ImportError("no module named numpy2")))
    assert (record.name, record.distribution, record.state) == ("bad", "dist-bad", "failed")
    assert "bad" in str(record) and "dist-bad 1.0" in str(record) and "numpy2" in str(record)


def test_a_plugin_that_exits_at_import_is_one_record():
    assert isinstance(sole_failure(Point("bad", SystemExit(3))).error, SystemExit)


def test_a_misspelt_hook_is_named_with_the_closest_real_one():
    record = sole_failure(Point("bad", plugin(atonnx_translation=[row()])))
    assert isinstance(record.error, PluginApiError)
    assert "atonnx_translation," in str(record) and "atonnx_translations" in str(record)


def test_a_hook_without_the_marker_is_refused_not_ignored():
    bad = plugin()
    bad.atonnx_translations = refuse
    assert "not marked" in str(sole_failure(Point("bad", bad)))


def test_a_hook_with_wrong_parameters_is_refused_and_leaves_nothing_registered():
    bad = plugin(atonnx_domains=[DomainInfo("x")], atonnx_translation_tables=lambda version: {})
    with pytest.warns(OnnxExporterWarning, match="version"):
        plugins = loaded(GOOD, Point("bad", bad))
    assert isinstance(plugins.failed[0].error, PluginApiError)
    assert not plugins.domains()


def test_hook_wrappers_are_refused():
    bad = plugin()
    bad.atonnx_passes = hookimpl(wrapper=True)(lambda: (yield))
    assert "wrapper" in str(sole_failure(Point("bad", bad)))


@pytest.mark.parametrize(
    "api, words",
    [
        (None, ["does not state ATONNX_API"]),
        ((2, 0), ["2.0", "1.0", "update atonnx-core"]),
        ((0, 9), ["0.9", "1.0", "update the plugin"]),
        ((API[0], API[1] + 1), [f"1.{API[1] + 1}", "1.0"]),
        ("1.0", ["'1.0'", "pair of integers"]),
    ],
)
def test_another_api_version_is_named_beside_ours(api, words):
    record = sole_failure(Point("bad", plugin(api)))
    assert isinstance(record.error, PluginApiError)
    assert all(word in str(record) for word in words)


def test_two_plugins_of_one_name_both_fail_naming_their_distributions():
    plugins = quietly(GOOD, Point("twin", plugin(), "dist-a"), Point("twin", plugin(), "dist-b"))
    assert [record.distribution for record in plugins.failed] == ["dist-a", "dist-b"]
    assert all("dist-a" in str(record) and "dist-b" in str(record) for record in plugins.failed)


def test_records_are_sorted_by_name_whatever_the_order_of_discovery():
    points = [Point(name, plugin(atonnx_translations=row())) for name in ("b", "c", "a")]
    assert [record.name for record in loaded(*points).records] == ["a", "b", "c"]
    assert [found.plugin for found in loaded(*points).translations()] == ["a", "b", "c"]


def test_strict_makes_a_failure_an_error():
    with pytest.raises(PluginLoadError, match="no luck") as caught:
        loaded(Point("bad", ValueError("no luck")), strict=True)
    assert caught.value.record.name == "bad"
    assert isinstance(caught.value.__cause__, ValueError)
    hooked = loaded(Point("bad", plugin(atonnx_passes=refuse)), strict=True)
    with pytest.raises(PluginLoadError, match="atonnx_passes.*no luck"):
        hooked.passes()


@pytest.mark.parametrize(
    "environment, states",
    [
        ({}, ["loaded", "loaded"]),
        ({"ATONNX_PLUGINS": ""}, ["blocked", "blocked"]),
        ({"ATONNX_PLUGINS": "a"}, ["loaded", "blocked"]),
        ({"ATONNX_PLUGINS": "a, b"}, ["loaded", "loaded"]),
        ({"ATONNX_DISABLE_PLUGINS": "a"}, ["blocked", "loaded"]),
        ({"ATONNX_PLUGINS": "a,b", "ATONNX_DISABLE_PLUGINS": "b"}, ["loaded", "blocked"]),
    ],
)
def test_environment_allows_and_blocks(environment, states):
    points = [Point("a", plugin()), Point("b", plugin())]
    plugins = load(entry_points=points, policy=Policy.of(environment))
    assert [record.state for record in plugins.records] == states
    assert all(record.reason for record in plugins.records if record.state == "blocked")


def test_strict_is_read_from_the_environment():
    assert Policy.of({"ATONNX_STRICT_PLUGINS": "1"}).strict
    assert not Policy.of({"ATONNX_STRICT_PLUGINS": "0"}).strict


def test_a_blocked_plugin_is_not_imported():
    points = [Point("bad", ImportError("imported"))]
    assert not load(entry_points=points, policy=Policy(block=frozenset({"bad"}))).failed


def test_an_allow_list_with_an_unknown_name_warns():
    with pytest.warns(OnnxExporterWarning, match="goood.*did you mean good"):
        load(entry_points=[GOOD], policy=Policy(allow=frozenset({"good", "goood"})))


def test_load_is_cached_and_an_own_set_is_apart():
    assert load() is load()
    assert loaded(GOOD) is not load()


def test_a_hook_that_raises_fails_its_plugin_only_and_is_told_once():
    plugins = loaded(GOOD, Point("bad", plugin(atonnx_passes=refuse)))
    assert not plugins.failed
    with pytest.warns(OnnxExporterWarning, match="bad.*atonnx_passes: ValueError: no luck"):
        plugins.passes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plugins.passes() == ()
    assert [record.name for record in plugins.failed] == ["bad"]


def test_another_hook_of_a_failed_plugin_is_told_as_well():
    plugins = loaded(Point("bad", plugin(atonnx_passes=refuse, atonnx_domains=refuse)))
    with pytest.warns(OnnxExporterWarning, match="atonnx_passes"):
        plugins.passes()
    with pytest.warns(OnnxExporterWarning, match="atonnx_domains"):
        plugins.domains()
    assert plugins.failed[0].reason.startswith("atonnx_passes")


@pytest.mark.parametrize(
    "hook, ask, answer",
    [
        ("atonnx_translations", "translations", {"aten::gelu": refuse}),
        ("atonnx_opset_packs", "opset_rows", [row()]),
        ("atonnx_passes", "passes", ["cse"]),
        ("atonnx_domains", "domains", "com.example"),
        ("atonnx_program_passes", "program_passes", [3]),
        ("atonnx_capture_patches", "capture_patches", [3]),
        ("atonnx_targets", "targets", [3]),
        ("atonnx_decompositions", "decompositions", [3]),
    ],
)
def test_a_hook_that_returns_something_else_fails(hook, ask, answer):
    plugins = loaded(Point("bad", plugin(**{hook: lambda: answer})))
    with pytest.warns(OnnxExporterWarning, match="returned"):
        getattr(plugins, ask)()


def test_translations_come_from_tables_lists_and_rows_and_bear_their_plugin():
    table = Table("t")
    table.translate("aten::a", "aten::b")(refuse)
    plugins = loaded(
        Point("one", plugin(atonnx_translations=lambda: table)),
        Point("two", plugin(atonnx_translations=[[table], row("aten::c")])),
    )
    found = [(found.plugin, found.target) for found in plugins.translations()]
    assert found == [
        ("one", "aten::a"),
        ("one", "aten::b"),
        ("two", "aten::a"),
        ("two", "aten::b"),
        ("two", "aten::c"),
    ]
    assert plugins.translations() is plugins.translations()
    assert table.rows[0].plugin == ""


def test_opset_rows_bear_their_plugin():
    pack = OpsetPack("p")
    pack.below(20, "Gelu")(refuse)
    pack.same("Relu", 6, 13)
    (below, same) = loaded(Point("one", plugin(atonnx_opset_packs=[pack]))).opset_rows()
    assert (below.plugin, below.kind, below.opset) == ("one", "below", 20)
    assert same.versions == (6, 13)


def test_translation_tables_get_the_opset():
    tables = plugin(atonnx_translation_tables=lambda opset: {"key": opset})
    plugins = loaded(Point("one", tables))
    assert plugins.translation_tables(17) == [("one", {"key": 17})]
    assert plugins.translation_tables(20) == [("one", {"key": 20})]


def test_two_decompositions_of_one_overload_are_a_conflict_where_it_is_looked_up():
    one = plugin(atonnx_decompositions=lambda: {"ns::a": refuse, "ns::keep": None})
    two = plugin(atonnx_decompositions=lambda: [{"ns::a": row, "ns::b": row, "ns::keep": None}, row])
    decompositions = loaded(Point("one", one), Point("two", two)).decompositions()
    table, providers = decompositions
    assert table["ns::b"] == ("two", row)
    assert table["ns::keep"][1] is None, "the same answer twice is no conflict"
    assert table.get("ns::none") is None
    assert providers == [("two", row)]
    with pytest.raises(PluginConflictError, match=r"ns::a.*one and two(.|\n)*prefer=") as caught:
        table.get("ns::a")
    assert caught.value.plugins == ("one", "two")
    assert table.conflicts == {"ns::a": ("one", "two")}
    assert table.preferring({"ns::a": "two"})["ns::a"] == ("two", row)
    functions = decompositions.functions({"ns::a": "one"})
    assert functions["ns::a"] is refuse and functions["ns::keep"] is None and "ns::none" not in functions
    with pytest.raises(PluginConflictError, match="ns::a"):
        decompositions.functions().get("ns::a")


def test_two_passes_of_one_name_are_a_conflict_that_prefer_settles():
    points = [Point(name, plugin(atonnx_passes=[PassSpec("cse", dict, "cleanup")])) for name in "ab"]
    points.append(Point("c", plugin(atonnx_passes=PassSpec("cse", list, "cleanup"))))
    with pytest.raises(PluginConflictError, match="pass cse"):
        loaded(*points).passes()
    (chosen,) = loaded(*points).passes(prefer={"cse": "c"})
    assert (chosen.plugin, chosen.factory) == ("c", list)
    assert [spec.plugin for spec in loaded(*points[:2]).passes()] == ["a"], "equal specs agree"


def test_domains_and_targets_conflict_where_they_are_looked_up():
    one = plugin(atonnx_domains=[DomainInfo("d", 1), DomainInfo("e")], atonnx_targets=Target("ort"))
    two = plugin(atonnx_domains=DomainInfo("d", 2), atonnx_targets=[Target("ort", (11, 20))])
    plugins = loaded(Point("one", one), Point("two", two))
    assert plugins.domains()["e"].plugin == "one"
    with pytest.raises(PluginConflictError, match="domain d"):
        plugins.domains()["d"]
    with pytest.raises(PluginConflictError, match="target ort"):
        plugins.targets()["ort"]


def test_two_answers_for_a_missing_translation_are_a_conflict():
    def answering(fn):
        return plugin(atonnx_missing_translation=lambda node, opset: Translation(node, fn))

    silent = Point("silent", plugin(atonnx_missing_translation=lambda node, opset: None))
    one, two = Point("one", answering(refuse)), Point("two", answering(row))
    assert loaded(silent).missing_translation("ns::a", 20) is None
    assert loaded(silent, one).missing_translation("ns::a", 20).plugin == "one"
    with pytest.raises(PluginConflictError, match="ns::a.*one and two"):
        loaded(one, two).missing_translation("ns::a", 20)
    assert loaded(one, two).missing_translation("ns::a", 20, {"ns::a": "two"}).fn is row


def test_patches_program_passes_and_samples_bear_their_plugin():
    patches = plugin(
        atonnx_capture_patches=lambda: [contextlib.nullcontext()],
        atonnx_program_passes=lambda: refuse,
        atonnx_op_samples=["one", "two"],
    )
    plugins = loaded(Point("one", patches))
    first, second = plugins.capture_patches(), plugins.capture_patches()
    assert first[0][0] == "one" and first[0][1] is not second[0][1]
    assert plugins.program_passes() == (("one", refuse),)
    assert plugins.op_samples() == (("one", "one"), ("one", "two"))


def test_a_pass_has_a_known_stage_and_tuples():
    with pytest.raises(ValueError, match="stage 'late'") as caught:
        PassSpec("x", dict, "late")
    assert isinstance(caught.value, PluginError)
    with pytest.raises(TypeError, match="before='cse'"):
        PassSpec("x", dict, "fold", before="cse")


def test_importing_and_loading_import_neither_torch_nor_onnx():
    code = (
        "import sys, atonnx.plugins, atonnx.dispatch, atonnx.dispatch.known as k; atonnx.plugins.load();"
        "k.distribution_of('x'); print({'torch', 'onnx', 'onnx_ir', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": ""}
    )
    assert (done.stderr, done.stdout.strip()) == ("", "set()")


def test_installed_plugins_are_found_by_their_entry_points(tmp_path):
    """Four distributions, three of them broken, as pip would have installed them."""
    sources = {
        "good_pack": "from atonnx.plugins import hookimpl\nATONNX_API = (1, 0)\n",
        "broken_pack": "raise RuntimeError('no luck')\n",
        "misspelt_pack": "from atonnx.plugins import hookimpl\nATONNX_API = (1, 0)\n"
        "@hookimpl\ndef atonnx_pases(): return []\n",
        "future_pack": "ATONNX_API = (2, 0)\n",
    }
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
        info = tmp_path / f"{name}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[atonnx]\n{name} = {name}\n")
    environment = os.environ | {
        "PYTHONPATH": str(tmp_path),
        "ATONNX_PLUGINS": ",".join(sources),
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(
        [sys.executable, "-c", "from atonnx.plugins import load\nfor r in load().records: print(r)"],
        capture_output=True,
        text=True,
        env=environment,
    )
    told = {line.split()[1]: line for line in done.stdout.splitlines() if "_pack " in line}
    assert done.returncode == 0, done.stderr
    assert told["good_pack"] == "plugin good_pack (good_pack 1.2): loaded"
    assert "RuntimeError: no luck" in told["broken_pack"]
    assert "atonnx_pases" in told["misspelt_pack"] and "atonnx_passes" in told["misspelt_pack"]
    assert "2.0" in told["future_pack"] and "1.0" in told["future_pack"]
