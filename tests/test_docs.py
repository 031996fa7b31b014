"""The documentation's links lead somewhere, and its code is code."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("core/*.md"), *ROOT.glob("plugins/*/*.md")]
)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
PYTHON = re.compile(r"^( *)```python\n(.*?)^\1```", re.DOTALL | re.MULTILINE)

TUTORIAL = ROOT / "docs" / "writing-a-plugin.md"
EXAMPLE = ROOT / "plugins" / "custom_ops_example"
BLOCK = re.compile(r"^```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)

each_page = pytest.mark.parametrize("page", PAGES, ids=[p.relative_to(ROOT).as_posix() for p in PAGES])


@each_page
def test_relative_links_lead_to_files(page: Path) -> None:
    targets = [t for t in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in t]
    assert [t for t in targets if not (page.parent / t).exists()] == []


@each_page
def test_python_code_compiles(page: Path) -> None:
    for _, code in PYTHON.findall(page.read_text(encoding="utf-8")):
        compile(textwrap.dedent(code), str(page), "exec")


def test_the_tutorials_code_is_the_examples() -> None:
    """Each block stands, as it is, in the file that is linked just before it."""
    text = TUTORIAL.read_text(encoding="utf-8")
    quoted = set()
    for block in BLOCK.finditer(text):
        path = (TUTORIAL.parent / LINK.findall(text[: block.start()])[-1]).resolve()
        assert block[1] in path.read_text(encoding="utf-8"), f"{path.name} has no\n{block[1]}"
        quoted.add(path)
    sources = {f for f in EXAMPLE.rglob("*.py") if f.parent.name != "__pycache__"}
    assert sources - quoted == set()
