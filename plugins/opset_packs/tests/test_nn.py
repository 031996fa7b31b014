"""Pooling, folding, products and recurrent networks at old opsets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lowered import agree, numbers, ops_of, opsets

from atonnx.errors import UnsupportedOpError


@given(
    opset=opsets(11, 17, 18),
    block=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    padding=st.tuples(st.integers(0, 1), st.integers(0, 1)),
)
def test_col2im_is_a_transposed_convolution_below_18(opset, block, stride, dilation, padding):
    image = (6, 7)
    fold = {"kernel_size": block, "stride": stride, "dilation": dilation, "padding": padding}
    columns = torch.nn.functional.unfold(torch.zeros(1, 2, *image), **fold).shape[1:]
    x = numbers((2, *columns))
    expected = torch.nn.functional.fold(torch.tensor(x), image, **fold).numpy()
    agree(
        lambda op, x: op.Col2Im(
            x, list(image), list(block), strides=stride, dilations=dilation, pads=[*padding, *padding]
        ),
        {"x": x},
        opset,
        expected=[expected],
        rtol=1e-4,
    )


@given(
    opset=opsets(11, 18, 19),
    kernel=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    dilations=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    strides=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    padded=st.sampled_from([0, 1]),
    dynamic=st.booleans(),
)
def test_average_pool_with_gaps_below_19(opset, kernel, dilations, strides, padded, dynamic):
    pads = [0, 1, 0, 1] if kernel[1] > 1 else [0, 0, 0, 0]
    agree(
        lambda op, x: op.AveragePool(
            x,
            kernel_shape=kernel,
            dilations=dilations,
            strides=strides,
            pads=pads,
            count_include_pad=padded,
        ),
        {"x": numbers((2, 3, 7, 7))},
        opset,
        newest=19,
        rtol=1e-4,
        dynamic=["x"] if dynamic else [],
    )


@given(
    opset=opsets(11, 18, 19, 22),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 3),
    ceil=st.sampled_from([0, 1]),
    padded=st.sampled_from([0, 1]),
)
def test_average_pool_means_the_same_since_11(opset, kernel, stride, ceil, padded):
    pads = [0, 0] if kernel == 1 else [1, 1]
    model = agree(
        lambda op, x: op.AveragePool(
            x, kernel_shape=[kernel], strides=[stride], pads=pads, ceil_mode=ceil, count_include_pad=padded
        ),
        {"x": numbers((1, 2, 8))},
        opset,
        newest=11,
        rtol=1e-4,
    )
    assert ops_of(model) == ["AveragePool"]


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,kj", [(2, 3), (4, 3)]),
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (5, 2, 4, 6)]),
        ("i...,i...->...", [(2, 3), (2, 1)]),
        ("ii->i", [(3, 3)]),
        ("iji,k", [(3, 2, 3), (4,)]),
        ("ijk->kj", [(2, 3, 4)]),
        ("i,j->ij", [(2,), (3,)]),
        ("i,i->", [(4,), (4,)]),
        ("abc,cd,ef->adf", [(2, 3, 4), (4, 5), (2, 6)]),
        ("abcd,cdef->abef", [(2, 3, 4, 5), (4, 5, 2, 3)]),
        ("bnd,ndh->bnh", [(2, 3, 4), (3, 4, 5)]),
        ("ab , ab -> b a", [(2, 3), (2, 3)]),
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_einsum_is_products_of_matrices_below_12(equation, shapes, dynamic):
    inputs = {f"x{i}": numbers(shape, seed=i) for i, shape in enumerate(shapes)}
    model = agree(
        lambda op, **values: op.Einsum(*values.values(), equation=equation),
        inputs,
        11,
        expected=[np.einsum(equation.replace(" ", ""), *inputs.values())],
        rtol=1e-4,
        atol=1e-5,
        dynamic=list(inputs) if dynamic else [],
    )
    assert "Einsum" not in ops_of(model)


@pytest.mark.parametrize(("name", "gates", "states"), [("LSTM", 4, 2), ("GRU", 3, 1), ("RNN", 1, 1)])
@pytest.mark.parametrize("opset", [11, 13])
def test_recurrent_networks_with_the_batch_first(name, gates, states, opset):
    x = numbers((2, 5, 3))
    inputs = {"x": x, "w": numbers((1, gates * 4, 3)), "r": numbers((1, gates * 4, 4))}
    inputs |= {f"h{i}": numbers((2, 1, 4), seed=i) for i in range(states)}

    def call(batch_first):
        def write(op, x, w, r, **initial):
            turn = (lambda v: v) if batch_first else (lambda v: op.Transpose(v, perm=[1, 0, 2]))
            made = getattr(op, name)(
                turn(x),
                w,
                r,
                None,
                None,
                *(turn(state) for state in initial.values()),
                hidden_size=4,
                layout=1 if batch_first else 0,
                outputs=states + 1,
            )
            if batch_first:
                return made
            return (op.Transpose(made[0], perm=[2, 0, 1, 3]), *(turn(state) for state in made[1:]))

        return write

    from lowered import build, run

    expected = run(build(call(False), inputs, 14), inputs)
    agree(call(True), inputs, opset, expected=expected, rtol=1e-4)


@pytest.mark.parametrize("opset", [11, 13])
def test_random_draws_of_a_probability(opset):
    from lowered import build, run

    x = np.array([0.0, 1.0, 1.0, 0.0], "f")
    for dtype in (1, 7, 9):
        model = build(lambda op, x, dtype=dtype: op.Bernoulli(x, dtype=dtype), {"x": x}, opset)
        np.testing.assert_array_equal(run(model, {"x": x})[0], x.astype({1: "f", 7: "i8", 9: "?"}[dtype]))


def test_windows_of_a_roi_are_not_moved_below_16():
    inputs = {"x": numbers((1, 2, 8, 8)), "r": np.array([[0, 0, 4, 5]], "f"), "b": np.array([0])}

    def call(mode):
        return lambda op, x, r, b: op.RoiAlign(
            x, r, b, coordinate_transformation_mode=mode, output_height=2, output_width=2, sampling_ratio=2
        )

    for opset in (11, 16):
        agree(call("output_half_pixel"), inputs, opset, newest=16)
    with pytest.raises(UnsupportedOpError, match="RoiAlign with half_pixel at opset 11"):
        agree(call("half_pixel"), inputs, 11, newest=16)

    def old(op, x, r, b):
        return op.at(11).RoiAlign(x, r, b, output_height=2, output_width=2, sampling_ratio=2)

    for opset in (11, 16):
        agree(old, inputs, opset, newest=11)


@given(
    opset=opsets(11, 12, 13),
    weighted=st.booleans(),
    ignore=st.sampled_from([None, 1, -100]),
    reduction=st.sampled_from(["none", "mean", "sum"]),
    softmax=st.booleans(),
)
def test_losses_are_gathers_below_12(opset, weighted, ignore, reduction, softmax):
    x, target = numbers((4, 3, 2)), np.random.default_rng(0).integers(0, 3, (4, 2))
    if ignore == -100:
        target[0, 0] = ignore
    inputs = {"x": x, "t": target} | ({"w": np.abs(numbers((3,))) + 0.5} if weighted else {})
    function = torch.nn.functional.cross_entropy if softmax else torch.nn.functional.nll_loss
    weight = torch.tensor(inputs["w"]) if weighted else None
    expected = function(
        torch.tensor(x),
        torch.tensor(target),
        weight,
        ignore_index=-200 if ignore is None else ignore,
        reduction=reduction,
    ).numpy()
    name = "SoftmaxCrossEntropyLoss" if softmax else "NegativeLogLikelihoodLoss"
    agree(
        lambda op, x, t, w=None: getattr(op, name)(x, t, w, ignore_index=ignore, reduction=reduction),
        inputs,
        opset,
        expected=[expected],
        rtol=1e-4,
    )
