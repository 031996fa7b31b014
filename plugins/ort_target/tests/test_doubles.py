"""Doubles are computed as exactly as eager torch does, by operators that have a kernel."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

SPECIAL = [
    0.0,
    -0.0,
    1e-9,
    -1e-9,
    1e-300,
    0.3,
    -0.3,
    0.5,
    1.0,
    -1.0,
    1.5,
    -2.0,
    3.0,
    5.9,
    -6.1,
    40.0,
    -40.0,
    709.9,
    -709.9,
]
FAR = [1e10, -1e10, 1e200, -1e200, np.inf, -np.inf, np.nan]
UNIT = [0.0, -0.0, *np.linspace(-1, 1, 41), 1e-9, -1e-9, 1e-300, np.nan, 1.5]

ALL = [*SPECIAL, *FAR, *np.random.default_rng(0).standard_normal(60) * 3]

CASES = {
    "Acos": (torch.acos, UNIT, {}),
    "Acosh": (torch.acosh, [1.0, 1 + 1e-9, 1.3, 2.0, 50.0, 1e200, np.inf, np.nan, 0.5], {}),
    "Asin": (torch.asin, UNIT, {}),
    "Asinh": (torch.asinh, ALL, {}),
    "Atan": (torch.atan, [*ALL, 1e29, 1e31, 1e38, 1e39, -1e39], {}),
    "Atanh": (torch.atanh, UNIT, {}),
    "Cosh": (np.cosh, [*ALL, 710.2], {}),
    "Elu": (lambda x: F.elu(x, 0.7), ALL, {"alpha": 0.7}),
    "Erf": (torch.erf, [*ALL, *np.linspace(-7, 7, 301)], {}),
    "Gelu": (F.gelu, SPECIAL, {}),
    "HardSigmoid": (F.hardsigmoid, ALL, {"alpha": 1 / 6}),
    "HardSwish": (F.hardswish, SPECIAL, {}),
    "LeakyRelu": (F.leaky_relu, ALL, {}),
    "Mish": (F.mish, SPECIAL, {}),
    "Selu": (F.selu, ALL, {}),
    "Sinh": (np.sinh, [*ALL, 710.2], {}),
    "Softplus": (F.softplus, ALL, {}),
    "Softsign": (F.softsign, ALL, {}),
    "Tan": (torch.tan, SPECIAL, {}),
    "ThresholdedRelu": (lambda x: F.threshold(x, 0.7, 0.0), SPECIAL, {"alpha": 0.7}),
}
SINCE = {"Gelu": 20, "HardSwish": 14, "Mish": 18}


@pytest.mark.parametrize("name", CASES)
def test_a_double_is_as_exact_as_eager_at_every_opset(legalized, name):
    eager, numbers, attrs = CASES[name]
    x = np.array(numbers)
    expected = np.asarray(eager(torch.from_numpy(x)))
    for opset in {max(11, SINCE.get(name, 0)), 17, 18, 20, 23}:
        if opset < SINCE.get(name, 0):
            continue
        made = legalized(lambda op, x: getattr(op, name)(x, **attrs), {"x": x}, opset, "onnxruntime")
        assert not made.warnings
        (found,) = made.run()
        assert found.dtype == np.float64
        # Kernels and functions of ONNX Runtime's own have the attribute as a float of 32 bits.
        rtol = 4e-15 if set(made.ops()) != {name} else 1e-6
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-15, err_msg=f"opset {opset}")
        np.testing.assert_array_equal(np.signbit(found)[x == 0], np.signbit(expected)[x == 0])


def test_doubles_that_have_a_kernel_stay_as_they_are(legalized):
    made = legalized(lambda op, x: op.Exp(op.Add(x, x)), {"x": np.ones(3)}, 20, "onnxruntime")
    assert made.ops() == made.before


@pytest.mark.parametrize("opset", [13, 21, 25])
def test_hardmax_and_mean_variance_normalization_of_doubles(legalized, opset):
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 2))
    x[0, 1, 2] = x[0, 0, 2]  # of equal ones the first is the largest
    made = legalized(lambda op, x: op.Hardmax(x, axis=1), {"x": x}, opset, "onnxruntime")
    expected = np.arange(3)[:, None, None] == x.argmax(1)[:, None]
    np.testing.assert_array_equal(made.run()[0], expected.astype(np.float64))
    made = legalized(lambda op, x: op.MeanVarianceNormalization(x), {"x": x}, opset, "onnxruntime")
    expected = (x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True)
    np.testing.assert_allclose(made.run()[0], expected, rtol=1e-8)
