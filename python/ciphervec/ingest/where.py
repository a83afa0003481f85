"""Filters: a `where` filter enters; a test on metadata and the equalities the server can check by
tag leave. Owner's side.

Grammar, as in the vector stores: `{"lang": "en"}` or `{"lang": {"$eq": "en"}}`; `$ne $gt $gte $lt $lte $in
$nin`; several fields in one dict, or `{"$and": [...]}`, must all hold; `{"$or": [...]}` needs one. A missing
field fails every comparison except `$ne` and `$nin`. Numbers compare with numbers, strings with strings,
booleans with booleans.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..errors import InvalidInput
from .records import plain

Test = Callable[[Mapping[str, Any]], bool]
_MISSING = object()


class Where:
    """A checked filter, split into what goes to the server as keyed tags and what the owner tests
    itself.

    `tags` are the (field, canonical value) pairs that must all hold on `filterable` fields.
    `complete` says that they are the whole filter, so that no metadata needs to be opened.
    """

    def __init__(self, where: Mapping[str, Any], filterable: Collection[str]) -> None:
        """Raises InvalidInput, naming the part of `where` that is not understood."""
        self._test = _compile(where)
        self.tags: list[tuple[str, bytes]] = []
        self.complete = True
        self._collect(where, filterable)

    def matches(self, metadata: Mapping[str, Any] | None) -> bool:
        """Whether a row with this metadata passes."""
        return self._test(metadata or {})

    def _collect(self, where: Mapping[str, Any], filterable: Collection[str]) -> None:
        """Take the equalities that every matching row must satisfy: those not under `$or`."""
        for name, condition in where.items():
            if name == "$and":
                for part in condition:
                    self._collect(part, filterable)
            elif name == "$or" or name not in filterable:
                self.complete = False
            elif not isinstance(condition, Mapping):
                self.tags.append((name, canonical(condition)))
            else:
                for operator, operand in condition.items():
                    if operator == "$eq":
                        self.tags.append((name, canonical(operand)))
                    else:
                        self.complete = False


def canonical(value: Any) -> bytes:
    """Bytes that are equal exactly when two scalars are equal under `$eq`. Raises InvalidInput for
    a list or dict."""
    value = plain(value)
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"b1" if value else b"b0"
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return b"i%d" % value
    if isinstance(value, float):
        return b"f" + float.hex(value).encode()
    if isinstance(value, str):
        return b"s" + value.encode()
    raise InvalidInput(
        f"a filter compares with a string, number, boolean or None, got {type(value).__name__}."
    )


def _compile(where: object) -> Test:
    if not isinstance(where, Mapping) or not where:
        raise InvalidInput(f'where must be a non-empty dict such as {{"lang": "en"}}, got {where!r}.')
    tests = [_condition(name, condition) for name, condition in where.items()]
    return lambda metadata: all(test(metadata) for test in tests)


def _condition(name: object, condition: Any) -> Test:
    if name in ("$and", "$or"):
        if not isinstance(condition, Sequence) or isinstance(condition, str) or not condition:
            raise InvalidInput(f"{name} takes a non-empty list of filters, got {condition!r}.")
        parts = [_compile(part) for part in condition]
        combine = all if name == "$and" else any
        return lambda metadata: combine(part(metadata) for part in parts)
    if not isinstance(name, str) or not name or name.startswith("$"):
        raise InvalidInput(f"where has {name!r} where a field name, $and or $or is expected.")
    if not isinstance(condition, Mapping):
        condition = {"$eq": condition}
    if not condition:
        raise InvalidInput(f"the condition on {name!r} is empty; give a value or an operator such as $eq.")
    return _comparisons(name, condition)


def _comparisons(name: str, condition: Mapping[Any, Any]) -> Test:
    tests: list[Callable[[Any], bool]] = []
    for operator, operand in condition.items():
        if operator in ("$in", "$nin"):
            if not isinstance(operand, Sequence | set | frozenset) or isinstance(operand, str):
                raise InvalidInput(f"{operator} on {name!r} takes a list of values, got {operand!r}.")
            options = frozenset(canonical(option) for option in operand)
            tests.append(_member(options, operator == "$in"))
        elif operator in ("$eq", "$ne"):
            tests.append(_member(frozenset([canonical(operand)]), operator == "$eq"))
        elif operator in _ORDER:
            bound = plain(operand)
            kind = _kind(bound)
            if kind is None:
                raise InvalidInput(
                    f"{operator} on {name!r} compares with a number or a string, got {operand!r}."
                )
            tests.append(_ordered(_ORDER[operator], kind, bound))
        else:
            raise InvalidInput(
                f"unknown operator {operator!r} on {name!r}; known are $eq $ne $gt $gte $lt $lte $in $nin."
            )
    return lambda metadata: all(test(metadata.get(name, _MISSING)) for test in tests)


def _member(options: frozenset[bytes], wanted: bool) -> Callable[[Any], bool]:
    def test(value: Any) -> bool:
        if value is _MISSING or isinstance(value, list | dict):
            return not wanted
        return (canonical(value) in options) == wanted

    return test


def _ordered(compare: Callable[[Any, Any], bool], kind: type, operand: Any) -> Callable[[Any], bool]:
    return lambda value: _kind(value) is kind and compare(value, operand)


def _kind(value: Any) -> type | None:
    if isinstance(value, str):
        return str
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float
    return None


_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda a, b: bool(a > b),
    "$gte": lambda a, b: bool(a >= b),
    "$lt": lambda a, b: bool(a < b),
    "$lte": lambda a, b: bool(a <= b),
}
