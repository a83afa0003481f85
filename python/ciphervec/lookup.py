"""Private lookup: a server with plain tables adds up rows for encrypted indices; only the client decrypts the sums.

A `Server` is set up with tables; a `Client` needs nothing but the server's description. Between the
two there are only bytes: `client.query(indices)`, `server.embed(query)`, `client.decode(answer)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

import ciphervec._native as _native

from .errors import InvalidInput
from .ingest import arrays
from .ingest.files import StrPath, at_home
from .ingest.network import DEFAULT, Network, check_network

__all__ = ["PADDING", "Client", "Server", "explain", "setup"]

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

PADDING = -1
"""The index of a token that stands for nothing; in all tables or in none."""

_POOLED = ("sum", "mean")


@runtime_checkable
class HasTables(Protocol):
    """A `Codebook`: tables (tables, rows, d), of which a row of each is summed."""

    @property
    def tables(self) -> npt.NDArray[np.float32]:
        """(tables, rows, d)."""
        ...


class _Half:
    """What the description says, at either half."""

    __slots__ = ("_facts",)
    _facts: dict[str, Any]

    @property
    def strategy(self) -> str:
        """How indices are encrypted and looked up."""
        return str(self._facts["strategy"])

    @property
    def transport(self) -> str:
        """How encrypted indices travel: "standard" or "compact"."""
        return str(self._facts["transport"])

    @property
    def pooling(self) -> str:
        """What becomes of a document's rows: "none", "sum" or "mean"."""
        return str(self._facts["pooling"])

    @property
    def limit(self) -> int:
        """Most tokens of a document."""
        return int(self._facts["limit"])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Tables, rows that an index may name, numbers of a row."""
        return int(self._facts["tables"]), int(self._facts["rows"]), int(self._facts["columns"])

    @property
    def error_bound(self) -> float:
        """No number of an answer is off by more, but with probability 2⁻⁶⁴."""
        return float(self._facts["error_bound"])

    def __repr__(self) -> str:
        tables, rows, columns = self.shape
        name = f"ciphervec.lookup.{type(self).__name__}"
        way = "" if self.transport == "standard" else f", transport {self.transport}"
        return f"<{name}: {tables} × {rows} × {columns}, {self.strategy}{way}, pooling {self.pooling}>"


def setup(
    table: npt.ArrayLike | HasTables,
    strategy: str = "auto",
    *,
    pooling: str = "none",
    limit: int = 128,
    padding: bool = False,
    precision_bits: int = 14,
    word_bytes: int = 5,
    batch: int = 4096,
    transport: str = "standard",
    network: Network = DEFAULT,
) -> Server:
    """Prepare tables to be looked up in, at the server.

    `table` is (p, d), (ℓ, p, d) or a Codebook: an index names a row of each of the ℓ tables, whose
    sum is looked up. With `pooling` "sum" or "mean" the client gets that of a document's rows, up
    to `limit` of them; with "none" every row. Strategies are "histogram", where rows are pooled,
    "ive_digits", "ive", "one_hot", "one_hot_digits" and "indicator"; docs/lookup.md says when each
    fits. "auto" takes the one that `explain` calls the cheapest for `batch` tokens at once, over
    `network`.

    `transport` "compact" sends an index of strategy "ive" or "ive_digits" in 2 to 3 bytes a number,
    in place of 30 and more: evaluation keys are 0.6 to 0.8 GB, the server works longer, and a query is as
    large as one for 16,384 or 32,768 tokens, however few there are. "auto" takes what is cheapest
    over `network`; with a strategy that is named, the cheaper way for that strategy.

    `padding` adds a row of zeros to every table, so that padding is zero for a server that goes on
    computing; a client's own results have it as zero anyway. `precision_bits` is what a looked-up
    row's error is below its size, and answers have no more bits than that takes; in strategy "histogram"
    `word_bytes`, 4 to 6, are the bytes of an encrypted count, and the bound on the error follows. Raises
    InvalidInput.
    """
    tables = _tables(table)
    if "auto" in (strategy, transport):
        task = (tables.shape, pooling, limit, padding, precision_bits, batch)
        strategy, transport, _ = _plan(*task, strategy, transport, network)
    native = _native.LookupServer(
        tables,
        strategy,
        pooling,
        limit=arrays.count(limit, "limit"),
        padding=bool(padding),
        word_bytes=arrays.count(word_bytes, "word_bytes"),
        precision_bits=arrays.count(precision_bits, "precision_bits"),
        transport=str(transport),
    )
    return Server(native)


def explain(
    table: npt.ArrayLike | HasTables | tuple[int, int, int],
    *,
    pooling: str = "none",
    limit: int = 128,
    padding: bool = False,
    precision_bits: int = 14,
    batch: int = 4096,
    transport: str = "standard",
    network: Network = DEFAULT,
) -> str:
    """What every strategy would cost on this machine for `batch` tokens at once, and which one
    "auto" takes over `network` with this `transport`, as text. Both transports are priced: bytes and
    milliseconds a token, and what they come to together.

    `table` is as for `setup`, or its shape (ℓ, p, d). Times are estimates from a measurement of
    some milliseconds, made once a process. Raises InvalidInput.
    """
    sizes = table if isinstance(table, tuple) else _tables(table).shape
    task = (sizes, pooling, limit, padding, precision_bits, batch)
    return _plan(*task, "auto", transport, network)[2]


def _plan(
    sizes: tuple[int, ...],
    pooling: str,
    limit: int,
    padding: bool,
    precision_bits: int,
    batch: int,
    strategy: str,
    transport: str,
    network: Network,
) -> tuple[str, str, str]:
    """Strategy and transport, and the table that they were chosen from."""
    tables, rows, columns = (arrays.count(size, "a size of the tables") for size in sizes)
    shape = (tables, rows + bool(padding), columns)
    document = arrays.count(limit, "limit") if pooling in _POOLED else 0
    bits = arrays.count(precision_bits, "precision_bits")
    over = check_network(network).native
    count = arrays.count(batch, "batch")
    return _native.LookupServer.plan(shape, count, bits, document, over, str(strategy), str(transport))


class Server(_Half):
    """Tables that clients look up in. It learns how many documents or tokens a query has room for,
    and nothing of them.

    It hides its tables from nobody who may ask: as many well-chosen queries as a table has rows
    give all of them away.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.LookupServer) -> None:
        """Not for callers: use `lookup.setup(table)` or `Server.from_bytes(data)`."""
        if not isinstance(native, _native.LookupServer):
            raise InvalidInput("use lookup.setup(table), or Server.from_bytes(data) for a saved one.")
        self._native, self._facts = native, native.facts()

    def description(self) -> bytes:
        """What a client needs: shape, strategy, scales, and a digest of the tables. Public."""
        return self._native.description()

    def register(self, keys: bytes) -> str:
        """Keep what a client's `keys()` gave, in strategies that need it, until `forget`. Returns
        the name of the keys.

        Raises InvalidInput, CorruptData or UnsupportedVersion.
        """
        return self._native.register(_bytes(keys, "keys"))

    def forget(self, name: str) -> bool:
        """Drop the keys of a client that is gone, by the name that `register` gave. Whether there
        were any."""
        return self._native.forget(str(name))

    def embed(self, query: bytes) -> bytes:
        """The answer to a query. Raises InvalidInput for one of another table, CorruptData or
        UnsupportedVersion."""
        return self._native.embed(_bytes(query, "query"))

    def to_bytes(self) -> bytes:
        """The tables with their description: the server's own, not for clients."""
        return self._native.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Server:
        """Raises CorruptData for anything but what `to_bytes` gives, UnsupportedVersion for that of
        a newer release."""
        return cls(_native.LookupServer.from_bytes(_bytes(data, "data")))


class Client(_Half):
    """Who looks up: a secret key, made for the tables that a server described."""

    __slots__ = ("_native",)

    def __init__(self, native: _native.LookupClient) -> None:
        """Not for callers: use `Client.generate(description)` or
        `Client.load(path, passphrase=...)`."""
        if not isinstance(native, _native.LookupClient):
            raise InvalidInput(
                "use Client.generate(description) for a new key or Client.load(path, passphrase=...) for a saved one."
            )
        self._native, self._facts = native, native.facts()

    @classmethod
    def generate(cls, description: bytes) -> Client:
        """A fresh key. Raises CorruptData or UnsupportedVersion for anything but a server's
        description."""
        return cls(_native.LookupClient.generate(_bytes(description, "description")))

    @property
    def key_id(self) -> str:
        """The public name of the key, in hexadecimal."""
        return self._native.key_id

    def keys(self) -> bytes | None:
        """Evaluation keys for `server.register`, made anew at each call; None where the strategy
        needs none. Not secret."""
        return self._native.keys()

    def query(
        self, indices: Any, offsets: npt.ArrayLike | None = None, *, allow_empty: bool = False
    ) -> bytes:
        """Tokens, encrypted.

        `indices` is (tokens, ℓ) integers, or (tokens,) for a single table; `PADDING` in all tables
        is no token. Where rows are pooled, documents are `offsets[i] : offsets[i + 1]`, or
        `indices` is (documents, tokens, ℓ) or a list of one array a document. A document without
        tokens is zero, and must be allowed. Raises InvalidInput: an index that the tables don't
        have, a document over the limit, an empty one.
        """
        tokens, ends = _documents(indices, offsets, self.shape[0], self.pooling)
        lengths = np.diff(ends)
        if not allow_empty and len(lengths) and lengths.min() == 0:
            raise InvalidInput(
                f"document {int(lengths.argmin())} has no token; leave it out, or pass allow_empty=True to get zeros."
            )
        return self._native.query(tokens, ends)

    def decode(self, answer: bytes) -> Floats:
        """(documents, d), or (tokens, d) where nothing is pooled. Raises WrongKey, InvalidInput,
        CorruptData."""
        return self._native.decode(_bytes(answer, "answer"))

    def save(self, path: StrPath, passphrase: str | None = None, *, allow_plaintext: bool = False) -> None:
        """Write key and description to a new file, encrypted under `passphrase`, or in clear if
        that is asked for.

        Raises InvalidInput or StorageError; an existing file is never overwritten.
        """
        self._native.save(at_home(path), passphrase, allow_plaintext=allow_plaintext)

    @classmethod
    def load(cls, path: StrPath, passphrase: str | None = None) -> Client:
        """Read a file that `save` wrote. Raises WrongKey, CorruptData, StorageError,
        InvalidInput."""
        return cls(_native.LookupClient.load(at_home(path), passphrase))

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "secret keys can't be pickled. Use client.save(path, passphrase=...) and Client.load there."
        )


def _tables(table: npt.ArrayLike | HasTables) -> Floats:
    """(ℓ, p, d), contiguous."""
    values = table.tables if isinstance(table, HasTables) else table
    found = arrays.numbers(values, "a table")
    if found.dtype.kind not in "fiu":
        raise InvalidInput(f"a table must hold real numbers, got dtype {found.dtype}.")
    found = found[None] if found.ndim == 2 else found
    if found.ndim != 3:
        raise InvalidInput(f"a table must be (p, d) or (l, p, d), got shape {found.shape}.")
    return np.ascontiguousarray(found, np.float64)


def _documents(
    indices: Any, offsets: npt.ArrayLike | None, tables: int, pooling: str
) -> tuple[Integers, Integers]:
    """(tokens, ℓ) indices and the offsets of documents, whichever way they were given."""
    pooled = pooling in _POOLED
    if offsets is not None:
        if not pooled:
            raise InvalidInput("offsets are for tables with pooling sum or mean; these give every row.")
        tokens = _indices(indices, tables)
        return tokens, _integers(offsets, "offsets").ravel()
    if pooled and not isinstance(indices, np.ndarray) and isinstance(indices, Sequence):
        parts = [_indices(one, tables) for one in indices]
        ends = np.cumsum([0, *(len(one) for one in parts)], dtype=np.int64)
        return np.concatenate([np.empty((0, tables), np.int64), *parts]), ends
    if not pooled:
        tokens = _indices(indices, tables)
        return tokens, np.arange(len(tokens) + 1, dtype=np.int64)
    found = _integers(indices, "indices")
    found = found[..., None] if found.ndim == 2 and tables == 1 else found
    if found.ndim != 3 or found.shape[2] != tables:
        raise InvalidInput(
            f"indices of pooled documents must be (documents, tokens, {tables}), a list of one array a document, or come with "
            f"offsets; got shape {found.shape}."
        )
    documents, each = found.shape[:2]
    return _indices(found.reshape(-1, tables), tables), np.arange(documents + 1, dtype=np.int64) * each


def _indices(value: Any, tables: int) -> Integers:
    found = _integers(value, "indices")
    if found.size == 0:
        return np.empty((0, tables), np.int64)
    found = found[:, None] if found.ndim == 1 and tables == 1 else found
    if found.ndim != 2 or found.shape[1] != tables:
        raise InvalidInput(f"indices must be (tokens, {tables}), one a table, got shape {found.shape}.")
    return np.ascontiguousarray(found)


def _integers(value: Any, what: str) -> Integers:
    found = arrays.numbers(value, what)
    if found.size and found.dtype.kind not in "iu":
        raise InvalidInput(f"{what} must be integers, got dtype {found.dtype}.")
    if found.dtype == np.uint64 and found.size and int(found.max()) >= 1 << 63:
        raise InvalidInput(f"{what} must fit in 64 signed bits, got {found.max()}.")
    return found.astype(np.int64)


def _bytes(value: Any, what: str) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise InvalidInput(f"{what} must be bytes, got {type(value).__name__}.")
    return bytes(value)
