"""ONNXProgram as export() makes it (promises O1-O34): the rows that need more than a hand-made model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from onnxscript import FLOAT, script
from onnxscript import opset20 as op20
from torch import nn
from torch._higher_order_ops.while_loop import while_loop
from torch._subclasses.fake_tensor import FakeTensorMode

import atonnx
from atonnx.errors import OnnxExporterError, OnnxExporterWarning

RANGES = "pkg.torch.export.ExportedProgram.range_constraints"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.fc(x)).relu()


def exported(model: nn.Module, args: tuple[Any, ...], **options: Any) -> atonnx.ONNXProgram:
    return atonnx.export(model.eval(), args, verbose=False, **options)


def test_O1_O2_O3_O34_what_a_program_is() -> None:
    captured = torch.export.export(Net().eval(), (torch.randn(2, 3),))
    program = atonnx.export(captured)
    assert type(program) is atonnx.ONNXProgram and isinstance(program.model, ir.Model)
    assert program.exported_program is captured
    assert atonnx.ONNXProgram(program.model, None).exported_program is None
    assert repr(program).startswith("ONNXProgram(\n    model=\n")


class Containers(nn.Module):
    def forward(
        self, d: dict[str, torch.Tensor], mask: Any = None, *, z: torch.Tensor, k: float = 2.0
    ) -> Any:
        return {"sum": d["a"] + d["b"] * 2, "pair": (z * z, None)}


def test_O4_O5_O6_a_call_takes_the_modules_arguments_by_name() -> None:
    d, z = {"a": torch.randn(3), "b": torch.randn(3)}, torch.randn(2, dtype=torch.complex64)
    program = atonnx.export(Containers().eval(), (d, None), kwargs={"z": z})
    expected = (d["a"] + d["b"] * 2, torch.view_as_real(z * z))
    for got in (program(d, None, z=z), program(z=z, d=d), program(d, z=z, mask=None)):
        assert isinstance(got, tuple)
        torch.testing.assert_close(got, expected)
    for args, kwargs in (
        ((d,), {}),
        ((d, None, z), {}),
        ((d,), {"z": z, "w": z}),
        ((d, None), {"d": d, "z": z}),
    ):
        with pytest.raises(TypeError) as info:
            program(*args, **kwargs)
        assert isinstance(info.value, OnnxExporterError)


def test_O7_O15_the_session_is_lazy_quiet_and_released() -> None:
    program = exported(Net(), (torch.randn(2, 3),))
    assert program._session is None
    program(torch.randn(2, 3))
    assert program._session is not None
    assert program._session.get_session_options().log_severity_level == 3
    assert program._session.get_providers()[-1] == "CPUExecutionProvider"
    program.release()
    assert program._session is None


def test_O8_O9_numbers_and_small_floats() -> None:
    class Pick(nn.Module):
        def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
            return x[n]

    shapes = (None, torch.export.Dim.DYNAMIC)
    x = torch.tensor([1.0, 2, 3, 4], dtype=torch.bfloat16)
    program = exported(Pick(), (x, 2), dynamic_shapes=shapes)
    assert program.model.graph.inputs[1].dtype == ir.DataType.INT64
    for (got,) in (program(x, 3), program.call_reference(x, 3)):
        assert got.dtype == torch.bfloat16 and got.item() == 4


def test_O10_the_reference_agrees() -> None:
    program, x = exported(Net(), (torch.randn(2, 3),)), torch.randn(2, 3)
    torch.testing.assert_close(program.call_reference(x), program(x))


# ---------------------------------------------------------------- compute_values


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def positive(v: torch.Tensor) -> torch.Tensor:
            return torch.cond(v.sum() > 10, lambda u: u.sin().exp(), lambda u: u.cos(), (v,))

        return torch.cond(x.sum() > 0, positive, lambda v: v.tanh().floor(), (x,))


def test_O11_O13_values_of_branches_that_are_taken() -> None:
    program = exported(Branches(), (torch.ones(3),))
    before = program.model_proto
    x = torch.full((3,), 5.0)
    sin, gt, again = program.compute_values(["sin", "gt", "sin"], (x,))
    torch.testing.assert_close(sin, x.sin())
    assert bool(gt) and again is sin
    torch.testing.assert_close(program.compute_values(["tanh"], (-x,)), ((-x).tanh(),))
    for name, arguments in (("sin", -x), ("sin", torch.ones(3)), ("tanh", x)):
        with pytest.raises(ValueError, match=f"/{name}' was not computed.*branch is not taken") as info:
            program.compute_values([name], (arguments,))
        assert isinstance(info.value, OnnxExporterError)
    assert program.model_proto == before


def test_O11_O13_values_of_every_iteration() -> None:
    class Doubling(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            def body(i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                return i + 1, (y * 2).abs() + x

            return while_loop(lambda i, y: i < 3, body, (torch.tensor(0), x))[1]

    program = exported(Doubling(), (torch.ones(2),))
    x = torch.tensor([1.0, -1.0])
    y, expected = x, []
    for _ in range(3):
        expected.append((y * 2).abs())
        y = expected[-1] + x
    (steps,) = program.compute_values(["abs_1"], (x,))
    torch.testing.assert_close(steps, torch.stack(expected))
    torch.testing.assert_close(program(x), (y,))


@script(default_opset=op20)
def twice_plus(x: FLOAT, y: FLOAT) -> FLOAT:
    doubled = op20.Mul(x, op20.Constant(value_float=2.0))
    return op20.Add(doubled, y)


def called(op: Any, self: Any, other: Any) -> Any:
    return op.function(twice_plus, self, other)


class Sums(nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(self.count):
            x = torch.hypot(x, y)
        return x


def test_O11_O13_values_in_functions() -> None:
    table = {torch.ops.aten.hypot.default: called}
    x, y = torch.tensor([1.0, 2]), torch.tensor([10.0, 20])
    once = exported(Sums(1), (x, y), custom_translation_table=table, optimize=False)
    (function,) = once.model.functions.values()
    (inner,) = (v.name for node in function for v in node.outputs if node.op_type == "Mul")
    torch.testing.assert_close(once.compute_values([str(inner)], (x, y)), (x * 2,))

    twice = exported(Sums(2), (x, y), custom_translation_table=table, optimize=False)
    calls = [str(node.name) for node in twice.model.graph if node.op_type == function.name]
    with pytest.raises(ValueError, match=f"several places\n.*{calls[0]}/{inner}, {calls[1]}/{inner}"):
        twice.compute_values([str(inner)], (x, y))
    got = twice.compute_values([f"{call}/{inner}" for call in calls], (x, y))
    torch.testing.assert_close(got, (x * 2, (x * 2 + y) * 2))


def test_O12_a_name_that_is_nowhere() -> None:
    with pytest.raises(
        ValueError, match="Value 'nope' not found in the model. Please provide a valid"
    ) as info:
        exported(Branches(), (torch.ones(3),)).compute_values(["nope"], (torch.ones(3),))
    assert isinstance(info.value, OnnxExporterError)


def test_O13_what_cannot_be_given_out_says_so() -> None:
    sequence_type = ir.SequenceType(ir.TensorType(ir.DataType.FLOAT))
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
    item = ir.Value(name="item", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
    inner = ir.node("Neg", [item], name="node_inner")
    inner.outputs[0].name, inner.outputs[0].type = "inner", item.type
    made = ir.node("SequenceConstruct", [x, x], name="node_made")
    body = ir.Graph([item], [inner.outputs[0]], nodes=[inner], name="body")
    mapped = ir.node("SequenceMap", [made.outputs[0]], {"body": body}, name="node_map")
    made.outputs[0].name, mapped.outputs[0].name = "made", "mapped"
    made.outputs[0].type = mapped.outputs[0].type = sequence_type
    last = ir.node("ConcatFromSequence", [mapped.outputs[0]], {"axis": 0}, name="node_y")
    last.outputs[0].name, last.outputs[0].type = "y", item.type
    graph = ir.Graph([x], last.outputs, nodes=[made, mapped, last], opset_imports={"": 20}, name="main")
    program = atonnx.ONNXProgram(ir.Model(graph, ir_version=10), None)
    with pytest.raises(ValueError, match="'node_map/inner' lives in the body of a SequenceMap"):
        program.compute_values(["inner"], (torch.ones(2),))


# ---------------------------------------------------------------- weights


def test_O14_O16_a_session_and_a_proto_of_ones_own() -> None:
    import onnxruntime as ort

    program, seen = exported(Net(), (torch.randn(2, 3),)), []
    program.initialize_inference_session(lambda given: seen.append(given) or ort.InferenceSession(given))
    assert onnx.load_from_string(seen[0]) == program.model_proto
    assert program.model_proto is not program.model_proto


def test_O17_O20b_optimized_or_not_weights_can_be_replaced() -> None:
    x, other = torch.randn(2, 3), Net().eval()
    with torch.no_grad():
        other.norm.running_mean.add_(3)  # type: ignore[operator]
    for optimize in (True, False):
        program = exported(Net(), (x,), optimize=optimize)
        assert program.optimize() is None
        program.apply_weights(other.state_dict())
        torch.testing.assert_close(program(x), (other(x),))


def test_O18_O19_weights_are_checked() -> None:
    program = exported(Net(), (torch.randn(2, 3),))
    with pytest.warns(OnnxExporterWarning, match="Weight 'nope' not found in the model. Skipped applying."):
        program.apply_weights({"nope": torch.ones(1)})
    for bad in (torch.ones(3, 4), torch.ones(4, 3).double(), torch.ones(4, 3).to(torch.int32)):
        with pytest.raises(ValueError, match="'fc.weight' is .*the model has float32") as info:
            program.apply_weights({"fc.weight": bad})
        assert isinstance(info.value, OnnxExporterError)


@pytest.mark.parametrize("kind", ["fake", "meta"])
def test_O20_fake_weights_are_replaced(kind: str, tmp_path: Path) -> None:
    real, x = Net().eval(), torch.randn(2, 3)
    if kind == "fake":
        with FakeTensorMode():
            model, args = Net().eval(), (torch.randn(2, 3),)
    else:
        with torch.device("meta"):
            model, args = Net().eval(), (torch.randn(2, 3),)
    program = exported(model, args)
    with pytest.raises(TypeError, match=r"apply_weights\(state_dict\)") as info:
        program.save(tmp_path / "m.onnx")
    assert isinstance(info.value, OnnxExporterError)
    program.save(tmp_path / "bare.onnx", include_initializers=False)
    program.apply_weights(real.state_dict())
    torch.testing.assert_close(program(x), (real(x),))
    program.save(tmp_path / "m.onnx")
    with pytest.raises(TypeError, match="no data"):
        program.apply_weights({"fc.weight": torch.empty(4, 3, device="meta")})
        program.model_proto  # noqa: B018


# ---------------------------------------------------------------- axes


class Joined(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, y], 0)


def joined() -> atonnx.ONNXProgram:
    return exported(
        Joined(),
        (torch.randn(2, 3, 4), torch.randn(5, 3, 4)),
        dynamic_shapes=({0: "a", 2: "c"}, {0: "b", 2: "c"}),
    )


def dims(value: ir.Value) -> list[Any]:
    return [dim if isinstance(dim, int) else dim.value for dim in value.shape or ()]


def test_O21_O22_the_dims_of_an_input_are_keys() -> None:
    program = joined()
    shape = program.model.graph.inputs[0].shape
    assert shape is not None
    program.rename_axes({shape[0]: "batch", shape[2]: "width", "not there": "n"})  # type: ignore[dict-item]
    assert [dims(value) for value in program.model.graph.inputs] == [["batch", 3, "width"], ["b", 3, "width"]]
    assert dims(program.model.graph.outputs[0]) in (["batch + b", 3, "width"], ["b + batch", 3, "width"])
    assert program.verify().ok


@pytest.mark.parametrize("mapping", [{3: "a"}, {ir.SymbolicDim(None): "a"}, {"a": 3}])
def test_O21_keys_and_names_of_other_kinds(mapping: Any) -> None:
    with pytest.raises(ValueError) as info:
        joined().rename_axes(mapping)
    assert isinstance(info.value, OnnxExporterError)


def test_O23_new_names_reach_the_range_constraints() -> None:
    program = joined()
    before = program.model.graph.metadata_props[RANGES]
    assert before.count("VR[") == 3
    program.rename_axes({"a": "b", "b": "a", "c": "VR"})
    after = program.model.graph.metadata_props[RANGES]
    assert {p.split(":")[0].strip("{ ") for p in after.strip("{}").split("],")} == {"a", "b", "VR"}
    assert after.count("VR[0, int_oo]") == before.count("VR[0, int_oo]")
    program.rename_axes({"VR": "int_oo"})
    assert "int_oo: VR[0, int_oo]" in program.model.graph.metadata_props[RANGES]


# ---------------------------------------------------------------- saving


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("as_inputs", [True, False])
def test_O24_O25_O26_O27_O28_O32_four_ways_to_save(include: bool, as_inputs: bool, tmp_path: Path) -> None:
    program = exported(Net(), (torch.randn(2, 3),))
    before = program.model_proto
    program.save(
        tmp_path / "s.onnx", include_initializers=include, keep_initializers_as_inputs=as_inputs,
        external_data=False,
    )  # fmt: skip
    graph = onnx.load(tmp_path / "s.onnx").graph
    names = {tensor.name for tensor in graph.initializer}
    assert ("fc.weight" in names) is include or not as_inputs
    assert ("fc.weight" in {value.name for value in graph.input}) is as_inputs
    if include or as_inputs:
        onnx.checker.check_model(tmp_path / "s.onnx", full_check=True)
    else:
        with pytest.raises(onnx.checker.ValidationError):
            onnx.checker.check_model(tmp_path / "s.onnx")
    assert program.model_proto == before


def test_O29_O30_O31_O33_destinations(tmp_path: Path) -> None:
    import io

    class Wide(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ torch.from_numpy(np.eye(32, dtype=np.float32))

    program = exported(Wide(), (torch.randn(2, 32),))
    program.save(str(tmp_path / "m.onnx"), external_data=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    buffer = io.BytesIO()
    program.save(buffer)
    assert onnx.load_from_string(buffer.getvalue()) == program.model_proto
    with pytest.raises(TypeError, match="needs a file path"):
        program.save(io.BytesIO(), external_data=True)
    with pytest.raises(FileNotFoundError):
        program.save(tmp_path / "missing" / "m.onnx")
