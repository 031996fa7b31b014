"""Random numbers."""

from __future__ import annotations

import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack

pack = OpsetPack(__name__)

for _name in ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"):
    pack.same(_name, 1, 22)
pack.same("Bernoulli", 15, 22)
pack.same("Multinomial", 7, 22)


@pack.below(15, "Bernoulli")
def bernoulli(op: Builder, x: Value, *, dtype: int | None = None, seed: float | None = None) -> Value:
    """Whether a uniform random number is less than the probability."""
    kind = x.dtype if dtype is None else ir.DataType(dtype)
    return op.cast(op.Less(op.RandomUniformLike(x, seed=seed), x), kind)
