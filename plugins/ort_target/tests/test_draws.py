"""Random numbers at opsets of which ONNX Runtime has a kernel for Dropout only."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch.export import Dim

import atonnx
from atonnx.errors import OnnxExporterWarning

COUNT = 4000


class Draws(torch.nn.Module):
    def forward(self, x):
        return {
            "uniform": torch.rand(COUNT, dtype=x.dtype),
            "uniform_like": torch.rand_like(x) * 2 - 3,
            "normal": torch.randn(COUNT, dtype=x.dtype),
            "normal_like": torch.normal(x * 5, 2.0),
            "bernoulli": torch.bernoulli(torch.full_like(x, 0.3)),
            "scalar": torch.randn((), dtype=x.dtype),
            "nothing": torch.rand(0, 3, dtype=x.dtype),
        }


@pytest.mark.parametrize("opset", [21, 22, 28])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dynamic", [False, True])
def test_they_have_the_distribution_asked_for_and_are_drawn_in_each_run(opset, dtype, dynamic):
    x = torch.ones(COUNT, dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OnnxExporterWarning)
        shapes = ({0: Dim.DYNAMIC},) if dynamic else None
        program = atonnx.export(Draws().eval(), (x,), opset_version=opset, dynamic_shapes=shapes)
    assert program.model.opset_imports == {"": opset}
    names = list(Draws()(x))
    one, two = (dict(zip(names, program(x), strict=True)) for _ in range(2))
    for name in names[:-1]:
        assert one[name].dtype == dtype
        assert not torch.equal(one[name], two[name]), name
    for name, low, high in (("uniform", 0, 1), ("uniform_like", -3, -1)):
        drawn = one[name].double()
        assert low <= drawn.min() and drawn.max() <= high
        share = np.histogram(drawn, 8, (low, high))[0] / COUNT
        assert abs(share - 1 / 8).max() < 0.03
    for name, mean, scale in (("normal", 0, 1), ("normal_like", 5, 2)):
        drawn = (one[name].double() - mean) / scale
        assert abs(drawn.mean()) < 0.1 and abs(drawn.std() - 1) < 0.1
        assert abs((drawn.abs() < 1).double().mean() - 0.6827) < 0.04
    assert abs(one["bernoulli"].mean() - 0.3) < 0.04
    assert one["scalar"].shape == () and one["nothing"].shape == (0, 3)


def test_numbers_of_one_draw_do_not_depend_on_each_other(legalized):
    x = np.zeros((2, COUNT), np.float32)
    made = legalized(lambda op, x: op.RandomUniformLike(x), {"x": x}, 23, "onnxruntime")
    assert not made.warnings
    (drawn,) = made.run()
    assert abs(np.corrcoef(drawn)[0, 1]) < 0.06
    assert abs(np.corrcoef(drawn[0, 1:], drawn[0, :-1])[0, 1]) < 0.06


def test_a_seed_is_kept(legalized):
    x = np.zeros(5, np.float32)
    made = legalized(lambda op, x: op.RandomNormalLike(x, seed=3.0), {"x": x}, 23, "onnxruntime")
    np.testing.assert_array_equal(made.run()[0], made.run()[0])
