"""flex_attention: scores and masks that are functions of the model, static and dynamic."""

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

DYNAMIC = torch.export.Dim.DYNAMIC


class Flex(torch.nn.Module):
    def __init__(self, score, mask, known=True):
        super().__init__()
        self.slopes = torch.nn.Parameter(torch.rand(4))
        self.documents = torch.nn.Buffer(torch.tensor([0, 0, 0, 1, 1, 1, 2, 2]))
        self.score = SCORES[score]
        self.mask = MASKS[mask]
        self.known = known
        self.block = self._block(2, 8) if known else None

    def _block(self, batch, length):
        def mask(b, h, i, j):
            return self.mask(self, b, h, i, j)

        return create_block_mask(mask, batch, None, length, length, device="cpu")

    def forward(self, q, k, v):
        block = self.block if self.known else self._block(q.shape[0], q.shape[2])

        def score(s, b, h, i, j):
            return self.score(self, s, b, h, i, j)

        return flex_attention(q, k, v, score, block, enable_gqa=True, return_lse=True)


SCORES = {
    "plain": lambda self, s, b, h, i, j: s,
    "slopes": lambda self, s, b, h, i, j: s + (j - i) * self.slopes[h],
    "capped": lambda self, s, b, h, i, j: 3 * torch.tanh(s / 3),
    "summed": lambda self, s, b, h, i, j: s * self.slopes.sum() + torch.stack([s, s]).sum(),
}
MASKS = {
    "causal": lambda self, b, h, i, j: i >= j,
    "documents": lambda self, b, h, i, j: self.documents[i] == self.documents[j],
    "none in a row": lambda self, b, h, i, j: i > j,
}


def qkv(batch=2, length=8, heads=4):
    return tuple(torch.randn(batch, h, length, 16) for h in (4, heads, heads))


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("mask", MASKS)
def test_scores_and_masks(score, mask, run):
    run(Flex(score, mask), qkv(), None, [qkv()], 20)


@pytest.mark.parametrize("opset", [11, 23])
def test_shared_heads_at_other_opsets(opset, run):
    run(Flex("slopes", "causal"), qkv(heads=2), None, [qkv(heads=2)], opset)


def test_a_mask_that_the_model_makes(run):
    run(Flex("slopes", "documents", known=False), qkv(), None, [qkv()], 20)


def test_a_dynamic_batch_and_length(run):
    class Biased(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.slopes = torch.nn.Parameter(torch.rand(4))

        def forward(self, q, k, v):
            return flex_attention(q, k, v, lambda s, b, h, i, j: s + (j - i) * self.slopes[h])

    axes = {0: DYNAMIC, 2: DYNAMIC}
    run(Biased(), qkv(), (axes, axes, axes), [qkv(3, 5), qkv(1, 12)], 20)
