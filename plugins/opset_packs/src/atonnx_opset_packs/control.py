"""Control flow."""

from __future__ import annotations

from atonnx.dispatch import OpsetPack

pack = OpsetPack(__name__)

pack.same("If", 11, 13, 16, 19, 21, 23, 24, 25)
pack.same("Loop", 11, 13, 16, 19, 21, 23, 24, 25)
pack.same("Scan", 11, 16, 19, 21, 23, 24, 25)
pack.same("Optional", 15, 28)
pack.same("OptionalGetElement", 15, 18, 28)
