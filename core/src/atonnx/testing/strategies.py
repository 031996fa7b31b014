"""Hypothesis strategies for operators' arguments: opsets, dtypes, shapes, tensors.

Importing this module loads a profile of :mod:`atonnx.testing.profiles`, unless another one is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from hypothesis import strategies as st

from atonnx.build.scope import NEWEST_OPSET
from atonnx.dispatch import DEFAULT_OPSET, MIN_OPSET
from atonnx.testing.profiles import load_profile

__all__ = [
    "DTYPES",
    "broadcastable",
    "dim_lists",
    "dims",
    "dtypes",
    "make_tensor",
    "opsets",
    "shapes",
    "tensor",
    "tensors",
]

Shape = tuple[int, ...]

DTYPES: dict[str, tuple[torch.dtype, ...]] = {
    "float": (torch.float32, torch.float64, torch.float16, torch.bfloat16),
    "wide": (torch.float32, torch.float64),
    "half": (torch.float16, torch.bfloat16),
    "int": (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    "signed": (torch.int64, torch.int32, torch.int16, torch.int8),
    "index": (torch.int64, torch.int32),
    "bool": (torch.bool,),
    "complex": (torch.complex64, torch.complex128),
}
DTYPES["number"] = (*DTYPES["float"], *DTYPES["int"])
DTYPES["all"] = (*DTYPES["number"], torch.bool)
"""The groups of dtypes that ``dtypes`` knows, the simplest of each first."""

# Where many operators changed; the rest come less often.
_MAIN_OPSETS = (DEFAULT_OPSET, 11, 13, 17, 18, 21, 23, NEWEST_OPSET)


def opsets(low: int = MIN_OPSET, high: int = NEWEST_OPSET) -> st.SearchStrategy[int]:
    """Opsets from ``low`` to ``high``: mostly those where many operators changed."""
    main = [opset for opset in _MAIN_OPSETS if low <= opset <= high]
    main += [opset for opset in (low, high) if opset not in main]
    rest = [opset for opset in range(low, high + 1) if opset not in main]
    return st.sampled_from([*main, *main, *rest])


def dtypes(*groups: str | torch.dtype) -> st.SearchStrategy[torch.dtype]:
    """Dtypes of groups ("float", "int", "bool", "number", "all", ...) and single ones."""
    found: dict[torch.dtype, None] = {}
    for group in groups:
        found.update(dict.fromkeys(DTYPES[group] if isinstance(group, str) else (group,)))
    return st.sampled_from(list(found))


def shapes(
    min_rank: int = 0, max_rank: int = 4, min_side: int = 0, max_side: int = 5
) -> st.SearchStrategy[Shape]:
    """Shapes; sizes 0 and 1 among them."""
    return st.lists(_sides(min_side, max_side), min_size=min_rank, max_size=max_rank).map(tuple)


def _sides(low: int, high: int) -> st.SearchStrategy[int]:
    ordinary = [size for size in (2, 3, 1) if low <= size <= high]
    return st.sampled_from([*ordinary, *range(low, high + 1)])


def broadcastable(
    n: int, min_rank: int = 0, max_rank: int = 4, min_side: int = 0, max_side: int = 5
) -> st.SearchStrategy[tuple[Shape, ...]]:
    """``n`` shapes that broadcast together; most are equal."""

    @st.composite
    def draw_shapes(draw: st.DrawFn) -> tuple[Shape, ...]:
        full = draw(shapes(min_rank, max_rank, min_side, max_side))
        found = []
        for _ in range(n):
            kind = draw(st.sampled_from(["same", "same", "ones", "short"]))
            shape = full
            if kind == "ones":
                kept = draw(st.lists(st.booleans(), min_size=len(full), max_size=len(full)))
                shape = tuple(size if keep else 1 for size, keep in zip(full, kept, strict=True))
            elif kind == "short":
                shape = full[draw(st.integers(0, max(len(full) - min_rank, 0))) :]
            found.append(shape)
        return tuple(found)

    return draw_shapes()


def dims(rank: int) -> st.SearchStrategy[int]:
    """A ``dim`` of a tensor of that rank, negative ones among them."""
    return st.integers(0, max(rank, 1) - 1) | st.integers(-max(rank, 1), -1)


def dim_lists(rank: int, min_size: int = 0, max_size: int | None = None) -> st.SearchStrategy[list[int]]:
    """Different dims of a tensor of that rank, in any order, negative ones among them."""
    if rank == 0:
        return st.just([])
    highest = rank if max_size is None else min(max_size, rank)
    unique = st.lists(st.integers(0, rank - 1), min_size=min_size, max_size=highest, unique=True)
    return st.tuples(unique, st.lists(st.booleans(), min_size=rank, max_size=rank)).map(
        lambda pair: [dim - rank if flip else dim for dim, flip in zip(*pair, strict=False)]
    )


def make_tensor(
    dtype: torch.dtype,
    shape: Sequence[int],
    seed: int = 0,
    *,
    low: float | None = None,
    high: float | None = None,
) -> torch.Tensor:
    """A tensor of ordinary values; integers are small.

    ``low`` and ``high`` bound the values, ``high`` included for integers.
    """
    generator = torch.Generator().manual_seed(seed)
    size = tuple(shape)
    if dtype == torch.bool:
        return torch.randint(0, 2, size, generator=generator).bool()
    if dtype.is_complex:
        part = torch.float32 if dtype == torch.complex64 else torch.float64
        pair = make_tensor(part, (*size, 2), seed, low=low, high=high)
        return torch.view_as_complex(pair)
    if not dtype.is_floating_point:
        first = (0 if not dtype.is_signed else -9) if low is None else int(low)
        last = (9 if low is None else max(9, first + 9)) if high is None else int(high)
        return torch.randint(first, last + 1, size, generator=generator).to(dtype)
    if low is None and high is None:
        return (torch.randn(size, generator=generator, dtype=torch.float64) * 3).to(dtype)
    bottom = (high or 0.0) - 10.0 if low is None else low
    top = bottom + 10.0 if high is None else high
    uniform = torch.rand(size, generator=generator, dtype=torch.float64)
    return (bottom + uniform * (top - bottom)).to(dtype).clamp(bottom, top)


def tensor(
    dtypes: Any = torch.float32,
    shapes: Any = (2, 3),
    *,
    finite: bool = False,
    low: float | None = None,
    high: float | None = None,
) -> st.SearchStrategy[torch.Tensor]:
    """Tensors: a dtype, a shape, a seed, and special values at a few places.

    ``dtypes`` is a strategy or a dtype, ``shapes`` a strategy or a shape. The special values are 0, -0,
    nan, infinities and the dtype's extremes (of integers: 0, 1, -1); with ``finite`` neither nan nor
    infinities nor extremes. With ``low`` or ``high`` all values are in that range.
    """

    @st.composite
    def draw_tensor(draw: st.DrawFn) -> torch.Tensor:
        return _drawn(draw, draw(_strategy(dtypes)), draw(_shape(shapes)), finite, low, high)

    return draw_tensor()


def tensors(
    dtypes: Any,
    shapes: Any,
    *,
    finite: bool = False,
    low: float | None = None,
    high: float | None = None,
) -> st.SearchStrategy[tuple[torch.Tensor, ...]]:
    """Several tensors of one dtype: ``tensors(dtypes("float"), broadcastable(2))``.

    ``shapes`` is a strategy of tuples of shapes, or such a tuple.
    """

    @st.composite
    def draw_tensors(draw: st.DrawFn) -> tuple[torch.Tensor, ...]:
        dtype = draw(_strategy(dtypes))
        found = draw(_strategy(shapes))
        return tuple(_drawn(draw, dtype, shape, finite, low, high) for shape in found)

    return draw_tensors()


def _drawn(
    draw: st.DrawFn, dtype: torch.dtype, shape: Shape, finite: bool, low: float | None, high: float | None
) -> torch.Tensor:
    made = make_tensor(dtype, shape, draw(st.integers(0, 2**16)), low=low, high=high)
    choice = _special(dtype, finite, low, high)
    if not choice or not made.numel():
        return made
    last = made.numel() - 1
    places = draw(st.lists(st.tuples(st.integers(0, last), st.sampled_from(choice)), max_size=3))
    flat = made.flatten()
    for place, value in places:
        flat[place] = value
    return flat.reshape(made.shape)


def _special(dtype: torch.dtype, finite: bool, low: float | None, high: float | None) -> list[Any]:
    if dtype == torch.bool:
        return []
    if low is not None or high is not None:
        return [value for value in (low, high) if value is not None and not dtype.is_complex]
    if not dtype.is_floating_point and not dtype.is_complex:
        return [0, 1, -1] if dtype.is_signed else [0, 1]
    if finite or dtype.is_complex:
        return [0.0, -0.0, 1.0, -1.0]
    largest = torch.finfo(dtype).max
    return [0.0, -0.0, float("nan"), float("inf"), float("-inf"), largest, -largest]


def _strategy(value: Any) -> st.SearchStrategy[Any]:
    return value if isinstance(value, st.SearchStrategy) else st.just(value)


def _shape(value: Any) -> st.SearchStrategy[Any]:
    return value if isinstance(value, st.SearchStrategy) else st.just(tuple(value))


load_profile()
