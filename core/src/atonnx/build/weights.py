"""Initializers by reference: a model's weights, and what is derived from them.

Neither kind copies a weight. A :class:`Weight` reads the torch tensor's storage when its bytes are
asked for; a :class:`Derived` keeps the recipe, and computes the result each time, so that saving a
model needs memory for one weight only.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build.dtypes import to_ir
from atonnx.errors import BuildError, OnnxExporterError, both

__all__ = ["Derived", "Recipe", "Source", "Transpose", "Transposed", "Weight", "leaves", "require_data"]

# What is not contiguous is brought into order in blocks of this many rows, which stay in the cache;
# rows of more than _ROW_SIZE elements are cut up themselves.
_ROWS = 64
_ROW_SIZE = 1 << 16


class Recipe(abc.ABC):
    """How a derived weight is made of its sources.

    Make recipes frozen dataclasses. Tensors are in ONNX layout (complex ones as real pairs).
    """

    @abc.abstractmethod
    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        """The derived tensor; a view of a source will do.

        It is called with meta tensors for dtype and shape, and must not write into the sources.
        """

    @abc.abstractmethod
    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        """The same in ONNX nodes, recorded on ``tape``, for files where weights are plain inputs.

        Only operator forms that all opsets share may be used.
        """


class _Stored(ir.TensorProtocol):
    """An initializer whose bytes come from a torch tensor, made when asked for.

    A complex tensor has the dtype of its parts and a last axis of 2.
    """

    def __init__(self, dtype: ir.DataType, shape: Sequence[int], name: str | None) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = ir.Shape(tuple(int(size) for size in shape), frozen=True)
        self.doc_string = None
        self.metadata_props = {}
        self.meta = {}

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape.numpy())

    @property
    def nbytes(self) -> int:
        """How many bytes it has in the file."""
        return math.ceil(self.dtype.itemsize * self.size)

    @property
    def raw(self) -> Any:
        """The tensor itself."""
        return self.data()

    def data(self) -> torch.Tensor:
        """The tensor in ONNX layout, which may be a view of a weight: do not write into it.

        Raises:
            OnnxExporterError: also a TypeError, where a weight has no data.
        """
        raise NotImplementedError

    def numpy(self) -> np.ndarray[Any, Any]:
        """The tensor as an array, without a copy where its layout allows that."""
        return ir.tensor_adapters.TorchTensor(self.data()).numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=bool(copy))

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self.data().__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self.data().__dlpack_device__()
        return int(kind), int(index)

    def tobytes(self) -> bytes:
        """All bytes at once. Saving uses :meth:`tofile`, which needs no copy."""
        return b"".join(_blocks(self.data()))

    def tofile(self, file: BinaryIO) -> None:
        """Write the bytes to ``file`` in blocks."""
        for block in _blocks(self.data()):
            file.write(block)


class Weight(_Stored):
    """A parameter, buffer or lifted tensor of the model, by reference.

    ``source`` is its name in the state dict, ``aliases`` are the further names of a tied one.
    ``tensor`` may be fake or on the meta device: then the model can be built, but only be saved
    with its weights after ``apply_weights``.
    """

    def __init__(
        self,
        tensor: torch.Tensor,
        source: str,
        *,
        aliases: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        if not isinstance(tensor, torch.Tensor):
            raise both(BuildError, TypeError)(f"weight {source!r} is a {type(tensor).__name__}, not a tensor")
        if tensor.layout is not torch.strided:
            raise both(BuildError, TypeError)(
                f"weight {source!r} has layout {tensor.layout}, which ONNX initializers do not have",
                hint="give the model a dense copy (.to_dense())",
            )
        complex_parts = {torch.complex64: torch.float32, torch.complex128: torch.float64}
        part = complex_parts.get(tensor.dtype)
        shape = (*tensor.shape, 2) if part else tensor.shape
        super().__init__(to_ir(part or tensor.dtype), shape, name or source)
        self.tensor = tensor
        self.source = source
        self.aliases = tuple(aliases)

    def __repr__(self) -> str:
        return f"Weight<{self.dtype},{self.shape}>({self.source!r})"

    @property
    def names(self) -> tuple[str, ...]:
        """All its names in the state dict."""
        return (self.source, *self.aliases)

    def data(self) -> torch.Tensor:
        """The tensor in ONNX layout: without a copy, except for conjugate and negative views."""
        require_data(self)
        tensor = self.tensor.detach().resolve_conj().resolve_neg()
        return torch.view_as_real(tensor) if tensor.is_complex() else tensor

    def with_weights(self, weights: Mapping[str, torch.Tensor]) -> Weight:
        """The weight with another tensor, where ``weights`` has one under any of its names.

        Raises:
            OnnxExporterError: also a ValueError, where shape or dtype differ, or where the names of
                a tied weight have different tensors.
        """
        given = [name for name in self.names if name in weights]
        if not given:
            return self
        tensor = weights[given[0]]
        if not isinstance(tensor, torch.Tensor):
            raise both(OnnxExporterError, TypeError)(
                f"weight {given[0]!r} is a {type(tensor).__name__}, not a tensor"
            )
        if tensor.shape != self.tensor.shape or tensor.dtype != self.tensor.dtype:
            raise both(OnnxExporterError, ValueError)(
                f"weight {given[0]!r} is {_describe(tensor)}, the model has {_describe(self.tensor)}",
                hint="export the model that the weights belong to",
            )
        for other in given[1:]:
            if not _same(tensor, weights[other]):
                raise both(OnnxExporterError, ValueError)(
                    f"{given[0]!r} and {other!r} are one tied weight in the model, but two tensors here"
                )
        return Weight(tensor, self.source, aliases=self.aliases, name=self.name)


class Derived(_Stored):
    """A weight that is computed from others each time that its bytes are asked for.

    ``sources`` are weights, derived weights, or constants of any ``onnx_ir`` tensor kind.
    """

    def __init__(self, recipe: Recipe, *sources: Source, name: str | None = None) -> None:
        result = recipe.compute(*map(_meta, sources))
        super().__init__(to_ir(result.dtype), result.shape, name)
        self.recipe = recipe
        self.sources = sources

    def __repr__(self) -> str:
        sources = ", ".join(map(repr, self.sources))
        return f"Derived<{self.dtype},{self.shape}>({self.recipe!r}, {sources})"

    def data(self) -> torch.Tensor:
        """Compute it."""
        with torch.no_grad():
            result = self.recipe.compute(*map(_tensor, self.sources))
        if result.shape != self.shape.numpy() or to_ir(result.dtype) != self.dtype:
            raise BuildError(f"{self!r} was computed as {_describe(result)}")
        return result

    def with_weights(self, weights: Mapping[str, torch.Tensor]) -> Derived:
        """The same recipe over new sources; see :meth:`Weight.with_weights`."""
        new = [s.with_weights(weights) if isinstance(s, (Weight, Derived)) else s for s in self.sources]
        if all(a is b for a, b in zip(new, self.sources, strict=True)):
            return self
        return Derived(self.recipe, *new, name=self.name)


Source = Weight | Derived | ir.TensorProtocol


@dataclass(frozen=True)
class Transpose(Recipe):
    """Axes in the order ``perm``."""

    perm: tuple[int, ...]

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        """A view: it is brought into order block by block while it is written."""
        return sources[0].permute(self.perm)

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        """Transpose."""
        return tape.op("Transpose", [sources[0]], {"perm": list(self.perm)})


class Transposed(Derived):
    """A weight with its axes in another order."""

    def __init__(self, weight: Source, perm: Sequence[int] = (1, 0), *, name: str | None = None) -> None:
        rank = len(weight.shape)
        order = tuple(int(axis) + (rank if axis < 0 else 0) for axis in perm)
        if sorted(order) != list(range(rank)):
            raise both(BuildError, ValueError)(f"{tuple(perm)} does not order the {rank} axes of {weight!r}")
        super().__init__(Transpose(order), weight, name=name)


def leaves(tensor: object) -> Iterator[Weight]:
    """The weights that an initializer is, or is derived from."""
    if isinstance(tensor, Weight):
        yield tensor
    elif isinstance(tensor, Derived):
        for source in tensor.sources:
            yield from leaves(source)


def require_data(tensor: object) -> None:
    """Check that the bytes of an initializer can be had, without computing them.

    Raises:
        OnnxExporterError: also a TypeError, naming the weight that has no data.
    """
    for weight in leaves(tensor):
        kind = _without_data(weight.tensor)
        if kind:
            raise both(OnnxExporterError, TypeError)(
                f"weight {weight.source!r} has no data: it is {kind}",
                hint="give it data with ONNXProgram.apply_weights(state_dict), or save the model without "
                "weights (include_initializers=False)",
            )


def _without_data(tensor: torch.Tensor) -> str:
    """What a tensor without bytes of its own is; empty for all others."""
    # A fake tensor claims the device that it stands for; its storage tells the truth.
    if tensor.untyped_storage().device.type == "meta":
        return "a meta tensor" if tensor.is_meta else f"a {type(tensor).__name__}"
    try:
        found = not tensor.numel() or tensor.data_ptr() != 0
    except RuntimeError:
        found = False
    return "" if found else f"a {type(tensor).__name__}, which wraps other tensors"


def _tensor(source: Source) -> torch.Tensor:
    """The data of a source in ONNX layout."""
    if isinstance(source, _Stored):
        return source.data()
    dtype = ir.tensor_adapters.to_torch_dtype(source.dtype)
    if not source.size:
        return torch.empty(source.shape.numpy(), dtype=dtype)
    return torch.frombuffer(bytearray(source.tobytes()), dtype=dtype).reshape(source.shape.numpy())


def _meta(source: Source) -> torch.Tensor:
    """A source without data."""
    dtype = ir.tensor_adapters.to_torch_dtype(source.dtype)
    return torch.empty(source.shape.numpy(), dtype=dtype, device="meta")


def _blocks(tensor: torch.Tensor) -> Iterator[memoryview]:
    """The bytes of a tensor in row-major order; those of a contiguous one are not copied."""
    if tensor.numel() == 0:
        return
    if tensor.is_contiguous():
        yield tensor.cpu().reshape(-1).view(torch.uint8).numpy().data
    elif tensor.dim() == 1:
        yield from _blocks(tensor.contiguous())
    elif tensor.dim() > 2 and tensor.numel() > tensor.shape[0] * _ROW_SIZE:
        for row in tensor:
            yield from _blocks(row)
    else:
        for start in range(0, tensor.shape[0], _ROWS):
            yield from _blocks(_in_order(tensor[start : start + _ROWS]))


def _in_order(block: torch.Tensor) -> torch.Tensor:
    """A contiguous copy of some rows."""
    if block.dim() == 2 and block.stride(0) == 1:
        # torch has a fast kernel for the transpose of a whole matrix, none for some rows of it.
        block = block.t().contiguous().t()
    return block.contiguous()


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are one, or hold the same."""
    if a is b:
        return True
    if a.shape != b.shape or a.dtype != b.dtype or _without_data(a) or _without_data(b):
        return False
    # Bytes, not numbers: a weight with a nan in it equals itself.
    return torch.equal(*(t.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for t in (a, b)))


def _describe(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
