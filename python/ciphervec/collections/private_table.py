"""Keyed private lookup: a table of records, and a client that looks some up without showing which keys it asks for or whether
they were there. What a server sees, and what a client sees beside, is in docs/lookup.md."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import ciphervec._native as _native

from ..errors import InvalidInput
from ..ingest import arrays
from ..ingest.extras import needed
from ..ingest.files import StrPath, at_home, storage_errors, sync_folder
from .client import checked_keys
from .keys import Keys

Key: TypeAlias = bytes | str | int
"""A key of a record. 7, "7" and b"7" are three keys."""


class _Described:
    """What is public of a table, at either half."""

    _facts: dict[str, Any]

    @property
    def record_bytes(self) -> int:
        """The most bytes that a record of the table may have."""
        return int(self._facts["record_bytes"])

    @property
    def sealed(self) -> bool:
        """Whether its owner sealed the records: the server reads neither them nor their keys."""
        return bool(self._facts["sealed"])

    @property
    def fingerprint(self) -> str:
        """64 hexadecimal digits that stand for the table: its publisher gives them out, and a client that knows them can be
        shown no other record under a key."""
        return bytes(self._facts["fingerprint"]).hex()

    def __len__(self) -> int:
        return int(self._facts["records"])

    def __bool__(self) -> bool:
        return True  # one without records is a table too


class PrivateTable(_Described):
    """A table of records by key, as its publisher and its server have it.

    Records are bytes, up to 65,535 each; all take the room of the longest. A table does not change: a publisher builds another
    one, with another fingerprint.
    """

    def __init__(self, native: _native.KeyedTable) -> None:
        """Not for callers: use `PrivateTable.build(records)` or `PrivateTable.load(path)`."""
        if not isinstance(native, _native.KeyedTable):
            raise InvalidInput(
                "use PrivateTable.build(records), or PrivateTable.load(path) for one that was saved."
            )
        self._native, self._facts = native, native.facts()

    @classmethod
    def build(
        cls,
        records: Mapping[Any, bytes | str] | Iterable[tuple[Key, bytes | str]],
        *,
        path: StrPath | None = None,
        record_bytes: int = 0,
        keys: Keys | None = None,
        seed: bytes | None = None,
    ) -> PrivateTable:
        """Make a table of records by key: a dict, or pairs. For a set of keys alone use `dict.fromkeys(keys, b"")`. A record
        that is a str is stored as UTF-8.

        `path` writes it to a file as it is made, in place of one that is there; else it is in memory. `record_bytes` is room
        that every record has at least, so that later tables look the same. `keys` seals the records: only clients with these
        keys look them up, and the server learns their number and size. `seed` is 32 bytes that keys of an unsealed table are
        hashed under, random unless given: who knows it beforehand may choose keys for which there is no room.

        Raises InvalidInput for a key that comes twice, and for what is no key or record; StorageError.
        """
        given: Any = records
        if isinstance(given, str | bytes):
            raise InvalidInput("records are a dict or pairs of key and record, got a text.")
        room = arrays.count(record_bytes, "record_bytes", least=0)
        drawn: Any = seed
        if drawn is not None and (not isinstance(drawn, bytes) or len(drawn) != 32):
            raise InvalidInput("seed must be 32 bytes, as secrets.token_bytes(32) gives.")
        held = None if keys is None else checked_keys(keys)._native
        made = _native.KeyedRecords(held, seed)
        for index, pair in enumerate(given.items() if isinstance(given, Mapping) else given):
            try:
                key, record = pair
            except (TypeError, ValueError):
                raise InvalidInput(f"record {index} must come as a pair of key and record.") from None
            made.push(key, _content(record, index))
        if path is None:
            return cls(made.write(None, room))
        with _draft(path) as draft:
            made.write(str(draft), room)
        return cls.load(path)

    @classmethod
    def from_parquet(
        cls, file: StrPath, *, key: str = "key", record: str | None = "record", **options: Any
    ) -> PrivateTable:
        """Make a table of two columns of a Parquet file, of which `key` holds binaries, texts or integers and `record` binaries
        or texts; None for keys alone. `options` are those of `build`. Raises as `build`; it needs pyarrow."""
        return cls.build(parquet_records(file, key, record), **options)

    @classmethod
    def load(cls, path: StrPath) -> PrivateTable:
        """Open a table's file. It is read bucket by bucket when it is used, each checked. Raises CorruptData,
        UnsupportedVersion, StorageError."""
        return cls(_native.KeyedTable.open(at_home(path)))

    def save(self, path: StrPath) -> None:
        """Write the table to a file, in place of one that is there. Raises StorageError."""
        with _draft(path) as draft:
            self._native.copy_to(str(draft))

    def verify(self) -> None:
        """Check every bucket. Raises CorruptData."""
        self._native.verify()

    def info(self) -> dict[str, Any]:
        """`records`, `record_bytes`, `sealed`, `fingerprint`, `bytes`; `places` that a key may be in, `buckets`, and records of
        a bucket in `bucket_records`: a client sees the others of each that it asks for."""
        return {**self._facts, "fingerprint": self.fingerprint}

    @property
    def description(self) -> bytes:
        """What a client needs of the table, at most 33 KB. Public."""
        return self._native.description()

    def get(self, key: Key, keys: Keys | None = None) -> bytes | None:
        """The record of a key, read from the table here; None where there is none. Nothing is hidden from whoever has the
        table. Raises CorruptData."""
        return self._native.get(key, None if keys is None else checked_keys(keys)._native)

    def answer(self, evaluation_keys: bytes, query: bytes) -> bytes:
        """The server's half: the answer to a query of `PrivateTableClient.ask`. The first one makes the table ready, in some
        3.6 times its bytes of memory. Raises CorruptData, InvalidInput, WrongKey."""
        return self._native.answer(_bytes(evaluation_keys, "evaluation_keys"), _bytes(query, "a query"))

    def client(self, keys: Keys | None = None) -> PrivateTableClient:
        """A client whose server this is, in one process. `keys` are those that sealed the table."""
        client = PrivateTableClient(self.description, self.fingerprint, keys)
        client._server = self
        return client

    def __repr__(self) -> str:
        sealed = ", sealed" if self.sealed else ""
        return (
            f"<ciphervec.PrivateTable of {len(self):,} records of up to {self.record_bytes:,} bytes{sealed}>"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PrivateTable can't be pickled. Save it, and load it there.")


class TableLookups(_Described):
    """Who looks records up, whichever way queries go."""

    def get(self, key: Key, default: bytes | None = None) -> bytes | None:
        """The record of a key, or `default` where the table has no such key. The server sees that a key was looked up.

        Another key's record is returned with a chance below 2⁻¹¹⁸. Raises TamperedAnswer for an answer that is wrong, once:
        nothing more is looked up then.
        """
        found = self.get_many([key])[0]
        return default if found is None else found

    def get_many(self, keys: Iterable[Key], *, bound: int | None = None) -> list[bytes | None]:
        """The records of keys, in order; None where there is none. The server sees how many keys there are at most: 1, 10, 100
        or whole hundreds, the next from `bound` on, which is their number unless given. At most 5,000. Raises as `get`."""
        if isinstance(keys, str | bytes):
            raise InvalidInput("keys are a list of keys; for one use get(key).")
        wanted = list(keys)
        most = None if bound is None else arrays.count(bound, "bound")
        return self._look(wanted, most)

    def __contains__(self, key: Key) -> bool:
        return self.get_many([key])[0] is not None

    def _look(self, keys: Sequence[Key], bound: int | None) -> list[bytes | None]:
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client of a table holds a secret key and can't be pickled. Make one there.")


class PrivateTableClient(TableLookups):
    """Who looks records up in a table that somebody else has.

    `PrivateTable.client` makes one that asks a table of this process, `HttpClient.get_table` one that asks a server. One made
    of a description has `ask` and `open`, for messages that go another way. Its key is drawn for it and nowhere stored.
    """

    _server: PrivateTable | None = None

    def __init__(self, description: bytes, fingerprint: str, keys: Keys | None = None) -> None:
        """`description` is `PrivateTable.description`, `fingerprint` that of its publisher; `keys` are those that sealed the
        table. Raises InvalidInput for another fingerprint; CorruptData, UnsupportedVersion."""
        held = None if keys is None else checked_keys(keys)._native
        self._native = _native.KeyedClient(_bytes(description, "a description"), held)
        self._facts = self._native.facts()
        if self.fingerprint != str(fingerprint).strip().lower():
            raise InvalidInput(
                f"the description has the fingerprint {self.fingerprint}, not the one given. Ask the publisher of the table."
            )

    def ask(self, keys: Iterable[Key], *, bound: int | None = None) -> tuple[_native.AskedKeys, list[bytes]]:
        """What `open` needs, and queries: each is answered by itself, by `PrivateTable.answer` with the `evaluation_keys()` of
        what comes first, which stay the same for many lookups. Their number and lengths follow from `bound` alone, see
        `get_many`. Raises InvalidInput, and TamperedAnswer after a failure."""
        wanted = list(keys)
        most = max(len(wanted), 1) if bound is None else arrays.count(bound, "bound")
        return self._native.ask(wanted, most)

    def open(self, asked: _native.AskedKeys, answers: Sequence[bytes]) -> list[bytes | None]:
        """The records, as `get_many` returns them. Raises TamperedAnswer, after which nothing more is looked up; CorruptData or
        InvalidInput for what is no answer."""
        return self._native.open(asked, list(answers))

    def _look(self, keys: Sequence[Key], bound: int | None) -> list[bytes | None]:
        if self._server is None:
            raise InvalidInput(
                "this client has no server: use ask and open, PrivateTable.client, or HttpClient.get_table."
            )
        asked, queries = self.ask(keys, bound=bound)
        evaluation_keys = asked.evaluation_keys()
        return self.open(asked, [self._server.answer(evaluation_keys, query) for query in queries])

    def __repr__(self) -> str:
        return f"<ciphervec.PrivateTableClient of {len(self):,} records>"


def parquet_records(file: StrPath, key: str, record: str | None) -> Iterator[tuple[Key, bytes | str]]:
    """Pairs of two columns of a Parquet file. Raises InvalidInput."""
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError as error:
        raise needed("reading .parquet", "pyarrow", "parquet") from error
    path = at_home(file)
    columns = [key] if record is None else [key, record]
    try:
        source = parquet.ParquetFile(path)
    except ArrowInvalid as error:
        raise InvalidInput(f"{path} is not a Parquet file: {error}.") from error
    with source:
        missing = [name for name in columns if name not in source.schema_arrow.names]
        if missing:
            raise InvalidInput(
                f"{path} has the columns {', '.join(source.schema_arrow.names)}, and no {missing[0]!r}. Name them with key= "
                "and record=, which may be None."
            )
        for batch in source.iter_batches(columns=columns):
            names = batch.column(key).to_pylist()
            held = [b""] * len(names) if record is None else batch.column(record).to_pylist()
            yield from zip(names, held, strict=True)


@contextlib.contextmanager
def _draft(path: StrPath) -> Iterator[Path]:
    """A new file beside a path, which takes its place in one step."""
    target = Path(at_home(path))
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield draft
        with storage_errors(f"cannot write {target}"):
            draft.replace(target)
            sync_folder(target.parent)
    finally:
        draft.unlink(missing_ok=True)


def _content(record: Any, index: int) -> bytes:
    if isinstance(record, str):
        try:
            return record.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"record {index} is no text of Unicode: {error}.") from None
    if not isinstance(record, bytes | bytearray | memoryview):
        raise InvalidInput(f"record {index} must be bytes or a text, got {type(record).__name__}.")
    return bytes(record)


def _bytes(value: Any, what: str) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise InvalidInput(f"{what} must be bytes, got {type(value).__name__}.")
    return bytes(value)


__all__ = ["Key", "PrivateTable", "PrivateTableClient", "TableLookups", "parquet_records"]
