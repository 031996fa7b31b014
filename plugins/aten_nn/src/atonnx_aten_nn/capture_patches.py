"""What holds while a model is captured: recurrent layers stay whole, cache objects are inputs.

torch's composite kernels of recurrent layers iterate over time, which fixes its size. In their place
come kernels that tell the result's shape only.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from atonnx.capture._torch import replaced_kernels
from atonnx.errors import UnsupportedOpError
from atonnx_aten_nn._torch import is_registered, is_traced, original_kernel

__all__ = ["refused_packed_sequences", "transformers_caches", "whole_ctc_loss", "whole_recurrent_layers"]

aten = torch.ops.aten
Tensors = Sequence[torch.Tensor]


def _shapes(
    x: torch.Tensor, states: Tensors, params: Tensors, num_layers: int, bidirectional: bool
) -> tuple[torch.Tensor, ...]:
    """Empty results of a recurrent layer."""
    directions = 2 if bidirectional else 1
    hidden = states[0].shape[-1]
    results = [x.new_empty((*x.shape[:-1], directions * hidden))]
    results += [state.new_empty(state.shape) for state in states]
    return tuple(results)


def _lstm(
    input: torch.Tensor,
    hx: Tensors,
    params: Tensors,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, ...]:
    if not is_traced((input, *hx)):
        flags = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
        return original_kernel(aten.lstm.input, input, hx, params, *flags)
    return _shapes(input, hx, params, num_layers, bidirectional)


def _one_state(overload: Any) -> Callable[..., tuple[torch.Tensor, ...]]:
    def kernel(
        input: torch.Tensor,
        hx: torch.Tensor,
        params: Tensors,
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[torch.Tensor, ...]:
        if not is_traced((input, hx)):
            flags = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
            return original_kernel(overload, input, hx, params, *flags)
        return _shapes(input, [hx], params, num_layers, bidirectional)

    return kernel


def _refusing(overload: Any) -> Callable[..., Any]:
    def kernel(*args: Any) -> Any:
        if not is_traced(args):
            return original_kernel(overload, *args)
        raise UnsupportedOpError(
            "a PackedSequence is not supported",
            op=overload.name(),
            hint="give the recurrent layer the padded batch; with one direction its outputs at the real "
            "steps are the same",
        )

    return kernel


@contextlib.contextmanager
def refused_packed_sequences() -> Iterator[None]:
    """Packing is refused with a way out, where torch would fail at a size that it cannot know."""
    packing = (aten._pack_padded_sequence, aten.lstm, aten.gru, aten.rnn_tanh, aten.rnn_relu)
    with contextlib.ExitStack() as stack:
        for packet in packing:
            overload = packet.data if "data" in packet.overloads() else packet.default
            stack.enter_context(replaced_kernels(overload, _refusing(overload)))
        yield


@contextlib.contextmanager
def whole_recurrent_layers() -> Iterator[None]:
    """Recurrent layers are captured as one operator, time and batch as dynamic as asked for."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced_kernels(aten.lstm.input, _lstm))
        for overload in (aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input):
            stack.enter_context(replaced_kernels(overload, _one_state(overload)))
        yield


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
