"""Writes operators.md: what each operator becomes, and for which dtypes and opsets that is found to work.

``python docs/generate.py``. The samples of the rows are translated, nothing is run: dtypes are put in the
place of the sample's own, and those that eager torch takes are tried at the newest opset and at older ones.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import re
import sys
import warnings
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree

from atonnx.build.dtypes import real_of, to_ir
from atonnx.dispatch import MIN_OPSET, Translation
from atonnx.errors import OnnxExporterError, UnsupportedOpError
from atonnx.plugins import Policy, load
from atonnx.testing import OpSample, samples
from atonnx.testing.arguments import Weight, eager_value
from atonnx.testing.eager import eager_result
from atonnx.testing.graphs import OneCall, capture_call
from atonnx.testing.pytest_plugin import SAMPLE_OPSETS
from atonnx.testing.translate import counted, translate_call

PAGE = Path(__file__).with_name("operators.md")
PACKS = ("aten_core", "aten_nn", "quantized")
NEWEST = SAMPLE_OPSETS[-1]
PROCESSES = 2
MOST_KINDS = 6  # of ONNX operators in a cell
MOST_SAMPLES = 3  # of an operator that are tried with each dtype

DTYPES = {
    "float": (torch.float16, torch.bfloat16, torch.float32, torch.float64),
    "int": (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8),
    "bool": (torch.bool,),
    "complex": (torch.complex64, torch.complex128),
}
SHORT = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.bool: "bool",
    torch.complex64: "c64",
    torch.complex128: "c128",
}

HEAD = f"""# Operators

What each PyTorch operator becomes, with torch {torch.__version__.partition("+")[0]}.
`python docs/generate.py` writes this page from the samples of the rows: it puts each dtype in the place of
the samples' own and translates what eager PyTorch takes.

- **becomes**: the ONNX operators of the first sample at opset {NEWEST}, before passes, its sizes static.
  Other arguments may become others. `…` tells that there are more kinds. Without a sample (operators that
  take graphs) it is what the row says of itself.
- **dtypes**: what eager PyTorch takes on a CPU and is translated. `float` is f16, bf16, f32 and f64;
  `int` is i8, i16, i32, i64 and u8; `complex` is c64 and c128. Complex tensors work where a complex
  dtype is named.
- **opset**: the lowest that works, of those from {MIN_OPSET}; a dtype that needs a higher one follows
  with it.
- *Refused*, below a table: dtypes that eager PyTorch takes and that are a typed error.

In-place and `out=` forms are served by the operator that they are forms of. Operators that are not here
are taken apart by torch's own decompositions. `atonnx ops` lists what is installed, `atonnx explain`
shows the rows of one operator. For what else does not work see [known gaps](known-gaps.md).
"""


@dataclass
class Line:
    """What is found out about an operator."""

    target: str
    becomes: str = ""
    lowest: dict[torch.dtype, int] = field(default_factory=dict)
    own: int | None = None  # the lowest opset of the first sample as it is
    refused: dict[torch.dtype, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The operator without ``aten::``."""
        return self.target.removeprefix("aten::")

    @property
    def opset(self) -> str:
        """The lowest opset, and those of the dtypes that need a higher one."""
        found = self.lowest.values() or ([self.own] if self.own is not None else [])
        if not found:
            return ""
        least = min(found)
        higher: dict[int, list[torch.dtype]] = {}
        for dtype, opset in self.lowest.items():
            if opset > least:
                higher.setdefault(opset, []).append(dtype)
        return "; ".join([str(least), *(f"{grouped(d)} {o}" for o, d in sorted(higher.items()))])

    def __str__(self) -> str:
        return f"| `{self.name}` | {self.becomes} | {grouped(self.lowest)} | {self.opset} |"


def grouped(dtypes: Iterable[torch.dtype]) -> str:
    """Short names of dtypes; one name for all of a group."""
    left = set(dtypes)
    words: list[str] = []
    for group, members in DTYPES.items():
        words += [group] if left >= set(members) else [SHORT[dtype] for dtype in members if dtype in left]
    return " ".join(words)


@functools.cache
def by_target() -> dict[str, list[OpSample]]:
    """The samples of each operator."""
    torch.manual_seed(0)
    found: dict[str, list[OpSample]] = {}
    for sample in samples():
        found.setdefault(sample.name, []).append(sample)
    return found


def with_dtype(sample: OpSample, dtype: torch.dtype) -> tuple[list[Any], dict[str, Any]] | None:
    """The sample's arguments in another dtype; None where nothing in them has one.

    The tensors change that have the dtype of the first floating-point or complex one, else of the first;
    without tensors, the argument ``dtype``.
    """
    arguments = (list(sample.made_args()), sample.made_kwargs())
    leaves, spec = pytree.tree_flatten(arguments)
    values = [eager_value(leaf) for leaf in leaves]
    dtypes = [value.dtype for value in values if isinstance(value, torch.Tensor)]
    if dtypes:
        own = next((d for d in dtypes if d.is_floating_point or d.is_complex), dtypes[0])
        if own not in SHORT:
            return None
        made: dict[int, Any] = {}  # a tensor given twice is one tensor
        for leaf, value in zip(leaves, values, strict=True):
            if isinstance(value, torch.Tensor) and value.dtype == own:
                changed = value.to(dtype)
                made[id(leaf)] = replace(leaf, tensor=changed) if isinstance(leaf, Weight) else changed
        args, kwargs = pytree.tree_unflatten([made.get(id(leaf), leaf) for leaf in leaves], spec)
        return args, kwargs
    if any(argument.name == "dtype" for argument in sample.overload._schema.arguments):
        return arguments[0], {**arguments[1], "dtype": dtype}
    return None


def captured(sample: OpSample, args: Sequence[Any], kwargs: dict[str, Any]) -> OneCall:
    """The sample's call with other arguments, as a program of static sizes."""
    return capture_call(sample.overload, args, kwargs, dynamic=False, outputs=sample.options.get("outputs"))


def lowest(call: OneCall) -> int | str:
    """The lowest opset at which a call is translated, or why it is not at the newest."""
    try:
        translate_call(call, NEWEST)
    except UnsupportedOpError as error:
        missing = next((op.reason for op in error.missing if op.reason), "it has no row")
        return missing if error.missing else _what(error)
    except OnnxExporterError:
        return "the row has no case for it"
    for opset in range(MIN_OPSET, NEWEST):
        with contextlib.suppress(OnnxExporterError):
            translate_call(call, opset)
            return opset
    return NEWEST


def _what(error: UnsupportedOpError) -> str:
    """What a row refuses."""
    return str(error).splitlines()[0].partition(": ")[2].removesuffix(" is not supported")


def becomes(call: OneCall) -> str:
    """The ONNX operators of a call."""
    counts = counted(translate_call(call, NEWEST))
    kinds = [name if count == 1 else f"{count} {name}" for name, count in counts.items()]
    return ", ".join(kinds[:MOST_KINDS] + ["…"] * (len(kinds) > MOST_KINDS)) or "nothing"


def line_of(target: str) -> Line:
    """Find out about one operator."""
    line = Line(target)
    given = by_target().get(target, [])
    if not given:
        return line
    torch.manual_seed(zlib.crc32(target.encode()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            first = captured(given[0], given[0].made_args(), given[0].made_kwargs())
        except Exception as error:
            raise RuntimeError(f"torch does not trace the first sample of {target}") from error
        line.becomes = becomes(first)
        own = lowest(first)
        line.own = own if isinstance(own, int) else None
        for dtype in SHORT:
            for sample in given[:MOST_SAMPLES]:
                found = lowest_of(sample, dtype)
                if isinstance(found, int):
                    line.lowest[dtype] = found
                    line.refused.pop(dtype, None)
                    break
                if found:
                    line.refused[dtype] = re.sub(rf"{dtype}|\b{to_ir(real_of(dtype)).name}\b", "it", found)
    return line


def lowest_of(sample: OpSample, dtype: torch.dtype) -> int | str:
    """The lowest opset for a dtype, or why there is none; empty where torch does not take the dtype."""
    made = with_dtype(sample, dtype)
    if made is None:
        return ""
    try:
        eager_result(sample.overload, *made)
        call = captured(sample, *made)
    except Exception:  # kernels refuse in any way
        return ""
    return lowest(call)


def family(rows: Sequence[Translation]) -> str:
    """The module that has the operator's row for real tensors."""
    return min(rows, key=lambda row: row.complex == "only").fn.__module__


def refusals(lines: Iterable[Line]) -> list[str]:
    """What is refused, each reason once."""
    found: dict[str, dict[str, list[torch.dtype]]] = {}
    for line in lines:
        for dtype, why in line.refused.items():
            found.setdefault(why, {}).setdefault(line.name, []).append(dtype)
    told = []
    for why, operators in found.items():
        names: dict[str, list[str]] = {}
        for name, dtypes in operators.items():
            names.setdefault(grouped(dtypes), []).append(f"`{name}`")
        told.append(f"- {why}: " + "; ".join(f"{dtypes} of {', '.join(n)}" for dtypes, n in names.items()))
    return ["", "*Refused*", "", *told] if told else []


def rows_of_packs() -> dict[str, dict[str, list[Translation]]]:
    """The rows of our packs, by pack and operator."""
    found: dict[str, dict[str, list[Translation]]] = {pack: {} for pack in PACKS}
    for row in load(policy=Policy()).translations():
        if row.plugin in found:
            found[row.plugin].setdefault(row.target, []).append(row)
    return found


def page() -> str:
    """The whole text."""
    packs = rows_of_packs()
    targets = sorted({target for rows in packs.values() for target in rows})
    os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"  # torch warns of its own operators, past Python's warnings
    with ProcessPoolExecutor(PROCESSES, get_context("spawn"), logging.disable) as pool:
        lines = dict(zip(targets, pool.map(line_of, targets, chunksize=8), strict=True))
    parts = [HEAD]
    for pack, rows in packs.items():
        parts.append(f"\n## {pack}\n")
        families: dict[str, list[Line]] = {}
        for target in sorted(rows):
            line = lines[target]
            line.becomes = line.becomes or (rows[target][0].fn.__doc__ or "").partition("\n")[0].rstrip(".")
            families.setdefault(family(rows[target]), []).append(line)
        for module, found in sorted(families.items()):
            about = (importlib.import_module(module).__doc__ or "").partition("\n")[0]
            parts.append(f"### {module.rpartition('.')[2]}\n\n{about}\n")
            parts += ["| operator | becomes | dtypes | opset |", "|---|---|---|---|", *map(str, found)]
            parts += [*refusals(found), ""]
    return "\n".join(parts).rstrip() + "\n"


def listed(text: str) -> set[str]:
    """The operators that a page has."""
    names = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    return {name if "::" in name else f"aten::{name}" for name in names}


def main(path: Path = PAGE) -> None:
    """Write the page."""
    text = page()
    path.write_text(text, encoding="utf-8")
    print(f"{len(listed(text))} operators in {path.name}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
