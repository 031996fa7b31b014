"""The ONNX domain com.example: its operator's schema, and a kernel that needs no runtime library."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.defs import OpSchema
from onnx.reference.op_run import OpRun

from atonnx.plugins import DomainInfo

__all__ = ["EXAMPLE"]

DOMAIN, VERSION = "com.example", 1

SOFT_THRESHOLD = OpSchema(
    "SoftThreshold",
    DOMAIN,
    VERSION,
    doc="Moves x towards zero by the threshold; what is nearer to zero than that becomes zero.",
    inputs=[OpSchema.FormalParameter("x", "T")],
    outputs=[OpSchema.FormalParameter("y", "T")],
    type_constraints=[("T", ["tensor(float16)", "tensor(float)", "tensor(double)"], "")],
    attributes=[OpSchema.Attribute("threshold", OpSchema.AttrType.FLOAT, "How far.", required=True)],
)


class SoftThreshold(OpRun):
    """The kernel for ``onnx.reference``, which ``ONNXProgram.call_reference`` runs."""

    op_domain = DOMAIN

    def _run(self, x: np.ndarray, threshold: float) -> tuple[Any]:
        distance = np.maximum(np.abs(x) - x.dtype.type(threshold), 0)
        return ((np.sign(x) * distance).astype(x.dtype),)


EXAMPLE = DomainInfo(DOMAIN, VERSION, schemas=(SOFT_THRESHOLD,), reference_ops=(SoftThreshold,))
