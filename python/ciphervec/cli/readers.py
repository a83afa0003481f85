"""Readers: a .npy, .npz, .parquet, .csv, .jsonl or .txt file enters; ids, vectors, metadata and documents
leave. The key owner's side, or a writer's.

Each reader finds the vectors and one record a row; what of a record is what is decided in one place, for all.
"""

from __future__ import annotations

import contextlib
import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from ..collections.collection import Collection
from ..errors import InvalidInput
from ..ingest.arrays import Id
from ..ingest.files import open_text
from .column_types import numbers, typed, whole_object
from .ids import typed_ids

VectorFile = Annotated[Path, typer.Argument(help="A .npy, .npz, .parquet, .csv or .jsonl file of vectors.")]
IdsFile = Annotated[
    Path | None, typer.Option(help="A text file with one id a line, for files that hold none.")
]
EmbeddingColumn = Annotated[
    str, typer.Option(help="Column (.parquet, .csv) or array (.npz) with the vectors.")
]
IdColumn = Annotated[str, typer.Option(help="Column or array with the ids.")]
DocumentColumn = Annotated[str, typer.Option(help="Column or array with the documents.")]
VectorColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--vector-columns",
        metavar="COLUMNS",
        help="Columns with a number of the vector each, where no column has all: names, or patterns such as 'v*'. Repeat, "
        "or divide by commas.",
    ),
]
LeaveOut = Annotated[
    list[str] | None,
    typer.Option(
        "--leave-out", metavar="COLUMN", help="A column that is not stored, such as an index. Repeat."
    ),
]

_METADATA = "metadata"
LONGEST_CELL = 1 << 27
"""Of a .csv; the csv module's own limit is 131,072 characters."""
_INDEX = re.compile(r"Unnamed: \d+(_level_\d+)?|__index_level_\d+__")
"""What pandas calls an index that has no name."""
_NUMBERED = re.compile(r"(.*?)\d+")
_NAMED = 8


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
    vectors: Sequence[str] = ()
    """Names and patterns of columns that hold a number of the vector each."""
    leave_out: Sequence[str] = ()
    alone: bool = False
    """Whether vectors are all that is wanted."""


def vector_columns(given: Sequence[str] | None) -> list[str]:
    """What --vector-columns says."""
    return [part.strip() for part in ",".join(given or ()).split(",") if part.strip()]


@dataclass(frozen=True)
class Table:
    """What a file held. `ids` is None when the file names none, `embeddings` where texts were read."""

    embeddings: Any
    ids: list[Any] | None = None
    metadatas: list[dict[str, Any] | None] | None = None
    documents: list[str | None] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    """What the columns of a .csv were read as."""
    id_type: str | None = None
    """The type that was named for the ids."""
    words: bool = False
    """Whether the ids are words of a text, which are not of any type yet."""

    def __len__(self) -> int:
        return len(self.embeddings if self.embeddings is not None else self.documents or ())

    def names(
        self, file: Path | None, of: str | None = None, there: Collection | None = None
    ) -> list[Id] | None:
        """The ids that --ids gives, or else those of the file itself; None where neither has any. Of which type
        words are `typed_ids` says. Raises InvalidInput."""
        words: list[Any] | None = self.ids if file is None else read_ids(file)
        if words is None:
            return None
        if len(words) != len(self):
            kind = "texts" if self.embeddings is None else "vectors"
            raise InvalidInput(f"{file} has {len(words)} ids for {len(self)} {kind}.")
        of = of or (self.id_type if file is None else None)
        if self.words or file is not None or of is not None:
            return typed_ids([str(word) for word in words], of, there, file or "the file's ids")
        return words

    def read_as(self, names: Sequence[Id], id_column: str) -> dict[str, str]:
        """What the columns of a .csv were read as, with the ids as they became."""
        numbered = bool(names) and isinstance(names[0], int)
        return {
            column: of if column != id_column else ("int" if numbered else "str")
            for column, of in self.types.items()
        }


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
    return Table(_matrix(_load(path, archive=False), str(path)))


def read_npz(path: Path, columns: Columns) -> Table:
    """`embedding` or `embeddings` and, if there are any, `ids` and `documents`; arrays with one value for each
    row are metadata. The only array under whatever name."""
    with _load(path, archive=True) as archive:
        names = archive.files
        vectors = _first(names, columns.embedding, columns.embedding + "s") or (
            names[0] if len(names) == 1 else None
        )
        if vectors is None:
            raise InvalidInput(
                f"{path} holds {', '.join(names) or 'nothing'}, and no {columns.embedding!r}. "
                "Name the array with --embedding-column."
            )
        rows = _matrix(_member(archive, vectors, path), f"{path}:{vectors}")
        if columns.alone:
            return Table(rows)
        renamed = {name + "s": name for name in (columns.id, columns.document) if name not in names}
        fields: dict[str, list[Any]] = {}
        for name in names:
            if name == vectors or name in columns.leave_out:
                continue
            values = _member(archive, name, path)
            if values.shape != (len(rows),):
                raise InvalidInput(
                    f"{path}:{name} has shape {values.shape}, and not one value for each of {len(rows)} vectors. Say "
                    f"--leave-out {name}, or mend it."
                )
            fields[renamed.get(name, name)] = list(values)
        records = [dict(zip(fields, values, strict=True)) for values in zip(*fields.values(), strict=True)]
    return _table(path, rows, records, [renamed.get(name, name) for name in names], columns, [*fields])


def read_parquet(path: Path, columns: Columns) -> Table:
    """A column of lists of numbers; `id` and `document` if they are there; every other column is
    metadata."""
    try:
        from pyarrow import parquet

        from ..ingest import lists
    except ImportError as error:
        raise InvalidInput(
            "reading .parquet needs pyarrow, which is not installed; pip install 'ciphervec[parquet]'"
        ) from error
    with _damage_of(f"{path} is not a Parquet file"):
        table = parquet.ParquetFile(path).read()
    names = _distinct(table.column_names, path)
    vectors = _first(names, columns.embedding, columns.embedding + "s")
    used = [vectors] if vectors else []
    rows = None
    if not columns.texts:
        if columns.vectors:
            used = _matching(names, columns, path)
            rows = np.column_stack([table.column(name).to_numpy() for name in used])
        elif vectors is None:
            raise InvalidInput(
                f"{path} has the columns {', '.join(names)}, and no {columns.embedding!r}. Name it with --embedding-column, "
                "or columns of one number each with --vector-columns."
            )
        else:
            rows = lists.vectors(table.column(vectors), f"{path}:{vectors}")
    if columns.alone:
        return Table(rows)
    rest = table.drop_columns([*used, *(name for name in columns.leave_out if name in names)])
    with _damage_of(f"{path} holds what is no value of a row's metadata"):
        records = rest.to_pylist()
    return _table(path, rows, records, names, columns, rest.column_names)


def read_csv(path: Path, columns: Columns) -> Table:
    """A header line; then `embedding` as a JSON list and the rest as metadata, or one number a
    column. Ids and metadata are of the types that `columns` names, or that all cells suit.

    Without an `embedding` column, columns whose names say so (x1, x2, …; a, b, …) hold one number of the vector
    each, in order. Others are asked about.
    """
    names, records, lines = _cells(path)
    vectors = _first(names, columns.embedding, columns.embedding + "s")
    if columns.vectors or (vectors is None and not columns.texts):
        vectors, used = None, _matching(names, columns, path)
    else:
        used = [vectors] if vectors else []
    rows: list[list[Any]] = []
    for line, record in zip(lines, records, strict=True):
        cells = [record.pop(name) for name in used]
        if columns.texts:
            continue
        try:
            rows.append(json.loads(cells[0]) if vectors else numbers(cells))
        except (ValueError, RecursionError) as error:
            where = (
                f"column {vectors!r} must hold a JSON list" if vectors else "a number belongs in every column"
            )
            raise InvalidInput(f"{path}, line {line}: {where} ({error}).") from error
    matrix = None if columns.texts else _rectangular(rows, lines, path)
    if columns.alone:
        return Table(matrix)
    for name in columns.leave_out:
        for record in records:
            record.pop(name, None)
    types = typed(records, lines, columns.types, columns.id, (columns.document,), path)
    rest = [name for name in names if name not in used and name not in columns.leave_out]
    return _table(path, matrix, records, names, columns, rest, types)


def read_jsonl(path: Path, columns: Columns) -> Table:
    """A JSON object a line with `embedding`, and perhaps `id`, `document` and `metadata`, as
    `ciphervec export` writes them; what else an object has is metadata too."""
    records: list[dict[str, Any]] = []
    rows: list[Any] = []
    lines: list[int] = []
    with open_text(path) as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                record = json.loads(text, object_pairs_hook=whole_object)
                rows.append(record.pop(columns.embedding, *([None] if columns.texts else [])))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise InvalidInput(
                    f"{path}, line {line}: a JSON object with {columns.embedding!r} belongs there ({error!r})."
                ) from error
            if not isinstance(record.get(_METADATA), dict | None):
                raise InvalidInput(
                    f"{path}, line {line}: metadata must be an object, got {record[_METADATA]!r:.100}."
                )
            if (columns.id in record) != (columns.id in (records or [record])[0]):
                raise InvalidInput(f"{path}, line {line}: some rows have {columns.id!r}, and some have none.")
            records.append(record)
            lines.append(line)
    matrix = None if columns.texts else _rectangular(rows, lines, path)
    if columns.alone:
        return Table(matrix)
    names = list(dict.fromkeys(name for record in records for name in record))
    for name in columns.leave_out:
        for record in records:
            record.pop(name, None)
    return _table(path, matrix, records, names, columns)


def read_lines(path: Path, columns: Columns) -> Table:
    """A text a line; empty lines are passed over."""
    return Table(None, documents=[*_lines(path)])


def read_words(path: Path, columns: Columns) -> Table:
    """GloVe's text form: a word and its numbers a line, divided by spaces; words are the ids. A
    word may hold spaces itself.

    A first line of two whole numbers, as word2vec writes, is passed over.
    """
    words: list[Id] = []
    rows: list[npt.NDArray[np.float32]] = []
    dimension = None
    with open_text(path, newline="\n") as file:
        for number, line in enumerate(file, 1):
            parts = line.rstrip("\r\n ").split(" ")
            if number == 1 and len(parts) == 2 and all(part.isdecimal() for part in parts):
                continue
            dimension = dimension or len(parts) - 1
            try:
                row = np.array(numbers(parts[-dimension:]), dtype=np.float32)
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


def one_vector(text: str, what: str) -> Any:
    """A single vector as a JSON list, (1, d). Raises InvalidInput."""
    try:
        return _rectangular([json.loads(text)], [1], what)
    except (ValueError, RecursionError) as error:  # InvalidInput is one
        raise InvalidInput(f"{what} must be a JSON list of numbers ({error}).") from error


def read_ids(path: Path) -> list[str]:
    """One id a line, as it stands there."""
    return _lines(path)


def _lines(path: Path) -> list[str]:
    """The lines of a text that are not empty. str.splitlines would divide them at more than line ends."""
    with open_text(path) as file:
        return [line.rstrip("\r\n") for line in file if line.strip()]


def _cells(path: Path) -> tuple[list[str], list[dict[str, Any]], list[int]]:
    """Of a .csv: the names in its header, the cells of each row by name, and the lines where rows begin."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    with open_text(path) as file:
        reader = csv.reader(file, strict=True)  # else a quote without its pair takes all rows that follow
        try:
            header = next(reader, [])
            names = _distinct([name or f"Unnamed: {i}" for i, name in enumerate(header)], path)
            line = reader.line_num + 1
            for cells in reader:
                if cells and len(cells) != len(names):
                    found = "more" if len(cells) > len(names) else "fewer"
                    raise InvalidInput(
                        f"{path}, line {line}: there are {found} cells than columns in the header, {len(cells)} and not "
                        f"{len(names)}."
                    )
                if cells:
                    records.append(dict(zip(names, cells, strict=True)))
                    lines.append(line)
                line = reader.line_num + 1
        except csv.Error as error:
            raise InvalidInput(
                f"{path}, line {reader.line_num}: {error}. Cells that hold quotes or line ends stand in quotes, with "
                f"quotes doubled; a cell has at most {LONGEST_CELL:,} characters."
            ) from error
    return names, records, lines


def _table(path: Path, rows: Any, records: list[dict[str, Any]], names: Sequence[str], columns: Columns,
           rest: Sequence[str] | None = None, types: Mapping[str, str] | None = None) -> Table:  # fmt: skip
    """Take id and document out of each record; what is left is its metadata, and an object `metadata` laid out.

    `names` are all that the file has, `rest` those of them that are in records. Raises InvalidInput for a name
    that was given and is not there, and for what may be an index.
    """
    rest = names if rest is None else rest
    for option, name, usual in (
        ("--id-column", columns.id, "id"),
        ("--document-column", columns.document, "document"),
    ):
        if name != usual and name not in rest and records:
            raise InvalidInput(f"{path} has no {name!r}, which {option} names; it has {_list(names)}.")
    absent = [name for name in columns.leave_out if name not in names]
    if absent and records:
        raise InvalidInput(f"{path} has no {absent[0]!r} to leave out; it has {_list(names)}.")
    if records:
        _refuse_index(rest, columns, path)
    ids = _ids(path, records, columns)
    documents = (
        [record.pop(columns.document, None) for record in records]
        if any(columns.document in record for record in records)
        else None
    )
    if all(isinstance(record.get(_METADATA), dict | None) for record in records):
        metadatas = [_laid_out(path, i, record) for i, record in enumerate(records)]
    else:
        metadatas = [record or None for record in records]
    return Table(
        rows,
        ids,
        metadatas if any(one is not None for one in metadatas) else None,
        documents,
        types or {},
        columns.types.get(columns.id),
        types is not None,
    )


def _refuse_index(names: Iterable[str], columns: Columns, path: Path) -> None:
    index = next((n for n in names if _INDEX.fullmatch(n) and n not in (columns.id, columns.document)), None)
    if index is not None:
        raise InvalidInput(
            f"{path} has a column {index!r}, as pandas calls an index without a name. Say --leave-out '{index}' to do "
            f"without it, --id-column '{index}' if it holds the ids, or write the file with index=False."
        )


def _ids(path: Path, records: list[dict[str, Any]], columns: Columns) -> list[Any] | None:
    if not records or columns.id not in records[0]:
        return None
    found = [record.pop(columns.id) for record in records]
    empty = next((i for i, name in enumerate(found) if name is None), None)
    if empty is not None:
        raise InvalidInput(f"{path}: row {empty}, counted from 0, has no {columns.id!r}, and others have.")
    return found


def _laid_out(path: Path, row: int, record: dict[str, Any]) -> dict[str, Any] | None:
    """A row's metadata: what its object `metadata` has, and what stands beside that."""
    inner = record.pop(_METADATA, None)
    twice = sorted(record.keys() & (inner or {}).keys())
    if twice:
        raise InvalidInput(
            f"{path}: row {row}, counted from 0, has {twice[0]!r} both in its metadata and beside them. Leave one out."
        )
    return None if inner is None and not record else {**record, **(inner or {})}


def _matching(names: Sequence[str], columns: Columns, path: Path) -> list[str]:
    """The columns that hold a number of the vector each, in the file's order. Raises InvalidInput where nothing
    says which these are."""
    left = [n for n in names if n not in (columns.id, columns.document) and n not in columns.leave_out]
    if not columns.vectors:
        _refuse_index(left, columns, path)
        if _alike(left) or not names:
            return left
        raise InvalidInput(
            f"{path} has no column {columns.embedding!r}, and besides has {_list(left)}: which of them hold the vector's "
            "numbers? Say so with --vector-columns, by names or by patterns such as 'v*'; the others are metadata, unless "
            "--leave-out names them. A column with whole vectors is named by --embedding-column."
        )
    for pattern in columns.vectors:
        if not any(fnmatchcase(name, pattern) for name in left):
            raise InvalidInput(
                f"{path} has no column like {pattern!r}, of --vector-columns; it has {_list(names)}."
            )
    return [name for name in left if any(fnmatchcase(name, pattern) for pattern in columns.vectors)]


def _alike(names: Sequence[str]) -> bool:
    """Whether names are those of coordinates: single letters, or one word with a number behind it."""
    stems = {match[1] if (match := _NUMBERED.fullmatch(name)) else None for name in names}
    return all(len(name) == 1 for name in names) or (len(stems) == 1 and None not in stems)


def _distinct(names: list[str], path: Path) -> list[str]:
    twice = (
        next((name for name in names if names.count(name) > 1), None) if len({*names}) < len(names) else None
    )
    if twice is not None:
        raise InvalidInput(f"{path} has two columns {twice!r}. Rename one.")
    return names


def _list(names: Iterable[str]) -> str:
    shown = [repr(name) for name in names]
    more = len(shown) - _NAMED
    return ", ".join(shown[:_NAMED]) + (f" and {more:,} more" if more > 0 else "") if shown else "no column"


def _load(path: Path, *, archive: bool) -> Any:
    """The array of a .npy, mapped, or the open archive of an .npz."""
    with _damage_of(f"{path} is not a NumPy file of plain numbers"):
        found = np.load(path, mmap_mode=None if archive else "r", allow_pickle=False)
    if isinstance(found, np.ndarray) == archive:
        raise InvalidInput(
            f"{path} holds {'one array, as .npy files do' if archive else 'several arrays, as .npz files do'}: rename it."
        )
    return found


def _member(archive: Any, name: str, path: Path) -> Any:
    with _damage_of(f"{path}:{name} is no array of plain numbers or texts"):
        found = archive[name]
    if not isinstance(found, np.ndarray):  # a file in the archive that is no array comes as its bytes
        raise InvalidInput(f"{path}:{name} is no array.")
    return found


@contextlib.contextmanager
def _damage_of(says: str) -> Iterator[None]:
    """Whatever NumPy or Arrow raises of bytes that they cannot read, tokenize's and zlib's own errors among it, is
    InvalidInput. What the system refuses stays what it is."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        raise InvalidInput(f"{says}: {error}") from error
    except Exception as error:
        raise InvalidInput(f"{says}: {error!r:.200}") from error


def _matrix(array: Any, what: str) -> Any:
    if array.ndim == 1:
        array = array.reshape(1, -1)
    if array.ndim != 2:
        raise InvalidInput(f"{what} must have shape (n, d), got {array.shape}.")
    return array


def _rectangular(rows: list[Any], lines: Sequence[int], path: object) -> Any:
    """Lists of numbers as (n, d). Raises InvalidInput, naming the first line that is another."""
    for line, row in zip(lines, rows, strict=True):
        if not isinstance(row, list) or not all(isinstance(one, int | float) for one in row):
            raise InvalidInput(f"{path}, line {line}: a vector is a list of numbers, got {row!r:.60}.")
        if len(row) != len(rows[0]):
            raise InvalidInput(
                f"{path}: rows differ in length: line {line} has {len(row):,} numbers, and line {lines[0]} {len(rows[0]):,}."
            )
    try:
        return np.array(rows) if rows and rows[0] else np.empty((len(rows), 0), np.float32)
    except OverflowError as error:
        raise InvalidInput(f"{path} holds a number beyond float32's range ({error}).") from error


def _first(names: Sequence[str], *wanted: str) -> str | None:
    return next((name for name in wanted if name in names), None)
