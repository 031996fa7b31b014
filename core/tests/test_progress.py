"""What an export shows while it goes on: a display on a terminal, lines when asked, else nothing."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

import atonnx
from atonnx.program.progress import shown


class Terminal(io.TextIOWrapper):
    """A console of an encoding."""

    def __init__(self, encoding: str) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding, errors="strict")

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        self.flush()
        return self.bytes.getvalue().decode(self.encoding)


@pytest.fixture(params=["utf-8", "ascii"])
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    made = Terminal(request.param)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "JUPYTER_COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    yield made


@contextmanager
def standard_output(stream: Any) -> Iterator[None]:
    """Within the test: what a fixture sets, pytest's capture would replace."""
    before, sys.stdout = sys.stdout, stream
    try:
        yield
    finally:
        sys.stdout = before


def small(**options: object) -> atonnx.ONNXProgram:
    return atonnx.export(torch.nn.Linear(64, 32).eval(), (torch.randn(2, 64),), **options)  # type: ignore[arg-type]


def test_a_line_for_each_stage_which_vanishes(terminal: Terminal) -> None:
    with standard_output(terminal), shown(None, None) as report:
        report("capture", 0, 1)
        report("capture", 1, 1)
        report("translate", 4, 9)
        report("save", 0, 2_000_000)
        report("done", 1, 1)
    text = terminal.text()
    assert all(part in text for part in ("capture", "1/1", "9/9", "2.0/2.0 MB"))
    assert "done" not in text
    assert text.isascii() == (terminal.encoding == "ascii")
    assert text.endswith("\x1b[2K")  # the last thing that happens is that its lines are erased


def test_P9_export_shows_a_bar_on_a_terminal(terminal: Terminal, tmp_path: Path) -> None:
    with standard_output(terminal):
        small(f=tmp_path / "m.onnx")
    text = terminal.text()
    assert "capture" in text and "save" in text and "MB" in text and "[atonnx]" not in text
    assert text.isascii() == (terminal.encoding == "ascii")


def test_P9_lines_when_asked_and_nothing_when_not_wanted(terminal: Terminal) -> None:
    with standard_output(terminal):
        small(verbose=False, verify=True)
    assert terminal.text() == ""
    with standard_output(terminal):
        small(verbose=True)
    lines = terminal.text().splitlines()
    assert len(lines) > 2 and all(line.startswith("[atonnx] ") for line in lines)


def test_P9_none_is_quiet_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    small()
    assert capsys.readouterr() == ("", "")


def test_without_standard_output_there_is_nothing_to_show() -> None:
    with standard_output(None):
        small()


def test_ones_own_display_is_told_instead(terminal: Terminal, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    wide = torch.nn.Linear(64, 32).eval()
    with standard_output(terminal):
        atonnx.export(
            wide, (torch.randn(2, 64),), tmp_path / "m.onnx", progress=lambda *step: told.append(step)
        )
    assert terminal.text() == ""
    stages = list(dict.fromkeys(stage for stage, _, _ in told))
    assert stages == ["capture", "translate", "passes", "save", "done"]
    size = 4 * 64 * 32  # the bias is small enough to stay in the graph
    assert told[-2] == ("save", size, size)


def test_the_display_ends_with_an_error(terminal: Terminal) -> None:
    class Bad(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    with standard_output(terminal), pytest.raises(atonnx.errors.CaptureError):
        atonnx.export(Bad().eval(), (torch.ones(3),))
    assert terminal.text().endswith("\x1b[2K")
