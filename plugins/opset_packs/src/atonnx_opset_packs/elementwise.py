"""Arithmetic, comparison and logic."""

from __future__ import annotations

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack

pack = OpsetPack(__name__)

for _name in ("Abs", "Ceil", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Sqrt"):
    pack.same(_name, 6, 13)
for _name in ("Add", "Div", "Mul", "Sub"):
    pack.same(_name, 7, 13, 14)
for _name in ("Acos", "Asin", "Atan", "Cos", "Sin", "Tan"):
    pack.same(_name, 7, 22)
for _name in ("Acosh", "Asinh", "Atanh", "Cosh", "Sinh"):
    pack.same(_name, 9, 22)
for _name in ("Max", "Min"):
    pack.same(_name, 8, 12, 13)
for _name in ("Mean", "Sum"):
    pack.same(_name, 8, 13)
for _name in ("Erf", "Greater", "Less", "Sign"):
    pack.same(_name, 9, 13)
for _name in ("GreaterOrEqual", "LessOrEqual"):
    pack.same(_name, 12, 16)
pack.same("Equal", 11, 13, 19)
pack.same("IsInf", 10, 20)
pack.same("IsNaN", 9, 13, 20)
pack.same("Mod", 10, 13, 28)
pack.same("Pow", 7, 12, 13, 15)
pack.same("Round", 11, 22)
pack.same("Where", 9, 16)
pack.same("BitShift", 11, 28)
pack.same("Clip", 11, 12, 13)


@pack.below(12, "GreaterOrEqual")
def greater_or_equal(op: Builder, a: Value, b: Value) -> Value:
    """Greater or Equal: not the negation of Less, which differs where a number is nan."""
    return op.Or(op.Greater(a, b), op.Equal(a, b))


@pack.below(12, "LessOrEqual")
def less_or_equal(op: Builder, a: Value, b: Value) -> Value:
    """Less or Equal: not the negation of Greater, which differs where a number is nan."""
    return op.Or(op.Less(a, b), op.Equal(a, b))
