"""A row's parameters are the ATen schema's: names, order, kind and defaults."""

from __future__ import annotations

import enum
import inspect
import keyword
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any
from weakref import WeakKeyDictionary

from atonnx.dispatch.row import Translation
from atonnx.errors import PluginError

__all__ = ["check_row", "check_signature", "python_name"]

_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def check_row(row: Translation, overload: Any = None) -> None:
    """Check a row against the schema of its overload, once; targets without a schema have no check.

    ``overload`` is the node's target where the row was written with a name.
    """
    overload = row.overload if overload is None else overload
    if getattr(overload, "_schema", None) is not None:
        checked = _checked.setdefault(row.fn, set())
        if overload not in checked:
            what = f"{_name(row.fn)} of plugin {row.plugin}" if row.plugin else ""
            check_signature(overload, row.fn, what)
            checked.add(overload)


def check_signature(overload: Any, fn: Callable[..., Any], what: str = "") -> None:
    """Raise :class:`PluginError` unless the parameters of ``fn`` after ``op`` are those of the overload.

    ``what`` says whose function it is. A schema's name that is a Python keyword ends in ``_``.
    """
    who = what or _name(fn)
    parameters = list(inspect.signature(fn).parameters.values())[1:]
    arguments = list(overload._schema.arguments)
    target = str(overload)
    for parameter, argument in zip_longest(parameters, arguments):
        if (
            parameter is None
            or argument is None
            or parameter.name != python_name(argument.name)
            or parameter.kind != (_KEYWORD if argument.kwarg_only else _POSITIONAL)
        ):
            raise PluginError(
                f"{who} takes ({_spelled_parameters(parameters)}), {target} has ({_spelled(arguments)})",
                hint="a row has the schema's names, order and keyword-only arguments after `op`",
            )
        if _default(parameter) != _schema_default(argument):
            raise PluginError(
                f"{who}: {_one_parameter(parameter)}, {target} has {_one(argument)}",
                hint="a row has the schema's defaults",
            )


def python_name(name: str) -> str:
    """The schema's name as a Python parameter: ``from`` is ``from_``."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _name(fn: Callable[..., Any]) -> str:
    """The function's full name; an object that is called, a partial say, has none."""
    return f"{fn.__module__}.{fn.__qualname__}" if hasattr(fn, "__qualname__") else repr(fn)


_checked: WeakKeyDictionary[Callable[..., Any], set[Any]] = WeakKeyDictionary()


class _Missing:
    def __repr__(self) -> str:
        return "no default"


_NONE = _Missing()


def _default(parameter: inspect.Parameter) -> object:
    return _NONE if parameter.default is inspect.Parameter.empty else _normal(parameter.default)


def _schema_default(argument: Any) -> object:
    return _normal(argument.default_value) if argument.has_default_value() else _NONE


def _normal(value: Any) -> object:
    """A form in which equal defaults are equal and 0, 0.0 and False are not."""
    if isinstance(value, (list, tuple)):
        return tuple(_normal(item) for item in value)
    if isinstance(value, enum.Enum):
        return _normal(value.value)
    if value is None or isinstance(value, (bool, str)):
        return (type(value).__name__, value)
    if isinstance(value, int):
        return ("int", int(value))
    if isinstance(value, float):
        return ("float", value.hex())
    if isinstance(value, complex):
        return ("complex", value.real.hex(), value.imag.hex())
    number = _torch_number(value)
    return ("int", number) if number is not None else (type(value).__name__, str(value))


def _torch_number(value: Any) -> int | None:
    """The integer that a schema has for a dtype, layout or memory format."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return _NUMBERS.get(kind, {}).get(str(value))


_DTYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool "
    "qint8 quint8 qint32 bfloat16"
)
_NUMBERS: dict[str, dict[str, int]] = {
    "torch.dtype": {f"torch.{name}": number for number, name in enumerate(_DTYPES.split())},
    "torch.layout": {"torch.strided": 0, "torch.sparse_coo": 1},
    "torch.memory_format": {
        "torch.contiguous_format": 0,
        "torch.preserve_format": 1,
        "torch.channels_last": 2,
        "torch.channels_last_3d": 3,
    },
}


def _one_parameter(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return f"{parameter.name} without default"
    return f"{parameter.name}={parameter.default!r}"


def _one(argument: Any) -> str:
    if not argument.has_default_value():
        return f"{argument.name} without default"
    return f"{argument.name}={argument.default_value!r}"


def _spelled_parameters(parameters: Sequence[inspect.Parameter]) -> str:
    marks: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return _joined([(marks.get(p.kind, "") + p.name, p.kind == _KEYWORD) for p in parameters])


def _spelled(arguments: Sequence[Any]) -> str:
    return _joined([(python_name(argument.name), argument.kwarg_only) for argument in arguments])


def _joined(names: Sequence[tuple[str, bool]]) -> str:
    words: list[str] = []
    for name, keyword_only in names:
        if keyword_only and "*" not in words:
            words.append("*")
        words.append(name)
    return ", ".join(words)
