"""The targets of export(): what each changes, where, and what it says."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
import torch

import atonnx
from atonnx.build.metadata import KEYS
from atonnx.errors import OnnxExporterError, OnnxExporterWarning


class Model(torch.nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


def exported(fn, *args, **options):
    return atonnx.export(Model(fn).eval(), args, **options)


def ops(program):
    return [node.op_type for node in ir.traversal.RecursiveGraphIterator(program.model.graph)]


MASK = torch.tensor([True, False, True])


def test_an_unknown_target_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match="target='tpu'.*onnxruntime, onnxruntime-cpu, portable") as caught:
        exported(torch.neg, torch.ones(2), target="tpu")
    assert isinstance(caught.value, OnnxExporterError)


@pytest.mark.parametrize("optimize", [True, False])
def test_the_default_target_legalizes_with_and_without_optimization(optimize):
    program = exported(torch.where, MASK, MASK, ~MASK, optimize=optimize)
    assert ops(program).count("Cast") == 3
    assert torch.equal(program(MASK, MASK, ~MASK)[0], torch.where(MASK, MASK, ~MASK))
    names = [value.name for value in program.model.graph.outputs]
    assert names == ["where"]


def test_portable_changes_nothing():
    assert ops(exported(torch.where, MASK, MASK, ~MASK, target="portable")) == ["Where"]
    x = torch.ones(2, dtype=torch.float64)
    assert ops(exported(torch.erf, x, target="portable")) == ["Erf"]


def test_new_nodes_have_the_metadata_of_the_node_that_they_stand_for():
    program = exported(torch.erf, torch.ones(3, dtype=torch.float64))
    for node in program.model.graph:
        assert "aten.erf" in node.metadata_props["namespace"]
        assert all(node.metadata_props.get(key) for key in KEYS)
    names = [value.name for node in program.model.graph for value in node.outputs]
    assert len(names) == len(set(names))


def test_bodies_are_legalized():
    def fn(x):
        return torch.cond(x.sum() > 0, lambda y: torch.erf(y), lambda y: torch.tan(y), (x,))

    x = torch.tensor([0.3, -0.1], dtype=torch.float64)
    program = exported(fn, x)
    assert not {"Erf", "Tan"} & set(ops(program))
    for value in (x, -x):
        torch.testing.assert_close(program(value)[0], fn(value), rtol=1e-14, atol=0)


def test_functions_are_legalized(legalized):
    import onnxscript
    from onnxscript import opset20

    @onnxscript.script(onnxscript.values.Opset("test.domain", 1), default_opset=opset20)
    def twice(x):
        return opset20.Erf(opset20.Erf(x))

    made = legalized(lambda op, x: op.function(twice, x), {"x": np.linspace(-2, 2, 9)}, 20, "onnxruntime")
    assert made.before.count("Erf") == 2 and "Erf" not in made.ops()
    x = torch.linspace(-2, 2, 9, dtype=torch.float64)
    np.testing.assert_allclose(made.run()[0], torch.erf(torch.erf(x)).numpy(), rtol=1e-14)


@pytest.mark.parametrize("target", ["onnxruntime", "portable"])
def test_narrow_floats_are_left_alone_by_default(legalized, target):
    x = np.array([1.0, -2.0], ml_dtypes.bfloat16)
    made = legalized(lambda op, x: op.Abs(op.Abs(x)), {"x": x}, 20, target)
    assert made.ops() == ["Abs", "Abs"] and not made.warnings
    index = np.zeros(2, np.int64)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        made = legalized(
            lambda op, x: op.ScatterElements(x, op.const(index), x, reduction="add"),
            {"x": x.astype(dtype)},
            20,
            target,
        )
        assert made.ops() == ["ScatterElements"] and not made.warnings
    x8 = x.astype(ml_dtypes.float8_e5m2)
    made = legalized(lambda op, x: op.Squeeze(op.Unsqueeze(x, [0]), [0]), {"x": x8}, 25, target)
    assert made.ops() == ["Unsqueeze", "Squeeze"] and not made.warnings


def test_float8_is_widened_on_a_cpu(legalized):
    x = np.array([1.0, -2.0], ml_dtypes.float8_e5m2)
    made = legalized(lambda op, x: op.Unsqueeze(x, [0]), {"x": x}, 25, "onnxruntime-cpu")
    assert made.ops() == ["Cast", "Unsqueeze", "Cast"] and not made.warnings


def test_portable_leaves_every_gap(legalized):
    from atonnx_ort_target.gaps import lacks

    x, mask = np.ones(3), np.array([True, False, True])
    made = legalized(
        lambda op, x, m: (op.Erf(x), op.Where(m, m, m), op.NonZero(x)), {"x": x, "m": mask}, 20, "portable"
    )
    assert made.ops() == made.before == ["Erf", "Where", "NonZero"] and not made.warnings
    assert all(lacks(op, 20, {"T": dtype}) for op, dtype in (("Erf", "double"), ("NonZero", "double")))


@pytest.mark.parametrize("opset", [16, 18, 20, 25])
@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_an_attribute_may_decide_whether_there_is_a_kernel(legalized, opset, reduction, dtype):
    if opset < 18 and reduction in ("max", "min"):
        return
    x, index = np.array([3.0, 1.5, -2.0]).astype(dtype), np.array([2, 0, 0])
    updates = np.array([2.0, 0.25, -1.5]).astype(dtype)
    expected = x.astype(np.float32)
    ufuncs = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    ufuncs[reduction].at(expected, index, updates.astype(np.float32))
    for name in ("ScatterElements", "ScatterND"):
        places = index if name == "ScatterElements" else index[:, None]

        def write(op, x, updates, name=name, places=places):
            x, updates = (op.Cast(each, to=ir.DataType.from_numpy(np.dtype(dtype))) for each in (x, updates))
            return op.Cast(getattr(op, name)(x, op.const(places), updates, reduction=reduction), to=1)

        given = {"x": x.astype(np.float32), "updates": updates.astype(np.float32)}
        made = legalized(write, given, opset, "onnxruntime-cpu")
        assert not made.warnings
        np.testing.assert_array_equal(made.run()[0], expected.astype(dtype).astype(np.float32))
        plain = legalized(
            lambda op, x, u, name=name, places=places: getattr(op, name)(x, op.const(places), u),
            {"x": x, "updates": updates},
            opset,
            "onnxruntime-cpu",
        )
        assert plain.ops() == [name]


def test_a_maximum_of_bools_is_scattered_by_default(legalized):
    mask, index = np.array([False, True, False]), np.array([0, 0, 1])
    made = legalized(
        lambda op, m: op.ScatterElements(m, op.const(index), op.Not(m), reduction="max"),
        {"m": mask},
        20,
        "onnxruntime",
    )
    np.testing.assert_array_equal(made.run()[0], [True, True, False])


def test_half_precision_is_rounded_after_each_operator_on_a_cpu():
    def fn(x):
        return (x * 3 + 1) * x

    x = torch.randn(50, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    program = exported(fn, x, target="onnxruntime-cpu")
    assert {"Cast"} < set(ops(program))
    assert torch.equal(program(x)[0], fn(x))


def test_what_cannot_be_had_is_kept_and_named(legalized):
    x = np.ones((1, 1, 2, 2))
    made = legalized(
        lambda op, x: op.MaxUnpool(x, op.const(np.zeros((1, 1, 2, 2), np.int64)), kernel_shape=[2, 2]),
        {"x": x},
        20,
        "onnxruntime",
    )
    assert "MaxUnpool" in made.ops()
    assert len(made.warnings) == 1 and "MaxUnpool of double" in made.warnings[0]


def test_the_warning_names_operator_dtype_line_and_a_way_out():
    def row(op, x):
        return op.MaxUnpool(x, op.const(np.zeros((1, 1, 2, 2), np.int64)), kernel_shape=[1, 1])

    x = torch.ones(1, 1, 2, 2, dtype=torch.float64)
    table = {torch.ops.aten.neg.default: row}
    with pytest.warns(OnnxExporterWarning, match="no CPU kernel") as caught:
        program = exported(torch.neg, x, custom_translation_table=table)
    assert ops(program) == ["MaxUnpool"]
    (text,) = [str(w.message) for w in caught if issubclass(w.category, OnnxExporterWarning)]
    line = Model.forward.__code__.co_firstlineno + 1
    where = f"  MaxUnpool of double, for aten.neg.default, at {__file__}:{line}, in forward\n"
    assert where in text
    assert "an older opset may have one" in text and 'target="portable"' in text
    with warnings.catch_warnings():
        warnings.simplefilter("error", OnnxExporterWarning)
        exported(torch.neg, x, custom_translation_table=table, target="portable")


def test_a_model_without_gaps_is_neither_changed_nor_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error", OnnxExporterWarning)
        program = exported(lambda x: torch.relu(x) + 1, torch.ones(2), optimize=False)
    assert ops(program) == ["Relu", "Add"]


def test_a_version_without_any_kernel_is_written_as_older_opsets_are(legalized):
    x = np.array([-1.0, 0.5], np.float32)
    made = legalized(lambda op, x: op.Swish(x, alpha=2.0), {"x": x}, 25, "onnxruntime")
    assert made.ops() == ["Mul", "Sigmoid", "Mul"]
    np.testing.assert_allclose(made.run()[0], x / (1 + np.exp(-2 * x)), rtol=1e-6)
