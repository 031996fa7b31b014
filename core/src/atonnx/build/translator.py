"""FX nodes to ONNX nodes: each through its row of the dispatch table, checked against ``meta["val"]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir
import torch
import torch.utils._pytree as pytree

from atonnx.build import sizes
from atonnx.build._torch import (
    FakeTensor,
    OpOverload,
    apart,
    functional_overload,
    is_write,
    written_by,
)
from atonnx.build.aliases import AliasPlan, plan_aliases
from atonnx.build.builder import Builder
from atonnx.build.custom import is_custom
from atonnx.build.decompose import Decomposer, Refusal
from atonnx.build.dtypes import real_of, to_ir
from atonnx.build.folding import fold_constants
from atonnx.build.metadata import PLUGIN, TRANSLATION, Origin, fx_metadata, user_source
from atonnx.build.nodeview import FxNodeView, tensor_values
from atonnx.build.scope import Scope, Session
from atonnx.build.sizes import SymSize
from atonnx.build.source import InputSpec, Source
from atonnx.build.value import Dims, Value
from atonnx.build.weights import Weight
from atonnx.dispatch import DispatchTable, Translation, check_row, target_name
from atonnx.dispatch.signature import python_name
from atonnx.errors import (
    BuildError,
    MissingOp,
    OnnxExporterError,
    TranslationError,
    UnsupportedOpError,
)

__all__ = ["Out", "Translator"]

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_DIMS = frozenset({"dim", "dims", "dim0", "dim1", "start_dim", "end_dim"})


@dataclass(frozen=True, slots=True)
class Out:
    """What a node promises of one result. A complex one is real here, with a last axis of 2."""

    dtype: ir.DataType
    dims: Dims
    is_complex: bool = False
    torch_dtype: torch.dtype | None = None

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.dims)


def promise(value: Any) -> Out | None:
    """What ``meta["val"]`` says of a result; None for no value."""
    if isinstance(value, torch.Tensor):
        dims: tuple[Any, ...] = tuple(d if type(d) is int else sizes.of(d) for d in value.shape)
        if value.dtype.is_complex:
            return Out(to_ir(real_of(value.dtype)), (*dims, 2), True, value.dtype)
        return Out(to_ir(value.dtype), dims, False, value.dtype)
    if isinstance(value, (torch.SymBool, bool)):
        return Out(ir.DataType.BOOL, ())
    if isinstance(value, (torch.SymInt, int)):
        return Out(ir.DataType.INT64, ())
    if isinstance(value, (torch.SymFloat, float)):
        return Out(ir.DataType.DOUBLE, ())
    return None


def promises(value: Any) -> tuple[Out | None, ...]:
    """Promises of all results of a node."""
    if isinstance(value, (list, tuple)):
        return tuple(promise(item) for item in value)
    made = promise(value)
    return () if made is None else (made,)


class Translator:
    """Translates one program into the graph of a session."""

    def __init__(
        self,
        session: Session,
        table: DispatchTable,
        decomposer: Decomposer,
        *,
        missing: Callable[[torch.fx.Node], Translation | None] | None = None,
        distribution_of: Callable[[str], str | None] = lambda name: None,
        loaded: frozenset[str] = frozenset(),
        failed_plugins: Sequence[str] = (),
        progress: Callable[[str, int, int], None] | None = None,
        metadata: bool = True,
    ) -> None:
        session.translator = self
        self.session = session
        self.table = table
        self.decomposer = decomposer
        self._missing_row = missing
        self._distribution_of = distribution_of
        self._loaded = loaded
        self._failed_plugins = tuple(failed_plugins)
        self._progress = progress
        self._metadata = metadata
        self._plan: dict[torch.fx.Node, Translation | torch.fx.GraphModule] = {}
        self._alias: dict[torch.fx.Graph, AliasPlan] = {}
        self._names: dict[Any, str] = {}
        self._checked: set[int] = set()
        self._functional: dict[Any, Any] = {}
        self._weights: dict[Any, Value] = {}
        self._unsupported: list[UnsupportedOpError] = []
        self._named: set[Value] = set()
        self.state: dict[str, Value] = {}
        self.state_kinds: dict[str, str] = {}

    # ------------------------------------------------------------------ plan

    def plan(self, source: Source) -> torch.fx.Node | None:
        """Find a row for every node, then raise one error for all that have none.

        Returns the first write that only the functional form of the program can express.
        """
        missing: dict[str, list[tuple[torch.fx.Node, str]]] = {}
        through_view = self._plan_graph(source.graph_module, missing, nested=False)
        if through_view is None and missing:
            raise self._missing_error(missing)
        return through_view

    def _plan_graph(
        self,
        graph_module: torch.fx.GraphModule,
        missing: dict[str, list[tuple[torch.fx.Node, str]]],
        nested: bool,
    ) -> torch.fx.Node | None:
        graph = graph_module.graph
        plan = self._alias[graph] = plan_aliases(graph, nested=nested)
        through_view = plan.through_view
        for node in graph.nodes:
            if node.op == "get_attr":
                inner = _attribute(graph_module, node.target)
                if isinstance(inner, torch.fx.GraphModule) and inner.graph not in self._alias:
                    through_view = self._plan_graph(inner, missing, nested=True) or through_view
            if node.op != "call_function" or _is_dead(node):
                continue
            if self._is_plain(node) and not self._is_users(node):
                continue
            found = self._resolve(node)
            if isinstance(found, Refusal):
                missing.setdefault(self.name(node.target), []).append((node, found.reason))
                continue
            self._plan[node] = found
            if isinstance(found, torch.fx.GraphModule) and found.graph not in self._alias:
                inner_view = self._plan_graph(found, missing, nested=True)
                if inner_view is not None:
                    missing.setdefault(self.name(node.target), []).append(
                        (node, f"its decomposition writes through a view ({inner_view.target})")
                    )
        return through_view

    def _is_plain(self, node: torch.fx.Node) -> bool:
        """Size arithmetic and getitem, which need no row."""
        if getattr(node.target, "__name__", "") == "getitem" and not isinstance(node.target, OpOverload):
            return True
        value = node.meta.get("val")
        return isinstance(value, (*_SYMBOLIC, int, float)) and not node.meta.get("unbacked_bindings")

    def _is_users(self, node: torch.fx.Node) -> bool:
        """Whether the user has a row of their own for size arithmetic."""
        if not isinstance(node.meta.get("val"), _SYMBOLIC):
            return False
        row = self.table.find(self.name(node.target), FxNodeView(node), False)
        return row is not None and is_custom(row)

    def name(self, target: Any) -> str:
        """The key of a target in the dispatch table."""
        name = self._names.get(target)
        if name is None:
            name = self._names[target] = target_name(target)
        return name

    def _resolve(self, node: torch.fx.Node) -> Translation | torch.fx.GraphModule | Refusal:
        target = node.target
        tensors = tensor_values([*node.args, node.meta.get("val")])
        is_complex = any(t.dtype.is_complex for t in tensors)
        view = FxNodeView(node)
        row = self.table.find(self.name(target), view, is_complex)
        if row is None and isinstance(target, OpOverload) and target._schema.is_mutable:
            functional = self.functional(target)
            if functional is not None:
                row = self.table.find(self.name(functional), view, is_complex)
                if row is not None:
                    self._check_once(row, functional)
                    return row
        if row is None and self._missing_row is not None:
            row = self._missing_row(node)
        if row is not None:
            self._check_once(row, target)
            return row
        name = self.name(target)
        distribution = self._absent_pack(target)
        if distribution is not None:
            return Refusal(f"the plugin that has it is not installed: pip install {distribution}")
        if is_complex and self.table.find(name, view, False) is not None:
            real = Refusal("its row does not take complex operands")
        else:
            real = Refusal("")
        decomposed = self.decomposer.decompose(node)
        if isinstance(decomposed, Refusal):
            return Refusal("; ".join(r for r in (real.reason, decomposed.reason) if r))
        return decomposed

    def _absent_pack(self, target: Any) -> str | None:
        """The distribution that has the operator's row, or its functional form's, and is not loaded."""
        names = [self.name(target)]
        if isinstance(target, OpOverload) and target._schema.is_mutable:
            functional = self.functional(target)
            if functional is not None:
                names.append(self.name(functional))
        packs = (self._distribution_of(name) for name in names)
        return next((pack for pack in packs if pack is not None and pack not in self._loaded), None)

    def functional(self, target: OpOverload) -> OpOverload | None:
        """The overload whose row serves an in-place or ``out=`` one."""
        if target not in self._functional:
            self._functional[target] = functional_overload(target)
        return self._functional[target]  # type: ignore[no-any-return]

    def _check_once(self, row: Translation, target: Any) -> None:
        if id(row) not in self._checked:
            self._checked.add(id(row))
            if isinstance(target, OpOverload) and not is_custom(row):
                check_row(row, target)

    def _missing_error(self, missing: Mapping[str, list[tuple[torch.fx.Node, str]]]) -> UnsupportedOpError:
        found = []
        for op, uses in sorted(missing.items()):
            sources = tuple(dict.fromkeys(filter(None, (user_source(node) for node, _ in uses))))
            distribution = self._absent_pack(uses[0][0].target)
            found.append(MissingOp(op, len(uses), sources, uses[0][1], distribution))
        names = ", ".join(item.op for item in found)
        count = "1 operator has" if len(found) == 1 else f"{len(found)} operators have"
        lines = [f"{count} no ONNX translation at opset {self.session.opset}: {names}"]
        for item in found:
            lines.append(f"  {item.op} ({item.count}x): {item.reason}")
            lines += [f"      at {source}" for source in item.sources[:3]]
            if len(item.sources) > 3:
                lines.append(f"      and {len(item.sources) - 3} more places")
        if self._failed_plugins:
            lines.append("  plugins that failed to load, one of which may have them:")
            lines += [f"      {text}" for text in self._failed_plugins]
        packs = sorted({item.distribution for item in found if item.distribution})
        hint = (
            "pass custom_translation_table={torch.ops.<namespace>.<op>.<overload>: function}, "
            "or write a row in a plugin (docs/writing-a-plugin.md)"
        )
        if packs:
            hint = f"pip install {' '.join(packs)}; or {hint}"
        return UnsupportedOpError("\n".join(lines), missing=found, hint=hint)

    # ------------------------------------------------------------- translate

    def translate(self, source: Source) -> tuple[list[Value], list[Any]]:
        """Translate the whole program; the user's inputs and the outputs, in order."""
        scope = self.session.root
        graph = source.graph_module.graph
        env: dict[torch.fx.Node, Any] = {}
        inputs: list[Value] = []
        lifted: dict[torch.fx.Node, torch.Tensor] = {}
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        specs = list(source.inputs)
        for node, spec in zip(placeholders, specs, strict=True):
            if spec.kind == "USER_INPUT":
                value = self._user_input(scope, node)
                env[node] = value if not isinstance(value, Value) or not _is_symbolic(node) else _number(node)
                if isinstance(value, Value):
                    inputs.append(value)
        for node, spec in zip(placeholders, specs, strict=True):
            if spec.kind != "USER_INPUT":
                env[node] = self._weight(scope, node, spec)
                if spec.kind == "CONSTANT_TENSOR" and isinstance(spec.tensor, torch.Tensor):
                    lifted[node] = spec.tensor
        results = self._graph(scope, source.graph_module, env, Origin(), lifted)
        if self._unsupported:
            raise self._refused()
        for node, spec in zip(placeholders, specs, strict=True):
            if node in self._alias[graph].state:
                self.state[spec.target or spec.name] = env[node]
                self.state_kinds[spec.target or spec.name] = spec.kind
        return inputs, list(results)

    def _refused(self) -> UnsupportedOpError:
        if len(self._unsupported) == 1:
            return self._unsupported[0]
        text = "\n".join(f"- {error}" for error in self._unsupported)
        missing = [MissingOp(e.op, 1, (e.source,) if e.source else (), e.reason) for e in self._unsupported]
        return UnsupportedOpError(
            f"{len(missing)} nodes of the model cannot be translated:\n{text}", missing=missing
        )

    def _user_input(self, scope: Scope, node: torch.fx.Node) -> Any:
        value = node.meta.get("val")
        made = promise(value)
        if isinstance(value, torch.Tensor) and made is not None:
            result = scope.add_input(node.name, made.dtype, made.dims)
            result.is_complex = made.is_complex
            scope.root_tensor(result)
            return result
        if isinstance(value, _SYMBOLIC) and made is not None:
            result = scope.add_input(node.name, made.dtype, ())
            scope.root(value.node.expr, result, None)
            return result
        return value

    def _weight(self, scope: Scope, node: torch.fx.Node, spec: InputSpec) -> Any:
        tensor = spec.tensor
        if not isinstance(tensor, torch.Tensor):
            return None
        key = _weight_key(tensor)
        value = self._weights.get(key)
        if value is None:
            name = self.session.unique(spec.target or spec.name)
            weight = Weight(tensor, spec.target or spec.name, name=name)
            value = Value(
                scope=scope,
                dtype=weight.dtype,
                dims=tuple(weight.shape.numpy()),
                name=name,
                const_value=weight,
            )
            value.is_complex = tensor.is_complex()
            value.metadata_props.update(
                {
                    "pkg.torch.export.graph_signature.InputSpec.kind": spec.kind,
                    "pkg.torch.export.graph_signature.InputSpec.persistent": str(spec.persistent),
                    "pkg.torch.onnx.original_node_name": spec.name,
                }
            )
            self._weights[key] = value
        elif (
            spec.target
            and isinstance(value.const_value, Weight)
            and spec.target not in value.const_value.names
        ):
            value.const_value.aliases += (spec.target,)
        return value

    @property
    def weights(self) -> list[Value]:
        """Initializers of the model's parameters, buffers and lifted tensors."""
        return list(dict.fromkeys(self._weights.values()))

    def _graph(
        self,
        scope: Scope,
        graph_module: torch.fx.GraphModule,
        env: dict[torch.fx.Node, Any],
        outer: Origin,
        lifted: Mapping[torch.fx.Node, torch.Tensor],
    ) -> tuple[Any, ...]:
        graph = graph_module.graph
        aliases = self._alias[graph]
        folded = fold_constants(graph, dict(lifted), aliases.touched)
        total = len(graph.nodes)
        for done, node in enumerate(graph.nodes):
            if self._progress is not None and scope.kind == "graph" and not outer.op and done % 32 == 0:
                self._progress("translate", done, total)
            if node.op == "call_function":
                if _is_dead(node):
                    continue
                if node in folded:
                    env[node] = self._constant(scope, node, folded[node])
                elif getattr(node.target, "__name__", "") == "getitem" and not isinstance(
                    node.target, OpOverload
                ):
                    container = env[node.args[0]]
                    env[node] = container[node.args[1]]
                elif node not in self._plan:
                    value = node.meta.get("val")
                    env[node] = sizes.of(value) if isinstance(value, _SYMBOLIC) else value
                else:
                    self._node(scope, node, env, outer, aliases)
            elif node.op == "get_attr":
                env[node] = self._get_attr(scope, graph_module, node)
            elif node.op == "output":
                return tuple(_map(item, env) for item in _outputs(node))
        return ()

    def _constant(self, scope: Scope, node: torch.fx.Node, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return tuple(self._constant(scope, node, item) for item in value)
        if not isinstance(value, torch.Tensor):
            return value
        if value.is_complex():
            value = torch.view_as_real(value.resolve_conj())
        return Builder(scope, Origin(fx=node)).const(value.resolve_neg())

    def _get_attr(self, scope: Scope, graph_module: torch.fx.GraphModule, node: torch.fx.Node) -> Any:
        value = _attribute(graph_module, str(node.target))
        if isinstance(value, torch.Tensor):
            return self._weight(
                scope, node, InputSpec("CONSTANT_TENSOR", node.name, str(node.target), None, value)
            )
        return value

    def _node(
        self,
        scope: Scope,
        node: torch.fx.Node,
        env: dict[torch.fx.Node, Any],
        outer: Origin,
        aliases: AliasPlan,
    ) -> None:
        planned = self._plan[node]
        args = tuple(_map(a, env) for a in node.args)
        kwargs = {python_name(k): _map(a, env) for k, a in node.kwargs.items()}
        value = node.meta.get("val")
        metadata = fx_metadata(node, outer.metadata) if self._metadata else {}
        origin = Origin(self.name(node.target), node, "", promises(value), metadata, env)
        op = Builder(scope, origin)
        written_values: tuple[Any, ...] = ()
        try:
            if isinstance(planned, torch.fx.GraphModule):
                origin.plugin = "decomposition"
                dynamic = _dynamic_arguments(node, env)
                result: Any = self.inline(op, planned, dynamic)
                if not isinstance(value, (list, tuple)):
                    result = result[0] if result else None
            else:
                result = self._run_row(op, planned, node, args, kwargs)
                if node in aliases.renamed:
                    result, written_values = apart(node.target, self.functional(node.target), result)  # type: ignore[arg-type]
        except UnsupportedOpError as error:
            self._unsupported.append(error)
            result = self._stand_in(scope, origin, value)
        result = self._checked_result(op, node, result)
        self._bind(scope, node, result, env)
        for written, same in aliases.renamed.get(node, ()):
            new = (
                written_values[written_by(node).index(written)]
                if written_values
                else self._written_value(node, written, env)
            )
            for alias in same:
                env[alias] = new

    def _written_value(self, node: torch.fx.Node, written: torch.fx.Node, env: Mapping[Any, Any]) -> Any:
        result = env[node]
        if isinstance(result, tuple):
            return result[written_by(node).index(written)]
        return result

    def _run_row(
        self,
        op: Builder,
        row: Translation,
        node: torch.fx.Node,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        origin = op.origin
        origin.plugin = row.plugin
        if self._metadata:
            origin.metadata[PLUGIN] = row.plugin
            origin.metadata[TRANSLATION] = row.target
        target = node.target
        if isinstance(target, OpOverload) and is_write(target) and row.target != origin.op:
            kwargs = {k: v for k, v in kwargs.items() if not _is_out(target, k)}
            self._widen_promise(op, node)
        if row.complex == "layout" and any(o is not None and o.is_complex for o in origin.outs):
            args, kwargs = _positive_dims(target, args, kwargs)
        return self._call(op, row, args, kwargs)

    def _call(self, op: Builder, row: Translation, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        try:
            return row.fn(op, *args, **kwargs)
        except BuildError as error:
            raise TranslationError(str(error), **op.where()) from error
        except OnnxExporterError:
            raise
        except Exception as error:
            name = getattr(row.fn, "__qualname__", str(row.fn))
            raise TranslationError(
                f"the row {name} failed: {type(error).__name__}: {error}", **op.where()
            ) from error

    def _widen_promise(self, op: Builder, node: torch.fx.Node) -> None:
        """An in-place operator computes in the promoted dtype; its result is cast to self's after."""
        tensors = tensor_values(node.args)
        functional = self.functional(node.target)  # type: ignore[arg-type]
        if functional is None or len({t.dtype for t in tensors}) < 2:
            return
        try:
            args, kwargs = pytree.tree_map_only(
                torch.fx.Node, lambda n: n.meta.get("val"), (node.args, dict(node.kwargs))
            )
            kwargs = {k: v for k, v in kwargs.items() if not _is_out(node.target, k)}
            with torch.no_grad():
                value = functional(*args, **kwargs)
        except Exception:
            return  # the promise of the in-place form stands
        op.origin.outs = promises(value)

    def _stand_in(self, scope: Scope, origin: Origin, value: Any) -> Any:
        """Typed values in place of a refused node's, so that later refusals are found too."""
        made = tuple(
            None
            if out is None
            else Value(scope=scope, dtype=out.dtype, dims=out.dims, name=self.session.fresh())
            for out in origin.outs
        )
        return made if isinstance(value, (list, tuple)) else made[0] if made else None

    def _checked_result(self, op: Builder, node: torch.fx.Node, result: Any) -> Any:
        """The row's result against the node's promise: count, dtype, rank; sizes are taken over."""
        value = node.meta.get("val")
        outs = promises(value)
        if value is None:
            return result
        many = isinstance(value, (list, tuple))
        if isinstance(result, list):
            result = tuple(result)
        values = result if isinstance(result, tuple) else (result,)
        if many != isinstance(result, tuple) or len(values) != len(outs):
            raise TranslationError(
                f"the row returned {len(values)} value(s), the node has {len(outs)}", **op.where()
            )
        checked = tuple(self._check_one(op, got, out, node) for got, out in zip(values, outs, strict=True))
        return checked if many else checked[0]

    def _check_one(self, op: Builder, got: Any, out: Out | None, node: torch.fx.Node) -> Any:
        if out is None:
            return got
        if got is None:
            users = node.users
            if isinstance(node.meta.get("val"), (list, tuple)) or not users:
                return None
            raise TranslationError("the row returned nothing for a result that is used", **op.where())
        if not isinstance(got, Value):
            got = op.as_value(got, out.dtype)
        if is_write(node.target) and got.dtype != out.dtype and got.dtype is not None:
            got = op.cast(got, out.dtype)
        if got.dtype is None:
            got.dtype = out.dtype
        if got.dtype != out.dtype:
            raise TranslationError(
                f"the row returned {got.dtype.name}, the node is {out.dtype.name}", **op.where()
            )
        dims = got.dims
        if dims is not None and len(dims) != out.rank:
            raise TranslationError(
                f"the row returned rank {len(dims)}, the node has {out.rank}", **op.where()
            )
        if got.producer() is not None and got not in self._named:
            got.dims = out.dims
            got.is_complex = out.is_complex
        return got

    def _bind(self, scope: Scope, node: torch.fx.Node, result: Any, env: dict[torch.fx.Node, Any]) -> None:
        if isinstance(result, tuple):
            for index, value in enumerate(result):
                if isinstance(value, Value):
                    self._rename(scope, value, f"{node.name}__{index}")
        elif isinstance(result, Value):
            self._rename(scope, result, node.name)
        if node.meta.get("unbacked_bindings"):
            result = self._bind_symbols(scope, node, result)
        elif isinstance(result, Value) and isinstance(node.meta.get("val"), _SYMBOLIC):
            size = sizes.of(node.meta["val"])
            if isinstance(size, SymSize):
                scope.root(size.expr, result, None)
            result = size
        env[node] = result

    def _rename(self, scope: Scope, value: Value, name: str) -> None:
        producer = value.producer()
        if (
            producer is None
            or value.scope is not scope
            or value in self._named
            or value.const_value is not None
        ):
            return
        self._named.add(value)
        value.name = self.session.unique(name)
        if value.index() == 0:
            producer.name = f"node_{value.name}"

    def _bind_symbols(self, scope: Scope, node: torch.fx.Node, result: Any) -> Any:
        """Make the data-dependent sizes that the node brings readable from now on."""
        value = node.meta.get("val")
        if isinstance(value, _SYMBOLIC) and isinstance(result, Value):
            size = sizes.of(value)
            if isinstance(size, SymSize):
                scope.root(size.expr, result, None)
                for symbol in size.expr.free_symbols:
                    if symbol not in scope.roots:
                        number = Builder(scope, Origin(fx=node)).cast(result, ir.DataType.INT64)
                        scope.root(symbol, number, None)
            return size
        values = result if isinstance(result, tuple) else (result,)
        for item in values:
            if isinstance(item, Value):
                scope.root_tensor(item)
        return result

    # ------------------------------------------------ for the builder's calls

    def inline(self, op: Builder, graph_module: torch.fx.GraphModule, args: Sequence[Any]) -> tuple[Any, ...]:
        """Translate a subgraph in ``op``'s scope; placeholders are bound to ``args`` in order."""
        if graph_module.graph not in self._alias:
            missing: dict[str, list[tuple[torch.fx.Node, str]]] = {}
            self._plan_graph(graph_module, missing, nested=True)
            if missing:
                raise self._missing_error(missing)
        placeholders = [n for n in graph_module.graph.nodes if n.op == "placeholder"]
        if len(placeholders) != len(args):
            raise TranslationError(
                f"the subgraph has {len(placeholders)} inputs, {len(args)} were given", **op.where()
            )
        env = dict(zip(placeholders, args, strict=True))
        return self._graph(op.scope, graph_module, env, op.origin, {})

    def call_row(self, op: Builder, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of another operator's row for these arguments."""
        tree = pytree.tree_leaves((args, dict(kwargs)))
        is_complex = any(isinstance(v, Value) and v.is_complex for v in tree)
        row = self.table.find(self.name(target), _CallView(target, args, kwargs), is_complex)
        if row is None:
            raise UnsupportedOpError.here(op, f"{self.name(target)}, which has no row,")
        self._check_once(row, target)
        origin = replace(op.origin, plugin=row.plugin)
        return self._call(Builder(op.scope, origin), row, args, kwargs)

    def decompose_here(self, op: Builder) -> Any:
        """The current node's decomposition, translated here; NotImplemented when it has none."""
        node = op.origin.fx
        if node is None:
            return NotImplemented
        made = self.decomposer.decompose(node)
        if isinstance(made, Refusal):
            return NotImplemented
        result = self.inline(op, made, _dynamic_arguments(node, op.origin.env))
        return result if isinstance(node.meta.get("val"), (list, tuple)) else result[0]


class _CallView:
    """What ``when`` sees of a call that a row makes: the arguments given, the schema's defaults."""

    def __init__(self, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._target, self._args, self._kwargs = target, args, kwargs
        self.value: Any = None

    def arg(self, name: str) -> Any:
        for index, argument in enumerate(self._target._schema.arguments):
            if argument.name == name:
                if index < len(self._args) and not argument.kwarg_only:
                    return self._args[index]
                return self._kwargs.get(name, argument.default_value)
        raise KeyError(name)


def _is_dead(node: torch.fx.Node) -> bool:
    """A result that nobody reads, of an operator that does nothing else."""
    return not node.users and node.meta.get("val") is not None and not is_write(node.target)


def _is_symbolic(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), _SYMBOLIC)


def _number(node: torch.fx.Node) -> Any:
    return sizes.of(node.meta["val"])


def _weight_key(tensor: torch.Tensor) -> Any:
    """Tied weights meet under one key; tensors without data (fake, meta, empty) are themselves."""
    if isinstance(tensor, FakeTensor) or tensor.is_meta or tensor.numel() == 0:
        return id(tensor)
    return (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _outputs(node: torch.fx.Node) -> Sequence[Any]:
    result = node.args[0]
    return result if isinstance(result, (list, tuple)) else (result,)


def _map(arg: Any, env: Mapping[torch.fx.Node, Any]) -> Any:
    if isinstance(arg, torch.fx.Node):
        return env[arg]
    if isinstance(arg, (list, tuple)):
        return tuple(_map(item, env) for item in arg)
    if isinstance(arg, dict):
        return {k: _map(v, env) for k, v in arg.items()}
    return arg


def _dynamic_arguments(node: torch.fx.Node, env: Mapping[torch.fx.Node, Any]) -> list[Any]:
    """The values for a decomposition's placeholders: tensors and sizes among the arguments, in order."""
    found = []
    for leaf in pytree.tree_leaves((node.args, dict(node.kwargs))):
        if isinstance(leaf, torch.fx.Node) and isinstance(leaf.meta.get("val"), (torch.Tensor, *_SYMBOLIC)):
            found.append(env[leaf])
        elif isinstance(leaf, torch.fx.Node) and isinstance(leaf.meta.get("val"), (list, tuple)):
            found.extend(env[leaf])
    return found


def _is_out(target: Any, name: str) -> bool:
    return any(a.name == name and a.is_out for a in target._schema.arguments)


def _positive_dims(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Negative dims counted from the front, in the torch view without the pair axis."""
    first = next((a for a in args if isinstance(a, Value)), None)
    if first is None and args and isinstance(args[0], tuple):
        first = next((a for a in args[0] if isinstance(a, Value)), None)
    if first is None or not isinstance(target, OpOverload):
        return args, kwargs
    rank = first.rank - first.is_complex
    more = 1 if target._schema.name.endswith(("::unsqueeze", "::unsqueeze_copy", "::stack")) else 0

    def fixed(name: str, value: Any) -> Any:
        if name not in _DIMS:
            return value
        if isinstance(value, int) and value < 0:
            return value + rank + more
        if isinstance(value, tuple):
            return tuple(v + rank if isinstance(v, int) and v < 0 else v for v in value)
        return value

    schema = target._schema.arguments
    full = [fixed(schema[i].name, a) for i, a in enumerate(args)]
    named = {k: fixed(k, v) for k, v in kwargs.items()}
    for index in range(len(full), len(schema)):
        name, default = schema[index].name, schema[index].default_value
        if name in _DIMS and isinstance(default, int) and default < 0 and name not in named:
            named[name] = fixed(name, default)
    return tuple(full), named
