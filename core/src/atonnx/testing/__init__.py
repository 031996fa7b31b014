"""The kit for testing operator packs: ``from atonnx import testing as kit``.

It needs the extra ``atonnx-core[testing]`` (hypothesis, pytest).

**One assert.** :func:`check_op` calls an overload in eager PyTorch, translates the same call with the rows
of the installed plugins, checks the model with ``onnx.checker``, runs it in ONNX Runtime and compares
dtypes, shapes and values. It builds the captured program itself, without ``torch.export``, so a check takes
milliseconds and a property test is affordable::

    @given(
        opset=kit.opsets(),
        x=kit.tensor(kit.dtypes("float"), kit.shapes(max_rank=3)),
        approximate=st.sampled_from(["none", "tanh"]),
    )
    def test_gelu(opset, x, approximate):
        kit.check_op(aten.gelu.default, x, approximate=approximate, opset=opset,
                     expect="Gelu:1" if opset >= 20 else None)

Arguments are what torch gets; keyword-only ones are keywords of ``check_op``. All dims are symbolic, but for
those that the operator's own rules freeze. Two arguments are more than a value: ``kit.Size(x, 0)`` is a size
of a tensor, for ``view(x, [kit.Size(x, 0), -1])``; ``kit.Weight(w)`` a tensor that the model owns.

**Strategies.** ``opsets``, ``dtypes``, ``shapes``, ``broadcastable``, ``dims`` and ``dim_lists`` draw the
arguments; ``tensor`` and ``tensors`` draw tensors with zeros, nan, infinities and extremes at a few places.
Draw dtype and opset, do not parametrize them. A dtype that eager PyTorch does not take is no example.

**When it fails**, the text has the difference, whose fault it is (``onnx.reference`` gives a second opinion
on ONNX Runtime's result), the model, and a script that makes the same check. Put the script's arguments
into an ``@example``.

**What ONNX Runtime lacks.** For many legal operators, dtypes and opsets it has no kernel. These are run by
``onnx.reference`` (half types in ONNX Runtime as float32 as well) and recorded in ``kit.gaps``;
``pytest --atonnx-gaps`` lists them. Where its kernel is wrong, ``ort_gap="why"`` accepts its result if
``onnx.reference`` has the right one.

**Samples.** A pack gives calls of its operators through the hook ``atonnx_op_samples``::

    @hookimpl
    def atonnx_op_samples():
        return [OpSample(aten.gelu.default, lambda: (torch.randn(2, 3),))]

``pytest --atonnx-samples [PLUGIN]`` runs them at several opsets. :func:`check_plugin`, which
``atonnx plugins --check`` calls, wants a sample and a docstring of every row, the schema's parameters, and
that a sample translates at the ends of the opset range that its row claims.

**Profiles.** Importing the strategies loads the Hypothesis profile ``ci``: 20 examples a test, always the
same ones. ``ATONNX_HYPOTHESIS_PROFILE=all`` or ``--hypothesis-profile=all`` makes it 200. A profile that was
loaded before stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atonnx.testing.arguments import Size, Weight
    from atonnx.testing.check import Checked, check_op
    from atonnx.testing.compare import Ulps, ulps
    from atonnx.testing.conformance import check_plugin
    from atonnx.testing.op_samples import OpSample, samples
    from atonnx.testing.runtimes import Gap, gaps
    from atonnx.testing.strategies import (
        broadcastable,
        dim_lists,
        dims,
        dtypes,
        make_tensor,
        opsets,
        shapes,
        tensor,
        tensors,
    )
    from atonnx.testing.translate import translate_op

__all__ = [
    "Checked",
    "Gap",
    "OpSample",
    "Size",
    "Ulps",
    "Weight",
    "broadcastable",
    "check_op",
    "check_plugin",
    "dim_lists",
    "dims",
    "dtypes",
    "gaps",
    "make_tensor",
    "opsets",
    "samples",
    "shapes",
    "tensor",
    "tensors",
    "translate_op",
    "ulps",
]

# pytest imports this package in every run, with the pytest plugin, so its parts come when asked for.
_MODULES = {
    "arguments": ("Size", "Weight"),
    "check": ("Checked", "check_op"),
    "compare": ("Ulps", "ulps"),
    "conformance": ("check_plugin",),
    "runtimes": ("Gap", "gaps"),
    "op_samples": ("OpSample", "samples"),
    "strategies": (
        "broadcastable",
        "dim_lists",
        "dims",
        "dtypes",
        "make_tensor",
        "opsets",
        "shapes",
        "tensor",
        "tensors",
    ),
    "translate": ("translate_op",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
