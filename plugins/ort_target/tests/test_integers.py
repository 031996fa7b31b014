"""Integers and bools are computed in other dtypes, and the table of kernels is what is measured."""

from __future__ import annotations

import numpy as np
import pytest

from atonnx_ort_target.gaps import NAMES, gap_table

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def numbers(dtype: str, *shape: int) -> np.ndarray:
    """All bits are drawn, so that arithmetic wraps."""
    random = np.random.default_rng(len(dtype))
    if dtype == "bool":
        return random.random(shape) < 0.5
    info = np.iinfo(dtype)
    found = random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    found.flat[:3] = [info.min, info.max, 0]
    return found


def summed(x, axis):
    return np.add.reduce(x, axis=axis, dtype=x.dtype, keepdims=True)


# What the operator gives for x and y of shape (3, 4), by numpy, whose arithmetic wraps.
CASES = {
    "Where": (lambda op, x, y: op.Where(op.Equal(x, y), x, y), lambda x, y: np.where(x == y, x, y)),
    "Max": (lambda op, x, y: op.Max(x, y), np.maximum),
    "Min": (lambda op, x, y: op.Min(x, y), np.minimum),
    "Clip": (
        lambda op, x, y: op.Clip(x, op.const(3, x.dtype), op.const(90, x.dtype)),
        lambda x, y: np.clip(x, 3, 90),
    ),
    "Relu": (lambda op, x, y: op.Relu(x), lambda x, y: np.maximum(x, 0)),
    "CumSum": (lambda op, x, y: op.CumSum(x, 1), lambda x, y: np.add.accumulate(x, 1, dtype=x.dtype)),
    "ReduceSum": (lambda op, x, y: op.at(28).ReduceSum(x, [1]), lambda x, y: summed(x, 1)),
    "ReduceMax": (lambda op, x, y: op.at(28).ReduceMax(x, [1]), lambda x, y: x.max(1, keepdims=True)),
    "ReduceMin": (lambda op, x, y: op.at(28).ReduceMin(x, [1]), lambda x, y: x.min(1, keepdims=True)),
    "ReduceProd": (
        lambda op, x, y: op.at(28).ReduceProd(x, [0]),
        lambda x, y: np.multiply.reduce(x, 0, dtype=x.dtype, keepdims=True),
    ),
    "ArgMax": (lambda op, x, y: op.ArgMax(x, axis=1, keepdims=0), lambda x, y: x.argmax(1)),
    "ArgMin": (lambda op, x, y: op.ArgMin(x, axis=1, keepdims=0), lambda x, y: x.argmin(1)),
    "TopK": (lambda op, x, y: op.TopK(x, [2])[0], lambda x, y: np.sort(x, 1)[:, :1:-1]),
    "Unique": (lambda op, x, y: op.Unique(x, outputs=1)[0], lambda x, y: np.unique(x)),
    "Trilu": (lambda op, x, y: op.Trilu(x), lambda x, y: np.triu(x)),
    "NonZero": (lambda op, x, y: op.NonZero(x), lambda x, y: np.stack(np.nonzero(x))),
    "Pad": (lambda op, x, y: op.Pad(x, [0, 1, 0, 0]), lambda x, y: np.pad(x, ((0, 0), (1, 0)))),
    "Einsum": (
        lambda op, x, y: op.Einsum(x, y, equation="ij,kj->ik"),
        lambda x, y: np.einsum("ij,kj->ik", x, y, dtype=x.dtype, casting="unsafe"),
    ),
    "Gemm": (
        lambda op, x, y: op.Gemm(x, y, transB=1, alpha=2.0),
        lambda x, y: (x @ y.T) * x.dtype.type(2),
    ),
    "DepthToSpace": (
        lambda op, x, y: op.DepthToSpace(op.Reshape(x, [1, 4, 1, 3]), blocksize=2),
        lambda x, y: x.reshape(1, 2, 2, 1, 1, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 1, 2, 6),
    ),
    "SpaceToDepth": (
        lambda op, x, y: op.SpaceToDepth(op.Reshape(x, [1, 1, 2, 6]), blocksize=2),
        lambda x, y: x.reshape(1, 1, 1, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 4, 1, 3),
    ),
    "PRelu": (lambda op, x, y: op.PRelu(x, y), lambda x, y: np.where(x < 0, x * y, x)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_integers_and_bools_wrap_as_the_narrow_dtype_does(legalized, name):
    write, right = CASES[name]
    tried = 0
    for opset in (13, 18, 20, 28):
        gaps = gap_table().of(name, opset)
        if gaps is None:
            continue
        for dtype in ("bool", *INTS):
            kind = NAMES[dtype]
            if (
                kind
                not in gaps.spec.allowed[gaps.spec.inputs[-1] if name == "Where" else gaps.spec.inputs[0]]
            ):
                continue
            if not gaps.lacks(dict.fromkeys(gaps.variables or gaps.alone, kind)):
                continue
            tried += 1
            x = numbers(dtype, 3, 4)
            if np.dtype(dtype).itemsize >= 4 and name in ("ReduceSum", "ReduceProd"):
                x //= x.dtype.type(np.iinfo(dtype).max // 99)  # the kernels compute with doubles
            y = x[::-1].copy()
            made = legalized(write, {"x": x, "y": y}, opset, "onnxruntime")
            assert not made.warnings, (dtype, opset, made.warnings)
            (found,) = made.run()
            with np.errstate(all="ignore"):
                expected = right(x, y)
            assert found.dtype == (np.int64 if name in ("ArgMax", "ArgMin", "NonZero") else x.dtype)
            np.testing.assert_array_equal(
                found, np.asarray(expected).astype(found.dtype), f"{dtype} at {opset}"
            )
    assert tried


def test_an_exponent_of_another_dtype_is_widened(legalized):
    x, y = np.array([2, -3, 5], np.int32), np.array([3, 2, 0], np.uint8)
    made = legalized(lambda op, x, y: op.Pow(x, y), {"x": x, "y": y}, 15, "onnxruntime")
    np.testing.assert_array_equal(made.run()[0], [8, 9, 1])
