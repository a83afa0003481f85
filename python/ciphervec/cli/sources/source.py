"""Sources: what every reader of another vector store is built of. An address, a schema and pages of rows are the same for
all of them; what of a row becomes what is decided by `row_table.made`, as for files. The key owner's side."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np

from ...errors import CiphervecError, InvalidInput, ServerError
from ...http.address import is_loopback
from ...ingest.arrays import FloatArray, Id
from ...ingest.files import at_home
from ...ingest.metrics import METRIC_NAMES, MetricName
from ..row_table import METADATA, Columns, Table, made

PAGE = 2_000
"""Rows that are read at once."""
LOOKED_AT = 200
"""Rows in which the fields are looked for, of engines that have no list of them."""
USUAL = Columns()
Questions: TypeAlias = FloatArray | list[FloatArray]
"""Vectors, or matrices of rows that have many each."""
Hits = tuple[list[Id], list[float]]
"""Ids and distances of one question, closest first; distances as `ciphervec query` has them."""


@dataclass(frozen=True)
class Address:
    """SCHEME://HOST:PORT?name=value or SCHEME:PATH?name=value, taken apart."""

    text: str
    scheme: str
    host: str | None
    port: int | None
    path: str
    choices: Mapping[str, str]
    secure: bool = False
    user: str | None = None
    token: str | None = None

    @classmethod
    def of(cls, text: str, token: str | None = None) -> Address:
        """Raises InvalidInput, also for a password, which others of this machine would see."""
        head, _, rest = text.partition(":")
        scheme, _, tls = head.partition("+")
        try:
            parts = urlsplit(f"x:{rest}")
            port, host, user, password = parts.port, parts.hostname, parts.username, parts.password
            pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        except ValueError as error:
            raise InvalidInput(f"{text!r} is no address of a source: {error}.") from error
        if password:
            raise InvalidInput(
                "the address of a source holds a password, which others of this machine can see. Take it out, and give "
                "--source-token-file or CIPHERVEC_SOURCE_TOKEN."
            )
        if tls not in ("", "https"):
            raise InvalidInput(f"{head}: is no kind of source; with TLS it is {scheme}+https://…")
        if rest.startswith("//") and not host and "host" not in dict(pairs):
            raise InvalidInput(
                f"{text!r} names no host; it is {scheme}://HOST:PORT, or {scheme}:PATH for files."
            )
        path = unquote(parts.path)
        return cls(text, scheme, host, port, path, dict(pairs), tls == "https", user, token)

    def only(self, *known: str) -> None:
        """Raises InvalidInput for a name behind the ? that nothing reads."""
        strange = next((name for name in self.choices if name not in known), None)
        if strange is not None:
            raise InvalidInput(f"{self.text}: {strange!r} is not known; known are {', '.join(known)}.")

    def url(self, port: int) -> str:
        """Of an HTTP server. Raises InvalidInput where a token would pass over another network in clear."""
        if self.host is None:
            raise InvalidInput(f"{self.text} names no server; it is {self.scheme}://HOST:PORT.")
        if self.token and not self.secure and not is_loopback(self.host):
            raise InvalidInput(
                f"{self.text} is plain HTTP to another machine: anybody in between would read the token. It is "
                f"{self.scheme}+https://…"
            )
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port or port}"

    def place(self) -> Path:
        """Of files, which must be there."""
        path = Path(at_home(self.path))
        if not self.path or not path.exists():
            raise FileNotFoundError(f"there is no {path}, which {self.scheme}: should read.")
        return path


@dataclass(frozen=True)
class Column:
    """What a source has of every row, and what becomes of it."""

    name: str
    type: str
    becomes: str


@dataclass(frozen=True)
class Shape:
    """What rows are made of: one vector of `dimension` numbers, or many of `width`. Both are None where rows tell."""

    dimension: int | None = None
    width: int | None = None


@dataclass(frozen=True)
class Chosen:
    """The columns of a source that become a row's vector, or its matrix where it has `many`, and its sparse vector."""

    name: str
    numbers: int
    """Of a vector."""
    many: bool = False
    sparse: str | None = None

    @property
    def shape(self) -> Shape:
        """Of a collection that takes such rows."""
        return Shape(width=self.numbers) if self.many else Shape(self.numbers)


@dataclass(frozen=True)
class Schema:
    """What a source is, before any of it is read. `metric` is ciphervec's name for it, and None where there is none."""

    what: str
    rows: int
    dimension: int
    metric: MetricName | None
    metric_said: str
    columns: Sequence[Column]
    remarks: Sequence[str] = ()


@dataclass
class Source:
    """Rows of another store. Subclasses know one engine: they `open` it, and yield `pages`."""

    address: Address
    columns: Columns
    schema: Schema = field(init=False)
    chosen_vectors: Chosen = field(init=False)
    unused: set[str] = field(init=False)
    """What --leave-out names and nothing had so far."""
    objects: bool | None = None
    """Whether a column `metadata` holds objects, which are laid out."""
    held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """What is let go of in the end."""
    unit: bool = False
    """Whether the vectors of a matrix are brought to unit length."""
    _kinds: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.unused = {*self.columns.leave_out}

    def open(self, metric: MetricName | None) -> None:
        """Reach the engine and fill in `schema`; `metric` was asked for. Raises InvalidInput, ServerError."""
        raise NotImplementedError

    def pages(self) -> Iterator[Table]:
        """All rows, in the same order each time."""
        raise NotImplementedError

    def nearest(self, queries: Questions, count: int) -> Iterator[Hits] | None:
        """The closest rows by the engine's own exact search; None where it has none."""
        return None

    def close(self) -> None:
        """Let go of the engine."""
        self.held.close()

    def table(self, rows: Any, records: list[dict[str, Any]]) -> Table:
        """A page of what `record` and its like made."""
        return self._made(rows, records, [self.columns.id, self.columns.document, METADATA])

    def tabular(self, rows: Any, records: list[dict[str, Any]], names: Sequence[str]) -> Table:
        """A page of a table with these columns, the vector's aside. Raises InvalidInput where `metadata` holds objects in
        some rows only."""
        for record in records:
            value = record.get(METADATA)
            if value is not None and self.objects is None:
                self.objects = isinstance(value, dict)
            if value is not None and self.objects != isinstance(value, dict):
                raise InvalidInput(
                    f"{self.address.text}: {METADATA!r} holds objects in some rows only; the row with the id "
                    f"{record.get(self.columns.id)!r:.80} has {value!r:.80}. Pass --leave-out {METADATA}, or correct it."
                )
        sparse = self.chosen_vectors.sparse
        if sparse is not None:
            for record in records:
                record[Columns.SPARSE] = record.pop(sparse, None)
        return self._made(rows, records, [*names, self.columns.id, self.columns.document])

    def _made(self, rows: Any, records: list[dict[str, Any]], names: Sequence[str]) -> Table:
        many, sparse = (
            self.chosen_vectors.many,
            None if self.chosen_vectors.sparse is None else Columns.SPARSE,
        )
        columns = Columns(id=self.columns.id, document=self.columns.document, sparse=sparse)
        text = self.address.text
        multi = [_at_unit_length(one) if self.unit else one for one in rows] if many else None
        return made(text, None if many else rows, records, names, columns, multi=multi)

    def record(
        self, name: object, fields: Mapping[str, Any] | None, document: object = None, sparse: Any = None
    ) -> dict[str, Any]:
        """A row of an engine that keeps ids beside the fields. The document is one of those, where none is apart; `sparse` are
        the indices and values of its sparse vector."""
        self.unused.difference_update(fields or ())
        left = {key: value for key, value in (fields or {}).items() if key not in self.columns.leave_out}
        if document is None:
            document = left.pop(self.columns.document, None)
        found: dict[str, Any] = {self.columns.id: name, METADATA: left or None}
        if self.chosen_vectors.sparse is not None:
            found[Columns.SPARSE] = sparse
        return found if document is None else {**found, self.columns.document: document}

    def fields(self, seen: Sequence[Mapping[str, Any] | None]) -> list[Column]:
        """Columns for the fields that rows have, as these few show them. Raises InvalidInput."""
        types: dict[str, dict[str, None]] = {}
        for one in seen:
            for name, value in (one or {}).items():
                types.setdefault(name, {})[type(value).__name__] = None
        found = [Column(name, "/".join(of), self.becomes(name)) for name, of in types.items()]
        if self.columns.document != USUAL.document:
            self.known([*types])
        return found

    def becomes(self, name: str) -> str:
        """What a field becomes."""
        if name in self.columns.leave_out:
            return "left out"
        return "document" if name == self.columns.document else "metadata"

    def known(self, names: Sequence[str]) -> None:
        """Raises InvalidInput where --document-column names what is not there; notes what --leave-out needn't look for."""
        self.unused.difference_update(names)
        if self.columns.document not in (*names, USUAL.document):
            raise self.absent(self.columns.document, "--document-column", names)

    def absent(self, name: str, option: str, names: Sequence[str] = ()) -> InvalidInput:
        """The error of an option that names what is not there."""
        has = f"; it has {', '.join(names)}" if names else ""
        return InvalidInput(f"{self.address.text} has no {name!r}, which {option} names{has}.")

    def own_ids(self) -> None:
        """Raises InvalidInput for --id-column where the engine has ids of its own."""
        if self.columns.id != USUAL.id:
            raise InvalidInput(f"{self.address.text} has ids of its own; --id-column is for tables.")

    def vectors(
        self,
        plain: Mapping[str, int],
        others: Mapping[str, str],
        multi: Mapping[str, int] | None = None,
        sparse: Sequence[str] = (),
    ) -> Chosen:
        """What is read of the vectors that are there: what --embedding-column, --multi-column and --sparse-column name, or the
        only ones. `plain` are one dense vector a row, `multi` many; `others` are of a kind that no collection holds. Raises
        InvalidInput, which names what would be lost and wasn't left out."""
        many, wanted, text = multi or {}, self.columns.embedding, self.address.text
        self.unused.difference_update(plain, others, many, sparse)
        if wanted in others:
            raise InvalidInput(f"{text}: {wanted!r} is {others[wanted]}. {_ONE_EACH}{_or_else(plain)}")
        if wanted in many:
            raise InvalidInput(f"{text}: {wanted!r} is several vectors a row. Name it with --multi-column.")
        dense = {name: size for name, size in plain.items() if name not in self.columns.leave_out}
        named = self._named(self.columns.multi, USUAL.MULTI, [*many], "--multi-column")
        left = [name for name in many if name not in self.columns.leave_out]
        weighted = self._named(self.columns.sparse, USUAL.SPARSE, sparse, "--sparse-column")
        kept = [name for name in sparse if name not in self.columns.leave_out]
        if weighted is None and len(kept) == 1 and self.columns.sparse is not None:
            (weighted,) = kept
        if wanted in dense and named is None:
            found = Chosen(wanted, dense[wanted], sparse=weighted)
        elif wanted != USUAL.embedding:
            says = f"no vectors {wanted!r}" if wanted not in dense else f"both {wanted!r} and {named!r}"
            raise InvalidInput(f"{text} has {says}, which --embedding-column names.{_or_else(plain)}")
        elif named is not None or (not dense and len(left) == 1 and self.columns.multi is not None):
            of = left[0] if named is None else named
            found = Chosen(of, many[of], True, weighted)
        elif len(dense) == 1:
            found = Chosen(*next(iter(dense.items())), sparse=weighted)
        elif not dense and not left:
            strange = ", ".join(f"{one!r} is {kind}" for one, kind in others.items())
            raise InvalidInput(
                f"{text} has no vectors that can be read{': ' + strange if strange else ''}. {_ONE_EACH}"
            )
        else:
            raise InvalidInput(
                f"{text} has several vectors a row: {_list([*dense, *left])}. {_ONE_EACH}Name one with --embedding-column or "
                "--multi-column, and the others with --leave-out; or import each into a collection of its own."
            )
        taken = (found.name, found.sparse, *self.columns.leave_out)
        lost = [one for one in (*dense, *left, *kept, *others) if one not in taken]
        if lost:
            raise InvalidInput(
                f"{text}: {_list(lost)} would be lost. {_ONE_EACH}Leave them out with "
                f"{' '.join(f'--leave-out {one}' for one in lost)}."
            )
        self.chosen_vectors = found
        self._kinds = {**{name: f"vector, {size}" for name, size in plain.items()},
                       **{name: f"vectors, {size} each" for name, size in many.items()},
                       **dict.fromkeys(sparse, "sparse vector"), **others}  # fmt: skip
        return found

    def _named(self, wanted: str | None, usual: str, there: Sequence[str], option: str) -> str | None:
        """What an option names, where that is there; None where it names nothing. Raises InvalidInput."""
        if wanted is None or (wanted == usual and wanted not in there):
            return None
        if wanted not in there:
            raise self.absent(wanted, option, there)
        return None if wanted in self.columns.leave_out else wanted

    def vector(self, plain: Mapping[str, int], others: Mapping[str, str]) -> tuple[str, int]:
        """As `vectors`, of an engine that has dense ones alone: the name, and how many numbers."""
        found = self.vectors(plain, others)
        return found.name, found.numbers

    def metric(
        self, said: str, known: Mapping[str, MetricName], engine: str, asked: MetricName | None
    ) -> MetricName | None:
        """As `metric_of`; of many vectors a row the inner product, which MaxSim of cosines is of vectors of unit length. Raises
        InvalidInput."""
        found = metric_of(said, known, engine, asked)
        if not self.chosen_vectors.many:
            return found
        self.unit = found == "cosine"
        if found not in ("cosine", "ip") and asked != "ip":
            raise InvalidInput(
                f"{engine} compares the vectors of {self.chosen_vectors.name!r} by {said!r}, and MaxSim is of inner products "
                "here. --metric ip imports them under these; other rows may rank first."
            )
        return "ip"

    def vector_columns(self) -> list[Column]:
        """The rows of a schema for the vectors that are there."""
        chosen = self.chosen_vectors
        becomes = {chosen.name: "matrix" if chosen.many else "vector"}
        if chosen.sparse is not None:
            becomes[chosen.sparse] = "sparse vector"
        return [Column(name, kind, becomes.get(name, "left out")) for name, kind in self._kinds.items()]

    def chosen(self, choice: str, there: Sequence[str], kind: str) -> str:
        """What `?choice=` names, or the only one that is there. Raises InvalidInput."""
        wanted = self.address.choices.get(choice)
        if wanted is None and len(there) == 1:
            return there[0]
        if wanted is None or wanted not in there:
            listed = ", ".join(map(repr, sorted(there))) or "none"
            says = f"has no {kind} {wanted!r}" if wanted else f"has {len(there)} {kind}s"
            raise InvalidInput(f"{self.address.text} {says}: {listed}. Name one: …?{choice}=NAME")
        return wanted


_ONE_EACH = "A collection holds one dense vector a row, or one matrix, and one sparse vector. "


def _or_else(plain: Mapping[str, int]) -> str:
    return f" It has {_list(plain)}." if plain else ""


def _list(names: Iterator[str] | Mapping[str, Any] | Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def metric_of(
    said: str, known: Mapping[str, MetricName], engine: str, asked: MetricName | None
) -> MetricName | None:
    """The metric that ranks exactly as the engine's `said` does; where there is none, the one that was asked for stands
    in. Raises InvalidInput with the remedy."""
    found = known.get(said.lower())
    if found is None and asked is None:
        raise InvalidInput(
            f"{engine} compares these vectors by {said!r}, which ranks as none of {', '.join(METRIC_NAMES)} does. "
            "--metric NAME imports them under another, whose top tens differ."
        )
    return found


@contextlib.contextmanager
def troubles(address: Address, *kinds: type[BaseException]) -> Iterator[None]:
    """What an engine's client raises, of these kinds, is an error of ciphervec's that names the source."""
    try:
        yield
    except (CiphervecError, FileNotFoundError):
        raise
    except kinds as error:
        _raise(address, error)


def _raise(address: Address, error: BaseException) -> NoReturn:
    says = f"{address.text} was not read: {type(error).__name__}: {error!s:.500}"
    raise (ServerError(says) if address.host else InvalidInput(says)) from error


def in_parts(rows: Questions, size: int) -> Iterator[Any]:
    """Rows a few at a time."""
    for start in itertools.count(0, size):
        if start >= len(rows):
            return
        yield rows[start : start + size]


def _at_unit_length(rows: Any) -> Any:
    """The vectors of one row, where they are numbers and none is zero; else as they are, to be refused by name."""
    try:
        vectors = np.asarray(rows, np.float64)
    except (ValueError, TypeError):
        return rows
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if vectors.ndim != 2 or not lengths.all():
        return rows
    return (vectors / lengths).astype(np.float32)


def matrix(found: Sequence[Any]) -> Any:
    """Vectors as (n, d) of float32, where all are numbers and of one length; else as they are, to be refused by name."""
    try:
        rows = np.asarray(found)
    except ValueError:
        return list(found)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        return list(found)
    with np.errstate(over="ignore"):  # what is too large is refused, as infinite
        return rows.astype(np.float32, copy=False)
