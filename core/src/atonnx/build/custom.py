"""``custom_translation_table``: the user's functions, in three forms, as rows of the highest rank.

A function with ``op`` first is a row like ours. An ``onnxscript.script()`` function is written out
from its own opset. Any other function is run once with an evaluator that records the ``onnxscript``
operators that it calls, each as of the opset that it belongs to.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from atonnx.build.builder import Builder
from atonnx.build.functions import bind_script, inline_script
from atonnx.build.sizes import SymSize
from atonnx.dispatch import Translation, target_name
from atonnx.errors import BuildError, PluginError, both

__all__ = ["custom_rows", "is_custom"]

_USER = "custom_translation_table"


def is_custom(row: Translation) -> bool:
    """Whether the row's function may have a signature of its own, as torch.onnx allows."""
    return row.plugin == _USER or isinstance(row.fn, functools.partial)


def custom_rows(table: Mapping[Any, Any] | None, plugin: str = _USER) -> list[Translation]:
    """Rows of a ``custom_translation_table``.

    Raises:
        PluginError: also a TypeError, for a key that is no overload or a value that is no function.
    """
    rows = []
    for target, function in (table or {}).items():
        if isinstance(function, (list, tuple)):
            raise both(PluginError, TypeError)(
                f"{target}: the value should be a single callable, not a sequence"
            )
        if not callable(function):
            raise both(PluginError, TypeError)(f"{target}: {function!r} is not callable")
        rows.append(
            Translation(
                target=target_name(target),
                fn=_as_row(function),
                plugin=plugin,
                where=_place(function),
                complex=getattr(function, "complex", "none"),
                priority=0,
            )
        )
    return rows


def _place(function: Any) -> str:
    code = getattr(inspect.unwrap(getattr(function, "function", function)), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)


def _is_script(function: Any) -> bool:
    return hasattr(function, "to_function_proto") and hasattr(function, "op_signature")


def _as_row(function: Any) -> Callable[..., Any]:
    if _is_script(function):
        return functools.partial(_run_script, function)
    try:
        first = next(iter(inspect.signature(function).parameters), "")
    except (TypeError, ValueError):
        first = ""
    return function if first == "op" else functools.partial(_record, function)


def _plain(op: Builder, arg: Any) -> Any:
    """Sizes as values: what a function written for torch.onnx gets."""
    if isinstance(arg, SymSize):
        return op.size(arg)
    if isinstance(arg, tuple):
        return op.shape(arg) if any(isinstance(a, SymSize) for a in arg) else list(arg)
    if isinstance(arg, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
        return int(_dtype(arg)) if isinstance(arg, torch.dtype) else None
    return arg


def _dtype(dtype: torch.dtype) -> ir.DataType:
    from atonnx.build.dtypes import to_ir

    return to_ir(dtype)


def _run_script(function: Any, op: Builder, *args: Any, **kwargs: Any) -> Any:
    given = [_plain(op, a) for a in args]
    names = {param.name for param in function.op_signature.params}
    known = {k: _plain(op, v) for k, v in kwargs.items() if k in names}
    return inline_script(op, function, given[: len(function.op_signature.params)], known)


def _record(function: Callable[..., Any], op: Builder, *args: Any, **kwargs: Any) -> Any:
    from onnxscript import evaluator

    given = [_plain(op, a) for a in args]
    named = {k: _plain(op, v) for k, v in kwargs.items()}
    parameters = inspect.signature(function).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        names = {p.name for p in parameters}
        named = {k: v for k, v in named.items() if k in names}
    previous = ir.set_value_magic_handler(_Arithmetic(op))
    try:
        with evaluator.default_as(_Recorder(op)):
            result = function(*given, **named)
    finally:
        ir.set_value_magic_handler(previous)
    return tuple(result) if isinstance(result, list) else result


class _Arithmetic:
    """Python's operators on values inside a recorded function."""

    def __init__(self, op: Builder) -> None:
        self._op = op

    def __getattr__(self, name: str) -> Any:
        return getattr(self._op, name)


class _Recorder:
    """An onnxscript evaluator that writes every operator it is given."""

    def __init__(self, op: Builder) -> None:
        self._op = op

    def eval_op(self, called: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Write one operator, as of the opset that it was taken from."""
        if called.op_signature is None:
            raise BuildError(f"{called.name} of {called.opset} has no schema")
        inputs, attributes = _split(called, args, kwargs)
        return self._op.call(
            called.opset.domain,
            called.name,
            *inputs,
            version=called.opset.version,
            **_for_unknown_domain(called, attributes),
        )

    def eval_function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Write an onnxscript function that the recorded one calls."""
        return inline_script(self._op, function, args, kwargs)


def _for_unknown_domain(called: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    if called.opset.domain not in ("", "ai.onnx") and called.op_schema is not None:
        from atonnx.build.spec import register_schema

        register_schema(called.op_schema)
    return attributes


def _split(called: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    params = called.op_signature.params
    variadic = any(isinstance(p, ir.schemas.Parameter) and p.variadic for p in params)
    if not variadic:
        inputs, attributes = bind_script(called, args, kwargs)
        while inputs and inputs[-1] is None:
            inputs.pop()
        given = set(kwargs) | {p.name for p, _ in zip(params, args, strict=False)}
        return inputs, {k: v for k, v in attributes.items() if k in given}
    return list(args), dict(kwargs)
