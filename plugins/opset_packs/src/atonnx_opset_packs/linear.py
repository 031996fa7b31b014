"""Einsum."""

from __future__ import annotations

from collections import Counter

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import rank_of, sizes

pack = OpsetPack(__name__)

pack.same("Einsum", 12, 28)


@pack.below(12, "Einsum")
def einsum(op: Builder, *operands: Value, equation: str) -> Value:
    """Operands contracted one after the other, each pair by MatMul, or Mul where nothing is summed."""
    terms, result = _parsed(op, equation.replace(" ", ""), operands)
    todo = [_diagonal(op, value, labels) for value, labels in zip(operands, terms, strict=True)]
    value, labels = todo.pop(0)
    while True:
        needed = set(result).union(*(other for _, other in todo))
        value, labels = _summed(op, value, labels, [label for label in labels if label not in needed])
        if not todo:
            break
        other, others = todo.pop(0)
        later = set(result).union(*(rest for _, rest in todo))
        alone = [label for label in others if label not in later and label not in labels]
        other, others = _summed(op, other, others, alone)
        value, labels = _product(op, value, labels, other, others, later)
    return _ordered(op, value, labels, list(result))


def _parsed(op: Builder, equation: str, operands: tuple[Value, ...]) -> tuple[list[list[str]], list[str]]:
    """Labels of each operand and of the result; axes of an ellipsis are numbered from the right."""
    left, _, right = equation.partition("->")
    texts = left.split(",")
    terms: list[list[str]] = []
    widest = 0
    for text, value in zip(texts, operands, strict=True):
        count = rank_of(op, value, "Einsum", 12) - len(text.replace("...", ""))
        widest = max(widest, count if "..." in text else 0)
        dots = [f".{i}" for i in reversed(range(count))] if "..." in text else []
        before, _, after = text.partition("...")
        terms.append([*before, *dots, *after])
    dots = [f".{i}" for i in reversed(range(widest))]
    if "->" in equation:
        before, found, after = right.partition("...")
        return terms, [*before, *(dots if found else []), *after]
    seen = Counter(label for term in terms for label in term)
    return terms, dots + sorted(label for label, times in seen.items() if times == 1 and label[0] != ".")


def _diagonal(op: Builder, value: Value, labels: list[str]) -> tuple[Value, list[str]]:
    """One axis for each label: of two with one label the diagonal is kept."""
    while len(set(labels)) < len(labels):
        first = next(i for i, label in enumerate(labels) if label in labels[i + 1 :])
        second = labels.index(labels[first], first + 1)
        perm = [i for i in range(len(labels)) if i not in (first, second)] + [first, second]
        value = op.Transpose(value, perm=perm)
        steps = op.Range(0, op.Squeeze(sizes(op, value, len(perm) - 1), [0]), 1)
        on = op.Equal(op.Unsqueeze(steps, [1]), steps)
        value = op.ReduceSum(op.Where(on, value, op.const(0, value.dtype)), [-1], keepdims=0)
        labels = [labels[i] for i in perm[:-1]]
    return value, labels


def _summed(op: Builder, value: Value, labels: list[str], gone: list[str]) -> tuple[Value, list[str]]:
    if not gone:
        return value, labels
    axes = [labels.index(label) for label in gone]
    return op.ReduceSum(value, axes, keepdims=0), [label for label in labels if label not in gone]


def _ordered(op: Builder, value: Value, labels: list[str], wanted: list[str]) -> Value:
    """Axes in the wanted order, with one of size 1 for each label that is missing."""
    there = [label for label in wanted if label in labels]
    perm = [labels.index(label) for label in there]
    if perm != list(range(len(perm))):
        value = op.Transpose(value, perm=perm)
    missing = [i for i, label in enumerate(wanted) if label not in labels]
    if missing:
        value = op.Unsqueeze(value, missing)
    return value if perm != list(range(len(perm))) or missing else op.Identity(value)


def _merged(op: Builder, value: Value, start: int, counts: tuple[int, ...]) -> Value:
    """Groups of axes from ``start`` on, each made one."""
    if all(count == 1 for count in counts):
        return value
    parts = [sizes(op, value, 0, start)] if start else []
    for count in counts:
        end = start + count
        if count:
            parts.append(op.ReduceProd(sizes(op, value, start, end if end < value.rank else None), [0]))
        else:
            parts.append(op.const([1]))
        start = end
    return op.Reshape(value, op.Concat(*parts, axis=0), allowzero=1)


def _product(
    op: Builder, a: Value, left: list[str], b: Value, right: list[str], later: set[str]
) -> tuple[Value, list[str]]:
    shared = [label for label in left if label in right]
    summed = [label for label in shared if label not in later]
    batch = [label for label in shared if label in later]
    if not summed:
        labels = left + [label for label in right if label not in left]
        return op.Mul(_ordered(op, a, left, labels), _ordered(op, b, right, labels)), labels
    rows = [label for label in left if label not in shared]
    columns = [label for label in right if label not in shared]
    a = _ordered(op, a, left, batch + rows + summed)
    b = _ordered(op, b, right, batch + summed + columns)
    matrix = op.MatMul(
        _merged(op, a, len(batch), (len(rows), len(summed))),
        _merged(op, b, len(batch), (len(summed), len(columns))),
    )
    labels = batch + rows + columns
    if len(rows) == 1 and len(columns) == 1:
        return matrix, labels
    parts = [op.Shape(matrix, end=len(batch))] if batch else []
    if rows:
        parts.append(sizes(op, a, len(batch), len(batch) + len(rows)))
    if columns:
        parts.append(sizes(op, b, len(batch) + len(summed)))
    shape = op.Concat(*parts, axis=0) if parts else op.shape([])
    return op.Reshape(matrix, shape, allowzero=1), labels
