"""What the rows write, at opsets that do not have it yet."""

from __future__ import annotations

import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx.errors import UnsupportedOpError
from atonnx_custom_ops_example.ops import mel_weights

pack = OpsetPack(__name__)


@pack.below(17, "MelWeightMatrix")
def mel_weight_matrix(
    op: Builder,
    num_mel_bins: Value,
    dft_length: Value,
    sample_rate: Value,
    lower_edge_hertz: Value,
    upper_edge_hertz: Value,
    *,
    output_datatype: int = ir.DataType.FLOAT,
) -> Value:
    """A constant, computed at export."""
    given = [num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz]
    known = [value.const_value.numpy().item() for value in given if value.const_value is not None]
    if len(known) < len(given):
        raise UnsupportedOpError.here(
            op, "MelWeightMatrix of computed sizes", hint="export at opset 17 or newer"
        )
    return op.const(mel_weights(*known), ir.DataType(output_datatype))
