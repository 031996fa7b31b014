"""The generated list of operators and their distributions is up to date."""

from __future__ import annotations

from importlib.resources import files

from atonnx.dispatch.known import FILE, collect, distribution_of, text_of
from atonnx.plugins import Policy, load


def test_known_rows_are_those_of_the_installed_packs():
    plugins = load(policy=Policy())
    known = collect(plugins)
    assert not plugins.failed
    text = files("atonnx.dispatch").joinpath(FILE).read_text("utf-8")
    assert text == text_of(known), "run: python -m atonnx.dispatch.known"


def test_an_unknown_operator_has_no_distribution():
    assert distribution_of("nobody::nothing") is None
