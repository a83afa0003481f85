"""Search: the payloads of Chroma's search API, for the key owner. Each is ranked here, over lists of the nearest rows that the
sealed collection upstream finds, grouped and cut; then the rows that are left are read, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..collections.audience import Audience
from ..collections.collection import Collection
from . import message
from .answers import Found, opened, told
from .configuration import DOCUMENT, EMBEDDING
from .problem import Problem, invalid
from .ranking import Nearest, evaluated

_SCORE, _METADATA = "#score", "#metadata"
_PARTS = {DOCUMENT: "documents", EMBEDDING: "embeddings", _METADATA: "metadatas"}
Scored = tuple[str, float]
"""An id and its score, lower is better."""


def payloads(content: dict[str, Any]) -> list[dict[str, Any]]:
    """What is asked. Raises Problem."""
    found = content.get("searches")
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise Problem(422, "searches: expected a list of objects.")
    for one in found:
        for name in ("filter", "rank", "group_by", "limit", "select"):
            if not isinstance(one.get(name), dict | None):
                raise Problem(422, f"searches: {name} must be an object, got {type(one[name]).__name__}.")
        if one.get("group_by") and not one.get("rank"):
            raise invalid("Validation error: group_by: group_by requires rank expression to be specified")
    return found


class Payload:
    """One search, checked."""

    def __init__(self, given: dict[str, Any]) -> None:
        """Raises Problem."""
        limit = given.get("limit") or {}
        self.offset, self.limit = (
            message.number(limit, "offset", 0) or 0,
            message.number(limit, "limit", None),
        )
        self.filter, self.rank = given.get("filter") or None, given.get("rank") or None
        keys = (given.get("select") or {}).get("keys", [])
        if not isinstance(keys, list) or not all(isinstance(one, str) for one in keys):
            raise Problem(422, "select: keys must be a list of strings.")
        self.select: list[str] = list(dict.fromkeys(keys))
        self.group = _group(given.get("group_by") or {})
        self.fields = {key for key in self.select if not key.startswith("#")}
        """Fields of metadata that are selected by name."""

    @property
    def stop(self) -> int | None:
        """Where its rows end."""
        return None if self.limit is None else self.offset + self.limit

    def ranked(self, rows: Collection, nearest: Nearest, audience: Audience) -> list[Scored]:
        """The rows of a payload that ranks, best first. Raises Problem."""
        found = evaluated(self.rank, nearest)
        if self.group is not None and found:
            read = rows.get([row for row, _ in found], include=["metadatas"], audience=audience)
            fields = dict(zip(read["ids"], read["metadatas"] or (), strict=True))
            found = self.group([(row, score) for row, score in found if row in fields], fields)
        return found[self.offset : self.stop]

    def answer(self, rows: Collection | None, found: list[Scored], audience: Audience) -> dict[str, Any]:
        """What is selected of these rows, an entry a row."""
        parts = [_PARTS[key] for key in self.select if key in _PARTS]
        if self.fields and "metadatas" not in parts:
            parts.append("metadatas")
        scores = dict(found)
        read: Found = {"ids": list(scores)}
        if parts and scores and rows is not None:
            # With a limit what a server sees of how many are read follows that, and not how many rows are ranked.
            found_rows = rows.get(list(scores), include=opened(parts), limit=self.limit, audience=audience)
            read = dict(found_rows.items())
        shown = told(parts, read)
        if shown["metadatas"] is not None and _METADATA not in self.select:
            shown["metadatas"] = [self._selected(one) for one in shown["metadatas"]]
        shown["scores"] = [scores[row] for row in read["ids"]] if _SCORE in self.select else None
        return {**shown, "select": self.select}

    def _selected(self, fields: dict[str, Any] | None) -> dict[str, Any] | None:
        return {name: value for name, value in (fields or {}).items() if name in self.fields} or None


def together(answers: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The answer to all payloads, an entry a payload."""
    each = list(answers)
    names = ("ids", "documents", "embeddings", "metadatas", "scores", "select")
    return {name: [one[name] for one in each] for name in names}


def _group(given: dict[str, Any]) -> Callable[[list[Scored], dict[Any, Any]], list[Scored]] | None:
    """What leaves of each group of rows the first few. Raises Problem."""
    if not given:
        return None
    keys, aggregate = given.get("keys"), given.get("aggregate")
    if (
        not isinstance(aggregate, dict)
        or len(aggregate) != 1
        or not isinstance(keys, list)
        or not _names(keys)
    ):
        raise invalid(
            "Validation error: group_by: group_by keys and aggregate must both be specified or both be omitted"
        )
    ((name, by),) = aggregate.items()
    if name not in ("$min_k", "$max_k") or not isinstance(by, dict) or not _names(by.get("keys")):
        raise Problem(422, "group_by: the aggregate is $min_k or $max_k, with keys and k.")
    if any(key.startswith("#") for key in keys):
        raise invalid(
            "Validation error: group_by: group_by keys must be metadata fields (cannot use #score, #document, #embedding, or "
            "#metadata)"
        )
    if any(key.startswith("#") and key != _SCORE for key in by["keys"]):
        raise invalid(
            "Validation error: group_by: aggregate keys must be metadata fields or #score (cannot use #document, #embedding, "
            "or #metadata)"
        )
    count = message.number(by, "k", 0)
    if not count:
        raise invalid("Validation error: group_by: aggregate k must be greater than 0")

    def first(found: list[Scored], fields: dict[Any, Any]) -> list[Scored]:
        groups: dict[Any, list[Scored]] = {}
        for row in found:
            groups.setdefault(_values(row, keys, fields), []).append(row)
        kept: set[str] = set()
        for group in groups.values():
            group.sort(key=lambda row: _values(row, by["keys"], fields), reverse=name == "$max_k")
            kept.update(row for row, _ in group[:count])
        return [row for row in found if row[0] in kept]

    return first


def _names(keys: Any) -> bool:
    return isinstance(keys, list) and bool(keys) and all(isinstance(one, str) for one in keys)


def _values(row: Scored, keys: list[str], fields: dict[Any, Any]) -> tuple[Any, ...]:
    """What rows are grouped and sorted by: those without a field first, and kinds of values apart."""
    return tuple(_value(row[1] if key == _SCORE else (fields[row[0]] or {}).get(key)) for key in keys)


def _value(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, int | float):
        return (2, value)
    return (0,) if value is None else (3, value) if isinstance(value, str) else (4, repr(value))
