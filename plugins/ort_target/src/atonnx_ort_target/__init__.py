"""What to export for ONNX Runtime: kernels that it lacks, and graphs that do without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atonnx.plugins import hookimpl

if TYPE_CHECKING:
    from atonnx.plugins import Target

ATONNX_API = (1, 0)


@hookimpl
def atonnx_targets() -> list[Target]:
    """ONNX Runtime on any device, on a CPU, and no runtime in particular."""
    from atonnx.plugins import PassSpec, Target
    from atonnx_ort_target.gaps import lacks
    from atonnx_ort_target.legalize import Legalize

    def on_any() -> Legalize:
        return Legalize(halves=False)

    def on_cpu() -> Legalize:
        return Legalize(halves=True)

    opsets = (11, 28)
    return [
        Target("onnxruntime", opsets, lacks, passes=(PassSpec("kernels", on_any, "legalize"),)),
        Target("onnxruntime-cpu", opsets, lacks, passes=(PassSpec("kernels", on_cpu, "legalize"),)),
        Target("portable"),
    ]
