"""Readers: a .npy, .npz, .parquet, .csv, .jsonl or .txt file enters; ids, vectors, metadata and documents
leave. The key owner's side, or a writer's.
"""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from ..errors import InvalidInput
from ..ingest.arrays import Id
from .column_types import typed

VectorFile = Annotated[Path, typer.Argument(help="A .npy, .npz, .parquet, .csv or .jsonl file of vectors.")]
IdsFile = Annotated[
    Path | None, typer.Option(help="A text file with one id a line, for files that hold none.")
]
EmbeddingColumn = Annotated[
    str, typer.Option(help="Column (.parquet, .csv) or array (.npz) with the vectors.")
]
IdColumn = Annotated[str, typer.Option(help="Column or array with the ids.")]
DocumentColumn = Annotated[str, typer.Option(help="Column or array with the documents.")]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table, or arrays of an .npz, hold what."""

    embedding: str = "embedding"
    id: str = "id"
    document: str = "document"
    types: Mapping[str, str] = field(default_factory=dict)
    """Types of the columns of a .csv that are not to be found out."""
    texts: bool = False
    """Whether the rows are texts that are still to be embedded, so that vectors are passed over."""


@dataclass(frozen=True)
class Table:
    """What a file held. `ids` is None when the file names none, `embeddings` where texts were read."""

    embeddings: Any
    ids: list[Id] | None = None
    metadatas: list[dict[str, Any]] | None = None
    documents: list[str | None] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    """What the columns of a .csv were read as."""

    def __len__(self) -> int:
        return len(self.embeddings if self.embeddings is not None else self.documents or ())

    def as_texts(self, id_column: str) -> Table:
        """The same with ids that are texts."""
        return replace(
            self, ids=[str(name) for name in self.ids or []], types={**self.types, id_column: "str"}
        )

    def names(self, file: Path | None) -> list[Id] | None:
        """The ids that --ids gives, or else those of the file itself; None where neither has any.
        Raises InvalidInput."""
        if file is None:
            return self.ids
        names = read_ids(file)
        if len(names) != len(self):
            of = "texts" if self.embeddings is None else "vectors"
            raise InvalidInput(f"{file} has {len(names)} ids for {len(self)} {of}.")
        return names


def read(path: Path, columns: Columns) -> Table:
    """Read a file by its ending. Raises InvalidInput saying what the file should hold."""
    readers: dict[str, Callable[[Path, Columns], Table]] = {
        ".npy": read_npy,
        ".npz": read_npz,
        ".parquet": read_parquet,
        ".csv": read_csv,
        ".jsonl": read_jsonl,
        ".txt": read_words,
    }
    if columns.texts:
        readers = {one: readers[one] for one in (".parquet", ".csv", ".jsonl")} | {".txt": read_lines}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InvalidInput(
            f"{path} ends in {path.suffix or 'nothing'!r}; known endings{' of texts' if columns.texts else ''} are "
            f"{', '.join(readers)}."
        )
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    table = reader(path, columns)
    if columns.texts and table.documents is None:
        raise InvalidInput(
            f"{path} has no {columns.document!r} to embed. Name the texts with --document-column."
        )
    return table


def read_npy(path: Path, columns: Columns) -> Table:
    """An (n, d) array, or (d,) for a single vector. Mapped, not read: the vectors need not fit in
    memory twice."""
    return Table(_matrix(_load(path, mmap=True), str(path)))


def read_npz(path: Path, columns: Columns) -> Table:
    """`embedding` or `embeddings` and, if there are any, `ids` and `documents`; the only array
    under whatever name."""
    with _load(path, mmap=False) as archive:
        names = archive.files
        vectors = _first(names, columns.embedding, columns.embedding + "s") or (
            names[0] if len(names) == 1 else None
        )
        if vectors is None:
            raise InvalidInput(
                f"{path} holds {', '.join(names) or 'nothing'}, and no {columns.embedding!r}. "
                "Name the array with --embedding-column."
            )
        ids = _first(names, columns.id, columns.id + "s")
        documents = _first(names, columns.document, columns.document + "s")
        return Table(
            _matrix(archive[vectors], f"{path}:{vectors}"),
            archive[ids].tolist() if ids else None,
            None,
            [str(text) for text in archive[documents].tolist()] if documents else None,
        )


def read_parquet(path: Path, columns: Columns) -> Table:
    """A column of lists of numbers; `id` and `document` if they are there; every other column is
    metadata."""
    try:
        from pyarrow import parquet
        from pyarrow.lib import ArrowException

        from ..ingest import lists
    except ImportError as error:
        raise InvalidInput(
            "reading .parquet needs pyarrow, which is not installed; pip install 'ciphervec[parquet]'"
        ) from error
    try:
        table = parquet.read_table(path)
    except (ArrowException, OSError) as error:
        raise InvalidInput(f"{path} is not a Parquet file: {error}") from error
    names = table.column_names
    vectors = _first(names, columns.embedding, columns.embedding + "s")
    if columns.texts:
        left = table.drop_columns([vectors]) if vectors else table
        return _with_records(None, left.to_pylist(), columns)
    if vectors is None:
        raise InvalidInput(
            f"{path} has the columns {', '.join(names)}, and no {columns.embedding!r}. Name it with --embedding-column."
        )
    rows = lists.vectors(table.column(vectors), f"{path}:{vectors}")
    records = table.drop_columns([vectors]).to_pylist()
    return _with_records(rows, records, columns)


def read_csv(path: Path, columns: Columns) -> Table:
    """A header line; then `embedding` as a JSON list and the rest as metadata, or one number a
    column. Ids and metadata are of the types that `columns` names, or that all cells suit.

    Without an `embedding` column, every column but `id` and `document` is one number of the vector,
    in order.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        names = list(reader.fieldnames or [])
        records: list[dict[str, Any]] = list(reader)
    vectors = _first(names, columns.embedding, columns.embedding + "s")
    numbers = [name for name in names if name not in (columns.id, columns.document)]
    if columns.texts:
        records = [{name: cell for name, cell in one.items() if name != vectors} for one in records]
        return _typed(None, records, columns, path)
    rows = []
    for line, record in enumerate(records, 2):
        try:
            rows.append(
                json.loads(record.pop(vectors)) if vectors else [float(record.pop(n)) for n in numbers]
            )
        except (TypeError, ValueError, RecursionError) as error:
            where = (
                f"column {vectors!r} must hold a JSON list" if vectors else "every column must hold a number"
            )
            raise InvalidInput(f"{path}, line {line}: {where} ({error}).") from error
    return _typed(_rectangular(rows, str(path)), records, columns, path)


def read_jsonl(path: Path, columns: Columns) -> Table:
    """A JSON object a line with `embedding`, and perhaps `id`, `document` and `metadata`, as
    `ciphervec export` writes them; what else an object has is metadata too."""
    records: list[dict[str, Any]] = []
    rows = []
    with path.open(encoding="utf-8") as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                record = json.loads(text)
                rows.append(record.pop(columns.embedding, *([None] if columns.texts else [])))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise InvalidInput(
                    f"{path}, line {line}: a JSON object with {columns.embedding!r} belongs there ({error!r})."
                ) from error
            inner = record.pop("metadata", None)
            if not isinstance(inner, dict | None):
                raise InvalidInput(f"{path}, line {line}: metadata must be an object, got {inner!r}.")
            records.append({**record, **(inner or {})})
            named = columns.id in record
            if named != (columns.id in records[0]):
                raise InvalidInput(f"{path}, line {line}: some rows have {columns.id!r}, and some have none.")
    return _with_records(None if columns.texts else _rectangular(rows, str(path)), records, columns)


def read_lines(path: Path, columns: Columns) -> Table:
    """A text a line; empty lines are passed over."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return Table(None, documents=[line for line in lines if line.strip()])


def read_words(path: Path, columns: Columns) -> Table:
    """GloVe's text form: a word and its numbers a line, divided by spaces; words are the ids. A
    word may hold spaces itself.

    A first line of two whole numbers, as word2vec writes, is passed over.
    """
    words: list[Id] = []
    rows: list[npt.NDArray[np.float32]] = []
    dimension = None
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            parts = line.rstrip("\r\n ").split(" ")
            if number == 1 and len(parts) == 2 and all(part.isdecimal() for part in parts):
                continue
            dimension = dimension or len(parts) - 1
            try:
                row = np.array(parts[-dimension:], dtype=np.float32)
            except ValueError as error:
                raise InvalidInput(
                    f"{path}, line {number}: a word and {dimension} numbers belong there ({error})."
                ) from error
            if len(parts) <= dimension or dimension < 1:
                raise InvalidInput(
                    f"{path}, line {number}: a word and {dimension or 'some'} numbers belong there, got {len(parts)} parts."
                )
            words.append(" ".join(parts[:-dimension]))
            rows.append(row)
    return Table(np.stack(rows) if rows else np.empty((0, 0), np.float32), words)


def read_ids(path: Path) -> list[Id]:
    """One id a line; lines that are all whole numbers are integer ids."""
    lines: Sequence[str] = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    try:
        return [int(line) for line in lines]
    except ValueError:
        return list(lines)


def _typed(rows: Any, records: list[dict[str, Any]], columns: Columns, path: Path) -> Table:
    """The table of a .csv file."""
    types = typed(records, columns.types, columns.id, (columns.document,), path)
    return replace(_with_records(rows, records, columns), types=types)


def _with_records(rows: Any, records: list[dict[str, Any]], columns: Columns) -> Table:
    """Take the id and document out of each record; what is left is its metadata."""
    ids = [record.pop(columns.id) for record in records] if records and columns.id in records[0] else None
    documents = (
        [record.pop(columns.document, None) for record in records]
        if any(columns.document in record for record in records)
        else None
    )
    metadatas = [_simple(record) for record in records] if any(records) else None
    return Table(rows, ids, metadatas, documents)


def _simple(record: Mapping[str, Any]) -> dict[str, Any]:
    """Dates and decimals, which JSON does not have, become their text."""
    known = (str, int, float, bool, list, dict, type(None))
    return {key: value if isinstance(value, known) else str(value) for key, value in record.items()}


def _load(path: Path, *, mmap: bool) -> Any:
    try:
        return np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{path} is not a NumPy file of plain numbers: {error}") from error


def _matrix(array: Any, what: str) -> Any:
    if array.ndim == 1:
        array = array.reshape(1, -1)
    if array.ndim != 2:
        raise InvalidInput(f"{what} must have shape (n, d), got {array.shape}.")
    return array


def _rectangular(rows: list[Any], what: str) -> Any:
    try:
        return np.asarray(rows, dtype=np.float32).reshape(len(rows), -1)
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"{what}: rows differ in length, or hold something that is not a number ({error})."
        ) from error


def _first(names: Sequence[str], *wanted: str) -> str | None:
    return next((name for name in wanted if name in names), None)
