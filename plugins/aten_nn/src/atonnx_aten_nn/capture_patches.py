"""What holds while a model is captured: recurrent layers stay whole, cache objects are inputs.

torch's composite kernels of recurrent layers iterate over time, which fixes its size. In their place
come kernels that tell the result's shape only.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from atonnx.capture._torch import replaced_kernels
from atonnx_aten_nn._torch import (
    AdaptiveOutput,
    is_registered,
    is_surely,
    is_traced,
    meta_kernel,
    original_kernel,
    replaced,
)

__all__ = [
    "adaptive_softmax",
    "cross_map_norms",
    "dynamic_shape_rules",
    "gaussian_loss",
    "packed_sequences",
    "transformers_caches",
    "whole_ctc_loss",
    "whole_recurrent_layers",
]

aten = torch.ops.aten


def _whole(overload: Any, state: int, bidirectional: int) -> Callable[..., tuple[torch.Tensor, ...]]:
    """A kernel that gives empty results; it is told where the arguments of its overload are."""

    def kernel(*args: Any) -> tuple[torch.Tensor, ...]:
        x, states = args[0], args[state]
        states = states if isinstance(states, (list, tuple)) else [states]
        if not is_traced((x, *states)):
            return original_kernel(overload, *args)
        width = states[0].shape[-1] * (2 if args[bidirectional] else 1)
        return x.new_empty((*x.shape[:-1], width)), *(each.new_empty(each.shape) for each in states)

    return kernel


@contextlib.contextmanager
def whole_recurrent_layers() -> Iterator[None]:
    """Recurrent layers are captured as one operator, time and batch as dynamic as asked for."""
    with contextlib.ExitStack() as stack:
        for packet in (aten.lstm, aten.gru, aten.rnn_tanh, aten.rnn_relu):
            for overload, state, bidirectional in ((packet.input, 1, 7), (packet.data, 2, 8)):
                stack.enter_context(replaced_kernels(overload, _whole(overload, state, bidirectional)))
        yield


# ---------------------------------------------------------- sequences that are packed


def _pack(x: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The steps of all sequences, longest sequence first, and how many sequences have each step."""
    x = x.transpose(0, 1) if batch_first else x
    time, batch = x.shape[:2]
    real = torch.arange(time).unsqueeze(1) < lengths.unsqueeze(0)
    places = real.nonzero()
    longest = lengths.max().item()
    torch._check(longest >= 1)
    torch._check(longest <= time)
    batch_sizes = real.sum(1).narrow(0, 0, longest)  # type: ignore[arg-type]
    batch_sizes.batch = batch  # type: ignore[attr-defined]
    return x[places[:, 0], places[:, 1]], batch_sizes


def _pad(
    data: torch.Tensor, batch_sizes: torch.Tensor, batch_first: bool, padding_value: Any, total_length: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """The sequences along a batch axis, and their lengths."""
    time = batch_sizes.shape[0]
    batch: Any = getattr(batch_sizes, "batch", None)
    if batch is None:
        batch = batch_sizes[0].item()
    numbers = torch.arange(batch)
    real = numbers < batch_sizes.unsqueeze(1)
    begins = batch_sizes.cumsum(0) - batch_sizes
    rows = data[torch.where(real, begins.unsqueeze(1) + numbers, 0)]
    rows = rows.masked_fill(~real.reshape(time, batch, *[1] * (rows.dim() - 2)), padding_value)
    if not is_surely(total_length == time):
        more = rows.new_full((total_length - time, *rows.shape[1:]), padding_value)
        rows = torch.cat([rows, more])
    return rows.transpose(0, 1) if batch_first else rows, real.sum(0)


def _unchecked(original: Callable[..., Any]) -> Callable[..., Any]:
    def check(layer: Any, x: torch.Tensor, hidden: Any, batch_sizes: torch.Tensor | None) -> None:
        if batch_sizes is None or not is_traced((x,)):
            original(layer, x, hidden, batch_sizes)

    return check


@contextlib.contextmanager
def packed_sequences() -> Iterator[None]:
    """Packing and padding are captured as indexing: the operators' sizes depend on values.

    A layer does not compare the size of its states with the number of sequences, which is a value too.
    """
    with contextlib.ExitStack() as stack:
        for name, kernel in (("_pack_padded_sequence", _pack), ("_pad_packed_sequence", _pad)):
            stack.enter_context(replaced(torch._VF, name, _traced(kernel, getattr(torch._VF, name))))
        for layer in (torch.nn.RNNBase, torch.nn.LSTM):
            check = _unchecked(layer.check_forward_args)
            stack.enter_context(replaced(layer, "check_forward_args", check))
        yield


def _traced(kernel: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return (kernel if is_traced(args) else original)(*args)

    return call


def _ctc(overload: Any) -> Callable[..., torch.Tensor]:
    def kernel(
        log_probs: torch.Tensor,
        targets: torch.Tensor,
        input_lengths: Any,
        target_lengths: Any,
        blank: int = 0,
        reduction: int = 1,
        zero_infinity: bool = False,
    ) -> torch.Tensor:
        if not is_traced((log_probs, targets)):
            flags = (blank, reduction, zero_infinity)
            made = original_kernel(overload, log_probs, targets, input_lengths, target_lengths, *flags)
            return made
        each = reduction == 0 and log_probs.dim() == 3
        return log_probs.new_empty((log_probs.shape[1],) if each else ())

    return kernel


@contextlib.contextmanager
def whole_ctc_loss() -> Iterator[None]:
    """The loss is captured as one operator; what its kernel keeps has a size that depends on values."""
    with contextlib.ExitStack() as stack:
        for overload in (aten.ctc_loss.IntList, aten.ctc_loss.Tensor):
            stack.enter_context(replaced_kernels(overload, _ctc(overload)))
        yield


# ------------------------------------------------- sizes that only a program would have


def _adaptive_loss(layer: Any, input_: torch.Tensor, target_: torch.Tensor) -> Any:
    """The log-probabilities of the targets and their mean, computed for all classes."""
    target = target_.reshape(-1, 1)
    scores = layer.log_prob(input_.reshape(target.shape[0], -1))
    output = scores.gather(1, target).reshape(target_.shape)
    return AdaptiveOutput(output, -output.mean())


def _adaptive_prediction(layer: Any, input: torch.Tensor) -> torch.Tensor:
    """The best class of the head; where that is a cluster, the best class of all."""
    head = layer.head(input)
    best = head.argmax(1)
    return torch.where(best >= layer.shortlist_size, layer._get_full_log_prob(input, head).argmax(1), best)


@contextlib.contextmanager
def adaptive_softmax() -> Iterator[None]:
    """``AdaptiveLogSoftmaxWithLoss`` computes the clusters for all rows, not for those that need them."""
    layer = torch.nn.AdaptiveLogSoftmaxWithLoss
    with (
        replaced(layer, "forward", _adaptive_loss),
        replaced(layer, "predict", _adaptive_prediction),
    ):
        yield


def _gaussian_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    var: torch.Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> torch.Tensor:
    if not isinstance(var, torch.Tensor) or not is_traced((input, var)):
        return _GAUSSIAN_LOSS(input, target, var, full, eps, reduction)
    var = (var.unsqueeze(-1) if var.dim() < input.dim() else var).clamp(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.mean()


_GAUSSIAN_LOSS: Callable[..., Any] = torch.nn.functional.gaussian_nll_loss


@contextlib.contextmanager
def gaussian_loss() -> Iterator[None]:
    """The loss does not look whether a variance is negative."""
    with replaced(torch.nn.functional, "gaussian_nll_loss", _gaussian_loss):
        yield


def _across_channels(layer: torch.nn.CrossMapLRN2d, input: torch.Tensor) -> torch.Tensor:
    # torch's running sums never lose the first channel.
    reach = (layer.size - 1) // 2
    channel = torch.arange(input.shape[1])
    counted = ((channel.unsqueeze(1) - channel).abs() <= reach) | (channel == 0)
    sums = counted.to(input.dtype) @ (input * input).flatten(2)
    scale = sums.reshape(input.shape) * (layer.alpha / layer.size) + layer.k
    return input * scale**-layer.beta


@contextlib.contextmanager
def cross_map_norms() -> Iterator[None]:
    """``CrossMapLRN2d`` is a formula, where torch's own function fills a buffer channel by channel."""
    with replaced(torch.nn.CrossMapLRN2d, "forward", _across_channels):
        yield


# ------------------------------------------------------- shapes that torch would freeze


def _max_pool1d(
    self: torch.Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = (0,),
    dilation: Any = (1,),
    ceil_mode: bool = False,
) -> torch.Tensor:
    if not is_traced((self,)):
        flags = (kernel_size, stride, padding, dilation, ceil_mode)
        return original_kernel(aten.max_pool1d.default, self, *flags)
    steps = [1, *stride] if stride else []
    numbers = ([1, *kernel_size], steps, [0, *padding], [1, *dilation])
    return torch.max_pool2d(self.unsqueeze(-2), *numbers, ceil_mode).squeeze(-2)


def _fractional_max_pool3d(
    self: torch.Tensor, kernel_size: Any, output_size: Any, random_samples: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    sizes = (*self.shape[:-3], *output_size)
    return self.new_empty(sizes), self.new_empty(sizes, dtype=torch.int64)


def _pad_circular(self: torch.Tensor, pad: Any) -> torch.Tensor:
    if not is_traced((self,)):
        return original_kernel(aten._pad_circular.default, self, pad)
    sizes = list(self.shape)
    for i in range(0, len(pad), 2):
        sizes[-1 - i // 2] += pad[i] + pad[i + 1]
    return self.new_empty(sizes)


@contextlib.contextmanager
def dynamic_shape_rules() -> Iterator[None]:
    """Operators whose shape rule in torch takes numbers only are captured with symbolic sizes."""
    with (
        replaced_kernels(aten.max_pool1d.default, _max_pool1d),
        replaced_kernels(aten._pad_circular.default, _pad_circular),
        meta_kernel(aten.fractional_max_pool3d.default, _fractional_max_pool3d),
    ):
        yield


@contextlib.contextmanager
def transformers_caches() -> Iterator[None]:
    """A ``DynamicCache`` among the inputs or outputs is taken apart, where transformers is in use.

    The registration stays: the exported program is called with such objects too.
    """
    caches = sys.modules.get("transformers.cache_utils")
    cls = getattr(caches, "DynamicCache", None)
    if cls is None or is_registered(cls):
        yield
        return
    try:
        from transformers.integrations.executorch import register_dynamic_cache_export_support
    except ImportError:  # a version of transformers that has no such function
        yield
        return
    register_dynamic_cache_export_support()
    yield
