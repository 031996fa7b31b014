"""The builder: binding, constants, sizes, shapes of constant form, scopes, lowering."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import onnxscript
import pytest
import sympy
from onnxscript import FLOAT, opset18

from atonnx.build import Builder, SymSize
from atonnx.build.finish import ir_version
from atonnx.build.metadata import Origin
from atonnx.build.scope import NEWEST_OPSET, Session
from atonnx.build.sizes import SizeFacts
from atonnx.dispatch import OpsetPack, OpsetTable
from atonnx.errors import BuildError, UnsupportedOpError

S0, S1 = (
    sympy.Symbol("s0", integer=True, nonnegative=True),
    sympy.Symbol("s1", integer=True, nonnegative=True),
)


def session(opset: int = NEWEST_OPSET, *packs: OpsetPack) -> Session:
    return Session(opset, OpsetTable([row for pack in packs for row in pack.rows]), facts=SizeFacts({}))


def builder(made: Session) -> Builder:
    return made.builder(Origin(op="test::op", metadata={"namespace": "here"}))


def run(made: Session, outputs: list, feeds: dict) -> list[np.ndarray]:
    graph = made.root.graph
    graph.outputs.extend(outputs)
    for value in made.root.constants.values():
        if value.uses() and not value.is_initializer():
            graph.register_initializer(value)
    graph.opset_imports.update(made.imports)
    functions = list(made.functions.values())
    version = ir_version(made.imports, functions=bool(functions), dtypes=set())
    model = ir.to_proto(ir.Model(graph, ir_version=version, functions=functions))
    onnx.checker.check_model(model, full_check=True)
    ran = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return ran.run(None, feeds)


def ops(made: Session) -> list[str]:
    return [node.op_type for node in made.root.graph]


def test_numbers_take_the_dtype_of_the_tensor_they_are_bound_to():
    made = session()
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.FLOAT16, (2,))
    y = op.Add(x, 1.5)
    assert y.dtype == ir.DataType.FLOAT16
    assert y.producer().inputs[1].dtype == ir.DataType.FLOAT16


def test_a_lossy_constant_is_an_error_at_the_call():
    made = session()
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.INT64, (2,))
    with pytest.raises(BuildError, match="not exact in INT64"):
        op.Add(x, 1.5)
    with pytest.raises(BuildError, match="out of the range of INT8"):
        op.const(200, ir.DataType.INT8)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda op, x: op.Gello(x), "did you mean Gelu"),
        (lambda op, x: op.Gelu(x, approximat="none"), "no attribute 'approximat'"),
        (lambda op, x: op.Add(x), "takes 2 inputs, got 1"),
        (lambda op, x: op.Transpose(x, perm=[1.5]), "perm="),
        (lambda op, x: op.Add(x, op.const(1, ir.DataType.INT64)), "expected FLOAT"),
        (lambda op, x: op.And(x, x), "does not take FLOAT|expected BOOL"),
        (lambda op, x: op.Cast(x), "needs the attribute 'to'"),
        (lambda op, x: op.TopK(x, [1], outputs=3), "has 2 outputs, 3 were asked for"),
    ],
)
def test_a_call_that_does_not_fit_the_schema_is_an_error(call, text):
    made = session()
    x = made.root.add_input("x", ir.DataType.FLOAT, (2, 3))
    with pytest.raises(BuildError, match=text):
        call(builder(made), x)


def test_constants_are_shared_by_dtype_shape_and_bytes():
    op = builder(session())
    assert op.const(0.0, ir.DataType.FLOAT) is op.const(0.0, ir.DataType.FLOAT)
    assert op.const(0.0, ir.DataType.FLOAT) is not op.const(-0.0, ir.DataType.FLOAT)
    assert op.const(1, ir.DataType.INT64) is not op.const(True, ir.DataType.BOOL)
    assert op.const([1, 2]) is op.const([1, 2], ir.DataType.INT64)
    assert op.const(math.nan, ir.DataType.FLOAT) is op.const(math.nan, ir.DataType.FLOAT)
    assert op.const([1]) is not op.const(1, ir.DataType.INT64)


@pytest.mark.parametrize("dtype", [ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.FLOAT8E4M3FN])
def test_constants_have_every_float_dtype(dtype):
    assert op_dtype(builder(session()).const(0.5, dtype)) == dtype


def op_dtype(value) -> ir.DataType:
    return value.const_value.dtype


def test_every_node_bears_the_metadata_of_its_origin():
    made = session()
    x = made.root.add_input("x", ir.DataType.FLOAT, (2,))
    builder(made).Relu(x)
    assert all(node.metadata_props["namespace"] == "here" for node in made.root.graph)


def test_a_rank_is_known_at_once_or_an_error():
    made = session()
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.FLOAT, (2, SymSize(S0), 4))
    assert op.MatMul(x, op.const(np.zeros((4, 5), np.float32))).dims == (2, SymSize(S0), 5)
    assert op.ReduceSum(x, [1], keepdims=0).dims == (2, 4)
    assert op.Reshape(x, [0, -1, 2, 2]).rank == 4
    unknown = made.root.add_input("y", ir.DataType.FLOAT, None)
    with pytest.raises(BuildError, match="rank"):
        _ = op.Relu(unknown).rank


def test_a_long_chain_is_inferred_without_recursion():
    made = session()
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.FLOAT, (2, 3))
    for _ in range(3000):
        x = op.Transpose(x, perm=[1, 0])
    assert x.dims == (2, 3)


def test_sizes_are_read_off_the_inputs_once():
    made = session()
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.FLOAT, (SymSize(S0), 3))
    made.root.root_tensor(x)
    assert op.shape([SymSize(S0), 2]) is op.shape([SymSize(S0), 2])
    assert op.size(SymSize(S0)) is op.size(SymSize(S0))
    assert ops(made).count("Shape") == 1
    (shape, size) = run(
        made, [op.shape([SymSize(S0), 2]), op.size(SymSize(S0) * 2 + 1)], {"x": np.zeros((5, 3), np.float32)}
    )
    assert shape.tolist() == [5, 2]
    assert size.tolist() == 11


def test_the_whole_shape_of_a_tensor_is_one_node():
    made = session()
    op = builder(made)
    dims = (SymSize(S0), SymSize(S1), 4)
    x = made.root.add_input("x", ir.DataType.FLOAT, dims)
    made.root.root_tensor(x)
    op.shape(dims[:2])
    assert ops(made) == ["Shape"]


def test_an_expression_of_an_input_dim_is_solved_for_its_symbol():
    made = session()
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.FLOAT, (SymSize(2 * S0),))
    made.root.root_tensor(x)
    (size,) = run(made, [op.size(SymSize(S0))], {"x": np.zeros((14,), np.float32)})
    assert size == 7


def test_a_size_without_a_root_is_an_error():
    with pytest.raises(BuildError, match="s1"):
        builder(session()).size(SymSize(S1))


@pytest.mark.parametrize(
    ("source", "target", "form"),
    [
        ((2, 12), (2, 3, 4), [2, 3, 4]),
        ((SymSize(S0), 12), (SymSize(S0), 3, 4), [0, 3, 4]),
        ((SymSize(S0), 12), (SymSize(S0 * 12),), [-1]),
        ((SymSize(S0 * 4), 3), (SymSize(S0), 12), [-1, 12]),
    ],
)
def test_a_reshape_target_is_a_constant_where_that_is_right(source, target, form):
    made = session()
    x = made.root.add_input("x", ir.DataType.FLOAT, source)
    made.root.root_tensor(x)
    y = builder(made).reshape(x, target)
    assert y.producer().inputs[1].const_value.numpy().tolist() == form
    assert y.dims == target


def test_minus_one_is_not_used_where_another_size_may_be_zero():
    made = session()
    x = made.root.add_input("x", ir.DataType.FLOAT, (SymSize(S0), SymSize(S1 * 2)))
    made.root.root_tensor(x)
    y = builder(made).reshape(x, (SymSize(S0), SymSize(S1), 2))
    (got,) = run(made, [y], {"x": np.zeros((0, 6), np.float32)})
    assert got.shape == (0, 3, 2)


def test_a_size_that_is_zero_at_run_time_does_not_copy_the_inputs():
    made = session()
    x = made.root.add_input("x", ir.DataType.FLOAT, (SymSize(S0), 1, SymSize(S1)))
    made.root.root_tensor(x)
    y = builder(made).reshape(x, (SymSize(S1), SymSize(S0)))
    (got,) = run(made, [y], {"x": np.zeros((2, 1, 0), np.float32)})
    assert got.shape == (0, 2)


def test_a_static_zero_size_is_kept():
    made = session()
    x = made.root.add_input("x", ir.DataType.FLOAT, (SymSize(S0), 0))
    made.root.root_tensor(x)
    y = builder(made).reshape(x, (0, SymSize(S0)))
    (got,) = run(made, [y], {"x": np.zeros((3, 0), np.float32)})
    assert got.shape == (0, 3)


def test_expand_leaves_a_known_size_to_broadcasting():
    made = session()
    x = made.root.add_input("x", ir.DataType.FLOAT, (SymSize(S0), 1))
    made.root.root_tensor(x)
    y = builder(made).expand(x, (2, SymSize(S0), 3))
    assert y.producer().inputs[1].const_value.numpy().tolist() == [2, 1, 3]


def test_a_body_reads_outer_values_and_puts_constants_outside():
    made = session()
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.FLOAT, (SymSize(S0),))
    made.root.root_tensor(x)
    flag = made.root.add_input("flag", ir.DataType.BOOL, ())
    with op.body("then") as then:
        then.output(then.Add(then.Mul(x, 2.0), then.cast(then.size(SymSize(S0)), ir.DataType.FLOAT)))
    with op.body("else") as other:
        other.output(x)
    y = op.If(flag, then_branch=then.graph, else_branch=other.graph, outputs=1)[0]
    assert y.dtype == ir.DataType.FLOAT
    assert "Shape" in ops(made), "a size of the graph's input belongs to the graph, before the If"
    data = np.arange(3, dtype=np.float32)
    got = run(made, [y], {"x": data, "flag": np.array(True)})[0]
    assert got.tolist() == (data * 2 + 3).tolist()


def test_a_size_bound_in_a_body_stays_in_it():
    made = session()
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.FLOAT, (4,))
    flag = made.root.add_input("flag", ir.DataType.BOOL, ())
    u0 = sympy.Symbol("u0", integer=True, nonnegative=True)
    with op.body("then") as then:
        found = then.Compress(x, then.Greater(x, 0.0))
        found.dims = (SymSize(u0),)
        then.scope.root_tensor(found)
        then.output(then.size(SymSize(u0)))
    with op.body("else") as other:
        other.output(other.const(0, ir.DataType.INT64))
    (y,) = op.If(flag, then_branch=then.graph, else_branch=other.graph, outputs=1)
    assert "Shape" not in ops(made)
    got = run(made, [y], {"x": np.array([1, -1, 2, -2], np.float32), "flag": np.array(True)})[0]
    assert got == 2


def test_a_function_imports_what_it_reads_and_holds_its_constants():
    domain = onnxscript.values.Opset("test.functions", 1)

    @onnxscript.script(domain)
    def shifted(x: FLOAT[...], by: float = 2.0) -> FLOAT[...]:
        return opset18.Add(opset18.Mul(x, by), 1.0)

    made = session(20, same_for_tests())
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.FLOAT, (3,))
    y = op.function(shifted, x, by=3.0)
    (got,) = run(made, [y], {"x": np.ones(3, np.float32)})
    assert got.tolist() == [4, 4, 4]
    (function,) = made.functions.values()
    assert function.opset_imports[""] == 20
    assert [node.op_type for node in function].count("Constant") == 2


def test_a_function_of_onnxs_own_domain_gets_one_of_ours():
    @onnxscript.script(opset18)
    def doubled(x: FLOAT[...]) -> FLOAT[...]:
        return opset18.Add(x, x)

    made = session(20, same_for_tests())
    x = made.root.add_input("x", ir.DataType.FLOAT, (3,))
    (got,) = run(made, [builder(made).function(doubled, x)], {"x": np.ones(3, np.float32)})
    assert got.tolist() == [2, 2, 2]
    assert {function.domain for function in made.functions.values()} == {"pkg.atonnx.functions"}


def test_a_value_from_outside_becomes_an_input_of_the_function():
    from atonnx.build.scope import Scope

    made = session()
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.FLOAT, (3,))
    inner = Scope(made, "function", made.root, "f")
    written = op._clone(inner).Relu(x)
    assert written.producer().inputs[0] is inner.graph.inputs[0]
    assert inner.captured == {x: inner.graph.inputs[0]}


def same_for_tests() -> OpsetPack:
    pack = OpsetPack("test")
    pack.same("Add", 7, 13, 14)
    pack.same("Mul", 7, 13, 14)
    pack.same("Relu", 6, 13, 14)
    return pack


def test_an_older_version_is_emitted_only_where_a_pack_says_so():
    made = session(13)
    x = made.root.add_input("x", ir.DataType.FLOAT, (3,))
    with pytest.raises(UnsupportedOpError, match="opset 13"):
        builder(made).Relu(x)
    made = session(13, same_for_tests())
    x = made.root.add_input("x", ir.DataType.FLOAT, (3,))
    assert builder(made).Relu(x).producer().version == 13


def test_lowering_rows_chain_and_work_in_bodies():
    pack = same_for_tests()

    @pack.below(20, "Gelu")
    def gelu(op, x, *, approximate="none"):
        return op.Swish(x)

    @pack.below(24, "Swish")
    def swish(op, x, *, alpha=1.0):
        return op.Mul(x, x)

    pack.same("If", 11, 13, 16, 19, 21, 23, 24, 25)
    pack.same("Identity", 1, 13, 14, 16, 19, 21, 23, 24, 25)
    made = session(13, pack)
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.FLOAT, (3,))
    flag = made.root.add_input("flag", ir.DataType.BOOL, ())
    with op.body() as then:
        then.output(then.Gelu(x))
    with op.body() as other:
        other.output(x)
    (y,) = op.If(flag, then_branch=then.graph, else_branch=other.graph, outputs=1)
    (got,) = run(made, [y], {"x": np.full(3, 3, np.float32), "flag": np.array(True)})
    assert got.tolist() == [9, 9, 9]


def test_a_call_written_for_an_older_opset_goes_up():
    pack = same_for_tests()

    @pack.above(11, "Softmax")
    def softmax(op, x, *, axis=1):
        return op.Relu(x)

    made = session(20, pack)
    x = made.root.add_input("x", ir.DataType.FLOAT, (3, 4))
    assert builder(made).at(12).Softmax(x).producer().op_type == "Relu"


def test_a_dtype_that_an_older_version_lacks_is_computed_in_a_wider_one():
    made = session(13, same_for_tests(), cast_for_tests())
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.INT8, (2,))
    y = op.Add(x, 1)
    assert y.dtype == ir.DataType.INT8
    (got,) = run(made, [y], {"x": np.array([127, 1], np.int8)})
    assert got.tolist() == [-128, 2]


def cast_for_tests() -> OpsetPack:
    pack = OpsetPack("casts")
    pack.same("Cast", 9, 13, 19, 21, 23, 24, 25, 28)
    return pack


def test_schemas_of_custom_domains_bind_attributes():
    made = session()
    op = builder(made)
    x = made.root.add_input("x", ir.DataType.FLOAT, (3,))
    y = op.call(
        "com.example", "Thing", x, outputs=2, dtypes=[ir.DataType.FLOAT, ir.DataType.INT64], k=3, mode="a"
    )
    assert [v.dtype for v in y] == [ir.DataType.FLOAT, ir.DataType.INT64]
    assert made.imports["com.example"] == 1
    assert y[0].producer().attributes["k"].as_int() == 3
