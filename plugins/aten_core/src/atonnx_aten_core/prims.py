"""``prims``: what is left of a program that was decomposed as far as torch can. Each is a case of ATen's.

The rows are named by text: torch registers these operators when a module of its own is imported.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import INTS
from atonnx.dispatch import Table
from atonnx_aten_core._promote import in_dtype, result_type

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_SAME = """abs acos acosh asin asinh atan atanh bitwise_not ceil conj_physical cos cosh digamma erf erfc exp
    exp2 expm1 floor imag isfinite lgamma log log10 log1p log2 neg real reciprocal round rsqrt sign
    sin sinh sqrt tan tanh trunc"""
UNARY = {name: getattr(aten, name).default for name in _SAME.split()} | {
    "bessel_i0": aten.i0.default,
    "bessel_i0e": aten.special_i0e.default,
    "bessel_i1": aten.special_i1.default,
    "bessel_i1e": aten.special_i1e.default,
    "bessel_j0": aten.special_bessel_j0.default,
    "bessel_j1": aten.special_bessel_j1.default,
    "erf_inv": aten.erfinv.default,
    "erfcx": aten.special_erfcx.default,
    "ndtri": aten.special_ndtri.default,
    "spherical_bessel_j0": aten.special_spherical_bessel_j0.default,
}
_PAIRS = "add bitwise_and bitwise_or bitwise_xor eq fmod ge gt le lt mul ne remainder sub"
_PLAIN_PAIRS = "atan2 fmax fmin gcd hypot igamma igammac maximum minimum nextafter"
BINARY = (
    {name: getattr(aten, name).Tensor for name in _PAIRS.split()}
    | {name: getattr(aten, name).default for name in _PLAIN_PAIRS.split()}
    | {
        "pow": aten.pow.Tensor_Tensor,
        "shift_left": aten.bitwise_left_shift.Tensor,
        "shift_right_arithmetic": aten.bitwise_right_shift.Tensor,
        "zeta": aten.special_zeta.default,
    }
)


# For most others, rows of the complex families take complex operands.
_COMPLEX = {"conj_physical", "imag", "real"}


def _unary(name: str, overload: Any) -> None:
    @table.translate(f"prims::{name}", complex="also" if name in _COMPLEX else "none")
    def row(op: Builder, self: Value) -> Value:
        """What the ATen operator becomes."""
        return op.translate(overload, self)


def _binary(name: str, overload: Any) -> None:
    @table.translate(f"prims::{name}")
    def row(op: Builder, self: Any, other: Any) -> Value:
        """What the ATen operator becomes."""
        return op.translate(overload, self, other)


for _name, _overload in UNARY.items():
    _unary(_name, _overload)
for _name, _overload in BINARY.items():
    _binary(_name, _overload)


@table.translate("prims::div")
def div(op: Builder, self: Any, other: Any) -> Value:
    """Div, which truncates integers."""
    if op.out.dtype in INTS:
        return op.translate(aten.div.Tensor_mode, self, other, rounding_mode="trunc")
    return op.translate(aten.div.Tensor, self, other)


@table.translate("prims::signbit")
def signbit(op: Builder, self: Value) -> Value:
    """What the ATen operator becomes, in the dtype of the tensor: torch promises that one."""
    return op.cast(op.translate(aten.signbit.default, self), op.out.dtype)


@table.translate("prims::cbrt")
def cbrt(op: Builder, self: Value) -> Value:
    """Pow of the magnitude to one third, with the sign."""
    root = op.Pow(op.Abs(self), op.const(1 / 3, self.dtype))
    return op.Mul(op.Sign(self), root)


@table.translate("prims::frexp")
def frexp(op: Builder, self: Value) -> tuple[Value, Value]:
    """What the ATen operator becomes."""
    return op.translate(aten.frexp.Tensor, self)


@table.translate("prims::where")
def where(op: Builder, pred: Value, a: Any, b: Any) -> Value:
    """Where."""
    kind = result_type(a, b)
    return op.Where(pred, in_dtype(op, a, kind), in_dtype(op, b, kind))


# ------------------------------------------------------------- reductions


@table.translate("prims::amax", "prims::amin")
def extreme(op: Builder, inp: Value, dims: Any, *, output_dtype: Any = None) -> Value:
    """ReduceMax or ReduceMin."""
    overload = aten.amax.default if op.origin.op == "prims::amax" else aten.amin.default
    return op.translate(overload, inp, tuple(dims or ()), False)


@table.translate("prims::sum")
def sum(op: Builder, inp: Value, dims: Any, *, output_dtype: Any = None) -> Value:
    """ReduceSum."""
    return op.translate(aten.sum.dim_IntList, inp, dims, False, dtype=op.out.torch_dtype)


@table.translate("prims::prod")
def prod(op: Builder, inp: Value, dims: Any, *, output_dtype: Any = None) -> Value:
    """ReduceProd."""
    axes = range(inp.rank) if dims is None else dims
    made = op.cast(inp, op.out.dtype)
    return op.ReduceProd(made, list(axes), keepdims=0) if axes else made


@table.translate("prims::var")
def var(
    op: Builder, inp: Value, dims: Any, correction: float | None = 1, *, output_dtype: Any = None
) -> Value:
    """What the ATen operator becomes."""
    return op.translate(aten.var.correction, inp, dims, correction=correction, keepdim=False)


# ------------------------------------------------------------------ shapes


@table.translate("prims::broadcast_in_dim", complex="layout")
def broadcast_in_dim(op: Builder, a: Value, shape: Any, broadcast_dimensions: Any) -> Value:
    """Unsqueeze, and Expand."""
    new = [axis for axis in range(len(shape)) if axis not in broadcast_dimensions]
    return op.expand(op.Unsqueeze(a, new) if new else a, op.out.dims)


@table.translate("prims::squeeze", complex="layout")
def squeeze(op: Builder, a: Value, dimensions: Any) -> Value:
    """Squeeze."""
    return op.Squeeze(a, list(dimensions)) if dimensions else a


@table.translate("prims::collapse", "prims::collapse_view", complex="layout")
def collapse(op: Builder, a: Value, start: int, end: int) -> Value:
    """Reshape."""
    return op.reshape(a, op.out.dims)


@table.translate("prims::split_dim", complex="layout")
def split_dim(op: Builder, a: Value, dim: int, outer_length: Any) -> Value:
    """Reshape."""
    return op.reshape(a, op.out.dims)


@table.translate("prims::reshape", complex="layout")
def reshape(op: Builder, a: Value, shape: Any) -> Value:
    """Reshape."""
    return op.reshape(a, op.out.dims)


@table.translate("prims::transpose", complex="also")
def transpose(op: Builder, a: Value, permutation: Any) -> Value:
    """Transpose."""
    return op.translate(aten.permute.default, a, permutation)


@table.translate("prims::rev", complex="also")
def rev(op: Builder, a: Value, dims: Any) -> Value:
    """What flip becomes."""
    return op.translate(aten.flip.default, a, dims)


@table.translate("prims::cat", complex="also")
def cat(op: Builder, tensors: Any, dim: int) -> Value:
    """Concat."""
    return op.translate(aten.cat.default, tensors, dim)


@table.translate("prims::as_strided", complex="layout")
def as_strided(op: Builder, a: Value, size: Any, stride: Any, storage_offset: Any) -> Value:
    """What the ATen operator becomes."""
    return op.translate(aten.as_strided.default, a, size, stride, storage_offset)


@table.translate("prims::as_strided_scatter", complex="layout")
def as_strided_scatter(
    op: Builder, self: Value, src: Value, size: Any, stride: Any, storage_offset: Any
) -> Value:
    """What the ATen operator becomes."""
    return op.translate(aten.as_strided_scatter.default, self, src, size, stride, storage_offset)


# -------------------------------------------------------- the tensor itself


@table.translate("prims::view_of", complex="layout")
def view_of(op: Builder, a: Value) -> Value:
    """The tensor itself."""
    return a


@table.translate("prims::copy_strided", complex="layout")
def copy_strided(op: Builder, a: Value, stride: Any) -> Value:
    """The tensor itself: ONNX has no strides."""
    return a


@table.translate("prims::device_put", complex="layout")
def device_put(op: Builder, a: Value, device: Any, non_blocking: bool = False) -> Value:
    """The tensor itself: ONNX has no devices."""
    return a


@table.translate("prims::clone", complex="layout")
def clone(op: Builder, self: Value, *, memory_format: Any = None) -> Value:
    """The tensor itself."""
    return self


@table.translate("prims::convert_element_type", complex="also")
def convert_element_type(op: Builder, a: Value, dtype: Any) -> Value:
    """Cast."""
    return op.translate(aten._to_copy.default, a, dtype=dtype)


@table.translate("prims::view_of_dtype")
def view_of_dtype(op: Builder, a: Value, dtype: Any) -> Value:
    """BitCast."""
    return op.translate(aten.view.dtype, a, dtype)


@table.translate("prims::conj", complex="also")
def conj(op: Builder, a: Value) -> Value:
    """What the ATen operator becomes."""
    return op.translate(aten._conj.default, a)


@table.translate("prims::copy_to")
def copy_to(op: Builder, a: Value, b: Value) -> Value:
    """Expand of what is written."""
    return op.expand(op.cast(b, a.dtype), op.out.dims)


# ----------------------------------------------------------------- creation


@table.translate("prims::full", complex="also")
def full(op: Builder, shape: Any, fill_value: Any, *, dtype: Any, device: Any, requires_grad: bool) -> Value:
    """Expand of the number."""
    return op.translate(aten.full.default, shape, fill_value, dtype=dtype)


@table.translate("prims::full_like", complex="also")
def full_like(
    op: Builder, a: Value, fill_value: Any, *, dtype: Any, device: Any, requires_grad: bool
) -> Value:
    """Expand of the number."""
    return op.translate(aten.full_like.default, a, fill_value, dtype=dtype)


@table.translate("prims::fill", complex="also")
def fill(op: Builder, self: Value, value: Any) -> Value:
    """Expand of the number."""
    return op.translate(aten.full_like.default, self, value)


@table.translate("prims::empty", complex="also")
def empty(op: Builder, shape: Any, *, dtype: Any, device: Any, requires_grad: bool) -> Value:
    """Expand of zero."""
    return op.translate(aten.zeros.default, shape, dtype=dtype)


@table.translate("prims::empty_permuted", complex="also")
def empty_permuted(
    op: Builder, shape: Any, physical_layout: Any, *, dtype: Any, device: Any, requires_grad: bool
) -> Value:
    """Expand of zero."""
    return op.translate(aten.zeros.default, shape, dtype=dtype)


@table.translate("prims::empty_strided", complex="also")
def empty_strided(
    op: Builder, shape: Any, strides: Any, *, dtype: Any, device: Any, requires_grad: bool
) -> Value:
    """Expand of zero."""
    return op.translate(aten.zeros.default, shape, dtype=dtype)


@table.translate("prims::scalar_tensor", complex="also")
def scalar_tensor(op: Builder, s: Any, *, dtype: Any = None, device: Any = None) -> Value:
    """The number as a rank-0 tensor."""
    return op.translate(aten.scalar_tensor.default, s, dtype=dtype)


@table.translate("prims::iota")
def iota(
    op: Builder, length: Any, *, start: Any, step: Any, dtype: Any, device: Any, requires_grad: bool
) -> Value:
    """Range, scaled and moved."""
    made = op.Range(0, op.size(length), 1)
    if step != 1:
        made = op.Mul(made, op.as_value(step, ir.DataType.INT64))
    if start != 0:
        made = op.Add(made, op.as_value(start, ir.DataType.INT64))
    return op.cast(made, op.out.dtype)


@table.translate("prims::normal", complex="also")
def normal(
    op: Builder,
    shape: Any,
    *,
    mean: Any,
    std: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
    generator: Any = None,
) -> Value:
    """RandomNormal, scaled and moved."""
    return op.translate(aten.normal.float_float, mean, std, shape, dtype=dtype)


@table.translate("prims::uniform")
def uniform(
    op: Builder,
    shape: Any,
    *,
    low: Any,
    high: Any,
    dtype: Any,
    device: Any,
    stride: Any,
    generator: Any = None,
) -> Value:
    """RandomUniform, scaled and moved."""
    made = op.translate(aten.rand.default, shape, dtype=dtype)
    if high - low != 1:
        made = op.Mul(made, float(high - low))
    return op.Add(made, float(low)) if low != 0 else made


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample
    from atonnx_aten_core._torch import prims

    ops = prims()

    def x() -> torch.Tensor:
        return torch.tensor([[0.5, 0.25, 0.75], [0.125, 0.875, 0.0625]])

    def n() -> torch.Tensor:
        return torch.tensor([[5, -2, 7], [1, 0, 3]])

    def z() -> torch.Tensor:
        return torch.complex(x(), -x())

    whole = {"bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "shift_left"}
    whole |= {"shift_right_arithmetic"}
    made = {"dtype": torch.float32, "device": torch.device("cpu"), "requires_grad": False}
    free: dict[str, Any] = {"options": {"values": False}, "reason": "torch leaves the values open"}

    def unary(name: str) -> tuple[Any, ...]:
        if name in ("real", "imag", "conj_physical"):
            return (z(),)
        return (n(),) if name in whole else (x() + 1,) if name == "acosh" else (x(),)

    def binary(name: str) -> tuple[Any, ...]:
        if name in whole:
            return n(), n().abs() % 4
        return (x() + 2, x()) if name == "zeta" else (x(), x().flip(0))

    def reduced(dims: list[int]) -> tuple[Any, ...]:
        return x(), dims

    return [
        *(OpSample(getattr(ops, name).default, partial(unary, name)) for name in UNARY),
        *(OpSample(getattr(ops, name).default, partial(binary, name)) for name in BINARY),
        OpSample(ops.div.default, lambda: (x(), x())),
        OpSample(ops.div.default, lambda: (n(), n() * 2 + 1)),
        OpSample(ops.signbit.default, lambda: (x() > 0.5,)),
        OpSample(ops.cbrt.default, lambda: (-x(),)),
        OpSample(ops.frexp.default, lambda: (x(),)),
        OpSample(ops.where.default, lambda: (x() > 0.5, x(), -x())),
        *(
            OpSample(f.default, partial(reduced, dims))
            for f in (ops.amax, ops.amin, ops.sum, ops.prod)
            for dims in ([1], [0, 1])
        ),
        OpSample(ops.var.default, lambda: (x(), [1], 1.0)),
        OpSample(ops.broadcast_in_dim.default, lambda: (x(), [2, 4, 3], [0, 2])),
        OpSample(ops.squeeze.default, lambda: (x()[:, None], [1])),
        OpSample(ops.collapse.default, lambda: (x()[None], 1, 2)),
        OpSample(ops.collapse_view.default, lambda: (x()[None], 1, 2)),
        OpSample(ops.split_dim.default, lambda: (x(), 0, 2)),
        OpSample(ops.reshape.default, lambda: (x(), [3, 2])),
        OpSample(ops.transpose.default, lambda: (x(), [1, 0])),
        OpSample(ops.transpose.default, lambda: (z(), [1, 0])),
        OpSample(ops.rev.default, lambda: (x(), [1])),
        OpSample(ops.cat.default, lambda: ([x(), x()], 1)),
        OpSample(ops.as_strided.default, lambda: (x(), [2, 2], [3, 1], 1), options={"dynamic": False}),
        OpSample(
            ops.as_strided_scatter.default,
            lambda: (x(), x()[:, :2], [2, 2], [3, 1], 1),
            options={"dynamic": False},
        ),
        OpSample(ops.view_of.default, lambda: (x(),)),
        OpSample(ops.copy_strided.default, lambda: (x(), [1, 2]), options={"dynamic": False}),
        OpSample(ops.device_put.default, lambda: (x(), torch.device("cpu"))),
        OpSample(ops.clone.default, lambda: (x(),)),
        OpSample(ops.convert_element_type.default, lambda: (x(), torch.int32)),
        OpSample(ops.convert_element_type.default, lambda: (x(), torch.complex64)),
        OpSample(ops.view_of_dtype.default, lambda: (x(), torch.int32), opsets=26),
        OpSample(ops.conj.default, lambda: (z(),)),
        OpSample(ops.copy_to.default, lambda: (x(), x() + 1)),
        OpSample(ops.full.default, lambda: ([2, 3], 1.5), made),
        OpSample(ops.full_like.default, lambda: (x(), 2), made),
        OpSample(ops.fill.default, lambda: (x(), 2)),
        OpSample(ops.empty.default, lambda: ([2, 3],), made, **free),
        OpSample(ops.empty_permuted.default, lambda: ([2, 3], [1, 0]), made, **free),
        OpSample(ops.empty_strided.default, lambda: ([2, 3], [3, 1]), made, **free),
        OpSample(
            ops.scalar_tensor.default, lambda: (2,), {"dtype": torch.int64, "device": torch.device("cpu")}
        ),
        OpSample(ops.iota.default, lambda: (5,), {**made, "start": 3, "step": -2, "dtype": torch.int64}),
        OpSample(ops.normal.default, lambda: ([2, 3],), {**made, "mean": 1.0, "std": 2.0}, **free),
        OpSample(
            ops.uniform.default,
            lambda: ([2, 3],),
            {**{k: made[k] for k in ("dtype", "device")}, "low": 1.0, "high": 4.0, "stride": [3, 1]},
            **free,
        ),
    ]
