"""A memory: texts in a collection, found again by meaning. Runs on the key owner's side.

An id has the times at which its text was remembered and at which it expires. Ids are sealed, and a client has all of them:
what is expired is known without reading a row, which a server would see.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
import warnings
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from .collections.audience import Audience, check_audience
from .collections.client import Client
from .collections.collection import Collection
from .collections.embedding.function import Embedder, EmbeddingFunction
from .collections.results import Fetch, check_fetch
from .errors import CollectionNotFound, InvalidInput, UnknownId
from .ingest import arrays
from .ingest.arrays import Id
from .ingest.remarks import remark

MOST_BYTES = 16_384
"""Of a text or a question, in UTF-8."""
MOST_RECALLED = 50
"""Memories that one call returns, forgets or shares."""
_LONGEST = timedelta(days=36_500)
_AUTHOR = "by"
_FOREVER = 0
_LAST = int(datetime(9999, 1, 1, tzinfo=timezone.utc).timestamp() * 1000)
_ID = re.compile(r"([0-9a-f]{12})-([0-9a-f]{12})-[0-9a-f]{16}")
_RECORDING = threading.Lock()


class Remembered(NamedTuple):
    """A memory."""

    id: Id
    text: str
    remembered: datetime | None
    """None where another program wrote the row."""
    expires: datetime | None
    """None: never."""
    by: str | None
    """Who remembered it, as it said itself."""


class Memory:
    """Texts in a collection, found again by what they say: in memory, in a folder or on a server.

        memory = Memory.open(ciphervec.PersistentClient("db", keys), "memories")
        memory.remember("Ann takes her tea without milk.")
        memory.recall("what does Ann drink?")

    Whoever holds the collection's key has the same memory. Safe to share between threads.
    """

    def __init__(
        self,
        collection: Collection,
        *,
        by: str | None = None,
        audience: Audience = "owner",
        fetch: Fetch | None = "collection",
    ) -> None:
        """`collection` has an embedding function. `by` is written beside what is remembered here. `audience` as of
        `Collection.query`. `fetch` is what a server may see of the texts that are read: unless told, that some are, since
        each is fetched once, hit or not; see `HttpClient`."""
        self._collection = collection
        self._by = by
        self._audience = check_audience(audience) or "owner"
        check_fetch(fetch)
        self._fetch = fetch

    @classmethod
    def open(
        cls,
        client: Client,
        name: str,
        *,
        embedding_function: EmbeddingFunction | None = None,
        by: str | None = None,
        audience: Audience = "owner",
        fetch: Fetch | None = "collection",
    ) -> Memory:
        """The memory in the collection of this name, which is made if it isn't there, for texts that
        `embedding_function` embeds: "default" unless given. Its model is loaded here. The rest as of `Memory`. Raises
        what `get_collection` does."""
        try:
            collection = client.get_collection(name, embedding_function)
        except CollectionNotFound:
            function = embedding_function or "default"
            size = Embedder(function).documents(["a text"], None, "cosine").shape[1]
            collection = client.get_or_create_collection(name, size, embedding_function=function)
        collection._asked(None, "a question")
        return cls(collection, by=by, audience=audience, fetch=fetch)

    @property
    def collection(self) -> Collection:
        """Where texts are kept."""
        return self._collection

    def remember(self, text: str, expires: datetime | timedelta | None = None) -> Id:
        """Store a text, until `expires` if that is given: a time, or how long from now. Returns its id. Raises InvalidInput
        for one that is empty, longer than `MOST_BYTES`, or expired already."""
        name = _new_id(expires)
        self._collection.add(
            [name],
            documents=[_text(text, "a memory")],
            metadatas=[{} if self._by is None else {_AUTHOR: self._by}],
        )
        return name

    def recall(self, question: str, count: int = 5) -> list[Remembered]:
        """The memories nearest to a question, nearest first; none that is expired, and none without a text."""
        asked, wanted = _text(question, "a question"), _count(count)
        most = wanted
        while True:
            found = self._collection.query(
                query_texts=asked, n_results=most, include=[], audience=self._audience
            )["ids"][0]
            alive = [one for one in found if not _expired(one)]
            if len(alive) >= wanted or len(found) < most:
                return self._read(alive[:wanted])
            most *= 4

    def get(self, ids: Id | Iterable[Id]) -> list[Remembered]:
        """The memories with these ids, those that are here and not expired, in the order asked."""
        return self._read(self._typed(ids))

    def latest(self, count: int = 20, offset: int = 0) -> list[Remembered]:
        """Memories by time, the newest first, without the first `offset`; rows of other programs come last."""
        start = arrays.count(offset, "offset", 0)
        alive = [one for one in self._ids() if not _expired(one)]
        alive.sort(key=lambda one: _times(one)[0], reverse=True)
        return self._read(alive[start : start + _count(count)])

    def forget(self, ids: Id | Iterable[Id], *, shred: bool = True) -> bool:
        """Delete memories, all of them or none, and `shred` them. Nobody recalls them from here on. Returns whether their
        sealed bytes are gone too. Raises UnknownId."""
        names = self._typed(ids)
        if not names:
            raise InvalidInput("name at least one memory to forget.")
        self._collection.delete(names)
        return shred and self.shred()

    def shred(self) -> bool:
        """Have the store remove the sealed bytes of what was forgotten, which seals again the segments that they are in:
        up to 65,536 rows for one. Returns whether it did; a server does for a token with the permission admin. Snapshots keep
        theirs."""
        with _RECORDING, warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            self._collection.optimize()
        said = [str(note.message) for note in notes]
        for text in said:
            remark(text)
        return not any(text.startswith("cannot purge") for text in said)

    def sweep(self) -> int:
        """Delete what is expired, and shred that and what was forgotten and not shredded yet; returns how many expired."""
        gone = [one for one in self._ids() if _expired(one)]
        if gone:
            self._collection.delete(gone, missing_ok=True)
        if self._collection.info()["deleted"]:
            self.shred()
        return len(gone)

    def share(self, ids: Id | Iterable[Id], other: Memory) -> list[Id]:
        """Copy memories into another memory, under the same ids and with the same expiry; once is as good as twice. Raises
        UnknownId, and then copies none."""
        names = self._typed(ids)
        found = self._read(names)
        if len(found) < len(names) or not names:
            there = {one.id for one in found}
            missing = [one for one in names if one not in there]
            raise UnknownId(
                f"there is no memory {str(missing[0])[:100]!r}; nothing was shared."
                if missing
                else "name one."
            )
        other._collection.upsert(
            names,
            documents=[one.text for one in found],
            metadatas=[{} if one.by is None else {_AUTHOR: one.by} for one in found],
        )
        return names

    def _ids(self) -> list[Id]:
        """All that there are by now, which reads no record."""
        return self._collection.get(include=[])["ids"]

    def _typed(self, ids: Id | Iterable[Id]) -> list[Id]:
        """Ids as they are here: of other programs' rows some are integers, which a text can name."""
        given = list(dict.fromkeys([ids] if isinstance(ids, str | int) else ids))
        if len(given) > MOST_RECALLED:
            raise InvalidInput(f"a call takes {MOST_RECALLED} ids at most, got {len(given):,}.")
        if all(isinstance(one, str) and _ID.fullmatch(one) for one in given):
            return given
        there = set(self._ids())
        numbers = {str(one): one for one in there if isinstance(one, int)}
        return [one if one in there else numbers.get(str(one), one) for one in given]

    def _read(self, ids: Sequence[Id]) -> list[Remembered]:
        alive = [one for one in ids if not _expired(one)]
        if not alive:
            return []
        found = self._collection.get(alive, include=["metadatas", "documents"], fetch=self._fetch)
        read = []
        for name, text, beside in zip(
            found["ids"], found["documents"] or (), found["metadatas"] or (), strict=True
        ):
            if text is not None:
                made, ends = _times(name)
                by = (beside or {}).get(_AUTHOR)
                read.append(
                    Remembered(name, text, _moment(made), _moment(ends), by if isinstance(by, str) else None)
                )
        return read


def _now() -> int:
    return time.time_ns() // 1_000_000


def _new_id(expires: datetime | timedelta | None) -> str:
    now, ends = _now(), _FOREVER
    if expires is not None:
        if not isinstance(expires, datetime | timedelta):
            raise InvalidInput(f"expires is a datetime or a timedelta, got {type(expires).__name__}.")
        left = expires if isinstance(expires, timedelta) else expires - datetime.now(expires.tzinfo)
        if not timedelta() < left <= _LONGEST:
            raise InvalidInput(
                f"a memory expires after now and within {_LONGEST.days:,} days; leave it out for one that stays."
            )
        ends = now + max(1, round(left.total_seconds() * 1000))
    return f"{now:012x}-{ends:012x}-{secrets.token_hex(8)}"


def _times(name: Id) -> tuple[int, int]:
    """When it was remembered and when it expires, in milliseconds; 0 where that is not known, or never."""
    found = _ID.fullmatch(name) if isinstance(name, str) else None
    return (0, _FOREVER) if found is None else (int(found[1], 16), int(found[2], 16))


def _expired(name: Id) -> bool:
    ends = _times(name)[1]
    return ends != _FOREVER and ends <= _now()


def _moment(milliseconds: int) -> datetime | None:
    if not 0 < milliseconds < _LAST:  # whoever has the key can write any id
        return None
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def _count(value: int) -> int:
    wanted = arrays.count(value, "count")
    if wanted > MOST_RECALLED:
        raise InvalidInput(f"count is {MOST_RECALLED} at most, got {wanted:,}.")
    return wanted


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{what} is a text that is not empty.")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} is Unicode, and this has half of a surrogate pair.") from None
    if size > MOST_BYTES:
        raise InvalidInput(
            f"{what} is {MOST_BYTES:,} bytes of UTF-8 at most, got {size:,}. Remember a summary, or several memories."
        )
    return value


__all__ = ["MOST_BYTES", "MOST_RECALLED", "Memory", "Remembered"]
