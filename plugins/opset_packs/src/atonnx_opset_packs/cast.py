"""Casts and constants."""

from __future__ import annotations

from atonnx.dispatch import OpsetPack

pack = OpsetPack(__name__)

pack.same("Cast", 9, 13, 19, 21, 23, 24, 25, 28)
pack.same("CastLike", 15, 19, 21, 23, 24, 25)
pack.same("Constant", 11, 12, 13, 19, 21, 23, 24, 25)
