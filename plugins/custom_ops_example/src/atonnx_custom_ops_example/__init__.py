"""Example of a third party's plugin: operators of its own, one of them in an ONNX domain of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atonnx.plugins import hookimpl

if TYPE_CHECKING:
    from atonnx.dispatch import OpsetPack, Table
    from atonnx.plugins import DomainInfo
    from atonnx.testing import OpSample

ATONNX_API = (1, 0)


@hookimpl
def atonnx_translations() -> Table:
    """The rows. torch is imported only here."""
    from atonnx_custom_ops_example.translations import table

    return table


@hookimpl
def atonnx_opset_packs() -> OpsetPack:
    """Rows for ONNX operators at opsets that do not have them."""
    from atonnx_custom_ops_example.opsets import pack

    return pack


@hookimpl
def atonnx_domains() -> DomainInfo:
    """What ONNX tools need to know of the domain com.example."""
    from atonnx_custom_ops_example.domain import EXAMPLE

    return EXAMPLE


@hookimpl
def atonnx_op_samples() -> list[OpSample]:
    """A call of each operator, for the testing kit."""
    from atonnx_custom_ops_example.translations import samples

    return samples()
