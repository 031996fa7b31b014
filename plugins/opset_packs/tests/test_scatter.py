"""Scatters that combine updates, at opsets that do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowered import agree, numbers, ops_of, opsets

_REDUCTIONS = {"none": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
_DTYPES = [np.float32, np.int64, np.int32, np.float16, np.float64]


def _applied(data, places, updates, reduction):
    made = data.copy()
    ufunc = _REDUCTIONS[reduction]
    for place, update in zip(places, updates, strict=True):
        made[place] = update if ufunc is None else ufunc(made[place], update)
    return made


@given(
    opset=opsets(11, 13, 15, 16, 17, 18),
    reduction=st.sampled_from(list(_REDUCTIONS)),
    dtype=st.sampled_from(_DTYPES),
    count=st.integers(0, 6),
    depth=st.integers(1, 3),
    seed=st.integers(0, 99),
    dynamic=st.booleans(),
)
def test_scatter_nd(opset, reduction, dtype, count, depth, seed, dynamic):
    shape = (3, 4, 2)
    data = numbers(shape, dtype, seed=seed)
    random = np.random.default_rng(seed)
    if reduction == "none":
        count = min(count, 3)
        first = random.permutation(3)[:count]
    else:
        first = random.integers(-3, 3, count)
    rest = [random.integers(-size, size, count) for size in shape[1:depth]]
    indices = np.stack([first, *rest], -1).astype(np.int64).reshape(count, depth)
    updates = numbers((count, *shape[depth:]), dtype, seed=seed + 1)
    expected = _applied(data, [tuple(index) for index in indices], updates, reduction)
    agree(
        lambda op, d, i, u: op.ScatterND(d, i, u, reduction=reduction),
        {"d": data, "i": indices, "u": updates},
        opset,
        expected=[expected],
        dynamic=["d", "u"] if dynamic else [],
        rtol=1e-2 if dtype == np.float16 else 1e-5,
    )


@given(
    opset=opsets(11, 13, 15, 16, 17, 18),
    reduction=st.sampled_from([name for name in _REDUCTIONS if name != "none"]),
    dtype=st.sampled_from(_DTYPES),
    axis=st.integers(-3, 2),
    sizes=st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(1, 2)),
    seed=st.integers(0, 99),
    dynamic=st.booleans(),
)
def test_scatter_elements(opset, reduction, dtype, axis, sizes, seed, dynamic):
    shape = (3, 4, 2)
    data = numbers(shape, dtype, seed=seed)
    indices = np.random.default_rng(seed).integers(-shape[axis], shape[axis], sizes)
    updates = numbers(sizes, dtype, seed=seed + 1)
    if dtype == np.float16 and opset in (16, 17):
        return  # ONNX Runtime has no such kernel.
    places = []
    for at in np.ndindex(*sizes):
        place = list(at)
        place[axis] = indices[at]
        places.append(tuple(place))
    expected = _applied(data, places, updates.reshape(-1), reduction)
    agree(
        lambda op, d, i, u: op.ScatterElements(d, i, u, axis=axis, reduction=reduction),
        {"d": data, "i": indices, "u": updates},
        opset,
        expected=[expected],
        dynamic=["d", "i", "u"] if dynamic else [],
        rtol=1e-2 if dtype == np.float16 else 1e-5,
    )


@pytest.mark.parametrize("written", [11, 13, 16])
@pytest.mark.parametrize("opset", [11, 16, 18, 20])
def test_old_scatters_at_newer_opsets(written, opset):
    data, indices, updates = numbers((3, 2)), np.array([[2], [0]]), numbers((2, 2), seed=1)
    expected = data.copy()
    expected[[2, 0]] = updates
    model = agree(
        lambda op, d, i, u: op.at(written).ScatterND(d, i, u),
        {"d": data, "i": indices, "u": updates},
        opset,
        expected=[expected],
    )
    assert ops_of(model) == ["ScatterND"]
    agree(
        lambda op, d, i, u: op.at(written).ScatterElements(d, i, u),
        {"d": data, "i": np.array([[1, 2]]), "u": updates[:1]},
        opset,
        newest=18,
    )


@given(
    opset=opsets(11, 12, 13), batch_dims=st.integers(0, 2), depth=st.integers(1, 2), seed=st.integers(0, 9)
)
def test_gather_nd_with_batch_dims(opset, batch_dims, depth, seed):
    if batch_dims + depth > 3:
        depth = 1
    data = numbers((2, 3, 4), seed=seed)
    random = np.random.default_rng(seed)
    middle = (*data.shape[:batch_dims], 5)
    bounds = data.shape[batch_dims : batch_dims + depth]
    indices = np.stack([random.integers(-size, size, middle) for size in bounds], -1)
    agree(
        lambda op, d, i: op.GatherND(d, i, batch_dims=batch_dims), {"d": data, "i": indices}, opset, newest=13
    )


@given(opset=opsets(11, 17, 20, 23), mode=st.sampled_from(["linear", "circular"]), start=st.booleans())
def test_tensor_scatter_is_a_scatter_along_its_axis(opset, mode, start):
    cache, update = numbers((2, 3, 5, 4)), numbers((2, 3, 2, 4), seed=1)
    first = np.array([4, 1] if mode == "circular" else [3, 1])
    expected = cache.copy()
    for b in range(2):
        for i in range(2):
            expected[b, :, ((first[b] if start else 0) + i) % 5] = update[b, :, i]
    agree(
        lambda op, c, u, s: op.TensorScatter(c, u, s if start else None, mode=mode),
        {"c": cache, "u": update, "s": first},
        opset,
        expected=[expected],
    )
