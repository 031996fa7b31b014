"""Compare atonnx with torch.onnx: one table, from one run.

Every measurement has a process of its own, and both exporters are given the same captured program. CPU
seconds and ratios are to be compared within one run only. README.md says what each column is.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from measuring import EXPORTERS, MB
from models import MODELS
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

WORKER = Path(__file__).with_name("worker.py")
WIDTH = 120  # of the table in a file or a pipe
NAMES = tuple(MODELS)
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

Result = dict[str, Any]
Cells = tuple[str, ...]


def measure(*arguments: str, timeout: float) -> Result:
    """What a worker tells; `error` where it failed."""
    try:
        done = subprocess.run(
            [sys.executable, str(WORKER), *arguments],
            env={**os.environ, **ONE_THREAD, "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done in {timeout:g} s"}
    if done.returncode:
        return {"error": _cause(done.stderr)}
    told: Result = json.loads(done.stdout.splitlines()[-1])
    return told


def _cause(text: str) -> str:
    """The line of a traceback that names the error."""
    lines = [line for line in text.strip().splitlines() if line and not line.startswith(" ")]
    return next(
        (line for line in reversed(lines) if "Error" in line.split(":")[0]), lines[-1] if lines else "?"
    )


def median(rounds: Iterable[Result], key: str) -> float | None:
    """The middle of what the rounds tell of one thing."""
    values = [told[key] for told in rounds if isinstance(told.get(key), (int, float))]
    return statistics.median(values) if values else None


def ratio(rounds: list[dict[str, Result]], key: str) -> float | None:
    """How many times less atonnx takes: the middle of the rounds' own ratios."""
    found = []
    for told in rounds:
        theirs, ours = (told.get(name, {}).get(key) for name in EXPORTERS)
        if theirs is not None and ours:
            found.append(theirs / ours)
    return statistics.median(found) if found else None


def text(value: Any, form: str, scale: float = 1) -> str:
    """A number as a cell."""
    return "-" if value is None else format(value * scale, form)


def model_cells(rounds: list[Result]) -> Cells:
    """The cells of a model with one exporter."""
    last = rounds[-1]
    failed = last.get("skipped") or last.get("error")
    if failed:
        return (failed[:60], "", "", "", "", "")
    memory = text(median(rounds, "memory"), ".0f", 1 / MB)
    differs = [d[:40] if isinstance(d, str) else format(d, ".0e") for d in last["differs"]]
    differs += [""] * (2 - len(differs))
    return (
        f"{text(median(rounds, 'convert'), '.2f')} s",
        f"{memory} of {last['allowed'] / MB:.0f} MB",
        str(last["nodes"]),
        f"{text(median(rounds, 'latency'), '.2f', 1e3)} ms",
        *differs,
    )


def time_cells(key: str, unit: str, scale: float = 1) -> Callable[[list[Result]], Cells]:
    """The cells of a measurement that has a time, and at most memory besides."""

    def cells(rounds: list[Result]) -> Cells:
        if "error" in rounds[-1]:
            return (rounds[-1]["error"][:60], "", "", "", "", "")
        memory = median(rounds, "memory") if key == "cpu" else None
        time = text(median(rounds, key), ".2f" if unit == "s" else ".1f", scale)
        return (f"{time} {unit}", f"{memory / MB:.0f} MB" if memory else "", "", "", "", "")

    return cells


def ratio_cells(rounds: list[dict[str, Result]], *keys: str) -> Cells:
    """The cells of the ratios of the two exporters, for the first columns."""
    found = [ratio(rounds, key) if key else None for key in keys]
    cells = ["" if value is None else f"{value:.2g}x" if value < 10 else f"{value:.0f}x" for value in found]
    return (*cells, *[""] * (6 - len(cells)))


class Report:
    """The table and the figures behind it."""

    def __init__(self) -> None:
        self.samples: dict[str, list[dict[str, Result]]] = {}
        self.table = Table(title="atonnx beside torch.onnx")
        self.table.add_column("model", no_wrap=True)
        self.table.add_column("exporter", no_wrap=True)
        for name in ("conversion", "memory", "nodes", "ORT", "differs", "at another size"):
            self.table.add_column(name, justify="right")

    def add(
        self,
        label: str,
        rounds: list[dict[str, Result]],
        cells: Callable[[list[Result]], Cells],
        *keys: str,
    ) -> None:
        """A section: a row for each exporter, and one for their ratio."""
        self.samples[label] = rounds
        for index, name in enumerate(rounds[0]):
            self.table.add_row(label if index == 0 else "", name, *cells([told[name] for told in rounds]))
        if any(ratio(rounds, key) for key in keys if key):
            self.table.add_row("", "ratio", *ratio_cells(rounds, *keys), style="bold")
        self.table.add_section()


def selected(names: str) -> list[str]:
    """The models of a comma list."""
    if names == "none":
        return []
    found = list(NAMES) if names == "all" else names.split(",")
    unknown = sorted(set(found) - set(NAMES))
    if unknown:
        raise SystemExit(f"no model {', '.join(unknown)}; there are: {', '.join(NAMES)}, all, none")
    return found


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="all", help=f"comma list of {', '.join(NAMES)}; all; none")
    parser.add_argument(
        "--runs", type=int, default=1, help="rounds, in each of which the exporters take turns"
    )
    parser.add_argument("--json", type=Path, help="a file for all figures of all rounds")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one measurement")
    options = parser.parse_args()
    names = selected(options.models)
    report = Report()
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=(len(names) * 3 + 5) * options.runs)

        def measured(kind: str, *arguments: str) -> Result:
            progress.update(task, description=" ".join((kind, *arguments[:2])))
            told = measure(kind, *arguments, timeout=options.timeout)
            progress.advance(task)
            return told

        def rounds(kind: str) -> list[dict[str, Result]]:
            return [{name: measured(kind, name) for name in EXPORTERS} for _ in range(options.runs)]

        def model_rounds(name: str) -> list[dict[str, Result]]:
            found = []
            for _ in range(options.runs):
                with tempfile.TemporaryDirectory() as folder:
                    paths = {exporter: str(Path(folder, f"{exporter}.onnx")) for exporter in EXPORTERS}
                    told = {e: measured("convert", name, e, path) for e, path in paths.items()}
                    made = [path for path in paths.values() if Path(path).exists()]
                    ran = measured("run", name, *made) if made else {}
                for exporter, path in paths.items():
                    told[exporter] |= ran.get(path, {"error": ran["error"]} if "error" in ran else {})
                found.append(told)
            return found

        for name in names:
            report.add(name, model_rounds(name), model_cells, "convert", "memory", "nodes", "latency")
        cold = rounds("cold")
        report.add("cold start", cold, time_cells("cpu", "s"), "cpu", "memory")
        report.add("  without capture", cold, time_cells("convert", "s"), "convert")
        report.add("a further node", rounds("chain"), time_cells("convert", "ms", 1e3), "convert")
        call = [{"atonnx": measured("call")} for _ in range(options.runs)]
        report.add("a builder call", call, time_cells("convert", "us", 1e6))
    console.print(report.table)
    if options.json:
        options.json.write_text(json.dumps(report.samples, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
