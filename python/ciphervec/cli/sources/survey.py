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
from ...collections.embedding.multi import MULTI, matrices_of
from ...collections.ranking import SparseRow, sparse_rows
from ...collections.results import SPARSE
from ...errors import DuplicateId, InvalidInput
from ...ingest import arrays, records
from ...ingest.arrays import FloatArray, Id
from ...ingest.counts import several
from ...ingest.metrics import METRICS
from ..row_table import Table
from .source import Questions, Source

_KEPT = 1 << 30
"""Bytes of a source that stay in memory between the look and the writing; a larger one is read twice."""
_BESIDE = 500
"""Bytes that a row takes in memory beside its vector and its text, about."""
_SHOWN = 20


@dataclass
class Rows:
    """Checked rows."""

    ids: list[Id]
    vectors: Questions
    """(n, d), or a matrix a row."""
    metadatas: list[dict[str, Any] | None]
    documents: list[str | None]
    sparse: list[SparseRow | None] | None = None
    """Sparse vectors, of a source that has some."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def many(self) -> bool:
        """Whether rows have many vectors each."""
        return isinstance(self.vectors, list)

    @property
    def nbytes(self) -> int:
        """Of the vectors."""
        dense = self.vectors if isinstance(self.vectors, list) else [self.vectors]
        return sum(one.nbytes for one in dense) + sum(80 * len(one[0]) for one in self.sparse or () if one)

    def put(self, store: Callable[..., object], progress: Callable[[int, int], object]) -> None:
        """Add them by a method of a collection."""
        one, many = (None, self.vectors) if self.many else (self.vectors, None)
        store(self.ids, one, self.metadatas, self.documents, sparse_embeddings=self.sparse, multi_embeddings=many,
              progress=progress)  # fmt: skip

    def part(self, start: int, stop: int) -> Rows:
        """Rows start..stop."""
        return self._each(lambda column: column[start:stop])

    def only(self, kept: list[bool]) -> Rows:
        """Those that are marked."""
        if all(kept):
            return self
        mask = np.array(kept, np.bool_)
        return self._each(
            lambda column: (
                column[mask] if isinstance(column, np.ndarray) else list(itertools.compress(column, kept))
            )
        )

    def _each(self, taken: Callable[[Any], Any]) -> Rows:
        sparse = None if self.sparse is None else taken(self.sparse)
        return Rows(
            taken(self.ids), taken(self.vectors), taken(self.metadatas), taken(self.documents), sparse
        )

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """All of these, of which there is one at least."""
        if len(parts) == 1:
            return parts[0]

        def joined(name: str) -> Any:
            columns = [getattr(one, name) for one in parts]
            dense = isinstance(columns[0], np.ndarray)
            return np.concatenate(columns) if dense else [*itertools.chain.from_iterable(columns)]

        sparse = None if parts[0].sparse is None else joined("sparse")
        return cls(joined("ids"), joined("vectors"), joined("metadatas"), joined("documents"), sparse)


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
    _of_vectors: int = 0

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

    @property
    def bytes_of_row(self) -> int:
        """Of its vectors, on average."""
        return max(1, self._of_vectors // max(1, len(self.seen)))

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
        self._of_vectors += rows.nbytes
        if self.there is not None:
            self._compare(rows)
        if self.kept is not None:
            self._bytes += rows.nbytes + sum(_BESIDE + len(text or "") for text in rows.documents)
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
        vectors = MULTI if rows.many else "embeddings"
        kept = [vectors] if there.originals else []
        parts = ["metadatas", "documents", *kept, *([] if rows.sparse is None else [SPARSE])]
        found = there.get([rows.ids[at] for at in known], include=parts, audience="owner")
        for number, at in enumerate(known):
            same = (found["metadatas"][number], found["documents"][number]) == (
                rows.metadatas[at],
                rows.documents[at],
            )
            if same and rows.sparse is not None:
                same = sparse_rows([found[SPARSE][number]], SPARSE) == [rows.sparse[at]]
            if same and there.originals:
                same = _alike(found[vectors][number], rows.vectors[at])
            (self.same if same else self.other).add(rows.ids[at])

    def _rows(self, table: Table) -> Rows | None:
        """A page, checked as `Collection.add` checks it; None, and the faults noted, where it isn't fit."""
        vectors = table.embeddings if table.multi is None else table.multi
        names, count, sparse = table.ids or [], len(table), table.sparse
        metadatas, documents = table.metadatas or [None] * count, table.documents or [None] * count
        if self.on_zero == "skip" and METRICS[self.metric].directed and isinstance(vectors, np.ndarray):
            some = (vectors != 0).any(axis=1)
            if not some.all():
                self.zeros += int(len(some) - some.sum())
                vectors, mask = vectors[some], some.tolist()
                names, metadatas, documents = (
                    list(itertools.compress(one, mask)) for one in (names, metadatas, documents)
                )
                sparse = None if sparse is None else list(itertools.compress(sparse, mask))
                if not names:
                    return Rows([], vectors, [], [], sparse)
        try:
            pairs = records.check(names, metadatas, documents)
            return Rows(
                arrays.ids(names, paired=True),
                self._vectors(vectors),
                [metadata for metadata, _ in pairs],
                [document for _, document in pairs],
                None if sparse is None else sparse_rows(sparse, SPARSE),
            )
        except InvalidInput:
            beside = [None] * len(names) if sparse is None else sparse
            for row in zip(names, vectors, metadatas, documents, beside, strict=True):
                self._note(*row)
            if not self.faults:
                raise
            return None

    def _vectors(self, given: Any) -> Any:
        """Vectors, or matrices, as a collection takes them. Raises InvalidInput."""
        chosen = self.source.chosen_vectors
        if chosen.many:
            return matrices_of(given, chosen.numbers, MULTI)
        return arrays.vectors(given, chosen.numbers, self.metric)

    def _note(
        self, name: Any, vector: Any, metadata: dict[str, Any] | None, document: Any, sparse: Any
    ) -> None:
        """What of a row is not fit, part by part."""
        self._try(name, "id", name, lambda: arrays.ids([name]))
        if vector is None:
            self._found(name, "no vector", "", "")
        else:
            self._try(name, "vector", vector, lambda: self._vectors([vector]))
        self._try(name, "sparse vector", sparse, lambda: sparse_rows([sparse], SPARSE))
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
    "the number": "not finite",
    "vectors of": "of another length",
    "beyond float32": "beyond float32",
    "dimensions": "of another length",
}


def _alike(kept: FloatArray, given: FloatArray) -> bool:
    """Whether a vector is kept as it was put in; of a matrix, each number to half a 127th of its vector's largest."""
    if kept.ndim == 1:
        return bool((kept == given).all())
    if kept.shape != given.shape:
        return False
    exact = given.astype(np.float64)
    most = np.abs(exact).max(axis=1, keepdims=True) / 254 * (1 + 1e-5)
    return bool((np.abs(kept - exact) <= np.maximum(most, np.finfo(np.float32).tiny)).all())


def _first(names: list[Id]) -> str:
    return f"{', '.join(repr(name) for name in names[:5])}{' …' if len(names) > 5 else ''}"
