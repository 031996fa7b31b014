"""How a call finds its form at the target: chains, bodies, functions, dtypes, errors."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import onnxscript
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowered import agree, build, numbers, ops_of, run
from onnxscript import opset18

from atonnx.build.finish import ir_version
from atonnx.dispatch import MIN_OPSET
from atonnx.errors import BuildError, UnsupportedOpError


@onnxscript.script(onnxscript.values.Opset("test.lowering", 1), default_opset=opset18)
def _norm(x):
    """Written as of opset 18: axes as an input, Softmax of one axis."""
    mean = opset18.ReduceMean(x, [1], keepdims=1)
    return opset18.Softmax(x - mean, axis=0)


@pytest.mark.parametrize("opset", range(MIN_OPSET, 29))
def test_the_model_has_exactly_the_opset_asked_for_and_the_lowest_ir_version(opset):
    model = build(lambda op, x: op.Relu(x), {"x": numbers((2,))}, opset)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", opset)]
    lowest = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)], True)
    assert model.ir_version == lowest == ir_version({"": opset}, functions=False, dtypes=set())


def test_functions_and_dtypes_raise_the_ir_version():
    assert ir_version({"": 11}, functions=True, dtypes=set()) >= 8
    assert ir_version({"": 20}, functions=False, dtypes={ir.DataType.INT4}) >= 10
    assert ir_version({"": 11}, functions=False, dtypes={ir.DataType.FLOAT}) == ir_version(
        {"": 11}, functions=False, dtypes=set()
    )


@pytest.mark.parametrize("opset", [11, 12, 13, 17, 18, 20])
def test_rows_chain_inside_the_bodies_of_if(opset):
    def call(op, x, flag):
        with op.body("then") as then:
            then.output(then.Softmax(then.ReduceMax(x, [1]), axis=0))
        with op.body("else") as other:
            other.output(other.Gelu(other.ReduceSum(x, [1])))
        return op.If(flag, then_branch=then.graph, else_branch=other.graph)

    x = numbers((3, 4))
    for flag in (True, False):
        inputs = {"x": x, "flag": np.array(flag)}
        agree(call, inputs, opset, newest=20, atol=1e-5)


@pytest.mark.parametrize("opset", [11, 13, 17, 18, 20])
def test_a_function_of_opset_18_is_written_at_the_models_opset(opset):
    x = numbers((3, 4))
    centered = x - x.mean(1, keepdims=True)
    spread = np.exp(centered - centered.max(0))
    expected = spread / spread.sum(0)
    model = agree(lambda op, x: op.function(_norm, x), {"x": x}, opset, expected=[expected], rtol=1e-4)
    (function,) = model.functions
    versions = {entry.domain: entry.version for entry in function.opset_import}
    assert versions[""] == opset
    onnx.checker.check_model(model)


@given(opset=st.integers(11, 25), written=st.integers(11, 25))
def test_a_call_of_any_opset_is_written_at_any_other(opset, written):
    x = numbers((2, 3, 4))

    def call(op, x):
        older = op.at(written)
        if written < 13:
            y = older.Unsqueeze(older.ReduceSum(x, axes=[1], keepdims=0), axes=[0])
        else:
            y = older.Unsqueeze(older.ReduceSum(x, [1], keepdims=0), [0])
        return older.Transpose(older.Sigmoid(older.Add(y, y)), perm=[2, 1, 0])

    total = x.sum(1)[None] * 2
    expected = (1 / (1 + np.exp(-total))).transpose(2, 1, 0)
    agree(call, {"x": x}, opset, expected=[expected], rtol=1e-4)


@pytest.mark.parametrize("opset", [11, 12])
def test_a_dtype_that_an_old_version_lacks_is_cast_to_a_wider_one(opset):
    x = numbers((4,), np.int8)
    model = agree(lambda op, x: op.Add(x, x), {"x": x}, opset, expected=[x + x])
    assert ops_of(model) == ["Cast", "Cast", "Add", "Cast"]


def test_a_row_may_write_an_old_form_with_a_dtype_that_it_lacks():
    x = numbers((2, 3), np.bool_)
    agree(lambda op, x: op.ReduceMax(x, [1]), {"x": x}, 11, expected=[x.max(1, keepdims=True)])


@pytest.mark.parametrize("opset", [11, 12])
def test_bfloat16_is_refused_where_no_cast_has_it(opset):
    with pytest.raises(UnsupportedOpError, match="BFLOAT16") as caught:
        build(lambda op, x: op.cast(x, ir.DataType.BFLOAT16), {"x": numbers((2,))}, opset)
    assert "opset 13" in str(caught.value)


@pytest.mark.parametrize("opset", [13, 15, 20, 21])
def test_fill_and_random_of_bfloat16_are_made_in_float(opset):
    def call(op, x):
        fill = ir.tensor(np.array([1.5], ir.DataType.BFLOAT16.numpy()))
        filled = op.ConstantOfShape(op.Shape(x), value=fill)
        drawn = op.RandomUniformLike(x, dtype=ir.DataType.BFLOAT16)
        assert filled.dtype == drawn.dtype == ir.DataType.BFLOAT16
        return op.cast(filled, ir.DataType.FLOAT), op.cast(drawn, ir.DataType.FLOAT)

    x = numbers((3,))
    filled, drawn = run(build(call, {"x": x}, opset), {"x": x})
    np.testing.assert_array_equal(filled, np.full(3, 1.5, np.float32))
    assert ((drawn >= 0) & (drawn <= 1)).all()


@pytest.mark.parametrize("opset", [11, 13])
def test_casts_that_say_how_they_saturate(opset):
    x = np.array([1.5, -2.5], np.float32)
    for call in (
        lambda op, x: op.Cast(x, to=ir.DataType.INT64, saturate=0),
        lambda op, x: op.CastLike(x, op.const([1]), saturate=0),
        lambda op, x: op.at(13).Cast(x, to=ir.DataType.INT64),
    ):
        agree(call, {"x": x}, opset, expected=[x.astype(np.int64)])


@pytest.mark.parametrize("opset", [19, 23])
def test_infinity_saturates_in_float_8_without_infinity(opset):
    x = np.array([np.inf, -np.inf, 1.0], np.float32)

    def call(op, x):
        return op.cast(op.Cast(x, to=ir.DataType.FLOAT8E4M3FNUZ), ir.DataType.FLOAT)

    agree(call, {"x": x}, opset, expected=[np.array([240, -240, 1], np.float32)])


@pytest.mark.parametrize("opset", [11, 12, 13])
@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"value_int": 3}, np.array(3)),
        ({"value_ints": [1, 2]}, np.array([1, 2])),
        ({"value_float": 0.5}, np.array(0.5, np.float32)),
        ({"value_floats": [0.5]}, np.array([0.5], np.float32)),
        ({"value": np.array([[1.0]], np.float32)}, np.array([[1.0]], np.float32)),
    ],
)
def test_constants_of_every_attribute(opset, attributes, expected):
    agree(lambda op, x: op.Constant(**attributes), {"x": numbers((1,))}, opset, expected=[expected])


@pytest.mark.parametrize("opset", [11, 25])
def test_bits_are_reinterpreted_between_integers_of_one_width(opset):
    x = np.array([-1, 5], np.int32)
    agree(lambda op, x: op.BitCast(x, to=ir.DataType.UINT32), {"x": x}, opset, expected=[x.view(np.uint32)])
    with pytest.raises(UnsupportedOpError, match="BitCast of INT32 to FLOAT"):
        build(lambda op, x: op.BitCast(x, to=ir.DataType.FLOAT), {"x": x}, opset)


def test_an_operator_without_a_row_names_the_first_opset_that_has_it():
    with pytest.raises(UnsupportedOpError, match="StringConcat") as caught:
        build(lambda op, x: op.StringConcat(x, x), {"x": np.array(["a"], object)}, 11)
    assert "export at opset 20 or newer" in str(caught.value)


def test_a_dtype_that_no_version_takes_is_a_build_error():
    with pytest.raises(BuildError, match="does not take BOOL"):
        build(lambda op, x: op.Add(x, x), {"x": numbers((1,), np.bool_)}, 20)


_FLOATS = numbers((2, 3))
_INTS = np.array([[1, 2], [3, 4]], np.uint8)


@pytest.mark.parametrize("opset", [11, 13, 16, 20])
@pytest.mark.parametrize(
    ("call", "x", "expected"),
    [
        (lambda op, x: op.at(13).Relu(x), _FLOATS, np.maximum(_FLOATS, 0)),
        (lambda op, x: op.at(12).Celu(x), _FLOATS, np.where(_FLOATS > 0, _FLOATS, np.expm1(_FLOATS))),
        (lambda op, x: op.at(15).CastLike(x, op.const([1])), _FLOATS, _FLOATS.astype(np.int64)),
        (lambda op, x: op.at(11).Constant(value=ir.tensor(_INTS)), _FLOATS, _INTS),
        (lambda op, x: op.at(11).ConstantOfShape(op.Shape(x)), _FLOATS, np.zeros((2, 3), np.float32)),
        (lambda op, x: op.at(11).Max(x, 0.5), _FLOATS, np.maximum(_FLOATS, np.float32(0.5))),
        (lambda op, x: op.at(11).Min(x, 0.5), _FLOATS, np.minimum(_FLOATS, np.float32(0.5))),
        (lambda op, x: op.at(11).Clip(x, 0.0, 0.5), _FLOATS, np.clip(_FLOATS, 0, 0.5)),
        (lambda op, x: op.at(11).Pow(x, 2.0), _FLOATS, _FLOATS**2),
        (lambda op, x: op.at(12).Pow(x, op.const(2)), _FLOATS, _FLOATS**2),
        (lambda op, x: op.at(11).Mod(x, 0.5, fmod=1), _FLOATS, np.fmod(_FLOATS, np.float32(0.5))),
        (lambda op, x: op.at(11).BitShift(x, 1, direction="LEFT"), _INTS, _INTS << 1),
        (lambda op, x: op.at(11).Range(0, op.Size(x), 2), _FLOATS, np.arange(0, 6, 2)),
    ],
)
def test_calls_of_old_versions_that_newer_ones_contain(opset, call, x, expected):
    agree(call, {"x": x}, opset, expected=[expected])


@pytest.mark.parametrize("opset", [26, 27, 28])
def test_calls_of_old_versions_at_the_newest_opsets(opset):
    """By onnx's reference implementation, ONNX Runtime lacks kernels of these versions."""
    x = numbers((2, 3))
    for call in (
        lambda op, x: op.at(11).Range(0, op.Size(x), 2),
        lambda op, x: op.at(11).Mod(op.cast(op.Size(x), ir.DataType.FLOAT), 4.0, fmod=1),
        lambda op, x: op.at(13).Cast(x, to=ir.DataType.INT64),
        lambda op, x: op.at(11).BitShift(op.const(_INTS), 1, direction="LEFT"),
        lambda op, x: op.at(12).Einsum(x, x, equation="ij,kj->ik"),
        lambda op, x: op.at(12).Celu(x),
        lambda op, x: op.at(15).CastLike(x, op.const([1])),
    ):
        expected = run(build(call, {"x": x}, 20), {"x": x}, reference=True)
        agree(call, {"x": x}, opset, expected=expected, reference=True)
