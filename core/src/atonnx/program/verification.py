"""Whether the ONNX model is valid, runs, and computes what the captured program computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
import torch

from atonnx.errors import OnnxExporterError, both
from atonnx.program import saving
from atonnx.program.arguments import copied
from atonnx.program.program import ONNXProgram

__all__ = ["OutputCheck", "Verification", "verify_program"]

# The largest difference allowed, times max(1, max|expected|). Integers and bools have none.
_TOLERANCE = {
    torch.float64: 1e-7,
    torch.float32: 1e-4,
    torch.float16: 1e-2,
    torch.bfloat16: 5e-2,
    torch.float8_e4m3fn: 0.25,
    torch.float8_e4m3fnuz: 0.25,
    torch.float8_e5m2: 0.5,
    torch.float8_e5m2fnuz: 0.5,
}


@dataclass(frozen=True)
class OutputCheck:
    """One output of the graph beside that of the captured program.

    ``max_abs`` and ``max_rel`` are the largest differences; they are infinite where one side is
    nan or infinite and the other is not. ``problem`` is empty where the two agree.
    """

    name: str
    max_abs: float
    max_rel: float
    tolerance: float
    expected_dtype: torch.dtype
    actual_dtype: torch.dtype
    expected_shape: tuple[int, ...]
    actual_shape: tuple[int, ...]
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether they agree."""
        return not self.problem

    def __str__(self) -> str:
        shape = f"{str(self.expected_dtype).removeprefix('torch.')}{list(self.expected_shape)}"
        if self.problem:
            return f"{self.name} {shape}: {self.problem}"
        return f"{self.name} {shape}: max abs {self.max_abs:.2e}, max rel {self.max_rel:.2e}"


@dataclass(frozen=True)
class Verification:
    """What verifying a program found; ``str()`` tells it.

    ``checker_error`` is what ``onnx.checker`` says, ``runtime_error`` what ONNX Runtime says; both
    are empty where there is nothing to say.
    """

    outputs: tuple[OutputCheck, ...] = ()
    checker_error: str = ""
    runtime_error: str = ""

    @property
    def ok(self) -> bool:
        """Whether the model is valid, runs, and all outputs agree."""
        return not self.checker_error and not self.runtime_error and all(out.ok for out in self.outputs)

    def __str__(self) -> str:
        lines = ["verified" if self.ok else "verification failed"]
        if self.checker_error:
            lines.append(f"onnx.checker: {self.checker_error}")
        if self.runtime_error:
            lines.append(f"ONNX Runtime: {self.runtime_error}")
        lines += [f"{'ok' if out.ok else 'WRONG'}  {out}" for out in self.outputs]
        return "\n  ".join(lines)


def verify_program(
    program: ONNXProgram, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
) -> Verification:
    """Check a program's model, run it, and compare with the captured program.

    The arguments are the example's unless others are given. The result is also kept as
    ``program.verification``. Neither the arguments nor the captured program's state change.

    Raises:
        OnnxExporterError: also a ValueError, where there is nothing to compare with; also a
            TypeError, where the arguments do not fit.
    """
    captured = program.exported_program
    if captured is None:
        raise both(OnnxExporterError, ValueError)(
            "the program was made without an ExportedProgram, so there is nothing to verify it against"
        )
    if args is None and kwargs is None:
        if captured.example_inputs is None:
            raise both(OnnxExporterError, ValueError)(
                "the captured program has no example inputs", hint="pass args= and kwargs="
            )
        args, kwargs = captured.example_inputs
    args, kwargs = tuple(args or ()), dict(kwargs or {})

    checker_error = _check(program)
    outputs: tuple[OutputCheck, ...] = ()
    runtime_error = ""
    onnx_args, onnx_kwargs = copied(captured, args, kwargs)
    try:
        actual = program(*onnx_args, **onnx_kwargs)
    except OnnxExporterError:
        raise
    except Exception as error:  # ORT has an exception class for each of its status codes
        runtime_error = f"{type(error).__name__}: {error}"
    else:
        expected = _expected(captured, program._applied, args, kwargs)
        names = [str(out.name) for out in program.model.graph.outputs]
        if len(expected) == len(actual):
            outputs = tuple(map(_compare, names, expected, actual))
        else:
            runtime_error = (
                f"{len(actual)} outputs ({', '.join(names)}); the captured program has {len(expected)}"
            )
    finally:
        program.release()
    program.verification = Verification(outputs, checker_error, runtime_error)
    return program.verification


def _check(program: ONNXProgram) -> str:
    """What onnx's checker, with shape inference, says of the model."""
    with saving.serialized(program.model) as model:
        try:
            onnx.checker.check_model(model, full_check=True)
        except Exception as error:  # the checker and shape inference raise unrelated kinds
            return f"{type(error).__name__}: {error}"
    return ""


def _expected(
    captured: torch.export.ExportedProgram,
    applied: Mapping[str, torch.Tensor],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> list[torch.Tensor]:
    """The outputs of the captured program with the weights ``applied``, in the graph's layout."""
    module = captured.module(check_guards=False)
    args, kwargs = copied(captured, args, kwargs)
    buffers = dict(module.named_buffers(remove_duplicate=False))
    known = {name for name, _ in module.named_parameters(remove_duplicate=False)} | buffers.keys()
    weights = {name: tensor for name, tensor in applied.items() if name in known}
    # The module shares its state with the captured program, and the user's model.
    written = {*buffers.values(), *(tensor for name, tensor in weights.items() if name in buffers)}
    states = [(buffer, buffer._version, buffer.clone()) for buffer in written]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        try:
            result = torch.func.functional_call(module, weights, tuple(args), dict(kwargs))
            leaves = captured.call_spec.out_spec.flatten_up_to(result)
            outputs = [_graph_layout(leaf).clone() for leaf in leaves if leaf is not None]
        finally:
            for buffer, version, before in states:
                if buffer._version != version:
                    buffer.copy_(before)
    return outputs


def _graph_layout(leaf: Any) -> torch.Tensor:
    """An output as the graph has it: numbers as tensors, complex tensors as pairs."""
    if not isinstance(leaf, torch.Tensor):
        return torch.tensor(leaf)
    leaf = leaf.detach()
    return torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf


def _compare(name: str, expected: torch.Tensor, actual: torch.Tensor) -> OutputCheck:
    tolerance = _TOLERANCE.get(expected.dtype, 0.0)
    max_abs = max_rel = 0.0
    problem = ""
    if expected.dtype != actual.dtype:
        problem = f"dtype {actual.dtype}, expected {expected.dtype}"
    if expected.shape != actual.shape:
        problem = f"shape {list(actual.shape)}, expected {list(expected.shape)}"
    elif expected.numel():
        max_abs, max_rel, scale = _differences(expected, actual)
        if not problem and not max_abs <= tolerance * max(1.0, scale):
            allowed = f"{tolerance:g} x max(1, {scale:.3g})"
            problem = f"max abs {max_abs:.2e}, max rel {max_rel:.2e}; allowed {allowed}"
    return OutputCheck(
        name,
        max_abs,
        max_rel,
        tolerance,
        expected.dtype,
        actual.dtype,
        tuple(expected.shape),
        tuple(actual.shape),
        problem,
    )


def _differences(expected: torch.Tensor, actual: torch.Tensor) -> tuple[float, float, float]:
    """Largest absolute and relative difference, and the largest finite magnitude expected."""
    expected, actual = expected.cpu(), actual.cpu()
    exact = not expected.dtype.is_floating_point and expected.dtype == actual.dtype
    if exact and torch.equal(expected, actual):
        return 0.0, 0.0, 0.0
    a, b = expected.double(), actual.double()
    finite = torch.isfinite(a) & torch.isfinite(b)
    same = (a == b) | (torch.isnan(a) & torch.isnan(b))
    difference = torch.where(finite, (a - b).abs(), torch.where(same, 0.0, torch.inf))
    magnitude = torch.where(torch.isfinite(a), a.abs(), 0.0)
    if exact:
        # Large integers that differ may be the same in double.
        difference = torch.where(expected != actual, difference.clamp_min(1.0), 0.0)
    relative = difference / magnitude.clamp_min(torch.finfo(torch.float32).tiny)
    return difference.max().item(), relative.max().item(), magnitude.max().item()
