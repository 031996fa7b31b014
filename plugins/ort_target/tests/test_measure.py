"""The table says what the installed ONNX Runtime does."""

from __future__ import annotations

import zlib

import onnxruntime
import pytest

from atonnx_ort_target import measure
from atonnx_ort_target.gaps import gap_table, lacks

# Spread over all, and those whose gaps take more than a session to see.
PART = [
    (spec, opsets)
    for spec, opsets in measure.specs()
    if zlib.crc32(spec.op_type.encode()) % 8 == 0
    or spec.op_type in ("Erf", "GRU", "ScatterElements", "ScatterND", "Where")
]


@pytest.mark.parametrize("of", [PART, pytest.param(list(measure.specs()), marks=pytest.mark.slow)])
def test_the_table_is_what_is_measured(of):
    if onnxruntime.__version__ != gap_table().version:
        pytest.skip(f"the table is of ONNX Runtime {gap_table().version}")
    names = {spec.op_type for spec, _ in of}
    assert measure.table(of) == {name: gaps for name, gaps in gap_table().data.items() if name in names}


def test_what_has_a_kernel_by_the_table_has_one_in_the_installed_version():
    """Also in another than the table's: newer ones add kernels."""
    tried = 0
    for spec, opsets in PART:
        for combination in measure.combinations(spec)[::7]:
            dtypes = dict(combination)
            if dtypes and not lacks(spec.op_type, opsets[0], dtypes):
                tried += 1
                assert not measure.lacks(spec, dtypes, opsets[0]), (spec.op_type, dtypes)
    assert tried > 100
