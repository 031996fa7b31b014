"""The documentation's examples run: ours as they stand, torch's with ``torch.onnx`` replaced by ``atonnx``.

torch's are read from the docstrings of the torch that is installed.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import types
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import nn

import atonnx

ROOT = Path(__file__).resolve().parents[1]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
EXPORT = re.compile(r"torch\.(onnx\.(?!ops)|export\.(?=export\())|(?<![\w.])(?=InputObserver\()")
DYNAMIC = torch.export.Dim.DYNAMIC


def literal_blocks(documented: Any) -> list[str]:
    """The Python in a docstring: after ``::``, after a ``code-block``, or typed after ``>>>``."""
    lines = theirs(inspect.getdoc(documented) or "").splitlines()
    found, i = [], 0
    while i < len(lines):
        if lines[i].startswith(">>> "):
            start = i
            while i < len(lines) and lines[i].startswith(">>> "):
                i += 1
            found.append("\n".join(line[4:] for line in lines[start:i]))
        elif lines[i].rstrip().endswith("::") or lines[i].strip() == ".. code-block:: python":
            indent = len(lines[i]) - len(lines[i].lstrip())
            start = i = i + 1
            while i < len(lines) and (not lines[i] or len(lines[i]) - len(lines[i].lstrip()) > indent):
                i += 1
            found.append(textwrap.dedent("\n".join(lines[start:i])).strip("\n"))
        else:
            i += 1
    return [block for block in found if is_python(block)]


def is_python(text: str) -> bool:
    try:
        return bool(ast.parse(text).body)
    except SyntaxError:
        return False


def theirs(text: str) -> str:
    """A slip of the pen in torch's text, a dot for an equals sign, is put right."""
    return text.replace("dynamic_shapes.input_observer", "dynamic_shapes=input_observer")


def ours(code: str) -> str:
    return EXPORT.sub("atonnx.", code)


def run(code: str, names: dict[str, Any]) -> Counter[type[Warning]]:
    """Run it, names coming in and out, and count the warnings by their kind."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(code, "<documentation>", "exec"), names)
    return Counter(w.category for w in caught)


def run_as_both(code: str, names: dict[str, Any]) -> None:
    """``names`` are ours afterwards."""
    allowed = run(code, {**names, "InputObserver": torch.onnx.InputObserver})
    names["atonnx"] = atonnx
    given = run(ours(code), names)
    assert given <= allowed, f"{given - allowed} where torch has {allowed}\n{code}"


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)


@pytest.mark.parametrize("page", ["README.md", "docs/torch-onnx.md"])
def test_our_own_examples_run_without_a_warning(page: str) -> None:
    """The blocks of a page follow each other; those that show part of a plugin are tested with the plugin."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [block for block in PYTHON.findall(text) if not block.startswith("@table")]
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks:
        assert not run(block, names), block
    assert blocks


def dims(value: onnx.ValueInfoProto) -> list[int | str]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def test_dynamic_axes() -> None:
    static, dynamic = literal_blocks(torch.onnx.export)
    names: dict[str, Any] = {"torch": torch}
    run_as_both(static, names)
    graph = onnx.load("onnx.pb").graph
    assert [dims(v) for v in (*graph.input, *graph.output)] == [[2, 2], [2]]
    run_as_both(dynamic, names)
    graph = onnx.load("onnx.pb").graph
    assert [dims(v) for v in (*graph.input, *graph.output)] == [
        ["my_custom_axis_name", 2],
        ["sum_dynamic_axes_1"],
    ]


def test_an_exportable_module() -> None:
    (code,) = literal_blocks(torch.onnx.ExportableModule)
    names: dict[str, Any] = {"torch": torch}
    run_as_both(code, names)
    program = names["onnx_program"]
    assert isinstance(program, atonnx.ONNXProgram)
    assert (program.model.graph.inputs[0].name, program.model.graph.outputs[0].name) == ("input", "output")
    assert program.model.graph.inputs[0].shape == ("batch_size", 3, 224, 224)
    x = torch.randn(1, 3, 224, 224)
    torch.testing.assert_close(program(x)[0], x * 2)


def variants(method: str) -> list[Callable[[Any], Any]]:
    """The ways to write a method of an exportable module that its docstring shows."""
    (code,) = literal_blocks(getattr(torch.onnx.ExportableModule, method))
    found = []
    for function in ast.parse(code).body:
        names: dict[str, Any] = {"torch": torch}
        exec(compile(ast.Module([function], []), "<documentation>", "exec"), names)
        found.append(names[method])
    return found


def test_the_methods_of_an_exportable_module() -> None:
    one_argument, with_keywords = variants("example_arguments")
    one_shape, two_shapes = variants("dynamic_shapes")
    two_inputs, one_input = variants("input_names")
    two_outputs, one_output = variants("output_names")

    class One(atonnx.ExportableModule):
        example_arguments, dynamic_shapes = one_argument, one_shape
        input_names, output_names = one_input, one_output

        def forward(self, x):
            return x.relu()

    class Keywords(atonnx.ExportableModule):
        example_arguments = with_keywords

        def forward(self, image, text, temperature):
            return image.mean((1, 2, 3)) / temperature + text.mean(1)

    class Two(atonnx.ExportableModule):
        dynamic_shapes, input_names, output_names = two_shapes, two_inputs, two_outputs

        def forward(self, input, mask):
            logits = input.mean((2, 3)) + mask
            return logits, logits.softmax(1)

        def example_arguments(self):
            return (torch.randn(2, 3, 8, 6), torch.randn(2, 3)), None

    def signature(module: atonnx.ExportableModule) -> dict[str, tuple[int | str, ...]]:
        graph = module.eval().to_onnx().model.graph
        values = (*graph.inputs, *graph.outputs)
        return {v.name: tuple(d if isinstance(d, int) else d.value for d in v.shape) for v in values}

    assert signature(One()) == {
        "input_tensor": ("batch_size", 3, 224, 224),
        "prediction": ("batch_size", 3, 224, 224),
    }
    assert list(signature(Keywords()))[:-1] == ["image", "text"]
    assert signature(Two()) == {
        "image": ("batch_size", 3, "height", "width"),
        "mask": ("batch_size", 3),
        "logits": ("batch_size", 3),
        "probabilities": ("batch_size", 3),
    }


def test_axes_are_renamed() -> None:
    class Model(nn.Module):
        def forward(self, x):
            return x.relu()

    (code,) = literal_blocks(torch.onnx.ONNXProgram.rename_axes)
    program = atonnx.export(
        Model().eval(), (torch.ones(2, 3, 4),), dynamic_shapes=({0: DYNAMIC, 2: DYNAMIC},)
    )
    assert not run(code, {"onnx_program": program})
    assert program.model.graph.outputs[0].shape == ("batch", 3, "seq_len")


def test_observed_calls_are_exported() -> None:
    class Model(nn.Module):
        def forward(self, x, y):
            return x + y

    first = next(iter(literal_blocks(torch.onnx.InputObserver)))
    names: dict[str, Any] = {"torch": torch, "model": Model().eval()}
    for i, (rows, columns) in enumerate([(5, 6), (7, 8)], 1):
        names |= {f"x{i}": torch.randn(rows, columns), f"y{i}": torch.randn(1, columns)}
    run_as_both(first, names)
    x, y = torch.randn(3, 4), torch.randn(1, 4)
    torch.testing.assert_close(names["ep"](x, y)[0], x + y)


@pytest.mark.slow
def test_an_observed_language_model_is_exported() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    model = transformers.LlamaForCausalLM(config).eval()
    model.generation_config.max_new_tokens = 6
    names = {"atonnx": atonnx, "model": model, "input_ids": torch.randint(3, 32, (1, 4))}
    # torch's own observer cannot copy the cache of this model.
    assert not run(ours(literal_blocks(torch.onnx.InputObserver)[1]), names)
    rows = names["input_observer"].check_discrepancies(names["ep"])
    assert len(rows) == 3 and all(row["SUCCESS"] for row in rows), rows


class Pictures(nn.Module):
    """Pictures come with the first call, what was read before with the next ones."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.look = nn.Linear(3, 8, bias=False)

    def forward(self, input_ids, pixel_values=None, past=None):
        x = self.embed(input_ids)
        if pixel_values is not None:
            x = x + self.look(pixel_values.mean((2, 3))).sum(0)
        if past is not None:
            x = torch.cat([past, x], 1)
        return x.mean(1), x


def test_an_observed_model_of_pictures_and_text_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipeline of the example is one of our own, since torch's would be downloaded."""
    model = Pictures().eval().to(torch.float16)

    def generate(text, max_new_tokens):
        past = model(torch.tensor([[1, 2, 3]]), pixel_values=torch.rand(1, 3, 896, 896, dtype=torch.float16))[
            1
        ]
        for token in range(max_new_tokens - 1):
            past = model(torch.tensor([[token]]), past=past)[1]

    def pipeline(task, **options):
        return type("Pipe", (), {"model": model, "__call__": lambda self, **how: generate(**how)})()

    library = types.ModuleType("transformers")
    library.pipeline = pipeline
    monkeypatch.setitem(sys.modules, "transformers", library)
    names: dict[str, Any] = {"torch": torch}
    run_as_both(literal_blocks(torch.onnx.InputObserver)[2], names)
    observer = names["observer"]
    program = atonnx.export(
        model, kwargs=observer.infer_arguments(), dynamic_shapes=observer.infer_dynamic_shapes()
    )
    rows = observer.check_discrepancies(program, atol=1e-2)
    assert len(rows) == 3 and all(row["SUCCESS"] for row in rows), rows


@pytest.mark.parametrize("function", ["symbolic", "symbolic_multi_out"])
def test_operators_of_onnx_in_a_model(function: str) -> None:
    names: dict[str, Any] = {"torch": torch}
    (code,) = literal_blocks(getattr(torch.onnx.ops, function))
    run_as_both(code, names)
    program = atonnx.export(names["CustomOp"]().eval(), (torch.ones(1, 2, 3),))
    (node,) = [n for n in program.model.graph if n.domain == "custom_domain"]
    assert node.op_type == "CustomOp" and node.attributes["attr_key"].as_string() == "attr_value"
    assert program.model.opset_imports["custom_domain"] == 1
