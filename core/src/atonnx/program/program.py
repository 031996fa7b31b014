"""The result of an export."""

from __future__ import annotations

import gc
import os
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import onnx_ir as ir
import torch

from atonnx.build.dtypes import to_ir
from atonnx.build.weights import Derived, Weight, leaves
from atonnx.errors import OnnxExporterError, OnnxExporterWarning, both
from atonnx.passes import optimize
from atonnx.program import axes, saving, sessions
from atonnx.program.arguments import bind
from atonnx.program.inner import hand_out
from atonnx.program.sessions import make_session
from atonnx.program.verification import Tolerance, Verification, verify_program

if TYPE_CHECKING:
    import onnx
    import onnxruntime as ort

    from atonnx.plugins import DomainInfo

__all__ = ["ONNXProgram"]

_ONNX_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training"})


class ONNXProgram:
    """An ONNX model that can be called with torch tensors.

    Attributes:
        model: The model, as an ``onnx_ir.Model``.
        exported_program: What it was made from, or None.
        verification: What the last verification found, or None.
        capture_strategy: How torch.export captured the model: ``"strict=False"`` as a rule; None for an
            ExportedProgram that was given.
    """

    def __init__(self, model: ir.Model, exported_program: torch.export.ExportedProgram | None) -> None:
        self.model = model
        self.exported_program = exported_program
        self.verification: Verification | None = None
        self.capture_strategy: str | None = None
        self._applied: dict[str, torch.Tensor] = {}
        self._session: ort.InferenceSession | None = None
        self._files = ExitStack()

    def __repr__(self) -> str:
        model = textwrap.indent(str(self.model), " " * 8)
        program = textwrap.indent(str(self.exported_program), " " * 8)
        return f"ONNXProgram(\n    model=\n{model}\n    ,\n    exported_program=\n{program}\n)"

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
        """Run the model in ONNX Runtime with the arguments of the module.

        The results are the graph's outputs, one after the other, whatever structure the module
        returns.

        Raises:
            OnnxExporterError: also a TypeError or a ValueError, where the arguments do not fit.
        """
        feeds = self._bind(args, kwargs)
        if self._session is None:
            self.initialize_inference_session()
        return sessions.run(self._session, feeds)

    def call_reference(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
        """Run the model in ONNX's reference evaluator: slow, and independent of ONNX Runtime."""
        from onnx.reference import ReferenceEvaluator

        feeds = {name: sessions.to_numpy(tensor) for name, tensor in self._bind(args, kwargs).items()}
        kernels: list[Any] = [kernel for domain in self._domains() for kernel in domain.reference_ops]
        results: Any = ReferenceEvaluator(self.model_proto, new_ops=kernels).run(None, feeds)
        return tuple(map(sessions.from_numpy, results))

    def compute_values(
        self, value_names: Sequence[str], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> tuple[torch.Tensor, ...]:
        """Compute values inside the model: inputs, initializers and results of nodes, by name.

        Those of a function or a body may be preceded by the names of the nodes on the way,
        ``node_call/value``. Those of a branch can only be had where it is taken; those of a Loop or
        Scan come with all iterations, along a new first axis.

        Raises:
            OnnxExporterError: also a ValueError, where the model has no such value or cannot give it out.
        """
        values = self._values_by_name()
        # The copy costs time, so it is made for what is not in the graph itself.
        inside = [name for name in dict.fromkeys(value_names) if name not in values]
        model, handed = hand_out(self.model, inside) if inside else (self.model, {})
        if inside:
            values = {value.name: value for value in _values(model.graph) if value.name}
        feeds = self._bind(args, kwargs or {})
        known: dict[str, torch.Tensor] = {}
        wanted = {}
        for name in value_names:
            value = handed[name].value if name in handed else values[name]
            if name in feeds:
                known[name] = feeds[name]
            elif value.is_initializer() and value.const_value is not None:
                known[name] = sessions.from_numpy(value.const_value.numpy()).clone()
            else:
                wanted[name] = value
        flags = {name: found.flag for name, found in handed.items() if found.flag is not None}
        if wanted:
            with saving.serialized(model, [*wanted.values(), *flags.values()]) as serialized:
                session = make_session(serialized, libraries=self._libraries())
                results = sessions.run(session, feeds)
                # The file of a large model can only be removed once its session is gone.
                del session
            for name, taken in zip(flags, results[len(wanted) :], strict=True):
                if not taken:
                    raise both(OnnxExporterError, ValueError)(
                        f"value {handed[name].where!r} was not computed: with these arguments its branch "
                        "is not taken"
                    )
            known.update(zip(wanted, results, strict=False))
        return tuple(known[name] for name in value_names)

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as a protobuf message with all its weights, made anew each time."""
        return saving.to_proto(self.model)

    def save(
        self,
        destination: str | os.PathLike[str] | BinaryIO,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model to a file.

        With ``external_data=True``, or where the initializers have more than 1536 MiB, those of
        more than 256 bytes go into ``<name>.data`` beside it. Files are written under temporary
        names and then renamed, so that an error leaves what was there. A binary stream will do
        where no second file is needed.

        ``include_initializers=False`` leaves the weights out; ``keep_initializers_as_inputs=True``
        makes them inputs of the graph, after its own. Both concern parameters, buffers and lifted
        tensors, which then have the shape they have in the state dict; constants that the export
        made are always in the file.

        Raises:
            OnnxExporterError: also a TypeError, where the destination cannot have a file beside it,
                or where a weight has no data.
            FileNotFoundError: there is no such folder.
        """
        saving.save(
            self.model,
            destination,
            include_initializers=include_initializers,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            external_data=external_data,
        )

    def apply_weights(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        """Replace weights by those of a state dict, whatever the graph made of them.

        Names that the model does not have are warned of. On an error nothing is replaced.

        Raises:
            OnnxExporterError: also a ValueError, where a shape or dtype differs from the model's.
        """
        used: set[str] = set()
        replaced: list[tuple[ir.Value, ir.TensorProtocol]] = []
        for graph in self.model.graphs():
            for name, value in graph.initializers.items():
                tensor = value.const_value
                if isinstance(tensor, (Weight, Derived)):
                    used.update(n for leaf in leaves(tensor) for n in leaf.names if n in state_dict)
                    new: ir.TensorProtocol = tensor.with_weights(state_dict)
                elif tensor is not None and self.exported_program is None and name in state_dict:
                    used.add(name)
                    new = _like(name, tensor, state_dict[name])
                else:
                    continue
                if new is not tensor:
                    replaced.append((value, new))
        known = used | self._unused_weights()
        for name in state_dict:
            if name not in known:
                warnings.warn(
                    f"Weight {name!r} not found in the model. Skipped applying.",
                    OnnxExporterWarning,
                    stacklevel=2,
                )
        for value, new in replaced:
            value.const_value = new
        # Verification runs the captured program with the same weights.
        self._applied.update({name: state_dict[name] for name in used})
        self.release()

    def verify(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        *,
        sizes: Sequence[Mapping[str, int]] | None = None,
        intermediates: bool = False,
        atol: float | None = None,
        rtol: float | None = None,
    ) -> Verification:
        """Check the model, run it in ONNX Runtime, and compare with the captured program.

        ``onnx.checker`` looks at it with shape inference. It is run with the example's arguments, or
        others where they are given, and at other sizes of all dynamic axes: larger ones, smaller ones
        and 1, with values drawn anew. Sizes that the captured program itself refuses are skipped, and
        the result says so. The result is also kept as ``verification``. Neither the arguments nor the
        captured program's state change.

        Args:
            args: Positional arguments to run it with.
            kwargs: Keyword arguments to run it with.
            sizes: The other sizes, as ``[{"batch": 7}, {"batch": 1, "length": 30}]``; none if empty.
            intermediates: Compare also, at the given arguments, the values within the graph that have the
                names of captured nodes, to find the first that departs.
            atol: Allowed difference; ``atol + rtol * |expected|`` then takes the place of the tolerance
                that each dtype has. Integers are compared exactly unless one is given.
            rtol: Allowed difference relative to the expected value.

        Raises:
            OnnxExporterError: also a ValueError, where there is nothing to compare with, or no such
                axis; also a TypeError, where the arguments do not fit.
        """
        return verify_program(
            self, args, kwargs, sizes=sizes, intermediates=intermediates, tolerance=Tolerance(atol, rtol)
        )

    def optimize(self) -> None:
        """Run the graph passes over the model, in place."""
        optimize(self.model)
        self.release()

    def rename_axes(self, rename_mapping: Mapping[str | ir.SymbolicDim, str]) -> None:
        """Rename symbolic axes, in expressions too.

        Keys are names or ``onnx_ir.SymbolicDim`` objects; those that the model does not have are
        ignored. The range constraints in the metadata get the new names too.

        Raises:
            OnnxExporterError: also a ValueError, for a key or a name of another kind.
        """
        axes.rename_axes(self.model, rename_mapping)
        self.release()

    def initialize_inference_session(
        self, initializer: Callable[[str | bytes], ort.InferenceSession] = make_session
    ) -> None:
        """Make the session that calls use; calls make one themselves where there is none.

        ``initializer`` gets the model's bytes, or the path of a temporary file where the
        initializers have more than 1536 MiB.
        """
        self.release()
        if initializer is make_session:
            initializer = partial(make_session, libraries=self._libraries())
        with ExitStack() as stack:
            self._session = initializer(stack.enter_context(saving.serialized(self.model)))
            self._files = stack.pop_all()

    def release(self) -> None:
        """Drop the session and its temporary file. The next call makes another."""
        if self._session is not None:
            self._session = None
            # ORT keeps the file open as long as any reference to the session lives.
            gc.collect()
        self._files.close()

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        return bind(self.model.graph.inputs, self.exported_program, args, kwargs)

    def _domains(self) -> list[DomainInfo]:
        """What plugins know of the operator domains that the model uses."""
        used = [domain for domain in self.model.opset_imports if domain not in _ONNX_DOMAINS]
        if not used:
            return []
        from atonnx.plugins import load

        known = load().domains()
        return [known[domain] for domain in used if domain in known]

    def _libraries(self) -> tuple[str, ...]:
        return tuple(str(domain.ort_library) for domain in self._domains() if domain.ort_library is not None)

    def _values_by_name(self) -> dict[str, ir.Value]:
        return {value.name: value for value in _values(self.model.graph) if value.name}

    def _unused_weights(self) -> set[str]:
        """Weights of the captured module that its program does not use."""
        if self.exported_program is None:
            return set()
        nodes = self.exported_program.graph.nodes
        unused = {node.name for node in nodes if node.op == "placeholder" and not node.users}
        specs = self.exported_program.graph_signature.input_specs
        return {spec.target for spec in specs if spec.target is not None and spec.arg.name in unused}


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    """The values of a graph, without those of its bodies."""
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs


def _like(name: str, old: ir.TensorProtocol, tensor: torch.Tensor) -> Weight:
    """A weight in place of an initializer of any kind."""
    new = Weight(tensor, name)
    if new.dtype != old.dtype or new.shape.numpy() != old.shape.numpy():
        raise both(OnnxExporterError, ValueError)(
            f"weight {name!r} is {to_ir(tensor.dtype)}{list(tensor.shape)}, the model has "
            f"{old.dtype}{list(old.shape.numpy())}"
        )
    return new


ONNXProgram.__module__ = "atonnx"
