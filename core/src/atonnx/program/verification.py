"""Whether the ONNX model is valid, runs, and computes what the captured program computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import onnx
import torch

from atonnx.errors import OnnxExporterError, both
from atonnx.program import saving
from atonnx.program.arguments import copied
from atonnx.program.examples import Axes, Sizes
from atonnx.program.reference import Reference

if TYPE_CHECKING:
    from atonnx.program.program import ONNXProgram

__all__ = ["OutputCheck", "Run", "Tolerance", "Verification", "differences", "verify_program"]

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
_BINS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 1e6)


@dataclass(frozen=True)
class Tolerance:
    """What the user allows: ``|actual - expected| <= atol + rtol * |expected|``, or None for both."""

    atol: float | None = None
    rtol: float | None = None

    def allowed(self, expected: torch.Tensor, scale: float) -> tuple[torch.Tensor | float, str]:
        """The largest difference at each place, and how to say it."""
        if self.atol is None and self.rtol is None:
            base = _TOLERANCE.get(expected.dtype, 0.0)
            return base * max(1.0, scale), f"{base:g} x max(1, {scale:.3g})"
        atol, rtol = self.atol or 0.0, self.rtol or 0.0
        expected = expected.double()
        magnitude = torch.where(torch.isfinite(expected), expected.abs(), 0.0)
        return atol + rtol * magnitude, f"{atol:g} + {rtol:g} x |expected|"


@dataclass(frozen=True)
class OutputCheck:
    """One output of the graph beside that of the captured program.

    ``max_abs`` and ``max_rel`` are the largest differences; they are infinite where one side is
    nan or infinite and the other is not. ``abs_histogram`` and ``rel_histogram`` count differences
    between the bounds ``BINS``. ``problem`` is empty where the two agree.
    """

    BINS = _BINS

    name: str
    max_abs: float
    max_rel: float
    expected_dtype: torch.dtype
    actual_dtype: torch.dtype
    expected_shape: tuple[int, ...]
    actual_shape: tuple[int, ...]
    problem: str = ""
    abs_histogram: tuple[int, ...] = ()
    rel_histogram: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether they agree."""
        return not self.problem

    def asdict(self) -> dict[str, Any]:
        """The same under the names that torch's exporter has for them."""
        return {
            "name": self.name,
            "max_abs_diff": self.max_abs,
            "max_rel_diff": self.max_rel,
            "abs_diff_hist": (list(self.abs_histogram), list(self.BINS)),
            "rel_diff_hist": (list(self.rel_histogram), list(self.BINS)),
            "expected_dtype": self.expected_dtype,
            "actual_dtype": self.actual_dtype,
        }

    def __str__(self) -> str:
        shape = f"{str(self.expected_dtype).removeprefix('torch.')}{list(self.expected_shape)}"
        if self.problem:
            return f"{self.name} {shape}: {self.problem}"
        return f"{self.name} {shape}: max abs {self.max_abs:.2e}, max rel {self.max_rel:.2e}"


@dataclass(frozen=True)
class Run:
    """The model run once beside the captured program.

    ``sizes`` has the sizes of dynamic axes under the model's names; it is empty for the example's own.
    ``skipped`` tells why the captured program itself does not take these sizes, ``runtime_error`` what
    ONNX Runtime said. ``intermediates`` are values within the graph, where they were asked for.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    outputs: tuple[OutputCheck, ...] = ()
    runtime_error: str = ""
    skipped: str = ""
    intermediates: tuple[OutputCheck, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the model ran and all outputs agree; a skipped run tells nothing."""
        return not self.runtime_error and all(out.ok for out in self.outputs)

    def lines(self) -> Iterator[str]:
        """What is to be said of it."""
        where = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        if self.skipped:
            yield f"skipped  {where}: {self.skipped}"
            return
        if where:
            yield f"at {where}:"
        if self.runtime_error:
            yield f"ONNX Runtime: {self.runtime_error}"
        for out in self.outputs:
            yield f"{'ok' if out.ok else 'WRONG'}  {out}"
        departs = next((value for value in self.intermediates if not value.ok), None)
        if departs is not None:
            yield f"the first value that departs: {departs}"


@dataclass(frozen=True)
class Verification:
    """What verifying a program found; ``str()`` tells it.

    ``runs`` starts with that at the given arguments; those at other sizes follow. ``checker_error`` is
    what ``onnx.checker`` says, empty where there is nothing to say.
    """

    runs: tuple[Run, ...] = ()
    checker_error: str = ""

    @property
    def ok(self) -> bool:
        """Whether the model is valid, runs, and all outputs agree."""
        return not self.checker_error and all(run.ok for run in self.runs)

    @property
    def outputs(self) -> tuple[OutputCheck, ...]:
        """The outputs at the given arguments."""
        return self.runs[0].outputs if self.runs else ()

    @property
    def runtime_error(self) -> str:
        """The first thing that ONNX Runtime said; empty where it ran."""
        return next((run.runtime_error for run in self.runs if run.runtime_error), "")

    def __str__(self) -> str:
        lines = ["verified" if self.ok else "verification failed"]
        if self.checker_error:
            lines.append(f"onnx.checker: {self.checker_error}")
        for run in self.runs:
            lines += run.lines()
        return "\n  ".join(lines)


def verify_program(
    program: ONNXProgram,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    sizes: Sequence[Mapping[str, int]] | None = None,
    intermediates: bool = False,
    tolerance: Tolerance | None = None,
) -> Verification:
    """See :meth:`ONNXProgram.verify`."""
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
    verifier = _Verifier(program, captured, tolerance or Tolerance())
    try:
        runs = [verifier.run(args, kwargs, intermediates)]
        if runs[0].outputs and (sizes is None or sizes):
            axes = Axes(captured, program.model.graph.inputs, args, kwargs)
            if sizes is None:
                runs += verifier.found(axes)
            else:
                runs += [verifier.at(axes, axes.of_names(wanted)) for wanted in sizes]
    finally:
        program.release()
    program.verification = Verification(tuple(runs), _check(program))
    return program.verification


class _Verifier:
    """Runs of one program."""

    def __init__(
        self, program: ONNXProgram, captured: torch.export.ExportedProgram, tolerance: Tolerance
    ) -> None:
        self._program = program
        self._captured = captured
        self._tolerance = tolerance
        self._reference = Reference(captured, program.model, program._applied)
        self._guarded: Reference | None = None

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any], intermediates: bool) -> Run:
        """At given arguments."""
        outputs, error = self._compared(args, kwargs, None)
        return Run({}, outputs, error, intermediates=self._within(args, kwargs) if intermediates else ())

    def _within(self, args: Any, kwargs: Any) -> tuple[OutputCheck, ...]:
        """The graph's values beside those of the captured nodes that have the same names."""
        expected = self._reference.intermediates(args, kwargs)
        nodes = self._program.model.graph
        names = [str(v.name) for node in nodes for v in node.outputs if v.name in expected]
        own_args, own_kwargs = copied(self._captured, args, kwargs)
        state = self._reference.state()
        actual = self._program.compute_values(names, own_args, {**own_kwargs, **state})
        return tuple(
            _compare(name, expected[name], value, self._tolerance)
            for name, value in zip(names, actual, strict=True)
            # What a target computes in another dtype is no intermediate of the captured program.
            if value.dtype == expected[name].dtype
        )

    def found(self, axes: Axes) -> list[Run]:
        """At other sizes of every dynamic axis; one axis after the other where they are refused together."""
        runs: list[Run] = []
        for together, alone in axes.others():
            run = self._first(axes, together)
            runs += [self._first(axes, sizes) for sizes in alone] if run.skipped and alone else [run]
        return runs

    def _first(self, axes: Axes, candidates: Sequence[Sizes]) -> Run:
        """At the first of some sizes that the captured program takes."""
        runs = []
        for sizes in candidates:
            runs.append(self.at(axes, sizes))
            if not runs[-1].skipped:
                return runs[-1]
        return runs[0]

    def at(self, axes: Axes, sizes: Sizes) -> Run:
        """At other sizes, with values drawn anew."""
        names = axes.named(sizes)
        if self._guarded is None:
            self._guarded = self._reference.guarded()
        try:
            args, kwargs = axes.arguments(sizes, torch.Generator().manual_seed(0))
            expected = self._guarded(args, kwargs)
        except Exception as error:  # whatever eager execution says of sizes that it does not take
            text = str(error).strip().partition("\n")[0]
            return Run(names, skipped=f"{type(error).__name__}: {text}"[:200])
        outputs, runtime_error = self._compared(args, kwargs, expected)
        return Run(names, outputs, runtime_error)

    def _compared(
        self, args: Any, kwargs: Any, expected: Sequence[torch.Tensor] | None
    ) -> tuple[tuple[OutputCheck, ...], str]:
        own_args, own_kwargs = copied(self._captured, args, kwargs)
        try:
            actual = self._program(*own_args, **own_kwargs, **self._reference.state())
        except OnnxExporterError:
            raise
        except Exception as error:  # ORT has an exception class for each of its status codes
            return (), f"{type(error).__name__}: {error}"
        if expected is None:
            expected = self._reference(args, kwargs)
        names = [str(out.name) for out in self._program.model.graph.outputs]
        if len(expected) != len(actual):
            count = f"{len(actual)} outputs ({', '.join(names)}); the captured program has {len(expected)}"
            return (), count
        compared = zip(names, expected, actual, strict=True)
        return tuple(_compare(name, e, a, self._tolerance) for name, e, a in compared), ""


def _check(program: ONNXProgram) -> str:
    """What onnx's checker, with shape inference, says of the model."""
    with saving.serialized(program.model) as model:
        try:
            onnx.checker.check_model(model, full_check=True)
        except Exception as error:  # the checker and shape inference raise unrelated kinds
            return f"{type(error).__name__}: {error}"
    return ""


def _compare(name: str, expected: torch.Tensor, actual: torch.Tensor, tolerance: Tolerance) -> OutputCheck:
    expected, actual = expected.cpu(), actual.cpu()
    max_abs = max_rel = 0.0
    histograms: list[tuple[int, ...]] = []
    problem = ""
    if expected.dtype != actual.dtype:
        problem = f"dtype {actual.dtype}, expected {expected.dtype}"
    if expected.shape != actual.shape:
        problem = f"shape {list(actual.shape)}, expected {list(expected.shape)}"
    elif expected.numel():
        difference, magnitude = differences(expected, actual)
        relative = difference / magnitude.clamp_min(torch.finfo(torch.float32).tiny)
        max_abs, max_rel = difference.max().item(), relative.max().item()
        histograms = [_histogram(difference), _histogram(relative)]
        allowed, text = tolerance.allowed(expected, magnitude.max().item())
        if not problem and not (difference <= allowed).all():
            problem = f"max abs {max_abs:.2e}, max rel {max_rel:.2e}; allowed {text}"
    return OutputCheck(
        name,
        max_abs,
        max_rel,
        expected.dtype,
        actual.dtype,
        tuple(expected.shape),
        tuple(actual.shape),
        problem,
        *histograms,
    )


def differences(expected: torch.Tensor, actual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The differences, infinite where only one is finite, and the finite magnitudes expected."""
    a, b = expected.double(), actual.double()
    finite = torch.isfinite(a) & torch.isfinite(b)
    same = (a == b) | (torch.isnan(a) & torch.isnan(b))
    difference = torch.where(finite, (a - b).abs(), torch.where(same, 0.0, torch.inf))
    if not expected.dtype.is_floating_point and expected.dtype == actual.dtype:
        # Large integers that differ may be the same in double.
        difference = torch.where(expected != actual, difference.clamp_min(1.0), 0.0)
    return difference, torch.where(torch.isfinite(a), a.abs(), 0.0)


def _histogram(values: torch.Tensor) -> tuple[int, ...]:
    """How many values are between each two bounds of the bins."""
    bins = torch.tensor(OutputCheck.BINS, dtype=torch.float64)
    counts = torch.histogram(values.flatten(), bins=bins).hist
    return tuple(int(count) for count in counts)
