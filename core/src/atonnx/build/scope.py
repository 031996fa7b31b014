"""Where nodes are written: the graph, a body of a control-flow operator, or a function.

A body may read values of the scopes around it, a function may not: what it reads from outside
becomes an input of it, and its constants are Constant nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import onnx_ir as ir
import sympy

from atonnx.build.sizes import SizeFacts, SymSize, invert, text
from atonnx.build.spec import register_schema
from atonnx.build.value import Dims, Value

if TYPE_CHECKING:
    from atonnx.build.builder import Builder
    from atonnx.build.metadata import Origin
    from atonnx.dispatch import OpsetTable
    from atonnx.plugins import DomainInfo

__all__ = ["NEWEST_OPSET", "Scope", "Session"]

NEWEST_OPSET = 28  # the smaller of what onnx and ONNX Runtime implement
Kind = Literal["graph", "body", "function"]


class Scope:
    """Nodes under construction, with the constants and sizes that were made for them."""

    __slots__ = (
        "captured",
        "constants",
        "graph",
        "kind",
        "owner",
        "parent",
        "roots",
        "session",
        "shapes",
        "sizes",
    )

    def __init__(
        self, session: Session, kind: Kind, parent: Scope | None = None, name: str = "main_graph"
    ) -> None:
        self.session = session
        self.kind: Kind = kind
        self.parent = parent
        self.graph = ir.Graph((), (), nodes=(), name=name)
        # The scope that holds the constants of this one.
        self.owner: Scope = parent.owner if kind == "body" and parent is not None else self
        self.constants: dict[Any, Value] = {}
        self.sizes: dict[tuple[sympy.Expr, str], Value] = {}
        self.shapes: dict[Dims, Value] = {}
        self.roots: dict[sympy.Expr, tuple[Value, int | None] | sympy.Expr] = {}
        self.captured: dict[Value, Value] = {}

    def around(self) -> Iterator[Scope]:
        """This scope and those that a value of it may be read from or imported from, inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def add_input(self, name: str, dtype: ir.DataType | None, dims: Dims | None) -> Value:
        """A new input of this graph, body or function."""
        value = Value(scope=self, dtype=dtype, dims=dims, name=self.session.unique(name))
        self.graph.inputs.append(value)
        return value

    def root_tensor(self, value: Value) -> None:
        """Sizes that ``value`` bears can be read off it from now on."""
        for axis, size in enumerate(value.dims or ()):
            if isinstance(size, SymSize):
                self.root(size.expr, value, axis)

    def root(self, expr: sympy.Expr, value: Value, axis: int | None) -> None:
        """``expr`` is the size of ``value`` along ``axis``; its own number where axis is None."""
        known = self.roots.get(expr)
        if isinstance(known, tuple):
            return
        self.roots[expr] = (value, axis)
        if not isinstance(expr, sympy.Symbol):
            solved = invert(expr)
            if solved is not None and solved[0] not in self.roots:
                self.roots[solved[0]] = solved[1]

    def visible_value(self, value: Value) -> Value:
        """``value`` as it can be read here: itself, or the function's input that brings it in."""
        scope: Scope | None = self
        while scope is not None and scope is not value.scope:
            if scope.kind == "function":
                outer = scope.parent.visible_value(value) if scope.parent is not None else value
                inner = scope.captured.get(outer)
                if inner is None:
                    inner = scope.add_input(outer.name or "input", outer.dtype, outer.dims)
                    inner.is_complex = outer.is_complex
                    inner.content = outer.content
                    scope.captured[outer] = inner
                return inner
            scope = scope.parent
        return value


class Session:
    """What one export shares: the target, the tables, names, sizes and functions."""

    def __init__(
        self,
        opset: int,
        opset_table: OpsetTable,
        *,
        facts: SizeFacts | None = None,
        axis_names: Mapping[sympy.Symbol, str] | None = None,
        domains: Mapping[str, DomainInfo] | None = None,
    ) -> None:
        self.opset = opset
        self.opset_table = opset_table
        self.facts = facts if facts is not None else SizeFacts({})
        self.axis_names = dict(axis_names or {})
        self._domains = domains if domains is not None else {}
        self.root = Scope(self, "graph")
        self.imports: dict[str, int] = {"": opset}
        self.functions: dict[Any, ir.Function] = {}
        self.translator: Any = None
        self.routes: dict[Any, Any] = {}
        self._names: dict[str, int] = {}
        self._counter = 0
        self._dims: dict[sympy.Expr, ir.SymbolicDim] = {}

    def builder(self, origin: Origin | None = None) -> Builder:
        """A builder at the end of the graph."""
        from atonnx.build.builder import Builder

        return Builder(self.root, origin)

    def fresh(self) -> str:
        """A name for a value that no FX node names."""
        self._counter += 1
        return f"val_{self._counter - 1}"

    def unique(self, name: str) -> str:
        """``name``, with a number where it is taken."""
        count = self._names.get(name)
        if count is None:
            self._names[name] = 0
            return name
        while True:
            count += 1
            candidate = f"{name}_{count}"
            if candidate not in self._names:
                break
        self._names[name] = count
        self._names[candidate] = 0
        return candidate

    def domain_version(self, domain: str) -> int:
        """The version to import of a domain; its schemas are known from now on.

        Raises:
            PluginConflictError: two plugins have a domain of that name.
        """
        if domain not in self.imports:
            info = self._domains.get(domain)
            for schema in info.schemas if info is not None else ():
                register_schema(schema)
            self.imports[domain] = info.version if info is not None else 1
        return self.imports[domain]

    def reserve(self, names: Iterable[str]) -> None:
        """Keep names for the inputs and outputs that the user named."""
        for name in names:
            self._names.setdefault(name, 0)

    def ir_shape(self, dims: Sequence[Any]) -> ir.Shape:
        """``dims`` as onnx_ir has them, symbols under the user's axis names."""
        return ir.Shape([self._dim(size) if isinstance(size, SymSize) else size for size in dims])

    def _dim(self, size: SymSize) -> ir.SymbolicDim:
        made = self._dims.get(size.expr)
        if made is None:
            made = self._dims[size.expr] = ir.SymbolicDim(self.axis_text(size))
        return made

    def axis_text(self, size: SymSize) -> str:
        """A size as an axis name: ``batch``, ``2*seq + 1``."""
        return text(size.expr, self.axis_names)
