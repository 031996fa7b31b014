"""A node as predicates and folding see it: arguments by name, with the schema's defaults."""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build._torch import OpOverload
from atonnx.build.sizes import of

__all__ = ["FxNodeView", "tensor_values"]


class FxNodeView:
    """View of an FX node for ``when`` predicates.

    ``arg(name)``: what torch recorded: numbers, lists; a FakeTensor (or a size) where the argument
    is a node's result. ``value``: the same for the node's own result.
    """

    __slots__ = ("node",)

    def __init__(self, node: torch.fx.Node) -> None:
        self.node = node

    @property
    def value(self) -> Any:
        """``meta["val"]`` of the node."""
        return self.node.meta.get("val")

    def arg(self, name: str) -> Any:
        """The argument ``name`` of the schema, its default if the call leaves it out.

        Raises:
            KeyError: the schema has no such argument.
        """
        target = self.node.target
        if not isinstance(target, OpOverload):
            raise KeyError(name)
        for index, argument in enumerate(target._schema.arguments):
            if argument.name == name:
                if index < len(self.node.args) and not argument.kwarg_only:
                    return _shown(self.node.args[index])
                if name in self.node.kwargs:
                    return _shown(self.node.kwargs[name])
                return argument.default_value
        raise KeyError(name)


def _shown(arg: Any) -> Any:
    if isinstance(arg, torch.fx.Node):
        value = arg.meta.get("val")
        return of(value) if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) else value
    if isinstance(arg, (list, tuple)):
        return tuple(_shown(item) for item in arg)
    return arg


def tensor_values(tree: Any) -> list[torch.Tensor]:
    """The tensors among the values of nodes in an argument tree, or in ``meta["val"]``."""
    if isinstance(tree, torch.fx.Node):
        return tensor_values(tree.meta.get("val"))
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, (list, tuple)):
        return [t for item in tree for t in tensor_values(item)]
    if isinstance(tree, dict):
        return [t for item in tree.values() for t in tensor_values(item)]
    return []
