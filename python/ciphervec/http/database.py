"""Remote database: names of collections and programs enter; their stores on a server leave. Key
owner's side, without the keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..collections.pins import Pin
from ..collections.stores.store import CollectionStore, Progress, check_name
from ..collections.write_batch import WriteBatch
from ..errors import CollectionExists, CollectionNotFound, ServerError, StorageError
from ..ingest.remarks import kept_going
from .cache import BlobCache
from .frame import encode
from .programs import ServedProgram, program_rows
from .session import Session
from .state import State, read_state
from .store import Fetch, HttpStore
from .trust import Lineage, Trust


class HttpDatabase:
    """The collections of one server, as far as the token may see them."""

    def __init__(self, session: Session, folder: Path | None, cache_bytes: int, fetch: Fetch) -> None:
        self._session = session
        self._folder = folder
        self._cache = BlobCache(folder, cache_bytes)
        self._fetch = fetch
        self.on_upload: Progress | None = None
        self.lineage: Callable[[str, bytes], Lineage | None] = lambda name, meta: None
        """Opens the description of a collection; nothing here has the keys."""

    def names(self) -> list[str]:
        return sorted(self.rows())

    def rows(self) -> dict[str, tuple[int, int]]:
        """Rows and bytes of every collection."""
        doing = "cannot list the collections"
        content = self._session.json(self._session.call("GET", "/v1/collections", doing), doing)
        try:
            return {
                check_name(one["name"]): (int(one.get("rows", 0)), int(one.get("bytes", 0)))
                for one in content["collections"]
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ServerError(
                f"{doing}: {self._session.url} answered in a way that is not understood ({error!r}). "
                "Check the versions on both sides."
            ) from None

    def programs(self) -> list[dict[str, Any]]:
        """Name, plan, number of keys and bytes of every program that the token may see."""
        return program_rows(self._session)

    def program(self, name: str) -> ServedProgram:
        """The program of that name, whether or not there is one: nothing is asked yet."""
        return ServedProgram(self._session, name, lambda: self.on_upload)

    def check_new(self, name: str) -> None:
        if self._state(name) is not None:
            raise self._exists(name)

    def create(self, name: str, meta: bytes, attachments: Mapping[str, bytes]) -> CollectionStore:
        doing = f"cannot create {name!r}"
        trust = self._trust(name)
        trust.prepare()
        frame = encode(WriteBatch(meta=meta, attachments=dict(attachments)))
        headers = {"Content-Type": "application/octet-stream"}
        reply = self._session.call("PUT", _path(name), doing, body=frame, headers=headers, ok=(201, 409))
        state: State | None = None
        if reply.status == 201:
            state = read_state(self._session.json(reply, doing), name, self._session.url)
        elif reply.failed:  # the answer to an attempt that succeeded may have got lost
            state = self._state(name)
        # No two descriptions are the same.
        if state is None or state.meta != meta:
            raise self._exists(name)
        try:
            trust.start()
            return self._store(name, trust, state)
        except StorageError as error:
            raise StorageError(
                f"{error} The collection {name!r} was made: get_collection opens it."
            ) from error

    def open(self, name: str, accept: Callable[[bytes], object] | None = None) -> HttpStore:
        return self._open(name, self._trust(name), accept)

    def open_anew(self, name: str) -> HttpStore:
        anew = Trust(None, self._session.url, name)
        anew.lists = self._folder  # what counts no more does not count after a restore either
        return self._open(name, anew)

    def accept(self, name: str, pin: Pin) -> None:
        """Hold the server to this state, and to what it shows beside it next."""
        self._trust(name).accept(pin)

    def seen(self, name: str) -> Pin | None:
        """The latest state seen of a collection."""
        return self._trust(name).state()

    def _open(self, name: str, trust: Trust, accept: Callable[[bytes], object] | None = None) -> HttpStore:
        state = self._state(name)
        if state is None:
            raise CollectionNotFound(
                f"no collection {name!r} on {self._session.url} that this token may see; there are: "
                f"{', '.join(map(repr, self.names()[:10])) or 'none'}. Use create_collection to make it."
            )
        if accept is not None:
            accept(state.meta)
        return self._store(name, trust, state)

    def drop(self, name: str, release: Callable[[], object]) -> None:
        doing = f"cannot delete {name!r}"
        trust = self._trust(name)
        trust.prepare()
        reply = self._session.call("DELETE", _path(name), doing, ok=(204, 404))
        if reply.status == 404 and not reply.failed:
            raise CollectionNotFound(
                f"no collection {name!r} on {self._session.url} that this token may delete; the verb admin is needed."
            )
        release()
        with kept_going(f"the deletion of {name!r}"):
            trust.start()

    def forget(self, name: str) -> None:
        """Drop what was pinned and seen of a collection."""
        self._trust(name).start()

    def _state(self, name: str) -> State | None:
        doing = f"cannot open {name!r}"
        reply = self._session.call("GET", _path(name), doing, ok=(200, 404))
        if reply.status == 404:
            return None
        return read_state(self._session.json(reply, doing), name, self._session.url)

    def _store(self, name: str, trust: Trust, state: State) -> HttpStore:
        lineage = partial(self.lineage, name)
        return HttpStore(
            self._session, name, trust, self._cache, self._fetch, state, lambda: self.on_upload, lineage
        )

    def _trust(self, name: str) -> Trust:
        return Trust(self._folder, self._session.url, name)

    def _exists(self, name: str) -> CollectionExists:
        return CollectionExists(
            f"the collection {name!r} exists already on {self._session.url}. Use get_collection, get_or_create_collection, or "
            "another name."
        )


def _path(name: str) -> str:
    return f"/v1/collections/{check_name(name)}"
