"""The hooks. Every plugin's answer is taken by itself: none overrides another's by its place.

A hook may be left out. One that raises fails its plugin only, for that hook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atonnx.plugins.markers import hookspec

if TYPE_CHECKING:
    import torch.fx

    from atonnx.dispatch import Translation

__all__ = [
    "atonnx_capture_patches",
    "atonnx_cli",
    "atonnx_decompositions",
    "atonnx_domains",
    "atonnx_missing_translation",
    "atonnx_op_samples",
    "atonnx_opset_packs",
    "atonnx_passes",
    "atonnx_program_passes",
    "atonnx_targets",
    "atonnx_translation_tables",
    "atonnx_translations",
]


@hookspec
def atonnx_translations() -> Any:
    """A ``Table`` of rows, or a list of tables or rows. Asked once a process."""


@hookspec
def atonnx_translation_tables(opset: int) -> Any:
    """A plain ``custom_translation_table`` dict, or a list of them, for this opset. Asked once an export."""


@hookspec
def atonnx_decompositions() -> Any:
    """``{OpOverload: fn}``, a provider, or a list of both. Asked once a process.

    ``None`` in place of ``fn`` keeps the operator whole. A provider is a function that is given an
    overload and returns ``fn`` or None.
    """


@hookspec
def atonnx_opset_packs() -> Any:
    """An ``OpsetPack``, or a list of packs or rows. Asked once a process."""


@hookspec
def atonnx_passes() -> Any:
    """A :class:`~atonnx.plugins.PassSpec` or a list of them. Asked once an export."""


@hookspec
def atonnx_program_passes() -> Any:
    """A function ``ExportedProgram -> ExportedProgram``, or a list of them. Asked once an export."""


@hookspec
def atonnx_capture_patches() -> Any:
    """A context manager that is active during capture, or a list of them. Asked once an export."""


@hookspec
def atonnx_domains() -> Any:
    """A :class:`~atonnx.plugins.DomainInfo` or a list of them. Asked when a domain is used."""


@hookspec
def atonnx_missing_translation(node: torch.fx.Node, opset: int) -> Translation | None:
    """A row for a node whose operator has none, or None. Two answers are a conflict."""


@hookspec
def atonnx_targets() -> Any:
    """A :class:`~atonnx.plugins.Target` or a list of them. Asked when a target is used."""


@hookspec
def atonnx_op_samples() -> Any:
    """Test inputs of the pack's rows, a list. Asked by the testing kit."""


@hookspec
def atonnx_cli(commands: Any) -> None:
    """Add sub-commands to the ``typer.Typer`` given. Asked by the command line."""
