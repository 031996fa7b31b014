"""A line for each stage of an export, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["DONE", "SAVE", "Report", "shown"]

DONE = "done"
"""The stage that ends an export; it has no line."""
SAVE = "save"
"""The stage that is counted in bytes."""

Report = Callable[[str, int, int], None]
"""Called with (stage, done, total) as an export goes on."""


@contextmanager
def shown(verbose: bool | None, report: Report | None) -> Iterator[Report]:
    """What the stages of an export are told to.

    It is the caller's own ``report`` where there is one; else a display that vanishes at the end where
    ``verbose`` is None and standard output is a terminal; else nothing.
    """
    if report is not None:
        yield report
    elif verbose is None and sys.stdout is not None and sys.stdout.isatty():
        with _display() as told:
            yield told
    else:
        yield lambda stage, done, total: None


@contextmanager
def _display() -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    # rich draws the bar in ASCII where the stream's encoding is not UTF-8.
    progress = Progress(
        TextColumn("{task.description:10}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        console=Console(file=sys.stdout),
        # Lines written meanwhile go above the display, unless they go elsewhere.
        redirect_stderr=sys.stderr is not None and sys.stderr.isatty(),
        transient=True,
    )
    tasks: dict[str, TaskID] = {}

    def report(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            for task in progress.tasks:  # a stage is over when the next begins
                whole = int(task.total or 0)
                progress.update(task.id, completed=whole, count=_count(task.description, whole, whole))
            if stage == DONE:
                return
            tasks[stage] = progress.add_task(stage, total=total, count="")
        progress.update(tasks[stage], completed=done, total=total, count=_count(stage, done, total))

    with progress:
        yield report


def _count(stage: str, done: int, total: int) -> str:
    return f"{done / 1e6:.1f}/{total / 1e6:.1f} MB" if stage == SAVE else f"{done}/{total}"
