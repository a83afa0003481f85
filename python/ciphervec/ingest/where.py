"""Filters: a `where` filter enters; a test on metadata and the equalities the server can check by
tag leave. Owner's side.

Grammar, as in the vector stores: `{"lang": "en"}` or `{"lang": {"$eq": "en"}}`; `$ne $gt $gte $lt $lte $in
$nin`; `$contains` and `$not_contains` look into a list, or a text; `$exists` takes true or false, `$not` a
condition or a filter. Several fields in one dict, or `{"$and": [...]}`, must all hold; `{"$or": [...]}` needs
one. A missing field fails every comparison except `$ne`, `$nin` and `$not_contains`. Numbers compare with
numbers, strings with strings, booleans with booleans.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import InvalidInput
from .arrays import shown
from .nesting import check_depth
from .records import plain

MISSING = object()
"""What a row has in a field that it has not."""

EQUAL = ("$eq", "$in", "$ne", "$nin")
NEGATIVE = ("$ne", "$nin", "$not_contains")
ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda a, b: bool(a > b),
    "$gte": lambda a, b: bool(a >= b),
    "$lt": lambda a, b: bool(a < b),
    "$lte": lambda a, b: bool(a <= b),
}
OPERATORS = ("$eq", "$ne", *ORDER, "$in", "$nin", "$contains", "$not_contains", "$exists", "$not")


@dataclass(frozen=True)
class Comparison:
    """One operator on one field. `operands` are the values of `$in` and its kin, else a single
    one."""

    field: str
    operator: str
    operands: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_options", frozenset(map(canonical, self.operands)))

    @property
    def options(self) -> frozenset[bytes]:
        """The operands in canonical form."""
        found: frozenset[bytes] = self.__dict__["_options"]
        return found

    def test(self, value: Any) -> bool:
        """Whether a row passes that has this value, or `MISSING`."""
        operator = self.operator
        if operator in EQUAL:
            here = (
                not (value is MISSING or isinstance(value, list | dict)) and canonical(value) in self.options
            )
            return here != (operator in NEGATIVE)
        if operator == "$exists":
            return (value is not MISSING) is bool(self.operands[0])
        if operator in ("$contains", "$not_contains"):
            return self._holds(value) != (operator in NEGATIVE)
        operand = self.operands[0]
        return kind(value) == kind(operand) and ORDER[operator](value, operand)

    def _holds(self, value: Any) -> bool:
        if isinstance(value, list):
            return any(canonical(one) in self.options for one in value if not isinstance(one, list | dict))
        operand = self.operands[0]
        return isinstance(value, str) and isinstance(operand, str) and operand in value


@dataclass(frozen=True)
class All:
    """Every part must hold."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Some:
    """One part must hold."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Not:
    """The part must not hold."""

    part: Part


Part: TypeAlias = Comparison | All | Some | Not


class Where:
    """A checked filter, split into what goes to the server as keyed tags and what the owner tests
    itself.

    `tags` are the (field, canonical value) pairs that must all hold on `filterable` fields.
    `complete` says that they are the whole filter, so that no metadata needs to be opened.
    """

    def __init__(self, where: Mapping[str, Any], filterable: Collection[str]) -> None:
        """Raises InvalidInput, naming the part of `where` that is not understood."""
        check_depth(where, "where")
        self.root = _filter(where)
        self.tags: list[tuple[str, bytes]] = []
        self.complete = True
        self._collect(self.root, filterable)

    def matches(self, metadata: Mapping[str, Any] | None) -> bool:
        """Whether a row with this metadata passes."""
        return _passes(self.root, metadata or {})

    def comparisons(self) -> Iterator[Comparison]:
        """Every comparison, wherever it stands."""
        todo: list[Part] = [self.root]
        while todo:
            part = todo.pop(0)
            if isinstance(part, Comparison):
                yield part
            else:
                todo[:0] = [part.part] if isinstance(part, Not) else part.parts

    def _collect(self, part: Part, filterable: Collection[str]) -> None:
        """Take the equalities that every matching row must satisfy."""
        if isinstance(part, All):
            for one in part.parts:
                self._collect(one, filterable)
        elif isinstance(part, Comparison) and part.operator == "$eq" and part.field in filterable:
            self.tags += [(part.field, option) for option in part.options]
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
        try:
            return b"i%d" % value
        except ValueError as error:  # more digits than Python prints, and than metadata have
            raise InvalidInput(f"a filter compares with a number of too many digits: {error}.") from error
    if isinstance(value, float):
        return b"f" + float.hex(value).encode()
    if isinstance(value, str):
        try:
            return b"s" + value.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"a filter compares with {shown(value)}, which is not valid Unicode."
            ) from error
    raise InvalidInput(
        f"a filter compares with a string, number, boolean or None, got {type(value).__name__}. Use $in for one of "
        "several values, $contains for a value within a list."
    )


def kind(value: Any) -> str:
    """What a value compares with: `none`, `boolean`, `number`, `text`, `list` or `object`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "object"


def _passes(part: Part, metadata: Mapping[str, Any]) -> bool:
    if isinstance(part, Comparison):
        return part.test(metadata.get(part.field, MISSING))
    if isinstance(part, Not):
        return not _passes(part.part, metadata)
    combine = all if isinstance(part, All) else any
    return combine(_passes(one, metadata) for one in part.parts)


def _filter(where: object) -> Part:
    if not isinstance(where, Mapping) or not where:
        raise InvalidInput(f'where must be a non-empty dict such as {{"lang": "en"}}, got {shown(where)}.')
    return _all([_condition(name, condition) for name, condition in where.items()])


def _all(parts: Sequence[Part]) -> Part:
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _condition(name: object, condition: Any) -> Part:
    if name in ("$and", "$or"):
        if not isinstance(condition, Sequence) or isinstance(condition, str) or not condition:
            raise InvalidInput(f"{name} takes a non-empty list of filters, got {shown(condition)}.")
        parts = tuple(_filter(part) for part in condition)
        return All(parts) if name == "$and" else Some(parts)
    if name == "$not":
        return Not(_filter(condition))
    if not isinstance(name, str) or not name or name.startswith("$"):
        raise InvalidInput(f"where has {name!r} where a field name, $and, $or or $not is expected.")
    return _comparisons(name, condition if isinstance(condition, Mapping) else {"$eq": condition})


def _comparisons(name: str, condition: Mapping[Any, Any]) -> Part:
    if not condition:
        raise InvalidInput(f"the condition on {name!r} is empty; give a value or an operator such as $eq.")
    return _all([_comparison(name, operator, operand) for operator, operand in condition.items()])


def _comparison(name: str, operator: Any, operand: Any) -> Part:
    if operator == "$not":
        return Not(_comparisons(name, operand if isinstance(operand, Mapping) else {"$eq": operand}))
    if operator in ("$in", "$nin"):
        operands = [_operand(name, operator, one) for one in _values(name, operator, operand)]
        return Comparison(name, operator, tuple(one for one in operands if one == one))
    if operator not in OPERATORS:
        raise InvalidInput(f"unknown operator {operator!r} on {name!r}; known are {' '.join(OPERATORS)}.")
    operand = _operand(name, operator, operand)
    if operand != operand:
        raise InvalidInput(f"{operator} on {name!r} compares with nan, which nothing is equal to.")
    if operator == "$exists" and not isinstance(operand, bool):
        raise InvalidInput(f"$exists on {name!r} takes true or false, got {shown(operand)}.")
    if operator in ORDER and kind(operand) not in ("number", "text"):
        raise InvalidInput(
            f"{operator} on {name!r} compares with a number or a string, got {shown(operand)}."
        )
    return Comparison(name, operator, (operand,))


def _values(name: str, operator: str, operand: Any) -> Iterable[Any]:
    """The values of `$in` and `$nin`: a list, set, array, Series or the like."""
    if isinstance(operand, Iterator):  # a filter is read more than once
        raise InvalidInput(
            f"{operator} on {name!r} takes a list of values, got a {type(operand).__name__}, which can be read once only. "
            "Pass list(...) of it."
        )
    if (
        not isinstance(operand, Iterable)
        or isinstance(operand, str | bytes | Mapping)
        or getattr(operand, "shape", None) == ()
    ):
        raise InvalidInput(f"{operator} on {name!r} takes a list of values, got {shown(operand)}.")
    return operand


def _operand(name: str, operator: str, value: Any) -> Any:
    """A value to compare with, as rows have it."""
    found = plain(value)
    if found is None and value is not None:
        raise InvalidInput(
            f"{operator} on {name!r} compares with {shown(value)}, which stands for no value and equals none. For rows that "
            f'have None there say None; for rows without the field, {{"{name}": {{"$exists": False}}}}.'
        )
    canonical(found)  # which refuses what is no single value
    return found
