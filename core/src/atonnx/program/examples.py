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

    def others(self) -> list[list[Sizes]]:
        """Groups of sizes to try, each in the order of preference: larger ones, smaller ones, all 1."""
        groups = []
        for candidates in (self._larger, self._smaller):
            choices = {symbol: candidates(symbol, i) for i, symbol in enumerate(self.example)}
            depth = max(map(len, choices.values()), default=0)
            groups.append([self._chosen(choices, rank) for rank in range(depth) if any(choices.values())])
        ones = {s: 1 for s, size in self.example.items() if self._bounds(s)[0] <= 1 and size != 1}
        groups.append([{**self.example, **ones}] if ones else [])
        return [group for group in groups if group]

    def _chosen(self, choices: Mapping[sympy.Symbol, Sequence[int]], rank: int) -> Sizes:
        return {
            symbol: sizes[min(rank, len(sizes) - 1)] if sizes else self.example[symbol]
            for symbol, sizes in choices.items()
        }

    def _larger(self, symbol: sympy.Symbol, index: int) -> list[int]:
        size, (_, upper) = self.example[symbol], self._bounds(symbol)
        # Every axis by another amount, so that one taken for another is seen.
        wanted = (size + 1 + index, 2 * size, size + 1)
        return [new for new in dict.fromkeys(wanted) if size < new <= upper]

    def _smaller(self, symbol: sympy.Symbol, index: int) -> list[int]:
        size, (lower, _) = self.example[symbol], self._bounds(symbol)
        wanted = (size - 1 - index % 2, size // 2, size - 1)
        return [new for new in dict.fromkeys(wanted) if max(lower, 2) <= new < size]

    def alone(self, group: Sequence[Sizes]) -> list[list[Sizes]]:
        """For each axis of a group, its sizes with those of the other axes left as they are."""
        changed = [symbol for symbol, size in group[0].items() if size != self.example[symbol]]
        if len(changed) < 2:
            return []
        return [[{**self.example, symbol: sizes[symbol]} for sizes in group] for symbol in changed]

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
