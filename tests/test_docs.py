"""The documentation's links lead somewhere, and its code is code."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("core/*.md"), *ROOT.glob("plugins/*/*.md")]
)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
PYTHON = re.compile(r"^( *)```python\n(.*?)^\1```", re.DOTALL | re.MULTILINE)

GENERATOR = ROOT / "docs" / "generate.py"
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


@pytest.fixture(scope="module")
def generator() -> Any:
    """The module that writes the page of operators."""
    spec: Any = importlib.util.spec_from_file_location("generate", GENERATOR)
    module = importlib.util.module_from_spec(spec)
    # dataclasses looks its module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_of_operators_has_those_that_have_a_row(generator: Any) -> None:
    rows = {target for rows in generator.rows_of_packs().values() for target in rows}
    assert generator.listed(generator.PAGE.read_text(encoding="utf-8")) == rows, f"run: python {GENERATOR}"


@pytest.mark.slow
def test_the_page_of_operators_is_up_to_date(generator: Any, tmp_path: Path) -> None:
    text = generator.PAGE.read_text(encoding="utf-8")
    version = torch.__version__.partition("+")[0]
    if f"with torch {version}." not in text:
        pytest.skip(f"the page is of another torch than {version}")
    made = tmp_path / "operators.md"
    subprocess.run([sys.executable, GENERATOR, made], check=True)
    assert made.read_text(encoding="utf-8") == text, f"run: python {GENERATOR}"
