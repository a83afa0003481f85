"""Ranking expressions of Chroma's search API, for the key owner: scores of rows, made of lists of the nearest ones. A row that
a list without a default does not have is not ranked, as at Chroma's own server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from .configuration import EMBEDDING
from .problem import Problem

Operation = Callable[[Any, Any], Any]
_FOLDED: dict[str, tuple[float, Operation]] = {
    "$sum": (0.0, np.add),
    "$mul": (1.0, np.multiply),
    "$max": (-np.inf, np.maximum),
    "$min": (np.inf, np.minimum),
}
_OF_TWO: dict[str, Operation] = {"$sub": np.subtract, "$div": np.divide}
_OF_ONE: dict[str, Callable[[Any], Any]] = {"$abs": np.abs, "$exp": np.exp, "$log": np.log}


@dataclass(frozen=True)
class Knn:
    """The nearest rows of one vector: `{"$knn": …}`."""

    query: Any
    """A list of numbers, or a sparse vector as clients write it."""
    key: str
    limit: int
    default: float | None
    by_rank: bool


@dataclass(frozen=True)
class Scored:
    """Scores of rows, lower is better."""

    rows: dict[Any, float]
    rest: float | None
    """That of all others; None where they are not ranked."""

    def changed(self, change: Callable[[Any], Any]) -> Scored:
        """With each score changed."""
        rows = {row: float(change(score)) for row, score in self.rows.items()}
        return Scored(rows, None if self.rest is None else float(change(self.rest)))

    def with_(self, other: Scored, operation: Operation) -> Scored:
        """Both made one, of the rows that both rank."""
        rows = [row for row in self.rows if other.rest is not None or row in other.rows]
        rows += [row for row in other.rows if self.rest is not None and row not in self.rows]
        scores = {
            row: float(operation(self.rows.get(row, self.rest), other.rows.get(row, other.rest)))
            for row in rows
        }
        both = self.rest is not None and other.rest is not None
        return Scored(scores, float(operation(self.rest, other.rest)) if both else None)


Nearest = Callable[[Knn], dict[Any, float]]
"""Distances of the nearest rows, ascending."""


def evaluated(expression: Any, nearest: Nearest) -> list[tuple[Any, float]]:
    """The rows that an expression ranks, lowest score first, those without a number last. Raises Problem."""
    with np.errstate(all="ignore"):  # what is no number is ranked last
        found = _evaluated(expression, nearest)
    # Equally low ones stay in the order in which the lists have them.
    return sorted(found.rows.items(), key=lambda row: (np.isnan(row[1]), row[1]))


def _evaluated(expression: Any, nearest: Nearest) -> Scored:
    operator, operand = _one(expression)
    if operator == "$val":
        return Scored({}, _number(operand, operator))
    if operator == "$knn":
        knn = _knn(operand)
        found = nearest(knn)
        if knn.by_rank:
            found = {row: float(rank) for rank, row in enumerate(found)}
        return Scored(found, knn.default)
    if operator in _OF_ONE:
        return _evaluated(operand, nearest).changed(_OF_ONE[operator])
    if operator in _OF_TWO:
        if not isinstance(operand, dict) or set(operand) != {"left", "right"}:
            raise _refused(f"{operator} takes 'left' and 'right'")
        left, right = (_evaluated(operand[side], nearest) for side in ("left", "right"))
        return left.with_(right, _OF_TWO[operator])
    if operator in _FOLDED:
        if not isinstance(operand, list) or not operand:
            raise _refused(f"{operator} takes a list of expressions")
        first, operation = _FOLDED[operator]
        parts: Iterator[Scored] = (_evaluated(one, nearest) for one in operand)
        return reduce(lambda left, right: left.with_(right, operation), parts, Scored({}, first))
    raise _refused(f"there is no operator {operator!r:.40}")


def _one(expression: Any) -> tuple[str, Any]:
    if not isinstance(expression, dict) or len(expression) != 1:
        raise _refused("an expression is an object with one operator")
    return next(iter(expression.items()))


def _knn(given: Any) -> Knn:
    if not isinstance(given, dict) or not isinstance(given.get("query"), list | dict):
        raise _refused("$knn takes a query: a vector, or a sparse vector; the client embeds texts")
    key, limit = given.get("key", EMBEDDING), given.get("limit", 16)
    if not isinstance(key, str):
        raise _refused("the key of $knn is the name of a field")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit < 1 << 32:
        raise _refused(f"the limit of $knn is a whole number of at least 1, got {limit!r:.40}")
    by_rank = given.get("return_rank", False)
    if not isinstance(by_rank, bool):
        raise _refused("return_rank is true or false")
    default = given.get("default")
    return Knn(given["query"], key, limit, None if default is None else _number(default, "default"), by_rank)


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refused(f"{what} takes a number, got {value!r:.40}")
    return float(value)


def _refused(reason: str) -> Problem:
    return Problem(422, f"rank: {reason}.")
