"""``ExportableModule``, row by row."""

from __future__ import annotations

import abc
import warnings

import pytest
import torch
from torch import nn

import atonnx
from atonnx.errors import OnnxExporterError


def exportable(base=atonnx.ExportableModule, **methods):
    """A module in eval mode with the given methods beside those that it needs."""

    def forward(self, x, scale=1.0):
        return self.linear(x) * scale

    def __init__(self):
        nn.Module.__init__(self)
        self.linear = nn.Linear(4, 3)

    needed = {
        "__init__": __init__,
        "forward": forward,
        "example_arguments": lambda self: ((torch.randn(2, 4),), None),
    }
    return type("Model", (base,), {**needed, **methods})().eval()


NAMED = {
    "dynamic_shapes": lambda self: ({0: "batch_size"},),
    "input_names": lambda self: ("input",),
    "output_names": lambda self: ("output",),
}


def names(program):
    graph = program.model.graph
    return [value.name for value in graph.inputs], [value.name for value in graph.outputs]


def dims(program):
    return [str(dim) for dim in program.model.graph.inputs[0].shape]


def test_X1_an_abstract_module():
    assert issubclass(atonnx.ExportableModule, nn.Module)
    assert isinstance(atonnx.ExportableModule, abc.ABCMeta)
    incomplete = type("Incomplete", (atonnx.ExportableModule,), {"forward": lambda self, x: x})
    for cls in (atonnx.ExportableModule, incomplete):
        with pytest.raises(TypeError, match="example_arguments"):
            cls()


def test_X2_example_arguments_are_a_tuple_and_a_dict_or_none():
    with_kwargs = {"example_arguments": lambda self: ((torch.ones(2, 4),), {"scale": 2.0})}
    program = atonnx.export(exportable(**with_kwargs))
    assert names(program)[0] == ["x"]
    assert program.verify().ok
    assert atonnx.export(exportable()).verify().ok


@pytest.mark.parametrize(
    "wrong", [torch.ones(2, 4), (torch.ones(2, 4),), ((torch.ones(2, 4),), [1]), None, (1, 2, 3)]
)
def test_X2_other_example_arguments_are_an_error(wrong):
    with pytest.raises(
        TypeError, match=r"Model\.example_arguments\(\) must return \(args, kwargs\)"
    ) as caught:
        atonnx.export(exportable(example_arguments=lambda self: wrong))
    assert isinstance(caught.value, OnnxExporterError)


def test_X2_a_dict_at_the_end_of_the_arguments_is_an_argument():
    model = exportable(
        forward=lambda self, x, pair: x + pair["a"],
        example_arguments=lambda self: ((torch.ones(2), {"a": torch.ones(2)}), None),
    )
    assert atonnx.export(model).verify().ok


def test_X3_X4_X5_the_other_methods_return_none():
    model = exportable()
    assert (model.dynamic_shapes(), model.input_names(), model.output_names()) == (None, None, None)


def test_X3_X4_X5_X10_the_methods_name_axes_inputs_and_outputs():
    program = atonnx.export(exportable(**NAMED))
    assert names(program) == (["input"], ["output"])
    assert dims(program) == ["batch_size", "4"]


def test_X4_X5_fewer_names_than_inputs_and_outputs():
    model = exportable(
        forward=lambda self, x, y: (x + y, x - y),
        example_arguments=lambda self: ((torch.ones(2), torch.ones(2)), None),
        input_names=lambda self: ["first"],
        output_names=lambda self: ["sum"],
    )
    found_inputs, found_outputs = names(atonnx.export(model))
    assert (found_inputs[0], found_outputs[0]) == ("first", "sum")
    assert len(found_inputs) == len(found_outputs) == 2


def test_X6_to_onnx_is_export_of_the_module():
    program = exportable(**NAMED).to_onnx(input_names=["data"], optimize=False)
    assert isinstance(program, atonnx.ONNXProgram)
    assert names(program) == (["data"], ["output"])


def test_X7_export_takes_it_whatever_dynamo_is():
    for options in ({}, {"dynamo": False}):
        assert isinstance(atonnx.export(exportable(), **options), atonnx.ONNXProgram)


def test_X7_a_subclass_of_torchs_class_works_as_one_of_ours():
    program = atonnx.export(exportable(torch.onnx.ExportableModule, **NAMED))
    assert isinstance(program, atonnx.ONNXProgram)
    assert names(program) == (["input"], ["output"])
    assert dims(program) == ["batch_size", "4"]


def test_X7_torch_takes_ours():
    program = torch.onnx.export(exportable(**NAMED), verbose=False)
    assert [value.name for value in program.model.graph.inputs] == ["input"]


def refusing(self):
    raise AssertionError


@pytest.mark.parametrize(
    "given",
    [
        {"args": (torch.ones(5, 4),)},
        {"args": torch.ones(5, 4)},
        {"kwargs": {"x": torch.ones(5, 4)}},
        {"args": (torch.ones(5, 4),), "kwargs": {"scale": 3.0}},
    ],
    ids=["tuple", "tensor", "kwargs", "both"],
)
def test_X8_with_arguments_given_no_method_is_asked(given):
    methods = dict.fromkeys(["example_arguments", *NAMED], refusing)
    program = atonnx.export(exportable(**methods), **given)
    assert names(program)[0] == ["x"]
    assert dims(program) == ["5", "4"]


def test_X9_names_and_shapes_given_win():
    model = exportable(**dict.fromkeys(NAMED, refusing))
    program = atonnx.export(model, input_names=["a"], output_names=["b"], dynamic_shapes={"x": {0: "rows"}})
    assert names(program) == (["a"], ["b"])
    assert dims(program) == ["rows", "4"]


def test_X9_dynamic_axes_win_over_the_modules_shapes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = atonnx.export(exportable(**NAMED), dynamic_axes={"input": {0: "rows"}})
    assert dims(program) == ["rows", "4"]


def test_X10_a_module_in_training_mode_is_a_warning():
    with pytest.warns(UserWarning, match="training mode"):
        assert dims(exportable(**NAMED).train().to_onnx()) == ["batch_size", "4"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exportable(**NAMED).to_onnx()


def test_X11_other_options_pass_through(tmp_path):
    path = tmp_path / "model.onnx"
    program = exportable().to_onnx(f=path, opset_version=13, optimize=False, external_data=False)
    assert path.exists()
    assert program.model.opset_imports[""] == 13
