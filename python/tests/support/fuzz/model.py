"""A collection as a dictionary: what every verb must do to it, and what every question must answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ciphervec.errors import CiphervecError
from where_oracle import holds

from . import values

Id = str | int


class Row(NamedTuple):
    """One row: vector (d,) float32, metadata, document."""

    vector: np.ndarray
    metadata: dict[str, Any] | None
    document: str | None


class RefusedError(Exception):
    """What the model says of a call that must be refused."""


class Model:
    """Rows by id, in no order that counts."""

    def __init__(self) -> None:
        self.rows: dict[Id, Row] = {}

    def put(self, verb: str, names: Sequence[Id], rows: Sequence[Row]) -> None:
        """`add` or `upsert`."""
        if len(set(names)) < len(names) or (verb == "add" and any(name in self.rows for name in names)):
            raise RefusedError(verb)
        self.rows.update(zip(names, rows, strict=True))

    def update(
        self, names: Sequence[Id], rows: Sequence[Row | None], changes: Sequence[Row], gone: Iterable[str]
    ) -> None:
        """Fields laid over, documents and vectors replaced where given; `rows` are the vectors."""
        if len(set(names)) < len(names) or any(name not in self.rows for name in names):
            raise RefusedError("update")
        for name, row, change in zip(names, rows, changes, strict=True):
            old = self.rows[name]
            about = old.metadata
            if about:
                about = {field: one for field, one in about.items() if field not in gone}
            if change.metadata is not None:
                about = {**(about or {}), **change.metadata}
            document = old.document if change.document is None else change.document
            self.rows[name] = Row(old.vector if row is None else row.vector, about, document)

    def merge(
        self,
        names: Sequence[Id],
        rows: Sequence[Row | None],
        changes: Sequence[Row],
        known: str,
        unknown: str,
    ) -> int:
        """One change after the other; a field given as None goes."""
        after, written, before = dict(self.rows), set(), self.rows
        for name, row, change in zip(names, rows, changes, strict=True):
            here = name in before
            if (known == "keep" and (here or name in written)) or (unknown == "skip" and not here):
                continue
            old = after.get(name)
            about = {**((old and old.metadata) or {}), **(change.metadata or {})}
            if change.metadata is not None:
                about = {
                    k: v
                    for k, v in about.items()
                    if not (k in change.metadata and change.metadata[k] is None)
                }
            vector = row.vector if row is not None else old.vector if old is not None else None
            document = change.document if change.document is not None else old and old.document
            after[name] = Row(vector, about or None, document)  # type: ignore[arg-type]
            written.add(name)
        if any(after[name].vector is None for name in written):
            raise RefusedError("merge")
        self.rows = after
        return len(written)

    def passing(self, where: Any) -> list[Id]:
        return [name for name, row in self.rows.items() if where is None or holds(where, row.metadata or {})]


def condition(chance: random.Random, depth: int = 0) -> tuple[Any, Any]:
    """A filter, and the same in plain values."""
    if depth < 3 and chance.random() < 0.25:
        joint = chance.choice(["$and", "$or", "$not"])
        if joint == "$not":
            given, plain = condition(chance, depth + 1)
            return {"$not": given}, values.REFUSED if plain is values.REFUSED else {"$not": plain}
        parts = [condition(chance, depth + 1) for _ in range(chance.randrange(1, 4))]
        given = chance.choice([list, tuple])(one for one, _ in parts)
        bad = any(one is values.REFUSED for _, one in parts)
        return {joint: given}, values.REFUSED if bad else {joint: [one for _, one in parts]}
    if chance.random() < 0.04:
        return chance.choice(
            [
                {},
                [],
                "text",
                {"$xor": []},
                {"f": {}},
                {"f": {"$like": 1}},
                {"f": [1]},
                {3: 1},
                {"$and": []},
                5,
                {"f": {"$in": "red"}},
                {"f": {"$exists": 1}},
                {"": 1},
                {"f": {"$gt": None}},
                {"$and": {"f": 1}},
                {"f": {"$in": 5}},
                {"f": {"$in": (i for i in [1])}},
                {"f": {"g": 1}},
            ]
        ), values.REFUSED
    field = chance.choice(["f", "f", "n", "x", "caf\u00e9", "a b", "id", "metadata.x", "nowhere"])
    operator = chance.choice(
        [
            "",
            "$eq",
            "$ne",
            "$gt",
            "$gte",
            "$lt",
            "$lte",
            "$in",
            "$nin",
            "$contains",
            "$not_contains",
            "$exists",
            "$not",
        ]
    )
    if operator == "$exists":
        true = chance.random() < 0.5
        return {field: {operator: true}}, {field: {operator: true}}
    if operator in ("$in", "$nin"):
        pairs = [_operand(chance) for _ in range(chance.randrange(4))]
        # NaN is left out of lists: no row is equal to it.
        pairs = [(one, float("nan") if values.is_nan(one) else plain) for one, plain in pairs]
        bad = any(plain is values.REFUSED for _, plain in pairs)
        kept = [given for given, _ in pairs]
        given = chance.choice([list, tuple])(kept)
        return {field: {operator: given}}, values.REFUSED if bad else {
            field: {operator: [plain for _, plain in pairs]}
        }
    given, plain = _operand(chance)
    if operator in ("$gt", "$gte", "$lt", "$lte") and (plain is None or isinstance(plain, bool)):
        plain = values.REFUSED
    bad = plain is values.REFUSED
    if not operator:
        return {field: given}, plain if bad else {field: plain}
    return {field: {operator: given}}, plain if bad else {field: {operator: plain}}


def _operand(chance: random.Random) -> tuple[Any, Any]:
    """A value to compare with; what stands for no value is refused there, and is None in metadata."""
    if chance.random() < 0.5:
        one = chance.choice(["red", "green", 1, 1.0, True, None, "1", 0, 2, 0.5, "a"])
        return one, one
    given, plain = values.scalar(chance)
    if isinstance(given, float | np.floating) and np.isinf(given):
        plain = float(given)  # which no row has, and all are less
    if plain is None and given is not None:
        plain = values.REFUSED
    if isinstance(plain, dict):
        plain = values.REFUSED
    return given, plain


def attempt(call: Callable[[], Any], *, right: bool | None) -> tuple[bool, Any]:
    """Do it. `right`: whether it must be taken (True), must be refused (False), or may be either (None). Whether it was
    taken, and the answer. An error of another class goes through, and so fails the case."""
    try:
        found = call()
    except CiphervecError as error:
        assert right is not True, f"refused, with {type(error).__name__}: {error}"
        assert len(str(error)) > 15, f"{type(error).__name__} says only {error}"
        return False, error
    assert right is not False, f"taken, and had to be refused: {found!r:.300}"
    return True, found
