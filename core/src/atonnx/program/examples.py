"""Other inputs that a captured program takes: other sizes of dynamic axes, values drawn anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import sympy
import torch
from torch.export.graph_signature import InputKind

from atonnx.build.sizes import invert
from atonnx.errors import OnnxExporterError, both
from atonnx.program.arguments import flat, with_leaves

__all__ = ["Axes", "Sizes"]

Sizes = Mapping[sympy.Symbol, int]
"""A size for each dynamic axis."""

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class Axes:
    """The dynamic axes of a captured program's inputs, with the sizes that an example has."""

    def __init__(
        self,
        captured: torch.export.ExportedProgram,
        inputs: Sequence[ir.Value],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._captured = captured
        self._arguments = tuple(args), dict(kwargs)
        placeholders = {node.name: node for node in captured.graph.nodes if node.op == "placeholder"}
        specs = [s for s in captured.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
        self._promised = [_promised(placeholders.get(getattr(spec.arg, "name", ""))) for spec in specs]
        self._leaves = flat(captured, args, kwargs)
        self.example: dict[sympy.Symbol, int] = {}
        for expr, size in self._expressions():
            solved = invert(expr, size)
            if solved is not None and solved[0] not in self.example:
                self.example[solved[0]] = int(solved[1])
        # A size that no expression gives away: of two that are only used together.
        for expr, _ in self._expressions():
            for symbol in sorted(expr.free_symbols, key=str):
                self.example.setdefault(symbol, max(2, self._bounds(symbol)[0]))
        self._axes = dict(self._named(inputs))
        plain = {name: expr for name, expr in self._axes.items() if name.isidentifier()}
        told = {symbol for expr in plain.values() for symbol in expr.free_symbols}
        self._told = {**plain, **{str(symbol): symbol for symbol in self.example if symbol not in told}}

    def _expressions(self) -> Iterator[tuple[Any, int]]:
        for promised, leaf in zip(self._promised, self._leaves, strict=False):
            if isinstance(promised, torch.Tensor) and isinstance(leaf, torch.Tensor):
                for dim, size in zip(promised.shape, leaf.shape, strict=False):
                    if isinstance(dim, torch.SymInt):
                        yield dim.node.expr, size
            elif isinstance(promised, torch.SymInt):
                yield promised.node.expr, int(leaf)

    def _named(self, inputs: Sequence[ir.Value]) -> Iterator[tuple[str, Any]]:
        """The expression of each dynamic axis under the name that the model has for it."""
        promised = [p for p in self._promised if isinstance(p, (torch.Tensor, *_SYMBOLIC))]
        for value, found in zip(inputs, promised, strict=False):
            if isinstance(found, torch.SymInt):
                yield str(value.name), found.node.expr
            elif isinstance(found, torch.Tensor):
                for dim, axis in zip(found.shape, value.shape or (), strict=False):
                    if isinstance(dim, torch.SymInt) and isinstance(axis, ir.SymbolicDim) and axis.value:
                        yield str(axis.value), dim.node.expr

    def _bounds(self, symbol: sympy.Symbol) -> tuple[int, float]:
        """Its range as the program has it."""
        found = self._captured.range_constraints.get(symbol)
        if found is None:
            return 0, float("inf")
        lower = int(found.lower) if found.lower.is_number and found.lower.is_finite is not False else 0
        upper = found.upper
        finite = upper.is_Integer if isinstance(upper, sympy.Basic) else True
        return max(lower, 0), int(upper) if finite else float("inf")

    def others(self) -> Iterator[tuple[list[Sizes], list[list[Sizes]]]]:
        """Sizes to try: larger ones, smaller ones, and 1.

        For each of these: sizes for all axes together, in the order of preference, and for each axis
        alone, where those are refused. Axes that have one size in the example may have to agree, and
        one that has the sum of two others to follow these.
        """
        for choose in (self._larger, self._smaller, self._one):
            choices = [choose(symbol, index) for index, symbol in enumerate(self.example)]
            depth = max(map(len, choices), default=0)
            apart = [
                {
                    symbol: sizes[min(rank, len(sizes) - 1)] if sizes else size
                    for (symbol, size), sizes in zip(self.example.items(), choices, strict=True)
                }
                for rank in range(depth)
            ]
            known = sorted(set(self.example.values()))
            agreeing = [sizes for size in known if (sizes := self._agreeing(choose, [size])) != self.example]
            alone = [[sizes, *self._one_by_one(sizes, apart)] for sizes in agreeing]
            together = [*apart[:1], self._agreeing(choose, known), *apart[1:]]
            if depth:
                yield together, alone if len(alone) > 1 else []

    def _agreeing(self, choose: Callable[[sympy.Symbol, int], list[int]], changing: Sequence[int]) -> Sizes:
        """Other sizes for all axes of the sizes ``changing``, the same for axes that have the same."""
        new: dict[int, int] = {}
        for index, size in enumerate(changing):
            choices = [choose(symbol, index) for symbol, known in self.example.items() if known == size]
            common = [found for found in choices[0] if all(found in other for other in choices)]
            if common:
                new[size] = common[0]
        known = sorted(set(self.example.values()))
        for total in known:
            parts = next(((a, total - a) for a in known if a < total - a and total - a in known), None)
            if parts and changing != [total]:
                new[total] = sum(new.get(part, part) for part in parts)
        return {symbol: new.get(size, size) for symbol, size in self.example.items()}

    def _one_by_one(self, sizes: Sizes, candidates: Sequence[Sizes]) -> list[Sizes]:
        """For each axis that ``sizes`` change, its own candidates with those of the others left."""
        changed = [symbol for symbol, size in sizes.items() if size != self.example[symbol]]
        return [{**self.example, symbol: found[symbol]} for symbol in changed for found in candidates]

    def _larger(self, symbol: sympy.Symbol, index: int) -> list[int]:
        size, (_, upper) = self.example[symbol], self._bounds(symbol)
        # Every axis by another amount, so that one taken for another is seen.
        wanted = (size + 1 + index, 2 * size, size + 1)
        return [new for new in dict.fromkeys(wanted) if size < new <= upper]

    def _smaller(self, symbol: sympy.Symbol, index: int) -> list[int]:
        size, (lower, _) = self.example[symbol], self._bounds(symbol)
        wanted = (size - 1 - index % 2, size // 2, size - 1)
        return [new for new in dict.fromkeys(wanted) if max(lower, 2) <= new < size]

    def _one(self, symbol: sympy.Symbol, index: int) -> list[int]:
        return [1] if self._bounds(symbol)[0] <= 1 < self.example[symbol] else []

    def named(self, sizes: Sizes) -> dict[str, int]:
        """Sizes under the model's names."""
        return {name: int(_at(expr, sizes)) for name, expr in self._told.items()}

    def of_names(self, wanted: Mapping[str, int]) -> Sizes:
        """The example's sizes with others for the axes ``wanted``.

        Raises:
            OnnxExporterError: also a ValueError, where the inputs have no such dynamic axis.
        """
        known = {**{str(symbol): symbol for symbol in self.example}, **self._axes}
        sizes = dict(self.example)
        for name, size in wanted.items():
            solved = invert(known[name], size) if name in known else None
            if solved is None or not solved[1].is_integer or int(_at(known[name], dict([solved]))) != size:
                there = ", ".join(self._told) or "none"
                raise both(OnnxExporterError, ValueError)(
                    f"the inputs have no dynamic axis {name!r} that can be {size}; there are: {there}"
                )
            sizes[solved[0]] = int(solved[1])
        return sizes

    def arguments(self, sizes: Sizes, generator: torch.Generator) -> tuple[Any, Any]:
        """Arguments of these sizes.

        Floats are drawn from the range of the example's, other numbers are the example's own, repeated:
        indices stay valid, and masks what they are.
        """
        leaves = [
            self._leaf(promised, leaf, sizes, generator)
            for promised, leaf in zip(self._promised, self._leaves, strict=True)
        ]
        return with_leaves(self._captured, *self._arguments, leaves)

    def _leaf(self, promised: Any, leaf: Any, sizes: Sizes, generator: torch.Generator) -> Any:
        if isinstance(promised, torch.SymInt):
            number = int(_at(promised.node.expr, sizes))
            return torch.tensor(number, dtype=leaf.dtype) if isinstance(leaf, torch.Tensor) else number
        if not isinstance(leaf, torch.Tensor) or not isinstance(promised, torch.Tensor):
            return leaf
        shape = [
            int(_at(dim.node.expr, sizes)) if isinstance(dim, torch.SymInt) else int(dim)
            for dim in promised.shape
        ]
        if min(shape, default=1) < 0:
            raise both(OnnxExporterError, ValueError)(f"an input would have the shape {shape}")
        return _drawn(leaf.detach(), shape, generator)


def _promised(node: torch.fx.Node | None) -> Any:
    return None if node is None else node.meta.get("val")


def _at(expr: Any, sizes: Sizes) -> Any:
    return sympy.sympify(expr).xreplace({symbol: sympy.Integer(size) for symbol, size in sizes.items()})


def _drawn(example: torch.Tensor, shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """A tensor like ``example`` of another shape."""
    if example.is_complex():
        parts = _drawn(torch.view_as_real(example.resolve_conj()), (*shape, 2), generator)
        return torch.view_as_complex(parts)
    if not example.dtype.is_floating_point:
        return _repeated(example, shape)
    wide = torch.float64 if example.dtype == torch.float64 else torch.float32
    known = example.to("cpu", wide)
    known = known[torch.isfinite(known)]
    low, high = (known.min().item(), known.max().item()) if known.numel() else (0.0, 0.0)
    draw: Callable[..., torch.Tensor] = torch.rand if low < high else torch.randn
    drawn = draw(tuple(shape), dtype=wide, generator=generator)
    if low < high:
        drawn = low + (high - low) * drawn
    return drawn.to(example.device, example.dtype)


def _repeated(example: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """The example's values, cut off or repeated along each axis."""
    if not example.numel():
        return torch.zeros(tuple(shape), dtype=example.dtype, device=example.device)
    for axis, size in enumerate(shape):
        index = torch.arange(size, device=example.device) % example.shape[axis]
        example = example.index_select(axis, index)
    return example
