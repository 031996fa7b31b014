"""Values of the graph being built: a dtype and a rank at once, a shape when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from atonnx.build import infer
from atonnx.errors import BuildError

if TYPE_CHECKING:
    from atonnx.build.scope import Scope
    from atonnx.build.sizes import SymSize

__all__ = ["Dim", "Dims", "Value"]

Dim = "int | SymSize | None"
Dims = tuple["int | SymSize | None", ...]

_UNSET: Any = object()


class Value(ir.Value):
    """A tensor in the graph.

    ``dtype`` is an ``onnx_ir.DataType``, ``rank`` an int, ``dims`` a tuple of ints, symbolic
    sizes and None for what is not known. A complex tensor (``is_complex``) is a real one with a
    last axis of 2, which rank and dims count.
    """

    __slots__ = ("_dims", "content", "is_complex", "scope")

    def __init__(
        self,
        *,
        scope: Scope,
        dtype: ir.DataType | None = None,
        dims: Any = _UNSET,
        name: str | None = None,
        const_value: ir.TensorProtocol | None = None,
    ) -> None:
        super().__init__(
            name=name,
            type=None if dtype is None else ir.TensorType(dtype),
            const_value=const_value,
        )
        self.scope = scope
        self._dims = dims
        self.is_complex = False
        self.content: tuple[int | SymSize, ...] | None = None  # what an int64 vector or scalar of sizes holds

    if TYPE_CHECKING:
        # Every tensor that the builder makes has one.
        @property
        def dtype(self) -> ir.DataType: ...

        @dtype.setter
        def dtype(self, dtype: ir.DataType | None) -> None: ...

    @property
    def dims(self) -> Dims | None:
        """Sizes as far as they are known; None when not even the rank is."""
        if self._dims is _UNSET:
            self._resolve()
        return self._dims  # type: ignore[no-any-return]

    @dims.setter
    def dims(self, dims: Dims | None) -> None:
        self._dims = dims
        self._shape = None

    def _resolve(self) -> None:
        """Infer sizes from the inputs upwards, without recursion: chains may be long."""
        stack = [self]
        while stack:
            value = stack[-1]
            node = value.producer()
            open_inputs = [
                v
                for v in (node.inputs if node is not None else ())
                if isinstance(v, Value) and v._dims is _UNSET
            ]
            if open_inputs and value._dims is _UNSET:
                stack += open_inputs
                continue
            if value._dims is _UNSET:
                value._dims = infer.dims(value)
            stack.pop()

    @property
    def rank(self) -> int:
        """Number of axes.

        Raises:
            BuildError: it is not known.
        """
        dims = self.dims
        if dims is None:
            raise BuildError(f"the rank of {self.describe()} is not known")
        return len(dims)

    @property  # type: ignore[override]
    def shape(self) -> ir.Shape | None:
        """The shape as onnx_ir has it, made from ``dims`` when first asked for."""
        if self._shape is None:
            dims = self.dims
            if dims is not None:
                self._shape = self.scope.session.ir_shape(dims)
        return self._shape

    @shape.setter
    def shape(self, shape: ir.Shape | None) -> None:
        self._shape = shape

    def describe(self) -> str:
        """For error texts: the name, and which operator made it."""
        producer = self.producer()
        return f"{self.name or '?'} (of {producer.op_type})" if producer is not None else str(self.name)
