"""Which operators ONNX Runtime's CPU provider has no kernel for, by dtype: measured, one session each.

``python -m atonnx_ort_target.measure`` writes ``kernel_gaps.json`` anew.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort

from atonnx.build.finish import ir_version
from atonnx.build.scope import NEWEST_OPSET
from atonnx.build.spec import OpSpec, op_spec
from atonnx.dispatch import MIN_OPSET
from atonnx_ort_target.gaps import DATA, NAMES, Combination

__all__ = ["combinations", "lacks", "specs", "table"]

_DTYPES = {dtype: name for name, dtype in NAMES.items()}

# Attributes that a call cannot do without. Shapes are not stated, so any sizes do.
_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "AveragePool": {"kernel_shape": [2, 2]},
    "BitShift": {"direction": "LEFT"},
    "Concat": {"axis": 0},
    "ConcatFromSequence": {"axis": 0},
    "DepthToSpace": {"blocksize": 2},
    "Einsum": {"equation": "ij->ji"},
    "GroupNormalization": {"num_groups": 1},
    "GRU": {"hidden_size": 4},
    "LpPool": {"kernel_shape": [2, 2]},
    "LRN": {"size": 3},
    "LSTM": {"hidden_size": 4},
    "MaxPool": {"kernel_shape": [2, 2]},
    "MaxRoiPool": {"pooled_shape": [2, 2], "spatial_scale": 1.0},
    "MaxUnpool": {"kernel_shape": [2, 2]},
    "Multinomial": {"sample_size": 1},
    "RandomNormal": {"shape": [2]},
    "RandomUniform": {"shape": [2]},
    "RNN": {"hidden_size": 4},
    "SpaceToDepth": {"blocksize": 2},
    "Split": {"num_outputs": 1},
    "Unsqueeze": {"axes": [0]},
}
# Text, optional values, and what stands for other operators.
_LEFT_OUT = (
    "CastLike",
    "Constant",
    "OptionalGetElement",
    "OptionalHasElement",
    "RegexFullMatch",
    "TfIdfVectorizer",
)
# Attributes that decide which dtypes there is a kernel for, besides their default.
_SETTINGS: dict[tuple[str, int], tuple[str, ...]] = {
    ("ScatterElements", 16): ("reduction=add", "reduction=mul"),
    ("ScatterElements", 18): ("reduction=add", "reduction=mul", "reduction=min", "reduction=max"),
    ("ScatterND", 16): ("reduction=add", "reduction=mul"),
    ("ScatterND", 18): ("reduction=add", "reduction=mul", "reduction=min", "reduction=max"),
}
# Kernels that refuse some of their dtypes only when they run: shapes to run them with, filled with zeros.
_RUN: dict[str, list[tuple[int, ...]]] = {
    "GRU": [(1, 1, 2), (1, 12, 2), (1, 12, 4)],
    "LSTM": [(1, 1, 2), (1, 16, 2), (1, 16, 4)],
    "RNN": [(1, 1, 2), (1, 4, 2), (1, 4, 4)],
    "ScatterElements": [(2,), (2,), (2,)],
    "ScatterND": [(2,), (2, 1), (2,)],
}
_INPUTS = {"Clip": (0, 1, 2), "Resize": (0, 2)}  # other inputs than the required ones


def specs() -> Iterator[tuple[OpSpec, list[int]]]:
    """Every version of every operator over plain tensors, with the opsets to measure it at.

    An operator that stands for a function is measured at all, for that changes what the function is made of.
    Operators that hold graphs are left out.
    """
    names = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    for name in sorted(names.difference(_LEFT_OUT)):
        found: dict[int, tuple[OpSpec, list[int]]] = {}
        for opset in range(MIN_OPSET, NEWEST_OPSET + 1):
            spec = op_spec("", name, opset)
            if spec is not None:
                found.setdefault(spec.since, (spec, []))[1].append(opset)
        for spec, opsets in found.values():
            kinds = [*spec.inputs[: max(spec.min_inputs, 1)], *spec.outputs]
            if None in kinds or ir.AttributeType.GRAPH in spec.attributes.values():
                continue
            is_function = spec.schema.has_function or spec.schema.has_context_dependent_function
            yield spec, opsets if is_function else opsets[:1]


def combinations(spec: OpSpec) -> list[Combination]:
    """The dtypes that the operator's type variables can have together, in alphabetical order of these."""
    variables = sorted({key for key in [*spec.inputs, *spec.outputs] if isinstance(key, str)})
    choices = [
        sorted((_DTYPES[d] for d in spec.allowed[key] if d in _DTYPES), key=list(NAMES).index)
        for key in variables
    ]
    return [tuple(zip(variables, found, strict=True)) for found in itertools.product(*choices)]


def model(spec: OpSpec, dtypes: Mapping[str, str], opset: int, setting: str = "") -> onnx.ModelProto:
    """One node of the operator, inputs and outputs without shapes."""

    def dtype(key: Any) -> ir.DataType:
        return NAMES[dtypes[key]] if isinstance(key, str) else key

    wanted = set(_INPUTS.get(spec.op_type, range(max(spec.min_inputs, 1 if spec.inputs else 0))))
    bound = {spec.inputs[i] for i in wanted}
    for i, key in enumerate(spec.inputs):
        if isinstance(key, str) and key not in bound:
            bound.add(key)
            wanted.add(i)
    names = [f"x{i}" if i in wanted else "" for i in range(max(wanted, default=-1) + 1)]
    inputs = [
        onnx.helper.make_tensor_value_info(name, int(dtype(spec.input_key(i))), None)
        for i, name in enumerate(names)
        if name
    ]
    outputs = [
        onnx.helper.make_tensor_value_info(f"y{i}", int(dtype(spec.output_key(i))), None)
        for i in range(max(spec.min_outputs, 1))
    ]
    attributes = dict(_ATTRIBUTES.get(spec.op_type, {}))
    for name in ("to", "dtype", "output_datatype"):
        if name in spec.attributes:
            attributes[name] = int(dtype(spec.outputs[0]))
    if spec.op_type == "ConstantOfShape":
        attributes["value"] = onnx.helper.make_tensor("value", int(dtype(spec.outputs[0])), [1], [0])
    attributes = {name: value for name, value in attributes.items() if name in spec.attributes}
    if setting:
        name, _, value = setting.partition("=")
        attributes[name] = value
    node = onnx.helper.make_node(spec.op_type, names, [o.name for o in outputs], **attributes)
    graph = onnx.helper.make_graph([node], "one", inputs, outputs)
    imports = {"": opset}
    used = {ir.DataType(v.type.tensor_type.elem_type) for v in [*inputs, *outputs]}
    return onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", opset)],
        ir_version=ir_version(imports, functions=False, dtypes=used),
    )


def lacks(spec: OpSpec, dtypes: Mapping[str, str], opset: int, setting: str = "") -> bool:
    """Whether no CPU session can be made of a call that onnx's own checks take."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    proto = model(spec, dtypes, opset, setting)
    try:
        session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no public base class
        # Most are NOT_IMPLEMENTED; others are errors inside the function that stands for the operator.
        return "NOT_IMPLEMENTED" in str(error) or _is_legal(proto)
    return spec.op_type in _RUN and not _runs(session, proto, _RUN[spec.op_type])


def _runs(session: ort.InferenceSession, proto: onnx.ModelProto, shapes: Sequence[Sequence[int]]) -> bool:
    feeds = {}
    for value, shape in zip(proto.graph.input, shapes, strict=True):
        dtype = ir.DataType(value.type.tensor_type.elem_type)
        zeros = np.zeros(shape, dtype.numpy())
        feeds[value.name] = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(zeros, int(dtype))
    try:
        session.run_with_ort_values(None, feeds)
    except Exception:  # onnxruntime's errors have no public base class
        return False
    return True


def _is_legal(proto: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(proto, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def compressed(gaps: Iterable[Combination], tried: Sequence[Combination]) -> dict[str, str]:
    """Dtypes by variable that never work, then what else fails, as ``variables: dtypes; dtypes``."""
    found = set(gaps)
    data: dict[str, str] = {}
    for variable in dict(tried[0]):
        never = [
            name
            for name in NAMES
            if (mine := [c for c in tried if (variable, name) in c]) and all(c in found for c in mine)
        ]
        if never:
            data[variable] = " ".join(never)
            found -= {c for c in found if dict(c)[variable] in never}
    if found:
        data[" ".join(dict(tried[0]))] = "; ".join(" ".join(name for _, name in c) for c in sorted(found))
    return data


def table(of: Iterable[tuple[OpSpec, Sequence[int]]]) -> dict[str, dict[str, dict[str, str]]]:
    """What onnxruntime as it is installed has no CPU kernel for, by operator and version.

    What it runs at some of the opsets only is a gap.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for spec, opsets in of:
        tried = combinations(spec)
        for setting in ("", *_SETTINGS.get((spec.op_type, spec.since), ())):
            gaps = [c for c in tried if any(lacks(spec, dict(c), opset, setting) for opset in opsets)]
            if gaps:
                entry = f"{spec.since} {setting}".strip()
                found.setdefault(spec.op_type, {})[entry] = compressed(gaps, tried)
    return found


def main() -> None:
    """Measure, and write the data."""
    lines = [
        f"{json.dumps(name)}:{json.dumps(versions, separators=(',', ':'))}"
        for name, versions in table(specs()).items()
    ]
    head = f'{{"onnxruntime":{json.dumps(ort.__version__)},"gaps":{{'
    DATA.write_text("\n".join([head, ",\n".join(lines), "}}", ""]))


if __name__ == "__main__":
    main()
