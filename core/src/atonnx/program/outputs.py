"""Axis names of outputs, as ``dynamic_axes`` gives them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import onnx_ir as ir

from atonnx.errors import OnnxExporterError, both
from atonnx.program.program import ONNXProgram

__all__ = ["name_output_axes"]


def name_output_axes(
    program: ONNXProgram, axes: Mapping[str, Mapping[int, str]], taken: Collection[str]
) -> None:
    """Name the axes of outputs that are dynamic; static ones stay as they are.

    A size that only outputs have gets the name everywhere. One that is among ``taken``, the names that
    the user gave to axes of inputs, keeps it elsewhere.

    Raises:
        OnnxExporterError: also a ValueError, for a name that no output has, or an axis too many.
    """
    outputs = {str(output.name): output for output in program.model.graph.outputs}
    unknown = sorted(set(axes) - outputs.keys())
    if unknown:
        inputs = ", ".join(str(value.name) for value in program.model.graph.inputs)
        raise both(OnnxExporterError, ValueError)(
            f"dynamic_axes names {', '.join(unknown)}, which is neither an input ({inputs}) nor an output "
            f"({', '.join(outputs)})",
            hint="name inputs and outputs with input_names and output_names, or give dynamic_shapes",
        )
    named = set(taken)
    for name, labels in axes.items():
        for axis, label in labels.items():
            dims = list(outputs[name].shape or ())
            if not -len(dims) <= axis < len(dims):
                raise both(OnnxExporterError, ValueError)(
                    f"output {name!r} has {len(dims)} axes, there is no axis {axis}"
                )
            dim = dims[axis]
            if isinstance(dim, int) or dim.value == label:
                continue
            if str(dim.value).isidentifier() and dim.value not in named:
                program.rename_axes({str(dim.value): label})
            else:
                dims[axis] = ir.SymbolicDim(label)
                outputs[name].shape = ir.Shape(dims)
            named.add(label)
