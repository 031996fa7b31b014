"""What a plugin writes its rows into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

from atonnx.dispatch.row import (
    MIN_OPSET,
    ComplexUse,
    NodeView,
    OpsetRow,
    Translation,
    code_place,
    target_name,
)
from atonnx.errors import PluginError, both

__all__ = ["OpsetPack", "Table"]

F = TypeVar("F", bound=Callable[..., Any])


class Table:
    """The translations of one module: ``table = Table(__name__)``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rows: list[Translation] = []

    @property
    def rows(self) -> tuple[Translation, ...]:
        """The rows in the order in which they were written."""
        return tuple(self._rows)

    def __iter__(self) -> Iterator[Translation]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<Table {self.name}: {len(self)} rows>"

    def translate(
        self,
        *targets: Any,
        since: int = MIN_OPSET,
        until: int | None = None,
        when: Callable[[NodeView], bool] | None = None,
        priority: int = 0,
        complex: ComplexUse = "none",
    ) -> Callable[[F], F]:
        """Add the function as a row for each target: an overload, another callable, or such a name.

        The row is for opsets from ``since`` to before ``until``, for nodes for which ``when`` holds. With
        ``priority`` a third-party pack overrides others; ``complex`` declares what complex operands mean.
        """
        if not targets:
            raise both(PluginError, TypeError)(f"{self.name}: a row without a target")
        names = [target_name(target) for target in targets]

        def add(fn: F) -> F:
            where = code_place(fn)
            self._rows.extend(
                Translation(
                    target=name,
                    fn=fn,
                    since=since,
                    until=until,
                    when=when,
                    priority=priority,
                    where=where,
                    complex=complex,
                    overload=None if isinstance(target, str) else target,
                )
                for name, target in zip(names, targets, strict=True)
            )
            return fn

        return add


class OpsetPack:
    """How ONNX operators are written at other opsets: ``pack = OpsetPack(__name__)``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rows: list[OpsetRow] = []

    @property
    def rows(self) -> tuple[OpsetRow, ...]:
        """The rows in the order in which they were written."""
        return tuple(self._rows)

    def __iter__(self) -> Iterator[OpsetRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<OpsetPack {self.name}: {len(self)} rows>"

    def below(self, opset: int, op_type: str, domain: str = "") -> Callable[[F], F]:
        """The function writes the operator, as it is since ``opset``, for targets below that.

        What it writes is in the newest form, as in a translation, and is adapted in turn; an older form is
        written with ``op.at``. It serves calls of this version and of newer ones that mean the same.
        ``op.asked_outputs`` is how many outputs the call has.
        """
        return self._directed("below", opset, op_type, domain)

    def above(self, opset: int, op_type: str, domain: str = "") -> Callable[[F], F]:
        """The function writes the operator, as it was since ``opset``, in its next version's form."""
        return self._directed("above", opset, op_type, domain)

    def same(self, op_type: str, *versions: int, domain: str = "") -> None:
        """State that these versions of the operator mean the same for every call that fits both."""
        if len(set(versions)) < 2:
            raise both(PluginError, ValueError)(f"same({op_type!r}) needs at least two versions")
        ordered = tuple(sorted(set(versions)))
        self._rows.append(OpsetRow(op_type, domain, "same", ordered[-1], ordered, where=self.name))

    def _directed(
        self, kind: Literal["below", "above"], opset: int, op_type: str, domain: str
    ) -> Callable[[F], F]:
        def add(fn: F) -> F:
            self._rows.append(OpsetRow(op_type, domain, kind, opset, (), fn, where=code_place(fn)))
            return fn

        return add
