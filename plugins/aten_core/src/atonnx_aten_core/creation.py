"""Tensors made of sizes and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.dtypes import FLOATS, INTS, real_of, to_ir
from atonnx.dispatch import Table
from atonnx_aten_core._axes import dims_of
from atonnx_aten_core._complex import as_pair, imaginary, real, spread
from atonnx_aten_core._promote import in_dtype

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)


class _Kind(NamedTuple):
    """The dtype of the elements, or of the parts of complex ones."""

    dtype: ir.DataType
    is_complex: bool


def _kind(op: Builder, dtype: Any, like: Value | None = None) -> _Kind:
    """The dtype asked for, else that of ``like``, else what the node promises."""
    if isinstance(dtype, torch.dtype):
        return _Kind(to_ir(real_of(dtype)), dtype.is_complex)
    model = op.out if like is None else like
    return _Kind(model.dtype, model.is_complex)


def _filled(op: Builder, size: Any, fill_value: Any, kind: _Kind) -> Value:
    """One number expanded to sizes."""
    dtype, is_complex = kind
    if is_complex:
        return op.expand(as_pair(op, fill_value, dtype), (*size, 2))
    if dtype in INTS and isinstance(fill_value, float):
        fill_value = int(fill_value)
    return op.expand(in_dtype(op, fill_value, dtype), tuple(size))


@table.translate(aten.full.default, complex="also")
def full(
    op: Builder,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Expand of the number."""
    return _filled(op, size, fill_value, _kind(op, dtype))


@table.translate(aten.zeros.default, complex="also")
def zeros(
    op: Builder,
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Expand of zero."""
    return _filled(op, size, 0, _kind(op, dtype))


@table.translate(aten.ones.default, complex="also")
def ones(
    op: Builder,
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Expand of one."""
    return _filled(op, size, 1, _kind(op, dtype))


@table.translate(aten.empty.memory_format, complex="also")
def empty(
    op: Builder,
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """Expand of zero: what torch leaves undefined is zero here."""
    return _filled(op, size, 0, _kind(op, dtype))


@table.translate(aten.empty_strided.default, complex="also")
def empty_strided(
    op: Builder,
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Expand of zero."""
    return _filled(op, size, 0, _kind(op, dtype))


@table.translate(aten.empty_permuted.default, complex="also")
def empty_permuted(
    op: Builder,
    size: Any,
    physical_layout: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Expand of zero."""
    return _filled(op, size, 0, _kind(op, dtype))


@table.translate(aten.new_full.default, complex="also")
def new_full(
    op: Builder,
    self: Value,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Expand of the number, in the dtype of ``self`` unless another is given."""
    return _filled(op, size, fill_value, _kind(op, dtype, self))


@table.translate(aten.new_zeros.default, complex="also")
def new_zeros(
    op: Builder,
    self: Value,
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Expand of zero, in the dtype of ``self`` unless another is given."""
    return _filled(op, size, 0, _kind(op, dtype, self))


@table.translate(aten.new_ones.default, complex="also")
def new_ones(
    op: Builder,
    self: Value,
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Expand of one, in the dtype of ``self`` unless another is given."""
    return _filled(op, size, 1, _kind(op, dtype, self))


@table.translate(aten.new_empty.default, complex="also")
def new_empty(
    op: Builder,
    self: Value,
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Expand of zero, in the dtype of ``self`` unless another is given."""
    return _filled(op, size, 0, _kind(op, dtype, self))


@table.translate(aten.new_empty_strided.default, complex="also")
def new_empty_strided(
    op: Builder,
    self: Value,
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Expand of zero, in the dtype of ``self`` unless another is given."""
    return _filled(op, size, 0, _kind(op, dtype, self))


@table.translate(aten.full_like.default, complex="also")
def full_like(
    op: Builder,
    self: Value,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """Expand of the number to the sizes of ``self``."""
    return _filled(op, dims_of(self), fill_value, _kind(op, dtype, self))


@table.translate(aten.zeros_like.default, complex="also")
def zeros_like(
    op: Builder,
    self: Value,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """Expand of zero to the sizes of ``self``."""
    return _filled(op, dims_of(self), 0, _kind(op, dtype, self))


@table.translate(aten.ones_like.default, complex="also")
def ones_like(
    op: Builder,
    self: Value,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """Expand of one to the sizes of ``self``."""
    return _filled(op, dims_of(self), 1, _kind(op, dtype, self))


@table.translate(aten.empty_like.default, complex="also")
def empty_like(
    op: Builder,
    self: Value,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Value:
    """Expand of zero to the sizes of ``self``."""
    return _filled(op, dims_of(self), 0, _kind(op, dtype, self))


@table.translate(aten.scalar_tensor.default, complex="also")
def scalar_tensor(
    op: Builder,
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """The number as a rank-0 tensor."""
    return _filled(op, (), s, _kind(op, dtype))


def _arange(op: Builder, start: Any, end: Any, step: Any, dtype: Any) -> Value:
    """Range of int64 for integers; else start + i * step in float64, as torch computes it."""
    kind = _kind(op, dtype).dtype
    if all(isinstance(x, int) or (isinstance(x, SymSize) and x.kind == "int") for x in (start, end, step)):
        return op.cast(op.Range(*(in_dtype(op, x, ir.DataType.INT64) for x in (start, end, step))), kind)
    return _counted(op, start, step, kind)


def _counted(op: Builder, start: Any, step: Any, kind: ir.DataType) -> Value:
    """start + i * step for as many as the result has, in int64 or float64."""
    index = op.Range(0, op.size(op.out.dims[0]), 1)
    if kind in INTS:
        # torch truncates start and step first.
        first, stride = (
            in_dtype(op, int(x) if isinstance(x, float) else x, ir.DataType.INT64) for x in (start, step)
        )
        return op.cast(op.Add(op.Mul(index, stride), first), kind)
    first, stride = (in_dtype(op, x, ir.DataType.DOUBLE) for x in (start, step))
    return op.cast(op.Add(op.Mul(op.cast(index, ir.DataType.DOUBLE), stride), first), kind)


@table.translate(aten.arange.default)
def arange(
    op: Builder,
    end: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Range from zero."""
    return _arange(op, 0, end, 1, dtype)


@table.translate(aten.arange.start)
def arange_start(
    op: Builder,
    start: Any,
    end: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Range."""
    return _arange(op, start, end, 1, dtype)


@table.translate(aten.arange.start_step)
def arange_step(
    op: Builder,
    start: Any,
    end: Any,
    step: Any = 1,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Range."""
    return _arange(op, start, end, step, dtype)


@table.translate(aten.range.default)
def range(
    op: Builder,
    start: Any,
    end: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Range, its end counted in."""
    return _counted(op, start, 1, _kind(op, dtype).dtype)


@table.translate(aten.range.step)
def range_step(
    op: Builder,
    start: Any,
    end: Any,
    step: Any = 1,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Range, its end counted in."""
    return _counted(op, start, step, _kind(op, dtype).dtype)


def _linspace(op: Builder, start: Any, end: Any, steps: Any, kind: ir.DataType) -> Value:
    """Counted up from the start in the first half and down from the end in the other, as in torch."""
    exact = kind if kind == ir.DataType.DOUBLE or kind in INTS else ir.DataType.FLOAT
    wide = exact if exact in FLOATS else ir.DataType.DOUBLE
    first, last = in_dtype(op, start, wide), in_dtype(op, end, wide)
    if steps == 1:
        return op.cast(op.Reshape(first, [1]), kind)
    if steps == 0:
        return op.cast(op.Reshape(op.Range(0, 0, 1), [0], allowzero=1), kind)
    stride = op.Div(op.Sub(last, first), op.cast(op.size(steps - 1), wide))
    index = op.Range(0, op.size(steps), 1)
    up = op.Add(first, op.Mul(op.cast(index, wide), stride))
    down = op.Sub(last, op.Mul(op.cast(op.Sub(op.size(steps - 1), index), wide), stride))
    return op.cast(op.Where(op.Less(index, op.size(steps // 2)), up, down), kind)


@table.translate(
    aten.linspace.default,
    aten.linspace.Tensor_Tensor,
    aten.linspace.Tensor_Scalar,
    aten.linspace.Scalar_Tensor,
    complex="also",
)
def linspace(
    op: Builder,
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Range, scaled; from the start in the first half, from the end in the other."""
    kind = _kind(op, dtype)
    if not kind.is_complex:
        return _linspace(op, start, end, steps, kind.dtype)
    first, last = as_pair(op, start, kind.dtype), as_pair(op, end, kind.dtype)
    parts = [_linspace(op, part(op, first), part(op, last), steps, kind.dtype) for part in (real, imaginary)]
    return spread(op, *parts)


def _eye(op: Builder, n: Any, m: Any, kind: _Kind) -> Value:
    rows = op.Unsqueeze(op.Range(0, op.size(n), 1), [1])
    made = op.Equal(rows, op.Range(0, op.size(m), 1))
    return as_pair(op, made, kind.dtype) if kind.is_complex else op.cast(made, kind.dtype)


@table.translate(aten.eye.default, complex="also")
def eye(
    op: Builder,
    n: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Equal of row and column numbers."""
    return _eye(op, n, n, _kind(op, dtype))


@table.translate(aten.eye.m, complex="also")
def eye_m(
    op: Builder,
    n: Any,
    m: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Value:
    """Equal of row and column numbers."""
    return _eye(op, n, m, _kind(op, dtype))


@table.translate(aten.vander.default)
def vander(op: Builder, x: Value, N: Any = None, increasing: bool = False) -> Value:
    """Pow, of a column and a Range."""
    base = op.Unsqueeze(op.cast(x, op.out.dtype), [1])
    powers = op.Range(0, op.size(op.out.dims[1]), 1)
    if not increasing:
        powers = op.Sub(op.size(op.out.dims[1] - 1), powers)
    return op.translate(aten.pow.Tensor_Tensor, base, op.cast(powers, op.out.dtype))


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, Size

    def x() -> torch.Tensor:
        return torch.tensor([[0.5, -1.5, 2.25], [-0.75, 3.0, 1.0]])

    def sized(*rest: Any) -> tuple[Any, ...]:
        tensor = x()
        return (tensor, [Size(tensor, 1)], *rest)

    shape_only: dict[str, Any] = {"options": {"values": False}, "reason": "torch leaves the values undefined"}
    return [
        OpSample(aten.full.default, lambda: ([3, 2], 2.5)),
        OpSample(aten.full.default, lambda: ([3], True)),
        OpSample(aten.full.default, lambda: ([3], 3), {"dtype": torch.int64}),
        OpSample(aten.zeros.default, lambda: ([3, 0],), {"dtype": torch.bool}),
        OpSample(aten.ones.default, lambda: ([2, 3],), {"dtype": torch.int8}),
        OpSample(aten.empty.memory_format, lambda: ([3, 2],), **shape_only),
        OpSample(aten.empty_strided.default, lambda: ([3, 2], [2, 1]), **shape_only),
        OpSample(aten.empty_permuted.default, lambda: ([3, 2], [1, 0]), **shape_only),
        OpSample(aten.new_full.default, lambda: sized(7)),
        OpSample(aten.new_zeros.default, lambda: sized()),
        OpSample(aten.new_ones.default, lambda: sized(), {"dtype": torch.int32}),
        OpSample(aten.new_empty.default, lambda: sized(), **shape_only),
        OpSample(aten.new_empty_strided.default, lambda: sized([1]), **shape_only),
        OpSample(aten.full_like.default, lambda: (x().to(torch.int8), 3)),
        OpSample(aten.full_like.default, lambda: (x(), 2.5), {"dtype": torch.float64}),
        OpSample(aten.zeros_like.default, lambda: (x(),)),
        OpSample(aten.ones_like.default, lambda: (x(),), {"dtype": torch.bool}),
        OpSample(aten.empty_like.default, lambda: (x(),), **shape_only),
        OpSample(aten.scalar_tensor.default, lambda: (2,)),
        OpSample(aten.arange.default, lambda: (5,)),
        OpSample(aten.arange.default, lambda: (5,), {"dtype": torch.float32}),
        OpSample(aten.arange.start, lambda: (1, 5), {"dtype": torch.int32}),
        OpSample(aten.arange.start_step, lambda: (1, 9, 2)),
        OpSample(aten.arange.start_step, lambda: (0.5, 5, 0.3)),
        OpSample(aten.range.default, lambda: (1, 5)),
        OpSample(aten.range.step, lambda: (5, -4, -3), {"dtype": torch.int64}),
        OpSample(aten.range.step, lambda: (0.5, 5, 0.3)),
        OpSample(aten.linspace.default, lambda: (0, 1, 7)),
        OpSample(aten.linspace.Tensor_Tensor, lambda: (torch.tensor(1.0), torch.tensor(6.0), 7)),
        OpSample(aten.linspace.Tensor_Scalar, lambda: (torch.tensor(1.0), 6, 7)),
        OpSample(aten.linspace.Scalar_Tensor, lambda: (1, torch.tensor(6.0), 1)),
        OpSample(aten.eye.default, lambda: (3,)),
        OpSample(aten.full.default, lambda: ([3], 1 - 2j)),
        OpSample(aten.zeros.default, lambda: ([3, 2],), {"dtype": torch.complex64}),
        OpSample(aten.ones_like.default, lambda: (x().to(torch.complex64),)),
        OpSample(aten.full_like.default, lambda: (x(), 2j), {"dtype": torch.complex128}),
        OpSample(aten.linspace.default, lambda: (0, 1 + 2j, 7)),
        OpSample(aten.eye.default, lambda: (3,), {"dtype": torch.complex64}),
        OpSample(aten.eye.m, lambda: (3, 4), {"dtype": torch.int64}),
        OpSample(aten.vander.default, lambda: (x()[0],)),
        OpSample(aten.vander.default, lambda: (torch.tensor([3, -2, 0]), 4, True), opsets=12),
    ]
