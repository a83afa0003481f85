"""Columns: the metadata of many rows enters; a table by field leaves, which tells at once which rows
pass a filter. Owner's side.

Of each field a table has the distinct values, sorted, and which of them each row has. So a
comparison is a search among the values, and then one look-up a row, without opening anything again.
"""

from __future__ import annotations

import bisect
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .where import MISSING, All, Comparison, Not, Part, Where, kind

Mask = npt.NDArray[np.bool_]
KINDS = ("none", "boolean", "number", "text", "list", "object")
_ENTRY = 16
"""Bytes that a value takes in a table beside itself."""


class Column:
    """One field. `codes` (n,) is 0 for a row without it, else 1 + the place of its value."""

    def __init__(self, rows: int) -> None:
        self.codes: npt.NDArray[np.int32] = np.zeros(rows, np.int32)
        self._seen: dict[str, dict[Any, int]] = {}
        self._values: list[Any] = []
        self._begin: dict[str, tuple[int, int]] = {}

    def put(self, row: int, value: Any) -> None:
        """Before `finish`: this row has this value."""
        of = kind(value)
        seen = self._seen.setdefault(of, {})
        key = json.dumps(value) if of in ("list", "object") else value
        # A code here is the place within its kind and the kind's own number, until all are known.
        self.codes[row] = 1 + seen.setdefault(key, len(seen)) * len(KINDS) + KINDS.index(of)

    def finish(self) -> None:
        """Sort the values and renumber the rows."""
        places = np.zeros(1 + len(KINDS) * max(map(len, self._seen.values()), default=0), np.int32)
        for number, of in enumerate(KINDS):
            seen = self._seen.get(of, {})
            begin = len(self._values)
            for value, old in sorted(seen.items()) if of != "none" else seen.items():
                places[1 + old * len(KINDS) + number] = 1 + len(self._values)
                self._values.append(json.loads(value) if of in ("list", "object") else value)
            self._begin[of] = (begin, len(self._values))
        self.codes, self._seen = places[self.codes], {}

    @property
    def kinds(self) -> set[str]:
        """What kinds of values there are."""
        return {of for of, (begin, end) in self._begin.items() if end > begin}

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return self.codes.nbytes + sum(sys.getsizeof(value) + _ENTRY for value in self._values)

    def mask(self, comparison: Comparison) -> Mask:
        """The rows that pass, (n,)."""
        truth = np.zeros(1 + len(self._values), np.bool_)
        operator = comparison.operator
        if operator in ("$eq", "$in", "$ne", "$nin"):
            for operand in comparison.operands:
                begin, end = self._equal(operand)
                truth[1 + begin : 1 + end] = True
            if operator in ("$ne", "$nin"):
                np.logical_not(truth, out=truth)
        elif operator in ("$gt", "$gte", "$lt", "$lte"):
            begin, end = self._begin[kind(comparison.operands[0])]
            low, high = self._equal(comparison.operands[0])
            first = {"$gt": high, "$gte": low}.get(operator, begin)
            last = {"$lt": low, "$lte": high}.get(operator, end)
            truth[1 + first : 1 + last] = True
        elif operator == "$exists":
            truth[0], truth[1:] = not comparison.operands[0], comparison.operands[0]
        else:
            truth[0] = operator == "$not_contains"
            truth[1:] = [comparison.test(value) for value in self._values]
        return truth[self.codes]

    def _equal(self, operand: Any) -> tuple[int, int]:
        """The values that are equal to this one."""
        begin, end = self._begin[kind(operand)]
        if operand is None:
            return begin, end
        low = bisect.bisect_left(self._values, operand, begin, end)
        return low, bisect.bisect_right(self._values, operand, low, end)


class Table:
    """The metadata of the rows of a segment."""

    def __init__(self, metadatas: Sequence[Mapping[str, Any] | None]) -> None:
        self.rows = len(metadatas)
        self.columns: dict[str, Column] = {}
        for row, metadata in enumerate(metadatas):
            for name, value in (metadata or {}).items():
                column = self.columns.get(name)
                if column is None:
                    column = self.columns[name] = Column(self.rows)
                column.put(row, value)
        for column in self.columns.values():
            column.finish()
        self.nbytes = sum(column.nbytes for column in self.columns.values())

    def mask(self, where: Where) -> Mask:
        """The rows that pass, (n,): the same as `Where.matches` says of each."""
        return self._part(where.root)

    def _part(self, part: Part) -> Mask:
        if isinstance(part, Comparison):
            column = self.columns.get(part.field)
            return _absent(part, self.rows) if column is None else column.mask(part)
        if isinstance(part, Not):
            return ~self._part(part.part)
        return combined([self._part(one) for one in part.parts], every=isinstance(part, All))


def combined(masks: Sequence[Mask], *, every: bool) -> Mask:
    """Rows of every mask, or of any, all (n,)."""
    found: Mask = np.full(len(masks[0]), every)
    for mask in masks:
        found = found & mask if every else found | mask
    return found


def _absent(comparison: Comparison, rows: int) -> Mask:
    """What a field that no row has says of them."""
    return np.full(rows, comparison.test(MISSING))
