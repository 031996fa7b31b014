"""A single node's decomposition: right at every size, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._decomp import decomposition_table

import atonnx
from atonnx.build import Builder, Value
from atonnx.build.decompose import Decomposer, Refusal
from atonnx.build.sizes import SizeFacts

aten = torch.ops.aten


def provider(overload: Any) -> Callable[..., Any] | None:
    found = decomposition_table.get(overload)
    if found is None and overload.has_kernel_for_dispatch_key(torch.DispatchKey.CompositeImplicitAutograd):
        found = overload.decompose
    return found


def captured(
    function: Callable[..., Any], args: tuple[Any, ...], target: Any, low: int = 0
) -> tuple[torch.fx.Node, SizeFacts]:
    """The node of ``target`` in a program with all dims dynamic, and the program's ranges."""

    class Model(torch.nn.Module):
        def forward(self, *inputs: Any) -> Any:
            return function(*inputs)

    dim = torch.export.Dim.DYNAMIC(min=low)
    shapes = tuple(dict.fromkeys(range(a.dim()), dim) for a in args)
    with torch.fx.experimental._config.patch(backed_size_oblivious=True):
        program = torch.export.export(Model(), args, dynamic_shapes=(shapes,), strict=False)
    (node,) = [n for n in program.graph.nodes if n.target is target]
    return node, SizeFacts(program.range_constraints)


def made(node: torch.fx.Node, facts: SizeFacts, table: dict[Any, Any] | None = None) -> Any:
    return Decomposer(table or {}, [provider], facts).decompose(node)


def env_of(node: torch.fx.Node) -> Any:
    return node.meta["val"].fake_mode.shape_env


def state(node: torch.fx.Node) -> tuple[Any, ...]:
    env = env_of(node)
    return (
        list(env.guards),
        dict(env.replacements),
        dict(env.var_to_range),
        {k: list(v) for k, v in env.deferred_runtime_asserts.items()},
        dict(env.axioms),
        set(env.divisible),
    )


@pytest.mark.parametrize(
    ("function", "target", "args", "other"),
    [
        (
            torch.addr,
            aten.addr.default,
            (torch.randn(3, 4), torch.randn(3), torch.randn(4)),
            (torch.randn(5, 2), torch.randn(5), torch.randn(2)),
        ),
        (torch.logit, aten.logit.default, (torch.rand(3, 4),), (torch.rand(1, 7),)),
        (
            lambda x: torch.nn.functional.pixel_shuffle(x, 2),
            aten.pixel_shuffle.default,
            (torch.randn(1, 8, 2, 3),),
            (torch.randn(2, 4, 5, 4),),
        ),
        (
            lambda a, b: torch.einsum("ij,jk->ki", a, b),
            aten.einsum.default,
            (torch.randn(3, 4), torch.randn(4, 5)),
            (torch.randn(2, 6), torch.randn(6, 1)),
        ),
        (
            lambda x: torch.stft(x, 16, 4, center=False, return_complex=True),
            aten.stft.default,
            (torch.randn(2, 64),),
            (torch.randn(3, 81),),
        ),
    ],
    ids=["addr", "logit", "pixel_shuffle", "einsum", "stft"],
)
def test_what_is_decomposed_is_right_at_another_size(
    function: Any, target: Any, args: tuple[Any, ...], other: tuple[Any, ...]
) -> None:
    node, facts = captured(function, args, target)
    graph_module = made(node, facts)
    if isinstance(graph_module, Refusal):
        pytest.fail(graph_module.reason)
    for inputs in (args, other):
        torch.testing.assert_close(graph_module(*inputs), function(*inputs))


def test_a_pool_that_divides_only_the_example_is_refused() -> None:
    node, facts = captured(
        lambda x: aten._adaptive_avg_pool2d(x, [3, 3]),
        (torch.randn(1, 2, 9, 9),),
        aten._adaptive_avg_pool2d.default,
    )
    refusal = made(node, facts)
    assert isinstance(refusal, Refusal)
    assert "holds only where" in refusal.reason


def test_a_size_turned_into_a_number_is_refused() -> None:
    node, facts = captured(torch.relu, (torch.randn(3, 4),), aten.relu.default)
    refusal = made(node, facts, {aten.relu.default: lambda x: x.reshape(int(x.shape[0]), -1).clamp(min=0)})
    assert isinstance(refusal, Refusal)


@pytest.mark.parametrize(
    "condition",
    [lambda n: n > 2, lambda n: n != 1, lambda n: n == 3, lambda n: n % 2 == 1],
    ids=["order", "not-one", "equal", "odd"],
)
def test_a_condition_on_a_size_is_refused(condition: Callable[[Any], Any]) -> None:
    node, facts = captured(torch.relu, (torch.randn(3, 4),), aten.relu.default)
    refusal = made(
        node, facts, {aten.relu.default: lambda x: x.clamp(min=0) if condition(x.shape[0]) else x * 0}
    )
    assert isinstance(refusal, Refusal)


def test_a_condition_that_the_ranges_imply_is_no_reason_to_refuse() -> None:
    node, facts = captured(torch.relu, (torch.randn(5, 4),), aten.relu.default, low=4)
    found = made(node, facts, {aten.relu.default: lambda x: x.clamp(min=0) if x.shape[0] > 3 else x})
    assert not isinstance(found, Refusal)


def test_results_of_another_size_are_refused() -> None:
    node, facts = captured(torch.relu, (torch.randn(3, 4),), aten.relu.default)
    refusal = made(node, facts, {aten.relu.default: lambda x: x[:2]})
    assert isinstance(refusal, Refusal)
    assert "freezes a size" in refusal.reason


def test_a_refusal_leaves_no_trace_and_is_repeated() -> None:
    node, facts = captured(torch.relu, (torch.randn(3, 4),), aten.relu.default)

    def frozen(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(min=0) if x.shape[0] == 3 else x

    before = state(node)
    first = made(node, facts, {aten.relu.default: frozen})
    assert state(node) == before
    assert str(node.meta["val"].shape[0]).startswith("s")
    # Another decomposer knows nothing of the first verdict; what torch keeps must not hide the guard.
    assert made(node, facts, {aten.relu.default: frozen}) == first
    assert state(node) == before


def test_equal_nodes_are_traced_once() -> None:
    calls = []

    def traced(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x.clamp(min=0)

    node, facts = captured(torch.relu, (torch.randn(3, 4),), aten.relu.default)
    decomposer = Decomposer({aten.relu.default: traced}, [], facts)
    assert decomposer.decompose(node) is decomposer.decompose(node)
    assert calls == [1]


def test_an_operator_that_is_kept_whole_is_not_decomposed() -> None:
    node, facts = captured(torch.logit, (torch.rand(3, 4),), aten.logit.default)
    assert isinstance(made(node, facts, {aten.logit.default: None}), Refusal)


def test_an_operator_that_decomposes_into_itself_is_refused() -> None:
    node, facts = captured(torch.relu, (torch.randn(3, 4),), aten.relu.default)
    refusal = made(node, facts, {aten.relu.default: lambda x: torch.relu(x) + 0})
    assert isinstance(refusal, Refusal)
    assert "itself" in refusal.reason


def test_a_decomposition_that_fails_is_a_refusal_that_says_why() -> None:
    node, facts = captured(torch.relu, (torch.randn(3, 4),), aten.relu.default)
    refusal = made(node, facts, {aten.relu.default: lambda x: x.no_such_attribute})
    assert isinstance(refusal, Refusal)
    assert "no_such_attribute" in refusal.reason


def test_a_row_may_decompose_after_it_translated_a_graph_of_its_own() -> None:
    """The decomposition's arguments are the node's, whatever was translated meanwhile."""

    class Inner(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return aten.logit(x)

    inner = torch.export.export(Inner(), (torch.rand(3),)).graph_module

    def row(op: Builder, self: Value, eps: float | None = None) -> Any:
        (doubled,) = op.inline(inner, (self,))
        return op.Add(op.decompose(), doubled)

    x = torch.rand(3)
    program = atonnx.export(Model(), (x,), custom_translation_table={aten.logit.default: row})
    torch.testing.assert_close(program(x)[0], torch.logit(x) + 2 * x)
