"""``InputObserver.check_discrepancies``, row by row."""

from __future__ import annotations

import inspect
import re

import pytest
import torch
from torch import nn

import atonnx


class Add(nn.Module):
    def forward(self, x, y):
        return x + y


def observed(model, *calls):
    """An observer that saw calls with these positional arguments."""
    observer = atonnx.InputObserver()
    with observer(model):
        for args in calls:
            model(*args)
    return observer


def exported_add():
    model = Add().eval()
    sizes = ((5, 6), (7, 7), (7, 8))
    observer = observed(model, *[(torch.randn(size), torch.randn(1, size[1])) for size in sizes])
    program = atonnx.export(
        model, observer.infer_arguments(), dynamic_shapes=observer.infer_dynamic_shapes(True)
    )
    return model, observer, program


COUNTS = {"index", "duration_torch", "ort_duration", "n_inputs", "n_none", "n_empty"}


def test_I26_one_row_for_each_call():
    _, observer, program = exported_add()
    parameters = inspect.signature(observer.check_discrepancies).parameters
    assert list(parameters) == [
        "onnx_program", "atol", "rtol", "progress_bar", "initializer", "skip_none",
    ]  # fmt: skip
    assert [parameters[name].default for name in ("atol", "rtol", "progress_bar", "skip_none")] == [
        1e-4, 0.1, False, True,
    ]  # fmt: skip
    rows = observer.check_discrepancies(program)
    assert [row["index"] for row in rows] == [0, 1, 2]
    for row in rows:
        assert row.keys() == {"SUCCESS", "abs", "rel"} | COUNTS
        assert row["SUCCESS"] and row["abs"] == row["rel"] == 0
        assert (row["n_inputs"], row["n_none"], row["n_empty"]) == (2, 0, 0)
        assert row["duration_torch"] > 0 and row["ort_duration"] > 0


def test_I26_the_session_comes_from_the_initializer():
    import onnxruntime as ort

    _, observer, program = exported_add()
    seen = []

    def initializer(model):
        seen.append(model)
        return ort.InferenceSession(model, providers=["CPUExecutionProvider"])

    assert all(row["SUCCESS"] for row in observer.check_discrepancies(program, initializer=initializer))
    assert len(seen) == 1


def test_I26_torchs_own_program_is_compared_too():
    model, observer, _ = exported_add()
    program = torch.onnx.export(
        model, observer.infer_arguments(), dynamic_shapes=observer.infer_dynamic_shapes(True), verbose=False
    )
    rows = observer.check_discrepancies(program)
    assert all(row["SUCCESS"] for row in rows)


def test_I26_none_outputs_and_numbers():
    class Model(nn.Module):
        def forward(self, x):
            return x + 1, None, 3, [x.abs()]

    model = Model().eval()
    observer = observed(model, (torch.randn(2),))
    program = atonnx.export(model, observer.infer_arguments())
    for skip_none in (True, False):
        assert observer.check_discrepancies(program, skip_none=skip_none)[0]["SUCCESS"]


def other_program(function, *shapes):
    class Model(nn.Module):
        def forward(self, *args):
            return function(*args)

    return atonnx.export(Model().eval(), tuple(torch.randn(shape) for shape in shapes))


@pytest.mark.parametrize(
    ("function", "shapes", "error"),
    [
        (
            lambda x, y: (x + y)[:1],
            ((2, 3), (2, 3)),
            r"output 0 is torch.float32 \[1, 3\], the model returned",
        ),
        (lambda x, y: (x + y).double(), ((2, 3), (2, 3)), "torch.float64"),
        (lambda x, y: x + y + 1, ((2, 3), (2, 3)), "differs by 1"),
        (lambda x, y: (x, y), ((2, 3), (2, 3)), "2 outputs, the model returned 1"),
        (lambda x, y: (x + y) / 0, ((2, 3), (2, 3)), "differs by inf"),
        (lambda x: x, ((2, 3),), "has no argument 'x'"),
        (lambda x, y: x + y, ((2, 4), (2, 4)), "Got: 3 Expected: 4"),
    ],
    ids=["shape", "dtype", "values", "outputs", "inf", "inputs", "run"],
)
def test_I27_whatever_is_wrong_is_told_in_the_row(function, shapes, error):
    observer = observed(Add(), (torch.ones(2, 3), torch.ones(2, 3)))
    (row,) = observer.check_discrepancies(other_program(function, *shapes))
    assert row["SUCCESS"] is False
    assert row.keys() >= COUNTS
    assert re.search(error, row["error"])


def test_I27_a_session_that_cannot_be_made():
    _, observer, program = exported_add()

    def initializer(model):
        raise OSError("no runtime")

    rows = observer.check_discrepancies(program, initializer=initializer)
    assert [row["error"] for row in rows] == ["OSError: no runtime"] * 3
    assert all(row.keys() == {"error", "SUCCESS"} | COUNTS for row in rows)


def test_I27_nan_where_torch_has_a_number_is_no_success():
    observer = observed(Add(), (torch.ones(2), torch.ones(2)))
    program = other_program(lambda x, y: (x - y) / (x - y), (2,), (2,))
    (row,) = observer.check_discrepancies(program)
    assert (row["SUCCESS"], row["abs"]) == (False, float("inf"))


def test_I28_the_relative_difference():
    observer = observed(Add(), (torch.tensor([1.0, 10.0]), torch.tensor([0.0, 0.0])))
    program = other_program(lambda x, y: x + y + 0.5, (2,), (2,))
    (row,) = observer.check_discrepancies(program, atol=1.0, rtol=0.1)
    assert row["rel"] == pytest.approx(0.5 / 1.1)
    assert not row["SUCCESS"]
    assert observer.check_discrepancies(program, atol=1.0, rtol=0.6)[0]["SUCCESS"]
    assert not observer.check_discrepancies(program, atol=0.1, rtol=0.6)[0]["SUCCESS"]


def test_I28_outputs_without_elements_bools_and_complex():
    class Model(nn.Module):
        def forward(self, x):
            return x[:0], x > 0, torch.complex(x, x)

    model = Model().eval()
    observer = observed(model, (torch.randn(2),))
    (row,) = observer.check_discrepancies(atonnx.export(model, observer.infer_arguments()))
    assert row["SUCCESS"], row


def test_I29_the_progress_bar(capsys):
    _, observer, program = exported_add()
    observer.check_discrepancies(program)
    assert capsys.readouterr().out == ""
    observer.check_discrepancies(program, progress_bar=True)
    assert "Compare" in capsys.readouterr().out
