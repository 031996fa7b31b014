"""ONNX Runtime sessions, and tensors on their way in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
import torch

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["LARGE", "from_numpy", "from_ort", "make_session", "run", "to_numpy", "to_ort"]

# Protobuf ends at 2 GB; a model with more bytes of initializers than this goes through files.
LARGE = 1536 * 1024 * 1024

_ERRORS_ONLY = 3

# NumPy has no such dtypes, so their bits travel as unsigned integers.
_BITS = {
    torch.bfloat16: torch.uint16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e4m3fnuz: torch.uint8,
    torch.float8_e5m2: torch.uint8,
    torch.float8_e5m2fnuz: torch.uint8,
}


def make_session(model: str | bytes, *, libraries: Sequence[str] = ()) -> ort.InferenceSession:
    """A session of a model's bytes or path: on CUDA where there is one, else on the CPU.

    ``libraries`` are the custom-op libraries of the domains that the model uses.
    """
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    for library in libraries:
        options.register_custom_ops_library(library)
    available = ort.get_available_providers()
    wanted = ("CUDAExecutionProvider", "CPUExecutionProvider")
    return ort.InferenceSession(
        model, sess_options=options, providers=[name for name in wanted if name in available]
    )


def run(session: ort.InferenceSession, feeds: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """All outputs of a session."""
    import onnxruntime as ort

    options = ort.RunOptions()
    options.log_severity_level = _ERRORS_ONLY
    values = {name: to_ort(tensor) for name, tensor in feeds.items()}
    return tuple(map(from_ort, session.run_with_ort_values(None, values, run_options=options)))


def to_ort(tensor: torch.Tensor) -> ort.OrtValue:
    """An ORT value of a tensor."""
    import onnxruntime as ort

    tensor = tensor.detach().contiguous()
    bits = _BITS.get(tensor.dtype)
    if bits is None:
        return ort.OrtValue.ortvalue_from_numpy(tensor.numpy(force=True))
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(
        tensor.view(bits).numpy(force=True), ir.tensor_adapters.from_torch_dtype(tensor.dtype).value
    )


def from_ort(value: ort.OrtValue) -> torch.Tensor:
    """A tensor of an ORT value."""
    dtype = ir.tensor_adapters.to_torch_dtype(ir.DataType(value.element_type()))
    if dtype in _BITS:
        return torch.utils.dlpack.from_dlpack(value._get_c_value())
    array = value.numpy()
    # NumPy has two types of 64 bits, and torch does not know the one that ONNX Runtime takes for uint64.
    return torch.from_numpy(array.view(array.dtype.name))


def to_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """An array of a tensor, with ml_dtypes where NumPy lacks the dtype."""
    return ir.tensor_adapters.TorchTensor(tensor.detach().contiguous()).numpy()


def from_numpy(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """A tensor of an array, which may have a dtype of ml_dtypes."""
    dtype = ir.tensor_adapters.to_torch_dtype(ir.DataType.from_numpy(array.dtype))
    # Zero-rank arrays come as NumPy scalars.
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    if dtype in _BITS:
        return torch.from_numpy(array.view(np.dtype(f"u{dtype.itemsize}"))).view(dtype)
    return torch.from_numpy(array)
