"""What holds during capture, and that nothing of it is left."""

import sys

import pytest
import torch
import torch.utils._pytree as pytree

import atonnx
from atonnx.errors import CaptureError
from atonnx_aten_nn import capture_patches as patches

aten = torch.ops.aten
PATCHED = (
    aten.lstm.input,
    aten.gru.input,
    aten.rnn_tanh.input,
    aten.lstm.data,
)
REPLACED = (
    (torch._VF, "_pack_padded_sequence"),
    (torch._VF, "_pad_packed_sequence"),
    (torch.nn.LSTM, "check_forward_args"),
    (torch.nn.AdaptiveLogSoftmaxWithLoss, "forward"),
)


def kernels():
    found = [dict(overload.py_kernels) for overload in PATCHED]
    return [*found, *(vars(owner).get(name) for owner, name in REPLACED)]


def test_kernels_are_as_before_after_an_export():
    before = kernels()
    atonnx.export(torch.nn.LSTM(3, 4).eval(), (torch.randn(5, 2, 3),))
    assert kernels() == before


def test_kernels_are_as_before_after_a_failure():
    class Fails(torch.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    before = kernels()
    with pytest.raises(CaptureError):
        atonnx.export(Fails().eval(), (torch.randn(2),))
    assert kernels() == before


def test_real_tensors_are_computed_while_the_patches_are_active():
    layer, x = torch.nn.LSTM(3, 4).eval(), torch.randn(5, 2, 3)
    with torch.no_grad():
        expected = layer(x)[0]
        with patches.whole_recurrent_layers():
            got = layer(x)[0]
    torch.testing.assert_close(got, expected)


def test_real_sequences_are_packed_while_the_patches_are_active():
    x, lengths = torch.randn(5, 2, 3), torch.tensor([4, 2])
    expected = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
    with patches.packed_sequences():
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
        again, _ = torch.nn.utils.rnn.pad_packed_sequence(packed)
    torch.testing.assert_close(packed.data, expected.data)
    torch.testing.assert_close(again[:2], x[:2])


def test_caches_are_left_alone_where_transformers_is_not_in_use(monkeypatch):
    monkeypatch.delitem(sys.modules, "transformers.cache_utils", raising=False)
    before = set(pytree.SUPPORTED_NODES)
    with patches.transformers_caches():
        assert set(pytree.SUPPORTED_NODES) == before


def test_a_cache_is_taken_apart_from_the_first_capture_on():
    cache_utils = pytest.importorskip("transformers.cache_utils")
    with patches.transformers_caches():
        assert cache_utils.DynamicCache in pytree.SUPPORTED_NODES
    assert cache_utils.DynamicCache in pytree.SUPPORTED_NODES


def test_circular_padding_of_a_dynamic_size_that_also_cuts(run):
    class Padded(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.pad(x, (-1, 2, 1, -2), mode="circular")

    axes = dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)
    run(Padded(), (torch.randn(2, 3, 6, 7),), (axes,), [(torch.randn(1, 3, 5, 6),)], 20)


@pytest.mark.parametrize("variance", [(4, 3), (4,), (4, 1)])
@pytest.mark.parametrize("options", [{}, {"full": True, "reduction": "none"}, {"reduction": "sum"}])
def test_a_gaussian_loss_with_any_variance(variance, options, run):
    class Loss(torch.nn.Module):
        def forward(self, x, y, var):
            return torch.nn.functional.gaussian_nll_loss(x, y, var, **options)

    run(Loss(), (torch.randn(4, 3), torch.randn(4, 3), torch.rand(variance)), None, [], 20)


def test_the_best_classes_of_an_adaptive_softmax(run):
    class Predicts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10])

        def forward(self, x):
            return self.layer.predict(x)

    sizes = ({0: torch.export.Dim.DYNAMIC},)
    run(Predicts(), (torch.randn(40, 8),), sizes, [(torch.randn(7, 8),)], 20)
