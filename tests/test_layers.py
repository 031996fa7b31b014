"""Every layer of ``torch.nn``: exported static and dynamic, compared with eager at three sizes.

A layer that the table does not have and that is not left out with a reason fails a test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import onnx
import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

import atonnx

# Batch and side of what is exported, and of two others. What differs between the first two is dynamic.
SIZES = ((2, 6), (3, 9), (1, 7))

Inputs = Callable[[int, int], tuple[Any, ...]]

LEFT_OUT = {
    "Module": "the base of all",
    "Container": "a deprecated name of Module",
    "ModuleList": "a list, which has no forward",
    "ModuleDict": "a dict, which has no forward",
    "ParameterList": "a list, which has no forward",
    "ParameterDict": "a dict, which has no forward",
    "RNNBase": "the base of the recurrent layers",
    "RNNCellBase": "the base of the recurrent cells",
    "DataParallel": "copies a model to several GPUs",
}

# Layers that draw random numbers in training mode, and one that needs a GPU there.
EVALUATED = {
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
    "RReLU",
    "SyncBatchNorm",
}


def _text(value: Any) -> str:
    """The value in a test's name, which is the same in each process."""
    return f"tensor{list(value.shape)}" if isinstance(value, torch.Tensor) else str(value)[:30]


class Case:
    """A call of a layer's constructor, and its inputs at a size."""

    def __init__(self, name: str, inputs: Inputs, *args: Any, **kwargs: Any) -> None:
        self.name, self.inputs, self.args, self.kwargs = name, inputs, args, kwargs

    def __repr__(self) -> str:
        given = [_text(value) for value in self.args]
        given += [f"{name}={_text(value)}" for name, value in self.kwargs.items()]
        return ", ".join([self.name, *given])

    def layer(self) -> nn.Module:
        """The layer; a lazy one has seen its input."""
        torch.manual_seed(0)
        layer: nn.Module = getattr(nn, self.name)(*self.args, **self.kwargs)
        if self.name.startswith("Lazy"):
            layer(*self.inputs(*SIZES[0]))
        return layer


def rows(*sizes: int) -> Inputs:
    """A batch of tensors of these sizes."""
    return lambda n, s: (torch.randn(n, *sizes),)


def image(channels: int, rank: int) -> Inputs:
    """A batch of images, whose sides differ."""
    return lambda n, s: (torch.randn(n, channels, *(s, s + 1, s + 2)[:rank]),)


def even(channels: int, rank: int, times: int = 2) -> Inputs:
    """The same with sides that are divisible."""
    return lambda n, s: (torch.randn(n, channels, *(times * s, times * s + times)[:rank]),)


def anything(n: int, s: int) -> tuple[Tensor, ...]:
    """A tensor of any sizes."""
    return (torch.randn(n, 4, s),)


def pair(n: int, s: int) -> tuple[Tensor, ...]:
    """Prediction and target."""
    return torch.randn(n, s), torch.randn(n, s)


def shares(n: int, s: int) -> tuple[Tensor, ...]:
    """Probabilities, twice."""
    return torch.rand(n, s), torch.rand(n, s)


def signs(n: int, s: int) -> tuple[Tensor, ...]:
    """Prediction, and 1 or -1."""
    return torch.randn(n, s), torch.randint(0, 2, (n, s)) * 2.0 - 1


def three(n: int, s: int) -> tuple[Tensor, ...]:
    """Three rows."""
    return torch.randn(n, s), torch.randn(n, s), torch.randn(n, s)


def classes(n: int, s: int) -> tuple[Tensor, ...]:
    """Scores of five classes, and the right class."""
    return torch.randn(n, 5).log_softmax(1), torch.randint(0, 5, (n,))


def pixels(n: int, s: int) -> tuple[Tensor, ...]:
    """Scores of five classes for each place, and the right classes."""
    return torch.randn(n, 5, s, s + 1).log_softmax(1), torch.randint(0, 5, (n, s, s + 1))


def sets(n: int, s: int) -> tuple[Tensor, ...]:
    """Scores of five classes, and the right ones first."""
    target = torch.full((n, 5), -1)
    target[:, 0] = torch.randint(0, 5, (n,))
    return torch.randn(n, 5), target


def spoken(n: int, s: int) -> tuple[Tensor, ...]:
    """What CTCLoss takes."""
    scores = torch.randn(s + 3, n, 5).log_softmax(2)
    return scores, torch.randint(1, 5, (n, 3)), torch.full((n,), s), torch.randint(1, 4, (n,))


def words(n: int, s: int) -> tuple[Tensor, ...]:
    """Indices."""
    return (torch.randint(0, 7, (n, s)),)


def bags(n: int, s: int) -> tuple[Tensor, ...]:
    """Indices of all bags, and where each begins."""
    return torch.randint(0, 7, (n * s,)), torch.arange(n) * s


def sequence(n: int, s: int) -> tuple[Tensor, ...]:
    """Time, batch, eight features."""
    return (torch.randn(s, n, 8),)


def translation(n: int, s: int) -> tuple[Tensor, ...]:
    """Two sequences of eight features."""
    return torch.randn(s, n, 8), torch.randn(s + 1, n, 8)


def unpooled(rank: int) -> Inputs:
    """Maxima and where they were."""

    def made(n: int, s: int) -> tuple[Tensor, ...]:
        pool = getattr(nn, f"MaxPool{rank}d")(2, return_indices=True)
        x = torch.randn(n, 3, *(2 * s, 2 * s + 2, 4)[:rank])
        return tuple(pool(x))

    return made


def columns(n: int, s: int) -> tuple[Tensor, ...]:
    """What Fold takes."""
    return (torch.randn(n, 3 * 4, 5 * 6),)


def states(count: int) -> Inputs:
    """An input of a cell, and its states."""

    def made(n: int, s: int) -> tuple[Any, ...]:
        found = [torch.randn(n, 4) for _ in range(count)]
        return torch.randn(n, 3), tuple(found) if count > 1 else found[0]

    return made


def fixed_batch(rank: int) -> Inputs:
    """Images two at a time."""
    return lambda n, s: (torch.randn(2, 3, *(s + 2, s + 3, s + 4)[:rank]),)


def flat(n: int, s: int) -> tuple[Tensor, ...]:
    """Rows of six."""
    return (torch.randn(n, 6, s),)


MORE_CONV = {"stride": 2, "padding": 1, "dilation": 2, "groups": 3}
TRANSPOSED = {"stride": 2, "padding": 1, "output_padding": 1, "groups": 3}
ENCODER = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
DECODER = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0)

CASES = [
    Case("Sequential", image(3, 2), nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    Case("Identity", anything),
    Case("Flatten", anything),
    Case("Unflatten", flat, 1, (2, 3)),
    Case("Linear", lambda n, s: (torch.randn(n, s, 8),), 8, 5),
    Case("LazyLinear", rows(8), 5),
    Case("Bilinear", lambda n, s: (torch.randn(n, s, 3), torch.randn(n, s, 4)), 3, 4, 5),
    *(
        Case(f"{lazy}Conv{r}d", image(3, r), *([] if lazy else [3]), 6, 3)
        for r in (1, 2, 3)
        for lazy in ("", "Lazy")
    ),
    *(Case(f"Conv{r}d", image(3, r), 3, 6, 3, **MORE_CONV) for r in (1, 2, 3)),
    *(Case(f"Conv{r}d", image(3, r), 3, 6, 4, padding="same", dilation=2) for r in (1, 2, 3)),
    *(Case(f"Conv{r}d", image(3, r), 3, 6, 3, padding=2, padding_mode="reflect") for r in (1, 2, 3)),
    *(Case(f"Conv{r}d", image(3, r), 3, 6, 3, padding=2, padding_mode="circular") for r in (1, 2, 3)),
    *(
        Case(f"{lazy}ConvTranspose{r}d", image(3, r), *([] if lazy else [3]), 6, 3)
        for r in (1, 2, 3)
        for lazy in ("", "Lazy")
    ),
    *(Case(f"ConvTranspose{r}d", image(3, r), 3, 6, 3, **TRANSPOSED) for r in (1, 2, 3)),
    Case("Unfold", image(3, 2), (2, 3), padding=1, stride=2),
    Case("Fold", columns, (6, 7), 2),
    # ---------------------------------------------------------------- pooling
    *(Case(f"{kind}Pool{r}d", image(3, r), 3) for r in (1, 2, 3) for kind in ("Max", "Avg")),
    *(Case(f"MaxPool{r}d", image(3, r), 3, 2, 1, return_indices=True) for r in (1, 2, 3)),
    *(Case(f"MaxPool{r}d", image(3, r), 2, 2, 1, 2, ceil_mode=True) for r in (1, 2, 3)),
    *(
        Case(f"AvgPool{r}d", image(3, r), 3, 2, 1, ceil_mode=True, count_include_pad=count)
        for r in (1, 2, 3)
        for count in (False, True)
    ),
    Case("AvgPool2d", image(3, 2), 3, 2, 1, divisor_override=4),
    *(Case(f"LPPool{r}d", image(3, r), 3, 2) for r in (1, 2, 3)),
    *(Case(f"MaxUnpool{r}d", unpooled(r), 2) for r in (1, 2, 3)),
    *(
        Case(f"Adaptive{kind}Pool{r}d", image(3, r), size)
        for r in (1, 2, 3)
        for kind in ("Max", "Avg")
        for size in (1, 4)
    ),
    *(Case(f"AdaptiveMaxPool{r}d", image(3, r), 3, return_indices=True) for r in (1, 2, 3)),
    *(
        Case(f"FractionalMaxPool{r}d", fixed_batch(r), 2, output_size=4, _random_samples=torch.rand(2, 3, r))
        for r in (2, 3)
    ),
    # ---------------------------------------------------------------- padding
    *(
        Case(f"{kind}Pad{r}d", image(3, r), (1, 2, 0, 3, 2, 1)[: 2 * r])
        for r in (1, 2, 3)
        for kind in ("Circular", "Reflection", "Replication", "Zero")
    ),
    *(Case(f"ConstantPad{r}d", image(3, r), (1, -2, 0, 3, -1, 1)[: 2 * r], 0.5) for r in (1, 2, 3)),
    # ---------------------------------------------------------- normalisation
    *(
        Case(
            f"{lazy}{kind}Norm{r}d",
            image(3, r),
            *([] if lazy else [3]),
            affine=affine,
            track_running_stats=track,
        )
        for r in (1, 2, 3)
        for kind in ("Batch", "Instance")
        for lazy in ("", "Lazy")
        for affine, track in ((True, True), (False, False))
        if not lazy or affine
    ),
    Case("SyncBatchNorm", image(3, 2), 3),
    Case("BatchNorm1d", rows(3), 3),
    Case("LayerNorm", lambda n, s: (torch.randn(n, s, 8),), 8),
    Case("LayerNorm", lambda n, s: (torch.randn(n, s, 3, 4),), (3, 4), elementwise_affine=False),
    Case("RMSNorm", lambda n, s: (torch.randn(n, s, 8),), 8),
    Case("GroupNorm", image(6, 2), 3, 6),
    Case("GroupNorm", rows(6), 2, 6, affine=False),
    Case("LocalResponseNorm", image(6, 2), 3),
    *(Case("CrossMapLRN2d", image(6, 2), size, 1.0) for size in (3, 4)),
    # ------------------------------------------------------------ activations
    *(
        Case(name, anything)
        for name in (
            "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish PReLU RReLU "
            "ReLU ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink"
        ).split()
    ),
    Case("GELU", anything, approximate="tanh"),
    Case("PReLU", anything, 4),
    Case("Softplus", anything, 2.0, 1.0),
    Case("Threshold", anything, 0.1, 20.0),
    Case("GLU", anything, 1),
    *(Case(name, anything, dim) for name in ("Softmax", "LogSoftmax", "Softmin") for dim in (1, -1)),
    Case("Softmax2d", image(3, 2)),
    # ---------------------------------------------------------------- dropout
    *(Case(name, anything) for name in ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "Dropout1d")),
    *(Case(f"Dropout{r}d", image(3, r)) for r in (2, 3)),
    # -------------------------------------------------------------- recurrent
    *(
        Case(name, sequence, 8, 4, **options)
        for name in ("LSTM", "GRU", "RNN")
        for options in ({}, {"num_layers": 2, "bidirectional": True, "bias": False})
    ),
    Case("LSTM", lambda n, s: (torch.randn(n, s, 8),), 8, 4, batch_first=True, bidirectional=True),
    Case("LSTM", sequence, 8, 4, proj_size=3, bidirectional=True),
    Case("RNN", sequence, 8, 4, nonlinearity="relu"),
    Case("GRU", lambda n, s: (torch.randn(s, 8),), 8, 4),
    Case("LSTMCell", states(2), 3, 4),
    Case("GRUCell", states(1), 3, 4),
    Case("RNNCell", states(1), 3, 4),
    Case("RNNCell", states(1), 3, 4, bias=False, nonlinearity="relu"),
    # -------------------------------------------------------------- attention
    Case("MultiheadAttention", lambda n, s: sequence(n, s) * 3, 8, 2),
    Case(
        "MultiheadAttention",
        lambda n, s: (torch.randn(n, s, 8), torch.randn(n, s + 1, 5), torch.randn(n, s + 1, 7)),
        8,
        2,
        kdim=5,
        vdim=7,
        batch_first=True,
        add_zero_attn=True,
        add_bias_kv=True,
    ),
    Case("TransformerEncoderLayer", sequence, 8, 2, 16, dropout=0.0, norm_first=True),
    Case(
        "TransformerEncoderLayer",
        lambda n, s: (torch.randn(n, s, 8),),
        8,
        2,
        16,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
    ),
    Case("TransformerDecoderLayer", translation, 8, 2, 16, dropout=0.0),
    Case("TransformerEncoder", sequence, ENCODER, 2, enable_nested_tensor=False),
    Case("TransformerDecoder", translation, DECODER, 2),
    Case("Transformer", translation, 8, 2, 1, 1, 16, dropout=0.0),
    # -------------------------------------------------------------- embedding
    Case("Embedding", words, 7, 3, padding_idx=1),
    *(Case("EmbeddingBag", bags, 7, 3, mode=mode) for mode in ("sum", "mean", "max")),
    Case("EmbeddingBag", words, 7, 3),
    # ----------------------------------------------------------------- resize
    *(
        Case("Upsample", image(3, rank), scale_factor=factor, mode=mode, align_corners=corners)
        for rank, mode, corners in (
            (1, "nearest", None),
            (1, "linear", False),
            (2, "bilinear", True),
            (2, "bicubic", False),
            (3, "trilinear", False),
        )
        for factor in (2, 1.5)
    ),
    Case("Upsample", image(3, 2), size=(5, 8)),
    Case("UpsamplingBilinear2d", image(3, 2), scale_factor=2),
    Case("UpsamplingNearest2d", image(3, 2), scale_factor=2),
    Case("PixelShuffle", image(8, 2), 2),
    Case("PixelUnshuffle", even(2, 2), 2),
    Case("ChannelShuffle", image(6, 2), 3),
    # ----------------------------------------------------------------- losses
    *(Case(name, pair, reduction=how) for name in ("L1Loss", "MSELoss") for how in ("none", "sum", "mean")),
    Case("SmoothL1Loss", pair, beta=0.5),
    Case("HuberLoss", pair, delta=0.5),
    Case("PoissonNLLLoss", lambda n, s: (torch.randn(n, s), torch.rand(n, s) * 5), full=True),
    Case("GaussianNLLLoss", lambda n, s: (*pair(n, s), torch.rand(n, s) + 0.1), full=True),
    Case("KLDivLoss", shares, reduction="batchmean"),
    Case("BCELoss", shares),
    Case("BCEWithLogitsLoss", shares, pos_weight=torch.tensor(2.0)),
    Case("HingeEmbeddingLoss", signs),
    Case("SoftMarginLoss", signs),
    Case("MarginRankingLoss", lambda n, s: (torch.randn(n), torch.randn(n), torch.sign(torch.randn(n))), 0.1),
    Case("CosineEmbeddingLoss", lambda n, s: (*pair(n, s), torch.sign(torch.randn(n))), 0.1),
    Case("TripletMarginLoss", three),
    Case("TripletMarginWithDistanceLoss", three, swap=True),
    Case("MultiLabelMarginLoss", sets),
    Case("MultiLabelSoftMarginLoss", shares),
    Case("MultiMarginLoss", classes, p=2),
    *(Case("NLLLoss", pixels, ignore_index=2, reduction=how) for how in ("none", "sum", "mean")),
    Case("NLLLoss2d", pixels),
    Case("CrossEntropyLoss", classes, torch.rand(5), label_smoothing=0.1),
    Case("CrossEntropyLoss", pixels, ignore_index=2),
    Case("LinearCrossEntropyLoss", lambda n, s: (torch.randn(n, 8), torch.randint(0, 5, (n,))), 8, 5),
    Case("CTCLoss", spoken),
    Case("CTCLoss", spoken, reduction="none", zero_infinity=True),
    Case(
        "AdaptiveLogSoftmaxWithLoss",
        lambda n, s: (torch.randn(n * s, 8), torch.randint(0, 20, (n * s,))),
        8,
        20,
        [5, 10],
    ),
    Case("CosineSimilarity", pair),
    Case("PairwiseDistance", pair, 3.0, keepdim=True),
]


def _layers() -> set[str]:
    found = vars(nn).items()
    return {name for name, value in found if inspect.isclass(value) and issubclass(value, nn.Module)}


# torch that is older lacks some layers.
HERE = [case for case in CASES if case.name in _layers()]


def test_no_layer_is_forgotten() -> None:
    assert _layers() - {case.name for case in CASES} == LEFT_OUT.keys() & _layers()


def _differences(first: Any, second: Any) -> Any:
    """Which axes of the inputs depend on the size."""
    if isinstance(first, tuple):
        return tuple(map(_differences, first, second))
    axes = zip(first.shape, second.shape, strict=True)
    return {i: torch.export.Dim.DYNAMIC for i, (a, b) in enumerate(axes) if a != b}


def _compared(layer: nn.Module, program: Any, inputs: tuple[Any, ...]) -> None:
    with torch.no_grad():
        expected = [x for x in pytree.tree_leaves(layer(*inputs)) if isinstance(x, Tensor)]
    got = program(*inputs)
    assert len(got) == len(expected)
    for mine, torchs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, torchs, rtol=1e-4, atol=1e-4, equal_nan=True)


def _exported(layer: nn.Module, inputs: tuple[Any, ...], shapes: Any = None) -> Any:
    program = atonnx.export(layer, inputs, dynamic_shapes=shapes)
    onnx.checker.check_model(program.model_proto, full_check=True)
    return program


@pytest.mark.parametrize("case", HERE, ids=repr)
def test_static(case: Case) -> None:
    layer, inputs = case.layer().eval(), case.inputs(*SIZES[0])
    _compared(layer, _exported(layer, inputs), inputs)


@pytest.mark.parametrize("case", HERE, ids=repr)
def test_dynamic(case: Case) -> None:
    layer, sizes = case.layer().eval(), [case.inputs(*size) for size in SIZES]
    program = _exported(layer, sizes[0], _differences(*sizes[:2]))
    for inputs in sizes:
        _compared(layer, program, inputs)


@pytest.mark.filterwarnings("ignore:Exporting a model while it is in training mode")
@pytest.mark.parametrize("case", [case for case in HERE if case.name not in EVALUATED], ids=repr)
def test_training_mode(case: Case) -> None:
    layer, inputs = case.layer().train(), case.inputs(*SIZES[0])
    _compared(layer, _exported(layer, inputs), inputs)
