"""Capture: strategies, axis names, patches, repeated tensors, the export flag."""

from __future__ import annotations

import contextlib
import threading

import pytest
import sympy
import torch
from torch.export import Dim

from atonnx.capture import Axes, capture, is_in_onnx_export
from atonnx.capture.dynamic import leaf_shapes, without_names
from atonnx.errors import CaptureError, OnnxExporterError


class Add(torch.nn.Module):
    def forward(self, x, y=None):
        return x + 1 if y is None else x + y


class Tree(torch.nn.Module):
    def forward(self, x, extra, rest):
        return x + extra["a"] + rest[0]


def names_of(captured) -> set[str]:
    return set(captured.axis_names.values())


def test_a_program_is_taken_as_it_is():
    program = torch.export.export(Add().eval(), (torch.randn(2),))
    captured = capture(program, (), {})
    assert captured.program is program
    assert captured.working is program
    assert captured.strategy is None


def test_the_first_strategy_is_not_strict():
    assert capture(Add().eval(), (torch.randn(2),), {}).strategy == "strict=False"


def test_a_failure_has_the_first_strategys_error_as_cause_and_tells_all():
    class Breaks(torch.nn.Module):
        def forward(self, x):
            raise KeyError("the model is broken")

    with pytest.raises(CaptureError, match="the model is broken") as caught:
        capture(Breaks().eval(), (torch.randn(2),), {})
    assert isinstance(caught.value.__cause__, KeyError)
    assert [name for name, _ in caught.value.attempts] == ["strict=False", "strict=True"]
    assert "strict=True" in str(caught.value)
    assert "step 1/3" in str(caught.value)
    assert isinstance(caught.value, OnnxExporterError)


@pytest.mark.parametrize(
    "shapes",
    [
        ({0: "batch"},),
        [{0: "batch"}],
        {"x": {0: "batch"}},
        (("batch", None),),
        ({0: Dim("batch")},),
    ],
)
def test_axis_names_are_the_users(shapes):
    captured = capture(Add().eval(), (torch.randn(2, 3),), {}, Axes(shapes))
    assert names_of(captured) == {"batch"}
    assert all(isinstance(symbol, sympy.Symbol) for symbol in captured.axis_names)


def test_axis_names_reach_nested_inputs():
    args = (torch.randn(2, 3), {"a": torch.randn(2, 3)}, [torch.randn(2, 3)])
    shapes = ({0: "n"}, {"a": {0: "n"}}, [{0: "n"}])
    assert names_of(capture(Tree().eval(), args, {}, Axes(shapes))) == {"n"}


def test_equal_names_for_one_size_are_no_warning(recwarn):
    args = (torch.randn(2, 3), torch.randn(2, 3))
    capture(Add().eval(), args, {}, Axes(({0: "batch"}, {0: "batch"})))
    assert not [w for w in recwarn if "axis name" in str(w.message)]


def test_another_name_for_the_same_size_is_a_warning():
    args = (torch.randn(2, 3), torch.randn(2, 3))
    with pytest.warns(UserWarning, match="rows will not be used.*batch"):
        capture(Add().eval(), args, {}, Axes(({0: "batch"}, {0: "rows"})))


def test_a_size_of_one_stays_dynamic():
    captured = capture(Add().eval(), (torch.randn(1, 3),), {}, Axes(({0: "batch"},)))
    (placeholder,) = [n for n in captured.program.graph.nodes if n.op == "placeholder"]
    assert isinstance(placeholder.meta["val"].shape[0], torch.SymInt)


def test_names_are_taken_out_for_torch_export():
    assert without_names({"x": {0: "a", 1: None}}) == {"x": {0: Dim.DYNAMIC, 1: None}}


def test_leaves_follow_the_order_of_flattening():
    args = (1.0, {"b": torch.zeros(1), "a": None})
    pairs = leaf_shapes(
        Tree(), args, {"rest": [torch.ones(2)]}, {"extra": {"b": {0: "n"}}, "rest": [{0: "m"}]}
    )
    assert [shape for _, shape in pairs] == [None, {0: "n"}, None, {0: "m"}]


def test_one_tensor_given_for_two_inputs_stays_two_inputs():
    x = torch.randn(2)

    class Minus(torch.nn.Module):
        def forward(self, a, b):
            return a - b

    program = capture(Minus().eval(), (x, x), {}).program
    assert program.module()(torch.ones(2), torch.zeros(2)).tolist() == [1, 1]


def test_patches_are_active_during_capture_only_and_named():
    seen = []

    @contextlib.contextmanager
    def patch():
        seen.append("in")
        try:
            yield
        finally:
            seen.append("out")

    class Watches(torch.nn.Module):
        def forward(self, x):
            seen.append("forward")
            return x + 1

    captured = capture(Watches().eval(), (torch.randn(2),), {}, patches=[("pack", patch())])
    assert seen[0] == "in"
    assert seen[-1] == "out"
    assert captured.patches == ("pack:patch",)


def test_the_flag_is_set_in_this_thread_while_capturing():
    seen = {}

    class Looks(torch.nn.Module):
        def forward(self, x):
            seen["here"] = is_in_onnx_export()
            seen["torch"] = torch.onnx.is_in_onnx_export()
            other = threading.Thread(target=lambda: seen.setdefault("thread", is_in_onnx_export()))
            other.start()
            other.join()
            return x + 1

    capture(Looks().eval(), (torch.randn(2),), {})
    assert seen == {"here": True, "torch": True, "thread": False}
    assert not is_in_onnx_export()
    assert not torch.onnx.is_in_onnx_export()


def test_the_flag_is_reset_after_an_error():
    with pytest.raises(CaptureError):
        capture(Add().eval(), (), {})
    assert not is_in_onnx_export()


def test_a_model_in_training_mode_is_a_warning():
    with pytest.warns(UserWarning, match="training mode"):
        capture(Add().train(), (torch.randn(2),), {})


class Variadic(torch.nn.Module):
    def forward(self, *tensors, **named):
        return sum(tensors) + named["z"]


@pytest.mark.parametrize(
    "shapes",
    [
        {"tensors": ({0: "n"}, {0: "n"}), "named": {"z": {0: "n"}}},
        (({0: "n"}, {0: "n"}), {"z": {0: "n"}}),
    ],
)
def test_variadic_arguments_have_one_shape_each(shapes):
    args = (torch.randn(2), torch.randn(2))
    pairs = leaf_shapes(Variadic(), args, {"z": torch.randn(2)}, shapes)
    assert [shape for _, shape in pairs] == [{0: "n"}] * 3
