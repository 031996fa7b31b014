"""The testing kit: what it accepts, what it refuses, and whose fault it says it is."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atonnx import plugins
from atonnx import testing as kit
from atonnx.dispatch import OpsetPack, Table
from atonnx.errors import PluginError, UnsupportedOpError
from atonnx.testing import _torch as kit_torch
from atonnx.testing import conformance, runtimes
from atonnx.testing import op_samples as samples_module
from atonnx.testing.compare import difference
from atonnx.testing.profiles import register_profiles

aten = torch.ops.aten
NEWEST = 28
table = Table(__name__)


@table.translate(aten.relu.default)
def relu(op, self):
    """Relu."""
    return op.Relu(self)


@table.translate(aten.gelu.default)
def gelu(op, self, *, approximate="none"):
    """Gelu."""
    return op.Gelu(self, approximate=approximate)


@table.translate(aten.add.Tensor)
def add(op, self, other, *, alpha=1):
    """Add; wrong where alpha is not 1."""
    return op.Add(self, other)


@table.translate(aten.sub.Tensor)
def sub(op, self, other, *, alpha=1):
    """Refused."""
    raise UnsupportedOpError.here(op, "subtraction")


@table.translate(aten.view.default)
def view(op, self, size):
    """Reshape."""
    return op.reshape(self, op.out.dims)


@table.translate(aten.expand.default)
def expand(op, self, size, *, implicit=False):
    """Expand."""
    return op.expand(self, op.out.dims)


@table.translate(aten.ones.default)
def ones(op, size, *, dtype=None, layout=None, device=None, pin_memory=None):
    """Expand of 1."""
    return op.Expand(op.const(1, op.out.dtype), op.shape(op.out.dims))


@table.translate(aten.nonzero.default)
def nonzero(op, self):
    """NonZero, the other way around."""
    return op.Transpose(op.NonZero(self), perm=[1, 0])


@table.translate(aten.max.dim)
def max_dim(op, self, dim, keepdim=False):
    """TopK of one, of tensors that keep the dim."""
    return op.TopK(self, [1], axis=dim)


@table.translate(aten.bernoulli.default)
def bernoulli(op, self, *, generator=None):
    """Bernoulli."""
    return op.Bernoulli(self, dtype=op.out.dtype)


@table.translate(aten.sigmoid.default)
def sigmoid(op, self):
    """Something else than Sigmoid."""
    return op.Tanh(self)


@table.translate(aten.real.default, complex="only")
def real(op, self):
    """The first of each pair."""
    return op.Squeeze(op.Slice(self, [0], [1], [-1]), [-1])


def check(overload: Any, *args: Any, **kwargs: Any) -> kit.Checked:
    return kit.check_op(overload, *args, **{"opset": NEWEST, "rows": table.rows, **kwargs})


def failure(overload: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        check(overload, *args, **kwargs)
    return str(caught.value)


def input_dims(checked: kit.Checked) -> list[list[Any]]:
    return [[d if isinstance(d, int) else "?" for d in value.shape] for value in checked.model.graph.inputs]


# ---------------------------------------------------------------- what is dynamic


def test_every_dim_is_symbolic_by_default():
    checked = check(aten.relu.default, torch.randn(2, 1, 0))
    assert input_dims(checked) == [["?", "?", "?"]]
    assert checked.dynamic == ((0, 1, 2),)
    assert checked.runtime == "onnxruntime"


def test_dims_can_be_static():
    assert input_dims(check(aten.relu.default, torch.randn(2, 3), dynamic=False)) == [[2, 3]]


def test_a_dim_that_broadcasts_is_static_and_the_others_are_not():
    checked = check(aten.add.Tensor, torch.randn(2, 3), torch.randn(1, 3))
    assert input_dims(checked) == [["?", "?"], [1, "?"]]


def test_dims_that_must_be_equal_have_one_symbol():
    shapes = [
        [str(d) for d in value.shape]
        for value in check(aten.add.Tensor, torch.randn(2, 3), torch.randn(2, 3)).model.graph.inputs
    ]
    assert shapes[0] == shapes[1]


def test_a_dim_that_a_number_freezes_is_static():
    checked = check(aten.expand.default, torch.randn(2, 3), [4, 2, 3])
    assert checked.dynamic != ((0, 1),)


def test_the_same_model_is_run_at_other_sizes():
    check(
        aten.add.Tensor,
        torch.randn(2, 3),
        torch.randn(2, 3),
        also=[(torch.randn(5, 0),) * 2, (torch.randn(1, 1), torch.randn(1, 1))],
    )


def test_sizes_that_do_not_fit_get_a_model_of_their_own():
    check(aten.add.Tensor, torch.randn(2, 3), torch.randn(1, 3), also=[(torch.randn(4), torch.randn(2, 4))])
    check(aten.add.Tensor, torch.randn(2), 1, also=[(torch.randn(2), 2)])


def test_a_size_argument_is_an_expression():
    x, y = torch.randn(2, 6), torch.randn(4, 4)
    checked = check(aten.view.default, x, [kit.Size(x, 0) * 2, -1], also=[(y, [kit.Size(y, 0) * 2, -1])])
    assert checked.dynamic == ((0, 1),)


def test_a_size_of_another_tensor_makes_an_input():
    x, y = torch.randn(2), torch.randn(0)
    checked = check(aten.ones.default, [kit.Size(x, 0), 3], also=[([kit.Size(y, 0), 3],)])
    assert input_dims(checked) == [["?"]]


def test_a_weight_is_an_initializer_of_static_size():
    checked = check(aten.add.Tensor, torch.randn(2, 3), kit.Weight(torch.randn(3)))
    assert input_dims(checked) == [["?", 3]]
    assert len(checked.model.graph.initializers) == 1


# ------------------------------------------------------------------ what is compared


def test_a_data_dependent_size_is_compared():
    check(aten.nonzero.default, torch.tensor([[1.0, 0.0], [2.0, 3.0]]))


def test_all_of_several_results_are_compared_or_those_asked_for():
    x = torch.randn(2, 5)
    assert len(check(aten.max.dim, x, 1, True).model.graph.outputs) == 2
    assert len(check(aten.max.dim, x, 1, True, outputs=[1]).model.graph.outputs) == 1


def test_an_in_place_overload_is_served_by_the_functional_row_and_leaves_its_argument():
    x = torch.tensor([-1.0, 2.0])
    check(aten.relu_.default, x)
    assert x.tolist() == [-1.0, 2.0]


def test_random_values_are_not_compared():
    check(aten.bernoulli.default, torch.full((3, 4), 0.5))


def test_complex_tensors_are_pairs():
    check(aten.real.default, torch.randn(2, 3, dtype=torch.complex64))


def test_a_tensor_given_twice_is_one_input():
    x = torch.randn(3)
    assert len(check(aten.add.Tensor, x, x).model.graph.inputs) == 1


def test_dtype_and_shape_are_part_of_the_result():
    one = torch.ones(2)
    assert "dtype" in difference(one, one.double())
    assert "shape" in difference(one, torch.ones(1, 2))


def test_nan_equals_nan_and_infinities_are_exact():
    nan, inf = float("nan"), float("inf")
    assert not difference(torch.tensor([nan, inf]), torch.tensor([nan, inf]))
    assert difference(torch.tensor([nan]), torch.tensor([0.0]))
    assert difference(torch.tensor([inf]), torch.tensor([3e38]))
    assert difference(torch.tensor([inf]), torch.tensor([-inf]), atol=inf)


def test_integers_are_exact_beyond_float64():
    large = 2**60
    assert difference(torch.tensor([large]), torch.tensor([large + 1]), atol=10)


def test_a_half_result_is_wrong_only_if_it_is_further_from_the_exact_one():
    eager, ours = torch.tensor([1.0]).half(), torch.tensor([1.01]).half()
    assert difference(eager, ours)
    assert not difference(eager, ours, exact=torch.tensor([1.008]).double())
    assert difference(eager, ours, exact=torch.tensor([1.001]).double())


def test_ulps_are_steps_of_the_dtype():
    one = torch.tensor([1.0])
    step = torch.finfo(torch.float32).eps
    assert not difference(one, one + 2 * step, atol=kit.ulps(2))
    assert difference(one, one + 4 * step, atol=kit.ulps(2))


# ---------------------------------------------------------------------- failures


def test_a_wrong_row_is_our_fault():
    text = failure(aten.add.Tensor, torch.randn(2), torch.randn(2), alpha=3)
    assert "aten.add.Tensor at opset 28: 2 of 2 elements differ" in text
    assert "whose fault: ours" in text
    assert "Add (" in text


def test_a_wrong_runtime_is_said_to_be_and_can_be_known(monkeypatch):
    monkeypatch.setattr(runtimes.Session, "run", lambda self, inputs: [torch.full((2,), 7.0)])
    x = torch.tensor([1.0, 2.0])
    assert "whose fault: ONNX Runtime's" in failure(aten.relu.default, x)
    check(aten.relu.default, x, ort_gap="it says 7")
    assert any(gap.reason == "it says 7" for gap in kit.gaps)


def test_a_known_gap_excuses_no_wrong_row():
    assert "whose fault: ours" in failure(aten.sigmoid.default, torch.ones(2), ort_gap="whatever")


def test_the_failure_has_a_script_that_makes_the_same_arguments():
    x = torch.tensor([[1.5, float("nan")], [float("-inf"), -0.0]])
    text = failure(aten.add.Tensor, x, torch.ones(1, 2), alpha=2)
    lines = [line[2:] for line in text.split("to see it again:\n")[1].splitlines()]
    assert lines[-1] == "kit.check_op(torch.ops.aten.add.Tensor, t0, t1, alpha=2, opset=28)"
    made: dict[str, Any] = {}
    exec("\n".join(lines[:-1]), made)
    assert torch.equal(made["t0"].nan_to_num(), x.nan_to_num())
    assert made["t1"].dtype == torch.float32
    assert made["t1"].shape == (1, 2)


def test_a_refusal_and_a_missing_row_are_raised_as_they_are():
    with pytest.raises(UnsupportedOpError, match="subtraction"):
        check(aten.sub.Tensor, torch.ones(2), torch.ones(2))


@pytest.mark.parametrize(
    ("expect", "fits"),
    [("Relu:1", True), ("Relu:1!", True), ("Relu:2", False), ("Cast:0", True), ("Cast:0!", False)],
)
def test_expected_operators(expect, fits):
    if fits:
        check(aten.relu.default, torch.ones(2), expect=expect)
    else:
        assert "the graph has Relu:1" in failure(aten.relu.default, torch.ones(2), expect=expect)


def test_an_expectation_that_cannot_be_read_is_an_error():
    with pytest.raises(ValueError, match="Name:count"):
        check(aten.relu.default, torch.ones(2), expect="Relu")


# -------------------------------------------------------------------------- gaps


def test_a_missing_kernel_is_recorded_and_the_reference_evaluator_decides():
    checked = check(aten.relu.default, torch.randn(3).bfloat16())
    assert checked.runtime == "reference"
    assert kit.Gap("Relu", 14, ("bfloat16",)) in kit.gaps
    assert "onnx.reference, as ONNX Runtime lacks" in failure(aten.sigmoid.default, torch.ones(3).bfloat16())


# -------------------------------------------------------------------- strategies


@given(kit.opsets(), kit.opsets(17, 20))
def test_opsets_are_in_range(opset, few):
    assert 11 <= opset <= NEWEST
    assert 17 <= few <= 20


@given(st.data())
def test_dims_are_valid(data):
    rank = data.draw(st.integers(0, 4))
    x = torch.zeros((1,) * rank)
    x.sum(data.draw(kit.dims(rank)))
    x.sum(data.draw(kit.dim_lists(rank)))


@given(kit.broadcastable(3))
def test_shapes_broadcast(shapes):
    torch.broadcast_shapes(*shapes)


@given(kit.tensor(kit.dtypes("all"), kit.shapes(max_rank=2), low=2, high=5))
def test_bounds_are_kept(x):
    assert x.dtype == torch.bool or bool(((x >= 2) & (x <= 5)).all())


@given(kit.tensor(kit.dtypes("float", "complex"), kit.shapes(), finite=True))
def test_finite_is_kept(x):
    assert bool(x.isfinite().all())


@given(kit.tensors(kit.dtypes("int"), kit.broadcastable(2)))
def test_tensors_share_a_dtype_and_integers_are_small(pair):
    assert pair[0].dtype == pair[1].dtype
    assert all(int(x.long().abs().max()) < 10 for x in pair if x.numel())


def test_special_values_come():
    hypothesis.find(
        kit.tensor(torch.float32, (3,)),
        lambda x: bool(x.isnan().any()),
        settings=hypothesis.settings(max_examples=500, database=None),
    )


def test_a_dtype_that_eager_does_not_take_is_no_example():
    seen = []

    @hypothesis.settings(max_examples=20, database=None, derandomize=True)
    @given(kit.dtypes(torch.float32, torch.int64))
    def property_test(dtype):
        check(aten.gelu.default, torch.zeros(2, dtype=dtype))
        seen.append(dtype)

    property_test()
    assert set(seen) == {torch.float32}


def test_profiles():
    register_profiles()
    assert hypothesis.settings.get_profile("ci").max_examples == 20
    assert hypothesis.settings.get_profile("all").max_examples == 200
    assert hypothesis.settings.get_profile("ci").derandomize


# ------------------------------------------------------------- samples, conformance


class Pack:
    """A plugin object with hooks."""

    ATONNX_API = (1, 0)

    def __init__(self, **hooks: Any) -> None:
        for name, answer in hooks.items():
            setattr(self, name, plugins.hookimpl(answer))


class Point:
    """An entry point of a plugin object."""

    name = "pack"
    value = "pack"
    dist = None

    def __init__(self, pack: Any) -> None:
        self._pack = pack

    def load(self) -> Any:
        return self._pack


@pytest.fixture
def problems(monkeypatch):
    def found(**hooks: Any) -> list[str]:
        loaded = plugins.load(entry_points=[Point(Pack(**hooks))])
        for module in (conformance, samples_module):
            monkeypatch.setattr(module, "load", lambda: loaded)
        return kit.check_plugin("pack")

    return found


def tables(*functions: Any) -> Table:
    made = Table("pack")
    for target, function in functions:
        made.translate(target)(function)
    return made


def test_check_plugin_names_rows_without_docstring_sample_or_the_schema_s_parameters(problems):
    def bare(op, self):
        return op.Relu(self)

    def other(op, x):
        """Relu."""

    found = problems(
        atonnx_translations=lambda: tables((aten.relu.default, bare), (aten.relu6.default, other))
    )
    text = "\n".join(found)
    assert "aten::relu: no docstring" in text
    assert "aten::relu: no sample" in text
    assert "takes (x), aten.relu6.default has (self)" in text


def test_check_plugin_finds_samples_without_row_and_undocumented_opset_rows(problems):
    pack = OpsetPack("pack")
    pack.below(20, "Gelu")(lambda op, x: x)
    found = problems(
        atonnx_opset_packs=lambda: pack,
        atonnx_op_samples=lambda: [
            kit.OpSample(aten.mm.default, lambda: (torch.ones(2, 2), torch.ones(2, 2)))
        ],
    )
    assert any("ONNX Gelu below 20: no docstring" in problem for problem in found)
    assert "aten::mm: a sample, but no row" in found


def test_check_plugin_translates_samples_at_the_ends_of_what_their_rows_claim(problems, monkeypatch):
    opsets = []
    monkeypatch.setattr(conformance, "translate_op", lambda *args, opset, **kwargs: opsets.append(opset))
    made = Table("pack")
    made.translate(aten.relu.default, since=13)(relu)
    assert not problems(
        atonnx_translations=lambda: made,
        atonnx_op_samples=lambda: [kit.OpSample(aten.relu.default, (torch.ones(2),))],
    )
    assert opsets == [13, NEWEST]


def test_check_plugin_takes_symbolic_sizes_for_the_first_sample_of_an_operator(problems, monkeypatch):
    seen = []
    monkeypatch.setattr(conformance, "translate_op", lambda *args, dynamic, **kwargs: seen.append(dynamic))
    made = Table("pack")
    made.translate(aten.relu.default, since=NEWEST)(relu)
    sample = kit.OpSample(aten.relu.default, (torch.ones(2),))
    assert not problems(atonnx_translations=lambda: made, atonnx_op_samples=lambda: [sample, sample])
    assert seen == [True, False]


def test_tracing_is_quiet(recwarn, caplog):
    with kit_torch.tracing(kit_torch.fake_mode()):
        warnings.warn("of torch's own code", stacklevel=1)
        logging.getLogger("torch.fx.experimental.symbolic_shapes").warning("failed during evaluate_expr")
    assert not recwarn.list and not caplog.records


def test_check_plugin_of_an_unknown_name_is_an_error():
    with pytest.raises(PluginError, match="no plugin is named nobody"):
        kit.check_plugin("nobody")


def test_a_list_of_samples_makes_no_tensors():
    def never() -> Any:
        raise RuntimeError("made")

    sample = kit.OpSample(aten.relu.default, never, opsets=(13, 17))
    assert [opset for opset in (12, 13, 17, 18) if sample.serves(opset)] == [13, 17]
    with pytest.raises(RuntimeError, match="made"):
        sample.made_args()


# ---------------------------------------------------------------- the pytest plugin


def test_the_pytest_plugin_imports_neither_torch_nor_hypothesis():
    code = (
        "import sys, atonnx.testing.pytest_plugin; "
        "print([name for name in ('torch', 'hypothesis', 'onnx', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_installed_packs_samples_are_tests_when_asked(tmp_path):
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": ""}
    (tmp_path / "test_other.py").write_text("def test_other(): raise SystemExit\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA"]
    done = subprocess.run(
        [*command, "--atonnx-samples", "custom_ops_example", "--atonnx-gaps", "."],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "custom_ops_example::mylib::clamp_scale" in done.stdout, done.stdout + done.stderr
    assert "test_other" not in done.stdout
    assert done.returncode == 0, done.stdout
