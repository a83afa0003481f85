"""Readers of files of vectors, for a key's owner or a writer: one for each format in `READERS`.

Each finds the vectors and one record a row; `row_table` decides for all of them what of a record is what.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..errors import InvalidInput
from ..ingest import hdf5, packed
from ..ingest.arrays import Id
from ..ingest.extras import needed
from ..ingest.files import open_text, text_lines
from ..ingest.growing import Growing
from ..ingest.vecs import read_vecs
from . import matrices
from .column_types import numbers, typed, whole_object
from .row_table import METADATA, Columns, Table, distinct, first, made, matching
from .terminal import progress

VectorFile = Annotated[
    Path,
    typer.Argument(
        help="A file of vectors: .npy, .npz, .parquet, .hdf5, .csv, .tsv, .jsonl, .txt, .fvecs, .bvecs or .ivecs; texts and "
        "vecs also packed as .gz, .bz2, .xz or .zst."
    ),
]
IdsFile = Annotated[
    Path | None, typer.Option(help="A text file with one id a line, for files that hold none.")
]
EmbeddingColumn = Annotated[
    str, typer.Option(help="Column (.parquet, .csv, .tsv), array (.npz) or dataset (.hdf5) with the vectors.")
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

LONGEST_CELL = 1 << 27
"""Of a .csv; the csv module's own limit is 131,072 characters."""
_INFLATED = 1_100
"""How many bytes deflate makes of one at most, and a little more."""


def vector_columns(given: Sequence[str] | None) -> list[str]:
    """What --vector-columns says."""
    return [part.strip() for part in ",".join(given or ()).split(",") if part.strip()]


def read(path: Path, columns: Columns, *, quiet: bool = True) -> Table:
    """Read a file by its ending, with a bar on the terminal unless `quiet`. Raises InvalidInput saying what the file
    should hold."""
    readers = {one: READERS[one] for one in OF_TEXTS} | {".txt": read_lines} if columns.texts else READERS
    kind, by = packed.kind(path), packed.ending(path)
    reader = readers.get(kind)
    if reader is None:
        raise InvalidInput(
            f"{path} ends in {kind or path.suffix or 'nothing'!r}; known endings{' of texts' if columns.texts else ''} are "
            f"{', '.join(readers)}; {', '.join(one for one in readers if one in STREAMED)} also packed, with "
            f"{', '.join(packed.ENDINGS)} behind."
        )
    if by and kind not in STREAMED:
        raise InvalidInput(
            f"{path}: a {kind} is not read through {by}, since its parts are found by their places. Unpack it."
        )
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    with progress(f"reading {path.name}", path.stat().st_size, quiet=quiet) as step:
        table = reader(path, columns, step)
    if columns.texts and table.documents is None:
        raise InvalidInput(
            f"{path} has no {columns.document!r} to embed. Name the texts with --document-column."
        )
    return table


def read_npy(path: Path, columns: Columns, heard: packed.Heard | None = None) -> Table:
    """An (n, d) array, or (d,) for a single vector; (n, tokens, d) where rows have many. Mapped, not read: the vectors need
    not fit in memory twice."""
    found = _load(path, archive=False)
    if found.ndim == 3 and columns.multi is not None:
        return Table(None, multi=matrices.whole(found, str(path)))
    return Table(_matrix(found, str(path)))


def read_npz(path: Path, columns: Columns, heard: packed.Heard | None = None) -> Table:
    """`embedding` or `embeddings` and, if there are any, `ids` and `documents`; arrays with one value for each
    row are metadata. The only array under whatever name."""
    with _load(path, archive=True) as archive:
        names = archive.files
        vectors = first(names, columns.embedding, columns.embedding + "s") or (
            names[0] if len(names) == 1 and not matrices.many_in(names, None, columns, path) else None
        )
        return _arrays(path, names, vectors, lambda name: _member(archive, name, path), columns)


def read_vectors(path: Path, columns: Columns, heard: packed.Heard | None = None) -> Table:
    """The rows of an .fvecs, .bvecs or .ivecs file, which have no names."""
    return Table(read_vecs(path, heard))


def read_hdf5(path: Path, columns: Columns, heard: packed.Heard | None = None) -> Table:
    """`embedding`, or `train` of a data set of ann-benchmarks (`test` where questions are read); of other datasets
    those with one value for each row are metadata, as in an .npz."""
    with hdf5.opened(path) as datasets:
        names = datasets.names
        vectors = first(names, columns.embedding, columns.embedding + "s")
        if vectors is None and columns.embedding == "embedding":
            vectors = first(names, *(["test"] if columns.questions else []), "train")
        return _arrays(
            path, names, vectors, datasets.read, columns, hdf5.OF_A_BENCHMARK - {columns.id, columns.document}
        )


def read_parquet(path: Path, columns: Columns, heard: packed.Heard | None = None) -> Table:
    """A column of lists of numbers; `id` and `document` if they are there; every other column is
    metadata."""
    try:
        from pyarrow import parquet

        from ..ingest import lists
    except ImportError as error:
        raise needed("reading .parquet", "pyarrow", "parquet") from error
    with _damage_of(f"{path} is not a Parquet file"):
        table = parquet.ParquetFile(path).read()
    names = distinct(table.column_names, path)
    vectors = first(names, columns.embedding, columns.embedding + "s")
    used = [vectors] if vectors else []
    many = matrices.many_in(names, vectors, columns, path)
    rows = multi = None
    if many is not None:
        used.append(many)
        multi = lists.matrices(table.column(many), f"{path}:{many}")
    elif not columns.texts:
        if columns.vectors:
            used = matching(names, columns, path)
            rows = np.column_stack([table.column(name).to_numpy() for name in used])
        elif vectors is None:
            raise InvalidInput(
                f"{path} has the columns {', '.join(names)}, and no {columns.embedding!r}. Name it with --embedding-column, "
                "or columns of one number each with --vector-columns."
            )
        else:
            rows = lists.vectors(table.column(vectors), f"{path}:{vectors}")
    if columns.alone:
        return Table(rows, multi=multi)
    rest = table.drop_columns([*{*used, *(name for name in columns.leave_out if name in names)}])
    with _damage_of(f"{path} holds what is no value of a row's metadata"):
        records = rest.to_pylist()
    return made(path, rows, records, names, columns, rest.column_names, multi=multi)


def read_csv(path: Path, columns: Columns, heard: packed.Heard | None = None) -> Table:
    """A header line; then `embedding` as a JSON list and the rest as metadata, or one number a
    column; cells are divided by commas, in a .tsv by tabs.

    Ids and metadata are of the types that `columns` names, or that all cells suit.

    Without an `embedding` column, columns whose names say so (x1, x2, …; a, b, …) hold one number of the vector
    each, in order. Others are asked about.
    """
    names, records, lines = _cells(path, heard)
    vectors = first(names, columns.embedding, columns.embedding + "s")
    many = matrices.many_in(names, vectors, columns, path)
    if columns.vectors or (vectors is None and many is None and not columns.texts):
        vectors, used = None, matching(names, columns, path)
    else:
        used = [one for one in (vectors, many) if one]
    rows = Growing(path)
    multi: list[Any] = []
    for line, record in zip(lines, records, strict=True):
        cells = [record.pop(name) for name in used]
        if columns.texts:
            continue
        try:
            row = json.loads(cells[-1]) if vectors or many else numbers(cells)
        except InvalidInput:
            raise
        except (ValueError, RecursionError) as error:
            where = (
                f"column {many or vectors!r} must hold a JSON list"
                if vectors or many
                else "a number belongs in every column"
            )
            raise InvalidInput(f"{path}, line {line}: {where} ({error}).") from error
        if many:
            multi.append(row)
        else:
            rows.add(row, line)
    matrix = None if columns.texts or many else rows.matrix()
    if columns.alone:
        return Table(matrix, multi=multi if many else None)
    for name in columns.leave_out:
        for record in records:
            record.pop(name, None)
    types = typed(records, lines, columns.types, columns.id, (columns.document,), path)
    rest = [name for name in names if name not in used and name not in columns.leave_out]
    return made(path, matrix, records, names, columns, rest, types, multi if many else None)


def read_jsonl(path: Path, columns: Columns, heard: packed.Heard | None = None) -> Table:
    """A JSON object a line with `embedding`, and perhaps `id`, `document` and `metadata`, as
    `ciphervec export` writes them; what else an object has is metadata too."""
    records: list[dict[str, Any]] = []
    rows = Growing(path)
    many: str | None = None
    multi: list[Any] = []
    with open_text(path, heard=heard) as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                record = json.loads(text, object_pairs_hook=whole_object)
                if not records and not multi and not len(rows):
                    one = columns.embedding if columns.embedding in record else None
                    many = matrices.many_in([*record], one, columns, path)
                row = record.pop(many or columns.embedding, *([None] if columns.texts else []))
            except InvalidInput:
                raise
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise InvalidInput(
                    f"{path}, line {line}: a JSON object with {many or columns.embedding!r} belongs there ({error!r})."
                ) from error
            if many:
                multi.append(row)
            elif not columns.texts:
                rows.add(row, line)
            if columns.alone:
                continue
            if not isinstance(record.get(METADATA), dict | None):
                raise InvalidInput(
                    f"{path}, line {line}: metadata must be an object, got {record[METADATA]!r:.100}."
                )
            if (columns.id in record) != (columns.id in (records or [record])[0]):
                raise InvalidInput(f"{path}, line {line}: some rows have {columns.id!r}, and some have none.")
            records.append(record)
    matrix = None if columns.texts or many else rows.matrix()
    if columns.alone:
        return Table(matrix, multi=multi if many else None)
    names = list(dict.fromkeys(name for record in records for name in record))
    for name in columns.leave_out:
        for record in records:
            record.pop(name, None)
    return made(path, matrix, records, names, columns, multi=multi if many else None)


def read_lines(path: Path, columns: Columns, heard: packed.Heard | None = None) -> Table:
    """A text a line; empty lines are passed over."""
    return Table(None, documents=[*text_lines(path)])


def read_words(path: Path, columns: Columns, heard: packed.Heard | None = None) -> Table:
    """GloVe's text form: a word and its numbers a line, divided by spaces; words are the ids. A
    word may hold spaces itself.

    word2vec writes a first line more: how many words, and how many numbers each has. Raises InvalidInput
    where others follow.
    """
    words: list[Id] = []
    rows = Growing(path)
    dimension = promised = None
    with open_text(path, newline="\n", heard=heard) as file:
        for number, line in enumerate(file, 1):
            parts = line.rstrip("\r\n ").split(" ")
            if number == 1 and len(parts) == 2 and all(part.isdecimal() for part in parts):
                promised = parts
                continue
            if promised is not None and number == 2:
                if 1 <= int(promised[1]) < len(parts):
                    dimension = int(promised[1])
                else:  # a word that is a number, in a file with one number a word
                    words.append(promised[0])
                    rows.add_numbers(numbers(promised[1:]), 1)
                    promised, dimension = None, 1
            dimension = dimension or len(parts) - 1
            try:
                row = numbers(parts[-dimension:])
            except ValueError as error:
                raise InvalidInput(
                    f"{path}, line {number}: a word and {dimension} numbers belong there ({error})."
                ) from error
            if len(parts) <= dimension or dimension < 1:
                raise InvalidInput(
                    f"{path}, line {number}: a word and {dimension or 'some'} numbers belong there, got {len(parts)} parts."
                )
            words.append(" ".join(parts[:-dimension]))
            rows.add_numbers(row, number)
    if promised is not None and int(promised[0]) != len(words):
        raise InvalidInput(
            f"{path}: its first line says {int(promised[0]):,} words, and {len(words):,} follow. It may be cut off."
        )
    return Table(rows.matrix(), words)


def one_vector(text: str, what: str) -> Any:
    """A single vector as a JSON list, (1, d). Raises InvalidInput."""
    row = Growing(what)
    try:
        row.add(json.loads(text), 1)
        return row.matrix()
    except (ValueError, RecursionError) as error:  # InvalidInput is one
        raise InvalidInput(f"{what} must be a JSON list of numbers ({error}).") from error


READERS: dict[str, Callable[[Path, Columns, packed.Heard | None], Table]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".hdf5": read_hdf5,
    ".h5": read_hdf5,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".jsonl": read_jsonl,
    ".txt": read_words,
    ".fvecs": read_vectors,
    ".bvecs": read_vectors,
    ".ivecs": read_vectors,
}
STREAMED = (".csv", ".tsv", ".jsonl", ".txt", ".fvecs", ".bvecs", ".ivecs")
"""What is read from its beginning to its end, and so through an unpacker too."""
OF_TEXTS = (".parquet", ".csv", ".tsv", ".jsonl")


def _arrays(path: Path, names: list[str], vectors: str | None, read_one: Callable[[str], Any], columns: Columns,
            apart: Collection[str] = ()) -> Table:  # fmt: skip
    """The table of a file of named arrays; those `apart` are neither vectors nor metadata."""
    many = matrices.many_in(names, vectors, columns, path)
    if vectors is None and many is None:
        raise InvalidInput(
            f"{path} holds {', '.join(names) or 'nothing'}, and no {columns.embedding!r}. "
            "Name the array with --embedding-column."
        )
    rows: Any
    multi = lengths = None
    if many is not None:
        lengths = matrices.lengths_of(names, many)
        rows = multi = matrices.of_arrays(many, lengths, read_one, path)
    else:
        assert vectors is not None
        found = read_one(vectors)
        if apart and found.ndim != 2:
            raise InvalidInput(
                f"{path}:{vectors} must have shape (n, d), got {found.shape}. Sparse sets are laid out first."
            )
        rows = _matrix(found, f"{path}:{vectors}")
    if columns.alone:
        return Table(None if multi is not None else rows, multi=multi)
    renamed = {name + "s": name for name in (columns.id, columns.document) if name not in names}
    fields: dict[str, list[Any]] = {}
    for name in names:
        if name in (vectors, many, lengths, *columns.leave_out) or name in apart:
            continue
        values = read_one(name)
        if values.shape != (len(rows),):
            raise InvalidInput(
                f"{path}:{name} has shape {values.shape}, and not one value for each of {len(rows)} vectors. Pass "
                f"--leave-out {name}, or mend it."
            )
        fields[renamed.get(name, name)] = list(values)
    records = [dict(zip(fields, values, strict=True)) for values in zip(*fields.values(), strict=True)]
    return made(path, None if multi is not None else rows, records, [renamed.get(name, name) for name in names], columns,
                [*fields], multi=multi)  # fmt: skip


def _cells(path: Path, heard: packed.Heard | None) -> tuple[list[str], list[dict[str, Any]], list[int]]:
    """Of a .csv: the names in its header, the cells of each row by name, and the lines where rows begin."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    divider = "\t" if packed.kind(path) == ".tsv" else ","
    with open_text(path, heard=heard) as file:
        reader = csv.reader(
            file, delimiter=divider, strict=True
        )  # else a quote without its pair takes all rows that follow
        try:
            header = next(reader, [])
            names = distinct([name or f"Unnamed: {i}" for i, name in enumerate(header)], path)
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
        _whole(archive.zip, name + ".npy", path)
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


def _whole(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    """Raises ValueError for an array that is larger by its header than what is there, before memory is set apart for it."""
    if name not in archive.namelist():
        return  # no array: NumPy hands out its bytes
    info = archive.getinfo(name)
    there = min(info.file_size, _INFLATED * min(info.compress_size, path.stat().st_size))
    with archive.open(name) as member:
        header = (
            np.lib.format.read_array_header_1_0
            if np.lib.format.read_magic(member)[0] == 1
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = header(member)
    if math.prod(shape) * dtype.itemsize > there:
        raise ValueError(f"it says that its shape is {shape}, and at most {there:,} bytes are there")
