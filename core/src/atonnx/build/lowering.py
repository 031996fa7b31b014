"""From the form an operator was written in to the form it has at the target opset.

A version is emitted as it stands when it is the one in force at the target, or is stated to be
the same (``same``) and takes the call's inputs and attributes. Otherwise an opset pack's row
(``below`` or ``above``) writes it with other operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx
import onnx_ir as ir

from atonnx.build.spec import OpSpec, op_spec
from atonnx.errors import UnsupportedOpError

if TYPE_CHECKING:
    from atonnx.build.builder import Builder
    from atonnx.build.scope import Session

__all__ = ["fitting", "route", "widened"]

D = ir.DataType

# Exact wider dtypes, nearest first.
_WIDER: dict[ir.DataType, tuple[ir.DataType, ...]] = {
    D.BFLOAT16: (D.FLOAT, D.DOUBLE),
    D.FLOAT16: (D.FLOAT, D.DOUBLE),
    D.FLOAT: (D.DOUBLE,),
    D.INT8: (D.INT16, D.INT32, D.INT64, D.FLOAT, D.DOUBLE),
    D.INT16: (D.INT32, D.INT64, D.FLOAT, D.DOUBLE),
    D.INT32: (D.INT64, D.DOUBLE),
    D.UINT8: (D.UINT16, D.INT16, D.INT32, D.INT64, D.FLOAT, D.DOUBLE),
    D.UINT16: (D.INT32, D.UINT32, D.INT64, D.FLOAT, D.DOUBLE),
    D.UINT32: (D.INT64, D.UINT64, D.DOUBLE),
    D.BOOL: (D.UINT8, D.INT8, D.INT32, D.INT64, D.FLOAT),
    D.FLOAT8E4M3FN: (D.FLOAT16, D.FLOAT),
    D.FLOAT8E4M3FNUZ: (D.FLOAT16, D.FLOAT),
    D.FLOAT8E5M2: (D.FLOAT16, D.FLOAT),
    D.FLOAT8E5M2FNUZ: (D.FLOAT16, D.FLOAT),
}


def _same(session: Session, spec: OpSpec) -> Sequence[int]:
    """Versions stated to be the same as this one, itself included."""
    for group in session.opset_table.same(spec.op_type, spec.domain):
        if spec.since in group:
            return group
    return (spec.since,)


def _takes(target: OpSpec, spec: OpSpec, count: int, attrs: Mapping[str, Any]) -> bool:
    """Whether ``target`` has the inputs and attributes of the call; attributes at default may miss."""
    if not target.min_inputs <= count <= target.max_inputs:
        return False
    for name, value in attrs.items():
        if value is not None and name not in target.attributes:
            default = spec.schema.attributes[name].default_value if name in spec.attributes else None
            if default is None or onnx.helper.get_attribute_value(default) != value:
                return False
    return True


def fitting(session: Session, spec: OpSpec, count: int, attrs: Mapping[str, Any]) -> OpSpec | None:
    """The version to emit for a call written as ``spec``; None where a row has to write it."""
    key = (spec.op_type, spec.since)
    found: OpSpec | None = session.routes.get(key)
    if key not in session.routes:
        found = op_spec(spec.domain, spec.op_type, session.opset)
        if found is not None and found.since == spec.since:
            found = spec
        elif found is not None and found.since not in _same(session, spec):
            found = None
        session.routes[key] = found
    if found is None or found is spec or _takes(found, spec, count, attrs):
        return found
    return None


def route(op: Builder, spec: OpSpec, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Callable[..., Any]:
    """The row that writes a call of ``spec`` one step nearer to the target opset.

    Raises:
        UnsupportedOpError: no pack has one; it tells the first opset that needs none.
    """
    session = op.session
    table, opset = session.opset_table, session.opset
    versions = _same(session, spec)
    target = op_spec(spec.domain, spec.op_type, opset)
    if target is None or target.since <= spec.since:
        for version in sorted((v for v in versions if opset < v <= spec.since), reverse=True):
            row = table.below(spec.op_type, spec.domain, version)
            if row is not None and row.fn is not None:
                return row.fn
    else:
        for version in sorted(versions):
            row = table.above(spec.op_type, spec.domain, version)
            if row is not None and row.fn is not None:
                return row.fn
    raise UnsupportedOpError(
        f"ONNX {spec.op_type} (written as of opset {spec.since}) cannot be had at opset {opset}",
        **_where(op),
        hint=f"export at opset {spec.since} or newer, or add an opset pack with "
        f'below({spec.since}, "{spec.op_type}")'
        if opset < spec.since
        else f'add an opset pack with above({spec.since}, "{spec.op_type}")',
    )


def _where(op: Builder) -> dict[str, Any]:
    return dict(op.where())


def widened(
    op: Builder, target: OpSpec, key: str, dtype: ir.DataType, *, of_output: bool = False
) -> ir.DataType:
    """The nearest dtype that ``target`` takes and that holds every value of ``dtype``.

    ``of_output``: the dtype is one of the result, which the inputs do not decide.

    Raises:
        UnsupportedOpError: there is none, or a cast to it would need the operator itself.
    """
    for wide in _WIDER.get(dtype, ()) if target.op_type != "Cast" and not of_output else ():
        if wide in target.allowed.get(key, ()):
            return wide
    first = next(
        (
            spec.since
            for v in range(op.opset, 64)
            if (spec := op_spec("", target.op_type, v)) is not None and dtype in spec.allowed.get(key, ())
        ),
        None,
    )
    raise UnsupportedOpError(
        f"{target} does not {'make' if of_output else 'take'} {dtype.name} at opset {op.opset}",
        **_where(op),
        hint=f"export at opset {first} or newer" if first else "cast the tensor to another dtype",
    )
