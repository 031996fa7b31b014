"""Versions that are said to be the same give the same numbers, each in its own form."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from lowered import build, numbers, run
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidGraph, NotImplemented

from atonnx.plugins import load

_X = np.array([[-2.5, -1.0, -0.5, 0.0], [0.5, 1.5, 2.5, np.nan], [np.inf, -np.inf, 3.0, 1e-3]], np.float32)
_UNIT = np.clip(np.nan_to_num(_X), -0.9, 0.9)
_MORE = np.clip(np.abs(np.nan_to_num(_X)), 0, 4) + np.float32(1)
_INT = np.array([[7, -7, 3], [2, 5, -1]])
_IMAGE = numbers((2, 4, 6, 6))
_TRUE = np.array([[True, False, True, False]] * 3)

# What each operator is called with: inputs, then attributes. A number of outputs goes by "outputs".
_CALLS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    **{
        name: ([_X], {})
        for name in """Abs Atan Ceil Cos Elu Erf Exp Floor HardSigmoid HardSwish Identity IsInf IsNaN
        LeakyRelu LpNormalization Mish Neg Round Selu Shape Sigmoid Sign Sin Size Softplus Softsign Tan Tanh
        Transpose ThresholdedRelu Flatten NonZero EyeLike""".split()
    },
    **{name: ([_UNIT], {}) for name in ("Acos", "Asin", "Atanh", "Asinh", "Cosh", "Sinh")},
    **{name: ([_MORE], {}) for name in ("Acosh", "Log", "Reciprocal", "Sqrt", "ReduceLogSum")},
    **{
        name: ([_X, _X[::-1].copy()], {})
        for name in """Add Div Mul Sub Max Min Mean Sum Equal Greater GreaterOrEqual Less LessOrEqual
        PRelu""".split()
    },
    **{
        name: ([_MORE], {"keepdims": 0})
        for name in """ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
        ReduceSumSquare""".split()
    },
    **{name: ([_IMAGE], {}) for name in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")},
    "ArgMax": ([_MORE], {"axis": 1}),
    "ArgMin": ([_MORE], {"axis": 1}),
    "AveragePool": ([_IMAGE], {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 1, 0, 1]}),
    "BatchNormalization": ([_IMAGE, *(numbers((4,), seed=i) for i in range(3)), np.ones(4, np.float32)], {}),
    "BitShift": ([np.array([4, 8], np.uint8), np.array([1, 3], np.uint8)], {"direction": "RIGHT"}),
    "Cast": ([_INT], {"to": ir.DataType.FLOAT}),
    "CastLike": ([_INT, _X], {}),
    "Celu": ([_X], {"alpha": 2.0}),
    "Clip": ([_X, np.float32(-1), np.float32(1)], {}),
    "Compress": ([_X, np.array([True, False, True])], {"axis": 0}),
    "Concat": ([_X, _X], {"axis": 1}),
    "ConstantOfShape": ([np.array([2, 3])], {}),
    "Conv": ([_IMAGE, numbers((6, 2, 3, 3))], {"group": 2, "pads": [1, 0, 1, 2], "strides": [2, 1]}),
    "ConvTranspose": ([_IMAGE, numbers((4, 3, 3, 3))], {"strides": [2, 2], "output_padding": [1, 0]}),
    "CumSum": ([_MORE, np.array(1)], {"reverse": 1}),
    "DepthToSpace": ([_IMAGE], {"blocksize": 2, "mode": "CRD"}),
    "DequantizeLinear": ([np.array([3, 200], np.uint8), np.float32(0.5), np.uint8(10)], {}),
    "Det": ([_IMAGE], {}),
    "Dropout": ([_X], {}),
    "Einsum": ([_MORE, _MORE], {"equation": "ij,kj->ik"}),
    "Expand": ([_X, np.array([2, 3, 4])], {}),
    "GRU": ([numbers((3, 2, 4)), numbers((1, 9, 4)), numbers((1, 9, 3))], {"hidden_size": 3, "outputs": 2}),
    "Gather": ([_X, np.array([[0, -1]])], {"axis": 1}),
    "GatherElements": ([_X, np.array([[0, -1]])], {"axis": 0}),
    "GatherND": ([_X, np.array([[0, -1], [2, 1]])], {}),
    "Gemm": ([_MORE, numbers((5, 4)), numbers((5,))], {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    "GridSample": ([_IMAGE, numbers((2, 3, 3, 2))], {}),
    "InstanceNormalization": ([_IMAGE, numbers((4,)), numbers((4,), seed=1)], {}),
    "LRN": ([_IMAGE], {"size": 3}),
    "LSTM": (
        [numbers((3, 2, 4)), numbers((1, 12, 4)), numbers((1, 12, 3))],
        {"hidden_size": 3, "outputs": 3},
    ),
    "LpPool": ([_IMAGE], {"kernel_shape": [2, 2], "strides": [2, 1]}),
    "MatMul": ([_MORE, numbers((4, 2))], {}),
    "MaxPool": ([_IMAGE], {"kernel_shape": [3, 2], "ceil_mode": 1, "strides": [2, 2], "outputs": 2}),
    "MeanVarianceNormalization": ([_IMAGE], {}),
    "Mod": ([_INT, np.array([3, -3, 2])], {}),
    "OneHot": ([np.array([0, 2]), np.array(3), np.array([0.5, 2], np.float32)], {}),
    "Pad": ([_X, np.array([1, 0, 0, 2]), np.float32(7)], {"mode": "edge"}),
    "Pow": ([_MORE, np.float32(2.5)], {}),
    "QuantizeLinear": ([np.nan_to_num(_UNIT), np.float32(0.01), np.uint8(128)], {}),
    "RNN": ([numbers((3, 2, 4)), numbers((1, 3, 4)), numbers((1, 3, 3))], {"hidden_size": 3, "outputs": 2}),
    "Range": ([np.array(1), np.array(9), np.array(3)], {}),
    "Relu": ([_X], {}),
    "Reshape": ([_X, np.array([0, 2, -1])], {}),
    "ReverseSequence": ([_X, np.array([1, 2, 3, 1])], {}),
    "RoiAlign": ([_IMAGE, np.array([[0, 0, 3, 4]], np.float32), np.array([0])], {"output_width": 2}),
    "ScatterElements": ([_X, np.array([[2, 0]]), numbers((1, 2))], {}),
    "ScatterND": ([_X, np.array([[2]]), numbers((1, 4))], {}),
    "Slice": ([_X, np.array([-1]), np.array([-9]), np.array([1]), np.array([-2])], {}),
    "SpaceToDepth": ([_IMAGE], {"blocksize": 3}),
    "Squeeze": ([_X[None]], {}),
    "Tile": ([_X, np.array([2, 1])], {}),
    "TopK": ([_MORE, np.array([2])], {"largest": 0, "outputs": 2}),
    "Unique": ([np.array([2, 1, 2, 5])], {"outputs": 4}),
    "Unsqueeze": ([_X, np.array([0, 3])], {}),
    "Where": ([_TRUE, _X, _X[::-1].copy()], {}),
}

# Operators of which no number is compared here: tested elsewhere, random, or without a kernel.
_ELSEWHERE = set(
    """Attention Bernoulli Constant DeformConv If Loop MaxRoiPool MaxUnpool Multinomial
    NegativeLogLikelihoodLoss Optional OptionalGetElement QLinearMatMul RandomNormal RandomNormalLike
    RandomUniform RandomUniformLike Scan SoftmaxCrossEntropyLoss""".split()
)


def _groups() -> list[tuple[str, tuple[int, ...]]]:
    rows = [row for row in load().opset_rows() if row.kind == "same" and row.plugin == "opset_packs"]
    return sorted((row.op_type, row.versions) for row in rows)


@pytest.mark.parametrize(("name", "versions"), [g for g in _groups() if g[0] not in _ELSEWHERE])
def test_same_versions_give_the_same_numbers(name: str, versions: tuple[int, ...]) -> None:
    inputs, attributes = _CALLS[name]
    feeds = {f"x{i}": np.asarray(value) for i, value in enumerate(inputs)}
    constants = {"Unsqueeze": ["x1"], "Reshape": ["x1"], "Pad": ["x1"]}.get(name, [])
    fed = {key: value for key, value in feeds.items() if key not in constants}

    def call(op: Any, **values: Any) -> Any:
        # Numbers that an old version has as an attribute are constants.
        every = [values[key] if key in values else op.const(feeds[key]) for key in feeds]
        return getattr(op, name)(*every, **attributes)

    found = {}
    for opset in sorted({max(version, 11) for version in versions}):
        try:
            found[opset] = run(build(call, fed, opset), fed)
        except (NotImplemented, InvalidGraph):
            continue  # ONNX Runtime has no kernel of this version.
    assert found
    first, *others = found.values()
    for other in others:
        for one, two in zip(first, other, strict=True):
            assert one.dtype == two.dtype
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def test_every_operator_is_compared_or_named() -> None:
    names = {name for name, _ in _groups()}
    assert names - _CALLS.keys() - _ELSEWHERE == set()
    assert _ELSEWHERE <= names
