"""Metadata (promises M1-M19): what the nodes, the graph, inputs and outputs tell of the model."""

from __future__ import annotations

import torch

import atonnx
from atonnx.build.metadata import KEYS

NODE_KEYS = (*KEYS, "pkg.atonnx.plugin", "pkg.atonnx.translation")


class Simple(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 4)
        self.register_buffer("offset", torch.ones(4))

    def forward(self, x):
        return torch.add(self.fc(x), self.offset)


def exported(**options):
    return atonnx.export(Simple().eval(), (torch.randn(2, 3),), dynamic_shapes=({0: "batch"},), **options)


def test_M1_namespace_starts_with_the_empty_scope():
    last = exported().model.graph[-1]
    assert last.metadata_props["namespace"] == f": {__name__}.Simple/add: aten.add.Tensor"


def test_M1_namespace_has_the_modules():
    nodes = [n.metadata_props["namespace"] for n in exported().model.graph]
    wanted = f": {__name__}.Simple/fc: torch.nn.modules.linear.Linear/linear: aten.linear.default"
    assert wanted in nodes


def test_M2_M4_class_hierarchy_and_scopes_are_reprs_of_lists():
    first = exported().model.graph[0].metadata_props
    assert first["pkg.torch.onnx.class_hierarchy"] == repr(
        [f"{__name__}.Simple", "torch.nn.modules.linear.Linear", "aten.linear.default"]
    )
    assert first["pkg.torch.onnx.name_scopes"] == "['', 'fc', 'linear']"


def test_M3_fx_node_is_torchs_text():
    last = exported().model.graph[-1].metadata_props["pkg.torch.onnx.fx_node"]
    assert last.startswith(
        "%add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%linear"
    )


def test_M5_stack_trace_has_the_users_line():
    last = exported().model.graph[-1].metadata_props["pkg.torch.onnx.stack_trace"]
    assert "test_metadata.py" in last
    assert "return torch.add(self.fc(x), self.offset)" in last


def test_M6_every_node_has_every_key():
    for optimize in (True, False):
        for node in exported(optimize=optimize).model.graph:
            assert all(key in node.metadata_props for key in NODE_KEYS), node


def test_M8_the_last_node_of_an_fx_node_bears_its_name():
    graph = exported().model.graph
    assert graph.outputs[0].name == "add"
    assert graph[-1].name == "node_add"


def test_M9_M10_the_graph_has_signature_and_ranges():
    props = exported().model_proto.graph.metadata_props
    texts = {p.key: p.value for p in props}
    signature = texts["pkg.torch.export.ExportedProgram.graph_signature"]
    assert "p_fc_weight: PARAMETER target='fc.weight'" in signature
    assert "add: USER_OUTPUT" in signature
    assert texts["pkg.torch.export.ExportedProgram.range_constraints"].startswith("{batch: VR[0")


def test_M12_M13_kinds_are_on_inputs_and_initializers():
    graph = exported().model.graph
    kind = "pkg.torch.export.graph_signature.InputSpec.kind"
    persistent = "pkg.torch.export.graph_signature.InputSpec.persistent"
    assert graph.inputs[0].metadata_props[kind] == "USER_INPUT"
    assert graph.inputs[0].metadata_props[persistent] == "None"
    offset = graph.initializers["offset"]
    assert offset.metadata_props[kind] == "BUFFER"
    assert offset.metadata_props[persistent] == "True"


def test_M14_outputs_have_their_kind():
    key = "pkg.torch.export.graph_signature.OutputSpec.kind"
    assert exported().model.graph.outputs[0].metadata_props[key] == "USER_OUTPUT"


def test_M15_renamed_values_keep_their_fx_name():
    graph = exported(input_names=["in"], output_names=["out"]).model.graph
    key = "pkg.torch.onnx.original_node_name"
    assert (graph.inputs[0].name, graph.inputs[0].metadata_props[key]) == ("in", "x")
    assert (graph.outputs[0].name, graph.outputs[0].metadata_props[key]) == ("out", "add")
    assert graph.initializers["offset"].metadata_props[key] == "b_offset"


def test_M17_metadata_is_in_the_file_at_any_opset():
    for opset in (11, 13, 20):
        proto = exported(opset_version=opset).model_proto
        for node in proto.graph.node:
            assert {p.key for p in node.metadata_props} >= set(NODE_KEYS), (opset, node.op_type)


def test_M18_nodes_of_a_body_have_the_full_namespace():
    class Branch(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, (x,))

    graph = atonnx.export(Branch(), (torch.ones(3),)).model.graph
    (node,) = [n for n in graph if n.op_type == "If"]
    for attribute in ("then_branch", "else_branch"):
        for inner in node.attributes[attribute].as_graph():
            assert inner.metadata_props["namespace"].startswith(f": {__name__}."), inner


def test_strict_capture_has_the_users_frames_only():
    program = torch.export.export(Simple().eval(), (torch.randn(2, 3),), strict=True)
    for node in atonnx.export(program).model.graph:
        assert "functional_export" not in node.metadata_props["pkg.torch.onnx.stack_trace"]


def test_M20_the_same_model_gives_the_same_bytes():
    torch.manual_seed(0)
    model = Simple().eval()
    one, two = (
        atonnx.export(model, (torch.randn(2, 3),), dynamic_shapes=({0: "b"},)).model_proto.SerializeToString()
        for _ in range(2)
    )
    assert one == two
