"""``InputObserver``, row by row."""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

import atonnx
from atonnx.errors import OnnxExporterError, OnnxExporterWarning

DYNAMIC = torch.export.Dim.DYNAMIC
BOTH = {0: DYNAMIC, 1: DYNAMIC}


class Add(nn.Module):
    def forward(self, x, y=None, z=None):
        result = x
        if y is not None:
            result = result + y
        return result if z is None else result * z


def call(args=(), **kwargs):
    return args if isinstance(args, tuple) else (args,), kwargs


def observe(model, *calls, observer=None, **options):
    """An observer that saw the calls, given as ``call(...)``."""
    observer = observer or atonnx.InputObserver()
    with observer(model, **options):
        for args, kwargs in calls:
            model(*args, **kwargs)
    return observer


def rows_and_columns(*sizes):
    return [call((torch.randn(size), torch.randn(1, size[1]))) for size in sizes]


THREE = ((5, 6), (7, 7), (7, 8))


def test_I1_value_if_missing_is_a_dict_by_name_or_place():
    assert list(inspect.signature(atonnx.InputObserver).parameters) == ["value_if_missing"]
    model = Add()
    for key in ("y", 1):
        observer = atonnx.InputObserver({key: torch.zeros(0, 6)})
        observe(model, call(torch.randn(2, 6)), observer=observer)
        assert observer.infer_arguments(flat=True)[1].shape == (0, 6)


def test_I2_I18_calls_are_watched_and_forward_is_its_own_again():
    model = Add()
    observer = atonnx.InputObserver()
    assert list(inspect.signature(observer.__call__).parameters) == ["model", "store_n_calls", "method_name"]
    before = inspect.signature(model.forward)
    x = torch.randn(2, 3)
    with observer(model) as yielded:
        assert yielded is observer
        assert inspect.signature(model.forward) == before
        assert torch.equal(model(x, x), x + x)
    assert "forward" not in vars(model)
    with pytest.raises(ZeroDivisionError), observer(model):
        raise ZeroDivisionError
    assert "forward" not in vars(model)
    assert torch.equal(observer.info.flat_outputs[0][0], x + x)
    assert observer.info.latencies[0] > 0


def test_I2_a_method_of_the_instance_is_put_back():
    model = Add()
    model.forward = own = lambda x: x + 1
    observe(model, call(torch.zeros(2)))
    assert model.forward is own


def test_I2_another_method_is_watched():
    class Model(nn.Module):
        def encode(self, w):
            return w.abs()

        def forward(self, x, y):
            return x + self.encode(y)

    observer = observe(Model(), *rows_and_columns(*THREE), method_name="encode")
    assert observer.infer_dynamic_shapes() == ({1: DYNAMIC},)
    with (
        pytest.raises(ValueError, match="does not have a method 'decode'"),
        observer(Model(), method_name="decode"),
    ):
        pass


def test_I2_a_call_that_fails_is_not_stored():
    model = Add()
    observer = atonnx.InputObserver()
    with observer(model):
        with pytest.raises(RuntimeError):
            model(torch.randn(2), torch.randn(3))
        model(torch.randn(2), torch.randn(2))
    assert observer.num_obs() == 1


def test_I3_I4_three_calls_are_stored_for_each_with():
    calls = rows_and_columns(*THREE, (7, 9))
    observer = atonnx.InputObserver()
    assert observer.num_obs() == 0
    model = Add()
    observe(model, *calls, observer=observer)
    assert observer.num_obs() == len(observer.info) == 3
    observe(model, *calls[:2], observer=observer)
    assert observer.num_obs() == 5
    observe(model, *calls, observer=observer, store_n_calls=1)
    assert observer.num_obs() == 6


def test_I5_nothing_observed():
    observer = atonnx.InputObserver()
    program = atonnx.export(Add().eval(), (torch.randn(2),))
    with observer(Add()):
        pass
    for ask in (
        observer.infer_dynamic_shapes,
        observer.infer_arguments,
        lambda: observer.check_discrepancies(program),
    ):
        with pytest.raises(RuntimeError, match=r"No inputs were captured\.") as caught:
            ask()
        assert isinstance(caught.value, OnnxExporterError)


def test_I6_tensors_are_copied_before_and_after():
    class InPlace(nn.Module):
        def forward(self, x):
            return x.add_(1)

    x = torch.zeros(2, 3)
    model = InPlace()
    observer = atonnx.InputObserver()
    with observer(model):
        model(x).mul_(5)
    assert torch.equal(observer.infer_arguments(0)[0], torch.zeros(2, 3))
    assert torch.equal(observer.info.flat_outputs[0][0], torch.ones(2, 3))
    model(*observer.infer_arguments(0))
    assert torch.equal(observer.infer_arguments(0)[0], torch.zeros(2, 3))


def test_I7_positional_arguments_give_a_tuple():
    observer = observe(Add(), *rows_and_columns(*THREE))
    assert observer.infer_dynamic_shapes() == (BOTH, {1: DYNAMIC})
    assert isinstance(observer.infer_arguments(), tuple)


def test_I7_keywords_give_a_dict_in_the_order_of_the_parameters():
    model = Add()
    calls = [call(z=torch.randn(1, n), x=torch.randn(2, n), y=torch.randn(2, n)) for n in (3, 4)]
    observer = observe(model, *calls)
    shapes = observer.infer_dynamic_shapes()
    assert shapes == dict.fromkeys("xyz", {1: DYNAMIC})
    assert list(shapes) == list(observer.infer_arguments()) == ["x", "y", "z"]


def test_I7_a_mix_gives_a_dict():
    calls = [call((torch.randn(2, n), torch.randn(2, n)), z=torch.randn(1, n)) for n in (3, 4)]
    observer = observe(Add(), *calls)
    assert observer.infer_dynamic_shapes() == dict.fromkeys("xyz", {1: DYNAMIC})
    assert list(observer.infer_arguments()) == ["x", "y", "z"]


def test_I7_a_call_by_position_fits_one_by_name():
    observer = observe(Add(), call(torch.randn(5, 6)), call(x=torch.randn(5, 7), y=torch.randn(5, 7)))
    assert observer.infer_dynamic_shapes() == {"x": {1: DYNAMIC}, "y": {}}
    assert observer.infer_arguments(0)["x"].shape == (5, 6)
    assert [t is None for t in observer.info.inputs[0].aligned_flat_list] == [False, True]


def test_I7_tensors_with_other_ranks_are_refused():
    observer = observe(Add(), call(torch.randn(2)), call(torch.randn(2, 3)))
    with pytest.raises(RuntimeError, match="Positional argument 0 has tensors with 1 and 2 axes"):
        observer.infer_dynamic_shapes()


def test_I8_the_batch_axis_by_name_place_or_everywhere():
    calls = [call((torch.randn(2, n), torch.randn(2, n)), z=torch.randn(2, n)) for n in (3, 4)]
    observer = observe(Add(), *calls)
    one = {1: DYNAMIC}
    assert observer.infer_dynamic_shapes(True) == dict.fromkeys("xyz", BOTH)
    assert (
        observer.infer_dynamic_shapes(False) == observer.infer_dynamic_shapes() == dict.fromkeys("xyz", one)
    )
    assert observer.infer_dynamic_shapes({0, "z"}) == {"x": BOTH, "y": one, "z": BOTH}
    assert observer.infer_dynamic_shapes({"x"}) == observer.infer_dynamic_shapes("x")
    assert observer.infer_dynamic_shapes({"x"}) == {"x": BOTH, "y": one, "z": one}
    assert observer.infer_dynamic_shapes({2})["z"] == one
    with pytest.warns(OnnxExporterWarning, match="'mask', which is no argument"):
        observer.infer_dynamic_shapes({"mask"})


def test_I8_a_scalar_has_no_batch_axis():
    observer = observe(Add(), call((torch.randn(2), torch.tensor(1.0))))
    assert observer.infer_dynamic_shapes(True) == ({0: DYNAMIC}, {})


class Options(nn.Module):
    def forward(self, x, scale=1.0, negate=False, mode="plain", shift=None):
        result = -x * scale if negate else x * scale
        result = result if shift is None else result + shift
        return result.abs() if mode == "abs" else result


def test_I9_constants_that_are_not_the_default_are_kept():
    calls = [call(x=torch.randn(2, n), scale=2.0, negate=False, mode="abs") for n in (3, 4)]
    observer = observe(Options(), *calls)
    arguments = observer.infer_arguments()
    assert observer.infer_dynamic_shapes() == {"x": {1: DYNAMIC}, "scale": None, "mode": None}
    assert (arguments["scale"], arguments["mode"], len(arguments)) == (2.0, "abs", 3)


def test_I9_a_constant_whose_default_is_none_is_kept_too():
    observer = observe(Options(), call(x=torch.randn(2), shift=3))
    assert observer.infer_arguments()["shift"] == 3
    assert observer.infer_dynamic_shapes() == {"x": {}, "shift": None}


def test_I9_constants_by_position():
    model = Options().eval()
    for args in [(2.0,), (2.0, True), (1.0, True)]:
        observer = observe(model, *[call((torch.randn(2, n), *args)) for n in (3, 4)])
        program = atonnx.export(
            model, kwargs=observer.infer_arguments(), dynamic_shapes=observer.infer_dynamic_shapes()
        )
        assert all(row["SUCCESS"] for row in observer.check_discrepancies(program))
    assert list(observer.infer_arguments()) == ["x", "negate"]


def test_I9_constants_between_tensors_and_within_containers():
    class Model(nn.Module):
        def forward(self, x, n, pair):
            return x * n + pair[0] * pair[1]

    model = Model().eval()
    observer = observe(model, *[call((torch.randn(2, n), 3, [torch.randn(n), 0.5])) for n in (4, 5)])
    assert observer.infer_dynamic_shapes() == ({1: DYNAMIC}, None, [{0: DYNAMIC}, None])
    args = observer.infer_arguments()
    assert (args[1], args[2][1], len(observer.infer_arguments(flat=True))) == (3, 0.5, 2)
    program = atonnx.export(model, args, dynamic_shapes=observer.infer_dynamic_shapes())
    assert all(row["SUCCESS"] for row in observer.check_discrepancies(program))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (call(x=torch.ones(2), scale=2.0), call(x=torch.ones(2), scale=3.0)),
        (call(x=torch.ones(2), scale=2.0), call(x=torch.ones(2))),
        (call((torch.ones(2), 2.0)), call(torch.ones(2))),
        (call((torch.ones(2), 2.0, False, "plain", torch.ones(2))), call(torch.ones(2))),
        (call(x=torch.ones(2), shift=1), call(x=torch.ones(2), shift=torch.ones(2))),
    ],
    ids=["other value", "left out", "left out by position", "in the middle", "a tensor"],
)
def test_I10_calls_with_different_constants(first, second):
    observer = observe(Options(), first, second)
    with pytest.raises(RuntimeError, match="Two calls were made with different constant values"):
        observer.infer_dynamic_shapes()
    with pytest.raises(RuntimeError, match="Two calls were made with different constant values"):
        observer.infer_arguments()


def test_I10_a_class_that_holds_tensors_is_registered_first():
    @dataclass
    class Holder:
        x: torch.Tensor

    class Model(nn.Module):
        def forward(self, holder):
            return holder.x + 1

    observer = observe(Model(), *[call(Holder(torch.ones(2))) for _ in range(2)])
    with pytest.raises(OnnxExporterError, match="a Holder and a Holder.*\n.*register_pytree_node"):
        observer.infer_arguments()


def test_I11_optional_inputs_are_aligned_and_filled():
    calls = [call(torch.randn(5, 6)), *rows_and_columns((6, 7), (7, 8))]
    observer = observe(Add(), *calls)
    assert observer.infer_dynamic_shapes() == (BOTH, {1: DYNAMIC})
    x, y = observer.infer_arguments(0)
    assert (x.shape, y.shape) == ((5, 6), (1, 0))


def test_I11_none_and_empty_containers_are_absent():
    class Model(nn.Module):
        def forward(self, x, cache=None, mask=None):
            return x if not cache else x + cache[0] * cache[1]

    pairs = [[torch.randn(2, n), torch.randn(2, n)] for n in (3, 4)]
    observer = observe(
        Model(),
        call((torch.randn(2, 3), None)),
        call((torch.randn(2, 3), [])),
        *[call((torch.randn(2, p[0].shape[1]), p, None)) for p in pairs],
        store_n_calls=4,
    )
    assert observer.infer_dynamic_shapes() == ({1: DYNAMIC}, [{1: DYNAMIC}, {1: DYNAMIC}])
    assert [t.shape for t in observer.infer_arguments(0)[1]] == [(2, 0), (2, 0)]


def test_I11_the_largest_structure_of_each_argument_counts():
    """The call with all names has an empty cache, as the first of a language model has."""

    class Model(nn.Module):
        def forward(self, x, cache, pixels=None):
            return x

    observer = observe(
        Model(),
        call(x=torch.ones(1, 4), cache=[], pixels=torch.ones(1, 3, 8)),
        call(x=torch.ones(1, 1), cache=[torch.ones(1, 4)]),
        call(x=torch.ones(1, 1), cache=[torch.ones(1, 5)]),
    )
    assert observer.infer_dynamic_shapes() == {"x": {1: DYNAMIC}, "cache": [{1: DYNAMIC}], "pixels": {}}
    assert observer.infer_arguments()["cache"][0].shape == (1, 0)
    assert torch.equal(observer.infer_arguments(1)["pixels"], torch.zeros(1, 3, 8))


@pytest.mark.parametrize(
    "calls",
    [
        [call(x=torch.ones(2)), call(y=torch.ones(2))],
        [call(y=torch.ones(2)), call((torch.ones(2), torch.ones(2)))],
        [call((torch.ones(2), torch.ones(2))), call(torch.ones(2), z=torch.ones(2))],
    ],
    ids=["by name", "by position", "a mix"],
)
def test_I12_no_call_has_all_arguments(calls):
    class Model(nn.Module):
        def forward(self, x=None, y=None, z=None):
            return y if x is None else x

    observer = observe(Model(), *calls)
    with pytest.raises(RuntimeError, match="At least one call to the observed model must contain all"):
        observer.infer_dynamic_shapes()


def test_I13_another_number_of_tensors():
    class Model(nn.Module):
        def forward(self, x, y):
            return x - y[0]

    x, y = torch.randn(5, 7), torch.randn(1, 7)
    observer = observe(Model(), call((x, [y])), call((x, [y, y])))
    with pytest.raises(RuntimeError, match="Positional argument 1 has"):
        observer.infer_dynamic_shapes()
    observer = observe(Model(), call(x=x, y=[y]), call(x=x, y=[y, y]))
    with pytest.raises(RuntimeError, match="Named argument 'y' has"):
        observer.infer_dynamic_shapes()


def test_I13_other_keys_in_a_dict():
    class Model(nn.Module):
        def forward(self, x):
            return sum(x.values())

    observer = observe(Model(), call({"a": torch.ones(2)}), call({"b": torch.ones(2)}))
    with pytest.raises(RuntimeError, match="other keys"):
        observer.infer_arguments()
    a, b = torch.ones(2), torch.ones(3, 1)
    observer = observe(Model(), call({"a": a, "b": b}), call({"b": b.expand(3, 2), "a": a}))
    assert observer.infer_dynamic_shapes() == ({"a": {}, "b": {1: DYNAMIC}},)
    assert list(observer.infer_arguments(1)[0]) == ["a", "b"]


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second


pytree.register_pytree_node(
    Pair,
    lambda pair: ([pair.first, pair.second], ["first", "second"]),
    lambda values, context: Pair(*values),
    serialized_type_name="test_promises_observer.Pair",
    flatten_with_keys_fn=lambda pair: (
        [(pytree.GetAttrKey("first"), pair.first), (pytree.GetAttrKey("second"), pair.second)],
        ["first", "second"],
    ),
)
Point = namedtuple("Point", ["x", "y"])


def test_I14_nested_containers_and_classes():
    class Model(nn.Module):
        def forward(self, x, nest, pair, point):
            return x + nest["a"][0] + nest["b"][0][0] + pair.first * pair.second + point.x - point.y

    def arguments(n):
        t = [torch.randn(2, n) for _ in range(7)]
        return call((t[0], {"a": [t[1]], "b": ([t[2]],)}, Pair(t[3], t[4]), Point(t[5], t[6])))

    model = Model().eval()
    observer = observe(model, arguments(3), arguments(4))
    one = {1: DYNAMIC}
    shapes = observer.infer_dynamic_shapes()
    assert shapes == (one, {"a": [one], "b": ([one],)}, [one, one], Point(one, one))
    args = observer.infer_arguments()
    assert isinstance(args[2], Pair) and isinstance(args[3], Point)
    torch.export.export(model, args, dynamic_shapes=shapes)


def test_I14_an_exported_model_with_nested_arguments():
    class Model(nn.Module):
        def forward(self, x, nest, pair, point):
            return x + nest["a"][0] + nest["b"] * pair.first * pair.second * point.x - point.y["k"]

    def arguments(n):
        t = [torch.randn(2, n) for _ in range(7)]
        nest = {"a": [t[1]], "b": t[2]}
        return call(t[0], pair=Pair(t[3], t[4]), nest=nest, point=Point(t[5], OrderedDict(k=t[6])))

    model = Model().eval()
    observer = observe(model, arguments(3), arguments(4))
    program = atonnx.export(
        model, kwargs=observer.infer_arguments(), dynamic_shapes=observer.infer_dynamic_shapes(True)
    )
    assert all(row["SUCCESS"] for row in observer.check_discrepancies(program))


class Variadic(nn.Module):
    def forward(self, a, *args, **kwargs):
        return a - args[0] * args[1] + kwargs["x"] - kwargs["y"]


def variadic_calls():
    return [
        call(tuple(torch.randn(m, n) for _ in range(3)), x=torch.randn(m, n), y=torch.randn(1, n))
        for m, n in ((5, 6), (7, 7))
    ]


def test_I15_args_and_kwargs_of_the_signature():
    observer = observe(Variadic(), *variadic_calls())
    assert observer.infer_dynamic_shapes() == {
        "a": BOTH,
        "args": (BOTH, BOTH),
        "kwargs": {"x": BOTH, "y": {1: DYNAMIC}},
    }


@pytest.mark.skipif(
    torch.__version__.startswith("2.13"), reason="its torch.export takes no dynamic shapes for **kwargs"
)
def test_I15_only_kwargs_of_the_signature():
    class Model(nn.Module):
        def forward(self, x, **kwargs):
            return x + kwargs["y"] if kwargs.get("add", True) else x

    model = Model().eval()
    observer = observe(model, *[call(x=torch.randn(m, n), y=torch.randn(1, n), add=True) for m, n in THREE])
    assert observer.infer_dynamic_shapes() == {"x": BOTH, "kwargs": {"y": {1: DYNAMIC}, "add": None}}
    assert list(observer.infer_arguments()) == ["x", "y", "add"]
    program = atonnx.export(
        model, kwargs=observer.infer_arguments(), dynamic_shapes=observer.infer_dynamic_shapes()
    )
    assert all(row["SUCCESS"] for row in observer.check_discrepancies(program))


def test_I16_the_first_call_with_all_arguments_is_the_default():
    calls = [call(torch.randn(5, 6)), *rows_and_columns((6, 7), (7, 8))]
    observer = observe(Add(), *calls)
    assert [t.shape for t in observer.infer_arguments()] == [(6, 7), (1, 7)]
    assert torch.equal(observer.infer_arguments()[0], calls[1][0][0])


def test_I17_a_call_by_its_index():
    observer = observe(Add(), *rows_and_columns(*THREE))
    assert observer.infer_arguments(2)[0].shape == (7, 8)
    assert observer.infer_arguments(-1)[0].shape == (7, 8)
    for index in (99, -4):
        with pytest.raises(RuntimeError, match=rf"No stored input set for index={index}<3\."):
            observer.infer_arguments(index)


def mixed_observer():
    sizes = ((5, 6), (5, 7))
    return observe(Add(), *[call((torch.randn(s), torch.randn(1, s[1])), z=torch.randn(s)) for s in sizes])


def test_I18_given_arguments_are_completed():
    observer = mixed_observer()
    z = torch.randn(5, 6)
    found = observer.infer_arguments({"z": z})
    assert [found[name].shape for name in "xyz"] == [(5, 0), (1, 0), (5, 6)]
    assert torch.equal(found["z"], z)
    found = observer.infer_arguments((z, z[:1]))
    assert [found[name].shape for name in "xyz"] == [(5, 6), (1, 6), (5, 0)]
    found = observer.infer_arguments({"y": z[:1]})
    assert [found[name].shape for name in "xyz"] == [(5, 0), (1, 6), (5, 0)]
    found = observer.infer_arguments((z, z[:1], z))
    assert torch.equal(found["z"], z)


def test_I18_a_static_input_is_filled_with_zeros():
    observer = observe(Add(), *[call((torch.randn(3), torch.ones(3))) for _ in range(2)])
    assert torch.equal(observer.infer_arguments((torch.randn(3),))[1], torch.zeros(3))


def test_I18_given_constants_are_the_observed_ones():
    observer = observe(Options(), *[call(x=torch.randn(n), scale=2.0) for n in (2, 3)])
    assert observer.infer_arguments({"x": torch.ones(2)})["scale"] == 2.0
    assert observer.infer_arguments({"x": torch.ones(2), "scale": 2.0, "negate": False})["scale"] == 2.0
    for other in ({"scale": 1.0}, {"scale": 3.0}, {"negate": True}):
        with pytest.raises(RuntimeError, match="different constant values"):
            observer.infer_arguments({"x": torch.ones(2), **other})


@pytest.mark.parametrize("wrong", ["x", 1.0, [torch.ones(2)], True])
def test_I19_arguments_of_another_type(wrong):
    with pytest.raises(ValueError, match="Unexpected type <class .* for index_or_args_or_kwargs") as caught:
        mixed_observer().infer_arguments(wrong)
    assert isinstance(caught.value, OnnxExporterError)


def test_I19_arguments_that_no_call_has():
    for given in ({"w": torch.ones(2)}, (torch.ones(1),) * 4):
        with pytest.raises(ValueError, match="the observed calls have no argument"):
            mixed_observer().infer_arguments(given)


def test_I20_flat_arguments_are_a_list():
    flat = mixed_observer().infer_arguments(1, flat=True)
    assert isinstance(flat, list)
    assert [t.shape for t in flat] == [(5, 7), (1, 7), (5, 7)]


def test_I21_arguments_as_args_and_kwargs():
    args, kwargs = mixed_observer().infer_arguments(as_args_kwargs=True)
    assert isinstance(args, tuple) and len(args) == 2 and list(kwargs) == ["z"]
    args, kwargs = observe(Add(), call(x=torch.ones(2))).infer_arguments(as_args_kwargs=True)
    assert args == () and list(kwargs) == ["x"]


@pytest.mark.skipif(
    torch.__version__.startswith("2.13"), reason="its torch.export takes no dynamic shapes for **kwargs"
)
def test_I22_arguments_that_have_no_name():
    model = Variadic().eval()
    observer = observe(model, *variadic_calls())
    with pytest.raises(RuntimeError, match="Cannot return arguments as a single tuple"):
        observer.infer_arguments()
    args, kwargs = observer.infer_arguments(as_args_kwargs=True)
    assert (len(args), list(kwargs)) == (3, ["x", "y"])
    program = atonnx.export(model, args, kwargs=kwargs, dynamic_shapes=observer.infer_dynamic_shapes())
    assert all(row["SUCCESS"] for row in observer.check_discrepancies(program))


class Vision(nn.Module):
    def forward(self, ids, pixels=None, past=None, mask=None):
        result = ids * 2.0
        if pixels is not None:
            result = result + pixels.sum()
        return result if past is None else result + past.sum()


def vision_calls(by_place=False):
    first = {"ids": torch.ones(1, 28), "pixels": torch.ones(1, 3, 12)}
    later = [{"ids": torch.ones(1, 1), "pixels": None, "past": torch.ones(1, n, 4)} for n in (28, 29)]
    return [call(tuple(c.values())) if by_place else call(**c) for c in (first, *later)]


@pytest.mark.parametrize("by_place", [False, True])
def test_I23_values_for_inputs_that_no_complete_call_has(by_place):
    missing = {1 if by_place else "pixels": torch.ones(0, 3, 12)}
    observer = atonnx.InputObserver(missing)
    model = Vision().eval()
    observe(model, *vision_calls(by_place), observer=observer)
    expected = {"ids": BOTH, "pixels": {0: DYNAMIC}, "past": BOTH}
    shapes = observer.infer_dynamic_shapes(True)
    assert shapes == (tuple(expected.values()) if by_place else expected)
    arguments = observer.infer_arguments()
    pixels = arguments[1] if by_place else arguments["pixels"]
    assert pixels.shape == (0, 3, 12)
    program = atonnx.export(
        model,
        *([arguments] if by_place else []),
        kwargs=None if by_place else arguments,
        dynamic_shapes=shapes,
    )
    assert all(row["SUCCESS"] for row in observer.check_discrepancies(program))


def test_I23_nested_values():
    model = Add()
    observer = atonnx.InputObserver({"z": (torch.ones(0), torch.ones(0))})
    observe(model, call(torch.ones(2)), observer=observer)
    assert [t.shape for t in observer.infer_arguments()["z"]] == [(0,), (0,)]


def test_I24_an_unknown_name_is_refused_before_the_model_runs():
    for key in ("zzz", 7, -1):
        with pytest.raises(ValueError, match=f"Unexpected keyword argument {key!r}"):
            with atonnx.InputObserver({key: torch.ones(2)})(Add()):
                raise AssertionError
    with pytest.raises(TypeError, match="keys are names or places"):
        with atonnx.InputObserver({1.5: torch.ones(2)})(Add()):
            raise AssertionError
    with atonnx.InputObserver({"zzz": torch.ones(2)})(Variadic()):
        pass


def test_I25_a_place_is_filled_only_where_it_is_absent():
    value = torch.zeros(9)
    model = Add()
    for args in [(torch.ones(9),), (torch.ones(9), None)]:
        observer = observe(model, call(args), observer=atonnx.InputObserver({1: value}))
        assert torch.equal(observer.infer_arguments()[1], value)
    for given in (call((torch.ones(9), torch.ones(9))), call(torch.ones(9), y=torch.ones(9))):
        observer = observe(model, given, observer=atonnx.InputObserver({1: value}))
        assert torch.equal(observer.infer_arguments(flat=True)[1], torch.ones(9))
    observer = observe(model, call(torch.ones(9)), observer=atonnx.InputObserver({2: value}))
    assert torch.equal(observer.infer_arguments()["z"], value)
    observer = observe(model, call(torch.ones(9)), observer=atonnx.InputObserver({2: value, 1: value}))
    assert len(observer.infer_arguments()) == 3


def test_I30_the_example_of_the_documentation():
    model = Add().eval()
    input_observer = atonnx.InputObserver()
    with input_observer(model):
        model(torch.randn(5, 6), torch.randn(1, 6))
        model(torch.randn(7, 7), torch.randn(1, 7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = atonnx.export(
            model,
            input_observer.infer_arguments(),
            dynamic_shapes=input_observer.infer_dynamic_shapes(),
        )
    assert [str(dim) for dim in program.model.graph.inputs[1].shape][0] == "1"
    assert program.verify().ok


def test_a_class_that_cannot_be_copied_is_a_warning_not_an_error():
    class Broken:
        pass

    def refuse(value):
        raise RuntimeError("not to be taken apart")

    pytree.register_pytree_node(
        Broken, refuse, lambda v, c: Broken(), serialized_type_name="test_promises_observer.Broken"
    )
    observer = atonnx.InputObserver()
    model = Add()
    with observer(model), pytest.warns(OnnxExporterWarning, match="a call was not stored: not to be taken"):
        model.forward(Broken())
    assert observer.num_obs() == 0
