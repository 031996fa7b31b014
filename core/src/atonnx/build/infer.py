"""Dtypes and shapes of an ONNX node's outputs, as far as cheap rules tell them.

What no rule covers is asked of onnx's own inference for one node, lazily and once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import onnx
import onnx_ir as ir

from atonnx.build.dtypes import to_ir
from atonnx.build.sizes import SymSize

if TYPE_CHECKING:
    from atonnx.build.value import Dims, Value

__all__ = ["broadcast", "dims", "int_content", "special_dtype"]

Rule = Callable[[ir.Node, int], "Dims | None"]

_SAME = frozenset(
    """
    Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization Bernoulli BitwiseNot Cast CastLike Ceil
    Celu Clip Cos Cosh CumProd CumSum DequantizeLinear Dropout Elu Erf Exp Floor Gelu
    GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN
    LayerNormalization LeakyRelu Log LogSoftmax LpNormalization MeanVarianceNormalization Mish Neg
    Not PRelu QuantizeLinear RMSNormalization RandomNormalLike RandomUniformLike Reciprocal Relu
    ReverseSequence Round ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Softmax
    Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu
    """.split()
)
_BROADCAST = frozenset(
    """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less
    LessOrEqual Max Mean Min Mod Mul Or Pow Sub Sum Where Xor
    """.split()
)
_REDUCE = frozenset(
    """
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
    ReduceSum ReduceSumSquare
    """.split()
)
# Where broadcasting of a pair cannot be decided from the sizes alone.
_UNKNOWN = None


def broadcast(*shapes: Dims | None) -> Dims | None:
    """Broadcast sizes by ONNX's rule; None for a size that is not decidable."""
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    rank = max(map(len, known))
    result: list[Any] = []
    for axis in range(-rank, 0):
        sizes = [shape[axis] for shape in known if len(shape) >= -axis]
        best: Any = 1
        for size in sizes:
            if isinstance(size, int) and size == 1:
                continue
            if isinstance(best, int) and best == 1:
                best = size
            elif isinstance(best, int) and best != 1:
                break
            elif isinstance(size, int):
                best = size
            elif size is None or best is None or size != best:
                best = _UNKNOWN
        result.append(best)
    return tuple(result)


def int_content(value: Any) -> tuple[Any, ...] | None:
    """The ints and symbolic sizes in an int64 vector or scalar, where they are known."""
    if value is None:
        return None
    content = getattr(value, "content", None)
    if content is not None:
        return content  # type: ignore[no-any-return]
    const = value.const_value
    if const is None or const.size > 64 or value.dtype not in (ir.DataType.INT64, ir.DataType.INT32):
        return None
    return tuple(int(item) for item in const.numpy().reshape(-1))


def _attr(node: ir.Node, name: str, default: Any = None) -> Any:
    attr = node.attributes.get(name)
    return default if attr is None else attr.value


def _in(node: ir.Node, index: int) -> Dims | None:
    if index >= len(node.inputs):
        return None
    value = node.inputs[index]
    return None if value is None else _dims_of(value)


def _dims_of(value: ir.Value) -> Dims | None:
    known = getattr(value, "dims", None)
    if known is not None:
        return known  # type: ignore[no-any-return]
    shape = value.shape
    return None if shape is None else tuple(d if isinstance(d, int) else None for d in shape)


def _axes(node: ir.Node) -> tuple[int, ...] | None:
    """Axes given as attribute or as constant input; None when they are not constant."""
    axes = _attr(node, "axes")
    if axes is not None:
        return tuple(axes)
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        return int_content(node.inputs[1])
    return ()


def _numel(sizes: Sequence[Any]) -> Any:
    product: Any = 1
    for size in sizes:
        if size is None:
            return None
        product = size * product if isinstance(size, SymSize) else product * size
    return product


def _reshape(node: ir.Node, _: int) -> Dims | None:
    source = _in(node, 0)
    target = int_content(node.inputs[1])
    if target is None:
        shape = _in(node, 1)
        return (None,) * shape[0] if shape is not None and isinstance(shape[0], int) else None
    result: list[Any] = list(target)
    if not _attr(node, "allowzero", 0):
        for axis, size in enumerate(target):
            if isinstance(size, int) and size == 0:
                result[axis] = source[axis] if source is not None and axis < len(source) else None
    if -1 in [s for s in result if isinstance(s, int)]:
        hole = next(i for i, s in enumerate(result) if isinstance(s, int) and s == -1)
        total = _numel(source) if source is not None else None
        rest = _numel([s for i, s in enumerate(result) if i != hole])
        result[hole] = None
        if total is not None and rest is not None and not (isinstance(rest, int) and rest == 0):
            size = total // rest
            result[hole] = size
    return tuple(result)


def _transpose(node: ir.Node, _: int) -> Dims | None:
    source = _in(node, 0)
    if source is None:
        return None
    perm = _attr(node, "perm") or range(len(source) - 1, -1, -1)
    return tuple(source[axis] for axis in perm)


def _unsqueeze(node: ir.Node, _: int) -> Dims | None:
    source, axes = _in(node, 0), _axes(node)
    if source is None or axes is None:
        return None
    rank = len(source) + len(axes)
    at = {axis % rank for axis in axes}
    rest = iter(source)
    return tuple(1 if axis in at else next(rest) for axis in range(rank))


def _squeeze(node: ir.Node, _: int) -> Dims | None:
    source, axes = _in(node, 0), _axes(node)
    if source is None or axes is None:
        return None
    if not axes:
        return tuple(s for s in source if s != 1) if all(isinstance(s, int) for s in source) else None
    gone = {axis % len(source) for axis in axes}
    return tuple(s for axis, s in enumerate(source) if axis not in gone)


def _concat(node: ir.Node, _: int) -> Dims | None:
    shapes = [_in(node, i) for i in range(len(node.inputs))]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    axis = _attr(node, "axis") % len(known[0])
    total: Any = 0
    for shape in known:
        size = shape[axis]
        total = (
            None
            if total is None or size is None
            else size + total
            if isinstance(size, SymSize)
            else total + size
        )
    best = [next((s[i] for s in known if isinstance(s[i], int)), known[0][i]) for i in range(len(known[0]))]
    best[axis] = total
    return tuple(best)


def _gather(node: ir.Node, _: int) -> Dims | None:
    source, index = _in(node, 0), _in(node, 1)
    if source is None or index is None:
        return None
    axis = _attr(node, "axis", 0) % max(len(source), 1)
    return source[:axis] + index + source[axis + 1 :]


def _gather_elements(node: ir.Node, _: int) -> Dims | None:
    return _in(node, 1)


def _expand(node: ir.Node, _: int) -> Dims | None:
    target = int_content(node.inputs[1])
    if target is None:
        shape, source = _in(node, 1), _in(node, 0)
        if shape is None or source is None or not isinstance(shape[0], int):
            return None
        return (None,) * max(shape[0], len(source))
    return broadcast(_in(node, 0), target)


def _constant_of_shape(node: ir.Node, _: int) -> Dims | None:
    target = int_content(node.inputs[0])
    if target is not None:
        return target
    shape = _in(node, 0)
    return (None,) * shape[0] if shape is not None and isinstance(shape[0], int) else None


def _reduce(node: ir.Node, _: int) -> Dims | None:
    source, axes = _in(node, 0), _axes(node)
    if source is None or axes is None:
        return None
    keep = _attr(node, "keepdims", 1)
    if not axes:
        if _attr(node, "noop_with_empty_axes", 0):
            return source
        axes = tuple(range(len(source)))
    gone = {axis % len(source) for axis in axes} if source else set()
    return tuple(1 if i in gone else s for i, s in enumerate(source) if keep or i not in gone)


def _arg_reduce(node: ir.Node, _: int) -> Dims | None:
    source = _in(node, 0)
    if source is None:
        return None
    axis = _attr(node, "axis", 0) % len(source)
    keep = _attr(node, "keepdims", 1)
    return tuple(1 if i == axis else s for i, s in enumerate(source) if keep or i != axis)


def _matmul(node: ir.Node, _: int) -> Dims | None:
    a, b = _in(node, 0), _in(node, 1)
    if not a or not b:
        return None
    if len(a) == 1:
        return b[:-2] + b[-1:] if len(b) > 1 else ()
    if len(b) == 1:
        return a[:-1]
    batch = broadcast(a[:-2], b[:-2])
    return None if batch is None else (*batch, a[-2], b[-1])


def _gemm(node: ir.Node, _: int) -> Dims | None:
    a, b = _in(node, 0), _in(node, 1)
    if a is None or b is None:
        return None
    return (a[1] if _attr(node, "transA", 0) else a[0], b[0] if _attr(node, "transB", 0) else b[1])


def _slice(node: ir.Node, _: int) -> Dims | None:
    source = _in(node, 0)
    if source is None:
        return None
    starts, ends = (int_content(node.inputs[i]) for i in (1, 2))
    axes = int_content(node.inputs[3]) if len(node.inputs) > 3 and node.inputs[3] is not None else None
    if len(node.inputs) <= 3 or node.inputs[3] is None:
        axes = tuple(range(len(starts))) if starts is not None else None
    if axes is None:
        return (None,) * len(source)
    steps: Any = (1,) * len(axes)
    if len(node.inputs) > 4 and node.inputs[4] is not None:
        steps = int_content(node.inputs[4])
    result: list[Any] = list(source)
    for i, axis in enumerate(axes):
        size = source[axis]
        parts: tuple[Any, ...] = (size, starts and starts[i], ends and ends[i], steps and steps[i])
        if all(isinstance(part, int) for part in parts):
            _, start, end, step = parts
            result[axis] = (
                len(range(*slice(start, end, step).indices(size))) if step > 0 or end >= 0 else None
            )
        else:
            result[axis] = None
    return tuple(result)


def _shape(node: ir.Node, _: int) -> Dims | None:
    source = _in(node, 0)
    if source is None:
        return (None,)
    return (len(range(len(source))[_attr(node, "start", 0) : _attr(node, "end", len(source))]),)


def _split(node: ir.Node, index: int) -> Dims | None:
    source = _in(node, 0)
    if source is None:
        return None
    axis = _attr(node, "axis", 0) % len(source)
    sizes = int_content(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] is not None else None
    if sizes is not None:
        size: Any = sizes[index]
    elif isinstance(source[axis], int):
        count = len(node.outputs)
        each = -(-source[axis] // count)
        size = min(each, source[axis] - each * index)
    else:
        size = None
    return (*source[:axis], size, *source[axis + 1 :])


def _pool(node: ir.Node, _: int) -> Dims | None:
    source = _in(node, 0)
    return None if source is None else (*source[:2], *(None,) * (len(source) - 2))


def _global_pool(node: ir.Node, _: int) -> Dims | None:
    source = _in(node, 0)
    return None if source is None else (*source[:2], *(1,) * (len(source) - 2))


def _conv(node: ir.Node, _: int) -> Dims | None:
    source, weight = _in(node, 0), _in(node, 1)
    if source is None or weight is None:
        return None
    return (source[0], weight[0], *(None,) * (len(source) - 2))


def _topk(node: ir.Node, _: int) -> Dims | None:
    source = _in(node, 0)
    if source is None:
        return None
    axis = _attr(node, "axis", -1) % len(source)
    k = int_content(node.inputs[1])
    return (*source[:axis], k[0] if k else None, *source[axis + 1 :])


def _tile(node: ir.Node, _: int) -> Dims | None:
    source, repeats = _in(node, 0), int_content(node.inputs[1])
    if source is None:
        return None
    if repeats is None:
        return (None,) * len(source)
    return tuple(_numel((s, r)) for s, r in zip(source, repeats, strict=True))


def _pad(node: ir.Node, _: int) -> Dims | None:
    source = _in(node, 0)
    return None if source is None else (None,) * len(source)


def _range(node: ir.Node, _: int) -> Dims | None:
    return (None,)


def _nonzero(node: ir.Node, _: int) -> Dims | None:
    source = _in(node, 0)
    return None if source is None else (len(source) or 1, None)


def _common(shapes: Sequence[Dims | None]) -> Dims | None:
    """Sizes that all shapes share; None for a size in which they differ, or when a rank does."""
    first = shapes[0]
    if first is None or any(s is None or len(s) != len(first) for s in shapes):
        return None
    return tuple(d if all(s is not None and s[i] == d for s in shapes) else None for i, d in enumerate(first))


def _if(node: ir.Node, index: int) -> Dims | None:
    branches = (node.attributes["then_branch"].value, node.attributes["else_branch"].value)
    return _common([_dims_of(branch.outputs[index]) for branch in branches])


def _loop(node: ir.Node, index: int) -> Dims | None:
    body = node.attributes["body"].value
    inner = _dims_of(body.outputs[index + 1])
    if index < len(node.inputs) - 2:
        return _common([inner, _in(node, index + 2)])
    return None if inner is None else (None, *inner)


def _scan(node: ir.Node, index: int) -> Dims | None:
    body = node.attributes["body"].value
    inner = _dims_of(body.outputs[index])
    states = len(node.inputs) - _attr(node, "num_scan_inputs")
    if index < states or inner is None:
        return _common([inner, _in(node, index)]) if index < states else None
    axes = _attr(node, "scan_output_axes")
    axis = axes[index - states] % (len(inner) + 1) if axes else 0
    return (*inner[:axis], None, *inner[axis:])


def _first(node: ir.Node, index: int) -> Dims | None:
    return _in(node, 0) if index == 0 else _from_onnx(node, index)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(_SAME, _first),
    **dict.fromkeys(_BROADCAST, lambda node, _: broadcast(*(_in(node, i) for i in range(len(node.inputs))))),
    **dict.fromkeys(_REDUCE, _reduce),
    "ArgMax": _arg_reduce,
    "ArgMin": _arg_reduce,
    "AveragePool": _pool,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Conv": _conv,
    "Expand": _expand,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "Gemm": _gemm,
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "GlobalAveragePool": _global_pool,
    "GlobalMaxPool": _global_pool,
    "LpPool": _pool,
    "MatMul": _matmul,
    "MaxPool": _pool,
    "NonZero": _nonzero,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": lambda node, _: (),
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "TopK": _topk,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}


def dims(value: Value) -> Dims | None:
    """Sizes of a value, by the rule of the operator that makes it."""
    if value.const_value is not None:
        return tuple(value.const_value.shape.numpy())
    node = value.producer()
    if node is None:
        return None
    index = value.index() or 0
    rule = _RULES.get(node.op_type) if not node.domain else None
    return rule(node, index) if rule is not None else _from_onnx(node, index)


def _type_proto(value: ir.Value) -> onnx.TypeProto | None:
    if not isinstance(value.type, ir.TensorType):
        return None
    sizes = _dims_of(value)
    shape = None if sizes is None else [s if isinstance(s, int) else None for s in sizes]
    return onnx.helper.make_tensor_type_proto(int(value.type.dtype), shape)


def _from_onnx(node: ir.Node, index: int) -> Dims | None:
    """onnx's inference for one node; None when it does not know."""
    from atonnx.build.spec import op_spec

    output = node.outputs[index]
    scope = getattr(output, "scope", None)
    version = node.version or (scope.session.opset if scope is not None else None)
    spec = op_spec(node.domain, node.op_type, version) if version is not None else None
    if (
        version is None
        or spec is None
        or any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values())
    ):
        return None
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    proto.input.extend("" if v is None else f"i{i}" for i, v in enumerate(node.inputs))
    proto.output.extend(f"o{i}" for i in range(len(node.outputs)))
    proto.attribute.extend(ir.to_proto(a) for a in node.attributes.values())
    types, data = {}, {}
    for i, value in enumerate(node.inputs):
        if value is None:
            continue
        type_proto = _type_proto(value)
        if type_proto is None:
            return None
        types[f"i{i}"] = type_proto
        content = int_content(value)
        if content is not None and all(isinstance(c, int) for c in content):
            data[f"i{i}"] = (
                onnx.numpy_helper.from_array(value.const_value.numpy()) if value.const_value else None
            )
    try:
        inferred = onnx.shape_inference.infer_node_outputs(
            spec.schema, proto, types, {k: v for k, v in data.items() if v is not None},
            opset_imports=[onnx.helper.make_opsetid(node.domain, version)], ir_version=10,
        )  # fmt: skip
    except Exception:
        return None
    found = inferred.get(f"o{index}")
    if found is None or not found.tensor_type.HasField("shape"):
        return None
    return tuple(d.dim_value if d.HasField("dim_value") else None for d in found.tensor_type.shape.dim)


def _sequence(inputs: Sequence[Any], _: Any) -> ir.DataType | None:
    return inputs[0].dtype if inputs and inputs[0] is not None else None


def _by_attribute(name: str, default: ir.DataType | None) -> Callable[[Any, Any], ir.DataType | None]:
    def rule(inputs: Sequence[Any], attrs: Any) -> ir.DataType | None:
        value = attrs.get(name)
        if value is not None:
            return to_ir(ir.DataType(value) if type(value) is int else value)
        return default if default is not None else _sequence(inputs, attrs)

    return rule


def _constant_dtype(inputs: Sequence[Any], attrs: Any) -> ir.DataType | None:
    for name, value in attrs.items():
        if value is not None and name.startswith("value"):
            return {
                "value_int": ir.DataType.INT64,
                "value_ints": ir.DataType.INT64,
                "value_float": ir.DataType.FLOAT,
                "value_floats": ir.DataType.FLOAT,
                "value_string": ir.DataType.STRING,
                "value_strings": ir.DataType.STRING,
            }.get(name) or ir.tensor(value).dtype
    return None


def _fill_dtype(inputs: Sequence[Any], attrs: Any) -> ir.DataType:
    value = attrs.get("value")
    return ir.DataType.FLOAT if value is None else ir.tensor(value).dtype


def _quantized(inputs: Sequence[Any], attrs: Any) -> ir.DataType:
    if len(inputs) > 2 and inputs[2] is not None:
        return inputs[2].dtype  # type: ignore[no-any-return]
    return ir.DataType(attrs.get("output_dtype") or ir.DataType.UINT8)


def _dequantized(inputs: Sequence[Any], attrs: Any) -> ir.DataType:
    return ir.DataType(attrs.get("output_dtype") or inputs[1].dtype)


_DTYPES: dict[str, Callable[[Sequence[Any], Any], ir.DataType | None]] = {
    "Bernoulli": _by_attribute("dtype", None),
    "BitCast": _by_attribute("to", None),
    "BlackmanWindow": _by_attribute("output_datatype", ir.DataType.FLOAT),
    "Cast": _by_attribute("to", None),
    "CastLike": lambda inputs, _: inputs[1].dtype,
    "Constant": _constant_dtype,
    "ConstantOfShape": _fill_dtype,
    "DequantizeLinear": _dequantized,
    "EyeLike": _by_attribute("dtype", None),
    "HammingWindow": _by_attribute("output_datatype", ir.DataType.FLOAT),
    "HannWindow": _by_attribute("output_datatype", ir.DataType.FLOAT),
    "LayerNormalization": _by_attribute("stash_type", ir.DataType.FLOAT),  # of mean and deviation
    "MelWeightMatrix": _by_attribute("output_datatype", ir.DataType.FLOAT),
    "Multinomial": _by_attribute("dtype", ir.DataType.INT32),
    "QuantizeLinear": _quantized,
    "RandomNormal": _by_attribute("dtype", ir.DataType.FLOAT),
    "RandomNormalLike": _by_attribute("dtype", None),
    "RandomUniform": _by_attribute("dtype", ir.DataType.FLOAT),
    "RandomUniformLike": _by_attribute("dtype", None),
}


def special_dtype(op_type: str, inputs: Sequence[Any], attrs: Any) -> ir.DataType | None:
    """Dtype of an output that the inputs' types alone do not bind; None where that is not known."""
    rule = _DTYPES.get(op_type)
    return None if rule is None else rule(inputs, attrs)
