"""Rows of a file, for readers of every format: decides once which columns and fields of a record are its id, vector,
metadata and document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar

from ..collections.collection import Collection
from ..errors import InvalidInput
from ..ingest.arrays import Id
from ..ingest.files import text_lines
from .ids import typed_ids

METADATA = "metadata"
_INDEX = re.compile(r"Unnamed: \d+(_level_\d+)?|__index_level_\d+__")
"""What pandas calls an index that has no name."""
_NUMBERED = re.compile(r"(.*?)\d+")
_NAMED = 8


@dataclass(frozen=True)
class Columns:
    """Which columns of a table, or arrays of an .npz, hold what."""

    MULTI: ClassVar = "multi_embedding"
    SPARSE: ClassVar = "sparse_embedding"
    """What `ciphervec export` calls columns of matrices and of sparse vectors."""

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
    questions: bool = False
    """Whether they are asked about, and not stored."""
    multi: str | None = None
    """Column with a matrix a row; None where the caller takes none."""
    sparse: str | None = None
    """Column with a sparse vector a row; None likewise."""


@dataclass(frozen=True)
class Table:
    """What a file held. `ids` is None when the file names none, `embeddings` where texts or matrices were read."""

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
    multi: list[Any] | None = None
    """A matrix a row, in place of `embeddings`."""
    sparse: list[Any] | None = None
    """A sparse vector a row, None where it has none."""

    def __len__(self) -> int:
        rows = self.embeddings if self.embeddings is not None else self.multi
        return len(rows if rows is not None else self.documents or ())

    def names(
        self, file: Path | None, of: str | None = None, there: Collection | None = None
    ) -> list[Id] | None:
        """The ids that --ids gives, or else those of the file itself; None where neither has any. Of which type
        words are `typed_ids` says. Raises InvalidInput."""
        words: list[Any] | None = self.ids if file is None else text_lines(file)
        if words is None:
            return None
        if len(words) != len(self):
            kind = "texts" if self.embeddings is None and self.multi is None else "vectors"
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


def made(path: object, rows: Any, records: list[dict[str, Any]], names: Sequence[str], columns: Columns,
           rest: Sequence[str] | None = None, types: Mapping[str, str] | None = None,
           multi: list[Any] | None = None) -> Table:  # fmt: skip
    """Take id, document and sparse vector out of each record; what is left is its metadata, and an object `metadata` laid out.

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
    sparse = _sparse(path, records, columns)
    documents = (
        [record.pop(columns.document, None) for record in records]
        if any(columns.document in record for record in records)
        else None
    )
    if all(isinstance(record.get(METADATA), dict | None) for record in records):
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
        multi,
        sparse,
    )


def _refuse_index(names: Iterable[str], columns: Columns, path: object) -> None:
    index = next((n for n in names if _INDEX.fullmatch(n) and n not in (columns.id, columns.document)), None)
    if index is not None:
        raise InvalidInput(
            f"{path} has a column {index!r}, as pandas calls an index without a name. Pass --leave-out '{index}' to do "
            f"without it, --id-column '{index}' if it holds the ids, or write the file with index=False."
        )


def _ids(path: object, records: list[dict[str, Any]], columns: Columns) -> list[Any] | None:
    if not records or columns.id not in records[0]:
        return None
    found = [record.pop(columns.id) for record in records]
    empty = next((i for i, name in enumerate(found) if name is None), None)
    if empty is not None:
        raise InvalidInput(f"{path}: row {empty}, counted from 0, has no {columns.id!r}, and others have.")
    return found


def _sparse(path: object, records: list[dict[str, Any]], columns: Columns) -> list[Any] | None:
    """The sparse vector of each record, beside its metadata or in it; None where no record has the column."""
    name = columns.sparse
    if name is None or not records:
        return None
    found, there = [], False
    for record in records:
        inner = record.get(METADATA)
        holder = inner if name not in record and isinstance(inner, dict) and name in inner else record
        there = there or name in holder
        found.append(weights(holder.pop(name, None)))
        if holder is inner and not inner:
            record[METADATA] = None
    if not there and name != Columns.SPARSE:
        raise InvalidInput(f"{path} has no {name!r}, which --sparse-column names.")
    return found if there else None


def weights(vector: Any) -> Any:
    """Indices that are the names of a JSON object, as numbers."""
    if isinstance(vector, dict) and set(vector) != {"indices", "values"}:
        return {
            int(name) if isinstance(name, str) and name.isdecimal() else name: weight
            for name, weight in vector.items()
        }
    return vector


def _laid_out(path: object, row: int, record: dict[str, Any]) -> dict[str, Any] | None:
    """A row's metadata: what its object `metadata` has, and what stands beside that."""
    inner = record.pop(METADATA, None)
    twice = sorted(record.keys() & (inner or {}).keys())
    if twice:
        raise InvalidInput(
            f"{path}: row {row}, counted from 0, has {twice[0]!r} both in its metadata and beside them. Leave one out."
        )
    return None if inner is None and not record else {**record, **(inner or {})}


def matching(names: Sequence[str], columns: Columns, path: Path) -> list[str]:
    """The columns that hold a number of the vector each, in the file's order. Raises InvalidInput where nothing
    says which these are."""
    apart = {columns.id, columns.document, columns.sparse, *columns.leave_out}
    left = [name for name in names if name not in apart]
    if not columns.vectors:
        _refuse_index(left, columns, path)
        if _alike(left) or not names:
            return left
        raise InvalidInput(
            f"{path} has no column {columns.embedding!r}, and besides has {_list(left)}: which of them hold the vector's "
            "numbers? Name them with --vector-columns, by names or by patterns such as 'v*'; the others are metadata, unless "
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


def distinct(names: list[str], path: Path) -> list[str]:
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


def first(names: Sequence[str], *wanted: str) -> str | None:
    return next((name for name in wanted if name in names), None)
