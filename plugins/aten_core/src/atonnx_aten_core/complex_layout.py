"""Complex tensors, which are real ones with a last axis of 2: taking them apart and putting them together."""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_core._complex import torch_dtype

aten = torch.ops.aten
table = Table(__name__)


@table.translate(aten.view_as_real.default, complex="only")
def view_as_real(op: Builder, self: Value) -> Value:
    """Identity: the graph has the pair axis already."""
    return op.Identity(self)


@table.translate(aten.view_as_complex.default, complex="also")
def view_as_complex(op: Builder, self: Value) -> Value:
    """Identity."""
    return op.Identity(self)


@table.translate(aten.real.default, complex="also")
def real(op: Builder, self: Value) -> Value:
    """Gather from the pair axis; a real tensor itself."""
    return op.Gather(self, op.size(0), axis=-1) if self.is_complex else self


@table.translate(aten.imag.default, complex="only")
def imag(op: Builder, self: Value) -> Value:
    """Gather from the pair axis."""
    return op.Gather(self, op.size(1), axis=-1)


@table.translate(aten.complex.default, complex="also")
def complex(op: Builder, real: Value, imag: Value) -> Value:
    """Concat along the pair axis."""
    dims = op.out.dims[:-1]
    parts = [op.Unsqueeze(op.expand(part, dims), [-1]) for part in (real, imag)]
    return op.Concat(*parts, axis=-1)


@table.translate(aten.polar.default, complex="also")
def polar(op: Builder, abs: Value, angle: Value) -> Value:
    """Cos and Sin, by the length."""
    pair = op.Concat(op.Unsqueeze(op.Cos(angle), [-1]), op.Unsqueeze(op.Sin(angle), [-1]), axis=-1)
    return op.Mul(op.Unsqueeze(abs, [-1]), pair)


@table.translate(
    aten.conj.default,
    aten._conj.default,
    aten.conj_physical.default,
    aten._conj_physical.default,
    complex="also",
)
def conj(op: Builder, self: Value) -> Value:
    """Mul by (1, -1); a real tensor itself."""
    return op.Mul(self, op.const([1, -1], self.dtype)) if self.is_complex else self


@table.translate(aten.resolve_conj.default, aten.resolve_neg.default, complex="also")
def resolve(op: Builder, self: Value) -> Value:
    """Nothing to do: no tensor of the graph is to be conjugated or negated later."""
    return self


@table.translate(aten._neg_view.default, complex="also")
def _neg_view(op: Builder, self: Value) -> Value:
    """Neg."""
    return op.Neg(self)


@table.translate(aten.view.dtype, aten.view_copy.dtype, complex="only")
def view_dtype(op: Builder, self: Value, dtype: torch.dtype) -> Value:
    """Reshape: the pairs become two elements of the last axis each, or the other way round."""
    if self.dtype != op.out.dtype:
        raise UnsupportedOpError.here(
            op,
            f"a view of {torch_dtype(self)} as {dtype}",
            hint="view as the dtype of the parts, or use torch.view_as_real",
        )
    return op.reshape(self, op.out.dims)


def samples() -> list[Any]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    z, x = torch.randn(2, 3, dtype=torch.complex64), torch.randn(2, 3, 2)
    conjugates = (
        aten.conj.default,
        aten._conj.default,
        aten.conj_physical.default,
        aten._conj_physical.default,
    )
    return [
        OpSample(aten.view_as_real.default, (z,)),
        OpSample(aten.view_as_complex.default, (x,)),
        OpSample(aten.real.default, (z,)),
        OpSample(aten.imag.default, (z,)),
        OpSample(aten.complex.default, (x, x + 1)),
        OpSample(aten.polar.default, (x.abs(), x)),
        *(OpSample(f, (z,)) for f in conjugates),
        OpSample(aten.resolve_conj.default, (z,)),
        OpSample(aten.resolve_neg.default, (x,)),
        OpSample(aten._neg_view.default, (x,)),
        *(
            OpSample(f, (t, dtype))
            for f in (aten.view.dtype, aten.view_copy.dtype)
            for t, dtype in ((z, torch.float32), (x, torch.complex64))
        ),
    ]
