"""One measurement, in a process of its own: `worker.py KIND ...` prints a line of JSON.

torch is imported in the measurements, since one of them is about what comes after that.
"""

from __future__ import annotations

import copy
import gc
import json
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measuring


def capture(model: Any, args: Any, kwargs: Any = None, shapes: Any = None) -> Any:
    """The program that all exporters are given."""
    import torch

    return torch.export.export(model, args, kwargs, dynamic_shapes=shapes, strict=False)


def warm_up(export: Any, folder: Path) -> None:
    """Pay for imports and registries before what is measured."""
    import torch
    from models import Chain

    export(capture(Chain(1).eval(), (torch.zeros(2),))).save(folder / "warm.onnx")


def convert(folder: Path, name: str, exporter: str, path: str) -> dict[str, Any]:
    """Conversion of a captured model, saving it to a path, and what is in its graph."""
    import models

    try:
        model, args, kwargs, shapes = models.build(name)
    except ImportError as error:
        return {"skipped": f"needs {error.name}"}
    export = measuring.exporter(exporter)
    warm_up(export, folder)
    program = capture(model, args, kwargs, shapes)
    told: dict[str, Any] = {}
    with measuring.measured(told):
        begin = time.process_time()
        converted = export(program)
        told["convert"] = time.process_time() - begin
        converted.save(path, external_data=True)
    told["nodes"] = measuring.graph_nodes(Path(path))
    largest = max(tensor.nbytes for tensor in model.state_dict().values())
    told["allowed"] = 64 * measuring.MB + 2 * largest + 4096 * told["nodes"]
    return told


def run(folder: Path, name: str, *paths: str) -> dict[str, Any]:
    """Each file of one model in ONNX Runtime: how far from eager, and how fast beside the others."""
    import models
    from torch.utils._pytree import tree_leaves

    model = models.build(name).model
    cases = []
    for args, kwargs in models.inputs(name):
        arrays = [tensor.numpy() for tensor in tree_leaves((args, kwargs))]
        results = model(*copy.deepcopy(args), **copy.deepcopy(kwargs))
        cases.append((arrays, [result.numpy() for result in tree_leaves(results)]))
    return measuring.run(paths, cases)


def cold(folder: Path, exporter: str) -> dict[str, Any]:
    """All that a process does to export one operator, but `import torch`."""
    import torch

    begin, base = time.process_time(), measuring.resident()
    from models import Chain

    program = capture(Chain(1).eval(), (torch.zeros(2),))
    captured = time.process_time()
    measuring.exporter(exporter)(program).save(folder / "model.onnx")
    done, peak = time.process_time(), measuring.resident("VmHWM")
    memory = None if base is None or peak is None else peak - base
    return {"cpu": done - begin, "convert": done - captured, "memory": memory}


def chain(folder: Path, exporter: str) -> dict[str, Any]:
    """What a further node of a program costs: the slope between two lengths of a chain."""
    import torch
    from models import Chain

    export = measuring.exporter(exporter)
    warm_up(export, folder)
    lengths, times = (100, 300), []
    for length in lengths:
        x = torch.zeros(2, 3)
        program = capture(Chain(length).eval(), (x,), None, ({0: torch.export.Dim.DYNAMIC},))
        gc.collect()
        begin = time.process_time()
        export(program)
        times.append(time.process_time() - begin)
    return {"convert": (times[1] - times[0]) / (lengths[1] - lengths[0])}


def call(folder: Path) -> dict[str, Any]:
    """What one call of atonnx's builder costs, with as much metadata as a node of a model has."""
    import onnx_ir as ir

    from atonnx.build.builder import Builder
    from atonnx.build.metadata import Origin
    from atonnx.build.scope import NEWEST_OPSET, Session
    from atonnx.dispatch import OpsetTable

    session = Session(NEWEST_OPSET, OpsetTable(()))
    metadata = {f"pkg.example.key{index}": "v" * 80 for index in range(8)}
    op = Builder(session.root, Origin(metadata=metadata))
    x = session.root.add_input("x", ir.DataType.FLOAT, (2, 3))

    def calls(count: int) -> None:
        nonlocal x
        for _ in range(count):
            x = op.Gelu(op.Transpose(op.Reshape(op.Add(x, 1.5), [3, 2]), perm=[1, 0]))

    calls(1)
    gc.collect()
    gc.disable()
    blocks = []
    for _ in range(5):
        begin = time.process_time()
        calls(200)
        blocks.append(time.process_time() - begin)
    # Other work on the machine can only add to a block.
    return {"convert": min(blocks) / (4 * 200)}


def main() -> None:
    """Measure and print."""
    kinds: dict[str, Callable[..., Any]] = {f.__name__: f for f in (convert, run, cold, chain, call)}
    kind, *arguments = sys.argv[1:]
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        told = kinds[kind](Path(folder), *arguments)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
