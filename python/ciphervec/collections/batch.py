"""Batch: rows as a caller passes them, checked, and what one commit does with them. For the key owner and for writers."""

from __future__ import annotations

import hashlib
import itertools
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from .._native import IndexSpec
from ..errors import InvalidInput, InvalidRows
from ..ingest import arrays, records
from ..ingest.arrays import BoolArray, FloatArray, Id, Vectors
from ..ingest.counts import several
from ..ingest.metrics import METRICS
from ..ingest.records import Record
from ..ingest.where import written
from .embedding.multi import MULTI, some_matrices
from .results import SPARSE

ROWS, SIDECAR, RECORDS, TAGS, WRAP = "rows", "sidecar", "records", "tags", "wrap"
"""The blobs of a segment: sealed vectors, ids and norms, metadata and documents, filter tags; and,
in one that a writer sealed, its key, wrapped to the owner."""

ORIGINALS = "originals"
"""The vectors of a segment as they were put in, each sealed like a record: to be read back, and
never searched."""

EVALUATION, KEY_PAIR = "evaluation", "key-pair"
"""What a collection keeps beside its segments: the server's keys, and the owner's key pair,
sealed."""

SEGMENT_ROWS = 65_536
"""Rows of a segment at most."""
KEY_PAIR_ROWS = 4_096
"""The same under schemes with a key pair, whose rows are long."""


class NewSegment(NamedTuple):
    """One segment to commit."""

    id: bytes
    rows: int
    blobs: dict[str, bytes]


def commit_key(added: Iterable[NewSegment]) -> str:
    """By which a store knows again what adds these segments: 32 hexadecimal digits.

    Their ids are drawn anew by every sealing, so that the key belongs to what was sealed, also
    after it lay in a file, and to nothing else.
    """
    ids = b"".join(sorted(new.id for new in added))
    return hashlib.blake2b(ids, digest_size=16, person=b"cv commit key").hexdigest()


@dataclass
class WriteBatch:
    """What one commit does. All of it becomes durable, or none."""

    add: list[NewSegment] = field(default_factory=list)
    remove: list[bytes] = field(default_factory=list)
    delete_rows: dict[bytes, list[int]] = field(default_factory=dict)
    meta: bytes | None = None
    attachments: dict[str, bytes] = field(default_factory=dict)


T = TypeVar("T")
NO_VECTORS = (
    "rows need embeddings, shape (n, dimension), or documents for the embedding function; none were given."
)


OnZero = Literal["refuse", "skip"]
"""What becomes of rows whose vector is zero, where the metric compares directions alone."""


def without_zeros(
    on_zero: OnZero,
    metric: str,
    ids: Any,
    embeddings: Any,
    metadatas: Any,
    documents: Any,
    sparse: Any = None,
) -> tuple[Any, Any, Any, Any, Any]:
    """Rows as a caller passes them, without those whose vector is zero if `on_zero` is "skip": a warning counts these.
    Raises InvalidInput."""
    if on_zero not in get_args(OnZero):
        raise InvalidInput(f"on_zero is 'refuse' or 'skip', got {on_zero!r}.")
    given = (ids, embeddings, metadatas, documents, sparse)
    if on_zero == "refuse" or embeddings is None or not METRICS[metric].directed:
        return given
    rows = np.atleast_2d(arrays.numbers(embeddings, "embeddings"))
    zero = ~(rows != 0).any(axis=1)
    if not zero.any():
        return given
    columns = [arrays.ids(ids, paired=True) if ids is not None else None, metadatas, documents, sparse]
    columns = [one if one is None else [one] if isinstance(one, str | dict) else list(one) for one in columns]
    for name, column in zip(("ids", "metadatas", "documents", "sparse_embeddings"), columns, strict=True):
        if column is not None and len(column) != len(rows):
            raise InvalidInput(f"{name} has {several(len(column), 'entry')} for {several(len(rows), 'row')}.")
    named = ""
    if columns[0] is not None:
        left_out = [repr(name) for name, out in zip(columns[0], zero, strict=True) if out]
        named = f": {', '.join(left_out[:5])}{' …' if len(left_out) > 5 else ''}"
    warnings.warn(
        f"{several(int(zero.sum()), 'row')} of {len(rows):,} left out: a zero vector has no direction{named}.",
        UserWarning,
        stacklevel=3,
    )
    names, kept_metadatas, texts, kept_sparse = (
        column if column is None else list(itertools.compress(column, ~zero)) for column in columns
    )
    return names, rows[~zero], kept_metadatas, texts, kept_sparse


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
            raise InvalidInput(NO_VECTORS)
        faults: dict[int, str] = {}
        rows = _checked(faults, lambda: arrays.vectors(embeddings, spec.dimension, spec.metric))
        names = _checked(
            faults,
            lambda: arrays.fresh_ids(_count(embeddings)) if ids is None else arrays.ids(ids, paired=True),
        )
        if rows is not None and names is not None:
            arrays.same_length(len(names), rows, "embeddings")
        known = names or []
        pairs = (
            None if names is None else _checked(faults, lambda: records.check(known, metadatas, documents))
        )
        if faults or rows is None or names is None or pairs is None:
            raise InvalidRows.of(faults)
        arrays.distinct(names)
        return cls(names, rows, [Record(*pair) for pair in pairs])

    def part(self, start: int, stop: int) -> Batch:
        """Rows start..stop of this batch."""
        original = None if self.original is None else self.original[start:stop]
        return Batch(self.ids[start:stop], self.rows[start:stop], self.records[start:stop], original=original)


def _checked(faults: dict[int, str], step: Callable[[], T]) -> T | None:
    """What a check of every row gives; None, and what is wrong with which, where it fails. So all of it
    is told at once."""
    try:
        return step()
    except InvalidRows as error:
        for row, says in error.rows.items():
            faults[row] = f"{faults[row]} {says}" if row in faults else says
        return None


def _count(embeddings: Vectors) -> int:
    """Rows of an array that was looked at before."""
    array = np.asarray(embeddings)
    return 1 if array.ndim == 1 and array.size else len(array)


def rows(
    ids: list[Id],
    embeddings: Any,
    beside: Sequence[Record | tuple[dict[str, Any] | None, str | None]],
    sparse: list[tuple[list[int], list[float]] | None] | None,
    multi: list[FloatArray] | None = None,
) -> dict[str, Any]:
    """Rows as the core takes them."""
    return {
        "ids": ids,
        "embeddings": None if embeddings is None else np.ascontiguousarray(embeddings),
        "metadatas": [
            None if metadata is None else json.dumps(metadata, ensure_ascii=False, allow_nan=False)
            for metadata, _ in beside
        ],
        "documents": [document for _, document in beside],
        "sparse": sparse,
        "multi": multi,
        "skip_zeros": False,
    }


def which(ids: Any, where: Any, where_document: Any) -> dict[str, Any]:
    """Which rows, as the core takes it."""
    return {
        "ids": None if ids is None else arrays.ids(ids),
        "where": written(where, "where"),
        "where_document": written(where_document, "where_document"),
    }


def one_of(embeddings: object, multi: object, prefix: str = "") -> None:
    """Raises InvalidInput where rows or queries are given both as one vector and as many."""
    if embeddings is not None and multi is not None:
        raise InvalidInput(f"pass either {prefix}embeddings=... or {prefix}multi_embeddings=..., not both.")


def wanted_of(parts: list[str]) -> tuple[bool, bool, bool, bool]:
    """Whether metadata and documents are read, vectors, matrices, and sparse vectors."""
    records = bool({"metadatas", "documents"} & set(parts))
    return records, "embeddings" in parts, MULTI in parts, SPARSE in parts


def columns(read: Any, parts: list[str]) -> dict[str, Any]:
    """What the core read, by name; a part that was not asked for is None."""
    ids, metadatas, documents, embeddings, multi, sparse = read
    return {
        "ids": ids,
        "metadatas": [None if one is None else json.loads(one) for one in metadatas]
        if "metadatas" in parts
        else None,
        "documents": documents if "documents" in parts else None,
        "embeddings": embeddings,
        **({MULTI: multi} if MULTI in parts else {}),
        **({SPARSE: [_weights(one) for one in sparse]} if SPARSE in parts else {}),
    }


def _weights(sparse: tuple[list[int], list[float]] | None) -> dict[str, Any] | None:
    """A sparse vector as `add` takes it."""
    return None if sparse is None else {"indices": sparse[0], "values": sparse[1]}


def changed(
    spec: IndexSpec,
    names: list[Id],
    vectors: Any,
    multi: Any,
    beside: Any,
    sparse: list[tuple[list[int], list[float]] | None] | None,
) -> tuple[dict[str, Any], list[bool]]:
    """Changes of rows as the core takes them, and which of these have a vector, or a matrix. Raises InvalidInput."""
    if multi is not None:
        many, there = some_matrices(multi, len(names))
        return rows(names, None, beside, sparse, many), there
    found, given = arrays.some_vectors(vectors, len(names), spec.dimension, spec.metric)
    return rows(names, found[given], beside, sparse), given.tolist()
