"""Bessel functions, modified and spherical ones, and Airy's.

Near zero they are tables over x, less the logarithm and the pole of the second kinds; far out tables over
the reciprocal of what is left when decay, growth and waves are divided out (Abramowitz and Stegun 9.2, 9.7
and 10.4).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._fitted import Array, Cells, Function, look_up, of_torch, polynomial
from atonnx_aten_core._promote import through_float

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
special = torch.special
table = Table(__name__)

_J = (of_torch(special.bessel_j0), of_torch(special.bessel_j1))
_Y = (of_torch(special.bessel_y0), of_torch(special.bessel_y1))
_I = (of_torch(special.modified_bessel_i0), of_torch(special.modified_bessel_i1))
_K = (of_torch(special.modified_bessel_k0), of_torch(special.modified_bessel_k1))
_SCALED_I = (of_torch(special.i0e), of_torch(special.i1e))
_SCALED_K = (of_torch(special.scaled_modified_bessel_k0), of_torch(special.scaled_modified_bessel_k1))


def _far(function: Function, edge: float) -> Function:
    """sqrt(x) f(x) over u = edge / x."""
    return lambda u: np.sqrt(edge / u) * function(edge / u)


def _slope(function: Function) -> Function:
    """f(x) / x of an odd function, so that small x keep their digits."""
    return lambda x: function(x) / x


# ------------------------------------------------------------------- modified


_GROWING = (
    Cells((_SCALED_I[0], 0.0, 8.0, 128), (_far(_SCALED_I[0], 8.0), 0.0, 1.0, 32)),
    Cells((_slope(_SCALED_I[1]), 0.0, 8.0, 128), (_far(_SCALED_I[1], 8.0), 0.0, 1.0, 32)),
)


def _scaled_i(op: Builder, order: int, size: Value) -> Value:
    """exp(-x) I(x) of an x that is not negative."""
    near = op.Less(size, 8.0)
    place = op.Where(near, op.Mul(size, 16.0), op.Add(op.Div(256.0, size), 128.0))
    found = look_up(op, _GROWING[order], place)
    return op.Where(near, op.Mul(found, size) if order else found, op.Div(found, op.Sqrt(size)))


def _modified_i(op: Builder, self: Value, order: int, scaled: bool) -> Value:
    def compute(x: Value) -> Value:
        size = op.Abs(x)
        made = _scaled_i(op, order, size)
        if not scaled:
            made = op.Mul(op.Exp(size), made)
        return op.Where(op.Less(x, 0.0), op.Neg(made), made) if order else made

    return through_float(op, self, compute)


@table.translate(aten.i0.default, aten.special_i0.default, aten.special_modified_bessel_i0.default)
def i0(op: Builder, self: Value) -> Value:
    """Exp times i0e."""
    return _modified_i(op, self, 0, scaled=False)


@table.translate(aten.special_i0e.default)
def special_i0e(op: Builder, self: Value) -> Value:
    """A table over |x| up to 8, over 1 / |x| and divided by its root beyond."""
    return _modified_i(op, self, 0, scaled=True)


@table.translate(aten.special_i1.default, aten.special_modified_bessel_i1.default)
def special_i1(op: Builder, self: Value) -> Value:
    """Exp times i1e."""
    return _modified_i(op, self, 1, scaled=False)


@table.translate(aten.special_i1e.default)
def special_i1e(op: Builder, self: Value) -> Value:
    """A table over |x| up to 8, over 1 / |x| and divided by its root beyond; an odd function."""
    return _modified_i(op, self, 1, scaled=True)


def _rest_of_k0(x: Array) -> Array:
    return _K[0](x) + np.log(x / 2) * _I[0](x)


def _rest_of_k1(x: Array) -> Array:
    return x * (_K[1](x) - np.log(x / 2) * _I[1](x))


_DECAYING = tuple(
    Cells((rest, 0.0, 2.0, 32), (_far(scaled, 2.0), 0.0, 1.0, 32))
    for rest, scaled in zip((_rest_of_k0, _rest_of_k1), _SCALED_K, strict=True)
)
_BESIDE = (Cells((_I[0], 0.0, 2.0, 32)), Cells((_slope(_I[1]), 0.0, 2.0, 32)))


def _modified_k(op: Builder, x: Value, order: int, scaled: bool) -> Value:
    def compute(x: Value) -> Value:
        near = op.Less(x, 2.0)
        place = op.Mul(x, 16.0)
        found = look_up(op, _DECAYING[order], op.Where(near, place, op.Add(op.Div(64.0, x), 32.0)))
        log = op.Mul(op.Log(op.Mul(x, 0.5)), look_up(op, _BESIDE[order], op.Where(near, place, 0.0)))
        low = op.Add(op.Div(found, x), op.Mul(log, x)) if order else op.Sub(found, log)
        high = op.Div(found, op.Sqrt(x))
        if scaled:
            low = op.Mul(low, op.Exp(x))
        else:
            high = op.Mul(high, op.Exp(op.Neg(x)))
        return op.Where(op.Equal(x, 0.0), math.inf, op.Where(near, low, high))

    return through_float(op, x, compute)


@table.translate(aten.special_modified_bessel_k0.default)
def special_modified_bessel_k0(op: Builder, self: Value) -> Value:
    """A table less log(x / 2) i0(x) up to 2, over 1 / x with decay beyond."""
    return _modified_k(op, self, 0, scaled=False)


@table.translate(aten.special_modified_bessel_k1.default)
def special_modified_bessel_k1(op: Builder, self: Value) -> Value:
    """A table over x, plus log(x / 2) i1(x), up to 2, over 1 / x with decay beyond."""
    return _modified_k(op, self, 1, scaled=False)


@table.translate(aten.special_scaled_modified_bessel_k0.default)
def special_scaled_modified_bessel_k0(op: Builder, x: Value) -> Value:
    """k0 without its decay."""
    return _modified_k(op, x, 0, scaled=True)


@table.translate(aten.special_scaled_modified_bessel_k1.default)
def special_scaled_modified_bessel_k1(op: Builder, x: Value) -> Value:
    """k1 without its decay."""
    return _modified_k(op, x, 1, scaled=True)


# ---------------------------------------------------------------- oscillating


def _amplitude(order: int, quadrature: bool, u: Array) -> Array:
    """P or Q of A&S 9.2.5, over u = 8 / x."""
    x = 8.0 / u
    phase = x - (order / 2 + 0.25) * math.pi
    j, y = _J[order](x), _Y[order](x)
    made: Array = np.sqrt(x * math.pi / 2) * (
        y * np.cos(phase) - j * np.sin(phase) if quadrature else j * np.cos(phase) + y * np.sin(phase)
    )
    return made


def _rest_of_y0(x: Array) -> Array:
    return _Y[0](x) - 2 / math.pi * np.log(x) * _J[0](x)


def _rest_of_y1(x: Array) -> Array:
    return _Y[1](x) - 2 / math.pi * (np.log(x) * _J[1](x) - 1 / x)


_IN_PHASE = tuple(Cells((functools.partial(_amplitude, n, False), 0.0, 1.0, 32)) for n in (0, 1))
_IN_QUADRATURE = tuple(Cells((functools.partial(_amplitude, n, True), 0.0, 1.0, 32)) for n in (0, 1))
_FIRST_KIND = (Cells((_J[0], 0.0, 8.0, 128)), Cells((_slope(_J[1]), 0.0, 8.0, 128)))
_SECOND_KIND = tuple(Cells((f, 0.0, 8.0, 128)) for f in (_rest_of_y0, _rest_of_y1))


# Cells an x of 1. In double precision a little less: torch's own functions have a step just above 5.
_SCALE = 16.0 * (1 - 2.0**-53)


def _waves(op: Builder, order: int, x: Value, second: bool) -> Value:
    """J or Y for x >= 8."""
    place = op.Div(256.0, x)
    p, q = look_up(op, _IN_PHASE[order], place), look_up(op, _IN_QUADRATURE[order], place)
    phase = op.Sub(x, (order / 2 + 0.25) * math.pi)
    cos, sin = op.Cos(phase), op.Sin(phase)
    wave = op.Add(op.Mul(p, sin), op.Mul(q, cos)) if second else op.Sub(op.Mul(p, cos), op.Mul(q, sin))
    return op.Div(op.Mul(wave, math.sqrt(2 / math.pi)), op.Sqrt(x))


def _bessel_j(op: Builder, self: Value, order: int) -> Value:
    def compute(x: Value) -> Value:
        size = op.Abs(x)
        near = look_up(op, _FIRST_KIND[order], op.Mul(size, _SCALE))
        if order:
            near = op.Mul(near, size)
        made = op.Where(op.Less(size, 8.0), near, _waves(op, order, size, second=False))
        return op.Where(op.Less(x, 0.0), op.Neg(made), made) if order else made

    return through_float(op, self, compute)


def _bessel_y(op: Builder, self: Value, order: int) -> Value:
    def compute(x: Value) -> Value:
        place = op.Mul(x, _SCALE)
        wave = op.Mul(op.Log(x), look_up(op, _FIRST_KIND[order], place))
        if order:
            wave = op.Sub(op.Mul(wave, x), op.Reciprocal(x))
        near = op.Add(op.Mul(wave, 2 / math.pi), look_up(op, _SECOND_KIND[order], place))
        made = op.Where(op.Less(x, 8.0), near, _waves(op, order, x, second=True))
        return op.Where(op.Equal(x, 0.0), -math.inf, made)

    return through_float(op, self, compute)


@table.translate(aten.special_bessel_j0.default)
def special_bessel_j0(op: Builder, self: Value) -> Value:
    """A table up to 8, the amplitudes of Cos and Sin beyond."""
    return _bessel_j(op, self, 0)


@table.translate(aten.special_bessel_j1.default)
def special_bessel_j1(op: Builder, self: Value) -> Value:
    """A table up to 8, the amplitudes of Cos and Sin beyond; an odd function."""
    return _bessel_j(op, self, 1)


@table.translate(aten.special_bessel_y0.default)
def special_bessel_y0(op: Builder, self: Value) -> Value:
    """A table plus log(x) j0(x) up to 8, the amplitudes of Cos and Sin beyond; nan below zero."""
    return _bessel_y(op, self, 0)


@table.translate(aten.special_bessel_y1.default)
def special_bessel_y1(op: Builder, self: Value) -> Value:
    """A table plus log(x) j1(x) - 1 / x up to 8, the amplitudes of Cos and Sin beyond; nan below zero."""
    return _bessel_y(op, self, 1)


@table.translate(aten.special_spherical_bessel_j0.default)
def special_spherical_bessel_j0(op: Builder, x: Value) -> Value:
    """sin(x) / x, 1 at zero and 0 at infinity."""

    def compute(x: Value) -> Value:
        made = op.Where(op.Equal(x, 0.0), 1.0, op.Div(op.Sin(x), x))
        return op.Where(op.Equal(op.Abs(x), math.inf), 0.0, made)

    return through_float(op, x, compute)


# ----------------------------------------------------------------------- Airy


def _airy_terms(count: int) -> list[float]:
    """u(k) of A&S 10.4.59."""
    terms = [1.0]
    for k in range(1, count):
        terms.append(terms[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)))
    return terms


# torch's own function has a step at -2.09, so cells begin there. 1.91 is 64 cells further.
_AIRY_STEP = -2.09
_AIRY_EDGE = 3 / (2 * 1.91**1.5)  # 1 / zeta there
_airy = of_torch(special.airy_ai)


def _airy_beyond(w: Array) -> Array:
    """Ai without decay and root over w = 1 / zeta; by the asymptotic series where that is exact."""
    zeta = np.maximum(1 / w, 0.1)
    x = (1.5 * np.minimum(zeta, 20.0)) ** (2 / 3)
    direct = _airy(x) * np.exp(np.minimum(zeta, 20.0)) * x**0.25
    series = np.polynomial.polynomial.polyval(-w, _airy_terms(16)) / (2 * math.sqrt(math.pi))
    made: Array = np.where(zeta > 20.0, series, direct)
    return made


_AIRY = Cells((_airy, _AIRY_STEP - 6.0, _AIRY_STEP + 4.0, 160), (_airy_beyond, 0.0, _AIRY_EDGE, 32))


@table.translate(aten.special_airy_ai.default)
def special_airy_ai(op: Builder, x: Value) -> Value:
    """A table up to 1.91, over 1 / zeta with decay beyond, Cos and Sin below -8; zeta = 2/3 |x|**1.5."""

    def compute(x: Value) -> Value:
        size = op.Abs(x)
        root = op.Sqrt(size)
        zeta = op.Div(op.Mul(op.Mul(size, 2.0), root), 3.0)
        w = op.Reciprocal(zeta)
        quarter = op.Sqrt(root)
        place = op.Add(op.Mul(op.Sub(x, _AIRY_STEP), 16.0), 96.0)
        near = op.Less(place, 160.0)
        place = op.Where(near, place, op.Add(op.Mul(w, 32 / _AIRY_EDGE), 160.0))
        found = look_up(op, _AIRY, place)
        right = op.Div(op.Mul(found, op.Exp(op.Neg(zeta))), quarter)
        terms = _airy_terms(6 if x.dtype.bitwidth == 32 else 14)
        square = op.Neg(op.Mul(w, w))
        cos = polynomial(op, square, *terms[-2::-2])
        sin = op.Mul(polynomial(op, square, *terms[::-2]), w)
        phase = op.Sub(zeta, math.pi / 4)
        wave = op.Add(op.Mul(cos, op.Cos(phase)), op.Mul(sin, op.Sin(phase)))
        left = op.Div(op.Mul(wave, 1 / math.sqrt(math.pi)), quarter)
        made = op.Where(op.Less(x, -8.0), left, op.Where(near, found, right))
        return op.Where(op.Equal(size, math.inf), math.nan, made)

    return through_float(op, x, compute)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, ulps

    def line() -> tuple[Any, ...]:
        return (torch.tensor([[-15.0, -9.25, -3.5, -0.0], [0.25, 1.5, 6.0, 40.0]]),)

    def right() -> tuple[Any, ...]:
        return (torch.tensor([[0.0, 1e-3, 0.75, 1.875], [2.5, 7.0, 9.5, 40.0]]),)

    def whole() -> tuple[Any, ...]:
        return (torch.tensor([[-1, 0], [1, 3]]),)

    near: dict[str, Any] = {"atol": ulps(64), "reason": "tables and several operators, each of which rounds"}
    both = [
        *(aten.i0, aten.special_i0, aten.special_i0e, aten.special_i1, aten.special_i1e),
        *(aten.special_modified_bessel_i0, aten.special_modified_bessel_i1, aten.special_airy_ai),
        *(aten.special_bessel_j0, aten.special_bessel_j1, aten.special_spherical_bessel_j0),
    ]
    positive = [
        *(aten.special_modified_bessel_k0, aten.special_modified_bessel_k1, aten.special_bessel_y0),
        *(aten.special_scaled_modified_bessel_k0, aten.special_scaled_modified_bessel_k1),
        aten.special_bessel_y1,
    ]
    return [
        *(OpSample(f.default, args, **near) for f in both for args in (line, whole)),
        *(OpSample(f.default, args, **near) for f in positive for args in (right, whole)),
    ]
