"""Weights are referred to, never copied; derived weights are recipes."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from atonnx.build.weights import Derived, Recipe, Transposed, Weight, leaves, require_data
from atonnx.errors import OnnxExporterError

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.uint16,
    torch.int32,
    torch.int64,
]


@dataclass(frozen=True)
class Scaled(Recipe):
    """A row for each factor."""

    by: float

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        weight, factors = sources
        return weight * factors[:, None] * self.by

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        weight, factors = sources
        shape = tape.initializer(ir.tensor(np.array([-1, 1]), name="shape"))
        by = tape.initializer(ir.tensor(np.float32(self.by), name="by"))
        return tape.op("Mul", [tape.op("Mul", [weight, tape.op("Reshape", [factors, shape])]), by])


def written(tensor: Weight | Derived) -> bytes:
    file = BytesIO()
    tensor.tofile(file)
    return file.getvalue()


def raw(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def sample(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.arange(torch.Size(shape).numel()).reshape(shape).remainder(7).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (5, 3), (2, 1, 3)], ids=str)
def test_bytes_are_those_of_the_tensor(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = sample(dtype, *shape)
    weight = Weight(tensor, "w")
    assert weight.dtype == ir.tensor_adapters.from_torch_dtype(dtype)
    assert weight.shape.numpy() == shape
    assert weight.nbytes == tensor.nbytes
    assert weight.tobytes() == written(weight) == raw(tensor)
    assert weight.numpy().tobytes() == raw(tensor)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(200, 130).t(),
        torch.randn(130)[::2],
        torch.randn(3, 70, 5).permute(2, 0, 1),
        torch.randn(1, 40, 40).transpose(1, 2),
        torch.randn(3, 400, 300).transpose(1, 2),
        torch.randn(5, 1).expand(5, 4),
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.randn(3, 4, dtype=torch.complex64).imag,
    ],
    ids=lambda t: f"{list(t.shape)} {list(t.stride())}",
)
def test_bytes_of_what_is_not_contiguous(tensor: torch.Tensor) -> None:
    assert written(Weight(tensor, "w")) == raw(tensor)


def test_a_contiguous_weight_is_written_without_a_copy() -> None:
    tensor = torch.zeros(1000)
    starts = []

    class File(BytesIO):
        def write(self, data: memoryview) -> int:  # type: ignore[override]
            starts.append(np.frombuffer(data, np.uint8).ctypes.data)
            return len(data)

    Weight(tensor, "w").tofile(File())
    assert starts == [tensor.data_ptr()]


def test_changes_of_the_model_show_until_the_bytes_are_written() -> None:
    tensor = torch.zeros(4)
    weight = Weight(torch.nn.Parameter(tensor), "w")
    tensor += 1
    assert weight.numpy().tolist() == [1, 1, 1, 1]


def test_a_complex_weight_is_stored_as_pairs() -> None:
    tensor = torch.tensor([1 + 2j, 3 - 4j])
    for given in (tensor, tensor.conj()):
        weight = Weight(given, "w")
        assert (weight.dtype, weight.shape.numpy()) == (ir.DataType.FLOAT, (2, 2))
        assert weight.tobytes() == raw(torch.view_as_real(given.resolve_conj()))


@pytest.mark.parametrize("perm", [(1, 0, 2), (2, 1, 0), (0, -1, 1)])
def test_a_transposed_weight_is_a_recipe(perm: tuple[int, ...]) -> None:
    tensor = torch.randn(130, 3, 70)
    derived = Transposed(Weight(tensor, "w"), perm)
    assert derived.shape.numpy() == tensor.permute(perm).shape
    assert written(derived) == raw(tensor.permute(perm))
    tensor.zero_()
    assert not derived.numpy().any()


def test_perm_must_order_the_axes() -> None:
    with pytest.raises(ValueError, match="axes") as info:
        Transposed(Weight(torch.ones(2, 3), "w"), (0, 0))
    assert isinstance(info.value, OnnxExporterError)


def test_recipes_nest_and_take_constants() -> None:
    tensor = torch.randn(3, 2)
    factors = np.array([1.0, 2.0], np.float32)
    derived = Derived(Scaled(2.0), Transposed(Weight(tensor, "w")), ir.tensor(factors), name="d")
    assert derived.shape.numpy() == (2, 3)
    assert torch.equal(derived.data(), tensor.t() * torch.tensor([[2.0], [4.0]]))
    assert [leaf.source for leaf in leaves(derived)] == ["w"]
    with pytest.raises(RuntimeError):
        Derived(Scaled(2.0), Weight(torch.ones(3, 2), "w"), Weight(torch.ones(4), "f"))


def test_with_weights_runs_recipes_again() -> None:
    weight = Weight(torch.zeros(3, 2), "w", aliases=("tied.w",))
    derived = Transposed(weight, name="d")
    new = torch.randn(3, 2)
    assert torch.equal(derived.with_weights({"tied.w": new}).data(), new.t())
    assert derived.with_weights({"tied.w": new}).name == "d"
    assert derived.with_weights({"other": new}) is derived
    assert not derived.numpy().any()


@pytest.mark.parametrize("new", [torch.zeros(2, 3), torch.zeros(3, 2, dtype=torch.float64)])
def test_with_weights_checks_shape_and_dtype(new: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="'w' is float.*the model has float32") as info:
        Weight(torch.zeros(3, 2), "w").with_weights({"w": new})
    assert isinstance(info.value, OnnxExporterError)


def test_tied_names_must_hold_the_same() -> None:
    weight = Weight(torch.zeros(3), "a", aliases=("b",))
    nan = torch.tensor([1.0, torch.nan, 0.0])
    assert weight.with_weights({"a": nan, "b": nan.clone()}).tensor is nan
    with pytest.raises(ValueError, match="'a' and 'b' are one tied weight"):
        weight.with_weights({"a": torch.zeros(3), "b": torch.ones(3)})


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.empty(3, 4)


@pytest.mark.parametrize("tensor", [fake(), torch.empty(3, 4, device="meta")], ids=["fake", "meta"])
def test_weights_without_data_say_what_to_do(tensor: torch.Tensor) -> None:
    derived = Transposed(Weight(tensor, "fc.weight"))
    assert derived.shape.numpy() == (4, 3)
    for ask in (derived.tobytes, derived.numpy, lambda: require_data(derived)):
        with pytest.raises(TypeError, match=r"'fc.weight' has no data.*\n.*apply_weights") as info:
            ask()
        assert isinstance(info.value, OnnxExporterError)


def test_sparse_weights_are_refused() -> None:
    with pytest.raises(TypeError, match="sparse"):
        Weight(torch.eye(3).to_sparse(), "w")


def test_a_weight_can_be_a_const_value() -> None:
    value = ir.Value(name="w", const_value=Weight(torch.ones(2), "w"))
    graph = ir.Graph([], [], nodes=[], initializers=[value])
    assert "Weight<FLOAT,[2]>('w')" in str(graph)
    assert isinstance(value.const_value, ir.TensorProtocol)
