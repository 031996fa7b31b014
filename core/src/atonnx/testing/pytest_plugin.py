"""The pytest plugin of atonnx: ``pytest --atonnx-samples [PLUGIN]``.

pytest imports this module in every run of an environment that has atonnx, so it imports neither torch nor
hypothesis at its top and does nothing unless asked.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

__all__ = [
    "SAMPLE_OPSETS",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_ignore_collect",
    "pytest_terminal_summary",
]

SAMPLE_OPSETS = (11, 13, 17, 20, 23, 28)
_ALL = "all plugins"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the kit."""
    group = parser.getgroup("atonnx")
    group.addoption(
        "--atonnx-samples",
        nargs="?",
        const=_ALL,
        metavar="PLUGIN",
        help="run the samples of the installed operator packs, or of one of them, instead of other tests",
    )
    group.addoption(
        "--atonnx-gaps",
        action="store_true",
        help="list the kernels that ONNX Runtime was found to lack",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make the kit's profiles known where a profile is asked for."""
    if config.getoption("--hypothesis-profile", None) in ("ci", "all"):
        from atonnx.testing.profiles import register_profiles

        register_profiles()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``--atonnx-samples`` no files are collected."""
    return True if config.getoption("--atonnx-samples") is not None else None


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[Any]) -> None:
    """Each sample at some opsets is a test."""
    asked = config.getoption("--atonnx-samples")
    if asked is None:
        return
    from atonnx.plugins import load
    from atonnx.testing.op_samples import samples

    plugins = load()
    names = [record.name for record in plugins.records if asked in (_ALL, record.name)]
    if not names:
        raise pytest.UsageError(f"--atonnx-samples: no plugin is named {asked}")
    found: list[pytest.Item] = []
    for name in names:
        numbers: dict[str, int] = {}
        for sample in samples(name):
            number = numbers[sample.name] = numbers.get(sample.name, -1) + 1
            found += [
                _SampleItem.from_parent(
                    session, name=f"{name}::{sample.name}[{number}-opset{opset}]", sample=sample, opset=opset
                )
                for opset in SAMPLE_OPSETS
                if sample.serves(opset)
            ]
    items[:] = found


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The gaps of ONNX Runtime, where asked for."""
    runtimes = sys.modules.get("atonnx.testing.runtimes")
    if not config.getoption("--atonnx-gaps") or runtimes is None:
        return
    terminalreporter.section("kernels that ONNX Runtime lacks")
    for gap in sorted(runtimes.gaps):
        terminalreporter.line(str(gap))


class _SampleItem(pytest.Item):
    """A sample at an opset."""

    def __init__(self, *, sample: Any, opset: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sample = sample
        self.opset = opset

    def runtest(self) -> None:
        """Check it."""
        self.sample.check(self.opset)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The check's own text, which has all there is to say."""
        if isinstance(excinfo.value, AssertionError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where pytest says the test is."""
        return Path(__file__), None, self.name
