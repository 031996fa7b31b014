"""Metadata (promises M1-M20) beside what torch.onnx.export writes, and how much of it is written."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest
import torch
from torch import nn

import atonnx
from atonnx.build.metadata import FX_NODE, KEYS, NAMESPACE, PLUGIN, STACK_TRACE, TRANSLATION
from atonnx.errors import OnnxExporterError

PREFIX = "pkg.torch.export."
SIGNATURE, RANGES = f"{PREFIX}ExportedProgram.graph_signature", f"{PREFIX}ExportedProgram.range_constraints"
INPUT_KIND, PERSISTENT, OUTPUT_KIND = (
    f"{PREFIX}graph_signature.{name}"
    for name in ("InputSpec.kind", "InputSpec.persistent", "OutputSpec.kind")
)
ORIGINAL = "pkg.torch.onnx.original_node_name"


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.register_buffer("kept", torch.ones(4))
        self.register_buffer("lost", torch.ones(4), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.fc(x)) + self.kept - self.lost


class Outer(nn.Module):
    """Operators that neither exporter takes apart, so that the captured nodes have the same names."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.layers = nn.ModuleList([nn.Linear(3, 4)])
        self.constant = torch.arange(4.0)

    def forward(self, x: torch.Tensor, pair: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.inner(x) * self.constant
        y = y / pair[0]
        return y, torch.cat([self.layers[0](x), y], 1)


def arguments() -> tuple[Any, ...]:
    return torch.randn(2, 3), [torch.randn(2, 4)]


def exported(exporter: Any = atonnx.export, **options: Any) -> Any:
    shapes = ({0: "batch"}, [{0: "batch"}])
    return exporter(
        Outer().eval(),
        arguments(),
        **{"dynamic_shapes": shapes, "optimize": False, "verbose": False, **options},
    )


@pytest.fixture(scope="module")
def ours() -> Any:
    return exported()


@pytest.fixture(scope="module")
def theirs() -> Any:
    return exported(torch.onnx.export)


def nodes(program: Any) -> list[ir.Node]:
    return list(ir.traversal.RecursiveGraphIterator(program.model.graph))


def of_node(program: Any, text: str) -> dict[str, str]:
    return next(dict(n.metadata_props) for n in nodes(program) if text in n.metadata_props[NAMESPACE])


@cache
def static_programs() -> tuple[Any, Any]:
    return exported(dynamic_shapes=None), exported(torch.onnx.export, dynamic_shapes=None)


@pytest.mark.parametrize("key", KEYS)
def test_M1_M2_M3_M4_M5_nodes_say_what_torchs_say(key: str) -> None:
    # With static shapes: torch's second trace numbers the names anew where there are sizes.
    ours, theirs = static_programs()
    names = ["linear", "relu", "mul", "div", "linear_1", "cat"]
    for name in names:
        assert of_node(ours, f"/{name}: aten")[key] == of_node(theirs, f"/{name}: aten")[key]


def test_M1_M2_M4_literally(ours: Any) -> None:
    inner = f"{__name__}.Outer/inner: {__name__}.Inner/inner.fc: torch.nn.modules.linear.Linear"
    found = of_node(ours, "/linear: ")
    assert found[NAMESPACE] == f": {inner}/linear: aten.linear.default"
    assert found["pkg.torch.onnx.name_scopes"] == "['', 'inner', 'inner.fc', 'linear']"
    classes = [
        f"{__name__}.Outer",
        f"{__name__}.Inner",
        "torch.nn.modules.linear.Linear",
        "aten.linear.default",
    ]
    assert found["pkg.torch.onnx.class_hierarchy"] == repr(classes)


def test_M3_M5_literally(ours: Any) -> None:
    found = of_node(ours, "/cat: ")
    assert found[FX_NODE] == (
        "%cat : [num_users=1] = call_function[target=torch.ops.aten.cat.default]"
        "(args = ([%linear_1, %div], 1), kwargs = {})"
    )
    first, code = found[STACK_TRACE].split("\n")
    assert first.startswith(f'File "{__file__}", line ') and first.endswith(", in forward")
    assert code == "    return y, torch.cat([self.layers[0](x), y], 1)"


class Everything(nn.Module):
    """Constant, number and input outputs, sizes, a fused norm, a branch, a write."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> Any:
        self.total += x.sum((0, 2, 3))
        y = self.norm(self.conv(x))
        z = torch.cond(y.sum() > 0, lambda v: v * 2, lambda v: v - 1, (y,))
        return z.flatten(1), torch.full((x.shape[0], 2), 3.0), 5, x.shape[0], x, x.half()


@pytest.mark.filterwarnings("ignore::atonnx.errors.OnnxExporterWarning")
@pytest.mark.parametrize(
    "options",
    [{}, {"optimize": False}, {"state": "io"}, {"target": "onnxruntime-cpu"}, {"opset_version": 13}],
    ids=str,
)
def test_M6_every_node_has_every_key(options: dict[str, Any]) -> None:
    program = atonnx.export(
        Everything().eval(), (torch.randn(2, 3, 8, 8),), dynamic_shapes=({0: "batch"},), **options
    )
    for node in nodes(program):
        assert {*KEYS, PLUGIN, TRANSLATION} <= node.metadata_props.keys(), node
        assert node.metadata_props[NAMESPACE]


def test_M7_a_node_without_modules_names_itself() -> None:
    captured = torch.export.export(Inner().eval(), (torch.randn(2, 3),))
    for node in captured.graph.nodes:
        node.meta.pop("nn_module_stack", None)
        node.meta.pop("stack_trace", None)
    found = of_node(atonnx.export(captured), "relu")
    assert [found[key] for key in KEYS if key != FX_NODE] == [
        "relu: aten.relu.default", "['aten.relu.default']", "['relu']", "",
    ]  # fmt: skip


def test_M8_names_of_nodes_and_results() -> None:
    class Split(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a, b = torch.split(x, 2, dim=1)
            return a * b

    split, mul = atonnx.export(Split().eval(), (torch.randn(2, 4),), optimize=False).model.graph
    assert [value.name for value in split.outputs] == ["split__0", "split__1"]
    assert (split.name, mul.name, mul.outputs[0].name) == ("node_split__0", "node_mul", "mul")


def test_M9_M10_M11_the_graph_says_what_torchs_says(ours: Any, theirs: Any) -> None:
    mine, torchs = ours.model_proto, theirs.model_proto
    texts = [{p.key: p.value for p in proto.graph.metadata_props} for proto in (mine, torchs)]
    # The order is that of the captured program; torch's decomposition moves constants to the front.
    assert sorted(texts[0][SIGNATURE].split("\n")) == sorted(texts[1][SIGNATURE].split("\n"))
    assert texts[0][SIGNATURE].startswith(
        "\n# inputs\np_inner_fc_weight: PARAMETER target='inner.fc.weight'\n"
    )
    assert texts[0][SIGNATURE].endswith("\n# outputs\ndiv: USER_OUTPUT\ncat: USER_OUTPUT\n")
    assert texts[0][RANGES] == "{batch: VR[0, int_oo]}"
    assert {p.key for p in mine.metadata_props} == {"torch_version"}
    static = atonnx.export(Inner().eval(), (torch.randn(2, 3),))
    assert static.model.graph.metadata_props[RANGES] == "{}"


def test_M10_the_constraints_are_the_programs_own() -> None:
    batch = torch.export.Dim("batch", min=2, max=64)
    program = atonnx.export(Inner().eval(), (torch.randn(2, 3),), dynamic_shapes=({0: batch},))
    assert program.model.graph.metadata_props[RANGES] == "{batch: VR[2, 64]}"


@pytest.mark.parametrize("key", [INPUT_KIND, PERSISTENT, OUTPUT_KIND, ORIGINAL])
def test_M12_M13_M14_M15_values_say_what_torchs_say(ours: Any, theirs: Any, key: str) -> None:
    def said(program: Any) -> dict[str, str | None]:
        graph = program.model.graph
        values = [*graph.inputs, *graph.initializers.values(), *graph.outputs]
        return {v.name: v.metadata_props.get(key) for v in values if v.metadata_props}

    assert said(ours) == said(theirs)


def test_M12_M13_literally(ours: Any) -> None:
    graph = ours.model.graph
    kinds = {name: v.metadata_props[INPUT_KIND] for name, v in graph.initializers.items() if v.metadata_props}
    assert kinds == {
        "inner.fc.weight": "PARAMETER", "inner.fc.bias": "PARAMETER", "inner.kept": "BUFFER",
        "inner.lost": "BUFFER", "layers.0.weight": "PARAMETER", "layers.0.bias": "PARAMETER",
        "constant": "CONSTANT_TENSOR",
    }  # fmt: skip
    kept = {name: graph.initializers[name].metadata_props[PERSISTENT] for name in kinds}
    assert (kept["inner.kept"], kept["inner.lost"], kept["constant"]) == ("True", "False", "None")
    assert [value.metadata_props[INPUT_KIND] for value in graph.inputs] == ["USER_INPUT"] * 2


def test_M14_new_values_of_buffers_are_outputs_where_asked_for() -> None:
    program = atonnx.export(Everything().eval(), (torch.randn(2, 3, 8, 8),), state="io")
    kinds = {v.name: v.metadata_props[OUTPUT_KIND] for v in program.model.graph.outputs}
    assert kinds.pop("total_new") == "BUFFER_MUTATION"
    assert set(kinds.values()) == {"USER_OUTPUT"}


def test_M15_what_was_renamed_keeps_its_old_name() -> None:
    graph = exported(input_names=["in"], output_names=["out"]).model.graph
    assert [v.metadata_props.get(ORIGINAL) for v in (*graph.inputs, *graph.outputs)] == [
        "x",
        None,
        "div",
        None,
    ]
    assert graph.initializers["inner.fc.weight"].metadata_props[ORIGINAL] == "p_inner_fc_weight"


def test_M16_no_names_of_parameters_are_left_from_building(ours: Any) -> None:
    assert not any("input_names" in key for node in nodes(ours) for key in node.metadata_props)


@pytest.mark.parametrize("opset", [11, 17, 23])
def test_M17_metadata_survives_saving(opset: int, tmp_path: Path) -> None:
    exported(opset_version=opset, f=tmp_path / "m.onnx")
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert all({p.key for p in node.metadata_props} >= set(KEYS) for node in graph.node)
    assert {p.key for p in graph.metadata_props} == {SIGNATURE, RANGES}
    assert {p.key for p in graph.input[0].metadata_props} == {INPUT_KIND, PERSISTENT}


def test_M18_bodies_have_the_full_namespace() -> None:
    program = atonnx.export(Everything().eval(), (torch.randn(2, 3, 8, 8),), state="io")
    branches = [n for n in nodes(program) if n.graph is not program.model.graph]
    assert {n.op_type for n in branches} >= {"Mul", "Sub"}
    for node in branches:
        assert node.metadata_props[NAMESPACE].startswith(f": {__name__}.Everything/cond: cond/"), node


def test_M19_a_strict_or_loaded_program_has_the_users_lines(tmp_path: Path) -> None:
    captured = torch.export.export(Inner().eval(), (torch.randn(2, 3),), strict=True)
    torch.export.save(captured, tmp_path / "m.pt2")
    for program in (captured, torch.export.load(tmp_path / "m.pt2")):
        trace = of_node(atonnx.export(program), "relu")[STACK_TRACE]
        assert "functional_export" not in trace
        assert "return torch.relu(self.fc(x)) + self.kept - self.lost" in trace


@pytest.mark.parametrize("extent", ["full", "compact", "none"])
def test_M20_the_same_model_gives_the_same_bytes(extent: str) -> None:
    torch.manual_seed(0)
    model, args = Outer().eval(), arguments()
    shapes = ({0: "batch"}, [{0: "batch"}])
    one, two = (
        atonnx.export(model, args, dynamic_shapes=shapes, metadata=extent).model_proto.SerializeToString()
        for _ in range(2)
    )
    assert one == two


class Asserts(nn.Module):
    """Its captured nodes have a path among their arguments."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.atonnx_metadata.labelled(x, __file__) + 1


@torch.library.custom_op("atonnx_metadata::labelled", mutates_args=())
def labelled(x: torch.Tensor, label: str) -> torch.Tensor:
    return x * 2


@labelled.register_fake
def _(x: torch.Tensor, label: str) -> torch.Tensor:
    return torch.empty_like(x)


def double(op: Any, x: Any, label: str) -> Any:
    return op.Mul(x, 2.0)


def test_compact_metadata_tells_nothing_of_the_machine() -> None:
    table = {torch.ops.atonnx_metadata.labelled.default: double}
    data = {
        extent: [
            atonnx.export(
                model, args, custom_translation_table=table, metadata=extent, optimize=False, verbose=False
            ).model_proto.SerializeToString()
            for model, args in ((Outer().eval(), arguments()), (Asserts().eval(), (torch.ones(2),)))
        ]
        for extent in ("full", "compact", "none")
    }
    folder = str(Path(__file__).parent).encode()
    torchs = str(Path(torch.__file__).parent).encode()
    assert all(folder in blob for blob in data["full"])
    for blob in (*data["compact"], *data["none"]):
        assert folder not in blob and torchs not in blob and b"test_promises_metadata.py" not in blob
        assert b"return " not in blob  # no code
    assert b"aten.linear.default" in data["compact"][0] and b"aten.linear.default" not in data["none"][0]
    assert b"<path>" in data["compact"][1]


def test_compact_metadata_keeps_the_other_keys_as_they_are(ours: Any) -> None:
    compact = exported(metadata="compact")
    for mine, full in zip(nodes(compact), nodes(ours), strict=True):
        wanted = {key: text for key, text in full.metadata_props.items() if key != STACK_TRACE}
        assert dict(mine.metadata_props) == wanted


def test_no_metadata_is_none_on_nodes_only(ours: Any) -> None:
    bare = exported(metadata="none")
    assert not any(node.metadata_props for node in nodes(bare))
    assert bare.model.graph.metadata_props == ours.model.graph.metadata_props
    bare.optimize()
    assert not any(node.metadata_props for node in nodes(bare))


def test_other_extents_are_refused() -> None:
    with pytest.raises(ValueError, match="metadata='some' is none of") as info:
        exported(metadata="some")
    assert isinstance(info.value, OnnxExporterError)


logging.getLogger("torch.onnx").setLevel(logging.ERROR)
