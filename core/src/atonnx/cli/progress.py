"""A line for each stage of an export, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Report", "terminal_progress"]

DONE = "done"
"""The stage that ends an export; it has no line."""

Report = Callable[[str, int, int], None]
"""Called with (stage, done, total) as an export goes on."""


@contextmanager
def terminal_progress() -> Iterator[Report | None]:
    """What to hand to the pipeline: a display of its stages, or None where standard output is no terminal."""
    if not sys.stdout.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    # rich draws the bar in ASCII where the stream's encoding is not UTF-8.
    progress = Progress(
        TextColumn("{task.description:10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(file=sys.stdout),
        # Lines written meanwhile go above the display, unless they go elsewhere.
        redirect_stderr=sys.stderr.isatty(),
    )
    tasks: dict[str, TaskID] = {}

    def report(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            for task in progress.tasks:  # a stage is over when the next begins
                progress.update(task.id, completed=task.total)
            if stage == DONE:
                return
            tasks[stage] = progress.add_task(stage, total=total)
        progress.update(tasks[stage], completed=done, total=total)

    with progress:
        yield report
