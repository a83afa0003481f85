"""Batch: rows as a caller passes them enter; a checked batch leaves. Runs on the key owner's side,
and on a writer's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .._native import IndexSpec
from ..errors import InvalidInput
from ..ingest import arrays, records
from ..ingest.arrays import BoolArray, FloatArray, Id, Vectors
from ..ingest.records import Record
from .write_batch import NewSegment


@dataclass
class Batch:
    """Rows ready to be sealed: ids, float32 (n, d), and one record each."""

    ids: list[Id]
    rows: FloatArray
    records: list[Record]
    sealed: list[NewSegment] = field(default_factory=list)
    """What they were sealed into, so that a second attempt sends the same bytes."""
    alone: bool = False
    """Whether they are to be sealed without those of other segments."""
    original: BoolArray | None = None
    """Which rows are as they were put in, and not unsealed; None: all of them."""

    @classmethod
    def of(
        cls,
        spec: IndexSpec,
        ids: Id | Iterable[Id] | None,
        embeddings: Vectors | None,
        metadatas: object | None,
        documents: object | None,
    ) -> Batch:
        """Rows for a collection of this kind, as `Collection.add` takes them. Raises InvalidInput,
        or DuplicateId when an id repeats."""
        if embeddings is None:
            raise InvalidInput("rows need embeddings, shape (n, dimension); none were given.")
        rows = arrays.vectors(embeddings, spec.dimension, spec.metric)
        names = arrays.fresh_ids(len(rows)) if ids is None else arrays.ids(ids)
        arrays.same_length(len(names), rows, "embeddings")
        arrays.distinct(names)
        pairs = records.check(names, metadatas, documents)
        return cls(names, rows, [Record(*pair) for pair in pairs])

    def part(self, start: int, stop: int) -> Batch:
        """Rows start..stop of this batch."""
        original = None if self.original is None else self.original[start:stop]
        return Batch(self.ids[start:stop], self.rows[start:stop], self.records[start:stop], original=original)
