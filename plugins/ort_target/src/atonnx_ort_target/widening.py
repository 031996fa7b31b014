"""Other dtypes in which an operator computes the same: cast there, computed, cast back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir

from atonnx.build import Builder
from atonnx_ort_target.gaps import Gaps

__all__ = ["HALVES", "widened", "widenings"]

D = ir.DataType

HALVES = frozenset({D.FLOAT16, D.BFLOAT16, D.FLOAT8E4M3FN, D.FLOAT8E4M3FNUZ, D.FLOAT8E5M2, D.FLOAT8E5M2FNUZ})
"""Floats of 16 bits and less, which run on GPUs."""

# What holds every number of a dtype, nearest first.
_HOLDS: dict[ir.DataType, tuple[ir.DataType, ...]] = {
    D.BOOL: (D.UINT8, D.INT32, D.INT64),
    D.INT8: (D.INT16, D.INT32, D.INT64),
    D.INT16: (D.INT32, D.INT64),
    D.INT32: (D.INT64,),
    D.UINT8: (D.INT16, D.INT32, D.INT64, D.UINT32),
    D.UINT16: (D.INT32, D.INT64, D.UINT32),
    D.UINT32: (D.INT64,),
}
_HOLDS_AS_FLOAT: dict[ir.DataType, tuple[ir.DataType, ...]] = {
    D.BOOL: (D.FLOAT,),
    D.INT8: (D.FLOAT, D.DOUBLE),
    D.INT16: (D.FLOAT, D.DOUBLE),
    D.INT32: (D.DOUBLE,),
    D.UINT8: (D.FLOAT, D.DOUBLE),
    D.UINT16: (D.FLOAT, D.DOUBLE),
    D.UINT32: (D.DOUBLE,),
}
# As many bits: casts there and back change none.
_BITS: dict[ir.DataType, tuple[ir.DataType, ...]] = {
    D.UINT64: (D.INT64,),
    D.INT64: (D.UINT64,),
    D.UINT32: (D.INT32,),
    D.UINT16: (D.INT16,),
    D.UINT8: (D.INT8,),
    D.INT8: (D.UINT8,),
}

# Numbers are moved, or compared with zero or each other for being equal.
_MOVES = frozenset(
    """
    CenterCropPad Compress Concat DepthToSpace Equal Expand EyeLike Flatten Gather GatherElements
    GatherND Identity OneHot Pad Reshape ReverseSequence ScatterElements ScatterND Slice
    SpaceToDepth Split Squeeze Tile Transpose Trilu Unsqueeze Where
    """.split()
)
# Sums and products of integers, right modulo 2**n in any n bits.
_RINGS = frozenset(
    """
    Add BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CumProd CumSum Einsum MatMul Mul Neg Pow
    ReduceProd ReduceSum ReduceSumSquare Sub Sum
    """.split()
)
# Numbers are compared for their order, or the result is within the range of the dtype.
_ORDERS = frozenset(
    """
    Abs ArgMax ArgMin BitShift Clip Div Greater GreaterOrEqual Less LessOrEqual Max Min Mod
    NonZero PRelu ReduceL1 ReduceMax ReduceMean ReduceMin Relu Sign TopK Unique
    """.split()
)
# The dtype of the result, stated by an attribute.
_STATED = ("dtype",)


def _choices(op_type: str, dtype: ir.DataType, halves: bool, reduced: bool) -> tuple[ir.DataType, ...]:
    if dtype in HALVES:
        return (dtype, D.FLOAT) if halves else (dtype,)
    moves = op_type in _MOVES and not reduced
    found = (dtype, *_HOLDS.get(dtype, ()))
    if moves or op_type in _ORDERS:
        found += _HOLDS_AS_FLOAT.get(dtype, ())
    if moves or op_type in _RINGS:
        found += _BITS.get(dtype, ())
    return found


def widenings(
    gaps: Gaps, node: ir.Node, dtypes: Mapping[str, ir.DataType], *, halves: bool
) -> Iterator[dict[str, ir.DataType]]:
    """The dtypes by type variable that the node can be computed in, and that there is a kernel for."""
    op_type = node.op_type
    if not (op_type in _MOVES or op_type in _RINGS or op_type in _ORDERS or HALVES & set(dtypes.values())):
        return
    reduction = node.attributes.get("reduction")
    reduced = reduction is not None and reduction.value != "none"
    allowed = gaps.spec.allowed
    choices = [
        [d for d in _choices(op_type, dtype, halves, reduced) if d in allowed[key] or d is dtype]
        for key, dtype in dtypes.items()
    ]
    # The fewest changed, then the nearest: positions in the lists are distances.
    ways = itertools.product(*[list(enumerate(each)) for each in choices])
    for way in sorted(ways, key=lambda way: (sum(at > 0 for at, _ in way), sum(at for at, _ in way))):
        found = dict(zip(dtypes, [dtype for _, dtype in way], strict=True))
        if found != dtypes and not gaps.lacks(found):
            yield {key: dtype for key, dtype in found.items() if dtype != dtypes[key]}


def widened(gaps: Gaps, node: ir.Node, wide: Mapping[str, ir.DataType]) -> Any:
    """What writes the node in other dtypes, to be written at the node's own opset."""
    spec = gaps.spec
    attrs = {name: attr.value for name, attr in node.attributes.items()}
    for name in _STATED:
        key = spec.output_key(0)
        if name in spec.attributes and key in wide:
            attrs[name] = int(wide[key])  # type: ignore[index]

    def write(op: Builder, *inputs: Any) -> Any:
        args = [
            op.cast(x, wide[key]) if x is not None and (key := spec.input_key(i)) in wide else x  # type: ignore[index]
            for i, x in enumerate(inputs)
        ]
        made = getattr(op, node.op_type)(*args, outputs=len(node.outputs), **attrs)
        return tuple(
            op.cast(value, old.dtype) if old.dtype is not None else value
            for value, old in zip(made, node.outputs, strict=True)
        )

    return write
