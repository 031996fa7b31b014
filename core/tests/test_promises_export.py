"""What torch.onnx.export promises of its surface and parameters: rows S and P of the list of promises."""

from __future__ import annotations

import collections
import dataclasses
import importlib.metadata
import inspect
import io
import math
import operator
import warnings
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
import torch
from onnxscript import opset18, script
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim

import atonnx
from atonnx.build.weights import leaves
from atonnx.errors import CaptureError, OnnxExporterError, PluginError
from atonnx.program import ONNXProgram

X = torch.arange(6.0).reshape(2, 3)
ORIGINAL = "pkg.torch.onnx.original_node_name"


class Call(torch.nn.Module):
    """A model of one function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Two(torch.nn.Module):
    def forward(self, x, y=None):
        return x + 1 if y is None else x - y


class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 100)

    def forward(self, x):
        return self.fc(x)


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor | None


torch.export.register_dataclass(Pair, serialized_type_name="promises.Pair")
Point = collections.namedtuple("Point", ["height", "width"])


def exported(function, *args, **options) -> ONNXProgram:
    return atonnx.export(Call(function).eval(), args or (X,), **options)


def inputs_of(program) -> list[str]:
    return [value.name for value in program.model.graph.inputs]


def outputs_of(program) -> list[str]:
    return [value.name for value in program.model.graph.outputs]


def operators(program) -> list[str]:
    return [node.op_type for node in program.model.graph]


def checked(program, *args, expected) -> None:
    onnx.checker.check_model(program.model_proto, full_check=True)
    for got, wanted in zip(program(*args), expected, strict=True):
        torch.testing.assert_close(got, wanted)


# ------------------------------------------------------------------------------------------- surface


TORCHS = """model args f kwargs verbose input_names output_names opset_version dynamo external_data
dynamic_shapes custom_translation_table report optimize verify profile dump_exported_program artifacts_dir
export_params keep_initializers_as_inputs dynamic_axes training operator_export_type do_constant_folding
custom_opsets export_modules_as_functions autograd_inlining""".split()


def test_S3_the_27_parameters_of_torch_come_first_in_order_with_their_defaults():
    ours = inspect.signature(atonnx.export).parameters
    torchs = inspect.signature(torch.onnx.export).parameters
    assert list(torchs) == TORCHS
    assert list(ours)[:27] == TORCHS
    assert {n: ours[n].default for n in TORCHS} == {n: torchs[n].default for n in TORCHS}
    assert {n: ours[n].kind for n in TORCHS} == {n: torchs[n].kind for n in TORCHS}
    assert all(p.kind is p.KEYWORD_ONLY for name, p in ours.items() if name not in TORCHS)


def test_S3_every_parameter_is_documented():
    text = inspect.getdoc(atonnx.export)
    assert [n for n in inspect.signature(atonnx.export).parameters if f"    {n}: " not in text] == []


def test_S4_a_program_is_returned_and_dynamo_is_ignored_for_an_exported_program():
    assert isinstance(exported(torch.relu), ONNXProgram)
    captured = torch.export.export(Two().eval(), (X,))
    assert isinstance(atonnx.export(captured, dynamo=False), ONNXProgram)


def test_S5_there_is_no_fallback():
    with pytest.raises(TypeError, match="fallback"):
        atonnx.export(Two().eval(), (X,), fallback=True)


def test_S6_what_the_distribution_depends_on():
    needed = " ".join(importlib.metadata.requires("atonnx-core"))
    assert all(name in needed for name in ("onnx", "onnx-ir", "onnxscript", "torch"))


def test_S7_weights_are_not_copied():
    model = Weighted().eval()
    program = atonnx.export(model, (X,), optimize=False)
    weight = program.model.graph.initializers["fc.weight"].const_value
    assert weight.tensor.data_ptr() == model.fc.weight.data_ptr()
    with torch.no_grad():
        model.fc.weight.mul_(2)
    checked(program, X, expected=[model(X)])


def test_S8_the_exported_program_is_the_captured_one():
    captured = torch.export.export(Weighted().eval(), (X,))
    assert atonnx.export(captured).exported_program is captured
    program = atonnx.export(Weighted().eval(), (X,)).exported_program
    assert [n.target for n in program.graph.nodes if n.op == "call_function"] == [
        torch.ops.aten.linear.default
    ]


# ---------------------------------------------------------------------------------- model and inputs


def test_P1_modules_graph_modules_and_programs_are_taken():
    model = Two().eval()
    captured = torch.export.export(model, (X,))
    for given in (model, torch.fx.symbolic_trace(Call(torch.relu)).eval()):
        assert isinstance(atonnx.export(given, (X,)), ONNXProgram)
    checked(atonnx.export(captured), X, expected=[X + 1])


def test_P2_tensors_are_inputs_in_order_and_other_values_are_baked_in():
    class Scaled(torch.nn.Module):
        def forward(self, x, factor, parts):
            return x * factor + parts["a"] + parts["b"][0]

    args = (X, 3.0, {"a": X, "b": [X]})
    program = atonnx.export(Scaled().eval(), args, kwargs={})
    assert inputs_of(program) == ["x", "parts_a", "parts_b_0"]
    checked(program, *args, expected=[X * 5])


@pytest.mark.parametrize("value", [3, 3.5, True, None, "text"])
def test_P2_a_value_that_is_no_tensor_is_no_input(value):
    program = atonnx.export(Call(lambda x: x + 1).eval(), (X,))

    class Takes(torch.nn.Module):
        def forward(self, x, value):
            return x + 1

    program = atonnx.export(Takes().eval(), (X, value))
    assert inputs_of(program) == ["x"]
    checked(program, X, value, expected=[X + 1])


def test_P2_dataclasses_are_inputs_field_by_field():
    program = exported(lambda pair: pair.left - pair.right, Pair(X, X * 2))
    assert len(inputs_of(program)) == 2
    checked(program, Pair(X, X * 3), expected=[X * -2])


def test_P2_one_tensor_given_for_two_inputs_stays_two_inputs():
    program = atonnx.export(Two().eval(), (X, X))
    assert inputs_of(program) == ["x", "y"]
    checked(program, X, X * 3, expected=[X * -2])


def test_P2_a_cache_object_is_an_input_tensor_by_tensor():
    transformers = pytest.importorskip("transformers")

    class Step(torch.nn.Module):
        def forward(self, x, cache):
            keys, values = cache.update(x, x + 1, 0)
            return keys.sum(-1), values.sum(-1)

    def cache():
        made = transformers.DynamicCache()
        made.update(torch.ones(1, 2, 3, 4), torch.zeros(1, 2, 3, 4), 0)
        return made

    x = torch.rand(1, 2, 1, 4)
    program = atonnx.export(
        Step().eval(),
        (x, cache()),
        input_names=["x", "keys", "values"],
        dynamic_shapes={"keys": {2: "past"}, "values": {2: "past"}},
    )
    assert inputs_of(program) == ["x", "keys", "values"]
    assert program.model.graph.inputs[1].shape[2] == "past"
    assert program.model.graph.outputs[0].shape[2] == "past + 1"


def test_P3_one_tensor_will_do_for_args():
    checked(atonnx.export(Two().eval(), X), X, expected=[X + 1])


def test_P3_another_single_value_is_refused():
    with pytest.raises(TypeError, match="not a tuple") as caught:
        atonnx.export(Two().eval(), 3)
    assert isinstance(caught.value, OnnxExporterError)


def test_P4_a_dict_at_the_end_of_args_is_kwargs():
    assert inputs_of(atonnx.export(Two().eval(), (X, {"y": X}))) == ["x", "y"]

    class TakesDict(torch.nn.Module):
        def forward(self, x, d):
            return x + d["a"]

    program = atonnx.export(TakesDict().eval(), (X, {"a": X}, {}))
    assert inputs_of(program) == ["x", "d_a"]


def test_P5_a_dynamic_number_is_an_input_of_rank_0():
    program = atonnx.export(Two().eval(), (X, 3), dynamic_shapes=(None, Dim.DYNAMIC))
    number = program.model.graph.inputs[1]
    assert (number.dtype, list(number.shape)) == (ir.DataType.INT64, [])
    checked(program, X, 7, expected=[X - 7])


def test_P6_none_is_no_input():
    program = atonnx.export(Two().eval(), (X, None))
    assert inputs_of(program) == ["x"]
    checked(program, X, None, expected=[X + 1])


@pytest.mark.parametrize("as_path", [str, Path])
def test_P7_the_model_is_saved_and_the_program_returned(as_path, tmp_path):
    program = exported(torch.relu, f=as_path(tmp_path / "m.onnx"))
    assert isinstance(program, ONNXProgram)
    onnx.checker.check_model(tmp_path / "m.onnx")


def test_P7_a_stream_is_deprecated():
    stream = io.BytesIO()
    with pytest.warns(DeprecationWarning, match="BytesIO"):
        exported(torch.relu, f=stream, external_data=False)
    onnx.checker.check_model(onnx.load_from_string(stream.getvalue()))


def test_P8_keyword_inputs_come_in_the_order_of_the_dict():
    program = atonnx.export(Two().eval(), kwargs={"y": X, "x": X * 3})
    assert inputs_of(program) == ["y", "x"]
    assert torch.equal(program(x=X, y=X * 2)[0], -X)


def test_P9_verbose_has_three_states(capsys):
    said = {}
    for verbose in (None, False, True):
        exported(torch.relu, verbose=verbose)
        said[verbose] = capsys.readouterr().out
    assert said[None] == said[False] == ""
    assert "[atonnx] Obtain model graph" in said[True]
    assert "[atonnx] Translate the graph" in said[True]


# --------------------------------------------------------------------------------------------- names


def test_P10_P11_names_go_to_the_inputs_in_order_and_the_old_ones_are_kept_in_metadata():
    program = atonnx.export(Two().eval(), (X, X), input_names=["left"], output_names=["out"])
    assert inputs_of(program) == ["left", "y"]
    left, y = program.model.graph.inputs
    assert left.metadata_props[ORIGINAL] == "x"
    assert ORIGINAL not in y.metadata_props
    assert program.model.graph.outputs[0].metadata_props[ORIGINAL] == "sub"
    checked(program, X, X * 2, expected=[-X])


def test_P10_P11_a_name_that_stays_is_no_renaming():
    program = atonnx.export(Two().eval(), (X,), input_names=["x"], output_names=["add"])
    graph = program.model.graph
    assert (inputs_of(program), outputs_of(program)) == (["x"], ["add"])
    assert not any(ORIGINAL in v.metadata_props for v in (*graph.inputs, *graph.outputs))


def test_P10_names_too_many_are_left_out_and_weights_never_get_one():
    program = atonnx.export(Weighted().eval(), (X,), input_names=["a", "b", "c"])
    assert inputs_of(program) == ["a"]
    assert set(program.model.graph.initializers) == {"fc.weight", "fc.bias"}


def test_P10_nested_inputs_are_named_in_the_order_of_flattening():
    args = ({"b": X, "a": [X, X * 2]},)
    program = exported(lambda d: d["b"] - d["a"][1], *args, {}, input_names=["first", "second", "third"])
    assert inputs_of(program) == ["first", "second", "third"]
    checked(program, *args, expected=[-X])


def test_P10_a_name_that_another_input_has_by_itself():
    program = atonnx.export(Two().eval(), (X, X), input_names=["y"])
    assert inputs_of(program) == ["y", "y_1"]
    assert program.model.graph.inputs[1].metadata_props[ORIGINAL] == "y"
    checked(program, X, X * 2, expected=[-X])


@pytest.mark.parametrize("option", ["input_names", "output_names"])
def test_P10_P12_a_name_given_twice_is_an_error(option):
    with pytest.raises(ValueError, match="cannot be duplicated.*'a'") as caught:
        atonnx.export(Two().eval(), (X, X), **{option: ["a", "a"]})
    assert isinstance(caught.value, OnnxExporterError)


def test_P10_P12_an_input_and_an_output_of_one_name_are_an_error():
    with pytest.raises(ValueError, match="'a'.*input_names.*output_names"):
        exported(lambda x: x, input_names=["a"], output_names=["a"])


def test_P12_output_names_do_not_change_the_order():
    program = exported(lambda x: {"b": x + 1, "a": x * 2}, output_names=["a", "b"])
    assert outputs_of(program) == ["a", "b"]
    checked(program, X, expected=[X + 1, X * 2])


def test_P12_fewer_and_more_output_names_than_outputs():
    assert outputs_of(exported(lambda x: (x + 1, x * 2), output_names=["a"])) == ["a", "mul"]
    assert outputs_of(exported(lambda x: x + 1, output_names=["a", "b", "c"])) == ["a"]


@pytest.mark.parametrize(
    ("returned", "names"),
    [
        (lambda x: {"a": x + 1, "boxes": {"raw": x, "aux": [x * 2]}}, ["a", "boxes.raw", "boxes.aux.0"]),
        (lambda x: Pair(x + 1, x * 2), ["left", "right"]),
        (lambda x: Pair(x + 1, None), ["left"]),
        (lambda x: Point(x + 1, x * 2), ["height", "width"]),
        (lambda x: collections.OrderedDict(b=x + 1, a=x * 2), ["b", "a"]),
        (lambda x: (x + 1, {"a": x * 2}, {"a": x * 3}), ["add", "a", "a_1"]),
        (lambda x: {"x": x + 1, "add": x * 2, "n": None}, ["x_1", "add"]),
        (lambda x: [x + 1, (x * 2,)], ["add", "mul"]),
    ],
)  # fmt: skip
def test_P12_outputs_without_a_name_go_by_the_keys_that_they_are_returned_under(returned, names):
    program = exported(returned)
    assert outputs_of(program) == names
    flat = [leaf for leaf in torch.utils._pytree.tree_leaves(returned(X)) if leaf is not None]
    checked(program, X, expected=flat)


def test_P13_an_input_that_is_returned_keeps_its_name():
    program = exported(lambda x: (x, x), output_names=["o1", "o2"])
    assert (inputs_of(program), outputs_of(program)) == (["x"], ["o1", "o2"])
    assert operators(program) == ["Identity", "Identity"]
    checked(program, X, expected=[X, X])


def test_P13_one_tensor_returned_twice():
    def twice(x):
        y = x + 1
        return y, y

    program = exported(twice, output_names=["o1", "o2"])
    assert outputs_of(program) == ["o1", "o2"]
    checked(program, X, expected=[X + 1, X + 1])


def test_P14_a_none_output_is_left_out_with_a_word(caplog):
    program = exported(lambda x: (None, x + 1), output_names=["out"])
    assert outputs_of(program) == ["out"]
    assert "None" in caplog.text
    checked(program, X, expected=[X + 1])


def test_P15_python_numbers_are_constant_outputs():
    program = exported(lambda x: (x + 1, 5, 2.5, True))
    checked(
        program,
        X,
        expected=[X + 1, torch.tensor(5), torch.tensor(2.5, dtype=torch.float64), torch.tensor(True)],
    )


def test_P15_numbers_made_of_sizes_are_outputs_with_the_models_names():
    program = exported(lambda x: (x + 1, x.shape[0] * 2, x.shape[0]), dynamic_shapes=({0: "n"},))
    assert outputs_of(program) == ["add", "mul", "sym_size_int_1"]
    checked(program, X, expected=[X + 1, torch.tensor(4), torch.tensor(2)])


class OddNames(torch.nn.Module):
    """Parameters that are named like attributes of Python, of torch, and like the input."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.ParameterDict({n: torch.rand(3) for n in ("shape", "forward_", "x", "class")})
        self.input = torch.nn.Linear(3, 3)
        self.register_buffer("dtype", torch.rand(3))
        self.register_parameter("x", torch.nn.Parameter(torch.rand(3)))

    def forward(self, x):
        return self.input(x) + self.dtype + self.x + sum(self.weight.values())


def test_P10_P12_parameters_may_bear_any_name():
    model = OddNames().eval()
    program = atonnx.export(model, (X,), input_names=["dtype"], output_names=["input.weight"])
    assert (inputs_of(program), outputs_of(program)) == (["dtype"], ["input.weight"])
    checked(program, X, expected=[model(X)])
    initializers = program.model.graph.initializers.values()
    names = {name for value in initializers for leaf in leaves(value.const_value) for name in leaf.names}
    assert names == set(model.state_dict())


# -------------------------------------------------------------------------------------------- opsets


def test_P16_default_opset_is_20():
    program = exported(torch.relu)
    assert program.model.opset_imports == {"": 20}
    assert program.model.ir_version == 10
    assert program.model.producer_name == "atonnx"
    assert program.model.producer_version == atonnx.__version__
    assert program.model.metadata_props["torch_version"] == torch.__version__


@pytest.mark.parametrize(
    ("opset", "ir_version"), [(11, 6), (13, 7), (17, 8), (18, 8), (20, 9), (21, 10), (23, 11)]
)
def test_P17_P18_the_opset_is_exactly_the_one_asked_for(opset, ir_version, recwarn, caplog):
    program = exported(torch.nn.functional.gelu, opset_version=opset)
    assert program.model.opset_imports == {"": opset}
    assert program.model.ir_version == ir_version
    assert "version" not in caplog.text + "".join(str(w.message) for w in recwarn)
    checked(program, X, expected=[torch.nn.functional.gelu(X)])


@pytest.mark.parametrize("opset", [10, 99])
def test_P17_an_opset_out_of_range_is_an_error_that_names_the_range(opset):
    with pytest.raises(ValueError, match="11 to"):
        exported(torch.relu, opset_version=opset)


# -------------------------------------------------------------------------------------------- saving


def test_P22_weights_go_beside_the_model(tmp_path):
    program = atonnx.export(Weighted().eval(), (X,), tmp_path / "m.onnx")
    assert {p.name for p in tmp_path.iterdir()} == {"m.onnx", "m.onnx.data"}
    checked(program, X, expected=[program.exported_program.module()(X)])


def test_P22_small_tensors_stay_inside_and_no_empty_file_is_left(tmp_path):
    atonnx.export(torch.nn.Linear(3, 3).eval(), (X,), tmp_path / "m.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_P23_one_file(tmp_path):
    atonnx.export(Weighted().eval(), (X,), tmp_path / "m.onnx", external_data=False)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    assert len(onnx.load(tmp_path / "m.onnx").graph.initializer) == 2


def test_P24_dynamic_shapes_in_its_three_forms():
    for shapes in ({"x": {0: "n"}, "y": {0: "n"}}, ({0: "n"}, {0: "n"}), [{0: "n"}, {0: "n"}]):
        program = atonnx.export(Two().eval(), (X, X), dynamic_shapes=shapes)
        assert program.model.graph.inputs[1].shape == ("n", 3)


def test_P37_without_weights(tmp_path):
    atonnx.export(Weighted().eval(), (X,), tmp_path / "m.onnx", export_params=False)
    assert not onnx.load(tmp_path / "m.onnx").graph.initializer


def test_P38_weights_as_inputs_too(tmp_path):
    atonnx.export(Weighted().eval(), (X,), tmp_path / "m.onnx", keep_initializers_as_inputs=True)
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert [i.name for i in graph.input] == ["x", *(i.name for i in graph.initializer)]


@pytest.mark.parametrize(
    "idle", [{"export_params": False}, {"keep_initializers_as_inputs": True}, {"external_data": False}]
)
def test_P37_P38_without_a_file_they_warn_that_they_have_no_effect(idle):
    with pytest.warns(UserWarning, match=f"{next(iter(idle))}.*no effect"):
        exported(torch.relu, **idle)


# --------------------------------------------------------------------------------- translation table


def negated(op, self):
    return op.Neg(self)


def test_P25_a_function_for_an_operator(tmp_path):
    @script(opset18)
    def scripted(x):
        return opset18.Neg(x)

    for function in (negated, scripted, lambda x: opset18.Neg(x)):
        program = exported(torch.relu, custom_translation_table={torch.ops.aten.relu.default: function})
        assert operators(program) == ["Neg"]


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({torch.ops.aten.relu.default: [negated]}, "single callable"),
        ({torch.ops.aten.relu: negated}, "default"),
    ],
)
def test_P25_a_table_of_another_form_is_an_error(table, text):
    with pytest.raises(TypeError, match=text) as caught:
        exported(torch.relu, custom_translation_table=table)
    assert isinstance(caught.value, PluginError)


def test_P26_the_users_function_goes_before_ours_and_stops_decomposition():
    seen = []

    def nothing(op, *args, **kwargs):
        seen.append(op.out.dims)
        return op.Identity(args[0])

    table = {
        torch.ops.aten.pixel_shuffle.default: lambda op, x, factor: nothing(op, op.reshape(x, op.out.dims))
    }
    exported(lambda x: torch.pixel_shuffle(x, 2), torch.rand(1, 4, 2, 2), custom_translation_table=table)
    assert seen == [(1, 1, 4, 4)]


def test_P27_a_function_gets_complex_operands_if_it_declares_them():
    z = torch.rand(3, dtype=torch.complex64)

    def tripled(op, self, other, *, alpha=1):
        return op.Mul(self, 3.0)

    def through(table):
        program = exported(lambda x: torch.view_as_real(x + x), z, custom_translation_table=table)
        return program(z)[0]

    table = {torch.ops.aten.add.Tensor: tripled}
    torch.testing.assert_close(through(table), torch.view_as_real(z * 2))
    tripled.complex = "only"
    torch.testing.assert_close(through(table), torch.view_as_real(z * 3))


def test_P28_a_function_is_taken_at_every_opset():
    table = {torch.ops.aten.relu.default: negated}
    for opset in (11, 17, 23):
        assert operators(exported(torch.relu, custom_translation_table=table, opset_version=opset)) == ["Neg"]


def test_P29_functions_for_size_arithmetic():
    seen = []

    def product(op, a, b):
        seen.append("mul")
        return op.Mul(a, b)

    def largest(op, a, b):
        seen.append("sym_max")
        return op.Max(a, b)

    def floor(op, a):
        seen.append("floor")
        return op.cast(op.Floor(op.as_value(a)), ir.DataType.INT64)

    def model(x):
        size = torch.sym_max(x.shape[0], x.shape[1])
        return x.new_zeros(size * 2), x * math.floor(x.shape[0] / 2)

    program = exported(
        model,
        dynamic_shapes=({0: "a", 1: "b"},),
        custom_translation_table={operator.mul: product, torch.sym_max: largest, math.floor: floor},
    )
    assert sorted(seen) == ["floor", "mul", "sym_max"]
    x = torch.rand(5, 4)
    checked(program, x, expected=[torch.zeros(10), x * 2])


def test_P29_functions_for_higher_order_operators():
    def both(op, condition, first, second, operands):
        return (op.Where(condition, op.Add(operands[0], 1.0), op.Sub(operands[0], 1.0)),)

    program = exported(
        lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)),
        custom_translation_table={torch.ops.higher_order.cond: both},
    )
    assert "If" not in operators(program)
    checked(program, -X, expected=[-X - 1])


# ------------------------------------------------------------------------------------------- options


def test_P31_P32_the_passes_run_unless_told_otherwise():
    def twice(x):
        return x.transpose(0, 1).transpose(0, 1) + 0.5

    raw, optimized = exported(twice, optimize=False), exported(twice)
    assert operators(optimized) == ["Add"]
    assert len(operators(raw)) > 1
    for program in (raw, optimized):
        checked(program, X, expected=[X + 0.5])


def test_P33_verify_keeps_what_it_found():
    assert exported(torch.relu, verify=True, verbose=False).verification.ok
    assert exported(torch.relu).verification is None


@pytest.mark.parametrize(
    "option",
    [
        {"training": torch.onnx.TrainingMode.TRAINING},
        {"operator_export_type": torch.onnx.OperatorExportTypes.ONNX_ATEN},
        {"do_constant_folding": False},
        {"custom_opsets": {"com.example": 1}},
        {"export_modules_as_functions": True},
        {"autograd_inlining": False},
    ],
    ids=lambda option: next(iter(option)),
)
def test_P40_P41_P42_P43_P44_P45_deprecated_parameters_warn(option):
    with pytest.warns(DeprecationWarning, match=f"{next(iter(option))}.*deprecated") as caught:
        exported(torch.relu, **option)
    assert {Path(w.filename).name for w in caught} == {Path(__file__).name}


def test_P40_P41_P42_P43_P44_P45_defaults_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exported(torch.relu)


@pytest.mark.parametrize("option", ["report", "profile", "dump_exported_program"])
def test_S3_what_is_not_there_yet_says_so(option):
    with pytest.raises(ValueError, match=f"{option}.*not there yet") as caught:
        exported(torch.relu, **{option: True})
    assert isinstance(caught.value, OnnxExporterError)


def test_P46_training_mode_is_a_warning_and_stays():
    model = Two().train()
    with pytest.warns(UserWarning, match="training mode") as caught:
        atonnx.export(model, (X,))
    assert [Path(w.filename).name for w in caught] == [Path(__file__).name]
    assert model.training


def test_P47_nothing_global_is_left_changed():
    def state():
        return (
            torch.is_grad_enabled(),
            torch.jit.isinstance,
            atonnx.is_in_onnx_export(),
            torch.onnx.is_in_onnx_export(),
            torch.fx.experimental._config.backed_size_oblivious,
            Two.forward,
        )

    before = state()
    exported(torch.relu, dynamic_shapes=({0: "n"},))
    assert state() == before

    def broken(x):
        raise KeyError("broken")

    with pytest.raises(CaptureError):
        exported(broken)
    assert state() == before


def foldable() -> torch.nn.Module:
    """Its passes fold weights into each other."""
    layers = [torch.nn.Conv2d(3, 20, 3), torch.nn.BatchNorm2d(20), torch.nn.ReLU(), torch.nn.Flatten()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(180, 4)).eval()


def test_P48_models_without_data_are_exported_with_default_options(tmp_path):
    image = torch.rand(2, 3, 5, 5)
    real = foldable()
    with FakeTensorMode():
        fake, fake_image = foldable(), torch.rand(2, 3, 5, 5)
        within = atonnx.export(fake, (fake_image,), dynamic_shapes=({0: "batch"},))
    after = atonnx.export(fake, (fake_image,), dynamic_shapes=({0: "batch"},))
    meta = atonnx.export(foldable().to("meta"), (image.to("meta"),), dynamic_shapes=({0: "batch"},))
    plain = atonnx.export(real, (image,), dynamic_shapes=({0: "batch"},))
    for program in (within, after, meta):
        assert operators(program) == operators(plain)
        with pytest.raises(TypeError, match="apply_weights"):
            program.save(tmp_path / "m.onnx")
        program.save(tmp_path / "m.onnx", include_initializers=False)
        program.apply_weights(real.state_dict())
        torch.testing.assert_close(program(image)[0], real(image))
