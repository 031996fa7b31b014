"""Arithmetic at opsets that lack a dtype or a rule of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowered import agree, arrays, build, numbers, ops_of, opsets, run

from atonnx.errors import UnsupportedOpError


@pytest.mark.parametrize(
    ("name", "ufunc"), [("GreaterOrEqual", np.greater_equal), ("LessOrEqual", np.less_equal)]
)
@given(opset=opsets(11, 12, 16, 20), a=arrays(), b=arrays(shape=st.just((1,))))
def test_comparisons_with_equality_are_false_for_nan(name, ufunc, opset, a, b):
    agree(lambda op, a, b: getattr(op, name)(a, b), {"a": a, "b": b}, opset, expected=[ufunc(a, b)])


@pytest.mark.parametrize(("name", "ufunc"), [("Max", np.maximum), ("Min", np.minimum)])
@given(
    opset=opsets(11, 12, 13, 20),
    dtype=st.sampled_from([np.int64, np.int32, np.int8, np.uint8, np.float64]),
    seed=st.integers(0, 99),
)
def test_extremes_of_integers_are_exact(name, ufunc, opset, dtype, seed):
    a, b, c = (numbers((4, 3), dtype, seed=seed + i) for i in range(3))
    expected = ufunc(ufunc(a, b), c)
    agree(
        lambda op, **v: getattr(op, name)(*v.values()), {"a": a, "b": b, "c": c}, opset, expected=[expected]
    )


def test_max_of_64_bit_integers_does_not_go_through_floats():
    a = np.array([2**62 + 1, -(2**62) - 1])
    agree(lambda op, a: op.Max(a, op.const(2**62)), {"a": a}, 11, expected=[np.maximum(a, 2**62)])


@given(
    opset=opsets(11, 12, 13),
    dtype=st.sampled_from([np.int64, np.int32, np.float32]),
    low=st.none() | st.integers(-5, 5),
    high=st.none() | st.integers(-5, 5),
)
def test_clip_of_every_dtype(opset, dtype, low, high):
    x = numbers((3, 5), dtype)
    expected = x if low is None else np.maximum(x, dtype(low))
    expected = expected if high is None else np.minimum(expected, dtype(high))
    agree(lambda op, x: op.Clip(x, low, high), {"x": x}, opset, expected=[expected])


@given(
    opset=opsets(11, 12, 13, 15),
    base=st.sampled_from([np.int32, np.int64, np.float32]),
    power=st.integers(1, 9),
    whole=st.booleans(),
)
def test_pow_with_a_constant_exponent(opset, base, power, whole):
    x = numbers((2, 3), base)
    expected = (x ** base(power)).astype(base)
    exponent = np.array(power, np.int64 if whole else np.float32)
    agree(lambda op, x: op.Pow(x, op.const(exponent)), {"x": x}, opset, expected=[expected], rtol=1e-4)


def test_pow_of_64_bit_integers_is_refused_where_it_would_round():
    x = numbers((3,), np.int64)
    with pytest.raises(UnsupportedOpError, match="Pow of INT64"):
        agree(lambda op, x, y: op.Pow(x, y), {"x": x, "y": x}, 11)


@given(opset=opsets(11, 13, 20, 27), a=arrays(shape=st.just((9,))), b=arrays(shape=st.just((9,))))
def test_mod_of_floats_follows_the_divisor_exactly(opset, a, b):
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.mod(a, b)
        # numpy has the remainder nan where the divisor is infinite and signs differ, on some versions.
        other = np.isinf(b) & np.isfinite(a) & (a != 0)
        expected = np.where(other, np.where(np.signbit(a) == np.signbit(b), a, b), expected)
    model = agree(lambda op, a, b: op.Mod(a, b), {"a": a, "b": b}, opset, expected=[expected])
    assert "Mod" in ops_of(model)


def test_mod_keeps_the_divisors_sign_in_zeros():
    a, b = np.array([4, -4, 0, -0.0], "f"), np.array([-2, 2, -3, 3], "f")
    (found,) = run(build(lambda op, a, b: op.Mod(a, b), {"a": a, "b": b}, 13), {"a": a, "b": b})
    np.testing.assert_array_equal(np.signbit(found), np.signbit(b))


@given(
    opset=opsets(11, 17, 18),
    dtype=st.sampled_from([np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32]),
    name=st.sampled_from(["And", "Or", "Xor"]),
    seed=st.integers(0, 99),
)
def test_bitwise_operators_of_every_integer(opset, dtype, name, seed):
    info = np.iinfo(dtype)
    random = np.random.default_rng(seed)
    a, b = (random.integers(info.min, info.max, 5, dtype, endpoint=True) for _ in range(2))
    expected = getattr(np, f"bitwise_{name.lower()}")(a, b)
    agree(lambda op, a, b: getattr(op, f"Bitwise{name}")(a, b), {"a": a, "b": b}, opset, expected=[expected])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("opset", [11, 17, 18])
def test_bitwise_not(dtype, opset):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, 5], dtype)
    agree(lambda op, x: op.BitwiseNot(x), {"x": x}, opset, expected=[~x])


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32, np.uint64])
@pytest.mark.parametrize("constant", [False, True])
def test_shifts_beyond_the_bits_give_the_sign(direction, dtype, constant):
    bits, kind = np.dtype(dtype).itemsize * 8, np.dtype(dtype).kind
    x = np.array([5, -7 if kind == "i" else 7, 1, 3, 2, 100], dtype)
    count = np.array([1, 2, bits - 1, 0, bits, bits + 1], dtype)
    inside = np.minimum(count, dtype(bits - 1))
    with np.errstate(over="ignore"):
        if direction == "RIGHT":
            expected = np.where(
                count < bits, x >> inside, np.where(x < 0, dtype(-1 if kind == "i" else 0), 0)
            )
        else:
            expected = np.where(count < bits, x << inside, 0)
    inputs = {"x": x} if constant else {"x": x, "n": count}
    agree(
        lambda op, x, n=None: op.BitShift(x, op.const(count) if n is None else n, direction=direction),
        inputs,
        11,
        expected=[expected.astype(dtype)],
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("opset", [11, 13, 14])
@pytest.mark.parametrize("name", ["Add", "Sub", "Mul"])
def test_small_integers_wrap_around_where_they_are_computed_in_wider_ones(dtype, opset, name):
    info = np.iinfo(dtype)
    a, b = np.array([info.max, info.min, 3], dtype), np.array([1, 1, 2], dtype)
    with np.errstate(over="ignore"):
        expected = {"Add": a + b, "Sub": a - b, "Mul": a * b}[name]
    agree(
        lambda op, a, b: getattr(op, name)(a, b), {"a": a, "b": b}, opset, expected=[expected.astype(dtype)]
    )
