"""The rows, which are data, and the name by which a row is found."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from atonnx.errors import PluginError, both

__all__ = [
    "COMPLEX_USES",
    "DEFAULT_OPSET",
    "MIN_OPSET",
    "ComplexUse",
    "NodeView",
    "OpsetRow",
    "Translation",
    "canonical",
    "code_place",
    "target_name",
]

MIN_OPSET = 11
"""The lowest opset that an export can have."""

DEFAULT_OPSET = 20
"""The opset of an export that asks for none."""

ComplexUse = Literal["none", "only", "also", "layout"]
"""Which operands a row is for: real ones; complex ones; both; both, of an op that just moves elements."""

COMPLEX_USES: tuple[ComplexUse, ...] = get_args(ComplexUse)


class NodeView(Protocol):
    """What a row's ``when`` sees of a node."""

    @property
    def value(self) -> Any:
        """The node's own result: a FakeTensor, a size, a number, or a tuple of them."""

    def arg(self, name: str) -> Any:
        """The value of the schema's argument of that name, its default if the call leaves it out."""


@dataclass(frozen=True, slots=True)
class Translation:
    """One way to translate one operator.

    ``target`` is ``OpOverload.name()``, else ``module::qualname``. The row is for opsets from ``since``
    to before ``until`` and for nodes for which ``when`` holds. ``where`` is the file and line of ``fn``.
    ``overload`` is the callable that ``target`` names, where the row was written with it.
    """

    target: str
    fn: Callable[..., Any]
    since: int = MIN_OPSET
    until: int | None = None
    when: Callable[[NodeView], bool] | None = None
    priority: int = 0
    plugin: str = ""
    where: str = ""
    complex: ComplexUse = "none"
    overload: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.complex not in COMPLEX_USES:
            raise both(PluginError, ValueError)(
                f"{self.target}: complex={self.complex!r} is none of {', '.join(COMPLEX_USES)}"
            )
        if self.until is not None and self.until <= self.since:
            raise both(PluginError, ValueError)(
                f"{self.target}: no opset is from {self.since} to before {self.until}"
            )

    def serves(self, opset: int) -> bool:
        """Whether the row is for this opset."""
        return self.since <= opset and (self.until is None or opset < self.until)

    def takes(self, complex: bool) -> bool:
        """Whether the row is for complex, or for real, operands."""
        return self.complex != "none" if complex else self.complex != "only"


@dataclass(frozen=True, slots=True)
class OpsetRow:
    """How one ONNX operator is written at another opset.

    ``below``: for targets below ``opset``, the version in which the operator changed. ``above``: for
    calls written for ``opset``, at newer targets. ``same``: ``versions`` mean the same.
    """

    op_type: str
    domain: str
    kind: Literal["below", "above", "same"]
    opset: int
    versions: tuple[int, ...] = ()
    fn: Callable[..., Any] | None = None
    plugin: str = ""
    where: str = ""


def target_name(target: Any) -> str:
    """The key of a row: ``aten::gelu``, ``aten::add.Tensor``, ``_operator::add``, ``higher_order::cond``.

    A default overload has no ``.default``, as torch names it. Strings are brought to the same form.
    """
    if isinstance(target, str):
        return canonical(target)
    name = getattr(target, "name", None)
    if callable(name):
        text = str(name())
        if "::" in text:
            return text
        space = getattr(target, "namespace", None)
        if isinstance(space, str):
            return f"{space}::{text}"
    elif hasattr(target, "overloads"):
        raise both(PluginError, TypeError)(
            f"{target} is a packet of overloads, not an overload",
            hint=f"{target}.default, or another overload",
        )
    module, qualname = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if not callable(target) or not module or not qualname:
        raise both(PluginError, TypeError)(
            f"{target!r} cannot be translated: it is no operator overload, function or name"
        )
    return f"{module}::{qualname}"


def canonical(name: str) -> str:
    """``aten::gelu`` for ``aten::gelu.default``, ``aten.gelu.default``, ``torch.ops.aten.gelu.default``."""
    name = name.removeprefix("torch.ops.")
    if "::" not in name:
        space, dot, rest = name.partition(".")
        if not dot:
            raise both(PluginError, ValueError)(
                f"{name!r} is not the name of an operator", hint="write it as aten::gelu or aten::add.Tensor"
            )
        name = f"{space}::{rest}"
    return name.removesuffix(".default")


def code_place(fn: Callable[..., Any]) -> str:
    """The file and line of a function, empty for one without code of its own."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
