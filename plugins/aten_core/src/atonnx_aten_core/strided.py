"""Views by strides, and tensors given another size in place.

Strides address a storage. In ONNX there is only the tensor, so what a view reads must be in it: the
order of its elements in the storage follows from the strides that the captured program records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.sizes import of, smax
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_core._axes import arange, dims_of, numel, pair, rank_of, transposed
from atonnx_aten_core._complex import as_pair, real

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_INT64 = ir.DataType.INT64
_LARGE = 4096  # indices beyond it are computed, not stored


# --------------------------------------------------------------- as_strided


def _layout(op: Builder, x: Value) -> tuple[list[int], Any]:
    """The axes of the argument in the order of its storage, and where in the storage it begins."""
    node = op.origin.fx
    argument = node.args[0] if node is not None and node.args else None
    fake = argument.meta.get("val") if isinstance(argument, torch.fx.Node) else None
    axes = list(range(rank_of(x)))
    sizes = dims_of(x)
    if not isinstance(fake, torch.Tensor) or any(isinstance(n, int) and n == 0 for n in sizes):
        return axes, 0
    strides = [of(stride) for stride in fake.stride()]
    inner: list[int] = []
    expected: Any = 1
    while axes:
        found = [axis for axis in axes if sizes[axis] == 1 or strides[axis] == expected]
        if not found:
            raise UnsupportedOpError.here(
                op,
                "a view by strides of a tensor that has gaps in memory or repeats elements",
                hint="call .contiguous() before as_strided, or index instead",
            )
        inner.append(found[-1])
        axes.remove(found[-1])
        expected = expected * sizes[found[-1]]
    return inner[::-1], of(fake.storage_offset())


def _flat(op: Builder, x: Value, axes: Sequence[int]) -> Value:
    """The elements in the order of their storage."""
    flat = op.reshape(transposed(op, x, axes), (numel(dims_of(x)), *pair(x)))
    flat.is_complex = x.is_complex
    return flat


def _addresses(
    op: Builder, x: Value, begin: Any, size: Sequence[Any], stride: Sequence[Any], offset: Any
) -> Value:
    """Where the elements of the view are among those of ``x``."""
    start: Any = 0 if offset is None else offset - begin
    span = [*size, *stride, start, *dims_of(x)]
    if all(isinstance(n, int) for n in span):
        last = start + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if numel(size) and (start < 0 or last >= numel(dims_of(x))):
            raise _outside(op)
        if numel(size) <= _LARGE:
            made = np.full(tuple(size), start, dtype=np.int64)
            for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
                form = [count if at == axis else 1 for at in range(len(size))]
                made += (np.arange(count, dtype=np.int64) * step).reshape(form)
            return op.const(made)
    elif begin != 0 and not op.session.facts.provably_nonnegative(start):
        raise _outside(op)
    address = op.size(start)
    for axis, (count, step) in enumerate(zip(size, stride, strict=True)):
        steps = op.Mul(arange(op, count), op.size(step)) if step != 1 else arange(op, count)
        after = len(size) - 1 - axis
        steps = op.Unsqueeze(steps, list(range(1, 1 + after))) if after else steps
        address = steps if axis == 0 and start == 0 else op.Add(address, steps)
    address.dims = tuple(size)
    return address


def _outside(op: Builder) -> UnsupportedOpError:
    return UnsupportedOpError.here(
        op,
        "a view by strides of memory outside of the tensor",
        hint="take the view of the whole tensor",
    )


def _dense(size: Sequence[Any], stride: Sequence[Any]) -> bool:
    """Whether strides are those of a contiguous tensor."""
    expected: Any = 1
    for count, step in zip(reversed(size), reversed(stride), strict=True):
        if count != 1 and step != expected:
            return False
        expected = expected * count
    return True


@table.translate(aten.as_strided.default, aten.as_strided_copy.default, complex="layout")
def as_strided(
    op: Builder, self: Value, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None
) -> Value:
    """Gather from the elements in the order of their storage; Reshape where the view is all of them."""
    axes, begin = _layout(op, self)
    flat = _flat(op, self, axes)
    if (storage_offset is None or storage_offset == begin) and _dense(size, stride):
        if numel(size) == numel(dims_of(self)):
            return op.reshape(flat, op.out.dims)
    return op.Gather(flat, _addresses(op, self, begin, size, stride, storage_offset), axis=0)


@table.translate(aten.as_strided_scatter.default, complex="layout")
def as_strided_scatter(
    op: Builder,
    self: Value,
    src: Value,
    size: Sequence[Any],
    stride: Sequence[Any],
    storage_offset: Any = None,
) -> Value:
    """ScatterND into the elements in the order of their storage."""
    axes, begin = _layout(op, self)
    flat = _flat(op, self, axes)
    count = numel(size)
    where = op.reshape(_addresses(op, self, begin, size, stride, storage_offset), (count, 1))
    taken = as_pair(op, src, self.dtype) if self.is_complex else op.cast(real(op, src), self.dtype)
    made = op.ScatterND(flat, where, op.reshape(taken, (count, *pair(self))))
    sizes = dims_of(self)
    back = op.reshape(made, [*(sizes[axis] for axis in axes), *pair(self)])
    back.is_complex = self.is_complex
    return transposed(op, back, [axes.index(axis) for axis in range(len(axes))])


# ------------------------------------------------------------------- resize


def _resized(op: Builder, x: Value, size: Sequence[Any], memory_format: Any) -> Value:
    """The first elements in the order of the storage, zeros after the last: torch leaves them undefined."""
    if memory_format in (torch.channels_last, torch.channels_last_3d):
        raise UnsupportedOpError.here(op, f"resizing to {memory_format}", hint="resize without it")
    axes, _ = _layout(op, x)
    flat = _flat(op, x, axes)
    have, want = numel(dims_of(x)), numel(size)
    if have == want:
        return op.reshape(flat, op.out.dims)
    facts = op.session.facts
    if not facts.compare(want, "<=", have):
        filler = op.expand(op.const(0, x.dtype), (smax(want - have, 0), *pair(x)))
        flat = op.Concat(flat, filler, axis=0)
    return op.reshape(op.Slice(flat, [0], [want], [0]), op.out.dims)


@table.translate(aten.resize.default, complex="layout")
def resize(op: Builder, self: Value, size: Sequence[Any], *, memory_format: Any = None) -> Value:
    """Slice of the elements, Reshape."""
    return _resized(op, self, size, memory_format)


@table.translate(aten.resize_as.default, complex="layout")
def resize_as(op: Builder, self: Value, the_template: Value, *, memory_format: Any = None) -> Value:
    """Slice of the elements, Reshape."""
    return _resized(op, self, dims_of(the_template), memory_format)


@table.translate(aten.zero.default, complex="also")
def zero(op: Builder, self: Value) -> Value:
    """Expand of 0."""
    made = op.expand(op.const(0, self.dtype), self.dims or ())
    made.is_complex = self.is_complex
    return made


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    x, window = torch.randn(3, 4), ([2, 3], [4, 1], 1)
    views = (aten.as_strided.default, aten.as_strided_copy.default)
    return [
        *(OpSample(f, (x, *window)) for f in views),
        *(OpSample(f, (x.t(), [6, 2], [2, 1])) for f in views),
        OpSample(aten.as_strided_scatter.default, (x, torch.randn(2, 3), *window)),
        OpSample(aten.resize.default, (x, [2, 3])),
        OpSample(aten.resize_as.default, (x, torch.zeros(6, 2))),
        OpSample(aten.zero.default, (x,)),
    ]
