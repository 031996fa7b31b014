"""Files: the four ways to save weights, external data, and that a file is whole or not there."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
import torch

from atonnx import ONNXProgram
from atonnx.build.weights import Derived, Recipe, Transposed, Weight
from atonnx.errors import OnnxExporterError
from atonnx.program import saving

STATE = {
    "w": torch.randn(40, 4),
    "scale": torch.rand(40) + 0.5,
    "bias": torch.randn(40),
    "table": torch.randn(40, 40),
}
X = torch.randn(3, 4)


class ScaledRows(Recipe):
    """The fold that a normalization after a linear layer makes."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScaledRows)

    def __hash__(self) -> int:
        return hash(ScaledRows)

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        return sources[0] * sources[1][:, None]

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        shape = tape.initializer(ir.tensor(np.array([-1, 1]), name="shape"))
        return tape.op("Mul", [sources[0], tape.op("Reshape", [sources[1], shape])])


def value(name: str, tensor: ir.TensorProtocol) -> ir.Value:
    return ir.Value(
        name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape.numpy()), const_value=tensor
    )


def make_model(state: dict[str, torch.Tensor] = STATE) -> ir.Model:
    """(x @ (scale * w).T + bias) @ table.T * 2, with two recipes and a constant."""
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["batch", 4]))
    w, scale, bias, table = (Weight(state[name], name) for name in ("w", "scale", "bias", "table"))
    initializers = [
        value("w", Derived(ScaledRows(), w, scale)),
        value("bias", bias),
        value("table_t", Transposed(table)),
        value("two", ir.tensor(np.float32(2))),
    ]
    initializers[1].metadata_props["pkg.torch.onnx.original_node_name"] = "p_bias"
    nodes = [
        ir.node("Gemm", [x, initializers[0], initializers[1]], {"transB": 1}, name="gemm"),
    ]
    nodes[0].outputs[0].name = "h"
    nodes[0].metadata_props["pkg.torch.onnx.stack_trace"] = "here"
    nodes.append(ir.node("MatMul", [nodes[0].outputs[0], initializers[2]], name="matmul"))
    nodes.append(ir.node("Mul", [nodes[1].outputs[0], initializers[3]], name="mul"))
    nodes[1].outputs[0].name = "t"
    y = nodes[2].outputs[0]
    y.name, y.type, y.shape = "y", ir.TensorType(ir.DataType.FLOAT), ir.Shape(["batch", 40])
    graph = ir.Graph([x], [y], nodes=nodes, initializers=initializers, opset_imports={"": 20}, name="main")
    graph.metadata_props["key"] = "of the graph"
    return ir.Model(graph, ir_version=10, producer_name="atonnx", metadata_props={"key": "of the model"})


def expected(state: dict[str, torch.Tensor] = STATE) -> torch.Tensor:
    h = X @ (state["w"] * state["scale"][:, None]).t() + state["bias"]
    return h @ state["table"].t() * 2


def run(model: str | bytes, **feeds: torch.Tensor) -> torch.Tensor:
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {"x": X.numpy()} | {k: v.numpy() for k, v in feeds.items()})[0])


@pytest.fixture
def program() -> ONNXProgram:
    return ONNXProgram(make_model(), None)


def inputs(proto: onnx.ModelProto) -> list[str]:
    return [i.name for i in proto.graph.input]


def initializers(proto: onnx.ModelProto) -> list[str]:
    return sorted(i.name for i in proto.graph.initializer)


def test_O25_weights_inside(program: ONNXProgram, tmp_path: Path) -> None:
    program.save(tmp_path / "m.onnx")
    assert os.listdir(tmp_path) == ["m.onnx"]
    proto = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(proto, full_check=True)
    assert inputs(proto) == ["x"]
    assert initializers(proto) == ["bias", "table_t", "two", "w"]
    assert len(proto.graph.node) == 3
    torch.testing.assert_close(run(str(tmp_path / "m.onnx")), expected())


def test_the_file_is_the_proto(program: ONNXProgram, tmp_path: Path) -> None:
    program.save(tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx") == program.model_proto
    # Nothing in the message is there twice or unknown: written again by protobuf, it has the same size.
    assert len(program.model_proto.SerializeToString()) == (tmp_path / "m.onnx").stat().st_size


def test_the_proto_is_what_onnx_ir_makes(program: ONNXProgram) -> None:
    ours = program.model_proto
    assert ours == ir.serde.serialize_model(program.model)
    assert ours.metadata_props[0].value == "of the model"
    assert ours.graph.metadata_props[0].value == "of the graph"
    (info,) = (i for i in ours.graph.value_info if i.name == "bias")
    assert info.metadata_props[0].value == "p_bias"


def test_O26_weights_inside_and_as_inputs(program: ONNXProgram, tmp_path: Path) -> None:
    program.save(tmp_path / "m.onnx", keep_initializers_as_inputs=True)
    proto = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(proto, full_check=True)
    assert inputs(proto)[0] == "x"
    assert sorted(inputs(proto)[1:]) == ["bias", "scale", "table", "w"]
    assert {"bias", "scale", "table", "w", "two"} <= set(initializers(proto))
    path = str(tmp_path / "m.onnx")
    torch.testing.assert_close(run(path), expected())
    other = STATE | {"w": torch.randn(40, 4), "table": torch.randn(40, 40)}
    torch.testing.assert_close(run(path, w=other["w"], table=other["table"]), expected(other))


def test_O27_no_weights(program: ONNXProgram, tmp_path: Path) -> None:
    program.save(tmp_path / "m.onnx", include_initializers=False)
    proto = onnx.load(tmp_path / "m.onnx")
    assert inputs(proto) == ["x"]
    assert not {"bias", "scale", "table", "w"} & set(initializers(proto))
    assert "two" in initializers(proto)
    with pytest.raises(onnx.checker.ValidationError, match="topologically sorted"):
        onnx.checker.check_model(proto)


def test_O27_weights_attached_later(program: ONNXProgram, tmp_path: Path) -> None:
    program.save(tmp_path / "m.onnx", include_initializers=False)
    proto = onnx.load(tmp_path / "m.onnx")
    for name, tensor in STATE.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(tensor.numpy(), name))
    onnx.checker.check_model(proto, full_check=True)
    torch.testing.assert_close(run(proto.SerializeToString()), expected())


def test_O28_weights_as_inputs_only(program: ONNXProgram, tmp_path: Path) -> None:
    program.save(tmp_path / "m.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    proto = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(proto, full_check=True)
    assert sorted(inputs(proto)) == ["bias", "scale", "table", "w", "x"]
    torch.testing.assert_close(run(str(tmp_path / "m.onnx"), **STATE), expected())
    other = {name: torch.rand_like(tensor) for name, tensor in STATE.items()}
    torch.testing.assert_close(run(str(tmp_path / "m.onnx"), **other), expected(other))


def test_nodes_of_recipes_have_the_metadata_of_their_user(program: ONNXProgram) -> None:
    file = BytesIO()
    program.save(file, include_initializers=False, keep_initializers_as_inputs=True)
    proto = onnx.load_from_string(file.getvalue())
    first = proto.graph.node[0]
    assert {p.key: p.value for p in first.metadata_props} == {"pkg.torch.onnx.stack_trace": "here"}
    names = [node.name for node in proto.graph.node]
    assert all(names) and len(set(names)) == len(names)


def test_recipes_give_way_in_bodies_too() -> None:
    """The weight `w` keeps its name; what the body reads is the value computed from it."""
    state = {"w": torch.randn(3, 4)}
    w = value("w", Transposed(Weight(state["w"], "w")))
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([3, 4]))
    test = ir.Value(name="test", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
    bodies = []
    for name, op_type in (("then", "MatMul"), ("else", "MatMul")):
        node = ir.node(op_type, [x, w], name=f"node_{name}")
        out = node.outputs[0]
        out.name, out.type = f"{name}_out", ir.TensorType(ir.DataType.FLOAT)
        bodies.append(ir.Graph([], [out], nodes=[node], name=name))
    node = ir.node("If", [test], {"then_branch": bodies[0], "else_branch": bodies[1]})
    y = node.outputs[0]
    y.name, y.type, y.shape = "y", ir.TensorType(ir.DataType.FLOAT), ir.Shape([3, 3])
    graph = ir.Graph([x, test], [y], nodes=[node], initializers=[w], opset_imports={"": 20}, name="main")
    file = BytesIO()
    program = ONNXProgram(ir.Model(graph, ir_version=10), None)
    program.save(file, include_initializers=False, keep_initializers_as_inputs=True)
    got = run(file.getvalue(), test=torch.tensor(True), x=torch.eye(3, 4), w=state["w"])
    torch.testing.assert_close(got, torch.eye(3, 4) @ state["w"].t())


def test_a_recipe_at_a_graph_output_keeps_the_output_name() -> None:
    w = value("w", Transposed(Weight(torch.randn(3, 4), "w")))
    graph = ir.Graph([], [w], nodes=[], initializers=[w], opset_imports={"": 20}, name="main")
    file = BytesIO()
    ONNXProgram(ir.Model(graph, ir_version=10), None).save(file, keep_initializers_as_inputs=True)
    proto = onnx.load_from_string(file.getvalue())
    onnx.checker.check_model(proto, full_check=True)
    assert [o.name for o in proto.graph.output] == ["w"]
    assert inputs(proto) == ["w_1"]


@pytest.mark.parametrize("options", [{}, {"external_data": True}, {"keep_initializers_as_inputs": True}])
def test_O32_saving_does_not_change_the_program(
    program: ONNXProgram, tmp_path: Path, options: dict[str, bool]
) -> None:
    text, before = str(program.model), program.model_proto
    values = list(program.model.graph.initializers.values())
    program.save(tmp_path / "m.onnx", include_initializers=False, **options)
    assert (str(program.model), program.model_proto) == (text, before)
    after = program.model.graph.initializers.values()
    assert all(a is b for a, b in zip(values, after, strict=True))


def test_O29_external_data(program: ONNXProgram, tmp_path: Path) -> None:
    program.save(tmp_path / "m.onnx", external_data=True)
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]
    proto = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    entries = {
        t.name: {e.key: e.value for e in t.external_data} for t in proto.graph.initializer if t.external_data
    }
    # 160 bytes of bias stay inside.
    assert set(entries) == {"w", "table_t"}
    assert all(entry["location"] == "m.onnx.data" for entry in entries.values())
    assert all(int(entry["offset"]) % 4096 == 0 for entry in entries.values())
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)
    torch.testing.assert_close(run(str(tmp_path / "m.onnx")), expected())


def test_large_tensors_start_where_any_system_can_map_them(tmp_path: Path) -> None:
    tensors = {f"t{i}": torch.full((n,), float(i)) for i, n in enumerate([100, 300_000, 65, 64, 300_000])}
    graph = ir.Graph(
        [], [], nodes=[], initializers=[value(n, Weight(t, n)) for n, t in tensors.items()], name="main"
    )
    ONNXProgram(ir.Model(graph, ir_version=10), None).save(tmp_path / "m.onnx", external_data=True)
    proto = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    offsets = {
        t.name: int(e.value) for t in proto.graph.initializer for e in t.external_data if e.key == "offset"
    }
    assert "t3" not in offsets
    assert offsets["t1"] % 65536 == offsets["t4"] % 65536 == 0
    assert (tmp_path / "m.onnx.data").stat().st_size == offsets["t4"] + 1_200_000
    for tensor in onnx.load(tmp_path / "m.onnx").graph.initializer:
        assert onnx.numpy_helper.to_array(tensor).tolist() == tensors[tensor.name].tolist()


def test_no_empty_data_file(tmp_path: Path) -> None:
    graph = ir.Graph([], [], nodes=[], initializers=[value("w", Weight(torch.ones(64), "w"))], name="main")
    ONNXProgram(ir.Model(graph, ir_version=10), None).save(tmp_path / "m.onnx", external_data=True)
    assert os.listdir(tmp_path) == ["m.onnx"]


def test_O29_large_models_get_external_data(
    program: ONNXProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "LARGE", 1000)
    program.save(tmp_path / "m.onnx", external_data=False)
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.data"]
    with pytest.raises(TypeError, match="file path"):
        program.save(BytesIO())
    os.remove(tmp_path / "m.onnx.data")
    program.save(tmp_path / "m.onnx", include_initializers=False)
    assert os.listdir(tmp_path) == ["m.onnx"]


def test_a_large_model_runs_from_a_file(program: ONNXProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "LARGE", 1000)
    seen: list[str | bytes] = []

    def initializer(model: str | bytes) -> ort.InferenceSession:
        seen.append(model)
        return ort.InferenceSession(model, providers=["CPUExecutionProvider"])

    program.initialize_inference_session(initializer)
    torch.testing.assert_close(program(X)[0], expected())
    assert isinstance(seen[0], str) and Path(seen[0]).exists()
    program.release()
    assert not Path(seen[0]).parent.exists()
    torch.testing.assert_close(program.compute_values(["h", "y"], (X,))[1], expected())


def test_O30_external_data_needs_a_path(program: ONNXProgram) -> None:
    with pytest.raises(TypeError, match="external_data=True needs a file path") as info:
        program.save(BytesIO(), external_data=True)
    assert isinstance(info.value, OnnxExporterError)
    with pytest.raises(TypeError, match="not to a NoneType"):
        program.save(None)  # type: ignore[arg-type]


def test_O31_streams(program: ONNXProgram, tmp_path: Path) -> None:
    file = BytesIO()
    program.save(file)
    program.save(str(tmp_path / "m.onnx"))
    assert file.getvalue() == (tmp_path / "m.onnx").read_bytes()


def test_O33_missing_folder(program: ONNXProgram, tmp_path: Path) -> None:
    for external_data in (False, True):
        with pytest.raises(FileNotFoundError, match="no such folder"):
            program.save(tmp_path / "nowhere" / "m.onnx", external_data=external_data)
    with pytest.raises(IsADirectoryError):
        program.save(tmp_path)


def test_a_device_is_written_to_and_not_replaced(program: ONNXProgram) -> None:
    program.save(os.devnull)
    assert not stat.S_ISREG(os.stat(os.devnull).st_mode)


@pytest.mark.skipif(os.name == "nt", reason="no umask")
def test_files_have_the_usual_permissions(program: ONNXProgram, tmp_path: Path) -> None:
    program.save(tmp_path / "m.onnx", external_data=True)
    (tmp_path / "other").touch()
    usual = (tmp_path / "other").stat().st_mode
    assert {p.stat().st_mode for p in tmp_path.iterdir()} == {usual}


@pytest.mark.parametrize("external_data", [False, True])
def test_an_error_leaves_what_was_there(
    program: ONNXProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, external_data: bool
) -> None:
    program.save(tmp_path / "m.onnx", external_data=external_data)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Derived, "tofile", full)
    with pytest.raises(OSError, match="disk full"):
        program.save(tmp_path / "m.onnx", external_data=external_data)
    with pytest.raises(OSError, match="disk full"):
        program.save(tmp_path / "new.onnx", external_data=external_data)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_weights_without_data(tmp_path: Path) -> None:
    meta = {name: tensor.to("meta") for name, tensor in STATE.items()}
    program = ONNXProgram(make_model(meta), None)
    for external_data in (False, True):
        with pytest.raises(TypeError, match="apply_weights"):
            program.save(tmp_path / "m.onnx", external_data=external_data)
    with pytest.raises(TypeError, match="apply_weights"):
        _ = program.model_proto
    with pytest.raises(TypeError, match="apply_weights"):
        program(X)
    assert not os.listdir(tmp_path)
    assert "Derived" in repr(program)
    program.save(tmp_path / "m.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    torch.testing.assert_close(run(str(tmp_path / "m.onnx"), **STATE), expected())
    program.apply_weights(STATE)
    torch.testing.assert_close(program(X)[0], expected())


def test_same_bytes_each_time(program: ONNXProgram, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        ONNXProgram(make_model(), None).save(tmp_path / name / "m.onnx", external_data=True)
    for name in ("m.onnx", "m.onnx.data"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


MEMORY = """
import resource, sys
import numpy as np, onnx_ir as ir, torch
from atonnx import ONNXProgram
from atonnx.build.weights import Transposed, Weight

def value(name, tensor):
    return ir.Value(name=name, type=ir.TensorType(tensor.dtype), const_value=tensor)

tensors = [torch.ones(1024, 4096) for _ in range(24)]
weights = [Weight(t, f"w{i}") for i, t in enumerate(tensors)]
values = [value(w.source, Transposed(w) if i % 2 else w) for i, w in enumerate(weights)]
graph = ir.Graph([], [], nodes=[], initializers=values, name="main", opset_imports={"": 20})
program = ONNXProgram(ir.Model(graph, ir_version=10), None)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
program.save(sys.argv[1], external_data=sys.argv[2] == "external")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
@pytest.mark.parametrize("way", ["external", "inside"])
def test_memory_grows_by_two_tensors_at_most(tmp_path: Path, way: str) -> None:
    """384 MiB of weights, 16 MiB each."""
    arguments = [sys.executable, "-c", MEMORY, str(tmp_path / "m.onnx"), way]
    growth = int(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)
    assert growth < (64 + 2 * 16) * 1024
