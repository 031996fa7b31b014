"""The sub-commands, and how their errors are shown."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from atonnx.cli import listing
from atonnx.dispatch import DEFAULT_OPSET, MIN_OPSET
from atonnx.errors import OnnxExporterError, OnnxExporterWarning
from atonnx.plugins import Plugins, load

__all__ = ["main"]


@dataclass
class State:
    """What options set for the whole run."""

    traceback: bool = False


def _set_traceback(context: typer.Context, value: bool) -> bool:
    state = context.find_object(State)
    if state is not None and value:
        state.traceback = True
    return value


Traceback = Annotated[
    bool,
    typer.Option("--traceback", help="Show where an error was raised.", callback=_set_traceback),
]
Prefer = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT=PLUGIN",
        help="Whose translation, pass or domain to take where plugins conflict; may be repeated.",
    ),
]


def _show_version(value: bool) -> None:
    if value:
        for line in listing.version_lines(load()):
            print(line)
        raise typer.Exit


def root(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show versions and exit."),
    ] = False,
) -> None:
    """PyTorch models to ONNX; every operator translation comes from a plugin."""


def export(
    *,
    source: Annotated[str | None, typer.Argument(metavar="FILE.py:OBJECT", show_default=False)] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="OUT", help="The file to write.", show_default=False)
    ],
    observe: Annotated[
        str | None,
        typer.Option(
            metavar="SCRIPT.py[:NAME]",
            help="Run this script instead, and export the model that it calls, with the arguments of its "
            "first calls; axes that differ between them are dynamic. NAME is the script's variable that "
            "has the model, where it calls several.",
            show_default=False,
        ),
    ] = None,
    opset: Annotated[
        int | None,
        typer.Option(min=MIN_OPSET, help=f"The ONNX opset.  [default: {DEFAULT_OPSET}]", show_default=False),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check the file, run it in ONNX Runtime, compare with PyTorch.")
    ] = False,
    dynamic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INPUT:AXIS=NAME,...",
            help="Axes that may have other sizes: x:0=batch,2=length; inputs within a dict or list are "
            "named cache.key:0=batch; may be repeated. Takes the place of the file's dynamic shapes.",
        ),
    ] = None,
    external_data: Annotated[
        bool, typer.Option(help="Write the weights beside the model, to OUT.data.")
    ] = True,
    prefer: Prefer = None,
    traceback: Traceback = False,
) -> None:
    """Export a model to ONNX.

    OBJECT of FILE.py is an nn.Module, a torch ExportedProgram, or a function that returns
    (model, args, kwargs, dynamic_shapes) or a shorter such tuple. For a module the file has its example
    arguments under the names example_args and example_kwargs, and, if wanted, dynamic_shapes.
    """
    from atonnx.cli.dynamic import dynamic_shapes
    from atonnx.cli.source import load_source

    if (source is None) == (observe is None):
        raise typer.BadParameter("name either a model or a script to observe", param_hint="FILE.py:OBJECT")
    preferred = _pairs(prefer, "--prefer")
    observer = None
    if observe is not None:
        from atonnx.cli.observe import observed

        found, observer = observed(observe)
    else:
        found = load_source(str(source))
    shapes = dynamic_shapes(dynamic, found) if dynamic else found.dynamic_shapes
    output.parent.mkdir(parents=True, exist_ok=True)

    from atonnx.pipeline import export as run

    program: Any = run(
        found.model,
        found.args,
        str(output),
        kwargs=found.kwargs,
        opset_version=opset,
        external_data=external_data,
        dynamic_shapes=shapes,
        prefer=preferred,
    )
    print(listing.written(output, program.model))
    if verify:
        verification = program.verify(*found.inputs)
        print(str(verification))
        rows = [] if observer is None else observer.check_discrepancies(program)
        for row in rows:
            print(listing.compared(row))
        if not verification.ok or not all(row["SUCCESS"] for row in rows):
            raise typer.Exit(1)


def plugins(
    as_json: Annotated[bool, typer.Option("--json", help="Print the records as JSON.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check every plugin against its contract; slow.")
    ] = False,
    traceback: Traceback = False,
) -> None:
    """List the plugins: where each comes from, whether it is loaded, and why not."""
    loaded = load()
    if check:
        problems = listing.problems(loaded)
        for line in problems or [f"{len(loaded.records)} plugins: no problems"]:
            print(line)
        if problems:
            raise typer.Exit(1)
    elif as_json:
        print(listing.records_json(loaded.records))
    else:
        for line in listing.record_lines(loaded.records):
            print(line)


def ops(
    opset: Annotated[int, typer.Option(min=MIN_OPSET, help="The ONNX opset.")] = DEFAULT_OPSET,
    plugin: Annotated[
        str | None, typer.Option(metavar="NAME", help="Rows of this plugin only.", show_default=False)
    ] = None,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            help="List the ATen operators instead that have neither a row nor a decomposition: those with "
            "kernels for the CPU and for torch.export, without those of gradients and optimizers.",
        ),
    ] = False,
    traceback: Traceback = False,
) -> None:
    """List the PyTorch operators that have a row, with the plugins that have it.

    In-place and out= forms are served by the operators that they are forms of, operators without a row
    by their decomposition, if there is one.
    """
    if missing and plugin is not None:
        raise typer.BadParameter("what is missing is missing in all plugins", param_hint="--missing")
    loaded = load()
    for line in listing.missing(loaded, opset) if missing else listing.operators(loaded, opset, plugin):
        print(line)


def explain(
    op: Annotated[str, typer.Argument(metavar="OP", show_default=False)],
    opset: Annotated[int, typer.Option(min=MIN_OPSET, help="The ONNX opset.")] = DEFAULT_OPSET,
    prefer: Prefer = None,
    traceback: Traceback = False,
) -> None:
    """Show which rows translate an operator, in the order of their rank, and why one is chosen.

    OP is a PyTorch operator (aten::gelu, aten.add.Tensor), whose first sample tells what it becomes and
    which rows of opset packs that takes, or an ONNX operator (Gelu), for which those rows are shown.
    """
    for line in listing.explained(load(), op, opset, _pairs(prefer, "--prefer")):
        print(line)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; ends the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    state = State()
    with _plain_warnings():
        try:
            command = typer.main.get_command(_application(load()))
            command(args=None if arguments is None else list(arguments), prog_name="atonnx", obj=state)
        except (OnnxExporterError, OSError) as error:
            if state.traceback:
                raise
            print(f"error: {error}", file=sys.stderr)
            sys.exit(1)


def _application(loaded: Plugins) -> typer.Typer:
    """Our commands and the plugins'."""
    app = _group()
    app.callback()(root)
    for command in (export, plugins, ops, explain):
        app.command()(command)
    names = dict.fromkeys(_names(app), "atonnx")
    for plugin, own in loaded.cli(_group):
        taken = sorted(name for name in _names(own) if name in names)
        if taken:
            warnings.warn(
                f"plugin {plugin} is left out of the command line: "
                + ", ".join(f"{names[name]} has a command {name} as well" for name in taken),
                OnnxExporterWarning,
                stacklevel=2,
            )
            continue
        names.update(dict.fromkeys(_names(own), plugin))
        app.registered_commands += own.registered_commands
        app.registered_groups += own.registered_groups
    return app


def _group() -> typer.Typer:
    return typer.Typer(
        add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
    )


def _names(app: typer.Typer) -> list[str]:
    """The names of an application's commands and groups."""
    return list(typer.main.get_group(app).commands)


def _pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """``WHAT=PLUGIN`` options as a mapping."""
    pairs = {}
    for text in texts or ():
        key, equals, value = text.rpartition("=")
        if not (key and equals and value):
            raise typer.BadParameter(f"{text!r} is not of the form WHAT=PLUGIN", param_hint=option)
        pairs[key] = value
    return pairs


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show the exporter's warnings, and those about the call from here, as a line on stderr."""
    shown = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, OnnxExporterWarning) or filename == __file__:
            print(f"warning: {message}", file=sys.stderr)
        else:
            shown(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = shown
