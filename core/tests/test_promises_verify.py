"""verify= and ONNXProgram.verify (promises R15-R21): what is checked, at which sizes, what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import nn

import atonnx
from atonnx.errors import OnnxExporterError, VerificationError
from atonnx.program import Run

Dim = torch.export.Dim


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


def exported(model: nn.Module, args: tuple[Any, ...], *shapes: Any, **options: Any) -> atonnx.ONNXProgram:
    if isinstance(model, nn.Module):
        model.eval()
    return atonnx.export(model, args, dynamic_shapes=shapes or None, verbose=False, **options)


@pytest.fixture
def scale() -> atonnx.ONNXProgram:
    return exported(Scale(), (torch.randn(4, 3),), {0: "batch"})


def wrong(program: atonnx.ONNXProgram) -> atonnx.ONNXProgram:
    """The program with another number in it than the model has."""
    program.model.graph.initializers["weight"].const_value = ir.tensor(np.array([1, 2, 4], np.float32))
    return program


def freeze(program: atonnx.ONNXProgram, size: int) -> atonnx.ONNXProgram:
    """The program with the example's batch size frozen in, as a bad translation would."""
    (node,) = program.model.graph
    shape = ir.Value(name="shape", const_value=ir.tensor(np.array([size, 3])))
    program.model.graph.register_initializer(shape)
    flat = ir.node("Reshape", [node.outputs[0], shape], name="node_flat")
    flat.outputs[0].name, flat.outputs[0].type = "flat", node.outputs[0].type
    flat.outputs[0].shape = ir.Shape(["batch", 3])
    program.model.graph.append(flat)
    program.model.graph.outputs[0] = flat.outputs[0]
    return program


def test_R15_the_checker_the_run_and_the_comparison(scale: atonnx.ONNXProgram) -> None:
    found = scale.verify()
    assert found.ok and found is scale.verification
    assert [run.sizes for run in found.runs] == [{}, {"batch": 5}, {"batch": 3}, {"batch": 1}]
    assert [run.outputs[0].actual_shape for run in found.runs] == [(4, 3), (5, 3), (3, 3), (1, 3)]
    assert str(found).startswith("verified\n  ok  mul float32[4, 3]: max abs 0.00e+00")
    assert "\n  at batch=5:\n  ok  mul float32[5, 3]" in str(found)


def test_R16_the_checker_is_real(scale: atonnx.ONNXProgram) -> None:
    scale.model.graph[0].op_type = "Mull"
    found = scale.verify()
    assert not found.ok and "Mull" in found.checker_error
    scale.model.graph[0].op_type = "Mul"
    scale.model.graph.outputs[0].shape = ir.Shape([4, 4])
    assert "ShapeInferenceError" in scale.verify().checker_error


def test_R17_wrong_numbers_are_printed_kept_and_no_exception(capsys: pytest.CaptureFixture[str]) -> None:
    program = exported(Scale(), (torch.randn(4, 3),))
    assert program.verification is None
    assert capsys.readouterr().out == ""
    found = wrong(program).verify()
    assert not found.ok and found.outputs[0].max_abs > 1e-3
    assert "WRONG  mul float32[4, 3]: max abs" in str(found) and "allowed 0.0001 x max(1," in str(found)


def test_R17_export_prints_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    for verbose, said in ((None, True), (True, True), (False, False)):
        program = atonnx.export(Scale().eval(), (torch.randn(4, 3),), verify=True, verbose=verbose)
        assert program.verification is not None and program.verification.ok
        out = capsys.readouterr().out
        assert (str(program.verification) in out) is said


def negated(op: Any, self: Any, other: Any) -> Any:
    return op.Neg(op.Mul(self, other))


def test_R17_strict_is_an_error_and_nothing_is_saved(tmp_path: Path) -> None:
    table = {torch.ops.aten.mul.Tensor: negated}
    options: dict[str, Any] = {"custom_translation_table": table, "f": tmp_path / "m.onnx"}
    with pytest.raises(VerificationError, match="verification failed\n  WRONG  ") as info:
        exported(Scale(), (torch.randn(4, 3),), verify="strict", **options)
    assert isinstance(info.value, OnnxExporterError) and not info.value.verification.ok
    assert not (tmp_path / "m.onnx").exists()
    program = exported(Scale(), (torch.randn(4, 3),), verify=True, **options)
    assert program.verification is not None and not program.verification.ok
    assert (tmp_path / "m.onnx").exists()
    right = exported(Scale(), (torch.randn(4, 3),), verify="strict")
    assert right.verification is not None and right.verification.ok
    with pytest.raises(ValueError, match="neither a bool nor 'strict'"):
        exported(Scale(), (torch.randn(4, 3),), verify="hard")


def test_R17_tolerances_go_by_dtype_and_can_be_given(scale: atonnx.ONNXProgram) -> None:
    weight = np.array([1, 2, 3 + 3e-4], np.float32)
    scale.model.graph.initializers["weight"].const_value = ir.tensor(weight)
    x = torch.ones(4, 3)
    assert scale.verify((x,), sizes=()).ok  # 1e-4 times the largest magnitude
    assert not scale.verify((x,), sizes=(), atol=1e-4).ok
    assert scale.verify((x,), sizes=(), atol=4e-4).ok
    assert not scale.verify((x,), sizes=(), rtol=0.5e-4).ok
    assert scale.verify((x,), sizes=(), rtol=2e-4).ok
    found = scale.verify((x,), sizes=(), atol=1e-5, rtol=1e-6)
    assert "allowed 1e-05 + 1e-06 x |expected|" in str(found)


def test_R17_integers_are_exact_unless_a_tolerance_is_given() -> None:
    class Rounded(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    def more(op: Any, self: Any, other: Any) -> Any:
        return op.Add(op.Mul(self, other), 1)

    program = exported(
        Rounded(), (torch.arange(3),), custom_translation_table={torch.ops.aten.mul.Tensor: more}
    )
    assert not program.verify().ok
    assert program.verify(atol=1).ok


def test_R18_what_the_runtime_says_is_in_the_result(scale: atonnx.ONNXProgram) -> None:
    found = freeze(scale, 7).verify()
    assert not found.ok and not found.outputs
    assert "Reshape" in found.runtime_error and "ONNX Runtime: " in str(found)


def test_R18_a_size_frozen_in_is_found(scale: atonnx.ONNXProgram) -> None:
    found = freeze(scale, 4).verify()
    assert found.runs[0].ok and not found.ok
    assert all("Reshape" in run.runtime_error for run in found.runs[1:])
    assert freeze(exported(Scale(), (torch.randn(4, 3),), {0: "batch"}), 4).verify(sizes=()).ok


def test_R19_outputs_without_elements_agree_if_their_shapes_do() -> None:
    class Empty(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:0] * 2

    (out,) = exported(Empty(), (torch.randn(4, 3),)).verify().outputs
    assert out.ok and out.expected_shape == (0, 3) and out.max_abs == 0


def test_R20_differences_under_torchs_names(scale: atonnx.ONNXProgram) -> None:
    (out,) = wrong(scale).verify((torch.tensor([[1.0, 1, 0.5], [1, 1, 1]]),), sizes=()).outputs
    told = out.asdict()
    assert list(told) == [
        "name", "max_abs_diff", "max_rel_diff", "abs_diff_hist", "rel_diff_hist", "expected_dtype",
        "actual_dtype",
    ]  # fmt: skip
    assert told["name"] == "mul" and told["max_abs_diff"] == 1
    counts, bins = told["abs_diff_hist"]
    assert len(bins) == len(counts) + 1 and sum(counts) == 6
    assert counts[bins.index(0.0)] == 4 and counts[bins.index(0.1)] == 1 and counts[bins.index(1.0)] == 1


def test_R20_the_first_value_that_departs() -> None:
    class Steps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return self.fc(x).sin().exp().cos()

    def cosine(op: Any, self: Any) -> Any:
        return op.Cos(self)

    with pytest.warns(UserWarning):
        program = exported(
            Steps(), (torch.randn(2, 3),), custom_translation_table={torch.ops.aten.exp.default: cosine}
        )
    found = program.verify(intermediates=True).runs[0]
    assert {value.name: value.ok for value in found.intermediates} == {
        "linear": True, "sin": True, "exp": False, "cos": False,
    }  # fmt: skip
    assert "the first value that departs: exp float32[2, 3]: max abs" in str(program.verification)
    assert not program.verify(sizes=()).runs[0].intermediates


def test_R21_the_session_is_released(scale: atonnx.ONNXProgram) -> None:
    scale.verify()
    assert scale._session is None
    scale.model.graph[0].op_type = "Mull"
    scale.verify()
    assert scale._session is None


# ---------------------------------------------------------------- sizes


def sizes(program: atonnx.ONNXProgram) -> list[dict[str, int]]:
    found = program.verify()
    assert found.ok, str(found)
    return [dict(run.sizes) for run in found.runs[1:] if not run.skipped]


def test_all_axes_change_by_different_amounts() -> None:
    class Join(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x @ y

    args = (torch.randn(4, 6), torch.randn(6, 4))
    found = sizes(exported(Join(), args, {0: "a", 1: "b"}, {0: "b", 1: "c"}))
    assert found == [{"a": 5, "b": 8, "c": 7}, {"a": 3, "b": 4, "c": 3}, {"a": 1, "b": 1, "c": 1}]


def test_sizes_stay_in_the_programs_ranges_and_derived_ones_follow() -> None:
    class Shift(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x[1:] + y

    length = Dim("length", min=3, max=5)
    program = exported(Shift(), (torch.randn(4), torch.randn(3)), {0: length}, {0: length - 1})
    found = program.verify()
    assert found.ok
    assert [run.outputs[0].actual_shape for run in found.runs] == [(3,), (4,), (2,)]


def test_sizes_that_eager_refuses_are_skipped_and_said() -> None:
    class Eighths(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            return x.view(8, x.shape[0] // 8), y * 2

    program = exported(Eighths(), (torch.randn(16), torch.randn(3)), {0: "even"}, {0: "other"})
    found = program.verify()
    assert found.ok
    run: list[Run] = [run for run in found.runs[1:] if not run.skipped]
    assert {32, 8} <= {r.sizes["even"] for r in run} and {6, 2} <= {r.sizes["other"] for r in run}
    skipped = program.verify(sizes=[{"even": 7}]).runs[1]
    assert skipped.skipped and skipped.ok and not skipped.outputs
    assert "skipped  even=7, other=3: " in str(program.verification)


def test_axes_that_agree_in_the_example_agree_in_the_runs() -> None:
    class Cached(nn.Module):
        def forward(self, new: torch.Tensor, past: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            keys = torch.cat([past, new], 1)
            torch._check(keys.shape[1] == mask.shape[1])
            torch._check(keys.shape[0] == mask.shape[0])
            return keys * mask

    dynamic = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    args = (torch.randn(2, 3), torch.randn(2, 6), torch.randn(2, 9))
    captured = torch.export.export(
        Cached(), args, dynamic_shapes=[dynamic] * 3, prefer_deferred_runtime_asserts_over_guards=True
    )
    found = exported(captured, ()).verify()  # type: ignore[arg-type]
    assert found.ok and not any(run.skipped for run in found.runs)
    assert [run.outputs[0].actual_shape for run in found.runs][:3] == [(2, 9), (3, 14), (2, 7)]


def test_sizes_of_ones_own() -> None:
    program = exported(Scale(), (torch.randn(4, 3),), {0: "batch"})
    program.rename_axes({"batch": "rows"})
    found = program.verify(sizes=[{"rows": 9}, {"rows": 1}])
    assert [run.sizes for run in found.runs] == [{}, {"rows": 9}, {"rows": 1}]
    with pytest.raises(ValueError, match="no dynamic axis 'batch' that can be 9; there are: rows") as info:
        program.verify(sizes=[{"batch": 9}])
    assert isinstance(info.value, OnnxExporterError)


def test_indices_stay_valid_and_floats_in_their_range() -> None:
    class Lookup(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(5, 3)

        def forward(self, ids: torch.Tensor, p: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return torch.where(mask[:, None], self.table(ids), p.log()[:, None])

    args = (torch.tensor([4, 0, 3]), torch.rand(3) + 0.1, torch.tensor([True, False, True]))
    program = exported(Lookup(), args, {0: "n"}, {0: "n"}, {0: "n"})
    assert sizes(program) == [{"n": 4}, {"n": 2}, {"n": 1}]
    assert all(out.max_abs < 1e-5 for run in program.verify().runs for out in run.outputs)


def test_dynamic_numbers_and_containers_and_complex_tensors() -> None:
    class Many(nn.Module):
        def forward(self, d: dict[str, torch.Tensor], n: int, k: float = 2.0, *, z: Any = None) -> Any:
            return d["b"][:, :n] + d["a"][:, :n] * k, z * 2

    args = ({"a": torch.randn(2, 9), "b": torch.randn(2, 9)}, 3)
    shapes = {"d": {"a": {0: "rows"}, "b": {0: "rows"}}, "n": Dim.DYNAMIC, "z": {0: "other"}}
    program = atonnx.export(
        Many().eval(), args, kwargs={"z": torch.randn(3, dtype=torch.complex64)}, dynamic_shapes=shapes
    )
    assert sizes(program)[0] == {"rows": 3, "n": 5, "other": 6}


def test_states_of_buffers_are_fed_and_compared() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.ones(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total += x.sum(0)
            return x * self.total

    model = Counter()
    program = exported(model, (torch.ones(2, 3),), {0: "batch"}, state="io")
    found = program.verify()
    assert found.ok and [out.name for out in found.outputs] == ["mul", "total_new"]
    assert model.total.tolist() == [1, 1, 1]
    x = torch.ones(2, 3)
    y, total = program(x, total=torch.full((3,), 10.0))
    assert total.tolist() == [12, 12, 12] and torch.equal(y, x * 12)
    with pytest.raises(TypeError, match="missing arguments: total"):
        program(x)
