"""Real architectures with random weights: right in ONNX Runtime at two sizes and six opsets.

Small ones, and those of the usual size in `make test-all`; each as it is, and with a user's function inside.
"""

from __future__ import annotations

import copy

import onnx
import pytest
import torch
from onnxscript import FLOAT, opset15, script, values
from torch import nn
from torch.export import Dim

import atonnx

aten = torch.ops.aten
DYN = Dim.DYNAMIC
OPSETS = (11, 13, 17, 23, 26)
TEXT = {0: DYN, 1: DYN}


class Mlp(nn.Module):
    """A tensor, a dict and a list."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 16), nn.Linear(4, 16), nn.Linear(4, 16)
        self.body = nn.Sequential(nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x, extra, rest):
        h = self.a(x) + self.b(extra["left"]) * torch.sigmoid(extra["right"])
        for item in rest:
            h = h + self.c(item)
        y = self.body(h)
        return {"logits": y, "probs": y.softmax(-1)}


class Tagger(nn.Module):
    """Embedding, two bidirectional recurrent layers, a label per token."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.rnn = nn.LSTM(8, 12, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(24, 5)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


class Decoder(nn.Module):
    """A causal language model whose cache goes in and out as plain lists."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, past):
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer, (key, value) in enumerate(past):
            cache.update(key, value, layer)
        out = self.model(
            input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True
        )
        return out.logits, [[layer.keys, layer.values] for layer in out.past_key_values.layers]


def mlp():
    def inputs(n):
        r = torch.randn
        return (r(n, 8), {"left": r(n, 4), "right": r(n, 1)}, [r(n, 4), r(n, 4)]), {}

    shapes = ({0: DYN}, {"left": {0: DYN}, "right": {0: DYN}}, [{0: DYN}, {0: DYN}])
    return Mlp(), inputs(3), inputs(5), shapes


def lstm_tagger():
    def inputs(batch, time):
        return (torch.randint(0, 50, (batch, time)),), {}

    return Tagger(), inputs(2, 6), inputs(3, 9), (TEXT,)


def images(model, side=64):
    one, two = (((torch.randn(batch, 3, side, side),), {}) for batch in (2, 3))
    return model, one, two, ({0: DYN},)


def vision(name, side=64):
    torchvision = pytest.importorskip("torchvision")
    model = getattr(torchvision.models, name)(weights=None)
    for module in model.modules():
        # Running statistics of 0 and 1 would hide a fault in what is made of them.
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return images(model, side)


def vit():
    torchvision = pytest.importorskip("torchvision")
    model = torchvision.models.VisionTransformer(
        image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=48
    )
    nn.init.normal_(model.heads.head.weight, std=0.1)
    return images(model)


def text(vocabulary, batch, length):
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, length - 2 :] = 0
    return (), {"input_ids": torch.randint(0, vocabulary, (batch, length)), "attention_mask": mask}


def bert(**sizes):
    transformers = pytest.importorskip("transformers")
    small = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.BertConfig(**(sizes or small | {"intermediate_size": 40}))
    shapes = {"input_ids": TEXT, "attention_mask": TEXT}
    return transformers.BertModel(config), text(60, 2, 7), text(60, 3, 5), shapes


def _gpt2(**options):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=60, n_positions=64, **options)
    return transformers.GPT2LMHeadModel(config)


SMALL_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4}


def gpt2(**sizes):
    shapes = {"input_ids": TEXT, "attention_mask": TEXT}
    return _gpt2(use_cache=False, **(sizes or SMALL_GPT2)), text(60, 2, 7), text(60, 3, 5), shapes


def step(batch, new, past, layers, heads, head_dim, vocabulary=60):
    ids = torch.randint(0, vocabulary, (batch, new))
    mask = torch.ones(batch, past + new, dtype=torch.int64)
    state = [[torch.randn(batch, heads, past, head_dim) for _ in range(2)] for _ in range(layers)]
    return ids, mask, state


def gpt2_cache(n_embd=32, n_layer=2, n_head=4):
    if torch.__version__.startswith("2.13"):
        pytest.skip("its torch.export takes no dynamic shapes for **kwargs")
    model = _gpt2(n_embd=n_embd, n_layer=n_layer, n_head=n_head)
    from transformers import DynamicCache

    def inputs(batch, new, past):
        ids, mask, state = step(batch, new, past, n_layer, n_head, n_embd // n_head)
        cache = DynamicCache()
        for layer, (key, value) in enumerate(state):
            cache.update(key, value, layer)
        return (), {"input_ids": ids, "attention_mask": mask, "past_key_values": cache}

    layers = [{0: DYN, 2: DYN}] * n_layer
    shapes = {"input_ids": TEXT, "attention_mask": TEXT, "past_key_values": [layers, layers]}
    return model, inputs(2, 3, 6), inputs(3, 2, 4), shapes


def llama(hidden_size=32, intermediate_size=48, layers=2, heads=4, kv_heads=2):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=60,
        hidden_size=hidden_size,
        intermediate_size=intermediate_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
    )
    shapes = {
        "input_ids": TEXT,
        "attention_mask": TEXT,
        "past": [[{0: DYN, 2: DYN}] * 2 for _ in range(layers)],
    }
    model = Decoder(transformers.LlamaForCausalLM(config))
    one, two = (step(*sizes, layers, kv_heads, hidden_size // heads) for sizes in ((2, 3, 6), (3, 2, 4)))
    return model, (one, {}), (two, {}), shapes


def vit_b_16():
    return vision("vit_b_16", 224)


MODELS = {
    "mlp": mlp,
    "lstm_tagger": lstm_tagger,
    "resnet18": lambda: vision("resnet18"),
    "mobilenet_v3_small": lambda: vision("mobilenet_v3_small"),
    "vit": vit,
    "bert": bert,
    "gpt2": gpt2,
    "gpt2_cache": gpt2_cache,
    "llama": llama,
}
LARGE = {
    "resnet50": lambda: vision("resnet50", 224),
    "mobilenet_v3_large": lambda: vision("mobilenet_v3_large", 224),
    "vit_b_16": vit_b_16,
    "bert_base": lambda: bert(vocab_size=1000),
    "gpt2_base": lambda: gpt2(n_embd=768, n_layer=12, n_head=12),
    "gpt2_cache_base": lambda: gpt2_cache(768, 12, 12),
    "llama_16l": lambda: llama(512, 1376, 16, 8, 4),
}
ALL = [*MODELS, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)]

users = values.Opset("test.models", 1)


@script(users)
def gelu(self: FLOAT[...], approximate: str = "none") -> FLOAT[...]:
    return opset15.Mul(self, opset15.Mul(0.5, opset15.Add(opset15.Erf(opset15.Mul(self, 0.70710678)), 1.0)))


@script(users)
def relu(self: FLOAT[...]) -> FLOAT[...]:
    return opset15.Max(self, opset15.CastLike(0.0, self))


@script(users)
def hardswish(self: FLOAT[...]) -> FLOAT[...]:
    return opset15.Div(opset15.Mul(self, opset15.Clip(opset15.Add(self, 3.0), 0.0, 6.0)), 6.0)


@script(users)
def tanh(self: FLOAT[...]) -> FLOAT[...]:
    return opset15.Sub(opset15.Mul(opset15.Sigmoid(opset15.Mul(self, 2.0)), 2.0), 1.0)


@script(users)
def silu(self: FLOAT[...]) -> FLOAT[...]:
    return opset15.Mul(self, opset15.Sigmoid(self))


@script(users)
def linear(input: FLOAT[...], weight: FLOAT[...], bias: FLOAT[...]) -> FLOAT[...]:
    return opset15.Add(opset15.Einsum(input, weight, equation="...i,oi->...o"), bias)


def users_function(name):
    """An operator of the model, and what a user has for it."""
    for part, operator, function in (
        ("resnet", aten.relu, relu),
        ("mobilenet", aten.hardswish, hardswish),
        ("gpt2", aten.tanh, tanh),
        ("llama", aten.silu, silu),
        ("lstm", aten.linear, linear),
    ):
        if part in name:
            return {operator.default: function}
    return {aten.gelu.default: gelu}


def leaves(tree):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def check(program, opset, sizes):
    """The model has the opset and, at each size, the results."""
    proto = program.model_proto
    onnx.checker.check_model(proto, full_check=True)
    assert {o.domain: o.version for o in proto.opset_import} == {"": opset}
    for args, kwargs, expected in sizes:
        got = program(*copy.deepcopy(args), **copy.deepcopy(kwargs))
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            scale = max(1.0, b.abs().max().item())
            torch.testing.assert_close(a, b, atol=1e-4 * scale, rtol=0)


@pytest.mark.parametrize("name", ALL)
def test_a_model_is_right_at_two_sizes_and_six_opsets_with_a_users_function_too(name):
    torch.manual_seed(0)
    model, one, two, shapes = (MODELS | LARGE)[name]()
    model = model.eval()
    sizes = []
    for args, kwargs in (one, two):
        with torch.no_grad():
            sizes.append((args, kwargs, leaves(model(*copy.deepcopy(args), **copy.deepcopy(kwargs)))))
    args, kwargs = copy.deepcopy(one)
    program = atonnx.export(model, args, kwargs=kwargs, dynamic_shapes=shapes)
    check(program, 20, sizes)
    captured, table = program.exported_program, users_function(name)
    for opset in OPSETS:
        check(atonnx.export(captured, opset_version=opset), opset, sizes)
        program = atonnx.export(captured, opset_version=opset, custom_translation_table=table)
        assert any(
            node.metadata_props.get("pkg.atonnx.plugin") == "custom_translation_table"
            for node in program.model.graph
        )
        check(program, opset, sizes)
