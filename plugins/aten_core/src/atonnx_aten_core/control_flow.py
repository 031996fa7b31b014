"""Control flow: If, Loop and Scan; what only wraps a subgraph is written in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir
import torch

from atonnx.build import Body, Builder, SymSize, Value
from atonnx.build.sizes import of
from atonnx.dispatch import Table

table = Table(__name__)

Graph = torch.fx.GraphModule


@table.translate("higher_order::cond", complex="also")
def cond(op: Builder, pred: Any, true_fn: Graph, false_fn: Graph, operands: Sequence[Any] = ()) -> Any:
    """If, whose branches read their operands from outside."""
    if isinstance(pred, bool):
        return op.inline(true_fn if pred else false_fn, operands)
    chosen = op.reshape(op.cast(pred, ir.DataType.BOOL), ())
    branches = [op.subgraph(branch, operands) for branch in (true_fn, false_fn)]
    return op.If(chosen, then_branch=branches[0], else_branch=branches[1], outputs=len(op.outs))


@table.translate("higher_order::while_loop", complex="also")
def while_loop(
    op: Builder,
    cond_fn: Graph,
    body_fn: Graph,
    carried_inputs: Sequence[Any],
    additional_inputs: Sequence[Any],
) -> Any:
    """Loop; its condition is written before it and at the end of its body."""
    begin = [op.as_value(value) for value in carried_inputs]
    proceed = _condition(op, cond_fn, begin, additional_inputs)
    with op.body("loop_body") as body:
        body.input("iteration", ir.DataType.INT64, ())
        body.input("proceed", ir.DataType.BOOL, ())
        carried = _body_inputs(body, body_fn, begin, "carried")
        with _bound(body, body_fn, carried):
            made = body.inline(body_fn, [*_seen(body_fn, carried), *additional_inputs])
            values = [body.as_value(value) for value in made]
        body.output(_condition(body, cond_fn, values, additional_inputs), *values)
    results = op.Loop(None, proceed, *begin, body=body.graph, outputs=len(begin))
    _root_numbers(op, results)
    return results


@table.translate("higher_order::scan", complex="also")
def scan(
    op: Builder,
    combine_fn: Graph,
    init: Sequence[Any],
    xs: Sequence[Any],
    additional_inputs: Sequence[Any] = (),
) -> Any:
    """Scan along the first axis; an If around it where that may be empty, of which ONNX Runtime dies."""
    size: Any = (xs[0].dims or (None,))[0]
    if size is None or op.session.facts.truth(size):
        return _scan(op, combine_fn, init, xs, additional_inputs)
    with op.body("some") as some, op.body("none") as none:
        some.output(*_scan(some, combine_fn, init, xs, additional_inputs))
        begun = [none.Identity(op.as_value(value)) for value in init]
        empty = [none.expand(none.const(0, out.dtype), out.dims) for out in op.outs[len(init) :]]
        none.output(*begun, *empty)
    chosen = op.Greater(op.size(size), 0)
    return op.If(chosen, then_branch=some.graph, else_branch=none.graph, outputs=len(op.outs))


@table.translate("higher_order::map_impl", complex="also")
def map_impl(op: Builder, f: Graph, xs: Sequence[Any], pos_args: Sequence[Any] = ()) -> Any:
    """Scan without a state."""
    return _scan(op, f, (), xs, pos_args)


@table.translate("higher_order::with_effects", complex="also")
def with_effects(op: Builder, token: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """The operator; the token, which only keeps an order, is handed on."""
    made = op.translate(target, *args, **kwargs)
    return (token, *made) if isinstance(made, tuple) else (token, made)


def _scan(op: Builder, step: Graph, init: Sequence[Any], xs: Sequence[Any], rest: Sequence[Any]) -> Any:
    begin = [op.as_value(value) for value in init]
    with op.body("scan_body") as body:
        state = _body_inputs(body, step, begin, "state")
        slices = _body_inputs(body, step, xs, "slice", first=len(begin))
        inputs = [*state, *slices]
        with _bound(body, step, inputs):
            body.output(*body.inline(step, [*_seen(step, inputs), *rest]))
    return op.Scan(*begin, *xs, body=body.graph, num_scan_inputs=len(xs), outputs=len(op.outs))


def _placeholders(graph: Graph) -> list[Any]:
    """What torch recorded of a subgraph's inputs."""
    return [node.meta.get("val") for node in graph.graph.nodes if node.op == "placeholder"]


def _body_inputs(body: Body, graph: Graph, given: Sequence[Value], name: str, first: int = 0) -> list[Value]:
    """Inputs of the body with the sizes that the subgraph's inputs have."""
    made = []
    for value, seen in zip(given, _placeholders(graph)[first:], strict=False):
        dims: tuple[Any, ...] = ()
        if isinstance(seen, torch.Tensor):
            dims = (*(of(size) for size in seen.shape), *((2,) if value.is_complex else ()))
        made.append(body.input(name, value.dtype, dims))
        made[-1].is_complex = value.is_complex
    return made


def _numbers(graph: Graph, values: Sequence[Any]) -> dict[Any, Value]:
    """The symbols of a subgraph's inputs that are numbers, with the values that they stand for."""
    found = {}
    for seen, value in zip(_placeholders(graph), values, strict=False):
        size = of(seen) if isinstance(seen, (torch.SymInt, torch.SymFloat, torch.SymBool)) else None
        if isinstance(size, SymSize) and isinstance(value, Value) and size.expr.is_Symbol:
            found[size.expr] = value
    return found


def _seen(graph: Graph, values: Sequence[Any]) -> list[Any]:
    """Inputs as the subgraph's rows are to see them: numbers as sizes."""
    seen = _placeholders(graph)[: len(values)]
    return [
        of(s) if isinstance(s, (torch.SymInt, torch.SymFloat, torch.SymBool)) else value
        for s, value in zip(seen, values, strict=True)
    ]


@contextmanager
def _bound(op: Builder, graph: Graph, values: Sequence[Any]) -> Iterator[None]:
    """The subgraph's number symbols stand for ``values`` while it is written, and for nothing after."""
    numbers = _numbers(graph, values)
    scope = op.scope
    kept = dict(scope.roots), dict(scope.sizes), dict(scope.shapes)

    def drop() -> None:
        for expr in [e for e in scope.roots if e.free_symbols & numbers.keys()]:
            del scope.roots[expr]
        for key in [k for k in scope.sizes if k[0].free_symbols & numbers.keys()]:
            del scope.sizes[key]
        for dims in [d for d in scope.shapes if SymSize.symbols(*d) & numbers.keys()]:
            del scope.shapes[dims]

    if not numbers:
        yield
        return
    drop()
    for symbol, value in numbers.items():
        scope.root(symbol, value, None)
    try:
        yield
    finally:
        drop()
        for now, before in zip((scope.roots, scope.sizes, scope.shapes), kept, strict=True):
            for key, value in before.items():
                now.setdefault(key, value)  # type: ignore[attr-defined]


def _condition(op: Builder, cond_fn: Graph, values: Sequence[Value], rest: Sequence[Any]) -> Value:
    with _bound(op, cond_fn, values):
        (result,) = op.inline(cond_fn, [*_seen(cond_fn, values), *rest])
        return op.reshape(op.cast(result, ir.DataType.BOOL), ())


def _root_numbers(op: Builder, results: Sequence[Value]) -> None:
    """Numbers that a loop ends with can be computed with as sizes."""
    node = op.origin.fx
    for seen, value in zip(node.meta["val"] if node is not None else (), results, strict=False):
        if isinstance(seen, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            size = of(seen)
            if isinstance(size, SymSize):
                op.scope.root(size.expr, value, None)


# ---------------------------------------------------------- wrapped subgraphs


@table.translate("higher_order::wrap_with_set_grad_enabled", complex="also")
def wrap_with_set_grad_enabled(op: Builder, enable_grad: bool, wrapped_func: Graph, *args: Any) -> Any:
    """The subgraph itself."""
    return op.inline(wrapped_func, args)


@table.translate("higher_order::invoke_subgraph", complex="also")
def invoke_subgraph(op: Builder, subgraph: Graph, identifier: str | None, *operands: Any) -> Any:
    """The subgraph itself."""
    return op.inline(subgraph, operands)


@table.translate(
    "higher_order::wrap",
    "higher_order::tag_activation_checkpoint",
    "higher_order::wrap_activation_checkpoint",
    complex="also",
)
def wrap(op: Builder, wrapped_func: Graph, *args: Any, **kwargs: Any) -> Any:
    """The subgraph itself."""
    return op.inline(wrapped_func, args)


@table.translate("higher_order::strict_mode", complex="also")
def strict_mode(op: Builder, callable: Graph, operands: Sequence[Any]) -> Any:
    """The subgraph itself."""
    return op.inline(callable, operands)


@table.translate("higher_order::hints_wrapper", complex="also")
def hints_wrapper(op: Builder, body_func: Graph, args: Sequence[Any], kwargs: Any, hints: Any = None) -> Any:
    """The subgraph itself."""
    return op.inline(body_func, args)
