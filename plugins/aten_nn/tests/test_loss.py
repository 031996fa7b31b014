"""Losses against eager torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten
REDUCTIONS = st.integers(0, 2)
FLOATS = st.sampled_from([torch.float32, torch.float32, torch.float64])
REST = st.sampled_from([(), (3,), (2, 3)])


@st.composite
def classified(draw, unbatched=True):
    """Scores, targets (some ignored), weights of the classes or none, and the ignored number."""
    dtype, rest, n = draw(FLOATS), draw(REST), draw(st.integers(1, 4))
    ignored = draw(st.sampled_from([-100, 1]))
    shape = (n, 5, *rest)
    target = torch.randint(0, 5, (n, *rest), generator=torch.Generator().manual_seed(n))
    if draw(st.booleans()):
        target.view(-1)[0] = ignored
    scores = kit.make_tensor(dtype, shape, 1).clamp(-9, 9)
    if unbatched and not rest and draw(st.booleans()):
        scores, target = scores[0], target[0]
    weight = kit.Weight(torch.rand(5, dtype=dtype) + 0.5) if draw(st.booleans()) else None
    return scores, target, weight, ignored


@given(opset=kit.opsets(), call=classified(), reduction=REDUCTIONS)
def test_negative_log_likelihood(opset, call, reduction):
    scores, target, weight, ignored = call
    arguments = (scores, target, weight, reduction, ignored)
    kit.check_op(aten.nll_loss_nd.default, *arguments, opset=opset, atol=1e-5)


@given(opset=kit.opsets(), call=classified(), reduction=st.integers(1, 2))
def test_its_weights(opset, call, reduction):
    scores, target, weight, ignored = call
    overload = aten.nll_loss_forward.default if scores.dim() < 3 else aten.nll_loss2d_forward.default
    if scores.dim() in (1, 2, 4):
        kit.check_op(overload, scores, target, weight, reduction, ignored, opset=opset, atol=1e-5)


@given(
    opset=kit.opsets(),
    call=classified(),
    reduction=REDUCTIONS,
    smoothing=st.sampled_from([0.0, 0.0, 0.1, 1.0]),
)
def test_cross_entropy(opset, call, reduction, smoothing):
    scores, target, weight, ignored = call
    arguments = (scores, target, weight, reduction, ignored, smoothing)
    kit.check_op(aten.cross_entropy_loss.default, *arguments, opset=opset, atol=1e-5, rtol=1e-4)


@given(
    opset=kit.opsets(), call=classified(), reduction=REDUCTIONS, smoothing=st.sampled_from([0.0, 0.1, 1.0])
)
def test_cross_entropy_of_probabilities(opset, call, reduction, smoothing):
    scores, _, weight, _ = call
    target = torch.rand_like(scores)
    arguments = (scores, target, weight, reduction, -100, smoothing)
    kit.check_op(aten.cross_entropy_loss.default, *arguments, opset=opset, atol=1e-4, rtol=1e-4)


@given(
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.int64, torch.uint8]),
    shapes=kit.broadcastable(3),
    margin=st.sampled_from([0.0, 0.5, 2.0]),
    reduction=REDUCTIONS,
)
def test_margin_ranking(opset, dtype, shapes, margin, reduction):
    x, y, z = (kit.make_tensor(dtype, shape, n) for n, shape in enumerate(shapes))
    arguments = (x, y, z.sign(), margin, reduction)
    kit.check_op(aten.margin_ranking_loss.default, *arguments, opset=opset, atol=1e-5, rtol=1e-4)


@given(
    opset=kit.opsets(),
    dtype=FLOATS,
    shape=kit.shapes(max_rank=3),
    margin=st.sampled_from([0.0, 0.5, 2.0]),
    reduction=REDUCTIONS,
)
def test_hinge_embedding(opset, dtype, shape, margin, reduction):
    x = kit.make_tensor(dtype, shape, 1)
    target = torch.where(kit.make_tensor(torch.bool, shape, 2), 1, -1).to(dtype)
    arguments = (x, target, margin, reduction)
    kit.check_op(aten.hinge_embedding_loss.default, *arguments, opset=opset, atol=1e-5, rtol=1e-4)


@given(
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    shape=kit.shapes(min_rank=1, max_rank=2, min_side=1),
    reduction=st.integers(0, 2),
    seed=st.integers(0, 99),
)
def test_multilabel_margins(opset, dtype, shape, reduction, seed):
    drawn = torch.Generator().manual_seed(seed)
    reduction = reduction if len(shape) == 2 else max(reduction, 1)
    x = torch.randn(shape, dtype=dtype, generator=drawn)
    target = torch.randint(-1, shape[-1], shape, generator=drawn)
    kit.check_op(torch.ops.aten.multilabel_margin_loss.default, x, target, reduction, opset=opset)
    kit.check_op(torch.ops.aten.multilabel_margin_loss_forward.default, x, target, reduction, opset=opset)
