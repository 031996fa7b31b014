"""Clocks, memory, graphs and runs: what is measured, for any exporter."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

__all__ = ["EXPORTERS", "MB", "exporter", "graph_nodes", "measured", "peak_reset", "resident", "run"]

MB = 1 << 20
EXPORTERS = ("torch.onnx", "atonnx")


def exporter(name: str) -> Callable[..., Any]:
    """The export function of that name."""
    if name == "torch.onnx":
        import torch

        return lambda *args, **kwargs: torch.onnx.export(*args, dynamo=True, verbose=False, **kwargs)
    import atonnx

    return atonnx.export


def resident(field: str = "VmRSS") -> int | None:
    """Bytes of resident memory now, or at most (VmHWM); None where the system does not tell."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    found = [line for line in text.splitlines() if line.startswith(f"{field}:")]
    return int(found[0].split()[1]) * 1024 if found else None


def peak_reset() -> int | None:
    """Start a new peak; the memory it starts from, None where the system has no such thing."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return None
    return resident()


@contextlib.contextmanager
def measured(into: dict[str, Any]) -> Iterator[None]:
    """CPU seconds of this process and the growth of its memory at the peak, in bytes."""
    base = peak_reset()
    begin = time.process_time()
    yield
    into["cpu"] = time.process_time() - begin
    peak = resident("VmHWM")
    into["memory"] = None if base is None or peak is None else max(peak - base, 0)


def graph_nodes(path: Path) -> int:
    """Nodes of a model file, in bodies and functions as well."""
    import onnx

    model = onnx.load(path, load_external_data=False)

    def count(nodes: Any) -> int:
        bodies = [a.g for node in nodes for a in node.attribute if a.HasField("g")]
        return len(nodes) + sum(count(body.node) for body in bodies)

    return count(model.graph.node) + sum(count(function.node) for function in model.functions)


def difference(got: Sequence[Any], expected: Sequence[Any]) -> float:
    """The largest max|got - expected| / max(1, max|expected|) of the outputs."""
    import numpy as np

    if len(got) != len(expected):
        raise ValueError(f"{len(got)} outputs for {len(expected)}")
    worst = 0.0
    for ours, theirs in zip(got, expected, strict=True):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            raise ValueError(f"{ours.dtype}{ours.shape} for {theirs.dtype}{theirs.shape}")
        if theirs.size:
            wide = theirs.astype(np.float64)
            gap = np.abs(ours.astype(np.float64) - wide).max()
            worst = max(worst, float(gap / max(1.0, np.abs(wide).max())))
    return worst


def run(
    paths: Sequence[str], cases: Sequence[tuple[list[Any], list[Any]]], seconds: float = 4.0
) -> dict[str, dict[str, Any]]:
    """How each file's results differ from those expected, and its median latency in ONNX Runtime.

    A case is inputs and outputs as arrays. Latency is that of the first case in CPU seconds of one
    thread; the files take turns, so that what else the machine does meets them alike.
    """
    told: dict[str, dict[str, Any]] = {path: {"differs": []} for path in paths}
    calls: dict[str, Callable[[], Any]] = {}
    for path in paths:
        try:
            session = _session(path)
            names = [value.name for value in session.get_inputs()]
            for arrays, expected in cases:
                results = session.run(None, dict(zip(names, arrays, strict=True)))
                told[path]["differs"].append(difference(results, expected))
            feed = dict(zip(names, cases[0][0], strict=True))
            calls[path] = partial(session.run, None, feed)
        except Exception as error:  # ONNX Runtime's own kinds among them
            told[path]["differs"].append(f"{type(error).__name__}: {error}")
    times: dict[str, list[float]] = {path: [] for path in calls}
    end = time.perf_counter() + seconds
    for count in range(400):
        if count >= 5 and time.perf_counter() > end:
            break
        for path, call in calls.items():
            begin = time.process_time()
            call()
            times[path].append(time.process_time() - begin)
    for path, found in times.items():
        told[path]["latency"] = statistics.median(found)
    return told


def _session(path: str) -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
