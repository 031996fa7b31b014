"""Every behaviour of torch.onnx that docs/torch-onnx.md lists is kept by a test that bears its ID."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COUNTS = {"S": 8, "P": 48, "C": 12, "DS": 14, "DA": 10, "M": 20, "O": 34, "X": 11, "I": 30, "E": 12,
          "R": 24, "V": 5}  # fmt: skip
IDS = {f"{group}{n}" for group, count in COUNTS.items() for n in range(1, count + 1)} | {"O20b"}
ROW = re.compile(r"^\| ([A-Z]+\d+b?) \| (.+) \|$", re.MULTILINE)
LATER = re.compile(r"\bcomes? later\b")
TEST = re.compile(r"^ *def test((?:_[A-Z]+\d+b?)+)_", re.MULTILINE)


def rows() -> list[tuple[str, str]]:
    return ROW.findall((ROOT / "docs" / "torch-onnx.md").read_text(encoding="utf-8"))


def test_the_page_has_every_row_once() -> None:
    listed = [name for name, _ in rows()]
    assert sorted(listed) == sorted(IDS)


def test_every_row_has_a_test() -> None:
    files = [*ROOT.glob("core/tests/test_*.py"), *ROOT.glob("tests/test_*.py")]
    texts = [path.read_text(encoding="utf-8") for path in files]
    tested = {name for text in texts for group in TEST.findall(text) for name in group[1:].split("_")}
    assert tested <= IDS
    assert {name for name, text in rows() if not LATER.search(text)} - tested == set()


def test_what_comes_later_is_known() -> None:
    later = {name for name, text in rows() if LATER.search(text)}
    numbers = {"P": [19, 20, 21, 30, 34, 35, 36], "C": [5], "V": [1, 2, 3],
               "R": [*range(1, 15), 22, 23, 24]}  # fmt: skip
    assert later == {f"{group}{n}" for group, ns in numbers.items() for n in ns}
