"""One sample of every operator in PyTorch's own database of operators, captured, exported, run and compared.

What is known to fail stands in opinfo_expected.json with its reason, and must fail. The table is written by
``python tests/test_opinfo.py``, for the version of torch that it names.
"""

from __future__ import annotations

import functools
import json
import logging
import sys
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
import torch.utils._pytree as pytree

import atonnx
from atonnx.testing.compare import difference, graph_layout
from atonnx.testing.runtimes import Session

TABLE = Path(__file__).with_name("opinfo_expected.json")
SHARDS = 16

# Of these only dtypes and shapes are compared: undefined contents, or results of which several are right.
FREE = set(
    """empty empty_like empty_permuted empty_strided new_empty new_empty_strided resize_ resize_as_
    svd svd_lowrank pca_lowrank geqrf linalg.svd linalg.eig linalg.eigvals linalg.eigh linalg.qr
    linalg.ldl_factor linalg.ldl_factor_ex""".split()
)
# Of these the places of equal elements are free.
TIES = {"sort", "argsort", "topk", "kthvalue", "mode", "median", "nanmedian"}


@functools.cache
def operators() -> dict[str, Any]:
    """All operators that take float32, by name and variant."""
    from torch.testing._internal.common_methods_invocations import op_db

    named = {(op.name + "/" + op.variant_test_name).rstrip("/"): op for op in op_db}
    return {name: op for name, op in named.items() if op.supports_dtype(torch.float32, "cpu")}


def known_failures() -> dict[str, str]:
    """The operators that fail, with the reason."""
    table: dict[str, str] = json.loads(TABLE.read_text("utf-8"))["failing"]
    return table


class Call(torch.nn.Module):
    """An operator as a module over the tensors among its arguments."""

    def __init__(self, op: Any, sample: Any) -> None:
        super().__init__()
        self.op = op.op
        self.leaves, self.spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]
        self.writes = False

    def inputs(self) -> tuple[torch.Tensor, ...]:
        """Fresh copies of the tensors."""
        return tuple(self.leaves[i].detach().clone() for i in self.places)

    def forward(self, *tensors: torch.Tensor) -> tuple[Any, ...]:
        """All results, in one flat tuple."""
        full = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            full[place] = tensor.clone() if self.writes else tensor
        first, args, kwargs = pytree.tree_unflatten(full, self.spec)
        return tuple(pytree.tree_leaves(self.op(first, *args, **kwargs)))


def is_plain(tensors: Any) -> bool:
    """Dense tensors, which a program can have as inputs and outputs."""
    return all(
        isinstance(t, torch.Tensor) and t.layout == torch.strided and not t.is_quantized and not t.is_nested
        for t in tensors
    )


def is_random(program: torch.export.ExportedProgram) -> bool:
    """Whether the program draws random numbers."""
    targets = {node.target for node in program.graph.nodes if node.op == "call_function"}
    overloads = [target for target in targets if isinstance(target, torch._ops.OpOverload)]
    return any(torch.Tag.nondeterministic_seeded in overload.tags for overload in overloads)


def wrong_results(
    name: str, wanted: list[torch.Tensor], found: list[torch.Tensor], program: torch.export.ExportedProgram
) -> str:
    """What is wrong with the results; empty if nothing is."""
    if len(wanted) != len(found):
        return f"{len(found)} results, expected {len(wanted)}"
    operator = name.partition("/")[0]
    free = operator in FREE or is_random(program)
    for index, (want, got) in enumerate(zip(map(graph_layout, wanted), found, strict=True)):
        whole = not want.is_floating_point()
        if (want.dtype, want.shape) == (got.dtype, got.shape) and (free or operator in TIES and whole):
            continue
        size = float(want[want.isfinite()].abs().max()) if not whole and want.isfinite().any() else 0.0
        tolerance = {} if whole else {"rtol": 1e-4, "atol": 1e-5 * max(1.0, size)}
        text = difference(want, got, **tolerance)
        if text:
            return f"result {index}: {text.splitlines()[0]}"
    return ""


def problem_of(name: str) -> str | None:
    """Why the operator's first sample fails; empty if it is right, None where torch cannot capture it."""
    op = operators()[name]
    torch.manual_seed(0)
    try:
        call = Call(op, next(iter(op.sample_inputs("cpu", torch.float32))))
        work = call.inputs()
        versions = [tensor._version for tensor in work]
        wanted = [item.detach().clone() for item in call(*work)]
        call.writes = [tensor._version for tensor in work] != versions
        if not wanted or not is_plain(wanted) or not is_plain(work):
            return None
        program = torch.export.export(call, call.inputs(), strict=False)
    except Exception:  # an operator may have no sample, or be one that torch.export does not take
        return None
    try:
        made = atonnx.export(program)
    except atonnx.OnnxExporterError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"refused: {' '.join(lines[:2])}"[:300]
    proto = made.model_proto
    data = proto.SerializeToString()
    onnx.checker.check_model(data, full_check=True)
    try:
        found = Session(proto, data).run([graph_layout(tensor).contiguous() for tensor in call.inputs()])
    except Exception as error:  # ONNX Runtime has a class for each of its status codes
        return f"ONNX Runtime: {str(error) or type(error).__name__}"[:200]
    text = wrong_results(name, wanted, found, program)
    return f"differs: {text}" if text else ""


def problems(names: list[str]) -> Iterator[tuple[str, str | None]]:
    """Each operator with its problem."""
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            for name in names:
                try:
                    yield name, problem_of(name)
                except Exception as error:  # whatever goes wrong is this operator's problem
                    yield name, f"{type(error).__name__}: {error}"[:200]
        finally:
            logging.disable(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_operator_is_right_or_known_to_fail(shard: int) -> None:
    table = json.loads(TABLE.read_text("utf-8"))
    if table["torch"] != torch.__version__.split("+")[0]:
        pytest.skip(f"the table is of torch {table['torch']}")
    names = [name for name in operators() if zlib.crc32(name.encode()) % SHARDS == shard]
    known = table["failing"]
    found = {name: problem for name, problem in problems(names) if problem is not None}
    worse = {name: problem for name, problem in found.items() if problem and name not in known}
    better = [name for name, problem in found.items() if not problem and name in known]
    assert worse == {}
    assert better == [], "these are right now: run python tests/test_opinfo.py"


def test_every_known_failure_has_a_reason() -> None:
    assert all(reason.strip() for reason in known_failures().values())


def main() -> None:
    """Write the table."""
    failing, right, total = {}, 0, len(operators())
    for count, (name, problem) in enumerate(problems(list(operators())), 1):
        if problem:
            failing[name] = problem
        right += problem == ""
        print(f"{count}/{total} {name}: {problem or 'right'}", file=sys.stderr, flush=True)
    table = {
        "torch": torch.__version__.split("+")[0],
        "right": right,
        "failing": dict(sorted(failing.items())),
    }
    TABLE.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"{right} right, {len(failing)} fail, {total - right - len(failing)} torch does not capture")


if __name__ == "__main__":
    main()
