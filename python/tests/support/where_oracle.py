"""Filters as their grammar says, evaluated directly on one row: what the package's own reading is compared with."""

from __future__ import annotations

from typing import Any


def same(a: Any, b: Any) -> bool:
    """Equality that knows booleans from numbers, which Python's does not."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def holds(where: dict[str, Any], row: dict[str, Any]) -> bool:
    """The grammar again, evaluated directly."""
    for name, condition in where.items():
        if name == "$and":
            passed = all(holds(part, row) for part in condition)
        elif name == "$or":
            passed = any(holds(part, row) for part in condition)
        elif name == "$not":
            passed = not holds(condition, row)
        else:
            tests = condition if isinstance(condition, dict) else {"$eq": condition}
            passed = all(compare(operator, row, name, operand) for operator, operand in tests.items())
        if not passed:
            return False
    return True


def compare(operator: str, row: dict[str, Any], name: str, operand: Any) -> bool:
    if operator == "$not":
        inner = operand if isinstance(operand, dict) else {"$eq": operand}
        return not all(compare(one, row, name, value) for one, value in inner.items())
    negative = {"$ne": "$eq", "$nin": "$in", "$not_contains": "$contains"}
    if operator in negative:
        return not compare(negative[operator], row, name, operand)
    if operator == "$exists":
        return (name in row) == operand
    if name not in row:
        return False
    value = row[name]
    if operator == "$contains":
        if isinstance(value, str) and isinstance(operand, str):
            return operand in value
        return isinstance(value, list) and any(same(one, operand) for one in value)
    if isinstance(value, list | dict):
        return False
    if operator == "$eq":
        return same(value, operand)
    if operator == "$in":
        return any(same(value, one) for one in operand)
    kinds = [bool if isinstance(v, bool) else str if isinstance(v, str) else float for v in (value, operand)]
    if value is None or kinds[0] is not kinds[1] or kinds[0] is bool:
        return False
    return {
        "$gt": value > operand,
        "$gte": value >= operand,
        "$lt": value < operand,
        "$lte": value <= operand,
    }[operator]
