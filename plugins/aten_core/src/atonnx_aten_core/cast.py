"""Changes of dtype, and operators that return their argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import real_of, to_ir
from atonnx.dispatch import Table
from atonnx_aten_core._complex import as_pair, imaginary, paired, real, torch_dtype

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_OVERFLOWING = {torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz}


def _to(op: Builder, x: Value, dtype: Any) -> Value:
    """Cast where a dtype is asked for, given as such or by number.

    A number becomes a pair with zero. Of a pair the real part stays, but its truth is that of both parts.
    """
    if dtype is None:
        return x
    if not isinstance(dtype, torch.dtype):
        dtype = op.out.torch_dtype
    if not dtype.is_complex:
        if not x.is_complex:
            return _cast(op, x, dtype)
        if dtype == torch.bool:
            made = op.cast(x, dtype)
            return op.Or(real(op, paired(made)), imaginary(op, made))
        return op.cast(real(op, x), dtype)
    return as_pair(op, x, to_ir(real_of(dtype)))


def _cast(op: Builder, x: Value, dtype: torch.dtype) -> Value:
    """Cast. To float 8 types other than e4m3fn torch does not saturate, and ONNX Runtime takes their -0 for
    true."""
    if dtype in _OVERFLOWING and x.dtype != to_ir(dtype):
        return op.Cast(x, to=to_ir(dtype), saturate=0)
    if dtype == torch.bool and x.dtype.is_floating_point() and x.dtype.bitwidth == 8:
        x = op.cast(x, torch.float32)
    return op.cast(x, dtype)


@table.translate(aten.to.dtype, complex="layout")
def to_dtype(
    op: Builder,
    self: Value,
    dtype: Any,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Value:
    """Cast, or the tensor itself when it has the dtype."""
    return _to(op, self, dtype)


@table.translate(aten.to.device, complex="layout")
def to_device(
    op: Builder,
    self: Value,
    device: Any,
    dtype: Any,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Value:
    """Cast; ONNX has no devices."""
    return _to(op, self, dtype)


@table.translate(aten.to.dtype_layout, complex="layout")
def to_dtype_layout(
    op: Builder,
    self: Value,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Value:
    """Cast, or the tensor itself without a dtype."""
    return _to(op, self, dtype)


@table.translate(aten._to_copy.default, complex="layout")
def to_copy(
    op: Builder,
    self: Value,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Value:
    """Cast, or the tensor itself without a dtype."""
    return _to(op, self, dtype)


@table.translate(aten.to.other, complex="also")
def to_other(
    op: Builder,
    self: Value,
    other: Value,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Value:
    """Cast to the other tensor's dtype."""
    return _to(op, self, torch_dtype(other))


@table.translate(aten.to.prim_dtype, complex="layout")
def to_prim_dtype(
    op: Builder, self: Value, dtype: Any = None, non_blocking: bool = False, copy: bool = False
) -> Value:
    """Cast, or the tensor itself without a dtype."""
    return _to(op, self, dtype)


@table.translate(aten.to.prim_Device, complex="layout")
def to_prim_device(
    op: Builder, self: Value, device: Any, dtype: Any = None, non_blocking: bool = False, copy: bool = False
) -> Value:
    """Cast; ONNX has no devices."""
    return _to(op, self, dtype)


@table.translate(aten.type_as.default, complex="also")
def type_as(op: Builder, self: Value, other: Value) -> Value:
    """Cast to the other tensor's dtype."""
    return _to(op, self, torch_dtype(other))


@table.translate(
    aten.detach.default,
    aten.detach_.default,
    aten.alias.default,
    aten.lift.default,
    aten.lift_fresh.default,
    aten.lift_fresh_copy.default,
    aten.detach_copy.default,
    aten.alias_copy.default,
    aten._lazy_clone.default,
    complex="layout",
)
def same(op: Builder, self: Value) -> Value:
    """The tensor itself."""
    return self


@table.translate(aten.clone.default, complex="layout")
def clone(op: Builder, self: Value, *, memory_format: Any = None) -> Value:
    """The tensor itself."""
    return self


@table.translate(aten.contiguous.default, complex="layout")
def contiguous(op: Builder, self: Value, *, memory_format: Any = torch.contiguous_format) -> Value:
    """The tensor itself: ONNX has no strides."""
    return self


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    def x() -> torch.Tensor:
        return torch.tensor([[1.5, -2.5, 0.0], [3.0, 0.25, -7.75]])

    cpu = torch.device("cpu")
    return [
        OpSample(aten.to.dtype, lambda: (x(), torch.int32)),
        OpSample(aten.to.dtype, lambda: (x(), torch.float32)),
        OpSample(aten.to.dtype, lambda: (x(), torch.bool)),
        OpSample(aten.to.dtype, lambda: (x(), torch.complex64)),
        OpSample(aten.to.dtype, lambda: (torch.view_as_complex(torch.ones(2, 3, 2)), torch.complex128)),
        OpSample(aten.to.dtype, lambda: (torch.tensor([1j, 0j, 2 + 0j]), torch.bool)),
        OpSample(aten.to.device, lambda: (x(), cpu, torch.float64)),
        OpSample(aten.to.dtype_layout, lambda: (x(),), {"dtype": torch.float16}),
        OpSample(aten.to.dtype_layout, lambda: (x(),), {"layout": torch.strided}),
        OpSample(aten._to_copy.default, lambda: (x(),), {"dtype": torch.int64}),
        OpSample(aten._to_copy.default, lambda: (x(),)),
        OpSample(aten.to.other, lambda: (x(), torch.tensor([1]))),
        OpSample(aten.to.other, lambda: (x(), torch.tensor([1j]))),
        OpSample(aten.type_as.default, lambda: (x().to(torch.complex64), torch.tensor([1.0]))),
        OpSample(aten.to.prim_dtype, lambda: (x(), 7)),
        OpSample(aten.to.prim_Device, lambda: (x(), cpu, 7)),
        OpSample(aten.type_as.default, lambda: (x(), torch.tensor([1]))),
        *(
            OpSample(f.default, lambda: (x(),))
            for f in (
                *(aten.detach, aten.alias, aten.lift, aten.lift_fresh, aten.lift_fresh_copy, aten.clone),
                *(aten.detach_copy, aten.alias_copy, aten._lazy_clone, aten.contiguous),
            )
        ),
    ]
