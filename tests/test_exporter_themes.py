"""The themes of PyTorch's own tests of its exporter: API, dynamic shapes, control flow, dtypes, operators."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import onnx_ir as ir
import pytest
import torch
from torch import nn
from torch.export import Dim

import atonnx

logger = logging.getLogger(__name__)
DYNAMIC, AUTO, STATIC = Dim.DYNAMIC, Dim.AUTO, Dim.STATIC


class Call(nn.Module):
    """A model of one function; weights by attribute."""

    def __init__(self, function, **weights):
        super().__init__()
        self.function = function
        for name, weight in weights.items():
            setattr(self, name, weight)

    def forward(self, x):
        return self.function(self, x)


class Pair(nn.Module):
    """Two tensors, one result each."""

    def forward(self, x, b):
        return x.relu(), b.sigmoid()


class Nested(nn.Module):
    """A branch by size, that holds for the example and what is like it."""

    def forward(self, x, ys, zs, c):
        y = ys[0] + ys[1] + zs["a"] + zs["b"]
        return (x + 5, x + y, c) if x.shape[0] < 3 and c.shape[0] != 4 else (x - 5, x - y, c)


def nested(n=5, m=4):
    return (
        torch.ones(n),
        [torch.zeros(n), torch.ones(n)],
        {"a": torch.zeros(n), "b": torch.ones(n)},
        torch.ones(m),
    )


def exported(model: nn.Module, args: Any = (), **options: Any) -> atonnx.ONNXProgram:
    """The program, which agrees with the model on its example and at other sizes."""
    program = atonnx.export(model.eval(), args, verbose=False, **options)
    assert program.verify().ok, program.verification
    return program


def agree(program: atonnx.ONNXProgram, model: nn.Module, *args: Any, **kwargs: Any) -> None:
    """The program and the model on other arguments."""
    expected = model(*args, **kwargs)
    expected = (expected,) if isinstance(expected, torch.Tensor) else expected
    torch.testing.assert_close(program(*args, **kwargs), tuple(expected))


def names(program: atonnx.ONNXProgram) -> dict[str, list[int | str]]:
    values = (*program.model.graph.inputs, *program.model.graph.outputs)
    return {v.name: [d if isinstance(d, int) else d.value for d in v.shape] for v in values}


def ops(program: atonnx.ONNXProgram) -> Counter[str]:
    return Counter(node.op_type for node in program.model.graph)


old_axes = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*not recommended:UserWarning")

# ---------------------------------------------------------------- the API


@old_axes
@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ({"x": {0: "p", 1: "q", 2: "r"}, "b": {0: "s", 1: "t", 2: "u"}}, [["p", "q", "r"], ["s", "t", "u"]]),
        (
            {"x": [0, 1, 2], "b": [0, 1, 2]},
            [[f"{name}_dynamic_axes_{n}" for n in (1, 2, 3)] for name in "xb"],
        ),
        ({"b": [0, 1, 2]}, [[2, 2, 3], [f"b_dynamic_axes_{n}" for n in (1, 2, 3)]]),
    ],
)
@pytest.mark.parametrize("given", [True, False])
def test_dynamic_axes_with_keywords_at_the_end_of_args(axes, expected, given):
    options = {"input_names": ["x", "b"], "output_names": ["x_out", "b_out"]} if given else {}
    program = exported(
        Pair(), (torch.randn(2, 2, 3), {"b": torch.randn(2, 2, 3)}), dynamic_axes=axes, **options
    )
    assert list(names(program).values()) == expected * 2


@old_axes
def test_dynamic_axes_of_nested_inputs_that_are_renamed():
    given = ["input_x", "input_y", "input_z", "d", "e", "f"]
    axes = {name: {0: "dim"} for name in given[:-1]}
    program = exported(Nested(), nested(), input_names=given, dynamic_axes=axes)
    assert [names(program)[name] for name in given] == [["dim"]] * 5 + [[4]]
    agree(program, Nested(), *nested(7))


def test_a_program_with_dims_of_its_own():
    shapes = {name: {axis: Dim(f"custom{name}_dim_{axis}") for axis in range(3)} for name in "xb"}
    captured = torch.export.export(
        Pair().eval(), (torch.randn(2, 2, 3), torch.randn(2, 2, 3)), dynamic_shapes=shapes, strict=True
    )
    program = atonnx.export(captured)
    assert program.verify().ok
    assert names(program)["x"] == [f"customx_dim_{axis}" for axis in range(3)]


def test_sizes_are_refined_by_what_the_model_asks():
    class Bounded(nn.Module):
        def forward(self, x, y):
            if x.shape[0] >= 6 and y.shape[0] <= 16:
                return x * 2.0, y + 1

    shapes = {"x": (Dim("dx"),), "y": (Dim("dy"),)}
    program = exported(Bounded(), (torch.randn(16), torch.randn(12)), dynamic_shapes=shapes)
    agree(program, Bounded(), torch.randn(9), torch.randn(3))


def test_an_operator_of_the_users_with_a_function():
    with torch.library._scoped_library("themes", "FRAGMENT") as library:
        library.define("add(Tensor a, Tensor b) -> Tensor")
        library.impl("add", lambda a, b: a + b, "CompositeExplicitAutograd")
        model = Call(lambda self, x: torch.ops.themes.add(x, x))
        table = {torch.ops.themes.add.default: lambda op, a, b: op.Add(a, b)}
        program = exported(model, (torch.ones(2),), custom_translation_table=table)
        assert ops(program) == {"Add": 1}
        with pytest.raises(atonnx.errors.UnsupportedOpError, match="themes::add"):
            atonnx.export(model.eval(), (torch.ones(2),))


def test_lazy_modules_and_keywords_only():
    class Lazy(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def initialize_parameters(self, *args, **kwargs):
            pass

        def forward(self, x, y):
            return x + y

    model, dim = Lazy(), Dim("dim")
    kwargs = {"x": torch.randn(3, 3), "y": torch.randn(3, 3)}
    program = exported(model, kwargs=kwargs, dynamic_shapes=({0: dim}, {0: dim}))
    agree(program, model, x=torch.randn(6, 3), y=torch.randn(6, 3))


# ---------------------------------------------------------------- dynamic shapes


def test_a_number_that_is_static_beside_a_bounded_dim():
    class Add(nn.Module):
        def forward(self, x, y):
            return x + y

    shapes = {"x": {0: Dim("rows", min=6)}, "y": STATIC}
    program = exported(Add(), (torch.ones(7, 5), 5), dynamic_shapes=shapes)
    agree(program, Add(), torch.ones(8, 5), 5)


def test_none_is_static_beside_a_dim():
    class Sums(nn.Module):
        def forward(self, a, b):
            return a.sum() + b.sum()

    program = exported(Sums(), (torch.randn(4, 4), torch.randn(4, 4)), dynamic_shapes=(None, {0: Dim("n")}))
    agree(program, Sums(), torch.randn(4, 4), torch.randn(7, 4))


def test_shapes_by_position_go_to_keywords_in_another_order():
    class Sums(nn.Module):
        def forward(self, a, b, kw1, kw2):
            return a.sum() + b.sum() + kw1.sum() - kw2.sum()

    kwargs = {"kw2": torch.ones(4, 4), "kw1": torch.zeros(4, 4)}
    program = exported(
        Sums(),
        (torch.randn(4, 4), torch.randn(4, 4)),
        kwargs=kwargs,
        dynamic_shapes=(None, {0: Dim("n")}, {0: Dim("m")}, None),
    )
    agree(program, Sums(), torch.randn(4, 4), torch.randn(7, 4), kw2=torch.ones(4, 4), kw1=torch.ones(9, 4))


def test_one_of_a_tuple_is_dynamic():
    class Sums(nn.Module):
        def forward(self, a, b):
            return a[0].sum() + a[1].sum() + b.sum()

    args = ((torch.randn(4, 4), torch.randn(4, 4)), torch.randn(4, 4))
    program = exported(Sums(), args, dynamic_shapes=((None, {0: Dim("n", min=3)}), None))
    agree(program, Sums(), (torch.randn(4, 4), torch.randn(6, 4)), torch.randn(4, 4))


@pytest.mark.filterwarnings("ignore:.*zs_b_0 will not be used:UserWarning")
def test_dims_names_and_hints_side_by_side():
    shapes = (
        {0: Dim("dim_x", min=3)},
        [("ys_0",), (AUTO,)],
        {"a": {0: AUTO}, "b": ("zs_b_0",)},
        {0: "c_0"},
    )
    with pytest.warns(UserWarning, match="ys_0 will not be used.*dim_x"):
        program = exported(Nested(), nested(5, 6), dynamic_shapes=shapes, optimize=False)
    graph = program.model.graph
    assert [value.shape[0].value for value in graph.inputs] == ["dim_x"] * 5 + ["c_0"]
    agree(program, Nested(), *nested(4, 5))


def test_static_sizes_and_derived_ones():
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)

        def forward(self, x, y, z):
            return self.fc(x) + y[1:], z * 2.0

    dx = Dim("dx", min=3, max=6)
    shapes = ({0: dx, 1: AUTO}, {0: dx + 1, 1: STATIC}, {0: Dim("dz", min=3, max=6), 1: 3})
    args = (torch.randn(4, 6), torch.randn(5, 4), torch.randn(3, 3))
    model = Shifted()
    program = exported(model, args, dynamic_shapes=shapes)
    assert names(program)["x"][0] == "dx" and names(program)["z"] == ["dz", 3]
    agree(program, model, torch.randn(6, 6), torch.randn(7, 4), torch.randn(5, 3))


class Decoder(nn.Module):
    """Attention over a past that comes as a list of pairs, as language models had it."""

    def __init__(self, layers=2, heads=2, width=8):
        super().__init__()
        self.embed = nn.Embedding(32, width)
        self.project = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.head = nn.Linear(width, 32)
        self.heads = heads

    def forward(self, input_ids, attention_mask, past_key_values):
        x, present = self.embed(input_ids), []
        for project, (past_key, past_value) in zip(self.project, past_key_values, strict=True):
            q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in project(x).chunk(3, -1))
            k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
            present.append((k, v))
            mask = attention_mask[:, None, None, :].bool()
            x = x + nn.functional.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)
        return self.head(x), present


def decoded(batch=2, length=3, past=4, layers=2):
    return {
        "input_ids": torch.randint(0, 32, (batch, length)),
        "attention_mask": torch.ones(batch, past + length, dtype=torch.int64),
        "past_key_values": [
            (torch.randn(batch, 2, past, 4), torch.randn(batch, 2, past, 4)) for _ in range(layers)
        ],
    }


CACHE = [f"{{}}.{layer}.{part}" for layer in range(2) for part in ("key", "value")]


@pytest.mark.parametrize("form", ["dynamic_axes", "dynamic_shapes"])
@old_axes
def test_a_language_model_with_a_past_and_names_for_all(form):
    text = {0: "batch_size", 1: "sequence_length"}
    past, total = {0: "batch_size", 2: "past_sequence_length"}, "past_sequence_length + sequence_length"
    inputs = ["input_ids", "attention_mask", *(name.format("past_key_values") for name in CACHE)]
    outputs = ["logits", *(name.format("present") for name in CACHE)]
    if form == "dynamic_axes":
        dynamic: Any = {"input_ids": text, "attention_mask": {0: "batch_size", 1: total}, "logits": text}
        dynamic |= dict.fromkeys(inputs[2:], past)
        dynamic |= {name: {0: "batch_size", 2: total} for name in outputs[1:]}
    else:
        dynamic = {
            "input_ids": text,
            "attention_mask": {0: "batch_size", 1: "masked"},
            "past_key_values": [(past, past), (past, past)],
        }
    model = Decoder().eval()
    program = exported(model, kwargs=decoded(), input_names=inputs, output_names=outputs, **{form: dynamic})
    found = names(program)
    assert list(found) == inputs + outputs
    assert found["input_ids"] == ["batch_size", "sequence_length"]
    assert {tuple(found[name]) for name in inputs[2:]} == {("batch_size", 2, "past_sequence_length", 4)}
    assert found["logits"] == ["batch_size", "sequence_length", 32]
    other = decoded(1, 1, 7)
    logits, present = model(**other)
    expected = (logits, *(tensor for pair in present for tensor in pair))
    torch.testing.assert_close(program(**other), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_a_language_model_of_transformers_with_its_own_cache():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPTJConfig(
        vocab_size=64,
        n_embd=16,
        n_layer=1,
        n_head=2,
        rotary_dim=4,
        n_positions=32,
        bos_token_id=0,
        eos_token_id=1,
    )
    model = transformers.GPTJForCausalLM(config).eval()

    def arguments(batch, length, past):
        cache = transformers.DynamicCache()
        cache.update(torch.randn(batch, 2, past, 8), torch.randn(batch, 2, past, 8), 0)
        return {
            "input_ids": torch.randint(0, 64, (batch, length)),
            "past_key_values": cache,
            "attention_mask": torch.ones(batch, past + length, dtype=torch.int64),
        }

    past = {0: "batch", 2: "past"}
    shapes = {
        "input_ids": {0: "batch", 1: "length"},
        "past_key_values": [[past], [past]],
        "attention_mask": {0: "batch", 1: "total"},
    }
    program = exported(model, kwargs=arguments(2, 3, 4), dynamic_shapes=shapes)
    other = arguments(3, 2, 5)
    got = program(**other)
    torch.testing.assert_close(got[0], model(**other).logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({"s0": "batch", "s1": "length", "s2": "width"}, [["batch", "length + width", 7, "length*2"]]),
        (
            {"s0": "batch", "s1": "length", "s2": "past", "s1 + s2": "total"},
            [["batch", "total", 7, "length*2"]],
        ),
        ({"s0": "batch", "nothing": "ignored"}, [["batch", "s1 + s2", 7, "s1*2"]]),
        ({}, [["s0", "s1 + s2", 7, "s1*2"]]),
    ],
)
def test_axes_of_a_model_made_by_hand_are_renamed(mapping, expected):
    shape = ir.Shape(["s0", "s1 + s2", 7, "s1*2"])
    value = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=shape)
    graph = ir.Graph(inputs=[value], outputs=[value], nodes=[], opset_imports={"": 20})
    program = atonnx.ONNXProgram(ir.Model(graph, ir_version=9), None)
    program.rename_axes(mapping)
    assert list(names(program).values()) == expected


# ---------------------------------------------------------------- sizes as values


@pytest.mark.parametrize(
    ("function", "results"),
    [
        (lambda self, x: torch.sym_max(*x.shape), [3, 5]),
        (lambda self, x: torch.sym_min(*x.shape), [2, 4]),
        (lambda self, x: torch.sym_not(x.shape[0] == x.shape[1]), [True, True]),
        (lambda self, x: torch.sym_float(x.shape[0]), [2.0, 4.0]),
    ],
    ids=["sym_max", "sym_min", "sym_not", "sym_float"],
)
def test_sizes_are_computed_and_returned(function, results):
    program = exported(Call(function), (torch.zeros(2, 3),), dynamic_shapes=({0: DYNAMIC, 1: DYNAMIC},))
    assert [program(torch.zeros(*size))[0].item() for size in ((2, 3), (4, 5))] == results


# ---------------------------------------------------------------- control flow


def test_both_branches_of_a_condition():
    model = Call(lambda self, x: torch.cond(x.sum() > 0, lambda v: v + 1.0, lambda v: v - 42.0, [x]))
    program = exported(model, (torch.tensor([1, 2]),))
    assert ops(program)["If"] == 1
    agree(program, model, torch.tensor([-1, -2]))


def test_conditions_within_conditions_with_weights_of_their_own():
    def inner(self, x):
        return torch.cond(x.sum() <= 0, lambda v: v * self.weight, lambda v: v / self.weight, [x])

    def outer(self, x):
        return torch.cond(x.sum() > 0, lambda v: self.inside(v - self.weight), lambda v: v - self.weight, [x])

    inside = Call(inner, weight=nn.Parameter(torch.tensor([100.0])))
    model = Call(outer, inside=inside, weight=nn.Parameter(torch.tensor([42.0])))
    program = exported(model, (torch.tensor([1, 2]),))
    for value in (0, 43):
        agree(program, model, torch.tensor([value, value]))


def test_several_results_of_a_condition():
    def forward(self, x):
        return torch.cond(
            x.sum() > 0,
            lambda u, v: (u + 1.0, v * 1.0),
            lambda u, v: (u - 1.0, v * 0.0),
            (x, torch.ones_like(x)),
        )

    program = exported(Call(forward), (torch.tensor([1, 2]),))
    agree(program, Call(forward), torch.tensor([-1, -2]))


def scan(step, start, rows, extra=()):
    return torch.ops.higher_order.scan(step, start, rows, additional_inputs=list(extra))


def test_distances_by_a_scan():
    def step(count, row, rows):
        return [count.clone(), (rows - row.reshape(1, -1)).pow(2).sum(1).sqrt()]

    model = Call(lambda self, x: scan(step, [torch.zeros(1)], [x], [x.clone()])[1])
    exported(model, (torch.tensor([[1.0, 2, 3, -1], [4, 5, 6, -1], [7, 8, 9, -1]]),))


def test_distances_by_a_scan_at_any_size():
    class Distances(nn.Module):
        def forward(self, x, y):
            def step(rows, row):
                return [rows.clone(), (rows - row.reshape(1, -1)).pow(2).sum(1).sqrt()]

            return scan(step, [y], [x])[1]

    width = Dim("width")
    shapes = ({0: Dim("x_rows"), 1: width}, {0: Dim("y_rows"), 1: width})
    program = exported(Distances(), (torch.randn(3, 4), torch.randn(5, 4)), dynamic_shapes=shapes)
    agree(program, Distances(), torch.randn(6, 2), torch.randn(2, 2))


# ---------------------------------------------------------------- what Python does besides


def test_logging_and_printing_leave_no_trace():
    def forward(self, x):
        logger.info("seen")
        print("seen")
        return x + 1

    assert ops(exported(Call(forward), (torch.tensor(1),))) == {"Add": 1}


def test_transformers_logs_once():
    transformers = pytest.importorskip("transformers")
    log = transformers.utils.logging.get_logger(__name__)

    def forward(self, x):
        log.warning_once("seen")
        return x + 1

    assert ops(exported(Call(forward), (torch.tensor(1),))) == {"Add": 1}


def test_an_assertion_has_no_result():
    def forward(self, x):
        torch.ops.aten._assert_async.msg(torch.tensor(True), "never")
        return x + x

    assert ops(exported(Call(forward), torch.randn(2))) == {"Add": 1}


@pytest.mark.parametrize("persistent", [True, False])
def test_a_buffer_that_is_written(persistent):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.tensor(4.0), persistent=persistent)

        def forward(self, x, b):
            self.count.add_(1.0)
            return x + b

    dim = Dim("dim")
    args = (torch.rand(3, 3), torch.randn(3, 3))
    with pytest.warns(atonnx.errors.OnnxExporterWarning, match="count"):
        program = exported(Counting(), args, dynamic_shapes=({0: dim}, {0: dim}))
    agree(program, Counting(), torch.rand(4, 3), torch.randn(4, 3))
    with_state = exported(Counting(), args, state="io")
    assert len(with_state.model.graph.outputs) == 2


# ---------------------------------------------------------------- dtypes


FLOAT8 = ["float8_e5m2", "float8_e5m2fnuz", "float8_e4m3fn", "float8_e4m3fnuz"]


@pytest.mark.parametrize("name", FLOAT8)
def test_float8(name):
    program = atonnx.export(Call(lambda self, x: x.to(getattr(torch, name))).eval(), (torch.randn(1, 2),))
    assert program.model.graph.outputs[0].dtype == ir.DataType[name.replace("_", "").upper()]
    assert program.call_reference(torch.ones(1, 2))[0].float().tolist() == [[1.0, 1.0]]


def test_float4_is_refused_as_a_dtype():
    class Packed(nn.Module):
        def forward(self):
            return torch.empty([1], dtype=torch.float4_e2m1fn_x2)

    with pytest.raises(atonnx.OnnxExporterError, match="float4_e2m1fn_x2"):
        atonnx.export(Packed().eval())


def test_bfloat16_weights_and_constants():
    def forward(self, x):
        return x * torch.tensor(1.0, dtype=torch.bfloat16) * self.weight

    model = Call(forward, weight=nn.Parameter(torch.tensor(2.0, dtype=torch.bfloat16)))
    graph = atonnx.export(model.eval(), (torch.ones(2, dtype=torch.bfloat16),), optimize=False).model.graph
    values = (*graph.inputs, *graph.initializers.values(), *graph.outputs)
    assert len(values) == 4 and {v.dtype for v in values} == {ir.DataType.BFLOAT16}


def test_a_complex_constant():
    x = torch.tensor([[1.0 + 2.0j, 3.0 + 4.0j], [5.0 + 6.0j, 7.0 + 8.0j]])
    program = exported(Call(lambda self, x: torch.ops.aten.mul(x, 2 + 3j)), (x,))
    torch.testing.assert_close(program(x)[0], torch.view_as_real(x * (2 + 3j)))


def test_a_power_of_half_precision_needs_no_cast():
    model = Call(lambda self, x: x**2.0)
    assert not ops(exported(model, (torch.tensor([1.0, 2.0, 3.0], dtype=torch.float16),)))["Cast"]


# ---------------------------------------------------------------- operators


def test_a_view_of_attention_that_is_transposed():
    class Attend(nn.Module):
        def forward(self, q, k, v):
            return nn.functional.scaled_dot_product_attention(q, k, v).transpose(0, 1).view(2, 4, 24)

    exported(Attend(), tuple(torch.rand(4, 2, 6, 4, dtype=torch.float16) for _ in range(3)))


def test_what_is_not_filled_has_a_shape():
    program = atonnx.export(
        Call(lambda self, x: torch.empty(x.size(), dtype=torch.int64)).eval(), (torch.ones(1, 2),)
    )
    assert names(program)["empty"] == [1, 2]


def test_one_result_of_two():
    exported(Call(lambda self, x: torch.topk(x, 3)[0].sum()), (torch.arange(1.0, 6.0, requires_grad=True),))


def test_a_distribution_is_sampled():
    class Normal(nn.Module):
        def __init__(self):
            self.normal = torch.distributions.Normal(0, 1)
            super().__init__()

        def forward(self, x):
            return self.normal.sample(x.shape)

    with torch.no_grad():
        program = atonnx.export(torch.export.export(Normal(), (torch.randn(2),), strict=False))
    assert program(torch.randn(2))[0].shape == (2,)


def test_gelu_at_the_opset_that_has_it():
    model, x = nn.GELU(approximate="tanh"), (torch.randn(1, 3, 4, 4),)
    assert ops(exported(model, x, opset_version=20)) == {"Gelu": 1}
    old = ops(exported(model, x, opset_version=18))
    assert old["Tanh"] and not old["Gelu"]


def test_group_norm_at_opset_21():
    model = Call(lambda self, x: nn.functional.group_norm(x, 4))
    for target in ("portable", "onnxruntime"):
        program = atonnx.export(model.eval(), (torch.randn(1, 4, 4, 4),), opset_version=21, target=target)
        assert target != "portable" or ops(program)["GroupNormalization"]


def test_attention_at_opset_23():
    class Attend(nn.Module):
        def __init__(self, **options):
            super().__init__()
            self.options = options

        def forward(self, q, k, v):
            return nn.functional.scaled_dot_product_attention(q, k, v, **self.options)

    q, k = torch.randn(2, 4, 8, 16), torch.randn(2, 2, 8, 16)
    assert ops(exported(Attend(), (q, q, q), opset_version=23)) == {"Attention": 1}
    assert ops(exported(Attend(enable_gqa=True), (q, k, k), opset_version=23)) == {"Attention": 1}
    dropped = atonnx.export(Attend(enable_gqa=True, dropout_p=0.1).eval(), (q, k, k), opset_version=23)
    assert dropped(q, k, k)[0].shape == q.shape


@pytest.mark.parametrize("normalized", [[3], [7, 3]])
@pytest.mark.parametrize("options", [{}, {"eps": 1e-5}, {"weight": True}], ids=str)
def test_rms_norm_at_opset_23(normalized, options):
    weight = nn.Parameter(torch.rand(normalized)) if "weight" in options else None
    model = Call(
        lambda self, x: nn.functional.rms_norm(x, normalized, self.weight, options.get("eps")), weight=weight
    )
    exported(model, (torch.randn(2, 5, 7, 3),), opset_version=23)
