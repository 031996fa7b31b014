"""``InputObserver`` with models of transformers, small ones made from their configurations."""

from __future__ import annotations

import inspect

import pytest
import torch

import atonnx

transformers = pytest.importorskip("transformers")

DYNAMIC = torch.export.Dim.DYNAMIC
BOTH = {0: DYNAMIC, 1: DYNAMIC}
CACHED = {0: DYNAMIC, 2: DYNAMIC}
GENERATION = {"bos_token_id": 0, "eos_token_id": None, "pad_token_id": None}


def gpt2():
    config = transformers.GPT2Config(
        n_layer=2, n_head=2, n_embd=16, vocab_size=50, n_positions=64, **GENERATION
    )
    return transformers.GPT2LMHeadModel(config).eval()


def llama():
    config = transformers.LlamaConfig(
        num_hidden_layers=2,
        hidden_size=16,
        intermediate_size=32,
        num_attention_heads=2,
        num_key_value_heads=1,
        vocab_size=50,
        **GENERATION,
    )
    return transformers.LlamaForCausalLM(config).eval()


def checked(observer, model, **options):
    """The program of a model as it was observed, whose results are the observed ones."""
    args, kwargs = observer.infer_arguments(as_args_kwargs=True)
    shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True)
    program = atonnx.export(model, args, kwargs=kwargs, dynamic_shapes=shapes, **options)
    rows = observer.check_discrepancies(program)
    assert [row.get("error") for row in rows] == [None] * observer.num_obs()
    return program, rows


def test_I7_I26_bert():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    model = transformers.BertModel(config).eval()
    observer = atonnx.InputObserver()
    with observer(model):
        for shape in ((2, 5), (3, 7)):
            model(torch.randint(0, 50, shape), attention_mask=torch.ones(shape, dtype=torch.int64))
    assert observer.infer_dynamic_shapes() == {"input_ids": BOTH, "attention_mask": BOTH}
    checked(observer, model)


@pytest.mark.skipif(
    torch.__version__.startswith("2.13"), reason="its torch.export takes no dynamic shapes for **kwargs"
)
@pytest.mark.parametrize("make", [gpt2, llama])
def test_I9_I11_I14_generation_with_a_cache(make):
    """The first call has an empty cache, the others the one that the call before filled."""
    torch.manual_seed(0)
    model = make()
    observer = atonnx.InputObserver()
    with observer(model):
        model.generate(torch.tensor([[1, 2, 3]]), max_new_tokens=4, do_sample=False)
    shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True)
    assert shapes["input_ids"] == BOTH
    (cache,) = (
        name
        for name, value in observer.infer_arguments().items()
        if isinstance(value, transformers.DynamicCache)
    )
    assert shapes[cache] == [[CACHED, CACHED], [CACHED, CACHED]]
    filled = observer.infer_arguments(0)[cache]
    assert filled.layers[1].keys.shape[2] == 0
    _, rows = checked(observer, model)
    assert (rows[0]["n_none"], rows[1]["n_none"]) == (4, 0)


class Captioner(torch.nn.Module):
    """A language model that is shown an image in the first call only."""

    def __init__(self):
        super().__init__()
        self.language = llama()
        self.vision = torch.nn.Linear(12, 16)

    def forward(self, input_ids, pixel_values=None, past_key_values=None):
        embeds = self.language.get_input_embeddings()(input_ids)
        if pixel_values is not None:
            embeds = embeds + self.vision(pixel_values.flatten(1)).sum(0)
        parameters = inspect.signature(self.language.forward).parameters
        name = "cache" if "cache" in parameters else "past_key_values"
        result = self.language(inputs_embeds=embeds, use_cache=True, **{name: past_key_values})
        return result.logits, result[1]


def test_I23_an_image_in_the_first_call_only():
    torch.manual_seed(0)
    model = Captioner().eval()
    observer = atonnx.InputObserver({"pixel_values": torch.empty(0, 3, 4)})
    with observer(model), torch.no_grad():
        cache = transformers.DynamicCache(config=model.language.config)
        model(input_ids=torch.tensor([[1, 2, 3]]), pixel_values=torch.randn(1, 3, 4), past_key_values=cache)
        for token in (4, 5):
            model(input_ids=torch.tensor([[token]]), past_key_values=cache)
    shapes = observer.infer_dynamic_shapes(set_batch_dimension_for=True)
    assert shapes["pixel_values"] == {0: DYNAMIC}
    assert observer.infer_arguments(1)["pixel_values"].shape == (0, 3, 4)
    checked(observer, model)
