"""A look at all rows of a source before one is written: what no collection can hold is refused by name and with counts, and
rows that are there already are told apart. The key owner's side."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...collections.batch import OnZero
from ...collections.collection import Collection
from ...errors import DuplicateId, InvalidInput
from ...ingest import arrays, records
from ...ingest.arrays import FloatArray, Id
from ...ingest.counts import several
from ...ingest.metrics import METRICS
from ..row_table import Table
from .source import Source

_KEPT = 1 << 30
"""Bytes of a source that stay in memory between the look and the writing; a larger one is read twice."""
_BESIDE = 500
"""Bytes that a row takes in memory beside its vector and its text, about."""
_SHOWN = 20


@dataclass
class Rows:
    """Checked rows."""

    ids: list[Id]
    vectors: FloatArray
    metadatas: list[dict[str, Any] | None]
    documents: list[str | None]

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, stop: int) -> Rows:
        """Rows start..stop."""
        at = slice(start, stop)
        return Rows(self.ids[at], self.vectors[at], self.metadatas[at], self.documents[at])

    def only(self, kept: list[bool]) -> Rows:
        """Those that are marked."""
        if all(kept):
            return self
        lists: Any = (
            list(itertools.compress(one, kept)) for one in (self.ids, self.metadatas, self.documents)
        )
        ids, metadatas, documents = lists
        return Rows(ids, self.vectors[np.array(kept, np.bool_)], metadatas, documents)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """All of these, of which there is one at least."""
        if len(parts) == 1:
            return parts[0]
        ids, metadatas, documents = (
            [*itertools.chain.from_iterable(getattr(one, name) for one in parts)]
            for name in ("ids", "metadatas", "documents")
        )
        return cls(ids, np.concatenate([one.vectors for one in parts]), metadatas, documents)


@dataclass
class _Fault:
    count: int
    first: object
    reason: str


@dataclass
class Survey:
    """What was found. Reading a source that `kept` nothing again gives the same rows, unless it changed."""

    source: Source
    metric: str
    on_zero: OnZero
    there: Collection | None
    read: int = 0
    zeros: int = 0
    seen: set[Id] = field(default_factory=set)
    same: set[Id] = field(default_factory=set)
    """Ids of rows that the collection has, just as the source does."""
    other: set[Id] = field(default_factory=set)
    """Ids of rows that it has with something else."""
    faults: dict[tuple[str, str], _Fault] = field(default_factory=dict)
    kept: list[Rows] | None = field(default_factory=list)
    _bytes: int = 0

    def look(self, step: Callable[[int, int], object]) -> None:
        """Read everything once. Raises InvalidInput for values that can't be stored, DuplicateId for ids that occur twice."""
        twice: list[Id] = []
        for table in self.source.pages():
            self.read += len(table)
            rows = self._rows(table)
            if rows is not None:
                twice += self._take(rows)
            step(self.read, max(self.read, self.source.schema.rows))
        if self.source.unused:
            raise self.source.absent(min(self.source.unused), "--leave-out")
        if self.faults:
            raise InvalidInput(self._listed())
        if twice:
            raise DuplicateId(
                f"{self.source.address.text} has {several(len(twice), 'row')} whose id another has: "
                f"{_first(twice)}. Nothing was written. Make the ids distinct."
            )

    def again(self) -> Iterator[Rows]:
        """All rows, as `look` found them."""
        if self.kept is not None:
            yield from self.kept
            return
        for table in self.source.pages():
            rows = self._rows(table)
            if rows is None:
                raise InvalidInput(f"the source changed while it was read: {self._listed()}")
            yield rows

    def _take(self, rows: Rows) -> list[Id]:
        """Note these rows, and return the ids among them that came before."""
        before = len(self.seen)
        twice = [name for name in rows.ids if name in self.seen]
        self.seen.update(rows.ids)
        if len(self.seen) - before + len(twice) < len(rows):  # within the page
            names = sorted(rows.ids, key=repr)
            twice += [a for a, b in itertools.pairwise(names) if a == b and type(a) is type(b)]
        if self.there is not None:
            self._compare(rows)
        if self.kept is not None:
            self._bytes += rows.vectors.nbytes + sum(_BESIDE + len(text or "") for text in rows.documents)
            self.kept.append(rows)
            if self._bytes > _KEPT:
                self.kept = None
        return twice

    def _compare(self, rows: Rows) -> None:
        """Which of these the collection has, and whether it has them so. Vectors count where it keeps them as they came."""
        there = self.there
        assert there is not None
        known = [at for at, name in enumerate(rows.ids) if name in there]
        if not known:
            return
        parts = ["metadatas", "documents", *(["embeddings"] if there.originals else [])]
        found = there.get([rows.ids[at] for at in known], include=parts, audience="owner")
        for number, at in enumerate(known):
            same = (found["metadatas"][number], found["documents"][number]) == (
                rows.metadatas[at],
                rows.documents[at],
            )
            if same and there.originals:
                same = bool((found["embeddings"][number] == rows.vectors[at]).all())
            (self.same if same else self.other).add(rows.ids[at])

    def _rows(self, table: Table) -> Rows | None:
        """A page, checked as `Collection.add` checks it; None, and the faults noted, where it isn't fit."""
        dimension, vectors = self.source.schema.dimension, table.embeddings
        names, count = table.ids or [], len(table)
        metadatas, documents = table.metadatas or [None] * count, table.documents or [None] * count
        if self.on_zero == "skip" and METRICS[self.metric].directed and isinstance(vectors, np.ndarray):
            some = (vectors != 0).any(axis=1)
            if not some.all():
                self.zeros += int(len(some) - some.sum())
                vectors, mask = vectors[some], some.tolist()
                names, metadatas, documents = (
                    list(itertools.compress(one, mask)) for one in (names, metadatas, documents)
                )
                if not names:
                    return Rows([], vectors, [], [])
        try:
            pairs = records.check(names, metadatas, documents)
            return Rows(
                arrays.ids(names, paired=True),
                arrays.vectors(vectors, dimension, self.metric),
                [metadata for metadata, _ in pairs],
                [document for _, document in pairs],
            )
        except InvalidInput:
            for name, vector, metadata, document in zip(names, vectors, metadatas, documents, strict=True):
                self._note(name, vector, metadata, document)
            if not self.faults:
                raise
            return None

    def _note(self, name: Any, vector: Any, metadata: dict[str, Any] | None, document: Any) -> None:
        """What of a row is not fit, part by part."""
        size, metric = self.source.schema.dimension, self.metric
        self._try(name, "id", name, lambda: arrays.ids([name]))
        if vector is None:
            self._found(name, "no vector", "", "")
        else:
            self._try(name, "vector", vector, lambda: arrays.vectors([vector], size, metric))
        self._try(name, "document", document, lambda: records.check(["x"], None, [document]))
        for key, value in (metadata or {}).items():
            self._try(name, f"metadata {key!r}", value, partial(records.check, ["x"], [{key: value}], None))

    def _try(self, name: object, part: str, value: object, check: Callable[[], object]) -> None:
        try:
            check()
        except InvalidInput as error:
            self._found(name, part, "" if part == "vector" else type(value).__name__, str(error))

    def _found(self, name: object, part: str, kind: str, reason: str) -> None:
        if part == "vector":  # the reason, and not its numbers, tells one kind from another
            kind = next((says for word, says in _VECTORS.items() if word in reason), "of another kind")
        fault = self.faults.setdefault((part, kind), _Fault(0, name, reason))
        fault.count += 1

    def _listed(self) -> str:
        lines = [
            f"{part}{f' ({kind})' if kind else ''}: {several(one.count, 'row')}, first {one.first!r:.80}"
            f"{': ' if one.reason else ''}{one.reason:.160}"
            for (part, kind), one in list(self.faults.items())[:_SHOWN]
        ]
        return "\n".join(
            [
                f"{self.source.address.text} has what a collection can't hold. Nothing was written.",
                *lines,
                "Leave fields out with --leave-out, zero vectors with --on-zero skip; mend the rest in the source.",
            ]
        )


_VECTORS = {
    "zero vector": "zero",
    "not a finite": "not finite",
    "beyond float32": "beyond float32",
    "dimensions": "of another length",
}


def _first(names: list[Id]) -> str:
    return f"{', '.join(repr(name) for name in names[:5])}{' …' if len(names) > 5 else ''}"
