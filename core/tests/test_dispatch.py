"""Rows are found by rank; equal rank is a conflict that names both, only where it is looked up."""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import math
import operator

import pytest
import torch

from atonnx.dispatch import (
    MIN_OPSET,
    OpsetPack,
    OpsetTable,
    Table,
    Translation,
    check_row,
    check_signature,
    merge,
    target_name,
)
from atonnx.errors import PluginConflictError, PluginError

aten = torch.ops.aten


class Node:
    """A node view whose arguments are given."""

    def __init__(self, **args):
        self.args = args

    def arg(self, name):
        return self.args.get(name)


def named(name):
    def fn(op):
        return name

    fn.__qualname__ = name
    return fn


def row(name, plugin="a", target="ns::op", **options):
    return Translation(target, named(name), plugin=plugin, where=f"{name}.py:1", **options)


def found(rows, node=None, opset=20, prefer=None, complex=False):
    """The name of the row that is found, the same for every order of the rows."""
    names = set()
    for order in itertools.permutations(rows):
        chosen = merge(order, opset, prefer).find("ns::op", node, complex)
        names.add(chosen.fn(None) if chosen else None)
    (name,) = names
    return name


@pytest.mark.parametrize(
    "target, name",
    [
        (aten.gelu.default, "aten::gelu"),
        (aten.add.Tensor, "aten::add.Tensor"),
        (torch.ops.higher_order.cond, "higher_order::cond"),
        (operator.add, "_operator::add"),
        (torch.sym_max, "torch::sym_max"),
        (math.sqrt, "math::sqrt"),
        ("aten::gelu", "aten::gelu"),
        ("aten::gelu.default", "aten::gelu"),
        ("aten.gelu.default", "aten::gelu"),
        ("torch.ops.aten.add.Tensor", "aten::add.Tensor"),
    ],
)
def test_a_target_has_one_name(target, name):
    assert target_name(target) == name


def test_packets_and_values_are_no_targets():
    with pytest.raises(TypeError, match=r"aten\.add(.|\n)*aten\.add\.default") as caught:
        target_name(aten.add)
    assert isinstance(caught.value, PluginError)
    with pytest.raises(TypeError, match="cannot be translated"):
        target_name(3)
    with pytest.raises(ValueError, match="aten::gelu"):
        target_name("gelu")


def test_a_table_makes_one_row_for_each_target():
    table = Table("t")

    @table.translate(aten.gelu.default, "ns::op", since=13, until=20, priority=2, complex="also")
    def gelu(op, self):
        """Gelu."""

    first, second = table
    assert (first.target, second.target) == ("aten::gelu", "ns::op")
    assert (first.overload, second.overload) == (aten.gelu.default, None)
    assert (first.fn, first.since, first.until, first.priority, first.complex) == (gelu, 13, 20, 2, "also")
    assert first.where.startswith(__file__ + ":")


def test_rows_that_can_never_apply_are_refused():
    table = Table("t")
    with pytest.raises(PluginError, match="without a target"):
        table.translate()
    with pytest.raises(ValueError, match="no opset"):
        table.translate("ns::op", since=20, until=20)(named("x"))
    with pytest.raises(ValueError, match="complex='yes'"):
        table.translate("ns::op", complex="yes")(named("x"))


def test_rank_is_priority_then_condition_then_since():
    rows = [
        row("old"),
        row("new", since=18, plugin="b"),
        row("gone", until=20, since=19),
        row("future", since=21),
        row("conditional", when=lambda node: node.arg("flag")),
        row("high", priority=1, when=lambda node: node.arg("high")),
    ]
    assert found(rows, Node()) == "new"
    assert found(rows, Node(), opset=17) == "old"
    assert found(rows, Node(flag=True)) == "conditional"
    assert found(rows, Node(flag=True, high=True)) == "high"
    assert found(rows[2:4]) is None
    assert found([*rows[:4], row("top", priority=1, plugin="c")], Node()) == "top"


def test_without_a_node_conditions_do_not_hold():
    assert found([row("plain"), row("conditional", when=lambda node: True)]) == "plain"


def test_since_and_until_bound_a_row():
    rows = [row("old", until=18), row("new", since=18)]
    assert [found(rows, opset=opset) for opset in (MIN_OPSET, 17, 18, 28)] == ["old", "old", "new", "new"]


@pytest.mark.parametrize(
    "rows, words",
    [
        ([row("x"), row("y", "b")], ["plugins a and b", "x.py:1", "y.py:1", 'prefer={"ns::op": "a"}']),
        ([row("x"), row("y")], ["plugin a translates ns::op twice", "x.py:1", "y.py:1"]),
        (
            [row("x", when=lambda node: True, since=12), row("y", "b", when=lambda node: True)],
            ["plugins a and b"],
        ),
        ([row("x", when=lambda node: True), row("y", when=lambda node: True, since=13)], ["twice"]),
        ([row("x", priority=10), row("y", "b", priority=10), row("z", "c")], ["plugins a and b"]),
    ],
)
def test_equal_rank_is_a_conflict_that_names_both_in_any_order(rows, words):
    for order in itertools.permutations(rows):
        table = merge([*order, row("other", target="ns::other")], 20)
        assert table.find("ns::other", Node()).fn(None) == "other"
        with pytest.raises(PluginConflictError) as caught:
            table.find("ns::op", Node())
        assert all(word in str(caught.value) for word in words), str(caught.value)
        assert caught.value.target == "ns::op"


def test_conditions_that_exclude_each_other_are_no_conflict():
    rows = [
        row("yes", when=lambda node: node.arg("flag")),
        row("no", "b", when=lambda node: not node.arg("flag")),
    ]
    assert (found(rows, Node(flag=True)), found(rows, Node())) == ("yes", "no")


def test_rows_that_do_not_meet_in_opset_or_complexity_are_no_conflict():
    assert found([row("x", until=20), row("y", "b", since=20)]) == "y"
    rows = [row("real"), row("complex", "b", complex="only")]
    assert (found(rows), found(rows, complex=True)) == ("real", "complex")


@pytest.mark.parametrize(
    "use, real, complex",
    [("none", "x", None), ("only", None, "x"), ("also", "x", "x"), ("layout", "x", "x")],
)
@pytest.mark.parametrize("when", [None, lambda node: True])
def test_a_row_takes_complex_operands_only_if_it_says_so(use, real, complex, when):
    rows = [row("x", complex=use, when=when)]
    assert (found(rows, Node()), found(rows, Node(), complex=True)) == (real, complex)


def test_prefer_puts_a_plugin_first():
    rows = [row("x"), row("y", "b"), row("z", "c", priority=5)]
    assert found(rows, prefer={"ns::op": "b"}) == "y"
    assert found(rows, prefer={"ns.op.default": "a"}) == "x"
    assert merge([row("x", target="aten::gelu")], 20, {aten.gelu.default: "a"}).find("aten::gelu")
    with pytest.raises(PluginError, match="plugin d has no translation of ns::op(.|\n)*a, b, c"):
        merge(rows, 20, {"ns::op": "d"})
    merge(rows, 20, {"com.example": "d", "ns::unknown": "d"})


def test_a_preferred_plugin_whose_condition_fails_yields_to_the_others():
    rows = [row("x"), row("y", "b", when=lambda node: node.arg("flag"))]
    assert found(rows, Node(), prefer={"ns::op": "b"}) == "x"


def test_custom_rows_come_before_all():
    table = merge([row("x", priority=99)], 20, {"ns::op": "a"})
    custom = table.with_custom([row("mine", plugin="")])
    assert custom.find("ns::op").fn(None) == "mine"
    assert table.find("ns::op").fn(None) == "x"
    assert custom.find("ns::op", complex=True) is None
    assert custom.with_custom([row("new", plugin="", target="ns::new")]).targets() == ("ns::new", "ns::op")


def test_the_tables_targets_are_those_of_its_opset():
    rows = [row("x"), row("y", target="ns::later", since=21)]
    assert merge(rows, 20).targets() == ("ns::op",)
    assert merge(rows, 21).targets() == ("ns::later", "ns::op")


def test_a_condition_that_raises_is_its_plugins_error():
    table = merge([row("x", when=lambda node: 1 / 0)], 20)
    with pytest.raises(PluginError, match="condition of ns::op in plugin a.*x.py:1.*ZeroDivisionError"):
        table.find("ns::op", Node())


def test_explain_gives_every_row_in_rank_order_with_the_reason():
    rows = [
        row("old"),
        row("new", since=18),
        row("conditional", when=lambda node: True),
        row("future", "b", since=21),
        row("complex", complex="only"),
    ]
    candidates = merge(rows, 20).with_custom([]).explain("ns::op")
    told = {candidate.row.fn(None): candidate.verdict for candidate in candidates}
    assert list(told) == ["conditional", "new", "complex", "old", "future"]
    assert told["conditional"] == "chosen where its condition holds"
    assert told["new"] == "chosen where no row above it applies"
    assert told["old"] == "not chosen: a comes first (newer since)"
    assert told["complex"] == "chosen"
    assert told["future"] == "not for opset 20"
    assert "a: old [opset 11+] old.py:1" in str(candidates[3])


def test_explain_tells_conflicts_and_custom_rows():
    table = merge([row("x"), row("y", "b")], 20)
    assert [c.verdict for c in table.explain("ns::op")] == [
        "conflict: b at equal rank",
        "conflict: a at equal rank",
    ]
    first, second, _ = table.with_custom([row("mine", plugin="")]).explain("ns.op")
    assert first.verdict == "chosen" and str(first).startswith("custom: mine")
    assert second.verdict == "not chosen: custom comes first (the user's own)"


def test_opset_rows_are_found_by_the_version_they_start_from():
    pack = OpsetPack("p")
    pack.below(20, "Gelu")(named("gelu"))
    pack.above(16, "GridSample")(named("grid"))
    pack.below(2, "Op", domain="com.example")(named("own"))
    pack.same("Relu", 14, 6, 13)
    pack.same("Relu", 1, 6)
    table = OpsetTable(pack)
    assert table.below("Gelu", "", 20).fn(None) == "gelu"
    assert table.above("GridSample", "", 16).fn(None) == "grid"
    assert table.below("Op", "com.example", 2).fn(None) == "own"
    assert table.below("GridSample", "", 16) is None and table.below("Gelu", "", 18) is None
    assert table.same("Relu", "") == ((1, 6), (6, 13, 14))
    assert table.same("Gelu", "") == ()
    with pytest.raises(ValueError, match="two versions"):
        pack.same("Relu", 6, 6)


def test_two_opset_rows_for_one_change_are_a_conflict_that_prefer_settles():
    rows = []
    for plugin in ("a", "b"):
        pack = OpsetPack(plugin)
        pack.below(20, "Gelu")(named(plugin))
        rows += [dataclasses.replace(made, plugin=plugin) for made in pack]
    with pytest.raises(PluginConflictError, match='Gelu below opset 20(.|\n)*prefer={"Gelu": "a"}'):
        OpsetTable(rows).below("Gelu", "", 20)
    assert OpsetTable(rows, {"Gelu": "b"}).below("Gelu", "", 20).fn(None) == "b"


def gelu(op, self, *, approximate="none"):
    """Gelu."""


def test_a_row_with_the_schemas_parameters_is_right():
    def conv2d(op, input, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1): ...
    def uniform(op, self, from_=0.0, to=1.0, *, generator=None): ...

    class Reduction(enum.IntEnum):
        MEAN = 1

    def mse_loss(op, self, target, reduction=Reduction.MEAN): ...
    def contiguous(op, self, *, memory_format=torch.contiguous_format): ...

    check_signature(aten.gelu.default, gelu)
    check_signature(aten.conv2d.default, conv2d)
    check_signature(aten.uniform.default, uniform)
    check_signature(aten.mse_loss.default, mse_loss)
    check_signature(aten.contiguous.default, contiguous)


@pytest.mark.parametrize(
    "fn, words",
    [
        (lambda op, self, approximate="none": None, "takes (self, approximate)"),
        (lambda op, self: None, "has (self, *, approximate)"),
        (lambda op, x, *, approximate="none": None, "takes (x, *, approximate)"),
        (lambda op, self, *, approximate="none", more=None: None, "approximate, more)"),
        (lambda op, self, *, approximate="tanh": None, "approximate='tanh'"),
        (lambda op, self, *, approximate: None, "approximate without default"),
        (lambda op, self, **approximate: None, "takes (self, **approximate)"),
    ],
)
def test_a_row_with_other_parameters_is_refused(fn, words):
    with pytest.raises(PluginError) as caught:
        check_signature(aten.gelu.default, fn, "my row")
    assert words in str(caught.value) and str(caught.value).startswith("my row")
    assert "aten.gelu.default" in str(caught.value)


@pytest.mark.parametrize("default", [0, 0.0, None])
def test_defaults_of_another_kind_are_others(default):
    def total(op, self, dim, keepdim=default, *, dtype=None): ...

    with pytest.raises(PluginError, match="keepdim=False"):
        check_signature(aten.sum.dim_IntList, total)


def test_check_row_names_plugin_and_function_and_passes_targets_without_schema():
    check_row(Translation("aten::gelu", gelu, overload=aten.gelu.default))
    check_row(Translation("_operator::add", lambda op, a, b: None, overload=operator.add))
    check_row(Translation("ns::string", gelu))
    check_row(Translation("aten::gelu", functools.partial(gelu), overload=aten.gelu.default))
    with pytest.raises(PluginError, match="functools.partial"):
        check_row(Translation("aten::relu", functools.partial(gelu), overload=aten.relu.default))
    wrong = Translation("aten::relu", gelu, plugin="mine")
    with pytest.raises(PluginError, match="gelu of plugin mine takes"):
        check_row(wrong, aten.relu.default)
