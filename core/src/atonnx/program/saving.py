"""A model to bytes and files, one weight at a time.

The graph is serialized with a placeholder for each initializer that is not tiny; the initializers'
bytes then go straight from their tensors to the file. Nothing here changes the model.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import onnx
import onnx_ir as ir

from atonnx.build.weights import Derived, Source, Weight, leaves, require_data
from atonnx.errors import OnnxExporterError, both
from atonnx.program.sessions import LARGE

__all__ = ["save", "serialized", "to_proto"]

# Smaller tensors stay in the graph, where readers want them for shape inference.
_SMALL = 256
# Memory mapping starts at a page's start; on some systems, at a multiple of 64 KiB.
_PAGE = 4096
_BIG_PAGE = 65536
_PROTOBUF_LIMIT = 2**31 - 1

_Progress = Callable[[int, int], None]


@dataclass
class _Layout:
    """What a file is to hold: the graph's parts, with stand-ins for initializers."""

    inputs: list[ir.Value]
    outputs: list[ir.Value]
    nodes: list[ir.Node]
    initializers: list[ir.Value]
    recipe_nodes: int = 0
    renamed: dict[str, str] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum(value.const_value.nbytes for value in self.initializers if value.const_value is not None)


def save(
    model: ir.Model,
    destination: str | os.PathLike[str] | BinaryIO,
    *,
    include_initializers: bool = True,
    keep_initializers_as_inputs: bool = False,
    external_data: bool | None = None,
    progress: _Progress | None = None,
) -> None:
    """Write a model to a file, or to anything that has a ``write``; see ``ONNXProgram.save``.

    ``progress`` is called with the bytes of weights that are written, and of all.
    """
    layout = _layout(model, stored=include_initializers, as_inputs=keep_initializers_as_inputs)
    large = layout.nbytes > LARGE
    path = _regular(destination)
    if path is None and (external_data or large):
        reason = "external_data=True" if external_data else "a model of this size"
        raise both(OnnxExporterError, TypeError)(
            f"{reason} needs a file path to save to, since the weights go into a file beside it; "
            f"the destination is a {type(destination).__name__}"
        )
    if path is None:
        if isinstance(destination, (str, os.PathLike)):
            with open(destination, "wb") as device:
                _write_inline(model, layout, device, progress)
        else:
            _write_inline(model, layout, destination, progress)
    elif external_data or large:
        _write_external(model, layout, path, progress)
    else:
        with _replacing(path) as (file,):
            _write_inline(model, layout, file, progress)


def to_proto(model: ir.Model) -> onnx.ModelProto:
    """The model with all its weights as a protobuf message."""
    layout = _layout(model)
    proto, streamed = _skeleton(model, layout)
    for index, tensor in streamed.items():
        _plain(proto.graph.initializer[index]).raw_data = tensor.tobytes()
    return proto


@contextmanager
def serialized(model: ir.Model, outputs: Sequence[ir.Value] | None = None) -> Iterator[str | bytes]:
    """The model for ONNX Runtime: its bytes, or the path of a temporary file where they are too many.

    ``outputs`` stand in for the graph's own.
    """
    layout = _layout(model)
    if outputs is not None:
        layout.outputs = list(outputs)
    if layout.nbytes <= LARGE:
        buffer = BytesIO()
        _write_inline(model, layout, buffer)
        yield buffer.getvalue()
    else:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            path = Path(folder, "model.onnx")
            _write_external(model, layout, path)
            yield str(path)


# ---------------------------------------------------------------- what the file holds


def _layout(model: ir.Model, *, stored: bool = True, as_inputs: bool = False) -> _Layout:
    """Arrange the graph for one of the four ways to save weights.

    Except for the default way, the file has the weights of the state dict: derived ones are
    computed by nodes at the start of the graph. Constants that are no weights are always stored.
    """
    graph = model.graph
    layout = _Layout(list(graph.inputs), list(graph.outputs), list(graph), [])
    if stored and not as_inputs:
        layout.initializers = [
            _stand_in(value, value.name or "", value.const_value)
            for value in graph.initializers.values()
            if value.const_value is not None
        ]
        return layout
    inputs = {value.name for value in graph.inputs}
    for value in _plain_weights(model, layout):
        if as_inputs and value.name not in inputs:
            layout.inputs.append(value)
        if stored:
            layout.initializers.append(value)
    return layout


def _plain_weights(model: ir.Model, layout: _Layout) -> Iterator[ir.Value]:
    """The state dict's weights, each once; constants and recipes' nodes go into ``layout``."""
    taken = _names(model)
    values: dict[str, ir.Value] = {}
    derived = []
    for value in model.graph.initializers.values():
        name, tensor = value.name or "", value.const_value
        if isinstance(tensor, Weight):
            values[tensor.source] = _stand_in(value, name, tensor)
            yield values[tensor.source]
        elif isinstance(tensor, Derived):
            derived.append((value, tensor))
        elif tensor is not None:
            layout.initializers.append(_stand_in(value, name, tensor))

    tape = ir.tape.Tape()
    for value, tensor in derived:
        name = value.name or ""
        sources = {leaf.source for leaf in leaves(tensor)}
        if name in sources and not value.is_graph_output():
            # The name belongs to the weight of the state dict, which the user can feed.
            taken.discard(name)
            layout.renamed[name] = _unused(f"{name}_derived", taken)
        for leaf in leaves(tensor):
            if leaf.source not in values:
                values[leaf.source] = _stand_in(value, _unused(leaf.source, taken), leaf)
                yield values[leaf.source]
        before = len(tape.nodes), len(tape.initializers)
        result = _build(tape, tensor, values)
        if result.producer() is None:
            result = tape.op("Identity", [result])
        for constant in tape.initializers[before[1] :]:
            constant.name = _unused(constant.name or "constant", taken)
        user = next((use.node for use in value.uses()), None)
        for node in tape.nodes[before[0] :]:
            if user is not None:
                node.metadata_props.update(user.metadata_props)
            for output in node.outputs:
                if output is not result:
                    output.name = _unused(f"{name}_step", taken)
        result.name = layout.renamed.get(name, name)
        result.type, result.shape = ir.TensorType(tensor.dtype), tensor.shape
        for node in tape.nodes[before[0] :]:
            node.name = _unused(f"node_{node.outputs[0].name}", taken)
    layout.initializers += tape.initializers
    layout.nodes[:0] = tape.nodes
    layout.recipe_nodes = len(tape.nodes)


def _build(tape: ir.tape.Tape, tensor: Source, values: Mapping[str, ir.Value]) -> ir.Value:
    """The value of an initializer: a weight's own, else computed on ``tape``."""
    if isinstance(tensor, Weight):
        return values[tensor.source]
    if isinstance(tensor, Derived):
        return tensor.recipe.build(tape, *(_build(tape, source, values) for source in tensor.sources))
    return tape.initializer(tensor, name=tensor.name or "constant")


def _stand_in(value: ir.Value, name: str, tensor: ir.TensorProtocol | None) -> ir.Value:
    """An initializer like ``value``, which stays as it is."""
    stand_in = ir.Value(
        name=name,
        type=value.type if tensor is None else ir.TensorType(tensor.dtype),
        shape=value.shape if tensor is None else ir.Shape(tensor.shape.numpy()),
        doc_string=value.doc_string,
        const_value=tensor,
    )
    stand_in.metadata_props.update(value.metadata_props)
    stand_in.meta.update(value.meta)
    return stand_in


def _names(model: ir.Model) -> set[str]:
    """All names of values and nodes in the graph and its bodies."""
    names: set[str] = set()
    for graph in model.graphs():
        names.update(value.name for value in graph.inputs if value.name)
        names.update(graph.initializers)
        for node in graph:
            names.update(value.name for value in node.outputs if value.name)
            if node.name:
                names.add(node.name)
    return names


def _unused(name: str, taken: set[str]) -> str:
    """``name``, or one like it that is free; it is then taken."""
    found, count = name, 0
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    taken.add(found)
    return found


# ---------------------------------------------------------------- bytes


def _skeleton(
    model: ir.Model, layout: _Layout, location: str = ""
) -> tuple[onnx.ModelProto, dict[int, ir.TensorProtocol]]:
    """The message with references instead of bytes, and the tensors by their initializer's index.

    The references have the offsets of a data file where the tensors follow each other, aligned.

    Raises:
        OnnxExporterError: also a TypeError, where a weight has no data.
    """
    initializers: list[ir.Value] = []
    small: dict[int, ir.TensorProtocol] = {}
    streamed: dict[int, ir.TensorProtocol] = {}
    end = 0
    for value in layout.initializers:
        tensor = value.const_value
        require_data(tensor)
        if tensor is not None and tensor.dtype != ir.DataType.STRING:
            value = _stand_in(value, value.name or "", tensor)
            start = None
            if tensor.nbytes > _SMALL:
                page = _PAGE if tensor.nbytes < 1 << 20 else _BIG_PAGE
                start = -(-end // page) * page
                end = start + tensor.nbytes
            (small if start is None else streamed)[len(initializers)] = tensor
            value.const_value = ir.ExternalTensor(
                location,
                start,
                tensor.nbytes,
                tensor.dtype,
                shape=ir.Shape(tensor.shape.numpy()),
                name=value.name or "",
                doc_string=tensor.doc_string,
                metadata_props=dict(tensor.metadata_props),
            )
        initializers.append(value)
    graph = model.graph
    view = ir.GraphView(
        layout.inputs,
        layout.outputs,
        nodes=layout.nodes,
        initializers=initializers,
        doc_string=graph.doc_string,
        opset_imports=graph.opset_imports,
        name=graph.name,
        metadata_props=graph.metadata_props,
    )
    # A view is what onnx_ir documents for this; its annotation names graphs only.
    shell = ir.Model(
        view,  # type: ignore[arg-type]
        ir_version=model.ir_version,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
        model_version=model.model_version,
        doc_string=model.doc_string,
        functions=tuple(model.functions.values()),
        metadata_props=model.metadata_props,
        device_configurations=model.device_configurations,
    )
    proto = ir.serde.serialize_model(shell)
    for index, tensor in small.items():
        _plain(proto.graph.initializer[index]).raw_data = tensor.tobytes()
    if layout.renamed:
        # The nodes of recipes read the weight that has the old name now.
        _rename_uses(proto.graph.node[layout.recipe_nodes :], layout.renamed)
    return proto, streamed


def _rename_uses(nodes: Iterable[onnx.NodeProto], renamed: Mapping[str, str]) -> None:
    """Let nodes, in bodies too, read values under their new names."""
    for node in nodes:
        for index, name in enumerate(node.input):
            if name in renamed:
                node.input[index] = renamed[name]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename_uses(attribute.g.node, renamed)
            for body in attribute.graphs:
                _rename_uses(body.node, renamed)


def _plain(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """Without the reference to a data file."""
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    return tensor


def _write_inline(
    model: ir.Model, layout: _Layout, file: BinaryIO, progress: _Progress | None = None
) -> None:
    """Write one message that holds everything.

    It is put together from its parts, so that no weight is held twice: a message is its fields one
    after the other, in any order, and a nested one has its length before it.
    """
    proto, streamed = _skeleton(model, layout)
    tensors: list[tuple[bytes, ir.TensorProtocol | None]] = []
    for index, message in enumerate(proto.graph.initializer):
        head = _plain(message).SerializeToString(deterministic=True)
        tensor = streamed.get(index)
        size = len(head)
        if tensor is not None:
            head += _field_start(onnx.TensorProto.RAW_DATA_FIELD_NUMBER, tensor.nbytes)
            size = len(head) + tensor.nbytes
        tensors.append((_field_start(onnx.GraphProto.INITIALIZER_FIELD_NUMBER, size) + head, tensor))
    proto.graph.ClearField("initializer")
    graph = proto.graph.SerializeToString(deterministic=True)
    proto.ClearField("graph")
    head = proto.SerializeToString(deterministic=True)
    size = len(graph) + sum(len(head) + (0 if tensor is None else tensor.nbytes) for head, tensor in tensors)
    if len(head) + size > _PROTOBUF_LIMIT:
        raise both(OnnxExporterError, ValueError)(
            "the model is larger than the 2 GB that one file may have", hint="save it with external_data=True"
        )
    file.write(head)
    file.write(_field_start(onnx.ModelProto.GRAPH_FIELD_NUMBER, size))
    file.write(graph)
    writer = _Writer(sum(tensor.nbytes for tensor in streamed.values()), progress)
    for head, tensor in tensors:
        file.write(head)
        if tensor is not None:
            writer.write(tensor, file)


def _write_external(model: ir.Model, layout: _Layout, path: Path, progress: _Progress | None = None) -> None:
    """Write the graph to ``path`` and the initializers to a file beside it."""
    data_path = path.with_name(f"{path.name}.data")
    _regular(data_path)
    proto, streamed = _skeleton(model, layout, data_path.name)
    message = proto.SerializeToString(deterministic=True)
    if not streamed:
        with _replacing(path) as (file,):
            file.write(message)
        return
    offsets = [
        int(entry.value)
        for index in streamed
        for entry in proto.graph.initializer[index].external_data
        if entry.key == "offset"
    ]
    # The data file comes first: a graph never points to data that is not there.
    with _replacing(data_path, path) as (data, file):
        writer = _Writer(sum(tensor.nbytes for tensor in streamed.values()), progress)
        for offset, tensor in zip(offsets, streamed.values(), strict=True):
            data.seek(offset)
            writer.write(tensor, data)
        file.write(message)


class _Writer:
    """Writes tensors, and tells how many bytes of them are written."""

    def __init__(self, total: int, progress: _Progress | None) -> None:
        self._done = 0
        self._total = total
        self._progress = progress

    def write(self, tensor: ir.TensorProtocol, file: BinaryIO) -> None:
        if isinstance(tensor, (Weight, Derived)):
            tensor.tofile(file)
        else:
            file.write(tensor.tobytes())
        self._done += tensor.nbytes
        if self._progress is not None:
            self._progress(self._done, self._total)


def _field_start(number: int, size: int) -> bytes:
    """What stands before a field of ``size`` bytes in a protobuf message."""
    length_delimited = 2
    return _varint(number << 3 | length_delimited) + _varint(size)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the high bit says that more follow."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


# ---------------------------------------------------------------- files


def _regular(destination: object) -> Path | None:
    """The path to replace; None where there is nothing to replace: streams and devices."""
    if isinstance(destination, (str, os.PathLike)):
        path = Path(os.fsdecode(destination))
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "the model cannot be saved to a directory", str(path))
        return path if path.is_file() or not path.exists() else None
    if not hasattr(destination, "write"):
        raise both(OnnxExporterError, TypeError)(
            f"a model is saved to a path or a binary file, not to a {type(destination).__name__}"
        )
    return None


@contextmanager
def _replacing(*paths: Path) -> Iterator[Sequence[BinaryIO]]:
    """Files that take the places of ``paths`` when all is written, and vanish on an error."""
    folder = paths[0].parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder to save the model in", str(folder))
    token = secrets.token_hex(6)
    temporary = [folder / f".{token}.{index}.tmp" for index in range(len(paths))]
    try:
        with ExitStack() as stack:
            yield [stack.enter_context(open(name, "xb")) for name in temporary]
        for name, path in zip(temporary, paths, strict=True):
            os.replace(name, path)
    except BaseException:
        _remove(temporary)
        raise


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
