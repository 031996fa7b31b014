"""Exactly the opset that is asked for: its range, IR versions, late operators in bodies, newest forms."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest
import torch
import torch.nn.functional as F
from onnxscript import opset15, script, values

import atonnx
from atonnx.build.scope import NEWEST_OPSET
from atonnx.dispatch import MIN_OPSET

EVERY = range(MIN_OPSET, NEWEST_OPSET + 1)

# The first IR version of ONNX that has the opset.
IR = {11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}
IR |= dict.fromkeys((25, 26, 27), 13) | {28: 14}
IR_NEWEST = max(IR.values())


class Model(torch.nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


def exported(fn, *args, **options):
    return atonnx.export(Model(fn).eval(), args, **options)


def operators(program):
    return [node.op_type for node in ir.traversal.RecursiveGraphIterator(program.model.graph)]


def check(program, fn, opset, *inputs):
    proto = program.model_proto
    onnx.checker.check_model(proto, full_check=True)
    assert {entry.domain: entry.version for entry in proto.opset_import} == {"": opset}
    for args in inputs:
        expected = fn(*args)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for a, b in zip(program(*args), expected, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


# ------------------------------------------------------------------------------------------- the range


@pytest.mark.parametrize("opset", [-1, 0, MIN_OPSET - 1, NEWEST_OPSET + 1, 1000])
def test_an_opset_out_of_range_is_refused_by_its_name_and_the_range(opset):
    with pytest.raises(ValueError, match=f"opset_version={opset}") as caught:
        exported(torch.relu, torch.ones(2), opset_version=opset)
    assert f"from {MIN_OPSET} to {NEWEST_OPSET}" in str(caught.value)


def test_an_onnx_that_has_newer_opsets_changes_nothing(monkeypatch):
    newer = NEWEST_OPSET + 2
    schema = onnx.defs.OpSchema(
        "Relu",
        "",
        newer,
        inputs=[
            onnx.defs.OpSchema.FormalParameter("X", "T"),
            onnx.defs.OpSchema.FormalParameter("slope", "T"),
        ],
        outputs=[onnx.defs.OpSchema.FormalParameter("Y", "T")],
        type_constraints=[("T", ["tensor(float)"], "")],
    )
    monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda: newer)
    onnx.defs.register_schema(schema)
    try:
        for opset in (20, NEWEST_OPSET):
            program = exported(torch.relu, torch.ones(2), opset_version=opset)
            assert program.model.opset_imports == {"": opset}
            assert [len(node.inputs) for node in program.model.graph] == [1]
        with pytest.raises(ValueError, match=f"opset_version={newer}"):
            exported(torch.relu, torch.ones(2), opset_version=newer)
    finally:
        onnx.defs.deregister_schema("Relu", newer, "")


# ----------------------------------------------------------------------------------------- IR versions


@pytest.mark.parametrize("opset", EVERY)
def test_the_ir_version_is_the_lowest_that_has_the_opset(opset):
    program = exported(torch.relu, torch.ones(2), opset_version=opset)
    lowest = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)])
    assert program.model.ir_version == lowest == IR[opset]


def _mine(dtype):
    """An operator of another domain, which no opset keeps from having a dtype."""

    def row(op, x):
        hidden = op.call("test.opsets", "Pack", x, dtypes=[dtype])
        return op.call("test.opsets", "Unpack", hidden, dtypes=[ir.DataType.FLOAT])

    return {torch.ops.aten.neg.default: row}


@pytest.mark.parametrize(
    ("dtype", "version"),
    [
        (ir.DataType.BFLOAT16, 6),
        (ir.DataType.FLOAT8E4M3FN, 9),
        (ir.DataType.INT4, 10),
        (ir.DataType.FLOAT4E2M1, 11),
        (ir.DataType.FLOAT8E8M0, 12),
        (ir.DataType.INT2, 13),
    ],
)
@pytest.mark.parametrize("in_body", [False, True])
def test_what_a_model_contains_raises_the_ir_version(dtype, version, in_body):
    def fn(x):
        return torch.cond(x.sum() > 0, torch.neg, torch.abs, (x,)) if in_body else torch.neg(x)

    for opset, lowest in ((11, 6), (None, 10), (NEWEST_OPSET, IR_NEWEST)):
        options = {"custom_translation_table": _mine(dtype), "custom_opsets": {"test.opsets": 1}}
        program = exported(fn, torch.ones(2), opset_version=opset, **options)
        assert program.model.ir_version == max(version, lowest)


@pytest.mark.parametrize(("opset", "version"), [(11, 8), (17, 8), (20, 9), (NEWEST_OPSET, IR_NEWEST)])
def test_functions_raise_the_ir_version(opset, version):
    @script(values.Opset("test.opsets", 1))
    def negated(x):
        return opset15.Neg(x)

    table = {torch.ops.aten.neg.default: lambda op, x: op.function(negated, x)}
    program = exported(torch.neg, torch.ones(2), opset_version=opset, custom_translation_table=table)
    (function,) = program.model.functions.values()
    assert program.model.ir_version == version
    assert function.opset_imports[""] == opset
    onnx.checker.check_model(program.model_proto, full_check=True)


# ------------------------------------------------------------------------------ late operators in bodies


def _branches(fn):
    return lambda x: torch.cond(x.sum() > 0, fn, lambda y: fn(y * 2), (x,))


def _repeated(fn):
    def model(x):
        return torch._higher_order_ops.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, fn(y)), (torch.tensor(0), x)
        )[1]

    return model


def _scanned(fn):
    def model(x):
        def step(state, item):
            new = fn(item)
            return state + new.sum(), new

        return torch._higher_order_ops.scan(step, x.new_zeros(()), x[None].expand(2, -1, -1, -1, -1))

    return model


GRID = torch.tensor([[[[-0.9, 0.3], [0.1, 0.8]], [[0.4, -0.2], [1.1, 0.5]]]])
WHERE = torch.tensor([[[[0, 1], [2, 0]]]])

# Of square matrices (1, 1, 4, 4), which they also give.
LATE = {
    "Gelu": F.gelu,
    "Gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "HardSwish": F.hardswish,
    "Mish": F.mish,
    "Trilu": lambda x: torch.triu(x, 1) + torch.tril(x, -1),
    "CumSum": lambda x: torch.cumsum(x, -1),
    "CumProd": lambda x: torch.cumprod(x, 1),
    "GridSample": lambda x: x + F.grid_sample(x, GRID, align_corners=False).sum(),
    "ScatterElements add": lambda x: x.scatter_reduce(3, WHERE, x[..., :2, :2], "sum"),
    "ScatterElements max": lambda x: x.scatter_reduce(3, WHERE, x[..., :2, :2], "amax"),
    "ScatterND add": lambda x: x.index_put((torch.tensor([0, 0]),), x[0], accumulate=True),
    "LayerNormalization": lambda x: F.layer_norm(x, x.shape[-1:]),
    "RMSNormalization": lambda x: F.rms_norm(x, x.shape[-1:]),
    "GroupNormalization": lambda x: F.group_norm(torch.cat([x, x * 2], 1), 2)[:, :1],
    "Einsum": lambda x: torch.einsum("abij,abkj->abik", x, x),
    "DFT": lambda x: torch.fft.fft(x).real,
    "Col2Im": lambda x: F.fold(F.unfold(x, 2), (4, 4), 2),
    "BitwiseAnd": lambda x: (x.int() & 3).float(),
    "Attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "Clip and Round": lambda x: torch.clamp(x * 3, -2, 2).round(),
    "TopK": lambda x: x.topk(4, -1)[0],
    "Resize": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear", antialias=True)[..., ::2, ::2],
}


@pytest.mark.parametrize("inside", [_branches, _repeated, _scanned], ids=["If", "Loop", "Scan"])
def test_late_operators_are_spelled_out_in_bodies(inside):
    """All in one chain, captured once; the metadata of a failing node names its operator."""

    def chain(x):
        for fn in LATE.values():
            # The numbers stay small, whatever an operator makes of them.
            x = torch.tanh(fn(x))
        return x

    fn = inside(chain)
    x = torch.randn(1, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    captured = exported(fn, x).exported_program
    for opset in (11, 13, 17):
        program = atonnx.export(captured, opset_version=opset)
        assert {"If", "Loop", "Scan"}.intersection(operators(program))
        check(program, fn, opset, (x,), (-x,))


# ------------------------------------------------------------------------------------------ newest forms

NEWEST = [
    ("Attention", 23, lambda x: F.scaled_dot_product_attention(x, x, x)),
    ("RMSNormalization", 23, lambda x: F.rms_norm(x, (4,))),
    ("Gelu", 20, F.gelu),
    ("LayerNormalization", 17, lambda x: F.layer_norm(x, (4,))),
    ("Trilu", 14, torch.triu),
    ("GridSample", 16, lambda x: F.grid_sample(x, GRID, align_corners=False)),
]


@pytest.mark.parametrize("opset", [11, 13, 17, 20, 23, 26, NEWEST_OPSET])
@pytest.mark.parametrize(("op_type", "since", "fn"), NEWEST, ids=[name for name, _, _ in NEWEST])
def test_one_node_where_the_opset_has_the_operator_and_none_where_not(op_type, since, fn, opset):
    x = torch.randn(1, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    program = exported(fn, x, opset_version=opset, optimize=True)
    expected = [op_type] if opset >= since else []
    assert [name for name in operators(program) if name == op_type] == expected
    if expected:
        assert len(operators(program)) == 1
    check(program, fn, opset, (x,))


def test_products_are_one_node_at_opset_26_where_no_runtime_is_asked_for():
    program = exported(lambda x: x.cumprod(0), torch.ones(3), opset_version=26, target="portable")
    assert operators(program) == ["CumProd"]
