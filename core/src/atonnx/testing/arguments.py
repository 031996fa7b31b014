"""Arguments of an operator under test that are more than a value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

__all__ = ["Size", "Weight", "eager_value", "tensors_of"]


class Size:
    """A size of a tensor, symbolic where that dim is: ``Size(x, 0)``, ``Size(x, -1) * 2 + 1``.

    Eager torch gets the number, the translation gets the expression. A tensor that is not among the
    arguments becomes an input of the model too: ``check_op(aten.ones.default, [Size(x, 0), 3])``.
    """

    __slots__ = ("function", "operands")

    def __init__(self, tensor: torch.Tensor, axis: int) -> None:
        self.function: Callable[..., Any] | None = None
        self.operands: tuple[Any, ...] = (tensor, axis % tensor.dim())

    @classmethod
    def _of(cls, function: Callable[..., Any], *operands: Any) -> Size:
        made = cls.__new__(cls)
        made.function = function
        made.operands = operands
        return made

    def __add__(self, other: Size | int) -> Size:
        return Size._of(operator.add, self, other)

    def __radd__(self, other: int) -> Size:
        return Size._of(operator.add, other, self)

    def __sub__(self, other: Size | int) -> Size:
        return Size._of(operator.sub, self, other)

    def __rsub__(self, other: int) -> Size:
        return Size._of(operator.sub, other, self)

    def __mul__(self, other: Size | int) -> Size:
        return Size._of(operator.mul, self, other)

    def __rmul__(self, other: int) -> Size:
        return Size._of(operator.mul, other, self)

    def __floordiv__(self, other: Size | int) -> Size:
        return Size._of(operator.floordiv, self, other)

    def __neg__(self) -> Size:
        return Size._of(operator.neg, self)

    def tensors(self) -> list[torch.Tensor]:
        """The tensors whose sizes it is made of."""
        if self.function is None:
            return [self.operands[0]]
        return [t for operand in self.operands if isinstance(operand, Size) for t in operand.tensors()]

    def __int__(self) -> int:
        if self.function is None:
            tensor, axis = self.operands
            return int(tensor.shape[axis])
        return int(self.function(*(int(operand) for operand in self.operands)))

    def __repr__(self) -> str:
        return f"Size({int(self)})"


@dataclass(frozen=True, eq=False)
class Weight:
    """A tensor argument that the model owns: a parameter or buffer, or a constant in its code.

    Its sizes are static.
    """

    tensor: torch.Tensor
    kind: Literal["PARAMETER", "BUFFER", "CONSTANT_TENSOR"] = "PARAMETER"


def eager_value(leaf: Any) -> Any:
    """What eager torch gets for a leaf of the arguments."""
    if isinstance(leaf, Weight):
        return leaf.tensor
    return int(leaf) if isinstance(leaf, Size) else leaf


def tensors_of(leaves: list[Any]) -> list[torch.Tensor]:
    """The different tensors that are inputs of the model: those among the leaves, then those of sizes."""
    found = {id(leaf): leaf for leaf in leaves if isinstance(leaf, torch.Tensor)}
    for leaf in leaves:
        if isinstance(leaf, Size):
            found.update({id(tensor): tensor for tensor in leaf.tensors()})
    return list(found.values())
