"""Divides parquet files or a Ray Dataset into slices that are sealed as one batch each, always the same ones. Sealing
cluster.

A slice is known by its first row, counted through the whole data set, and its rows. Parquet files
say how many rows they have, and workers read them themselves, so that no plaintext enters Ray's
memory. A Dataset is asked to keep its order; its blocks do lie in Ray's memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from ..errors import InvalidInput, StorageError
from ..ingest import lists
from ..ingest.arrays import Id
from ..ingest.files import StrPath


class Columns(NamedTuple):
    """Which columns hold what."""

    ids: str = "id"
    embeddings: str = "embedding"
    documents: str | None = None
    metadatas: Sequence[str] = ()

    def names(self) -> list[str]:
        """All of them."""
        more = [] if self.documents is None else [self.documents]
        return [self.ids, self.embeddings, *more, *self.metadatas]


class Slice(NamedTuple):
    """Rows that are sealed as one batch."""

    start: int
    rows: int
    origin: Any
    """A file's path, or the block of a Dataset."""
    offset: int
    """Its first row there."""


class Rows(NamedTuple):
    """What is sealed, as `Writer.seal` takes it."""

    ids: list[Id]
    embeddings: np.ndarray[Any, Any]
    documents: list[Any] | None
    metadatas: list[dict[str, Any]] | None

    def digest(self, key: bytes) -> bytes:
        """16 bytes that other rows, or others in their order, would not have; without the key they
        say nothing of any."""
        state = hashlib.blake2b(key=key, digest_size=16, person=b"cv sealed rows")
        vectors = np.ascontiguousarray(self.embeddings)
        state.update(repr((vectors.dtype.str, vectors.shape, self.ids)).encode())
        state.update(vectors.tobytes())
        state.update(repr((self.documents, self.metadatas)).encode())
        return state.digest()


def files_of(path: StrPath) -> list[str]:
    """The parquet files at a path, by name. Raises InvalidInput."""
    place = Path(path)
    found = sorted(place.rglob("*.parquet")) if place.is_dir() else [place] if place.is_file() else []
    if not found:
        raise InvalidInput(
            f"there is no parquet file at {os.fspath(path)}; give a file, or a folder of them."
        )
    return [os.fspath(one.resolve()) for one in found]


def slices_of_files(files: Sequence[str], rows_a_batch: int) -> Iterator[Slice]:
    """The slices of parquet files. None spans two files."""
    start = 0
    for file in files:
        try:
            count = parquet.read_metadata(file).num_rows
        except (OSError, pa.ArrowInvalid) as error:
            raise StorageError(f"cannot read {file}: {error}.") from error
        for offset in range(0, count, rows_a_batch):
            rows = min(rows_a_batch, count - offset)
            yield Slice(start + offset, rows, file, offset)
        start += count


def slices_of_dataset(dataset: Any, rows_a_batch: int) -> Iterator[Slice]:
    """The slices of a Dataset, as its blocks come. None spans two blocks."""
    dataset.context.execution_options.preserve_order = True
    start = 0
    for bundle in dataset.iter_internal_ref_bundles():
        parts = bundle.slices or [None] * len(bundle.blocks)
        for block, part in zip(bundle.blocks, parts, strict=True):
            if part is None and block.metadata.num_rows is None:
                raise InvalidInput(
                    "a block of this Dataset does not say how many rows it has; pass dataset.materialize(), or parquet files."
                )
            first = 0 if part is None else int(part.start_offset)
            count = int(block.metadata.num_rows) if part is None else int(part.end_offset) - first
            for offset in range(0, count, rows_a_batch):
                rows = min(rows_a_batch, count - offset)
                yield Slice(start + offset, rows, block.ref, first + offset)
            start += count


def read(block: Any, offset: int, count: int, columns: Columns) -> Rows:
    """The rows of a slice: `block` is a file's path, or a Dataset's block. Raises InvalidInput for
    columns that are not there."""
    table = _of_file(block, offset, count, columns) if isinstance(block, str) else _table(block)
    missing = [name for name in columns.names() if name not in table.column_names]
    if missing:
        raise InvalidInput(
            f"there is no column {missing[0]!r} among {', '.join(table.column_names)}; name the columns with "
            "columns=Columns(...)."
        )
    if not isinstance(block, str):
        table = table.slice(offset, count)
    ids = table.column(columns.ids).to_pylist()
    documents = None if columns.documents is None else table.column(columns.documents).to_pylist()
    metadatas = None
    if columns.metadatas:
        fields = table.select(list(columns.metadatas)).to_pylist()
        metadatas = [{key: value for key, value in row.items() if value is not None} for row in fields]
    rows = lists.vectors(table.column(columns.embeddings), f"column {columns.embeddings!r}", offset)
    return Rows(ids, rows, documents, metadatas)


def _of_file(file: str, offset: int, count: int, columns: Columns) -> pa.Table:
    """Row groups outside of the slice are not read."""
    opened = parquet.ParquetFile(file, memory_map=True)
    groups: list[int] = []
    first = before = 0
    for number in range(opened.num_row_groups):
        rows = opened.metadata.row_group(number).num_rows
        if before < offset + count and offset < before + rows:
            if not groups:
                first = before
            groups.append(number)
        before += rows
    wanted = [name for name in columns.names() if name in opened.schema_arrow.names]
    if len(wanted) < len(columns.names()):
        return opened.schema_arrow.empty_table()
    return opened.read_row_groups(groups, columns=wanted).slice(offset - first, count)


def _table(block: Any) -> pa.Table:
    return block if isinstance(block, pa.Table) else pa.Table.from_pandas(block, preserve_index=False)
