"""An exported model beside the results that were observed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.progress import track

from atonnx.errors import OnnxExporterError
from atonnx.observer.alignment import Alignment
from atonnx.observer.calls import Call
from atonnx.program import ONNXProgram, sessions
from atonnx.program.arguments import bind
from atonnx.program.reference import graph_layout
from atonnx.program.verification import differences

__all__ = ["compare_calls"]


def compare_calls(
    calls: Sequence[Call],
    aligned: Alignment,
    program: Any,
    *,
    atol: float,
    rtol: float,
    progress_bar: bool,
    initializer: Callable[[Any], Any],
    skip_none: bool,
) -> list[dict[str, Any]]:
    """See :meth:`InputObserver.check_discrepancies`."""
    rows = []
    n_inputs = len(program.model.graph.inputs)
    unusable = ""
    try:
        program.initialize_inference_session(initializer)
    except Exception as error:  # ORT has an exception class for each of its status codes
        unusable = _text(error)
    try:
        for index, call in enumerate(track(calls, "Compare", disable=not progress_bar)):
            begin = time.perf_counter()
            actual: Sequence[Any] = ()
            problem = unusable
            if not problem:
                try:
                    actual = _run(program, aligned, call)
                except Exception as error:
                    problem = _text(error)
            seconds = time.perf_counter() - begin
            row = (
                {"error": problem, "SUCCESS": False}
                if problem
                else _compared(call.outputs, actual, atol, rtol, skip_none)
            )
            tensors = call.aligned_flat_list or []
            row.update(
                index=index,
                duration_torch=call.seconds,
                ort_duration=seconds,
                n_inputs=n_inputs,
                n_none=sum(tensor is None for tensor in tensors),
                n_empty=sum(tensor is None or tensor.numel() == 0 for tensor in tensors),
            )
            rows.append(row)
    finally:
        program.release()
    return rows


def _run(program: Any, aligned: Alignment, call: Call) -> Sequence[Any]:
    leaves = aligned.leaves(call)
    tensors = aligned.tensors(leaves)
    inputs = program.model.graph.inputs
    by_input = {value.name: tensor for value, tensor in zip(inputs, tensors, strict=False)}
    if not isinstance(program, ONNXProgram):
        if len(inputs) != len(tensors):
            raise OnnxExporterError(f"{len(inputs)} inputs of the model, {len(tensors)} tensors of the call")
        results: Sequence[Any] = program(**by_input)
        return results
    args, kwargs = aligned.arguments(leaves)
    named = aligned.by_name(args, kwargs)
    args, kwargs = (args, kwargs) if named is None else ((), named)
    try:
        feeds = bind(inputs, program.exported_program, args, kwargs)
    except OnnxExporterError:
        # Another module was exported than was observed, as a wrapper with parameters of other names.
        if len(inputs) != len(tensors):
            raise
        feeds = bind(inputs, None, (), by_input)
    return sessions.run(program._session, feeds)


def _compared(
    expected: Sequence[Any], actual: Sequence[Any], atol: float, rtol: float, skip_none: bool
) -> dict[str, Any]:
    problems = []
    max_abs = max_rel = 0.0
    if len(expected) != len(actual):  # a graph has no output for None
        expected = [output for output in expected if output is not None]
    if len(expected) != len(actual):
        return {"error": f"{len(actual)} outputs, the model returned {len(expected)}", "SUCCESS": False}
    for place, (want, got) in enumerate(zip(expected, actual, strict=True)):
        if want is None or got is None:
            if want is not got and not skip_none:
                problems.append(f"output {place} is missing on one side")
            continue
        want, got = graph_layout(want).cpu(), got.cpu()
        if want.shape != got.shape or want.dtype != got.dtype:
            problems.append(
                f"output {place} is {got.dtype} {list(got.shape)}, the model returned "
                f"{want.dtype} {list(want.shape)}"
            )
            max_abs = max_rel = float("inf")
        elif want.numel():
            difference, magnitude = differences(want, got)
            largest, relative = difference.max().item(), (difference / (magnitude + rtol)).max().item()
            max_abs, max_rel = max(max_abs, largest), max(max_rel, relative)
            if largest > atol or relative > rtol:
                problems.append(f"output {place} differs by {largest:.3g}, relatively by {relative:.3g}")
    row: dict[str, Any] = {"SUCCESS": not problems, "abs": max_abs, "rel": max_rel}
    if problems:
        row["error"] = "; ".join(problems)
    return row


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
