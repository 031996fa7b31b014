"""What an exported program promises: calls, values, weights, axes, sessions, verification."""

from __future__ import annotations

import math
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
import torch
from onnx.reference.op_run import OpRun
from torch import nn

import atonnx
from atonnx import ONNXProgram
from atonnx.build.weights import Transposed, Weight
from atonnx.errors import OnnxExporterError, OnnxExporterWarning
from atonnx.plugins import DomainInfo
from atonnx.program import Verification

FLOAT = ir.DataType.FLOAT


def value(name: str, dtype: ir.DataType = FLOAT, shape: Any = (), tensor: Any = None) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape), const_value=tensor)


def weight(tensor: torch.Tensor, source: str, *aliases: str) -> ir.Value:
    return value(source, FLOAT, tensor.shape, Weight(tensor, source, aliases=aliases))


def node(op_type: str, inputs: list[ir.Value], output: ir.Value, **attributes: Any) -> ir.Node:
    return ir.node(op_type, inputs, attributes, outputs=[output], name=f"node_{output.name}")


def model(
    inputs: list[ir.Value], outputs: list[ir.Value], nodes: list[ir.Node], initializers: list[ir.Value] = ()
) -> ir.Model:  # type: ignore[assignment]
    graph = ir.Graph(
        inputs, outputs, nodes=nodes, initializers=initializers, opset_imports={"": 20}, name="main_graph"
    )
    return ir.Model(graph, ir_version=10)


class Affine(nn.Module):
    """scale * (x @ w.T) + d["a"] - d["b"], with a tied weight and an unused buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 4))
        self.tied = self.w
        self.register_buffer("count", torch.zeros(()))

    def forward(
        self, x: torch.Tensor, d: dict[str, torch.Tensor], scale: float = 1.0, *, shift: Any = None
    ) -> tuple[torch.Tensor, None, torch.Tensor]:
        y = scale * (x @ self.w.t()) + d["a"] - d["b"]
        return (y if shift is None else y + shift), None, x @ self.tied.t()


X, A, B = torch.randn(2, 4), torch.randn(2, 3), torch.randn(2, 3)


@pytest.fixture
def module() -> Affine:
    return Affine().eval()


@pytest.fixture
def program(module: Affine) -> ONNXProgram:
    batch = torch.export.Dim("batch")
    shapes = {"x": {0: batch}, "d": {"a": {0: batch}, "b": {0: batch}}, "scale": None, "shift": {0: batch}}
    captured = torch.export.export(
        module, (X, {"a": A, "b": B}, 2.0), {"shift": torch.randn(2, 3)}, dynamic_shapes=shapes, strict=False
    )
    x, a, b, shift = (
        value(name, FLOAT, ["batch", size]) for name, size in (("x", 4), ("d_a", 3), ("d_b", 3), ("shift", 3))
    )
    w = weight(module.w, "w", "tied")
    w_t = value("w_t", FLOAT, (4, 3), Transposed(w.const_value, name="w_t"))
    two = value("two", FLOAT, (), ir.tensor(np.float32(2)))
    values = [value(name, FLOAT, ["batch", 3]) for name in ("xw", "scaled", "plus", "minus", "y")]
    xw, scaled, plus, minus, y = values
    nodes = [
        node("MatMul", [x, w_t], xw),
        node("Mul", [xw, two], scaled),
        node("Add", [scaled, a], plus),
        node("Sub", [plus, b], minus),
        node("Add", [minus, shift], y),
    ]
    return ONNXProgram(model([x, a, b, shift], [y, xw], nodes, [w_t, two]), captured)


def identity(dtype: ir.DataType, shape: Any = ("n",)) -> ONNXProgram:
    x, y = value("x", dtype, shape), value("y", dtype, shape)
    return ONNXProgram(model([x], [y], [node("Identity", [x], y)]), None)


def test_S2_the_class_is_the_packages() -> None:
    assert ONNXProgram.__module__ == "atonnx"
    assert atonnx.ONNXProgram is ONNXProgram


def test_O1_O2_O3_attributes(program: ONNXProgram) -> None:
    assert isinstance(program.model, ir.Model)
    assert isinstance(program.exported_program, torch.export.ExportedProgram)
    assert program.verification is None
    with pytest.raises(TypeError):
        ONNXProgram(program.model)  # type: ignore[call-arg]


def test_O4_a_call_takes_the_modules_arguments(program: ONNXProgram, module: Affine) -> None:
    for n in (2, 5):
        args = (torch.randn(n, 4), {"a": torch.randn(n, 3), "b": torch.randn(n, 3)}, 2.0)
        shift = torch.randn(n, 3)
        got = program(*args, shift=shift)
        assert isinstance(got, tuple) and len(got) == 2
        expected = module(*args, shift=shift)
        torch.testing.assert_close(got, (expected[0], expected[2]))


def test_O5_keywords_go_by_name(program: ONNXProgram) -> None:
    expected = program(X, {"a": A, "b": B}, 2.0, shift=B)
    same = [
        program(shift=B, d={"b": B, "a": A}, x=X),
        program(X, {"a": A, "b": B}, shift=B, scale=2.0),
        program(X, {"a": A, "b": B}, shift=B, other=None),
    ]
    for got in same:
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize(
    ("args", "kwargs", "kind", "text"),
    [
        ((), {}, TypeError, "missing arguments: x, d, shift"),
        ((X, {"a": A, "b": B}), {}, TypeError, "missing arguments: shift"),
        ((X, {"a": A, "b": B}, 2.0, B), {}, TypeError, "takes 3 positional arguments but 4 were given"),
        ((X, {"a": A, "b": B}), {"shift": B, "y": B}, TypeError, "no argument 'y'.*x, d, scale, shift"),
        ((X, {"a": A, "b": B}), {"shift": B, "x": X}, TypeError, "'x' was given twice"),
        ((X, {"a": A}), {"shift": B}, TypeError, "'d' has another structure"),
        ((X, [A, B]), {"shift": B}, TypeError, "'d' has another structure"),
        ((None, {"a": A, "b": B}), {"shift": B}, TypeError, "'x' was a tensor"),
        ((X.double(), {"a": A, "b": B}), {"shift": B}, TypeError, "'x' has dtype torch.float32"),
        (("text", {"a": A, "b": B}), {"shift": B}, TypeError, "not a str"),
        ((X, {"a": A, "b": B}, 3.0), {"shift": B}, ValueError, "'scale' was 2.0.*cannot be 3.0"),
        ((X, {"a": A, "b": B}, A), {"shift": B}, ValueError, "'scale' was 2.0.*cannot be a tensor"),
    ],
)
def test_O6_arguments_that_do_not_fit(
    program: ONNXProgram, args: Any, kwargs: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text) as info:
        program(*args, **kwargs)
    assert isinstance(info.value, OnnxExporterError)


def test_O6_arguments_without_a_captured_program(program: ONNXProgram) -> None:
    program.exported_program = None
    expected = program(X, A, B, shift=B)
    torch.testing.assert_close(program([X], {"a": A, "b": B}, None, B), expected)
    for args, kwargs, text in (
        ((X, A, B), {}, "missing arguments: shift"),
        ((X, A, B, B, B), {}, "4 inputs"),
        ((X, A, B), {"nope": B}, "no input"),
        ((X, A, B), {"x": B, "shift": B}, "twice"),
    ):
        with pytest.raises(TypeError, match=text):
            program(*args, **kwargs)


def test_P2_P5_P6_numbers_and_none() -> None:
    class Sliced(nn.Module):
        def forward(self, x: torch.Tensor, n: int, k: int, mask: Any = None) -> torch.Tensor:
            return x * n + k

    captured = torch.export.export(
        Sliced(),
        (X, 7, 3, None),
        dynamic_shapes={"x": None, "n": torch.export.Dim.DYNAMIC, "k": None, "mask": None},
        strict=False,
    )
    x, n = value("x", FLOAT, (2, 4)), value("n", ir.DataType.INT64)
    three = value("three", FLOAT, (), ir.tensor(np.float32(3)))
    f, m, y = value("f"), value("m", FLOAT, (2, 4)), value("y", FLOAT, (2, 4))
    nodes = [node("Cast", [n], f, to=1), node("Mul", [x, f], m), node("Add", [m, three], y)]
    program = ONNXProgram(model([x, n], [y], nodes, [three]), captured)
    for args in ((X, 5), (X, 5, 3), (X, 5, 3, None), (X, torch.tensor(5), 3)):
        torch.testing.assert_close(program(*args), (X * 5 + 3,))
    with pytest.raises(ValueError, match="'mask' was None"):
        program(X, 5, 3, X)
    with pytest.raises(TypeError, match="cannot be 5.5"):
        program(X, 5.5, 3)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [(3, ir.DataType.INT64), (2.5, FLOAT), (True, ir.DataType.BOOL), (3, ir.DataType.DOUBLE)],
)
def test_O8_numbers(given: float, dtype: ir.DataType) -> None:
    (got,) = identity(dtype, ())(given)
    assert got.shape == () and got.item() == given


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float16, torch.bool], ids=str)
def test_O9_dtypes_that_numpy_lacks(dtype: torch.dtype) -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, -4.0]]).to(dtype).t()
    program = identity(ir.tensor_adapters.from_torch_dtype(dtype), ("n", 2))
    for (got,) in (program(x), program.call_reference(x)):
        assert got.dtype == dtype
        assert torch.equal(got.float(), x.float())


def test_complex_tensors_are_fed_as_pairs() -> None:
    x = torch.randn(3, dtype=torch.complex64)
    (got,) = identity(FLOAT, (3, 2))(x.conj())
    assert torch.equal(got, torch.view_as_real(x.conj().resolve_conj()))


def test_results_outlive_the_session() -> None:
    program = identity(ir.DataType.BFLOAT16)
    (a,) = program(torch.ones(1000, dtype=torch.bfloat16))
    program.release()
    program(torch.zeros(1000, dtype=torch.bfloat16))
    assert torch.equal(a, torch.ones(1000, dtype=torch.bfloat16))


def test_O7_O15_the_session_is_made_once_and_released(program: ONNXProgram) -> None:
    args = (X, {"a": A, "b": B})
    program(*args, shift=B)
    session = program._session
    assert isinstance(session, ort.InferenceSession)
    program(*args, shift=B)
    assert program._session is session
    program.release()
    assert program._session is None
    program(*args, shift=B)


def test_O10_reference(program: ONNXProgram) -> None:
    args = (X, {"a": A, "b": B})
    torch.testing.assert_close(program.call_reference(*args, shift=B), program(*args, shift=B))


def test_O11_compute_values(program: ONNXProgram, module: Affine) -> None:
    before = program.model_proto
    names = ["xw", "x", "w_t", "y", "xw", "two"]
    got = program.compute_values(names, (X, {"a": A, "b": B}), {"shift": B})
    assert isinstance(got, tuple)
    torch.testing.assert_close(got[0], X @ module.w.detach().t())
    assert torch.equal(got[1], X) and torch.equal(got[2], module.w.detach().t())
    assert got[4] is got[0] and got[5].item() == 2
    torch.testing.assert_close(got[3], program(X, {"a": A, "b": B}, shift=B)[0])
    got[2].zero_()
    assert module.w.any()
    assert program.model_proto == before


def test_O12_O13_values_that_cannot_be_computed(program: ONNXProgram) -> None:
    with pytest.raises(ValueError, match="Value 'nope' not found in the model") as info:
        program.compute_values(["y", "nope"], (X, {"a": A, "b": B}), {"shift": B})
    assert isinstance(info.value, OnnxExporterError)
    test = value("test", ir.DataType.BOOL)
    inner, y = value("inner", FLOAT, ()), value("y", FLOAT, ())
    one = ir.node("Constant", [], {"value_float": 1.0}, outputs=[inner])
    body = ir.Graph([], [inner], nodes=[one], name="then_body")
    other_out = value("other", FLOAT, ())
    other = ir.node("Constant", [], {"value_float": 2.0}, outputs=[other_out])
    branch = ir.Graph([], [other_out], nodes=[other], name="else_body")
    nodes = [node("If", [test], y, then_branch=body, else_branch=branch)]
    program = ONNXProgram(model([test], [y], nodes), None)
    assert program.compute_values(["inner"], (True,))[0] == 1
    with pytest.raises(ValueError, match="'node_y/inner' was not computed"):
        program.compute_values(["inner"], (False,))


def test_O14_a_session_of_the_users_own(program: ONNXProgram) -> None:
    seen: list[Any] = []

    def initializer(given: str | bytes) -> ort.InferenceSession:
        seen.append(given)
        return ort.InferenceSession(given, providers=["CPUExecutionProvider"])

    program.initialize_inference_session(initializer)
    program(X, {"a": A, "b": B}, shift=B)
    assert len(seen) == 1 and isinstance(seen[0], bytes)
    assert onnx.load_from_string(seen[0]) == program.model_proto


def test_O16_the_proto_is_made_anew(program: ONNXProgram) -> None:
    proto = program.model_proto
    assert isinstance(proto, onnx.ModelProto)
    assert program.model_proto is not proto
    proto.graph.name = "changed"
    assert program.model_proto.graph.name == "main_graph"


def test_O17_optimize_works_in_place(program: ONNXProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    def double(given: ir.Model) -> None:
        given.graph.initializers["two"].const_value = ir.tensor(np.float32(4))

    args = (X, {"a": A, "b": B})
    before = program(*args, shift=A)
    monkeypatch.setattr("atonnx.program.program.optimize", double)
    assert program.optimize() is None
    assert not torch.allclose(program(*args, shift=A)[0], before[0])


def test_the_reference_has_the_kernels_of_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    class Halve(OpRun):  # type: ignore[misc]
        op_domain = "com.example"

        def _run(self, x: Any) -> Any:
            return (x / 2,)

    class Plugins:
        def domains(self) -> dict[str, DomainInfo]:
            return {"com.example": DomainInfo("com.example", reference_ops=(Halve,))}

    monkeypatch.setattr("atonnx.plugins.load", Plugins)
    x, y = value("x", FLOAT, (2,)), value("y", FLOAT, (2,))
    made = model([x], [y], [ir.node("Halve", [x], outputs=[y], domain="com.example")])
    made.opset_imports["com.example"] = 1
    assert ONNXProgram(made, None).call_reference(torch.tensor([2.0, 4.0]))[0].tolist() == [1, 2]


def test_O18_weights_by_state_dict_names(program: ONNXProgram) -> None:
    other = Affine().eval()
    args = (X, {"a": A, "b": B}, 2.0)
    before = program(*args, shift=B)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program.apply_weights(other.state_dict())
    got = program(*args, shift=B)
    assert not torch.allclose(got[0], before[0])
    torch.testing.assert_close(got[0], other(*args, shift=B)[0])


def test_O18_unknown_weights_are_warned_of(program: ONNXProgram) -> None:
    with pytest.warns(OnnxExporterWarning, match="Weight 'nope' not found in the model"):
        program.apply_weights({"nope": torch.ones(1)})


def test_O19_weights_are_checked_and_replaced_together_or_not(program: ONNXProgram) -> None:
    before = program.model_proto
    for wrong in (torch.ones(4, 3), torch.ones(3, 4, dtype=torch.float64)):
        with pytest.raises(ValueError, match="'w' is float.*the model has float32") as info:
            program.apply_weights({"w": wrong})
        assert isinstance(info.value, OnnxExporterError)
    assert program.model_proto == before
    with pytest.raises(ValueError, match="tied"):
        program.apply_weights({"w": torch.ones(3, 4), "tied": torch.zeros(3, 4)})


def test_weights_of_a_model_of_any_kind() -> None:
    x, y = value("x", FLOAT, (2,)), value("y", FLOAT, (2,))
    w = value("w", FLOAT, (2,), ir.tensor(np.zeros(2, np.float32)))
    program = ONNXProgram(model([x], [y], [node("Add", [x, w], y)], [w]), None)
    program.apply_weights({"w": torch.ones(2)})
    assert program(torch.ones(2))[0].tolist() == [2, 2]
    with pytest.raises(ValueError, match="the model has"):
        program.apply_weights({"w": torch.ones(3)})


def axes(given: ir.Value) -> list[Any]:
    assert given.shape is not None
    return [d if isinstance(d, int) else d.value for d in given.shape]


def renamable() -> ONNXProgram:
    x, y = value("x", FLOAT, ["s1", 3, "s1 + s11", "2*s1"]), value("y", FLOAT, ["s1", 3, "s1 + s11", None])
    return ONNXProgram(model([x], [y], [node("Identity", [x], y)]), None)


def test_O21_axes_by_name_and_dim_in_expressions_too() -> None:
    program = renamable()
    x, y = program.model.graph.inputs[0], program.model.graph.outputs[0]
    assert x.shape is not None
    program.rename_axes({x.shape[0]: "batch", "s1 + s11": "all", "unknown": "k"})  # type: ignore[dict-item]
    assert axes(x) == ["batch", 3, "all", "2*batch"]
    assert axes(y) == ["batch", 3, "all", None]
    program.rename_axes({})


def test_O21_axes_can_be_swapped() -> None:
    program = renamable()
    program.rename_axes({"s1": "s11", "s11": "s1"})
    assert axes(program.model.graph.inputs[0]) == ["s11", 3, "s11 + s1", "2*s11"]


@pytest.mark.parametrize("mapping", [{3: "a"}, {ir.SymbolicDim(None): "a"}, {"s1": 3}])
def test_O21_wrong_keys_and_names(mapping: Any) -> None:
    with pytest.raises(ValueError) as info:
        renamable().rename_axes(mapping)
    assert isinstance(info.value, OnnxExporterError)


def test_O34_repr(program: ONNXProgram) -> None:
    text = repr(program)
    assert text.startswith("ONNXProgram(\n    model=\n")
    assert "exported_program=\n" in text and "MatMul" in text and "class GraphModule" in text


def test_verification_agrees_at_the_examples_inputs_and_others(program: ONNXProgram) -> None:
    found = program.verify()
    assert found.ok and program.verification is found
    assert [out.name for out in found.outputs] == ["y", "xw"]
    assert all(out.max_abs < 1e-5 and out.expected_shape == (2, 3) for out in found.outputs)
    assert str(found).startswith("verified\n  ok  y float32[2, 3]: max abs")
    n = 7
    args = (torch.randn(n, 4), {"b": torch.randn(n, 3), "a": torch.randn(n, 3)}, 2.0)
    found = program.verify(args, {"shift": torch.randn(n, 3)})
    assert found.ok and found.outputs[0].actual_shape == (7, 3)


@pytest.mark.parametrize("names", [("w", "tied"), ("w",), ("tied",)])
def test_verification_uses_the_weights_applied(program: ONNXProgram, names: tuple[str, ...]) -> None:
    program.apply_weights(dict.fromkeys(names, torch.ones(3, 4)))
    assert program.verify().ok


def test_verification_finds_wrong_numbers(program: ONNXProgram) -> None:
    wrong = Transposed(Weight(torch.ones(3, 4), "w"))
    program.model.graph.initializers["w_t"].const_value = wrong
    found = program.verify()
    assert not found.ok and not found.checker_error and not found.runtime_error
    assert "allowed 0.0001 x max(1," in found.outputs[0].problem
    assert "verification failed\n  WRONG  y float32[2, 3]: max abs" in str(found)


def test_verification_finds_invalid_models(program: ONNXProgram) -> None:
    program.model.graph.node(1).op_type = "Mull"
    found = program.verify()
    assert not found.ok and "Mull" in found.checker_error and "Mull" in found.runtime_error
    assert "onnx.checker:" in str(found) and "ONNX Runtime:" in str(found)


def test_R23_the_checker_infers_shapes(program: ONNXProgram) -> None:
    program.model.graph.outputs[0].shape = ir.Shape([2, 99])
    assert "ShapeInferenceError" in program.verify().checker_error


def test_verification_needs_something_to_compare_with() -> None:
    with pytest.raises(ValueError, match="nothing to verify it against"):
        identity(FLOAT).verify()


def captured_like(
    module: nn.Module, x: torch.Tensor, op_type: str, dtype: ir.DataType, **kw: Any
) -> ONNXProgram:
    a, y = value("x", ir.tensor_adapters.from_torch_dtype(x.dtype), x.shape), value("y", dtype, x.shape)
    return ONNXProgram(model([a], [y], [node(op_type, [a], y, **kw)]), torch.export.export(module, (x,)))


class Named(nn.Module):
    """An operation as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)  # type: ignore[no-any-return]


def test_verification_takes_nan_and_inf_for_what_they_are() -> None:
    x = torch.tensor([math.nan, math.inf, -math.inf, 1.0])
    assert captured_like(Named(lambda x: x.clone()), x, "Identity", FLOAT).verify().ok
    found = captured_like(Named(torch.neg), x, "Identity", FLOAT).verify()
    assert found.outputs[0].max_abs == math.inf


def test_verification_compares_integers_exactly() -> None:
    x = torch.tensor([2**53, 5])
    assert captured_like(Named(lambda x: x + 0), x, "Identity", ir.DataType.INT64).verify().ok
    found = captured_like(Named(lambda x: x + 1), x, "Identity", ir.DataType.INT64).verify()
    assert not found.ok and found.outputs[0].max_abs == 1


def test_verification_compares_dtypes_and_shapes() -> None:
    x = torch.ones(3)
    double = captured_like(Named(torch.exp), x, "Cast", ir.DataType.DOUBLE, to=11)
    assert "dtype torch.float64, expected torch.float32" in str(double.verify())
    shape = captured_like(Named(lambda x: x[:2] * 1), x, "Identity", FLOAT)
    assert "shape [3], expected [2]" in str(shape.verify())
    count = captured_like(Named(lambda x: (x * 1, x * 2)), x, "Identity", FLOAT)
    assert "1 outputs (y); the captured program has 2" in count.verify().runtime_error


class Counting(nn.Module):
    """Writes into its input and its buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        x += 1
        return x * 2 + torch.rand_like(x) * 0


def test_verification_changes_nothing() -> None:
    x, module = torch.ones(3), Counting()
    captured = torch.export.export(module, (x.clone(),))
    a, one, two = value("x", FLOAT, (3,)), value("one", FLOAT, (), ir.tensor(np.float32(1))), value("two")
    two.const_value = ir.tensor(np.float32(2))
    p, y = value("p", FLOAT, (3,)), value("y", FLOAT, (3,))
    program = ONNXProgram(
        model([a], [y], [node("Add", [a, one], p), node("Mul", [p, two], y)], [one, two]), captured
    )
    before, random = float(module.count), torch.get_rng_state()
    for _ in range(2):
        assert program.verify((x,)).ok
    assert x.tolist() == [1, 1, 1] and float(module.count) == before
    assert torch.equal(torch.get_rng_state(), random)
    assert isinstance(program.verification, Verification)


def test_bfloat16_has_its_own_tolerance() -> None:
    x = torch.linspace(0, 1, 9).to(torch.bfloat16)
    program = captured_like(Named(lambda x: x * 1), x, "Identity", ir.DataType.BFLOAT16)
    (out,) = program.verify().outputs
    assert out.ok
    assert np.dtype(ml_dtypes.bfloat16) == ir.DataType.BFLOAT16.numpy()
