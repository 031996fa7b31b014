"""``check_op``: one operator call, translated, run, and compared with eager torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
import onnx_ir as ir
import torch
import torch.utils._pytree as pytree

from atonnx.dispatch import DEFAULT_OPSET, Translation
from atonnx.testing.arguments import Size, tensors_of
from atonnx.testing.compare import Ulps, difference, graph_layout
from atonnx.testing.eager import HALF, eager_result, exact_results, is_random, used_results
from atonnx.testing.graphs import OneCall, capture_call, fits
from atonnx.testing.report import failure_text
from atonnx.testing.runtimes import Gap, Missing, Session, gaps, run_reference
from atonnx.testing.translate import custom_domains, translate_call, unexpected_operators
from atonnx.testing.widened import widened

__all__ = ["Checked", "check_op"]


@dataclass(frozen=True)
class Checked:
    """What ``check_op`` found right: the model, and which axes of each input are dynamic in it.

    ``runtime`` is "onnxruntime", or "reference" where ONNX Runtime lacks a kernel.
    """

    model: ir.Model
    dynamic: tuple[tuple[int, ...], ...]
    runtime: str


def check_op(
    overload: Any,
    *args: Any,
    opset: int = DEFAULT_OPSET,
    dynamic: bool = True,
    also: Sequence[Sequence[Any]] = (),
    expect: str | None = None,
    atol: float | Ulps | None = None,
    rtol: float | None = None,
    outputs: Sequence[int] | None = None,
    values: bool = True,
    ort_gap: str = "",
    rows: Iterable[Translation] = (),
    **kwargs: Any,
) -> Checked:
    """Assert that an operator's translation computes what eager torch computes.

    Args:
        overload: An ``OpOverload``, such as ``torch.ops.aten.gelu.default``.
        *args: Its arguments as torch gets them: tensors, numbers, lists, dtypes; besides,
            :class:`Size` and :class:`Weight`.
        opset: The opset of the model.
        dynamic: Make every dim of every tensor symbolic. Where the operator's own rules freeze a
            dim (it broadcasts, say), that dim is static, as torch.export would have it.
        also: More argument lists, of other sizes, for the same model. Where the model does not
            hold for them (a frozen dim, a guard) they are checked with a model of their own.
        expect: Operators that the graph must have, with their counts: ``"Gelu:1 Add:2"``. Others
            are free, unless it ends with ``!``.
        atol: Absolute tolerance; ``ulps(n)`` sets both. The default depends on the dtype.
        rtol: Relative tolerance.
        outputs: Which results of several the model has; all of them by default.
        values: Compare values; else dtypes and shapes only, as for random operators always.
        ort_gap: Why ONNX Runtime may be wrong here: its mismatch is recorded in ``gaps`` if the
            reference evaluator gives the right result.
        rows: Rows that come before all installed ones.
        **kwargs: The operator's keyword-only arguments.

    Raises:
        AssertionError: with a verdict on whose fault it is, and a script that shows it.
        OnnxExporterError: the translation failed, or refuses these arguments.
    """
    rule = _Rule(overload, kwargs, outputs, values and not is_random(overload), atol, rtol)
    check = _Check(rule, opset, dynamic, expect, ort_gap, tuple(rows))
    expected = [rule.expected(one) for one in (args, *also)]
    made = check.model_of(args, expected[0])
    check.compare(made, args, expected[0])
    for one, want in zip(also, expected[1:], strict=True):
        if not rule.alike(args, one) or not fits(made.call, rule.inputs(args), rule.inputs(one)):
            check.compare(check.model_of(one, want), one, want)
        else:
            check.compare(made, one, want)
    return Checked(made.model, made.call.dynamic, made.runtime)


@dataclass(frozen=True)
class _Rule:
    """An operator, and when a result of it is right."""

    overload: Any
    kwargs: Mapping[str, Any]
    outputs: Sequence[int] | None
    values: bool
    atol: float | Ulps | None
    rtol: float | None

    def inputs(self, args: Sequence[Any]) -> list[torch.Tensor]:
        return tensors_of(pytree.tree_leaves((tuple(args), dict(self.kwargs))))

    def alike(self, args: Sequence[Any], others: Sequence[Any]) -> bool:
        """Whether two argument lists differ in their tensors at most."""
        (first, spec), (second, other_spec) = (
            pytree.tree_flatten(list(args)),
            pytree.tree_flatten(list(others)),
        )
        plain = [
            [type(leaf) if isinstance(leaf, (torch.Tensor, Size)) else repr(leaf) for leaf in leaves]
            for leaves in (first, second)
        ]
        return spec == other_spec and plain[0] == plain[1]

    def expected(self, args: Sequence[Any]) -> list[torch.Tensor]:
        return used_results(eager_result(self.overload, args, self.kwargs), self.outputs)

    def problem(
        self, args: Sequence[Any], expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor]
    ) -> str:
        """What is wrong with the results ``actual``; empty if nothing is."""
        if len(expected) != len(actual):
            return f"{len(actual)} outputs, expected {len(expected)}"
        exact: list[torch.Tensor] | None = None
        told = []
        for index, (want, got) in enumerate(zip(expected, actual, strict=True)):
            if not self.values and (want.dtype, want.shape) == (got.dtype, got.shape):
                continue
            text = difference(want, got, rtol=self.rtol, atol=self.atol)
            if text and want.dtype in HALF and want.shape == got.shape:
                if exact is None:
                    exact = exact_results(self.overload, args, self.kwargs, self.outputs)
                if len(exact) == len(expected):
                    text = difference(want, got, rtol=self.rtol, atol=self.atol, exact=exact[index])
            if text:
                told.append(text if len(expected) == 1 else f"output {index}: {text}")
        return "\n".join(told)


@dataclass
class _Made:
    """A model that has been made, ready to run. ``lacks`` says which kernel ONNX Runtime has not."""

    call: OneCall
    model: ir.Model
    proto: onnx.ModelProto
    session: Session | None = None
    lacks: str = ""

    @property
    def runtime(self) -> str:
        return "reference" if self.lacks else "onnxruntime"


@dataclass
class _Check:
    """The steps of ``check_op``."""

    rule: _Rule
    opset: int
    dynamic: bool
    expect: str | None
    ort_gap: str
    rows: tuple[Translation, ...]
    kernels: list[Any] = field(default_factory=list)

    def model_of(self, args: Sequence[Any], expected: Sequence[torch.Tensor]) -> _Made:
        """The model of a call: translated, valid, loaded into ONNX Runtime."""
        rule = self.rule
        call = capture_call(
            rule.overload, args, rule.kwargs, dynamic=self.dynamic, outputs=rule.outputs, expected=expected
        )
        model = translate_call(call, self.opset, self.rows)
        made = _Made(call, model, ir.serde.serialize_model(model))
        if self.expect is not None:
            wrong = unexpected_operators(model, self.expect)
            if wrong:
                raise self.failure(made, args, f"expected operators {self.expect}: {wrong}")
        data = made.proto.SerializeToString()
        try:
            onnx.checker.check_model(data, full_check=True)
        except Exception as error:  # the checker and shape inference raise unrelated kinds
            raise self.failure(made, args, f"onnx.checker: {error}") from error
        libraries, self.kernels = custom_domains()
        try:
            made.session = Session(made.proto, data, libraries)
        except Missing as missing:
            self.lacking(made, missing)
        except Exception as error:  # ONNX Runtime has a class for each of its status codes
            raise self.failure(made, args, f"ONNX Runtime: {error}") from error
        return made

    def compare(self, made: _Made, args: Sequence[Any], expected: Sequence[torch.Tensor]) -> None:
        """Run the model and compare."""
        feeds = [graph_layout(tensor).contiguous() for tensor in self.rule.inputs(args)]
        actual: list[torch.Tensor] | None = None
        if made.session is not None and not made.lacks:
            try:
                actual = made.session.run(feeds)
            except Missing as missing:
                self.lacking(made, missing)
            except Exception as error:
                raise self.failure(made, args, f"ONNX Runtime: {error}") from error
        if actual is None:
            self.compare_elsewhere(made, args, feeds, expected)
            return
        problem = self.rule.problem(args, expected, actual)
        if not problem:
            return
        verdict, runtime_only = self.verdict(made, args, feeds, expected, actual)
        if runtime_only and self.ort_gap:
            gaps.add(Gap(str(self.rule.overload), self.opset, (), self.ort_gap))
            return
        raise self.failure(made, args, problem, verdict)

    def compare_elsewhere(
        self,
        made: _Made,
        args: Sequence[Any],
        feeds: Sequence[torch.Tensor],
        expected: Sequence[torch.Tensor],
    ) -> None:
        """Compare with onnx.reference; half types, which it rounds at every step, also in float32."""
        cause: Exception | None = None
        try:
            problem = self.rule.problem(args, expected, run_reference(made.proto, feeds, self.kernels))
        except Exception as error:  # its kernels fail in any way
            cause, problem = error, f"{type(error).__name__}: {error}"
        if not problem:
            return
        problem = f"in onnx.reference, as ONNX Runtime lacks {made.lacks}: {problem}"
        wide = widened(made.proto)
        if wide is not None:
            try:
                session = Session(wide, wide.SerializeToString(), custom_domains()[0])
                found = session.run([t.float() if t.dtype in HALF else t for t in feeds])
                found = [
                    got.to(want.dtype) if want.dtype in HALF else got
                    for got, want in zip(found, expected, strict=True)
                ]
                told = self.rule.problem(args, expected, found)
            except Exception as error:  # neither can tell
                told = f"{type(error).__name__}: {error}"
            if not told:
                return
            problem += f"\nin ONNX Runtime, in float32: {told}"
        raise self.failure(made, args, problem) from cause

    def lacking(self, made: _Made, missing: Missing) -> None:
        gaps.add(missing.gap)
        made.lacks = str(missing)

    def verdict(
        self,
        made: _Made,
        args: Sequence[Any],
        feeds: Sequence[torch.Tensor],
        expected: Sequence[torch.Tensor],
        actual: Sequence[torch.Tensor],
    ) -> tuple[str, bool]:
        """Whose fault a mismatch is, and whether it is ONNX Runtime's alone."""
        try:
            reference = run_reference(made.proto, feeds, self.kernels)
        except Exception as error:
            told = f"ours or ONNX Runtime's: onnx.reference cannot tell ({type(error).__name__}: {error})"
            return told, False
        problem = self.rule.problem(args, expected, reference)
        if not problem:
            return "ONNX Runtime's: in onnx.reference the model computes what eager torch does", True
        if not any(difference(a, b) for a, b in zip(actual, reference, strict=False)):
            return "ours: ONNX Runtime and onnx.reference agree on what the model computes", False
        return f"not clear: onnx.reference differs from both: {problem}", False

    def failure(self, made: _Made, args: Sequence[Any], problem: str, verdict: str = "") -> AssertionError:
        rule = self.rule
        return AssertionError(
            failure_text(
                rule.overload,
                args=args,
                kwargs=rule.kwargs,
                opset=self.opset,
                dynamic=self.dynamic,
                model=made.proto,
                problem=problem,
                verdict=verdict,
            )
        )
