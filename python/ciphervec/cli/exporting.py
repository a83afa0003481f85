"""What `ciphervec export` writes: lines of JSON, a Parquet file or a collection of Chroma's, whole or not at all. The key
owner's side, and in clear."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..collections.audience import OwnerResult, check_audience
from ..collections.collection import Collection
from ..collections.embedding.multi import MULTI
from ..collections.ranking import SparseVectors
from ..collections.results import SPARSE
from ..errors import CollectionExists, InvalidInput
from ..ingest import packed
from ..ingest.arrays import Id
from ..ingest.counts import several
from ..ingest.extras import needed
from ..ingest.metrics import METRICS
from .row_table import Columns
from .sources import chroma
from .sources.source import Address, troubles
from .terminal import progress

_PART = 1_000
"""Rows that are read, and written, at once."""
_OWN = ("id", "document", "embedding", Columns.MULTI, Columns.SPARSE)
_EXACT = 1 << 53
"""Up to here every whole number is a float64."""
_KINDS = {str: "text", bool: "bool", int: "int", float: "float"}


@dataclass(frozen=True)
class Rows:
    """Rows of a collection, in order. Nothing of them is in memory until they are gone through."""

    collection: Collection
    names: list[Id]
    audience: str | None

    def parts(self, *include: str) -> Iterator[Mapping[str, Any]]:
        """A thousand at a time, with a bar. Raises InvalidInput where vectors are for their owner, who isn't named."""
        with progress(f"reading {self.collection.name}", len(self.names), quiet=False) as step:
            for start in range(0, len(self.names), _PART):
                names = self.names[start : start + _PART]
                found: Mapping[str, Any] = self.collection.get(
                    names, include=include, audience=check_audience(self.audience), fetch="segments"
                )
                if isinstance(found, OwnerResult):
                    raise InvalidInput(
                        f"vectors of {self.collection.name!r} that weren't kept as they were put in carry noise of your key. "
                        "Name who reads the file: --audience owner."
                    )
                yield found
                step(start + len(names), len(self.names))

    @property
    def vectors(self) -> tuple[str, ...]:
        """What rows have beside documents and metadata: a vector, or the matrix that it is made of, and a sparse one."""
        first = "embeddings" if self.collection.multi is None else MULTI
        return (first, SPARSE) if isinstance(self.collection.sparse, SparseVectors) else (first,)

    def whole(self) -> Iterator[Mapping[str, Any]]:
        """As `parts`, with all that rows have."""
        return self.parts("documents", "metadatas", *self.vectors)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """As they are in lines of JSON."""
        for part in self.whole():
            for i, name in enumerate(part["ids"]):
                row = {"id": name, "document": part["documents"][i], "metadata": part["metadatas"][i]}
                for of in self.vectors:
                    value = part[of][i]
                    row[of.removesuffix("s")] = value if isinstance(value, dict | None) else value.tolist()
                yield {key: value for key, value in row.items() if value is not None}


def to_lines(file: Path, rows: Rows) -> None:
    """Raises FileExistsError, InvalidInput."""
    with packed.create_text(file) as out, _whole(file):
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def to_parquet(file: Path, rows: Rows) -> None:
    """Columns of one type each. Raises FileExistsError, InvalidInput."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise needed("writing .parquet", "pyarrow", "parquet") from error
    if len({type(name) for name in rows.names}) > 1:
        raise InvalidInput(
            "ids are texts and numbers, and a column holds one of them. Write lines of JSON: a .jsonl file."
        )
    of_a_field = {"text": pa.string(), "bool": pa.bool_(), "float": pa.float64()}
    of_a_field |= {"int": pa.int64(), "int64": pa.int64()}
    fields = {
        name: pa.list_(of_a_field[kind[5:]]) if kind.startswith("list ") else of_a_field[kind]
        for name, kind in _column_kinds(rows).items()
    }
    number = rows.names and isinstance(rows.names[0], int)
    multi = rows.collection.multi
    vector = pa.list_(pa.float32(), rows.collection.dimension if multi is None else multi.width)
    types = {
        "embeddings": vector,
        MULTI: pa.list_(vector),
        SPARSE: pa.struct([("indices", pa.list_(pa.uint32())), ("values", pa.list_(pa.float32()))]),
    }
    schema = pa.schema(
        [("id", pa.int64() if number else pa.string()), ("document", pa.string()),
         *((of.removesuffix("s"), types[of]) for of in rows.vectors), *fields.items()]
    )  # fmt: skip
    with file.open("xb") as out, _whole(file), parquet.ParquetWriter(out, schema) as writer:
        for part in rows.whole():
            vectors = [_column(pa, part[of], types[of]) for of in rows.vectors]
            columns = [[(one or {}).get(name) for one in part["metadatas"]] for name in fields]
            writer.write_table(pa.table([part["ids"], part["documents"], *vectors, *columns], schema=schema))


def _column(pa: Any, values: Any, of: Any) -> Any:
    """Vectors, matrices or sparse vectors of rows as Arrow has them."""
    if pa.types.is_struct(of):
        return pa.array(values, of)
    if pa.types.is_fixed_size_list(of):
        return pa.FixedSizeListArray.from_arrays(pa.array(np.reshape(values, -1)), of.list_size)
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    tokens = np.concatenate(values) if values else np.empty((0, of.value_type.list_size), np.float32)
    return pa.ListArray.from_arrays(pa.array(ends), _column(pa, tokens, of.value_type))


def to_chroma(target: str, token: str | None, rows: Rows) -> None:
    """A new collection of Chroma's. Raises CollectionExists, InvalidInput, ServerError."""
    address = Address.of(target, token)
    name = address.choices.get("collection", rows.collection.name)
    metric = rows.collection.metric
    if METRICS[metric].bits:
        raise InvalidInput(f"Chroma doesn't compare by {metric}. Write lines of JSON: a .jsonl file.")
    if rows.vectors != ("embeddings",):
        raise InvalidInput(
            "a collection of Chroma's has one dense vector a row: no matrices, and on one's own machine no sparse vectors. "
            "Write them to a .parquet or .jsonl file."
        )
    _refuse(rows, "Chroma", _for_chroma)
    strange = Counter(type(one).__name__ for one in rows.names if not isinstance(one, str))
    texts = {str(one) for one in rows.names}
    if strange and len(texts) < len(rows.names):
        raise InvalidInput(
            f"Chroma's ids are texts, and some of {several(strange['int'], 'number')} would be the id of another row. "
            "Write lines of JSON: a .jsonl file."
        )
    client = chroma.client(address)
    with troubles(address, Exception):
        if name in [getattr(one, "name", one) for one in client.list_collections()]:
            raise CollectionExists(
                f"there is a collection {name!r} in {target}. Choose another: …?collection=NAME"
            )
        made = client.create_collection(
            name, configuration={"hnsw": {"space": metric}}, embedding_function=None
        )
        try:
            for part in rows.whole():
                # One call takes one kind of rows: with documents or without.
                for has in (True, False):
                    at = [i for i, one in enumerate(part["documents"]) if (one is not None) == has]
                    if at:
                        made.add(
                            ids=[str(part["ids"][i]) for i in at],
                            embeddings=part["embeddings"][at],
                            metadatas=[part["metadatas"][i] or None for i in at],
                            documents=[part["documents"][i] for i in at] if has else None,
                        )
        except BaseException:
            client.delete_collection(name)
            raise


@contextlib.contextmanager
def _whole(file: Path) -> Iterator[None]:
    """Nothing is left of a file that isn't whole."""
    try:
        yield
    except BaseException:
        file.unlink()
        raise


def _column_kinds(rows: Rows) -> dict[str, str]:
    """The kind of values of each field, None left aside. Raises InvalidInput for one that has several, or that a column
    doesn't hold."""
    found: dict[str, Counter[str]] = {}
    for part in rows.parts("metadatas"):
        for metadata in part["metadatas"]:
            for name, value in (metadata or {}).items():
                found.setdefault(name, Counter())
                if value is not None:
                    found[name][_kind(value)] += 1
    kinds: dict[str, str] = {}
    faults: list[str] = []
    for name, counted in found.items():
        several_ints, numbers = counted.keys() == {"int", "int64"}, counted.keys() == {"int", "float"}
        kind = "int64" if several_ints else "float" if numbers else next(iter(counted), "text")
        kinds[name] = kind
        listed = ", ".join(f"{one} in {several(count, 'row')}" for one, count in counted.items())
        if name in _OWN:
            faults.append(f"{name!r} is the name of another column")
        elif (len(counted) > 1 and not numbers and not several_ints) or kind not in _SCALARS | _LISTS:
            faults.append(f"{name!r} holds {listed}")
    if faults:
        raise InvalidInput(
            "a column of a Parquet file holds texts, numbers, truths or lists of one of these; nothing was written:\n"
            + "\n".join(faults)
            + "\nWrite lines of JSON: a .jsonl file; or leave rows out with --where."
        )
    return kinds


_SCALARS = {*_KINDS.values(), "int64"}
_LISTS = {f"list {kind}" for kind in _SCALARS}


def _kind(value: object) -> str:
    """What a column of a Parquet file would hold for this."""
    if isinstance(value, list):
        inner = {_kind(one) for one in value}
        return f"list {inner.pop() if len(inner) == 1 else 'text' if not inner else 'of several kinds'}"
    if isinstance(value, dict):
        return "object"
    if type(value) is int and abs(value) >= _EXACT:
        return "int64" if -(1 << 63) <= value < 1 << 63 else "a larger int"
    return _KINDS.get(type(value), type(value).__name__)


def _refuse(rows: Rows, engine: str, fits: Callable[[object], bool]) -> None:
    """Raises InvalidInput, with counts, for values of metadata that an engine doesn't hold."""
    found: Counter[tuple[str, str]] = Counter()
    for part in rows.parts("metadatas"):
        for metadata in part["metadatas"]:
            found.update((name, _kind(value)) for name, value in (metadata or {}).items() if not fits(value))
    if found:
        lines = [f"{name!r} is {kind} in {several(count, 'row')}" for (name, kind), count in found.items()]
        raise InvalidInput(
            f"{engine} doesn't hold all values of metadata that are here; nothing was written:\n" + "\n".join(lines)
            + "\nWrite lines of JSON: a .jsonl file; or leave rows out with --where."
        )  # fmt: skip


def _for_chroma(value: object) -> bool:
    """Whether Chroma takes a value, and gives the same back."""
    if isinstance(value, list):
        return _kind(value) in _LISTS and bool(value)
    return _kind(value) in _SCALARS
