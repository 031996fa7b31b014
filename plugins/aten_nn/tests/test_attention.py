"""Scaled dot product attention against eager torch."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

import atonnx
from atonnx import testing as kit

aten = torch.ops.aten
MAIN = aten.scaled_dot_product_attention.default
HIDDEN = -float("inf")
DYNAMIC = torch.export.Dim.DYNAMIC
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


@st.composite
def tensors(draw, min_rank=3, max_rank=5, dtypes="wide", heads=None):
    dtype = draw(kit.dtypes(dtypes))
    lead = (2, 1, 4)[3 - draw(st.integers(min_rank, max_rank)) + 2 :]
    length, keys = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    seed = draw(st.integers(0, 99))
    other = (*lead[:-1], heads) if heads else lead
    return (
        kit.make_tensor(dtype, (*lead, length, 4), seed),
        kit.make_tensor(dtype, (*other, keys, 4), seed + 1),
        kit.make_tensor(dtype, (*other, keys, 3), seed + 2),
    )


def hidden_rows(mask):
    """The mask with its first row hidden wholly."""
    mask = mask.clone()
    mask[..., 0, :] = False if mask.dtype == torch.bool else HIDDEN
    return mask


@given(
    opset=kit.opsets(), case=tensors(), causal=st.booleans(), scale=st.sampled_from([None, 1.0, 0.3, -0.5])
)
def test_all_ranks_scales_and_lengths(opset, case, causal, scale):
    dynamic = case[0].dtype == torch.float64  # with a size for each dim, and with the sizes known
    kit.check_op(MAIN, *case, None, 0.0, causal, scale=scale, opset=opset, dynamic=dynamic, **TOLERANCE)


@given(
    opset=kit.opsets(),
    case=tensors(4, 4),
    kind=st.sampled_from(["bool", "float", "lowest"]),
    lead=st.sampled_from([(), (1, 1), (1, 4)]),
    rows=st.booleans(),
    hide=st.booleans(),
    dynamic=st.booleans(),
)
def test_masks(opset, case, kind, lead, rows, hide, dynamic):
    query, key, _ = case
    shape = (*lead, query.shape[-2] if rows else 1, key.shape[-2])
    mask = kit.make_tensor(torch.bool, shape, 3)
    if kind == "float":
        mask = torch.where(mask, kit.make_tensor(query.dtype, shape, 4), HIDDEN).to(query.dtype)
    elif kind == "lowest":
        mask = torch.where(mask, 0.0, -3e38).to(query.dtype)
    if hide:
        mask = hidden_rows(mask)
    kit.check_op(MAIN, *case, mask, opset=opset, dynamic=dynamic, **TOLERANCE)


@given(
    opset=kit.opsets(),
    heads=st.sampled_from([1, 2]),
    seed=st.integers(0, 99),
    mask=st.sampled_from(["none", "causal", "rows", "heads"]),
)
def test_queries_share_heads(opset, heads, seed, mask):
    query = kit.make_tensor(torch.float32, (2, 4, 3, 4), seed)
    key, value = (kit.make_tensor(torch.float32, (2, heads, 5, 4), seed + i) for i in (1, 2))
    shapes = {"rows": (3, 5), "heads": (1, 4, 3, 5)}
    given_mask = kit.make_tensor(torch.bool, shapes[mask], seed) if mask in shapes else None
    kit.check_op(
        MAIN,
        *(query, key, value, given_mask, 0.0, mask == "causal"),
        enable_gqa=True,
        opset=opset,
        dynamic=False,
        **TOLERANCE,
    )


@given(case=tensors(4, 4, "half"), causal=st.booleans(), opset=kit.opsets(low=13, high=22))
def test_half_types_are_computed_in_float32(case, causal, opset):
    kit.check_op(MAIN, *case, None, 0.0, causal, opset=opset)


@pytest.mark.parametrize("size", ["batch", "length", "keys"])
def test_empty_tensors(size):
    sizes = {"batch": (0, 3, 5), "length": (2, 0, 5), "keys": (2, 3, 0)}[size]
    batch, length, keys = sizes
    case = torch.randn(batch, 2, length, 4), torch.randn(batch, 2, keys, 4), torch.randn(batch, 2, keys, 4)
    for opset in (20, 23):
        kit.check_op(MAIN, *case, opset=opset, dynamic=False)


def test_one_node_from_opset_23_where_the_runtime_is_right():
    query, key = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 5, 8)
    mask = torch.rand(2, 1, 3, 5) > 0.3
    one = {"opset": 23, "dynamic": False, "expect": "Attention:1!"}
    kit.check_op(MAIN, query, key, key, **one)
    kit.check_op(MAIN, query, key, key, hidden_rows(mask), **one)
    kit.check_op(MAIN, query, key, key, None, 0.0, True, scale=0.3, **one)
    several = {"opset": 23, "dynamic": False, "expect": "Attention:0 Softmax:1"}
    kit.check_op(MAIN, query, key, key, torch.randn(3, 5), **several)
    kit.check_op(MAIN, query, key, key, scale=-1.0, **several)


def test_at_most_eight_nodes_below():
    query, key = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 5, 8)
    for more in ((), (torch.rand(3, 5) > 0.3,), (torch.randn(3, 5),), (None, 0.0, True)):
        made = kit.check_op(MAIN, query, key, key, *more, opset=20, dynamic=False)
        assert len(list(made.model.graph)) <= 8


def test_core_forms():
    case = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 8)
    cpu = aten._scaled_dot_product_flash_attention_for_cpu.default
    kit.check_op(cpu, *case, dynamic=False, rtol=1e-4, atol=1e-4)
    kit.check_op(cpu, *case, 0.0, True, dynamic=False, outputs=(0,))
    kit.check_op(cpu, *case, attn_mask=torch.randn(3, 5), outputs=(0,), dynamic=False)
    math = aten._scaled_dot_product_attention_math.default
    kit.check_op(math, *case, None, 0.0, True, outputs=(0,), dynamic=False)


@pytest.mark.parametrize(
    "name, more",
    [
        ("_scaled_dot_product_flash_attention", ()),
        ("_scaled_dot_product_efficient_attention", (None, True)),
        ("_scaled_dot_product_cudnn_attention", (None, True)),
        ("_scaled_dot_product_fused_attention_overrideable", ()),
    ],
)
def test_forms_of_gpus_are_written_as_that_of_the_cpu(name, more):
    case = (torch.randn(2, 4, 3, 8),) * 3
    cpu = aten._scaled_dot_product_flash_attention_for_cpu.default
    made = kit.translate_op(getattr(aten, name).default, *case, *more, outputs=(0,), dynamic=False)
    want = kit.translate_op(cpu, *case, outputs=(0,), dynamic=False)
    assert [n.op_type for n in made.graph] == [n.op_type for n in want.graph]


class Causal(torch.nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@pytest.mark.parametrize("opset", [11, 20, 23])
def test_causal_with_unequal_dynamic_lengths(opset, run):
    def made(batch, length, keys):
        return (
            torch.randn(batch, 2, length, 4),
            torch.randn(batch, 2, keys, 4),
            torch.randn(batch, 2, keys, 4),
        )

    shapes = ({0: DYNAMIC, 2: DYNAMIC},) * 3
    run(Causal(), made(2, 3, 5), shapes, [made(1, 6, 2), made(3, 1, 1)], opset)


@pytest.mark.parametrize("opset", [13, 20, 23])
def test_multihead_attention(opset, run):
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def made(batch, length, keys):
        key = torch.randn(batch, keys, 8)
        return torch.randn(batch, length, 8), key, key + 1

    shapes = ({0: DYNAMIC, 1: DYNAMIC},) * 3
    run(module, made(2, 5, 6), shapes, [made(3, 4, 7), made(1, 1, 2)], opset)


@pytest.mark.parametrize("opset", [13, 20, 23])
@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_encoder_layer(opset, norm_first, run):
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 16, batch_first=True, norm_first=norm_first, activation="gelu"
    )
    shapes = ({0: DYNAMIC, 1: DYNAMIC},)
    program = run(layer, (torch.randn(2, 5, 8),), shapes, [(torch.randn(3, 4, 8),)], opset)
    ops = [node.op_type for node in program.model.graph]
    assert ops.count("Attention" if opset >= 23 else "Softmax") == 1
    assert isinstance(program, atonnx.ONNXProgram)
