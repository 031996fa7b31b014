"""Divisors and multiples of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._promote import promote

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

# Runtimes have their operators for these; narrower integers are computed as int64.
_NATIVE = frozenset({ir.DataType.INT32, ir.DataType.INT64})


def _operands(op: Builder, self: Any, other: Any) -> tuple[Value, Value, ir.DataType]:
    a, b = promote(op, self, other)
    kind = a.dtype
    if kind not in _NATIVE:
        a, b = op.cast(a, ir.DataType.INT64), op.cast(b, ir.DataType.INT64)
    return a, b, kind


def _gcd(op: Builder, a: Value, b: Value) -> Value:
    """Euclid's algorithm, until all remainders are zero."""
    kind, dims = a.dtype, op.out.dims
    begin = [op.expand(op.Abs(x), dims) for x in (a, b)]

    def going(op: Builder, b: Value) -> Value:
        left = op.ReduceSum(op.Cast(op.Cast(b, to=ir.DataType.BOOL), to=ir.DataType.INT64), keepdims=0)
        return op.Greater(left, 0)

    with op.body("steps") as body:
        body.input("step", ir.DataType.INT64, ())
        body.input("going", ir.DataType.BOOL, ())
        a, b = (body.input(name, kind, dims) for name in ("a", "b"))
        ended = body.Equal(b, 0)
        rest = body.Mod(a, body.Where(ended, 1, b))
        a = body.Where(ended, a, b)
        body.output(going(body, rest), a, rest)
    made: Value = op.Loop(None, going(op, begin[1]), *begin, body=body.graph, outputs=2)[0]
    return made


@table.translate(aten.gcd.default)
def gcd(op: Builder, self: Value, other: Value) -> Value:
    """A Loop of Mod."""
    a, b, kind = _operands(op, self, other)
    return op.cast(_gcd(op, a, b), kind)


@table.translate(aten.lcm.default)
def lcm(op: Builder, self: Value, other: Value) -> Value:
    """The product over gcd; zero where both are."""
    a, b, kind = _operands(op, self, other)
    divisor = _gcd(op, a, b)
    divisor = op.Where(op.Equal(divisor, 0), 1, divisor)
    return op.cast(op.Abs(op.Mul(op.Div(a, divisor), b)), kind)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    def pair() -> tuple[Any, ...]:
        return (torch.tensor([[12, -18, 0], [7, 100, 0]]), torch.tensor([18, 12, 0]))

    return [
        OpSample(f.default, args)
        for f in (aten.gcd, aten.lcm)
        for args in (pair, lambda: tuple(x.to(torch.int8) for x in pair()))
    ]
