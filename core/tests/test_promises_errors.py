"""The public names, ``is_in_onnx_export`` and the errors, row by row."""

from __future__ import annotations

import contextvars
import inspect
import threading
import warnings

import pytest
import torch
from torch import nn

import atonnx
from atonnx import errors


def test_S1_the_public_names():
    names = {
        "errors", "export", "is_in_onnx_export", "OnnxExporterError", "ONNXProgram", "ExportableModule",
        "InputObserver",
    }  # fmt: skip
    assert names <= set(atonnx.__all__)
    assert names <= set(dir(atonnx))
    assert all(getattr(atonnx, name) is not None for name in atonnx.__all__)
    assert {"OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"} <= set(errors.__all__)
    assert all(
        issubclass(getattr(errors, name), (Exception, errors.MissingOp))
        for name in errors.__all__
        if name != "both"
    )


def test_S2_the_classes_are_those_of_the_package():
    for name in ("ONNXProgram", "ExportableModule", "InputObserver", "OnnxExporterError"):
        assert getattr(atonnx, name).__module__ == "atonnx"
        assert getattr(atonnx, name).__qualname__ == name


class Asking(nn.Module):
    """Another branch while it is exported."""

    def __init__(self, seen):
        super().__init__()
        # torch.export puts attributes back as they were.
        self.tell = lambda: seen.append(flags())

    def forward(self, x):
        self.tell()
        return x + 1 if atonnx.is_in_onnx_export() else x - 1


def flags():
    return atonnx.is_in_onnx_export(), torch.onnx.is_in_onnx_export()


def test_E1_E2_true_while_exporting_ours_and_torchs():
    seen = []
    model = Asking(seen).eval()
    program = atonnx.export(model, (torch.zeros(2),))
    assert set(seen) == {(True, True)}
    assert flags() == (False, False)
    assert torch.equal(program(torch.zeros(2))[0], torch.ones(2))
    model(torch.zeros(2))
    assert seen[-1] == (False, False)


def test_E1_true_while_translating_and_saving(tmp_path):
    library = torch.library.Library("promises_errors", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
    library.impl("twice", lambda x: torch.empty_like(x), "Meta")
    seen = []

    def twice(op, x):
        seen.append(flags())
        return op.Mul(x, 2.0)

    class Model(nn.Module):
        def forward(self, x):
            return torch.ops.promises_errors.twice(x)

    atonnx.export(
        Model().eval(),
        (torch.ones(2),),
        tmp_path / "model.onnx",
        custom_translation_table={torch.ops.promises_errors.twice.default: twice},
        verify=True,
        verbose=False,
        progress=lambda *stage: seen.append(flags()),
    )
    assert set(seen) == {(True, True)}
    assert flags() == (False, False)


class Failing(nn.Module):
    def forward(self, x):
        raise ZeroDivisionError


def test_E1_false_after_an_error():
    with pytest.raises(errors.CaptureError):
        atonnx.export(Failing().eval(), (torch.ones(2),))
    assert flags() == (False, False)


def test_E1_false_in_torch_export():
    seen = []
    torch.export.export(Asking(seen).eval(), (torch.ones(2),))
    assert {ours for ours, _ in seen} == {False}


def test_E1_other_threads_are_not_exporting():
    inside, checked = threading.Event(), threading.Event()
    seen = []

    class Waiting(nn.Module):
        def forward(self, x):
            inside.set()
            checked.wait(60)
            return x + 1

    thread = threading.Thread(target=lambda: atonnx.export(Waiting().eval(), (torch.ones(2),)))
    thread.start()
    assert inside.wait(60)
    seen.append(atonnx.is_in_onnx_export())
    checked.set()
    thread.join()
    assert seen == [False]
    assert flags() == (False, False)


def test_E1_exports_that_overlap_put_torchs_flag_back():
    from atonnx.capture import exporting

    first, second = [(contextvars.copy_context(), exporting()) for _ in range(2)]
    for context, export in (first, second):
        context.run(export.__enter__)
    first[0].run(first[1].__exit__, None, None, None)
    assert torch.onnx.is_in_onnx_export()
    assert second[0].run(atonnx.is_in_onnx_export)
    second[0].run(second[1].__exit__, None, None, None)
    assert flags() == (False, False)


def test_E3_the_base_of_all_errors():
    assert issubclass(errors.OnnxExporterError, RuntimeError)
    assert atonnx.OnnxExporterError is errors.OnnxExporterError


def test_E4_every_error_is_of_the_family_but_torchs_own():
    classes = {name: getattr(errors, name) for name in errors.__all__ if name.endswith("Error")}
    for name in ("UnsupportedOperatorError", "SymbolicValueError"):
        assert classes.pop(name) is getattr(torch.onnx.errors, name)
    assert all(issubclass(cls, errors.OnnxExporterError) for cls in classes.values())
    assert {"CaptureError", "TranslationError", "BuildError", "UnsupportedOpError"} <= classes.keys()


@pytest.mark.parametrize(
    ("options", "builtin"),
    [
        ({"input_names": ["a", "a"]}, ValueError),
        ({"output_names": ["a", "a"]}, ValueError),
        ({"opset_version": 5}, ValueError),
        ({"dynamic_axes": {"x": {"0": "batch"}}}, ValueError),
        ({"dynamic_axes": {"nothing": {0: "batch"}}, "output_names": ["y"]}, ValueError),
        ({"custom_translation_table": {"aten::add": 3}}, TypeError),
        ({"args": 3}, TypeError),
        ({"dynamo": False}, ValueError),
        ({"target": "abacus"}, ValueError),
        ({"state": "keep"}, ValueError),
        ({"verify": "loudly"}, ValueError),
        ({"metadata": "some"}, ValueError),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_E5_errors_are_of_the_family_and_of_the_built_in_kind(options, builtin):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(errors.OnnxExporterError) as caught:
            atonnx.export(nn.ReLU().eval(), **{"args": (torch.ones(2),), **options})
    assert isinstance(caught.value, builtin)
    assert isinstance(caught.value, RuntimeError)


def test_E6_a_model_that_cannot_be_captured():
    with pytest.raises(errors.CaptureError, match="This is step 1/3") as caught:
        atonnx.export(Failing().eval(), (torch.ones(2),))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert [name for name, _ in caught.value.attempts] == ["strict=False", "strict=True"]
    assert caught.value.hint in str(caught.value)


@pytest.fixture(scope="module")
def unknown_ops():
    library = torch.library.Library("promises_missing", "DEF")
    for name in ("foo", "bar"):
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, lambda x: x.clone(), "CompositeExplicitAutograd")
        library.impl(name, lambda x: torch.empty_like(x), "Meta")
    yield torch.ops.promises_missing
    library._destroy()


class Unknown(nn.Module):
    def forward(self, x):
        return torch.ops.promises_missing.bar(torch.ops.promises_missing.foo(x + 1))


def test_E7_E8_E9_E11_all_missing_operators_are_named_at_once(unknown_ops):
    with pytest.raises(errors.UnsupportedOpError) as caught:
        atonnx.export(Unknown().eval(), (torch.ones(2),))
    error, text = caught.value, str(caught.value)
    assert [missing.op for missing in error.missing] == ["promises_missing::bar", "promises_missing::foo"]
    assert "promises_missing::foo" in text and "promises_missing::bar" in text
    assert "test_promises_errors.py" in text
    assert "decomposition" in error.missing[0].reason
    assert "custom_translation_table" in error.hint


def test_E10_an_exception_inside_a_translation_function(unknown_ops):
    def broken(op, x):
        raise ZeroDivisionError("by nought")

    def fine(op, x):
        return op.Identity(x)

    table = {unknown_ops.foo.default: broken, unknown_ops.bar.default: fine}
    with pytest.raises(errors.TranslationError, match="by nought") as caught:
        atonnx.export(Unknown().eval(), (torch.ones(2),), custom_translation_table=table)
    error = caught.value
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert error.op == "promises_missing::foo"
    assert (error.node, "test_promises_errors.py" in error.source) == ("foo", True)
    assert "broken" in str(error)


def test_E12_warnings_of_the_exporter():
    assert issubclass(errors.OnnxExporterWarning, UserWarning)
    program = atonnx.export(nn.Linear(2, 2).eval(), (torch.ones(1, 2),))
    with pytest.warns(errors.OnnxExporterWarning, match="'nothing' not found"):
        program.apply_weights({"nothing": torch.ones(1)})


def test_E5_an_error_of_two_kinds_has_the_name_of_ours():
    made = errors.both(errors.BuildError, KeyError)
    assert made.__name__ == "BuildError"
    assert made is errors.both(errors.BuildError, KeyError)
    assert inspect.getmro(made)[1:3] == (errors.BuildError, errors.OnnxExporterError)
