"""The CTC loss against eager torch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import testing as kit

aten = torch.ops.aten


@given(
    opset=kit.opsets(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    lengths=st.lists(st.tuples(st.integers(3, 6), st.integers(0, 3)), min_size=1, max_size=3),
    flat=st.booleans(),
    blank=st.sampled_from([0, 2]),
    reduction=st.integers(0, 2),
    zero=st.booleans(),
    seed=st.integers(0, 9),
)
def test_ctc_loss(opset, dtype, lengths, flat, blank, reduction, zero, seed):
    torch.manual_seed(seed)
    scores = torch.randn(6, len(lengths), 4, dtype=dtype).log_softmax(2)
    steps, labels = ([pair[i] for pair in lengths] for i in (0, 1))
    # Labels are never the blank; the same one twice asks for a step more.
    targets = (torch.randint(0, 3, (len(lengths), 3)) + blank + 1) % 4
    if flat:
        targets = torch.cat([row[:n] for row, n in zip(targets, labels, strict=True)])
        if not targets.numel():
            return
    kit.check_op(
        aten.ctc_loss.IntList,
        *(scores, targets, steps, labels, blank, reduction, zero),
        opset=opset,
        dynamic=False,
        atol=1e-4,
        rtol=1e-4,
    )


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_a_module_with_dynamic_batch_and_time(run, reduction):
    class Loss(torch.nn.Module):
        def forward(self, scores, targets, steps, labels):
            return torch.nn.functional.ctc_loss(
                scores.log_softmax(2), targets, steps, labels, reduction=reduction
            )

    auto = torch.export.Dim.DYNAMIC
    args, *others = [
        (torch.randn(t, n, 5), torch.randint(1, 5, (n, s)), torch.full((n,), t - 1), torch.full((n,), s))
        for t, n, s in ((8, 2, 3), (9, 3, 2), (12, 4, 4))
    ]
    run(Loss(), args, ({0: auto, 1: auto}, {0: auto, 1: auto}, {0: auto}, {0: auto}), others, None)
