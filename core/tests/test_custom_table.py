"""``custom_translation_table``: three forms of functions, written for any opset, at any target."""

from __future__ import annotations

import warnings

import onnx
import onnxscript
import pytest
import torch
from onnxscript import FLOAT, opset13, opset18

import atonnx
from atonnx.errors import PluginError, TranslationError, UnsupportedOpError

aten = torch.ops.aten


@torch.library.custom_op("test_custom_table::softsign", mutates_args=())
def softsign_op(self: torch.Tensor) -> torch.Tensor:
    return self / (self.abs() + 1)


@softsign_op.register_fake
def _(self):
    return torch.empty_like(self)


SOFTSIGN = torch.ops.test_custom_table.softsign.default
TARGETS = (11, 17, 20, 23)


class Softsign(torch.nn.Module):
    def forward(self, x):
        return softsign_op(x)


def exported(model, table, opset=20, example=(2, 3), **options):
    dynamic = ({0: "batch"},)
    return atonnx.export(
        model.eval(),
        (torch.randn(example),),
        dynamic_shapes=dynamic,
        opset_version=opset,
        custom_translation_table=table,
        **options,
    )


def check(program, model, opset, shape=(4, 3)):
    proto = program.model_proto
    onnx.checker.check_model(proto, full_check=True)
    assert [(o.domain, o.version) for o in proto.opset_import if o.domain == ""] == [("", opset)]
    x = torch.randn(shape)
    torch.testing.assert_close(program(x)[0], model(x))


local = onnxscript.values.Opset("test.local", 1)


@onnxscript.script(local)
def script_18(self: FLOAT[...]) -> FLOAT[...]:
    bottom = opset18.Add(opset18.Abs(self), 1.0)
    return opset18.Div(self, bottom)


@onnxscript.script(local)
def script_13(self: FLOAT[...]) -> FLOAT[...]:
    total = opset13.ReduceMean(
        opset13.Unsqueeze(opset13.Abs(self), opset13.Constant(value_ints=[0])), axes=[0]
    )
    return opset13.Div(self, opset13.Add(opset13.Squeeze(total, opset13.Constant(value_ints=[0])), 1.0))


def plain_18(self):
    lifted = opset18.Unsqueeze(opset18.Abs(self), [0])
    total = opset18.ReduceMean(lifted, [0], keepdims=0)
    return opset18.Div(self, total + 1.0)


def plain_13(self):
    lifted = opset13.Unsqueeze(opset13.Abs(self), [0])
    total = opset13.ReduceMean(lifted, axes=[0], keepdims=0)
    return opset13.Div(self, 1.0 + total)


def ours(op, self):
    return op.Div(self, op.Add(op.Abs(self), 1.0))


@pytest.mark.parametrize("opset", TARGETS)
@pytest.mark.parametrize("function", [script_18, script_13, plain_18, plain_13, ours])
def test_a_function_of_each_form_is_right_at_each_target(function, opset):
    model = Softsign()
    check(exported(model, {SOFTSIGN: function}, opset), model, opset)


def test_a_custom_row_wins_over_a_decomposition():
    program = exported(Softsign(), {SOFTSIGN: lambda op, self: op.Identity(op.Softsign(self))})
    assert "Softsign" in [node.op_type for node in program.model.graph]


def test_a_plain_function_takes_sizes_as_values():
    def view(self, size):
        return opset18.Reshape(self, size)

    class Flat(torch.nn.Module):
        def forward(self, x):
            return x.view(x.shape[0] * 3)

    model = Flat()
    check(exported(model, {aten.view.default: view}), model, 20)


def test_a_node_of_an_unknown_domain_keeps_its_attributes():
    schema = onnx.defs.OpSchema(
        "FusedThing",
        "vendor.test",
        1,
        inputs=[onnx.defs.OpSchema.FormalParameter("x", "T")],
        outputs=[onnx.defs.OpSchema.FormalParameter("y", "T")],
        type_constraints=[("T", ["tensor(float)"], "")],
        attributes=[onnx.defs.OpSchema.Attribute("k", onnx.defs.OpSchema.AttrType.INT)],
    )
    fused = onnxscript.values.Op(onnxscript.values.Opset("vendor.test", 1), "FusedThing", schema)

    def translate(self):
        return fused(self, k=3)

    proto = exported(Softsign(), {SOFTSIGN: translate}).model_proto
    (node,) = proto.graph.node
    assert (node.domain, node.op_type, node.attribute[0].i) == ("vendor.test", "FusedThing", 3)
    assert {o.domain: o.version for o in proto.opset_import} == {"": 20, "vendor.test": 1}


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({SOFTSIGN: [ours]}, "single callable, not a sequence"),
        ({torch.ops.test_custom_table.softsign: ours}, "softsign.default"),
        ({SOFTSIGN: 3}, "not callable"),
    ],
)
def test_a_table_that_is_no_table_is_an_error_of_torchs_kind(table, text):
    with pytest.raises(PluginError, match=text) as caught:
        exported(Softsign(), table)
    assert isinstance(caught.value, TypeError)


def test_a_failing_row_names_itself_and_the_users_line():
    def broken(op, self):
        return op.Add(self, "one")

    with pytest.raises(TranslationError, match="test_custom_table.py") as caught:
        exported(Softsign(), {SOFTSIGN: broken})
    assert caught.value.op == "test_custom_table::softsign"
    assert caught.value.plugin == "custom_translation_table"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda op, self: op.Cast(self, to=torch.int64), "returned INT64, the node is FLOAT"),
        (lambda op, self: op.Unsqueeze(self, [0]), "returned rank 3, the node has 2"),
        (lambda op, self: (self, self), "returned 2 value"),
        (lambda op, self: None, "returned nothing"),
    ],
)
def test_what_a_row_returns_is_checked(function, text):
    with pytest.raises(TranslationError, match=text):
        exported(Softsign(), {SOFTSIGN: function})


def test_every_operator_that_an_opset_stops_is_named():
    class Two(torch.nn.Module):
        def forward(self, x):
            return softsign_op(x), softsign_op(softsign_op(x))

    def refuse(op, self):
        raise UnsupportedOpError.here(op, "this", hint="do that")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(UnsupportedOpError, match="3 nodes") as caught:
            exported(Two(), {SOFTSIGN: refuse})
    assert len(caught.value.missing) == 3
