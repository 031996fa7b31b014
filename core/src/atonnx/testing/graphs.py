"""A captured program of one operator call, made from fake tensors, without torch.export."""

from __future__ import annotations

import contextlib
import operator
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree

from atonnx.build.source import InputSpec, OutputSpec, Source
from atonnx.plugins import load
from atonnx.testing import _torch
from atonnx.testing.arguments import Size, Weight, tensors_of

__all__ = ["OneCall", "capture_call", "fits"]

Axes = tuple[tuple[int, ...], ...]  # of each tensor, the axes that are dynamic


@dataclass(slots=True)
class OneCall:
    """A program that calls one operator.

    ``dynamic`` are the axes of each input that have symbolic sizes, ``symbols`` says which axis has
    which, and ``conditions`` must hold of them.
    """

    source: Source
    dynamic: Axes
    ranges: dict[Any, Any] = field(default_factory=dict)
    symbols: dict[Any, tuple[int, int]] = field(default_factory=dict)
    conditions: list[Any] = field(default_factory=list)


class _Frozen(Exception):
    """The operator holds some sizes to be one number."""

    def __init__(self, symbols: set[Any], dynamic: Axes) -> None:
        super().__init__()
        self.symbols = symbols
        self.dynamic = dynamic


# torch's own tracing divides by the example's sizes, so an empty dim is traced with another size.
_IN_PLACE_OF_ZERO = 7

_LEARNT: dict[Any, Axes] = {}  # which axes can be dynamic, by what decides it
_RECENT: OrderedDict[Any, OneCall] = OrderedDict()  # the same calls are often checked at several opsets
_MOST_RECENT = 64


def capture_call(
    target: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    dynamic: bool = True,
    outputs: Sequence[int] | None = None,
    expected: Sequence[torch.Tensor] | None = None,
) -> OneCall:
    """The program of ``target(*args, **kwargs)``, as torch.export would capture it.

    Every dim of every input is symbolic, but for those that the operator's own rules freeze. A trace
    whose sizes are not those of the results ``expected`` is not taken.
    """
    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    tensors = tensors_of(leaves)
    none: Axes = tuple(() for _ in tensors)
    asked: Axes = tuple(tuple(range(t.dim())) for t in tensors) if dynamic else none
    key = _key(target, leaves, spec)
    recent = (key, dynamic, None if outputs is None else tuple(outputs))
    reusable = not any(isinstance(leaf, (Size, Weight)) for leaf in leaves)
    if reusable and recent in _RECENT:
        _RECENT.move_to_end(recent)
        return _RECENT[recent]
    known = _LEARNT.get(key) if dynamic else asked
    tries = [known] if known is not None else []
    tries += [asked, *_fewer(tensors, asked), none]
    error: Exception | None = None
    position = 0
    seen: set[Axes] = set()
    while position < len(tries):
        axes = tries[position]
        position += 1
        if axes in seen:
            continue
        seen.add(axes)
        empty = any(t.shape[axis] == 0 for t, kept in zip(tensors, axes, strict=True) for axis in kept)
        made: OneCall | None = None
        for zero in (_IN_PLACE_OF_ZERO, 0) if empty else (0,):
            try:
                made = _capture(target, leaves, spec, tensors, axes, outputs, zero)
            except _Frozen as frozen:
                tries.insert(position, frozen.dynamic)
                continue
            except Exception as failure:  # fake kernels fail in any way where they meet a symbol
                error = failure
                continue
            wrong = "" if expected is None or not any(axes) else _wrong_sizes(made, tensors, expected)
            if not wrong:
                break
            error = ValueError(f"{target}: its fake kernel gives a result {wrong}")
            made = None
        if made is None:
            continue
        call = made
        if dynamic:
            _LEARNT[key] = axes
        if reusable:
            _RECENT[recent] = call
            if len(_RECENT) > _MOST_RECENT:
                _RECENT.popitem(last=False)
        return call
    raise error if error is not None else RuntimeError(f"{target} has no fake kernel")


def fits(call: OneCall, first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> bool:
    """Whether a program captured with the inputs ``first`` is for ``second`` too."""
    if len(first) != len(second):
        return False
    for axes, a, b in zip(call.dynamic, first, second, strict=True):
        if a.dtype != b.dtype or a.dim() != b.dim():
            return False
        if any(a.shape[i] != b.shape[i] for i in range(a.dim()) if i not in axes):
            return False
    sizes = {s: second[index].shape[axis] for s, (index, axis) in call.symbols.items()}
    return all(_holds(condition, sizes) for condition in call.conditions)


def _wrong_sizes(call: OneCall, tensors: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> str:
    """A result whose sizes, for the given inputs, are not the expected ones."""
    output = next(node for node in call.source.graph_module.graph.nodes if node.op == "output")
    sizes = {s: tensors[index].shape[axis] for s, (index, axis) in call.symbols.items()}
    for node, want in zip(output.args[0], expected, strict=False):
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor):
            continue
        if value.dim() + value.is_complex() != want.dim():
            return f"of rank {value.dim()} where eager torch has {want.dim() - value.is_complex()}"
        for size, number in zip(value.shape, want.shape, strict=False):
            expr = _torch.value_of(size)
            if not isinstance(expr, int) and not expr.free_symbols <= set(sizes):
                continue
            known = expr if isinstance(expr, int) else int(expr.subs(sizes))
            if known != number:
                return f"of size {size} where eager torch has {number}"
    return ""


def _fewer(tensors: Sequence[torch.Tensor], asked: Axes) -> list[Axes]:
    """Ways to leave axes out: those of size 1 (they broadcast), then all of one tensor."""
    without_ones = tuple(
        tuple(axis for axis in axes if t.shape[axis] != 1) for t, axes in zip(tensors, asked, strict=True)
    )
    found = [without_ones]
    for axes in (asked, without_ones):
        if len(tensors) > 1:
            for index in reversed(range(len(tensors))):
                found.append(tuple(() if i == index else kept for i, kept in enumerate(axes)))
    return found


def _key(target: Any, leaves: Sequence[Any], spec: Any) -> Any:
    parts: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            same = next(i for i, other in enumerate(leaves) if other is leaf)
            parts.append((leaf.dtype, tuple(leaf.shape), leaf.stride(), leaf.storage_offset(), same))
        elif isinstance(leaf, Weight):
            parts.append((leaf.kind, leaf.tensor.dtype, tuple(leaf.tensor.shape)))
        else:
            parts.append((type(leaf).__name__, repr(leaf)))
    return (target, spec, tuple(parts))


def _called(target: Any, args: Any, kwargs: Any, mode: Any) -> Any:
    """The call; with the plugins' capture patches where they keep whole what fails in its parts."""
    try:
        return target(*args, **kwargs)
    except _torch.DataDependent:
        _torch.forget_pending(mode)
        with contextlib.ExitStack() as stack:
            for _, patch in load().capture_patches():
                stack.enter_context(patch)
            return target(*args, **kwargs)


def _capture(
    target: Any,
    leaves: list[Any],
    spec: Any,
    tensors: list[torch.Tensor],
    dynamic: Axes,
    outputs: Sequence[int] | None,
    zero: int,
) -> OneCall:
    mode = _torch.fake_mode()
    graph = torch.fx.Graph()
    names = iter(_names(target, leaves, spec))
    nodes: dict[int, torch.fx.Node] = {}
    inputs: list[InputSpec] = []
    symbols: dict[Any, tuple[int, int]] = {}
    index_of = {id(t): i for i, t in enumerate(tensors)}

    def add_input(tensor: torch.Tensor, name: str) -> None:
        index = index_of[id(tensor)]
        node = nodes[id(tensor)] = graph.placeholder(name)
        inputs.append(InputSpec("USER_INPUT", node.name))
        shown = _without_zeros(tensor, dynamic[index], zero)
        fake = node.meta["val"] = _torch.fake_tensor(mode, shown, node.name, dynamic[index])
        for axis in dynamic[index]:
            symbols[_torch.value_of(fake.shape[axis])] = (index, axis)

    for leaf in leaves:
        if not isinstance(leaf, (torch.Tensor, Weight)):
            continue
        name = next(names)
        if id(leaf) in nodes:
            continue
        if isinstance(leaf, Weight):
            node = nodes[id(leaf)] = graph.placeholder(name)
            kind, data = leaf.kind, leaf.tensor
            inputs.append(InputSpec(kind, node.name, node.name, kind == "BUFFER" or None, data))
            node.meta["val"] = _torch.fake_tensor(mode, data, node.name, ())
        else:
            add_input(leaf, name)
    for index, tensor in enumerate(tensors):
        if id(tensor) not in nodes:
            add_input(tensor, f"like_{index}")
    given = [_given(graph, nodes, leaf) for leaf in leaves]
    node_args, node_kwargs = pytree.tree_unflatten(given, spec)
    fakes = [g.meta["val"] if isinstance(g, torch.fx.Node) else g for g in given]
    fake_args, fake_kwargs = pytree.tree_unflatten(fakes, spec)
    with _torch.tracing(mode):
        value = _called(target, fake_args, fake_kwargs, mode)
    bindings = _torch.unbacked_bindings(mode, value)
    frozen = _torch.frozen_symbols(mode) & set(symbols)
    if frozen:
        gone = {symbols[s] for s in frozen}
        left = tuple(tuple(axis for axis in axes if (i, axis) not in gone) for i, axes in enumerate(dynamic))
        raise _Frozen(frozen, left)
    conditions = _torch.conditions(mode)
    sizes = {s: tensors[index].shape[axis] for s, (index, axis) in symbols.items()}
    for condition in conditions:
        if not _holds(condition, sizes):
            # Two dims of sizes 1 and 5 are taken for equal where sizes are symbols.
            raise ValueError(f"{target}: {condition} is not so for the given sizes")
    env: Any = mode.shape_env
    for symbol, size in sizes.items():
        if size not in env.var_to_range[symbol]:
            raise ValueError(f"{target}: a size {size} is not in {env.var_to_range[symbol]}")
    call = graph.call_function(target, tuple(node_args), dict(node_kwargs))
    call.meta["val"] = value
    if bindings:
        call.meta["unbacked_bindings"] = bindings
    results = _results(graph, call, value, outputs)
    graph.output(tuple(results))
    source = Source(
        torch.fx.GraphModule({}, graph),
        inputs,
        [OutputSpec("USER_OUTPUT") for _ in results],
        dict(env.var_to_range),
    )
    return OneCall(source, dynamic, dict(env.var_to_range), symbols, conditions)


def _holds(condition: Any, sizes: Mapping[Any, int]) -> bool:
    """Whether a condition on sizes is met; one on other symbols is left to run time."""
    if isinstance(condition, bool):
        return condition
    return not condition.free_symbols <= set(sizes) or bool(condition.subs(sizes))


def _without_zeros(tensor: torch.Tensor, axes: Sequence[int], size: int) -> torch.Tensor:
    """A tensor like it, with another size than 0 along ``axes``."""
    if not size or all(tensor.shape[axis] for axis in axes):
        return tensor
    return tensor.new_empty([size if i in axes and n == 0 else n for i, n in enumerate(tensor.shape)])


def _given(graph: torch.fx.Graph, nodes: Mapping[int, torch.fx.Node], leaf: Any) -> Any:
    """What stands for a leaf in the graph."""
    if isinstance(leaf, (torch.Tensor, Weight)):
        return nodes[id(leaf)]
    if not isinstance(leaf, Size):
        return leaf
    if leaf.function is None:
        tensor, axis = leaf.operands
        node = graph.call_function(torch.ops.aten.sym_size.int, (nodes[id(tensor)], axis))
        node.meta["val"] = nodes[id(tensor)].meta["val"].shape[axis]
        return node if isinstance(node.meta["val"], torch.SymInt) else int(leaf)
    operands = [_given(graph, nodes, operand) for operand in leaf.operands]
    values = [o.meta["val"] if isinstance(o, torch.fx.Node) else o for o in operands]
    value = leaf.function(*values)
    if not isinstance(value, torch.SymInt):
        return int(value)
    node = graph.call_function(leaf.function, tuple(operands))
    node.meta["val"] = value
    return node


def _results(
    graph: torch.fx.Graph, call: torch.fx.Node, value: Any, outputs: Sequence[int] | None
) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        return [call]
    found = []
    for index, item in enumerate(value):
        if item is None or (outputs is not None and index not in outputs):
            continue
        node = graph.call_function(operator.getitem, (call, index))
        node.meta["val"] = item
        found.append(node)
    return found


def _names(target: Any, leaves: Sequence[Any], spec: Any) -> list[str]:
    """Names for the tensors among the leaves: those of the schema's arguments."""
    marks = pytree.tree_unflatten(list(range(len(leaves))), spec)
    schema = getattr(target, "_schema", None)
    names: dict[int, str] = {}
    args, kwargs = marks
    for position, part in enumerate(args):
        base = schema.arguments[position].name if schema is not None else f"arg{position}"
        places = pytree.tree_leaves(part)
        for number, place in enumerate(places):
            names[place] = base if not isinstance(part, (list, tuple)) else f"{base}_{number}"
    for base, part in kwargs.items():
        for place in pytree.tree_leaves(part):
            names[place] = base
    return [
        re.sub(r"\W", "_", names[i]) if names[i] != "self" else "input"
        for i, leaf in enumerate(leaves)
        if isinstance(leaf, (torch.Tensor, Weight))
    ]
