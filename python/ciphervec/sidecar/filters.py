"""Filters of Chroma's clients, for the key owner: what of `where` and `where_document` the collection tests itself, and a test
of opened rows for the rest. Both together are the whole filter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ciphervec._native as _native

from ..errors import InvalidInput
from ..ingest.records import Record
from ..ingest.where import row_filter
from . import configuration
from .problem import Problem, invalid

Row = tuple[dict[str, Any] | None, str | None, Any]
"""Metadata and document, opened, and the id."""
Test = Callable[[Row], bool]

_ORDER = ("$gt", "$gte", "$lt", "$lte")
ID = "#id"
_DOCUMENT = ("$contains", "$not_contains", "$regex", "$not_regex")


@dataclass(frozen=True)
class Filter:
    """What a row must pass: all parts that are given."""

    metadata: dict[str, Any] | None = None
    """In the grammar of collections, which may test it without opening every row."""
    rest: Test | None = None
    """On rows that were opened."""
    ids: frozenset[str] | None = None
    """Those that may pass."""

    def __bool__(self) -> bool:
        return self.metadata is not None or self.rest is not None or self.ids is not None

    def among(self, ids: list[str] | None) -> list[str] | None:
        """Which of these ids may pass, or of all; None for any."""
        if self.ids is None:
            return ids
        return sorted(self.ids) if ids is None else [one for one in ids if one in self.ids]


@dataclass(frozen=True)
class _Fields:
    """A condition on metadata."""

    where: dict[str, Any] | None
    """None where every row passes."""


@dataclass(frozen=True)
class _Text:
    """A condition on the document."""

    test: Callable[[str | None], bool]


@dataclass(frozen=True)
class _Named:
    """A condition on the id."""

    ids: frozenset[str]
    among: bool
    """Whether it is to be one of them, or none."""


@dataclass(frozen=True)
class _Many:
    """Conditions that must hold, all or one of them."""

    every: bool
    parts: tuple[_Part, ...]


_Part = _Fields | _Text | _Named | _Many


def read(where: Any, where_document: Any, schema: dict[str, Any]) -> Filter:
    """Check both and put them together. Raises Problem for what is no filter, or asks for what the
    collection's schema excludes."""
    parts: list[_Part] = []
    if where is not None:
        parts.append(_where(where, schema))
    if where_document is not None:
        parts.append(_document(where_document, schema))
    conditions = [one for part in parts for one in _flat(part)]
    fields = [one.where for one in conditions if isinstance(one, _Fields) and one.where is not None]
    named = [one.ids for one in conditions if isinstance(one, _Named) and one.among]
    others = [
        _test(one)
        for one in conditions
        if not isinstance(one, _Fields) and not (isinstance(one, _Named) and one.among)
    ]
    metadata = None if not fields else fields[0] if len(fields) == 1 else {"$and": fields}
    rest = (lambda row: all(test(row) for test in others)) if others else None
    return Filter(metadata, rest, frozenset.intersection(*named) if named else None)


def _flat(part: _Part) -> list[_Part]:
    """The conditions that must all hold. What is about metadata alone stays one."""
    if isinstance(part, _Many) and part.every:
        return [one for inner in part.parts for one in _flat(inner)]
    return [part]


def _test(part: _Part) -> Test:
    if isinstance(part, _Text):
        text = part.test
        return lambda row: text(row[1])
    if isinstance(part, _Named):
        return lambda row: (row[2] in part.ids) is part.among
    if isinstance(part, _Fields):
        if part.where is None:
            return lambda row: True
        fields = row_filter(part.where, None, ())
        return lambda row: fields is None or fields.matches(Record(row[0]).to_bytes())
    tests = [_test(one) for one in part.parts]
    combine = all if part.every else any
    return lambda row: combine(test(row) for test in tests)


def _many(every: bool, parts: list[_Part]) -> _Part:
    """As few nodes as will do: metadata alone is one condition."""
    if parts and all(isinstance(one, _Fields) for one in parts):
        wheres = [one.where for one in parts if isinstance(one, _Fields)]
        if not every and None in wheres:
            return _Fields(None)
        given = [one for one in wheres if one is not None]
        if not given:
            return _Fields(None)
        return _Fields(given[0] if len(given) == 1 else {"$and" if every else "$or": given})
    return _Many(every, tuple(parts))


def _where(where: Any, schema: dict[str, Any]) -> _Part:
    if not isinstance(where, dict) or len(where) != 1:
        raise _refused(where, "it must be an object with one field or operator")
    ((name, condition),) = where.items()
    if name in ("$and", "$or"):
        if not isinstance(condition, list):
            raise _refused(where, f"{name} takes a list")
        return _many(name == "$and", [_where(one, schema) for one in condition])
    if not name or name.startswith("$"):
        raise _refused(where, f"there is no operator {name!r} here")
    if isinstance(condition, dict) and len(condition) != 1:
        raise _refused(where, f"the condition on {name!r} must have one operator")
    operator, operand = next(iter(condition.items())) if isinstance(condition, dict) else ("$eq", condition)
    if name == ID:
        listed = operand if operator in ("$in", "$nin") else [operand]
        if operator not in ("$eq", "$ne", "$in", "$nin") or not isinstance(listed, list):
            raise _refused(where, f"{ID} takes $eq, $ne, $in or $nin")
        if not all(isinstance(one, str) for one in listed):
            raise _refused(where, "ids are texts")
        return _Named(frozenset(listed), operator in ("$eq", "$in"))
    if name == configuration.DOCUMENT:
        if operator in _DOCUMENT:
            return _document({operator: operand}, schema)
        raise _disabled(name, kind(operand))
    return _Fields(_comparison(where, name, operator, operand, schema))


def _comparison(where: Any, name: str, operator: str, operand: Any, schema: dict[str, Any]) -> dict[str, Any]:
    operands = operand if operator in ("$in", "$nin") else [operand]
    if not isinstance(operands, list) or not operands:
        raise _refused(where, f"{operator} takes a list of values")
    kinds = {kind(one) for one in operands}
    if "" in kinds or len(kinds) > 1:
        raise _refused(where, f"{operator} compares with texts, numbers or booleans, all of one kind")
    (of,) = kinds
    if not configuration.indexed(schema, name, of):
        raise _disabled(name, of)
    if operator in ("$eq", "$ne", "$in", "$nin"):
        return {name: {operator: operand}}
    if operator in _ORDER:
        if of not in ("int", "float"):
            raise _refused(where, f"{operator} compares with a number")
        return {name: {operator: operand}}
    if operator in ("$contains", "$not_contains"):
        # Of lists alone: a text is no list, and every text is at least the empty one.
        listed = {"$and": [{name: {"$contains": operand}}, {"$not": {name: {"$gte": ""}}}]}
        return listed if operator == "$contains" else {"$not": listed}
    raise _refused(where, f"there is no operator {operator!r}")


def _document(where: Any, schema: dict[str, Any]) -> _Part:
    if not isinstance(where, dict) or len(where) != 1:
        raise invalid("Invalid where document clause: it must be an object with one operator.")
    ((operator, operand),) = where.items()
    if operator in ("$and", "$or"):
        if not isinstance(operand, list):
            raise invalid(f"Invalid where document clause: {operator} takes a list.")
        return _many(operator == "$and", [_document(one, schema) for one in operand])
    if operator not in _DOCUMENT or not isinstance(operand, str):
        raise invalid(
            f"Invalid where document clause: expected $and, $or, or one of {', '.join(_DOCUMENT)} with a text; "
            f"got {operator!r}."
        )
    if not configuration.indexed(schema, configuration.DOCUMENT, "string"):
        raise invalid(
            "Cannot filter using where_document because the full text search (FTS) index is disabled for '#document'"
        )
    if operator in ("$contains", "$not_contains"):
        text: Callable[[str], bool] = lambda document: operand in document  # noqa: E731
    else:
        text = _pattern(operand).found_in
    if operator.startswith("$not"):
        return _Text(lambda document: document is None or not text(document))
    return _Text(lambda document: document is not None and text(document))


def _pattern(source: str) -> _native.Pattern:
    """A regular expression that takes time linear in a document, as Chroma's own server has them."""
    try:
        return _native.Pattern(source)
    except InvalidInput as error:
        raise invalid(f"Regex syntax error: {error}") from None


def kind(value: Any) -> str:
    """As schemas name it; nothing for what no field is compared with."""
    if isinstance(value, bool):
        return "bool"
    return {int: "int", float: "float", str: "string"}.get(type(value), "")


def _refused(where: Any, reason: str) -> Problem:
    return invalid(f"Invalid where clause: {reason}; got {where!r:.200}")


def _disabled(name: str, of: str) -> Problem:
    shown = {"string": "Str", "int": "Int", "float": "Float", "bool": "Bool"}.get(of, of)
    return invalid(
        f"Cannot filter using metadata key '{name}' with type '{shown}' because indexing is disabled"
    )
