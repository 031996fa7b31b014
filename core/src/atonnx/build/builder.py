"""``op``: writes ONNX operators into a scope, typed and adapted to the target opset."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch

from atonnx.build import sympy_rules
from atonnx.build.constants import constant_tensor, scalar_key
from atonnx.build.dtypes import to_ir
from atonnx.build.infer import special_dtype
from atonnx.build.lowering import fitting, route, widened
from atonnx.build.metadata import Origin
from atonnx.build.scope import NEWEST_OPSET, Scope, Session
from atonnx.build.sizes import SymSize
from atonnx.build.spec import OpSpec, op_spec
from atonnx.build.value import Dims, Value
from atonnx.errors import BuildError

__all__ = ["Body", "Builder"]

_INT64 = ir.DataType.INT64
_NUMBERS = (bool, int, float, np.generic)


class Builder:
    """Writes nodes at the end of a scope, on behalf of one FX node.

    Any ONNX operator is a method: ``op.Gelu(x, approximate="tanh")`` returns its output, or a
    tuple where it has several. Python numbers take the dtype of the tensor that the schema binds
    them with, lists of ints become int64 vectors, symbolic sizes int64 values.
    """

    __slots__ = ("_lowering", "_version", "asked_outputs", "origin", "scope", "session")

    def __init__(self, scope: Scope, origin: Origin | None = None, version: int = NEWEST_OPSET) -> None:
        self.scope = scope
        self.session: Session = scope.session
        self.origin = origin if origin is not None else Origin()
        self._version = version
        self._lowering = False  # an opset row may write an older form with dtypes that it lacks
        self.asked_outputs: int = 1  # how many outputs an opset row was asked for

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name[:1].isupper():
            raise AttributeError(f"Builder has no attribute {name!r}")
        return functools.partial(self._emit, "", name)

    # ---------------------------------------------------------------- where

    @property
    def opset(self) -> int:
        """The opset of the model being made."""
        return self.session.opset

    @property
    def outs(self) -> tuple[Any, ...]:
        """What the FX node promises of each of its results: dtype, dims, rank."""
        return self.origin.outs

    @property
    def out(self) -> Any:
        """What the FX node promises of its (first) result."""
        if not self.origin.outs:
            raise BuildError(f"{self.origin.op or 'this call'} has no tensor result")
        return self.origin.outs[0]

    def where(self) -> dict[str, str]:
        """The node being translated, as fields of an error."""
        return self.origin.where()

    def at(self, opset: int) -> Builder:
        """The same builder for calls in the form that operators have at ``opset``."""
        made = self._clone(self.scope, opset)
        made._lowering = self._lowering
        return made

    def _clone(self, scope: Scope, version: int = NEWEST_OPSET) -> Builder:
        return Builder(scope, self.origin, version)

    # ---------------------------------------------------------------- nodes

    def call(
        self,
        domain: str,
        op_type: str,
        *args: Any,
        outputs: int | None = None,
        version: int | None = None,
        dtypes: Sequence[Any] = (),
        **attrs: Any,
    ) -> Any:
        """An operator of any domain.

        ``version`` is the domain's version to import; ``dtypes`` are those of the outputs, for
        operators whose schema is not known.
        """
        if domain in ("", "ai.onnx"):
            builder = self if version is None else self.at(version)
            return builder._emit("", op_type, *args, outputs=outputs, **attrs)
        known = self.session.domain_version(domain)
        wanted = known if version is None else version
        self.session.imports[domain] = max(known, wanted)
        spec = op_spec(domain, op_type, wanted)
        inputs = [None if a is None else self.as_value(a) for a in args]
        if spec is not None:
            spec.check_arity(len(args))
            made = spec.make_attributes(attrs)
            bound = self._bind_types(spec, inputs)
            kinds: list[ir.DataType | None] = self._output_dtypes(spec, inputs, attrs, bound, outputs)
        else:
            made = ir.convenience.convert_attributes({k: v for k, v in attrs.items() if v is not None})
            kinds = [None] * (outputs or max(len(dtypes), 1))
        kinds = [to_ir(dtypes[i]) if i < len(dtypes) else kind for i, kind in enumerate(kinds)]
        values = self._node(domain, op_type, inputs, made, kinds, wanted)
        return values[0] if len(values) == 1 and outputs is None else values

    def _emit(self, domain: str, op_type: str, *args: Any, outputs: int | None = None, **attrs: Any) -> Any:
        spec = op_spec(domain, op_type, self._version)
        if spec is None:
            raise BuildError(f"opset {self._version} has no operator {op_type}{_similar(op_type)}")
        spec.check_arity(len(args))
        inputs, bound = self._bind(spec, args)
        for key, dtype in bound.items():
            if dtype not in spec.allowed[key] and not self._lowering:
                raise BuildError(f"{spec} does not take {dtype.name}")
        target = fitting(self.session, spec, len(inputs), attrs)
        if target is None:
            count = outputs or self._output_count(spec, attrs)
            row = route(self, spec, inputs, attrs)
            lowered = self._clone(self.scope)
            lowered.asked_outputs = count
            lowered._lowering = True
            normal = {attr.name: attr.value for attr in spec.make_attributes(attrs)}
            result = row(lowered, *inputs, **normal)
            if isinstance(result, tuple) and len(result) == 1 and outputs is None:
                return result[0]
            return (result,) if outputs is not None and not isinstance(result, tuple) else result
        if target is not spec:
            attrs = {k: v for k, v in attrs.items() if k in target.attributes}
        made = target.make_attributes(attrs)
        kinds = self._output_dtypes(spec, inputs, attrs, bound, outputs)
        if target is not spec:
            bound = self._bind_types(target, inputs)
        wide = {
            key: widened(self, target, key, dtype)
            for key, dtype in bound.items()
            if dtype not in target.allowed[key]
        }
        for index, kind in enumerate(kinds):
            variable = target.output_key(index)
            if kind is None or not isinstance(variable, str) or variable in bound:
                continue
            if kind not in target.allowed[variable]:
                wide[variable] = widened(self, target, variable, kind, of_output="dtype" not in attrs)
                made = target.make_attributes({**attrs, "dtype": wide[variable]})
        if wide:
            return self._emit_wide(target, inputs, made, kinds, wide, outputs)
        values = self._node("", op_type, inputs, made, kinds, self.opset)
        return values[0] if len(values) == 1 and outputs is None else values

    def _emit_wide(
        self,
        spec: OpSpec,
        inputs: Sequence[Value | None],
        attrs: list[ir.Attr],
        kinds: Sequence[ir.DataType | None],
        wide: Mapping[Any, ir.DataType],
        outputs: int | None,
    ) -> Any:
        """The operator in wider dtypes, cast there and back."""
        args = [
            self.cast(v, wide[spec.input_key(i)]) if v is not None and spec.input_key(i) in wide else v
            for i, v in enumerate(inputs)
        ]
        out = [wide.get(spec.output_key(i), kind) for i, kind in enumerate(kinds)]
        values = self._node("", spec.op_type, args, attrs, out, self.opset)
        back = tuple(
            v if kind is None or kind == v.dtype else self.cast(v, kind)
            for v, kind in zip(values, kinds, strict=True)
        )
        return back[0] if len(back) == 1 and outputs is None else back

    def _bind(self, spec: OpSpec, args: Sequence[Any]) -> tuple[list[Any], dict[str, ir.DataType]]:
        """Arguments as values, and the dtype of each type variable."""
        bound: dict[str, ir.DataType] = {}
        pending = False
        for index, arg in enumerate(args):
            if isinstance(arg, Value):
                key = spec.input_key(index)
                if key is None:
                    continue
                dtype = arg.dtype
                if isinstance(key, str):
                    known = bound.setdefault(key, dtype)
                else:
                    known = key
                if known is not dtype and known != dtype:
                    raise BuildError(
                        f"{spec}: input {index} is {dtype and dtype.name}, expected {known and known.name}"
                    )
            elif arg is not None:
                pending = True
            elif index < spec.min_inputs and not spec.optional[min(index, len(spec.optional) - 1)]:
                raise BuildError(f"{spec}: input {index} is not optional")
        if not pending:
            return list(args), bound
        inputs: list[Any] = []
        for index, arg in enumerate(args):
            if arg is None or isinstance(arg, Value):
                inputs.append(arg)
                continue
            key = spec.input_key(index)
            wanted = bound.get(key) if isinstance(key, str) else key
            if wanted is None and isinstance(key, str):
                rest = [a for i, a in enumerate(args) if spec.input_key(i) == key and isinstance(a, _NUMBERS)]
                if any(isinstance(a, float) for a in rest):
                    wanted = ir.DataType.FLOAT
            value = self.as_value(arg, wanted)
            if isinstance(key, str):
                bound.setdefault(key, value.dtype)
            inputs.append(value)
        return inputs, bound

    def _bind_types(self, spec: OpSpec, inputs: Sequence[Value | None]) -> dict[str, ir.DataType]:
        bound: dict[str, ir.DataType] = {}
        for index, value in enumerate(inputs):
            key = spec.input_key(index)
            if value is not None and isinstance(key, str) and value.dtype is not None:
                bound.setdefault(key, value.dtype)
        return bound

    def as_value(self, arg: Any, dtype: ir.DataType | None = None) -> Value:
        """A number, list, size or tensor as a value, of ``dtype`` where that is given.

        Raises:
            BuildError: the dtype cannot hold it.
        """
        if isinstance(arg, Value):
            return arg
        if isinstance(arg, SymSize):
            value = self.size(arg)
            return value if dtype is None else self.cast(value, dtype)
        if isinstance(arg, (list, tuple)) and any(isinstance(item, SymSize) for item in arg):
            value = self.shape(arg)
            return value if dtype is None else self.cast(value, dtype)
        if isinstance(arg, (list, tuple)) and not arg and dtype is None:
            dtype = _INT64
        return self.const(arg, dtype)

    def _output_count(self, spec: OpSpec, attrs: Mapping[str, Any]) -> int:
        if spec.variadic_output:
            for name in ("then_branch", "body"):
                if name in attrs:
                    skip = 1 if spec.op_type == "Loop" else 0
                    return len(attrs[name].outputs) - skip
            if attrs.get("num_outputs"):
                return int(attrs["num_outputs"])
        return max(spec.min_outputs, 1)

    def _output_dtypes(
        self,
        spec: OpSpec,
        inputs: Sequence[Any],
        attrs: Mapping[str, Any],
        bound: Mapping[str, ir.DataType],
        outputs: int | None,
    ) -> list[ir.DataType | None]:
        count = outputs or self._output_count(spec, attrs)
        kinds: list[ir.DataType | None] = []
        for index in range(count):
            key = spec.output_key(index)
            if key is None and index >= len(spec.outputs) and not spec.variadic_output:
                raise BuildError(f"{spec} has {len(spec.outputs)} outputs, {count} were asked for")
            kind = key if not isinstance(key, str) else bound.get(key)
            if kind is None:
                kind = _body_dtype(spec, attrs, index) or special_dtype(spec.op_type, inputs, attrs)
            kinds.append(kind)
        return kinds

    def _node(
        self,
        domain: str,
        op_type: str,
        inputs: Sequence[Any],
        attrs: Sequence[ir.Attr],
        kinds: Sequence[ir.DataType | None],
        version: int,
    ) -> tuple[Value, ...]:
        scope, session = self.scope, self.session
        last = len(inputs)
        while last and inputs[last - 1] is None:
            last -= 1
        if scope.kind != "graph":
            inputs = [v if v is None or v.scope is scope else scope.visible_value(v) for v in inputs[:last]]
        elif last < len(inputs):
            inputs = inputs[:last]
        values = tuple(Value(scope=scope, dtype=kind, name=session.fresh()) for kind in kinds)
        node = ir.Node(
            domain,
            op_type,
            inputs,
            attrs,
            outputs=values,
            version=version,
            name=f"node_{values[0].name}",
            metadata_props=dict(self.origin.metadata),
        )
        scope.graph.append(node)
        return values

    # ------------------------------------------------------- constants, casts

    def const(self, value: Any, dtype: Any = None) -> Value:
        """A constant tensor, shared with every equal one.

        Raises:
            BuildError: ``dtype`` cannot hold the value exactly (rounding of floats is no loss).
        """
        kind = None if dtype is None else to_ir(dtype)
        owner = self.scope.owner
        key: Any = None
        if kind is not None and isinstance(value, (bool, int, float)):
            key = scalar_key(value, kind)
        elif isinstance(value, (list, tuple)) and value and all(type(item) is int for item in value):
            key = (kind or _INT64, *value)
        if key is not None:
            found = owner.constants.get(key)
            if found is not None:
                return found
        tensor = constant_tensor(value, kind)
        data = (tensor.dtype, tuple(tensor.shape.numpy()), tensor.tobytes())
        found = owner.constants.get(data)
        if found is None:
            found = self._new_constant(owner, tensor)
            owner.constants[data] = found
        if key is not None:
            owner.constants[key] = found
        return found

    def _new_constant(self, owner: Scope, tensor: ir.TensorProtocol) -> Value:
        dims = tuple(tensor.shape.numpy())
        if owner.kind == "function":
            builder = self._clone(owner)
            attr = ir.Attr("value", ir.AttributeType.TENSOR, tensor)
            (value,) = builder._node("", "Constant", (), [attr], [tensor.dtype], self.opset)
            value.const_value = tensor
            value.dims = dims
            return value
        name = self.session.fresh()
        tensor.name = name
        return Value(scope=owner, dtype=tensor.dtype, dims=dims, name=name, const_value=tensor)

    def cast(self, x: Any, dtype: Any) -> Value:
        """Cast; ``x`` itself when it has the dtype. A number becomes a constant."""
        kind = to_ir(dtype)
        if not isinstance(x, Value):
            return self.as_value(x, kind)
        if x.dtype == kind:
            return x
        return self._emit("", "Cast", x, to=kind)  # type: ignore[no-any-return]

    # ----------------------------------------------------------------- sizes

    def size(self, dim: int | SymSize) -> Value:
        """A size as an int64 scalar (float64 or bool where the expression is one)."""
        if not isinstance(dim, SymSize):
            return self.const(dim, _INT64)
        return self._size(dim.expr, "scalar")

    def shape(self, dims: Sequence[Any]) -> Value:
        """Sizes as an int64 vector."""
        key = tuple(dims)
        if all(not isinstance(d, SymSize) for d in key):
            return self.const(list(key), _INT64) if key else self.const(np.zeros(0, np.int64))
        for scope in self.scope.around():
            if key in scope.shapes:
                return scope.shapes[key]
        owner = self._size_owner(SymSize.symbols(*key))
        builder = self if owner is self.scope else self._clone(owner)
        parts = builder._vector_parts(key)
        value: Value = parts[0] if len(parts) == 1 else builder._clone(owner).Concat(*parts, axis=0)
        value.content = key
        owner.shapes[key] = value
        return value

    def _vector_parts(self, dims: Sequence[Any]) -> list[Value]:
        parts: list[Value] = []
        index = 0
        while index < len(dims):
            start = index
            if not isinstance(dims[index], SymSize):
                while index < len(dims) and not isinstance(dims[index], SymSize):
                    index += 1
                parts.append(self.const(list(dims[start:index]), _INT64))
                continue
            tensor, axis = self._root(dims[index].expr) or (None, None)
            index += 1
            if tensor is None or axis is None:
                parts.append(self._size(dims[start].expr, "vector"))
                continue
            while index < len(dims) and (tensor.dims or ())[axis + index - start :][:1] == (dims[index],):
                index += 1
            if index - start == 1:
                parts.append(self._size(dims[start].expr, "vector"))
            else:
                end = None if axis + index - start == tensor.rank else axis + index - start
                parts.append(self._clone(self.scope).Shape(tensor, start=axis or None, end=end))
        return parts

    def _root(self, expr: Any) -> tuple[Value, int | None] | None:
        for scope in self.scope.around():
            root = scope.roots.get(expr)
            if isinstance(root, tuple):
                return root
        return None

    def _size_owner(self, symbols: Any) -> Scope:
        """The outermost scope in which all of ``symbols`` have a value."""
        chain = list(self.scope.around())
        depth = len(chain) - 1
        for symbol in symbols:
            at = next((i for i, scope in enumerate(chain) if symbol in scope.roots), None)
            if at is not None:
                depth = min(depth, at)
        return chain[depth]

    def _size(self, expr: Any, form: str) -> Value:
        key = (expr, form)
        for scope in self.scope.around():
            found = scope.sizes.get(key)
            if found is not None:
                return found
        owner = self._size_owner(expr.free_symbols)
        builder = self._clone(owner)
        value = builder._make_size(expr, form)
        value.content = (SymSize(expr),)
        value.dims = (1,) if form == "vector" else ()
        owner.sizes[key] = value
        return value

    def _make_size(self, expr: Any, form: str) -> Value:
        known: Any = None
        for scope in self.scope.around():
            known = scope.roots.get(expr)
            if known is not None:
                break
        if isinstance(known, tuple):
            value, axis = known
            if axis is None:
                return value if form == "scalar" else self.Reshape(value, [1])  # type: ignore[no-any-return]
            if form == "scalar":
                return self.Squeeze(self._size(expr, "vector"))  # type: ignore[no-any-return]
            end = axis + 1 if axis + 1 < value.rank else None
            return self.Shape(value, start=axis or None, end=end)  # type: ignore[no-any-return]

        def root(part: Any) -> Value | None:
            if part == expr:
                return None
            for scope in self.scope.around():
                if part in scope.roots or (part, form) in scope.sizes:
                    return self._size(part, form)
            return None

        def keep(part: Any, value: Value) -> None:
            self.scope.sizes.setdefault((part, form), value)

        return sympy_rules.emit(self, expr if known is None else known, root, keep=keep)

    # ------------------------------------------------- shapes of constant form

    def reshape(self, x: Value, dims: Sequence[Any]) -> Value:
        """Reshape to sizes, with a constant target wherever that is right; ``x`` when it has them.

        ``-1`` stands for one size where the product of all others is provably not zero, ``0``
        copies a symbolic size that stays at its place; a static zero size needs ``allowzero``.
        """
        target = tuple(dims)
        if x.dims == target:
            return x
        zero = any(isinstance(d, int) and d == 0 for d in target)
        symbolic = [i for i, d in enumerate(target) if isinstance(d, SymSize)]
        if not symbolic:
            return self._done(self.Reshape(x, list(target), allowzero=1 if zero else None), target)
        if not zero:
            source = x.dims or ()
            copied = [i for i in symbolic if i < len(source) and source[i] == target[i]]
            rest = [i for i in symbolic if i not in copied]
            facts = self.session.facts
            for hole in rest or [None]:  # type: ignore[list-item]
                others = [i for i in symbolic if i not in copied and i != hole]
                if others:
                    break
                nonzero = all(facts.provably_nonzero(target[i].expr) for i in copied)
                if hole is None or nonzero:
                    form = [-1 if i == hole else 0 if i in copied else d for i, d in enumerate(target)]
                    return self._done(self.Reshape(x, form), target)
        nonzero = all(self.session.facts.provably_nonzero(target[i].expr) for i in symbolic)
        allowzero = None if nonzero and not zero else 1
        return self._done(self.Reshape(x, self.shape(target), allowzero=allowzero), target)

    def expand(self, x: Value, dims: Sequence[Any]) -> Value:
        """Expand to sizes; a size that ``x`` has already is left to broadcasting."""
        target = tuple(dims)
        source = x.dims
        if source == target:
            return x
        if source is None:
            return self._done(self.Expand(x, self.shape(target)), target)
        ahead = len(target) - len(source)
        form = [
            1 if i >= ahead and isinstance(d, SymSize) and source[i - ahead] == d else d
            for i, d in enumerate(target)
        ]
        return self._done(self.Expand(x, self.shape(form)), target)

    @staticmethod
    def _done(value: Value, dims: Dims) -> Value:
        value.dims = dims
        return value

    # -------------------------------------------------------- rows and graphs

    def translate(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        """What the dispatch table has for another operator, so that overrides take effect.

        Arguments are those of the operator's schema; ``op.outs`` in that row are still the
        promises for the node being translated.
        """
        return self.session.translator.call_row(self, target, args, kwargs)

    def decompose(self) -> Any:
        """The node's decomposition written out; NotImplemented when it has none."""
        return self.session.translator.decompose_here(self)

    def inline(self, graph_module: torch.fx.GraphModule, args: Sequence[Any]) -> tuple[Any, ...]:
        """Translate a subgraph here, its placeholders bound to ``args``; its outputs."""
        return self.session.translator.inline(self, graph_module, args)  # type: ignore[no-any-return]

    def body(self, name: str = "body") -> Body:
        """``with op.body() as body``: a builder whose nodes go into a new body graph."""
        return Body(Scope(self.session, "body", self.scope, self.session.unique(name)), self.origin)

    def subgraph(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> ir.Graph:
        """A body without inputs of its own, for If: ``inputs`` are read from outside."""
        with self.body(str(getattr(graph_module, "_name", "") or "body")) as body:
            body.output(*body.inline(graph_module, inputs))
        return body.graph

    def function(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """A call of an onnxscript function as a function of the model, at the model's opset."""
        from atonnx.build.functions import call_function

        return call_function(self, function, args, kwargs)


class Body(Builder):
    """A builder in a body graph, which has inputs and outputs of its own."""

    __slots__ = ()

    @property
    def graph(self) -> ir.Graph:
        """The body, for an attribute of If, Loop or Scan."""
        return self.scope.graph

    def __enter__(self) -> Body:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def input(self, name: str, dtype: Any, dims: Dims | None) -> Value:
        """A new input of the body."""
        value = self.scope.add_input(name, to_ir(dtype), dims)
        self.scope.root_tensor(value)
        return value

    def output(self, *values: Any) -> None:
        """The outputs of the body, in order; a value from outside gets an Identity."""
        for value in values:
            made = self.as_value(value)
            if made.scope is not self.scope or made.producer() is None or made in self.graph.outputs:
                made = self.Identity(made)
            self.graph.outputs.append(made)


def _similar(op_type: str) -> str:
    names = {s.name for s in onnx.defs.get_all_schemas()}
    close = difflib.get_close_matches(op_type, names, 1)
    return f"; did you mean {close[0]}?" if close else ""


def _body_dtype(spec: OpSpec, attrs: Mapping[str, Any], index: int) -> ir.DataType | None:
    graph = attrs.get("then_branch") or attrs.get("body")
    if not isinstance(graph, ir.Graph):
        return None
    skip = 1 if spec.op_type == "Loop" else 0
    if index + skip >= len(graph.outputs):
        return None
    return graph.outputs[index + skip].dtype
