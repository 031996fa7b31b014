"""The context manager that watches a model, and what is made of what it saw."""

from __future__ import annotations

import functools
import inspect
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch

from atonnx.errors import OnnxExporterError, OnnxExporterWarning, both
from atonnx.observer.alignment import Alignment
from atonnx.observer.calls import Call, Info, Parameters, check_missing_keys, cloned, sorted_out
from atonnx.observer.discrepancies import compare_calls
from atonnx.pipeline import CAPTURE_LOCK
from atonnx.plugins import load
from atonnx.program.sessions import make_session

if TYPE_CHECKING:
    import onnxruntime as ort

    from atonnx.program import ONNXProgram

__all__ = ["InputObserver"]


class InputObserver:
    """Watches a model at work, to learn its example arguments and dynamic shapes.

    ::

        observer = InputObserver()
        with observer(model):
            model.generate(prompt)
        args, kwargs = observer.infer_arguments(as_args_kwargs=True)
        program = atonnx.export(
            model, args, kwargs=kwargs, dynamic_shapes=observer.infer_dynamic_shapes()
        )
        print(observer.check_discrepancies(program))

    Args:
        value_if_missing: Values for arguments that some calls lack, by name or place: where no call has
            all arguments, or the shape of an absent input cannot be told. The model itself is called
            without them.

    Attributes:
        info: What was observed, or None before.
    """

    def __init__(self, value_if_missing: Mapping[str | int, Any] | None = None) -> None:
        self.value_if_missing = dict(value_if_missing or {})
        self.info: Info | None = None

    @contextmanager
    def __call__(
        self, model: torch.nn.Module, store_n_calls: int = 3, method_name: str = "forward"
    ) -> Iterator[InputObserver]:
        """Store the arguments and results of the next calls of a method.

        Args:
            model: The model; its method is its own again afterwards.
            store_n_calls: How many calls to store, beyond those that are stored already.
            method_name: The method to watch.

        Raises:
            OnnxExporterError: also a ValueError, where the model has no such method, or
                ``value_if_missing`` has keys that the method does not have.
        """
        method = getattr(model, method_name, None)
        if not callable(method):
            raise both(OnnxExporterError, ValueError)(
                f"{type(model).__name__} does not have a method {method_name!r}"
            )
        signature = inspect.signature(method)
        parameters = Parameters(signature)
        check_missing_keys(parameters, self.value_if_missing)
        _register_containers()
        if self.info is None:
            self.info = Info(parameters)
        watched = self._watched(method, self.info, len(self.info) + store_n_calls)
        # Libraries look at the signature to see which arguments the model takes.
        watched.__signature__ = signature  # type: ignore[attr-defined]
        own = vars(model).get(method_name)
        setattr(model, method_name, watched)
        try:
            yield self
        finally:
            vars(model).pop(method_name, None)
            if own is not None:
                setattr(model, method_name, own)

    def _watched(self, method: Callable[..., Any], info: Info, limit: int) -> Callable[..., Any]:
        @functools.wraps(method)
        def watched(*args: Any, **kwargs: Any) -> Any:
            call = self._copied(info, args, kwargs) if len(info) < limit else None
            begin = time.perf_counter()
            result = method(*args, **kwargs)
            seconds = time.perf_counter() - begin
            if call is not None and len(info) < limit:
                call.keep(result, seconds)
                info.inputs.append(call)
            return result

        return watched

    def _copied(self, info: Info, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        try:
            args, kwargs = cloned((args, kwargs))
        except Exception as error:  # whatever a class that holds tensors raises when it is taken apart
            warnings.warn(f"a call was not stored: {error}", OnnxExporterWarning, stacklevel=3)
            return None
        return sorted_out(info.parameters, self.value_if_missing, args, kwargs)

    def num_obs(self) -> int:
        """How many calls are stored."""
        return 0 if self.info is None else len(self.info)

    def infer_dynamic_shapes(
        self, set_batch_dimension_for: Collection[int | str] | bool | None = None
    ) -> Any:
        """``dynamic_shapes`` for ``export()``: the axes whose sizes differ between the calls are dynamic.

        The result is a tuple where all arguments are positional, else a dict by the parameters.

        Args:
            set_batch_dimension_for: Names or places of arguments whose first axis is dynamic although
                all calls have the same size; True for all arguments.

        Raises:
            OnnxExporterError: nothing was observed, or the calls do not fit each other.
        """
        wanted = set_batch_dimension_for
        return self._aligned().shapes({wanted} if isinstance(wanted, str) else wanted)

    def infer_arguments(
        self,
        index_or_args_or_kwargs: tuple[Any, ...] | dict[str, Any] | int | None = None,
        flat: bool = False,
        as_args_kwargs: bool = False,
    ) -> Any:
        """Arguments for ``export()``, with a tensor without elements for each input that is absent.

        Args:
            index_or_args_or_kwargs: Which of the stored calls; or arguments to complete; by default the
                first call that has as many arguments as any.
            flat: Return the list of all tensors.
            as_args_kwargs: Return ``(args, kwargs)``. Otherwise the result is a tuple where all arguments
                are positional, else a dict by the parameters.

        Raises:
            OnnxExporterError: nothing was observed, there is no such call, the arguments do not fit the
                observed ones, or they cannot be in one tuple or dict; also a ValueError for arguments of
                another type, or that no observed call has.
        """
        aligned = self._aligned()
        leaves = self._leaves(aligned, index_or_args_or_kwargs)
        if flat:
            return cloned(aligned.tensors(leaves))
        args, kwargs = aligned.arguments(cloned(leaves))
        if as_args_kwargs:
            return args, kwargs
        if not kwargs:
            return args
        named = aligned.by_name(args, kwargs)
        if named is None:
            raise OnnxExporterError(
                "Cannot return arguments as a single tuple or a single dictionary, because some can only be "
                "given by position and others only by name",
                hint="ask for as_args_kwargs=True",
            )
        return named

    def _leaves(self, aligned: Alignment, chosen: Any) -> list[Any]:
        info = self._observed()
        if isinstance(chosen, (tuple, dict)):
            args, kwargs = (chosen, {}) if isinstance(chosen, tuple) else ((), chosen)
            return aligned.given(sorted_out(info.parameters, {}, args, kwargs, keep_defaults=True))
        if chosen is None:
            counts = len(aligned.best.args), len(aligned.best.kwargs)
            calls = (c for c in info.inputs if (len(c.args), len(c.kwargs)) == counts)
            return aligned.leaves(next(calls))
        if isinstance(chosen, bool) or not isinstance(chosen, int):
            raise both(OnnxExporterError, ValueError)(
                f"Unexpected type {type(chosen)} for index_or_args_or_kwargs."
            )
        if not -len(info) <= chosen < len(info):
            raise OnnxExporterError(f"No stored input set for index={chosen}<{len(info)}.")
        return aligned.leaves(info.inputs[chosen])

    def check_discrepancies(
        self,
        onnx_program: ONNXProgram | torch.onnx.ONNXProgram,
        atol: float = 1e-4,
        rtol: float = 0.1,
        progress_bar: bool = False,
        initializer: Callable[[str | bytes], ort.InferenceSession] = make_session,
        skip_none: bool = True,
    ) -> list[dict[str, Any]]:
        """Run an exported model with the arguments of each stored call, and compare the results.

        Args:
            onnx_program: What ``export()`` made of the model.
            atol: The largest difference allowed.
            rtol: The largest relative difference allowed: ``|expected - actual| / (|expected| + rtol)``.
            progress_bar: Show how far it is.
            initializer: Makes the session of the model's bytes or path.
            skip_none: Let an output be None on one side only.

        Returns:
            A dict for each call: ``SUCCESS``; the largest differences ``abs`` and ``rel`` where the model
            ran; ``error``, what is wrong, where something is; ``index``, ``duration_torch``,
            ``ort_duration``, ``n_inputs``, ``n_none`` and ``n_empty``.

        Raises:
            OnnxExporterError: nothing was observed, or the calls do not fit each other.
        """
        return compare_calls(
            self._observed().inputs,
            self._aligned(),
            onnx_program,
            atol=atol,
            rtol=rtol,
            progress_bar=progress_bar,
            initializer=initializer,
            skip_none=skip_none,
        )

    def _observed(self) -> Info:
        if not self.info:
            raise OnnxExporterError(
                "No inputs were captured.", hint="call the model within `with observer(model):`"
            )
        return self.info

    def _aligned(self) -> Alignment:
        info = self._observed()
        return Alignment(info.parameters, info.inputs)


def _register_containers() -> None:
    """Let plugins register the classes that an export takes apart; what else they do is undone."""
    with CAPTURE_LOCK, ExitStack() as stack:
        for _, patch in load().capture_patches():
            stack.enter_context(patch)


InputObserver.__module__ = "atonnx"
