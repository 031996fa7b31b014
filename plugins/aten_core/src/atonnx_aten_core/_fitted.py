"""Smooth functions as tables of small polynomials.

ONNX has no gamma, Bessel or Airy functions. A smooth function on an interval is replaced by a polynomial
on each of many equal cells, whose coefficients are gathered by the number of the cell. They are the
interpolation, at Chebyshev's points, of torch's own function in double precision (as S. G. Johnson's
Faddeeva package does for erfcx), so there are no coefficients to copy, and a function costs a dozen nodes.
What is not smooth (logarithms, poles, decay, waves) is divided out before, by the rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import torch

from atonnx.build import Builder, Value

__all__ = ["Cells", "Fit", "Function", "look_up", "of_torch", "polynomial"]

Array = npt.NDArray[np.float64]
Function = Callable[[Array], Array]
# Cells from `start` to `stop`, as many as `cells`, of a function.
Fit = tuple[Function, float, float, int]

# Cells are a sixteenth wide or so; these degrees leave less than the rounding of the dtype.
_DEGREE = {ir.DataType.FLOAT: 3, ir.DataType.DOUBLE: 7}


def of_torch(function: Callable[..., torch.Tensor], *more: object) -> Function:
    """torch's function over numpy's arrays."""

    def compute(x: Array) -> Array:
        made: Array = function(torch.from_numpy(np.ascontiguousarray(x)), *more).numpy()
        return made

    return compute


class Cells:
    """The cells of one or more fits, one after the other; filled when first used."""

    def __init__(self, *fits: Fit) -> None:
        self.fits = fits
        self.cells = sum(cells for *_, cells in fits)

    @functools.cache  # noqa: B019 - tables are module constants
    def columns(self, dtype: ir.DataType) -> tuple[Array, ...]:
        """The coefficients of each power of the place in the cell, from 0 to 1."""
        degree = _DEGREE[dtype]
        places = 0.5 - 0.5 * np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
        inverse = np.linalg.inv(np.vander(places, increasing=True))
        rows = []
        for function, start, stop, cells in self.fits:
            width = (stop - start) / cells
            points = start + width * (np.arange(cells)[:, None] + places)
            rows.append(function(points) @ inverse.T)
        kind = np.float32 if dtype == ir.DataType.FLOAT else np.float64
        return tuple(np.ascontiguousarray(column.astype(kind)) for column in np.concatenate(rows).T)


def look_up(op: Builder, table: Cells, place: Value) -> Value:
    """The table's function at ``place``, which counts cells; nan for nan.

    Beyond the table this is the polynomial of the nearest cell: finite or not, of no meaning.
    """
    inside = op.Where(op.GreaterOrEqual(place, 0.0), op.Min(place, float(table.cells - 1)), 0.0)
    floor = op.Floor(inside)
    cell = op.Cast(floor, to=ir.DataType.INT64)
    step = op.Sub(place, floor)
    result: Value | None = None
    for column in reversed(table.columns(place.dtype)):
        here = op.Gather(op.const(column), cell)
        result = here if result is None else op.Add(op.Mul(result, step), here)
    if result is None:
        raise ValueError("a table without columns")
    return result


def polynomial(op: Builder, x: Value, *coefficients: float) -> Value:
    """Horner's scheme; the coefficient of the highest power is the first."""
    result = op.const(float(coefficients[0]), x.dtype)
    for coefficient in coefficients[1:]:
        result = op.Add(op.Mul(result, x), coefficient)
    return result
