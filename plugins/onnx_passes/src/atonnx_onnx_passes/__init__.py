"""Graph passes that fold, clean and fuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atonnx.plugins import hookimpl

if TYPE_CHECKING:
    from atonnx.plugins import PassSpec

ATONNX_API = (1, 0)


@hookimpl
def atonnx_passes() -> list[PassSpec]:
    """The passes of this package."""
    from atonnx.plugins import PassSpec
    from atonnx_onnx_passes import (
        activations,
        arithmetic,
        batch_norm,
        constants,
        gemm,
        heads,
        identity,
        layout,
        slices,
        transposes,
    )  # fmt: skip
    from atonnx_onnx_passes._rewrite import Rewrite
    from atonnx_onnx_passes.cse import MergeEqualNodes
    from atonnx_onnx_passes.unused import RemoveUnused
    from atonnx_onnx_passes.weights import FoldWeights

    def simplify() -> Rewrite:
        return Rewrite(constants.rules, identity.rules, layout.rules, arithmetic.rules, slices.rules)

    return [
        PassSpec("remove-unused", RemoveUnused, "simplify", before=("simplify",)),
        PassSpec("simplify", simplify, "simplify"),
        PassSpec("merge-equal", MergeEqualNodes, "simplify", after=("simplify",)),
        PassSpec("heads", lambda: Rewrite(heads.rules), "simplify", after=("merge-equal",)),
        # Ahead of the weights: a Gemm reads a transposed weight as it is stored.
        PassSpec("gemm", lambda: Rewrite(gemm.rules), "fold", before=("transposes",)),
        PassSpec("transposes", lambda: Rewrite(transposes.rules), "fold", before=("weights",)),
        PassSpec("weights", FoldWeights, "fold"),
        PassSpec("activations", lambda: Rewrite(activations.rules), "fuse"),
        PassSpec("batch-norm", lambda: Rewrite(batch_norm.rules), "fuse"),
        # What folding and fusing leave behind.
        PassSpec("simplify-again", simplify, "cleanup", before=("merge-equal-again",)),
        PassSpec("merge-equal-again", MergeEqualNodes, "cleanup", before=("remove-unused-again",)),
        PassSpec("remove-unused-again", RemoveUnused, "cleanup"),
    ]
