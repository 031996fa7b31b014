"""What each ONNX node tells of where it comes from (promises M1-M8).

The strings are made once per FX node and stamped on every ONNX node as it is made.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir
import torch

__all__ = [
    "KEYS",
    "METADATA",
    "NAMESPACE",
    "STACK_TRACE",
    "Origin",
    "complete_metadata",
    "fx_metadata",
    "reduce_metadata",
    "source_line",
    "target_text",
    "user_source",
]

NAMESPACE = "namespace"
CLASS_HIERARCHY = "pkg.torch.onnx.class_hierarchy"
FX_NODE = "pkg.torch.onnx.fx_node"
NAME_SCOPES = "pkg.torch.onnx.name_scopes"
STACK_TRACE = "pkg.torch.onnx.stack_trace"
PLUGIN = "pkg.atonnx.plugin"
TRANSLATION = "pkg.atonnx.translation"
KEYS = (NAMESPACE, CLASS_HIERARCHY, FX_NODE, NAME_SCOPES, STACK_TRACE)
METADATA = ("full", "compact", "none")

_TORCH = os.path.dirname(torch.__file__) + os.sep
_MACHINERY = f'"{_TORCH}_'  # torch's private packages
# From a root, two folders deep at least: a single slash also stands in namespaces.
_PATH = re.compile(r"""(?<![\w.\])>])(?:/[^\s'"(),:/\\]+){2,}|\b[A-Za-z]:[\\/][^\s'"(),]+""")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)')


@dataclass(slots=True)
class Origin:
    """Which FX node is being translated, by which row.

    ``outs`` are its promised results, ``env`` what the nodes of its graph have become so far.
    """

    op: str = ""
    fx: torch.fx.Node | None = None
    plugin: str = ""
    outs: tuple[Any, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    env: Mapping[torch.fx.Node, Any] = field(default_factory=dict)

    def where(self) -> dict[str, str]:
        """Fields for an error: op, node, source, plugin."""
        return {
            "op": self.op,
            "node": self.fx.name if self.fx is not None else "",
            "source": user_source(self.fx) if self.fx is not None else "",
            "plugin": self.plugin,
        }


def target_text(target: Any) -> str:
    """``aten.add.Tensor`` for an overload; a Python function's qualified name, without its address."""
    if inspect.isfunction(target):
        return f"{target.__module__}.{target.__qualname__}"
    return str(target)


def user_source(node: torch.fx.Node) -> str:
    """``file:line, in function`` of the innermost frame that is the user's; empty when unknown."""
    return source_line(node.meta.get("stack_trace") or "")


def source_line(trace: str) -> str:
    """The same of a stack trace."""
    frames = _FRAME.findall(trace)
    if not frames:
        return ""
    file, line, name = next((f for f in reversed(frames) if not f[0].startswith(_TORCH)), frames[-1])
    return f"{file}:{line}, in {name}"


def stack_trace(node: torch.fx.Node) -> str:
    """The recorded stack trace without torch's own machinery, which strict capture puts in it."""
    text: str = node.meta.get("stack_trace") or ""
    if _MACHINERY not in text:
        return text
    frames: list[list[str]] = []
    for line in text.splitlines():
        if line.lstrip().startswith('File "') or not frames:
            frames.append([])
        frames[-1].append(line)
    return "\n".join(line for frame in frames if _MACHINERY not in frame[0] for line in frame)


def fx_metadata(node: torch.fx.Node, outer: Mapping[str, str] | None = None) -> dict[str, str]:
    """The five keys of an FX node; ``outer`` are those of the node whose body it is in."""
    target = target_text(node.target)
    scopes: list[str] = []
    classes: list[str] = []
    for path, kind in (node.meta.get("nn_module_stack") or {}).values():
        scopes.append(path)
        classes.append(kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}")
    if not scopes and outer and outer.get(NAMESPACE):
        namespace = f"{outer[NAMESPACE]}/{node.name}: {target}"
        hierarchy = f"{outer[CLASS_HIERARCHY][:-1]}, {target!r}]"
        names = f"{outer[NAME_SCOPES][:-1]}, {node.name!r}]"
    else:
        parts = [f"{scope}: {kind}" for scope, kind in zip(scopes, classes, strict=True)]
        namespace = "/".join([*parts, f"{node.name}: {target}"])
        hierarchy = repr([*classes, target])
        names = repr([*scopes, node.name])
    return {
        NAMESPACE: namespace,
        CLASS_HIERARCHY: hierarchy,
        FX_NODE: node.format_node() or "",
        NAME_SCOPES: names,
        STACK_TRACE: stack_trace(node),
    }


def complete_metadata(model: ir.Model) -> None:
    """Give every node all keys: a node that a pass made has those of its neighbours.

    These are what makes its inputs, else its users; a node that has neither names itself.
    """
    for graph in _graphs(model):
        nodes = list(ir.traversal.RecursiveGraphIterator(graph))
        for ordered in (nodes, reversed(nodes)):
            for node in ordered:
                if NAMESPACE not in node.metadata_props:
                    _inherit(node)
        for node in nodes:
            if NAMESPACE not in node.metadata_props:
                name = node.outputs[0].name if node.outputs else node.name
                own = {
                    NAMESPACE: f"{name}: {node.op_type}",
                    CLASS_HIERARCHY: repr([node.op_type]),
                    NAME_SCOPES: repr([name]),
                }
                node.metadata_props.update(own)
            for key in (*KEYS, PLUGIN, TRANSLATION):
                node.metadata_props.setdefault(key, "")


def _graphs(model: ir.Model) -> list[ir.Graph | ir.Function]:
    return [model.graph, *model.functions.values()]


def _inherit(node: ir.Node) -> None:
    for source in _neighbours(node):
        if NAMESPACE in source.metadata_props:
            for key, text in source.metadata_props.items():
                node.metadata_props.setdefault(key, text)
            return


def _neighbours(node: ir.Node) -> Iterator[ir.Node]:
    for value in node.inputs:
        producer = None if value is None else value.producer()
        if producer is not None:
            yield producer
    for output in node.outputs:
        yield from output.consumers()


def reduce_metadata(model: ir.Model, extent: str) -> None:
    """Leave out what ``extent`` does not have.

    ``"compact"`` has no stack traces and no paths of the machine, ``"none"`` nothing on nodes.
    """
    if extent == "full":
        return
    for graph in _graphs(model):
        for node in ir.traversal.RecursiveGraphIterator(graph):
            props = node.metadata_props
            if extent == "none":
                props.clear()
                continue
            props.pop(STACK_TRACE, None)
            for key, text in props.items():
                if "/" in text or "\\" in text:
                    props[key] = _PATH.sub("<path>", text)
