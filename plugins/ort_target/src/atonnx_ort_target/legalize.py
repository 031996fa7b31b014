"""The pass that writes what ONNX Runtime has no kernel for with what it has."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import onnx_ir as ir

from atonnx.build.metadata import NAMESPACE, STACK_TRACE, source_line
from atonnx.build.splice import Draft, Splicer, bodies
from atonnx.dispatch import OpsetTable
from atonnx.errors import BuildError, OnnxExporterWarning, UnsupportedOpError
from atonnx.plugins import load
from atonnx_ort_target.gaps import Gaps, gap_table
from atonnx_ort_target.rows import find
from atonnx_ort_target.widening import HALVES, widened, widenings

__all__ = ["Legalize"]

_DEEPEST = 6  # rows that use operators with a gap in turn: Gelu, Erf, Clip
_NAMED = 5  # nodes that a warning names

Case = tuple[str, tuple[tuple[str, ir.DataType], ...]]


class Legalize(ir.passes.InPlacePass):
    """Write what has no kernel in wider dtypes, or with other operators; warn of what is left.

    ``halves``: those of float16, bfloat16 and float8 too.
    """

    def __init__(self, *, halves: bool) -> None:
        super().__init__()
        self._halves = halves
        self._table = gap_table()

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Go through all graphs once."""
        kept: list[tuple[ir.Node, Case]] = []
        modified = False
        splicer: Splicer | None = None
        for graph, opset, in_function in _graphs(model):
            for node in tuple(graph):
                found = self._gap(node, opset)
                if found is None:
                    continue
                splicer = splicer or Splicer(model, _opset_rows())
                draft = self._draft(splicer, node, opset, in_function, *found, ())
                if draft is None:
                    kept.append((node, _case(node, found[1])))
                else:
                    splicer.put(draft, in_function=in_function)
                    modified = True
        if kept:
            self._warn(kept)
        return ir.passes.PassResult(model, modified)

    def _gap(self, node: ir.Node, opset: int) -> tuple[Gaps, dict[str, ir.DataType]] | None:
        if node.domain:
            return None
        gaps = self._table.of(node.op_type, opset, node.attributes)
        if gaps is None or not any(
            value is not None and value.dtype in gaps.dtypes
            for values in (node.inputs, node.outputs)
            for value in values
        ):
            return None
        dtypes = gaps.bound(node)
        if not gaps.lacks(dtypes) or (not self._halves and not HALVES.isdisjoint(dtypes.values())):
            return None
        return gaps, dtypes

    def _draft(
        self,
        splicer: Splicer,
        node: ir.Node,
        opset: int,
        in_function: bool,
        gaps: Gaps,
        dtypes: dict[str, ir.DataType],
        above: tuple[Case, ...],
    ) -> Draft | None:
        """Nodes for the place of ``node``, all with a kernel; None where there is no way."""
        case = _case(node, dtypes)
        if case in above or len(above) == _DEEPEST or any(attr.is_ref() for attr in node.attributes.values()):
            return None
        for write, version in self._ways(gaps, node, dtypes, opset):
            try:
                draft = splicer.draft(node, write, opset, in_function=in_function, version=version)
            except (BuildError, UnsupportedOpError):
                continue
            if draft is not None and self._settle(splicer, draft.graph, opset, in_function, (*above, case)):
                return draft
        return None

    def _settle(
        self, splicer: Splicer, graph: ir.Graph, opset: int, in_function: bool, above: tuple[Case, ...]
    ) -> bool:
        """Replace what has no kernel in a draft; False where that cannot be."""
        for node in tuple(graph):
            if not all(self._settle(splicer, body, opset, in_function, above) for body in bodies(node)):
                return False
            found = self._gap(node, opset)
            if found is not None:
                draft = self._draft(splicer, node, opset, in_function, *found, above)
                if draft is None:
                    return False
                splicer.put(draft, nested=True)
        return True

    def _ways(
        self, gaps: Gaps, node: ir.Node, dtypes: dict[str, ir.DataType], opset: int
    ) -> Iterator[tuple[Callable[..., Any], int | None]]:
        """What may write the node, each with the opset whose operators it writes with."""
        attrs = {name: attr.value for name, attr in node.attributes.items()}
        for wide in widenings(gaps, node, dtypes, halves=self._halves):
            yield widened(gaps, node, wide), opset
        row = find(node.op_type, dtypes)
        if row is not None:
            yield functools.partial(_call, row, attrs, len(node.outputs)), None
        # The operator as an older opset, which did not have it, has it.
        older = _opset_rows().below(node.op_type, "", gaps.spec.since)
        if older is not None and older.fn is not None:
            yield functools.partial(_call, older.fn, attrs, len(node.outputs)), None

    def _warn(self, kept: list[tuple[ir.Node, Case]]) -> None:
        lines: dict[str, str] = {}
        for node, (op_type, dtypes) in kept:
            text = f"{op_type} of {', '.join(dict.fromkeys(dtype.name.lower() for _, dtype in dtypes))}"
            lines.setdefault(text, _origin(node))
        named = [f"  {text}{where}" for text, where in list(lines.items())[:_NAMED]]
        if len(lines) > _NAMED:
            named.append(f"  and {len(lines) - _NAMED} more")
        warnings.warn(
            f"ONNX Runtime {self._table.version} has no CPU kernel for these, and they cannot be written "
            "without; they are kept:\n" + "\n".join(named) + "\nAnother dtype, such as float32, or an older "
            'opset may have one; target="portable" is for runtimes that have them.',
            OnnxExporterWarning,
            stacklevel=2,
        )


def _origin(node: ir.Node) -> str:
    """Operator and line of the user's model that a node stands for."""
    target = node.metadata_props.get(NAMESPACE, "").rpartition(": ")[2]
    line = source_line(node.metadata_props.get(STACK_TRACE, ""))
    return "".join((f", for {target}" if target else "", f", at {line}" if line else ""))


def _call(fn: Callable[..., Any], attrs: dict[str, Any], outputs: int, op: Any, *inputs: Any) -> Any:
    op.asked_outputs = outputs
    return fn(op, *inputs, **attrs)


def _case(node: ir.Node, dtypes: dict[str, ir.DataType]) -> Case:
    return node.op_type, tuple(dtypes.items())


@functools.cache
def _opset_rows() -> OpsetTable:
    return OpsetTable(load().opset_rows())


def _graphs(model: ir.Model) -> Iterator[tuple[ir.Graph, int, bool]]:
    """All graphs, bodies too: the graph, its opset, whether it belongs to a function."""
    for top, in_function in [(model.graph, False), *((f.graph, True) for f in model.functions.values())]:
        opset = (top.opset_imports or model.opset_imports).get("", 1)
        waiting = [top]
        while waiting:
            graph = waiting.pop()
            yield graph, opset, in_function
            waiting += [body for node in graph if node.attributes for body in bodies(node)]
