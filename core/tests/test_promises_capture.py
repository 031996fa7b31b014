"""What torch.onnx.export promises of capture: rows C of the list of promises."""

from __future__ import annotations

import io
import sys
import warnings

import pytest
import torch
from torch.export import Dim

import atonnx
from atonnx.errors import CaptureError, OnnxExporterWarning

X = torch.arange(12.0).reshape(4, 3)


class Call(torch.nn.Module):
    """A model of one function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Two(torch.nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y]) * 2


class Branches(torch.nn.Module):
    """A condition that hangs on data, which torch.export does not capture."""

    def forward(self, x):
        return x + 1 if x.sum() > 0 else x


def shapes_of(program) -> list[tuple]:
    return [tuple(map(str, value.shape)) for value in program.model.graph.inputs]


def loaded(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    return torch.export.load(buffer)


def named_program(**options) -> torch.export.ExportedProgram:
    batch, rows = Dim("batch"), Dim("rows", min=2, max=64)
    shapes = ({0: batch}, {0: rows})
    return torch.export.export(Two().eval(), (X, X[:3]), dynamic_shapes=shapes, **options)


@pytest.mark.parametrize("strict", [False, True])
def test_C1_a_program_is_used_as_it_is_with_the_names_of_its_dims(strict):
    captured = named_program(strict=strict)
    program = atonnx.export(captured)
    assert program.exported_program is captured
    assert program.capture_strategy is None
    assert shapes_of(program) == [("batch", "3"), ("rows", "3")]
    assert program.model.graph.outputs[0].shape[0] in ("batch + rows", "rows + batch")
    assert "rows: VR[2, 64]" in str(program.model.graph.metadata_props)
    torch.testing.assert_close(program(X[:2], X)[0], torch.cat([X[:2], X]) * 2)


@pytest.mark.parametrize("again", [lambda program: program, loaded])
@pytest.mark.parametrize("shapes", [({0: "n"}, {0: "m"}), {"x": {0: "n"}, "y": {0: "m"}}])
def test_C1_string_names_name_the_axes_of_a_program(again, shapes):
    program = atonnx.export(again(named_program()), dynamic_shapes=shapes)
    assert shapes_of(program) == [("n", "3"), ("m", "3")]


def test_C1_a_name_given_goes_before_that_of_a_dim():
    program = atonnx.export(named_program(), dynamic_shapes=(None, {0: "m"}))
    assert shapes_of(program) == [("batch", "3"), ("m", "3")]


def test_C1_input_and_output_names_and_dynamic_axes_work_with_a_program():
    program = atonnx.export(
        named_program(),
        input_names=["left", "right"],
        output_names=["both"],
        dynamic_axes={"left": {0: "n"}, "both": [0]},
    )
    assert shapes_of(program) == [("n", "3"), ("rows", "3")]
    assert program.model.graph.outputs[0].shape[0] == "both_dynamic_axes_1"


def test_C2_the_first_strategy_is_not_strict_and_leaves_sizes_0_and_1_dynamic():
    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(3, 5, batch_first=True)

        def forward(self, x):
            return self.lstm(x)[0]

    model = Pooled().eval()
    program = atonnx.export(model, (torch.rand(1, 1, 3),), dynamic_shapes=({0: "batch", 1: "time"},))
    assert program.capture_strategy == "strict=False"
    assert [node.op_type for node in program.model.graph].count("LSTM") == 1
    x = torch.rand(2, 7, 3)
    torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)


def test_C2_assertions_may_be_left_to_guards(monkeypatch):
    seen = []
    export = torch.export.export

    def spied(*args, **options):
        seen.append(options["prefer_deferred_runtime_asserts_over_guards"])
        return export(*args, **options)

    monkeypatch.setattr(torch.export, "export", spied)
    atonnx.export(Two().eval(), (X, X))
    monkeypatch.setenv("TORCH_ONNX_PREFER_DEFERRED_RUNTIME_ASSERTS_OVER_GUARDS", "0")
    atonnx.export(Two().eval(), (X, X))
    assert seen == [True, False]


def test_C3_C9_the_second_strategy_is_strict_and_traces_torchscripts_isinstance():
    class OnlyStrict(torch.nn.Module):
        def forward(self, x):
            if not torch.compiler.is_dynamo_compiling():
                raise RuntimeError("not this way")
            return x + 1 if torch.jit.isinstance(x, torch.Tensor) else x

    before = torch.jit.isinstance
    program = atonnx.export(OnlyStrict().eval(), (X,))
    assert program.capture_strategy == "strict=True"
    assert torch.jit.isinstance is before
    torch.testing.assert_close(program(X)[0], X + 1)


def test_C4_suggested_fixes_are_tried():
    program = atonnx.export(
        Call(lambda x, y: x + y[1:]).eval(),
        (X[:3], X),
        dynamic_shapes=(({0: Dim("n")}, {0: Dim("m")}),),
    )
    assert program.capture_strategy == "strict=False"
    assert shapes_of(program) == [("n", "3"), ("n + 1", "3")]
    assert "n + 1: VR[1, int_oo]" in str(program.model.graph.metadata_props)


def test_C4_a_fix_that_freezes_an_axis_is_a_warning():
    model = Call(lambda x, y: x.reshape(4, 3) + y).eval()
    with pytest.warns(OnnxExporterWarning, match="1 of the dynamic axes"):
        program = atonnx.export(model, (X, X[:1]), dynamic_shapes=(({0: Dim("n")}, None),))
    assert shapes_of(program) == [("4", "3"), ("1", "3")]


def test_C6_draft_export_is_the_third_strategy_where_the_environment_asks_for_it(monkeypatch):
    with pytest.raises(CaptureError) as caught:
        atonnx.export(Branches().eval(), (X,))
    assert len(caught.value.attempts) == 2
    monkeypatch.setenv("TORCH_ONNX_ENABLE_DRAFT_EXPORT", "1")
    with pytest.warns(OnnxExporterWarning, match="draft_export"):
        program = atonnx.export(Branches().eval(), (X,))
    assert program.capture_strategy == "draft_export"
    torch.testing.assert_close(program(X)[0], X + 1)


def test_C7_C8_an_error_has_the_first_strategys_as_its_cause_and_tells_the_way_out(monkeypatch):
    with pytest.raises(CaptureError) as caught:
        atonnx.export(Branches().eval(), (X,))
    text = str(caught.value)
    first, second = caught.value.attempts
    assert caught.value.__cause__ is first[1]
    assert [first[0], second[0]] == ["strict=False", "strict=True"]
    assert "This is step 1/3" in text and "## Exception summary" in text
    assert "strict=False: " in text and "strict=True: " in text
    assert "torch.export.export(model, args" in caught.value.hint
    assert "\033" not in text.partition("##")[0]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with pytest.raises(CaptureError, match="\033\\[96mThis is step 1/3\033\\[0m"):
        atonnx.export(Branches().eval(), (X,))


def test_C10_an_operator_with_a_row_is_not_decomposed():
    model = torch.nn.Sequential(torch.nn.LayerNorm(3), torch.nn.Linear(3, 3), torch.nn.GELU()).eval()
    program = atonnx.export(model, (X,))
    assert [node.op_type for node in program.model.graph] == ["LayerNormalization", "Gemm", "Gelu"]


def test_C11_types_are_promoted():
    program = atonnx.export(Call(lambda x, y: x + y).eval(), (X, torch.arange(3)))
    torch.testing.assert_close(program(X, torch.arange(3))[0], X + torch.arange(3))


def test_C12_assertions_are_left_out():
    def model(x):
        size = x.sum().to(torch.int64).item()
        torch._check(size >= 1)
        torch._check(size <= 100)
        return torch.zeros(size)

    program = atonnx.export(Call(model).eval(), (X,))
    targets = {str(n.target) for n in program.exported_program.graph.nodes if n.op == "call_function"}
    assert any("assert" in target for target in targets)
    assert not [node for node in program.model.graph if "assert" in str(node.metadata_props)]
    assert program(X)[0].shape == (66,)


class Nested(torch.nn.Module):
    def forward(self, x, parts, scale=None):
        y = x * parts["a"] + parts["b"][0]
        return y if scale is None else y * scale


def essence(program) -> tuple:
    """The graph without names that the user chose."""
    graph = program.model.graph
    nodes = [
        (
            n.op_type,
            tuple(v.name for v in n.inputs),
            tuple(v.name for v in n.outputs),
            str(dict(n.attributes)),
        )
        for n in graph
    ]
    values = [(v.name, str(v.type), tuple(map(str, v.shape))) for v in (*graph.inputs, *graph.outputs)]
    return nodes, values


def test_C1_P8_DS2_one_model_is_one_graph_however_it_is_given():
    model = Nested().eval()
    x, parts = X, {"a": X + 1, "b": [X * 2]}

    def shapes(name):
        axis = {0: name}
        return {"x": axis, "parts": {"a": axis, "b": [axis]}}

    tuples, keywords = ((x, parts, 2.0), {}), ((), {"x": x, "parts": parts, "scale": 2.0})
    found = []
    for args, kwargs in (tuples, keywords):
        for name in ("batch", "rows"):
            given = {**shapes(name), "scale": None}
            captured = torch.export.export(
                model, args, kwargs, dynamic_shapes={**shapes(Dim(name)), "scale": None}
            )
            programs = [
                atonnx.export(model, args, kwargs=kwargs, dynamic_shapes=given),
                atonnx.export(captured),
                atonnx.export(captured, dynamic_shapes=given),
            ]
            for program in programs:
                assert program.model.graph.inputs[0].shape == (name, 3)
                program.rename_axes({name: "n"})
                found.append(essence(program))
    assert all(other == found[0] for other in found)


def test_C1_a_name_of_a_dim_that_was_saved_is_lost():
    program = atonnx.export(loaded(named_program()))
    assert all(str(value.shape[0]).startswith("s") for value in program.model.graph.inputs)


def test_C2_warnings_are_not_errors_of_the_capture():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        atonnx.export(Two().eval(), (X, X), dynamic_shapes=({0: "n"}, {0: "n"}))
