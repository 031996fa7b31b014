"""Real architectures, small, with random weights: right in ONNX Runtime at two sizes and two opsets."""

from __future__ import annotations

import copy

import onnx
import pytest
import torch
from torch import nn
from torch.export import Dim

import atonnx

DYN = Dim.DYNAMIC
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


def images(model):
    return model, ((torch.randn(2, 3, 64, 64),), {}), ((torch.randn(3, 3, 64, 64),), {}), ({0: DYN},)


def vision(name):
    torchvision = pytest.importorskip("torchvision")
    return images(getattr(torchvision.models, name)(weights=None))


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


def bert():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40
    )
    shapes = {"input_ids": TEXT, "attention_mask": TEXT}
    return transformers.BertModel(config), text(60, 2, 7), text(60, 3, 5), shapes


def _gpt2(**options):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=60, n_positions=64, n_embd=32, n_layer=2, n_head=4, **options)
    return transformers.GPT2LMHeadModel(config)


def gpt2():
    shapes = {"input_ids": TEXT, "attention_mask": TEXT}
    return _gpt2(use_cache=False), text(60, 2, 7), text(60, 3, 5), shapes


def step(batch, new, past, heads, head_dim, vocabulary=60):
    ids = torch.randint(0, vocabulary, (batch, new))
    mask = torch.ones(batch, past + new, dtype=torch.int64)
    state = [[torch.randn(batch, heads, past, head_dim) for _ in range(2)] for _ in range(2)]
    return ids, mask, state


def gpt2_cache():
    model = _gpt2()
    from transformers import DynamicCache

    def inputs(batch, new, past):
        ids, mask, state = step(batch, new, past, 4, 8)
        cache = DynamicCache()
        for layer, (key, value) in enumerate(state):
            cache.update(key, value, layer)
        return (), {"input_ids": ids, "attention_mask": mask, "past_key_values": cache}

    layers = [{0: DYN, 2: DYN}] * 2
    shapes = {"input_ids": TEXT, "attention_mask": TEXT, "past_key_values": [layers, layers]}
    return model, inputs(2, 3, 6), inputs(3, 2, 4), shapes


def llama():
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=60,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    shapes = {
        "input_ids": TEXT,
        "attention_mask": TEXT,
        "past": [[{0: DYN, 2: DYN}] * 2 for _ in range(2)],
    }
    model = Decoder(transformers.LlamaForCausalLM(config))
    return model, (step(2, 3, 6, 2, 8), {}), (step(3, 2, 4, 2, 8), {}), shapes


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


def leaves(tree):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_right_at_two_sizes_and_opsets(name):
    torch.manual_seed(0)
    model, one, two, shapes = MODELS[name]()
    model = model.eval()
    for opset in (None, 13):
        args, kwargs = copy.deepcopy(one)
        program = atonnx.export(model, args, kwargs=kwargs, dynamic_shapes=shapes, opset_version=opset)
        proto = program.model_proto
        onnx.checker.check_model(proto, full_check=True)
        assert {o.domain: o.version for o in proto.opset_import} == {"": opset or 20}
        for args, kwargs in (one, two):
            with torch.no_grad():
                expected = leaves(model(*copy.deepcopy(args), **copy.deepcopy(kwargs)))
            got = program(*copy.deepcopy(args), **copy.deepcopy(kwargs))
            assert len(got) == len(expected)
            for a, b in zip(got, expected, strict=True):
                scale = max(1.0, b.abs().max().item())
                torch.testing.assert_close(a, b, atol=1e-4 * scale, rtol=0)
