"""What torch.onnx.export promises of dynamic axes: rows DS and DA of the list of promises."""

from __future__ import annotations

import warnings

import onnx
import pytest
import torch
from torch.export import Dim

import atonnx
from atonnx.errors import CaptureError, OnnxExporterError

X = torch.arange(6.0).reshape(2, 3)
RANGES = "pkg.torch.export.ExportedProgram.range_constraints"


class Call(torch.nn.Module):
    """A model of one function of two inputs."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y):
        return self.function(x, y)


class Sum(torch.nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=1)


class Mlp(torch.nn.Module):
    """The first example of torch.onnx's documentation: nested inputs."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(24, 2)

    def forward(self, tensor_x, input_dict, input_list):
        return self.fc(torch.cat([tensor_x, input_dict["tensor_x"], input_list[0]], dim=1))


def exported(function, *args, **options):
    return atonnx.export(Call(function).eval(), args or (X, X), **options)


def shapes(program) -> tuple[list, list]:
    graph = program.model.graph
    return tuple(
        [[str(d) for d in value.shape] for value in values] for values in (graph.inputs, graph.outputs)
    )


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def legacy(model, args, **options):
    """An export with dynamic_axes, which warns."""
    with (
        pytest.warns(DeprecationWarning, match="dynamic_axes"),
        pytest.warns(UserWarning, match="not recommended"),
    ):
        return atonnx.export(model.eval(), args, **options)


# ------------------------------------------------------------------------------------ dynamic_shapes


@pytest.mark.parametrize(
    "given",
    [
        {"x": {0: "n"}, "y": {0: "m"}},
        ({0: "n"}, {0: "m"}),
        [{0: "n"}, {0: "m"}],
        (("n", None), ["m", None]),
        ({0: Dim("n")}, {0: Dim("m", min=2, max=99)}),
    ],
)
def test_DS1_DS2_DS3_DS5_every_form_names_the_axes(given):
    program = exported(lambda x, y: torch.cat([x, y]), dynamic_shapes=given)
    assert shapes(program) == ([["n", "3"], ["m", "3"]], [["m + n", "3"]])
    torch.testing.assert_close(program(X, X[:1].repeat(5, 1))[0].shape, torch.Size([7, 3]))


def test_DS1_shapes_go_by_the_names_that_inputs_are_given_as_well():
    options = {"input_names": ["left", "right"]}
    for given in ({"left": {0: "n"}, "right": {0: "m"}}, {"x": {0: "n"}, "right": {0: "m"}}):
        program = exported(lambda x, y: (x + 1, y + 1), dynamic_shapes=given, **options)
        assert shapes(program)[0] == [["n", "3"], ["m", "3"]]


def test_DS1_a_name_of_forward_goes_before_a_given_one():
    program = exported(
        lambda x, y: (x + 1, y + 1), dynamic_shapes={"x": {0: "n"}, "y": None}, input_names=["y", "x"]
    )
    assert shapes(program)[0] == [["n", "3"], ["2", "3"]]


def test_DS1_given_names_of_nested_inputs():
    program = atonnx.export(
        Mlp().eval(),
        (torch.rand(2, 8), {"tensor_x": torch.rand(2, 8)}, [torch.rand(2, 8)]),
        kwargs={},
        input_names=["a", "b", "c"],
        dynamic_shapes={name: {0: "batch"} for name in "abc"},
    )
    assert shapes(program)[0] == [["batch", "8"]] * 3


def test_DS1_a_name_that_nothing_has_is_an_error():
    with pytest.raises(CaptureError, match="zzz"):
        exported(lambda x, y: x + y, dynamic_shapes={"zzz": {0: "n"}})


@pytest.mark.parametrize("axis", [-1, 2, "0", None])
def test_DS1_an_axis_that_a_tensor_does_not_have_is_an_error(axis):
    with pytest.raises(ValueError, match="there is no axis") as caught:
        exported(lambda x, y: x + y, dynamic_shapes=({axis: "n"}, None))
    assert isinstance(caught.value, OnnxExporterError)


def test_DS1_shapes_collected_by_tensor():
    y = X + 1
    collection = torch.export.ShapesCollection()
    collection[X], collection[y] = {0: "n"}, {0: Dim("m")}
    program = exported(lambda x, y: (x + 1, y + 1), X, y, dynamic_shapes=collection)
    assert shapes(program)[0] == [["n", "3"], ["m", "3"]]


def test_DS1_shapes_from_additional_inputs():
    more = torch.export.AdditionalInputs()
    more.add((X.repeat(2, 1), X))
    program = exported(lambda x, y: (x + 1, y + 1), dynamic_shapes=more)
    assert [row[0].startswith("s") for row in shapes(program)[0]] == [True, False]


def test_DS4_hints_keep_torchs_symbols():
    program = exported(
        lambda x, y: (x + 1, y + 1), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.STATIC}, {0: Dim.AUTO, 1: 3})
    )
    inputs, outputs = shapes(program)
    assert inputs == outputs
    assert [row[1] for row in inputs] == ["3", "3"]
    assert all(row[0].startswith("s") for row in inputs)


def test_DS4_none_is_static():
    program = exported(lambda x, y: (x + 1, y + 1), dynamic_shapes=(None, {0: "m", 1: None}))
    assert shapes(program)[0] == [["2", "3"], ["m", "3"]]


def test_DS6_DS11_derived_dims_and_expressions_have_the_names_too():
    dx = Dim("dx", min=1)
    program = exported(
        lambda x, y: torch.cat([x, y[1:]]), X, torch.rand(3, 3), dynamic_shapes=({0: dx}, {0: dx + 1})
    )
    assert shapes(program) == ([["dx", "3"], ["dx + 1", "3"]], [["2*dx", "3"]])
    assert program.model.graph.metadata_props[RANGES].startswith("{dx: VR[1, int_oo]")


def test_DS7_the_first_name_of_a_size_holds():
    with pytest.warns(UserWarning, match="rows will not be used.*batch"):
        program = exported(lambda x, y: x + y, dynamic_shapes=({0: "batch"}, {0: "rows"}))
    assert shapes(program) == ([["batch", "3"]] * 2, [["batch", "3"]])


def test_DS7_equal_names_are_no_warning():
    exported(lambda x, y: x + y, dynamic_shapes=({0: "batch"}, {0: "batch"}))


def test_DS8_another_number_of_inputs_is_a_warning():
    from atonnx.capture.dynamic import axis_names

    program = torch.export.export(Sum(), (X,), dynamic_shapes=({0: Dim("rows")},))
    with pytest.warns(UserWarning, match="another number of inputs"):
        names = axis_names(program, [(X, {0: "a"}), (X, {0: "b"})])
    assert list(names.values()) == ["rows"]


def test_DS9_a_size_of_one_stays_dynamic():
    program = exported(lambda x, y: x * y.sum(), X[:1], X[:1], dynamic_shapes=({0: "n"}, {0: "m"}))
    torch.testing.assert_close(program(X, torch.rand(0, 3))[0], X * 0)


def test_DS10_the_documentations_assertion():
    args = (torch.rand(3, 8), {"tensor_x": torch.rand(3, 8)}, [torch.rand(3, 8)])
    program = atonnx.export(
        Mlp().eval(),
        args,
        dynamic_shapes=({0: "batch_size"}, {"tensor_x": {0: "batch_size"}}, [{0: "batch_size"}]),
    )
    assert all(value.shape == ("batch_size", 8) for value in program.model.graph.inputs)
    assert program.model.graph.outputs[0].shape == ("batch_size", 2)
    assert [value.name for value in program.model.graph.inputs] == [
        "tensor_x",
        "input_dict_tensor_x",
        "input_list_0",
    ]


def test_DS11_ranges_are_kept_under_the_names():
    program = exported(lambda x, y: (x + 1, y + 1), dynamic_shapes=({0: Dim("n", min=2, max=64)}, {0: "m"}))
    assert program.model.graph.metadata_props[RANGES] == "{n: VR[2, 64], m: VR[0, int_oo]}"


def test_DS12_dynamic_shapes_win_over_dynamic_axes():
    with pytest.warns(UserWarning, match="dynamic_axes has no effect beside dynamic_shapes"):
        program = exported(
            lambda x, y: (x + 1, y + 1),
            dynamic_shapes=({0: "n"}, None),
            dynamic_axes={"y": {0: "m"}, "nothing": [0]},
        )
    assert shapes(program)[0] == [["n", "3"], ["2", "3"]]


@pytest.mark.parametrize("label", ["n", Dim.DYNAMIC])
def test_DS13_a_size_that_the_model_fixes_is_an_error(label):
    with pytest.raises(CaptureError, match="static|specialized|Constraints") as caught:
        exported(lambda x, y: x.reshape(2, 3) + y, dynamic_shapes=({0: label}, None))
    assert caught.value.__cause__ is not None


def test_DS14_axes_of_outputs_are_named_through_their_sizes():
    program = exported(
        lambda x, y: (x.repeat(2, 1), torch.nonzero(y)), dynamic_shapes=({0: "n", 1: "k"}, None)
    )
    (first, second) = shapes(program)[1]
    assert first == ["2*n", "k"]
    program.rename_axes({second[0]: "found"})
    assert shapes(program)[1] == [["2*n", "k"], ["found", "2"]]


# -------------------------------------------------------------------------------------- dynamic_axes


def test_DA1_dynamic_axes_is_deprecated():
    program = legacy(Sum(), (X,), dynamic_axes={"x": {0: "n"}})
    assert shapes(program) == ([["n", "3"]], [["n"]])


def test_DA2_without_it_all_is_static():
    program = atonnx.export(Sum().eval(), (torch.ones(2, 2),), input_names=["x"], output_names=["sum"])
    assert shapes(program) == ([["2", "2"]], [["2"]])


def test_DA3_DA4_DA10_the_documentations_examples(tmp_path):
    names = {"input_names": ["x"], "output_names": ["sum"]}
    path = tmp_path / "onnx.pb"
    args = (torch.ones(2, 2),)
    legacy(Sum(), args, f=path, **names, dynamic_axes={"x": {0: "my_custom_axis_name"}, "sum": [0]})
    graph = onnx.load(path).graph
    dims = [
        [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in (*graph.input, *graph.output)
    ]
    assert dims == [["my_custom_axis_name", 2], ["sum_dynamic_axes_1"]]


def test_DA3_DA4_an_output_may_have_its_own_name_for_an_axis():
    axes = {"x": {0: "rows"}, "out": {-1: "sums"}}
    program = legacy(Sum(), (X,), output_names=["out"], dynamic_axes=axes)
    assert shapes(program) == ([["rows", "3"]], [["sums"]])
    torch.testing.assert_close(program(X.repeat(2, 1))[0], X.repeat(2, 1).sum(1))


def test_DA4_a_size_that_only_outputs_have_is_named_everywhere():
    model = Call(lambda x, y: (torch.nonzero(x), torch.nonzero(x) * 2))
    program = legacy(model, (X, X), output_names=["idx", "twice"], dynamic_axes={"idx": {0: "found"}})
    assert shapes(program)[1][0] == ["found", "2"]
    assert "found" in [str(d) for node in program.model.graph for v in node.outputs for d in v.shape or ()]


def test_DA4_an_axis_of_an_output_that_is_static_stays_so():
    program = legacy(Sum(), (X,), output_names=["sum"], dynamic_axes={"sum": [0]})
    assert shapes(program)[1] == [["2"]]


def test_DA5_a_name_that_nothing_has_is_an_error():
    for names in ({"output_names": ["sum"]}, {}):
        with pytest.raises(ValueError, match="nope.*neither an input.*nor an output") as caught:
            legacy(Sum(), (X,), dynamic_axes={"nope": [0]}, **names)
        assert isinstance(caught.value, OnnxExporterError) and isinstance(caught.value, RuntimeError)


def test_DA5_inputs_and_outputs_go_by_the_models_names_without_others():
    program = legacy(Sum(), (X,), dynamic_axes={"x": {0: "n"}, "sum_1": {0: "m"}})
    assert shapes(program) == ([["n", "3"]], [["m"]])


@pytest.mark.parametrize("axes", [{"0": "n"}, {True: "n"}, ["0"], [None], "n", 0])
def test_DA6_axes_are_ints(axes):
    with pytest.raises(ValueError, match="dynamic_axes") as caught:
        legacy(Sum(), (X,), dynamic_axes={"x": axes})
    assert isinstance(caught.value, OnnxExporterError) and isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("axes", [{"x": [2]}, {"x": {-3: "n"}}, {"sum_1": [1]}])
def test_DA6_an_axis_that_a_tensor_does_not_have_is_an_error(axes):
    with pytest.raises(ValueError, match="there is no axis"):
        legacy(Sum(), (X,), dynamic_axes=axes)


def test_DA7_inputs_without_axes_are_static():
    model = Call(lambda x, y: (x + 1, y + 1))
    for options in ({}, {"input_names": ["x", "y"]}, {"input_names": ["x"]}):
        program = legacy(model, (X, X), dynamic_axes={"x": {0: "n"}}, **options)
        assert shapes(program)[0] == [["n", "3"], ["2", "3"]]
    assert shapes(legacy(model, (X, X), dynamic_axes={"x": None, "y": []}))[0] == [["2", "3"]] * 2


class Variadic(torch.nn.Module):
    def forward(self, first, *rest, **named):
        return first + sum(rest) + named["last"]["k"]


def test_DA8_nested_inputs_go_by_their_flat_names():
    args = (torch.rand(2, 8), {"tensor_x": torch.rand(2, 8)}, [torch.rand(2, 8)])
    own = ["tensor_x", "input_dict_tensor_x", "input_list_0"]
    for names in (None, ["a", "b", "c"]):
        axes = {name: {0: "batch"} for name in names or own}
        program = legacy(Mlp(), args, kwargs={}, input_names=names, dynamic_axes=axes)
        assert shapes(program)[0] == [["batch", "8"]] * 3


@pytest.mark.skipif(
    torch.__version__.startswith("2.13"), reason="its torch.export takes no dynamic shapes for **kwargs"
)
def test_DA8_variadic_inputs_go_by_their_flat_names():
    args, kwargs = (X, X, X), {"last": {"k": X}}
    own = ["first", "rest_0", "rest_1", "last_k"]
    for names in (None, ["a", "b", "c", "d"]):
        axes = {name: {0: "n"} for name in names or own}
        program = legacy(Variadic(), args, kwargs=kwargs, input_names=names, dynamic_axes=axes)
        assert [value.name for value in program.model.graph.inputs] == (names or own)
        assert shapes(program)[0] == [["n", "3"]] * 4


def test_DA8_values_that_are_no_inputs_are_passed_over():
    class Mixed(torch.nn.Module):
        def forward(self, x, factor, nothing, y):
            return x * factor + 1, y

    program = legacy(
        Mixed(), (X, 2.0, None, X), input_names=["a", "b"], dynamic_axes={"a": {0: "n"}, "b": {1: "m"}}
    )
    assert shapes(program)[0] == [["n", "3"], ["2", "m"]]


def test_DA9_a_list_gives_automatic_names_by_place():
    model = Call(lambda x, y: (x + 1, y + 1))
    program = legacy(model, (X, X), dynamic_axes={"x": [1, 0], "y": [0, 0]})
    assert shapes(program)[0] == [["x_dynamic_axes_2", "x_dynamic_axes_1"], ["y_dynamic_axes_1", "3"]]


def test_DA9_a_name_of_the_users_goes_before_an_automatic_one():
    program = legacy(Call(lambda x, y: x + y), (X, X), dynamic_axes={"x": [0], "y": {0: "batch"}})
    assert shapes(program) == ([["batch", "3"]] * 2, [["batch", "3"]])
    program = legacy(Call(lambda x, y: x + y), (X, X), dynamic_axes={"x": [0], "y": [0]})
    assert shapes(program)[0] == [["x_dynamic_axes_1", "3"]] * 2
