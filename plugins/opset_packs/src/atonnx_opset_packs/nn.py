"""Convolution, pooling, matrix products, recurrent networks."""

from __future__ import annotations

from atonnx.dispatch import OpsetPack

pack = OpsetPack(__name__)

pack.same("MatMul", 9, 13)
pack.same("Gemm", 11, 13)
pack.same("Einsum", 12, 28)
pack.same("Det", 11, 22)
pack.same("Conv", 11, 22)
pack.same("ConvTranspose", 11, 22)
pack.same("DeformConv", 19, 22)
pack.same("MaxPool", 11, 12, 22)
pack.same("AveragePool", 11, 19, 22)
pack.same("LpPool", 11, 18, 22)
pack.same("GlobalAveragePool", 1, 22)
pack.same("GlobalMaxPool", 1, 22)
pack.same("GlobalLpPool", 2, 22)
pack.same("MaxUnpool", 11, 22)
for _name in ("GRU", "LSTM", "RNN"):
    pack.same(_name, 7, 14, 22)
