"""The catalogue of tenants, databases and collections, sealed in rows of one collection upstream. Key owner's side.

Whoever holds the collections sees ids that say nothing; names, metadata and configurations are sealed like
documents.
"""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ..collections.client import Client
from ..collections.collection import Collection
from ..collections.keys import KeyRing, Keys
from ..errors import (
    CollectionExists,
    CollectionNotFound,
    CorruptData,
    DuplicateId,
    InvalidInput,
    ServerError,
    WrongKey,
)
from ..http.client import HttpClient
from . import configuration, naming
from .problem import Problem, invalid, no_collection

CATALOG = "chroma-catalog"
PREFIX = "chroma-"
_NONE = "00000000-0000-0000-0000-000000000000"
_AT = [[0.0]]
T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """One collection, as its clients know it."""

    tenant: str
    database: str
    name: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    metadata: dict[str, Any] | None = None
    schema: dict[str, Any] = field(default_factory=dict)
    dimension: int | None = None
    """None until the first vector."""
    made: int = 0
    """Its place in lists."""
    revision: int = 0

    @property
    def row(self) -> str:
        """The id of its row in the catalogue."""
        return json.dumps(["collection", self.tenant, self.database, self.name])

    @property
    def sealed_name(self) -> str:
        """The name of the collection upstream."""
        return PREFIX + self.id

    def told(self) -> dict[str, Any]:
        """As clients read it."""
        return {
            "id": self.id,
            "name": self.name,
            "configuration_json": configuration.told(self.schema),
            "schema": self.schema,
            "metadata": self.metadata,
            "dimension": self.dimension,
            "tenant": self.tenant,
            "database": self.database,
            "log_position": 0,
            "version": 0,
        }

    def to_json(self) -> str:
        """What is sealed of it."""
        shown = {n: getattr(self, n) for n in ("id", "metadata", "schema", "dimension", "made", "revision")}
        return json.dumps(shown)


class Catalog:
    """What there is. Safe for threads; several sidecars of one server may change it."""

    def __init__(
        self,
        client: Client,
        *,
        allow_open: bool = False,
        tenant_keys: KeyRing | None = None,
        under: Callable[[Keys], Client] | None = None,
    ) -> None:
        """`allow_open`: collections were to be made in mode `open`. With `tenant_keys` a tenant that is made gets a
        key, under which its collections are sealed by the client that `under` makes."""
        client._alone = True  # what the catalogue keeps in memory another one must not change
        self._client, self._allow_open = client, allow_open
        self._tenant_keys, self._under = tenant_keys, under
        self._clients: dict[str, Client] = {}
        """Of tenants with a key."""
        self._key_ids: dict[str, str] = {}
        """Of those tenants."""
        self._shared = isinstance(client, HttpClient)
        self._lock = threading.RLock()
        self._rows: Collection | None = None
        self._tenants: dict[str, dict[str, str]] = {}
        """Database names to ids, by tenant."""
        self._entries: dict[str, Entry] = {}
        self._paths: dict[str, list[str]] = {}
        """Rows of the catalogue by the id of the collection: two after a crash while it was renamed."""

    def open(self) -> None:
        """Read it, or begin one. Raises what the store does."""
        with self._lock:
            self._read()

    def fresh(self) -> None:
        """See what other sidecars have changed."""
        with self._lock:
            if self._shared or self._rows is None:
                self._read()

    def tenants(self, name: str) -> bool:
        """Whether there is such a tenant."""
        with self._lock:
            self.fresh()
            return name in self._tenants

    def add_tenant(self, name: str) -> None:
        """With a key of its own, if tenants have such. One whose key was destroyed is made anew: what it had goes. Raises
        Problem where it is there."""
        with self._lock:
            self.fresh()
            ring = self._tenant_keys
            if name in self._tenants:
                if ring is None or name not in self._key_ids or name in ring:
                    raise Problem(409, f"Tenant [{name}] already exists")
                for database in list(self._tenants[name]):
                    self.drop_database(name, database)
                self._delete([_tenant_row(name)])
            self._add(_tenant_row(name), json.dumps(self._new_key(name)), f"Tenant [{name}] already exists")

    def _new_key(self, tenant: str) -> dict[str, str]:
        """What the tenant's row says. A file that is there already may be anybody's, and is not taken."""
        if self._tenant_keys is None:
            return {}
        if tenant in self._tenant_keys:
            raise Problem(
                409, f"there is a key for tenant [{tenant}] in --tenant-keys already: move its file away."
            )
        return {"key": self._tenant_keys.add(tenant).key_id}

    def databases(self, tenant: str) -> dict[str, str]:
        """Names and ids, in the order of making."""
        with self._lock:
            self.fresh()
            return dict(self._tenants.get(tenant, {}))

    def database(self, tenant: str, name: str) -> str:
        """Its id. Raises Problem."""
        found = self.databases(tenant).get(name)
        if found is None:
            raise Problem(404, f"Database [{name}] not found. Are you sure it exists?")
        return found

    def add_database(self, tenant: str, name: str) -> None:
        """Raises Problem where it is there."""
        with self._lock:
            exists = f"Database [{name}] already exists"
            if name in self.databases(tenant):
                raise Problem(409, exists)
            if self._tenant_keys is not None and tenant not in self._tenants:
                self.add_tenant(tenant)  # before there are rows of it under another key
            content = json.dumps({"id": str(uuid.uuid4())})
            self._add(json.dumps(["database", tenant, name]), content, exists)

    def drop_database(self, tenant: str, name: str) -> None:
        """With its collections. Raises Problem."""
        with self._lock:
            self.database(tenant, name)
            for entry in self.collections(tenant, name):
                self.drop(entry)
            self._delete([json.dumps(["database", tenant, name])])

    def collections(self, tenant: str, database: str) -> list[Entry]:
        """Those of one database, in the order of making."""
        with self._lock:
            self.fresh()
            found = [
                one for one in self._entries.values() if (one.tenant, one.database) == (tenant, database)
            ]
            return sorted(found, key=lambda one: (one.made, one.id))

    def named(self, tenant: str, database: str, name: str) -> Entry:
        """Raises Problem."""
        for entry in self.collections(tenant, database):
            if entry.name == name:
                return entry
        raise Problem(404, f"Collection [{name}] does not exist")

    def entry(self, id: str, *, fresh: bool = False) -> Entry:
        """By id. What is known needs no look at the server, unless `fresh`, and waits for nobody who looks.
        Raises Problem."""
        known = self._entries.get(id)
        if known is not None and not fresh:
            return known
        with self._lock:
            self.fresh()
            if id not in self._entries:
                raise no_collection(id)
            return self._entries[id]

    def create(self, entry: Entry, *, take: bool = False) -> Entry:
        """A new collection, or with `take` the one of that name. Raises Problem where the name is taken, or the
        database is not there."""
        if take:
            return again(lambda: self._taken(entry), Problem)
        with self._lock:
            if entry.database not in self.databases(entry.tenant):
                raise invalid(f"Database [{entry.database}] does not exist")
            made = 1 + max((one.made for one in self._entries.values()), default=0)
            entry = replace(entry, made=made)
            self._add(entry.row, entry.to_json(), f"Collection [{entry.name}] already exists")
            return entry

    def _taken(self, entry: Entry) -> Entry:
        with self._lock:
            for known in self.collections(entry.tenant, entry.database):
                if known.name == entry.name:
                    return known
            return self.create(entry)

    def change(self, entry: Entry, **fields: Any) -> Entry:
        """Other metadata, schema, dimension or name. A crash on the way to a new name leaves both rows, of which
        the later counts. Raises Problem where the name is taken."""
        with self._lock:
            later = replace(entry, **fields, revision=entry.revision + 1)
            if later.row != entry.row:
                self._add(later.row, later.to_json(), f"Collection [{later.name}] already exists")
                self._delete([entry.row])
                return later
            if not self._rows_now().merge([later.row], _AT, documents=[later.to_json()], unknown="skip"):
                self._take()
                raise no_collection(entry.id)
            self._entries[entry.id] = later
            return later

    def rows_of(self, entry: Entry) -> Collection | None:
        """The sealed collection; None before its first vector. Raises Problem where another sidecar dropped
        it."""
        if entry.dimension is None:
            entry = self.entry(entry.id, fresh=True)
            if entry.dimension is None:
                return None
        try:
            return self._of(entry.tenant).get_collection(entry.sealed_name, allow_open=self._allow_open)
        except CollectionNotFound:
            with self._lock:
                self._entries.pop(entry.id, None)
            raise no_collection(entry.id) from None

    def stored(self, counts: Callable[[str, str | None], bool]) -> tuple[int, int]:
        """Bytes and rows, deleted ones included, of the tenants and databases that count, by their names: those of their
        collections, and bytes of what is written down of each here. What nobody can open any more, as its key was destroyed,
        takes no room."""
        with self._lock:
            self.fresh()
            entries = [one for one in self._entries.values() if counts(one.tenant, one.database)]
            names: list[tuple[str, ...]] = [(name,) for name in self._tenants if counts(name, None)]
            names += [
                (tenant, name, id)
                for tenant, databases in self._tenants.items()
                for name, id in databases.items()
                if counts(tenant, name)
            ]
        written = [json.dumps(one) for one in names] + [one.row + one.to_json() for one in entries]
        sizes = [(sum(map(len, written)), 0)]
        for entry in entries:
            if entry.dimension is None:  # as of just now, and each look is one at the server
                continue
            with contextlib.suppress(Problem):  # dropped meanwhile, or its key was
                rows = self.rows_of(entry)
                if rows is not None:
                    rows.refresh()
                    known = rows.info()
                    sizes.append((known["bytes_total"], known["count"] + known["deleted"]))
        return sum(size for size, _ in sizes), sum(rows for _, rows in sizes)

    def begin(self, entry: Entry, dimension: int, **choices: Any) -> Collection:
        """The sealed collection of a first vector, whoever was first. Raises Problem for another dimension."""
        client = self._of(entry.tenant)  # a wrapper may take long, and others need not wait
        with self._lock:
            entry = self.entry(entry.id, fresh=True)
            if entry.dimension is None:
                metric = configuration.space(entry.schema)
                try:
                    rows = client.create_collection(entry.sealed_name, dimension, metric, **choices)
                except CollectionExists:  # another sidecar was first, or stopped half-way
                    rows = client.get_collection(entry.sealed_name, allow_open=self._allow_open)
                self.change(entry, dimension=rows.dimension)
                return rows
        found = self.rows_of(entry)
        if found is None:
            raise no_collection(entry.id)
        return found

    def drop(self, entry: Entry) -> None:
        """Delete a collection, its row last, so that a crash leaves nothing that nobody names."""
        with self._lock:
            with contextlib.suppress(CollectionNotFound):
                # Who has it open; removing takes no key.
                client = self._clients.get(entry.tenant, self._client)
                client.delete_collection(entry.sealed_name)
            self._delete(self._paths.get(entry.id, [entry.row]))

    def reset(self) -> None:
        """Delete everything that sidecars made here, the keys of its tenants too."""
        with self._lock:
            self.close()
            for name in self._client.list_collections():
                if name.startswith(PREFIX) and name != CATALOG:
                    self._client.delete_collection(name)
            ring = self._tenant_keys
            for tenant, key_id in self._key_ids.items():
                if ring is not None and tenant in ring and ring.key_id(tenant) == key_id:
                    ring.destroy(tenant, key_id)
            self._delete(list(self._rows_now().get(include=[])["ids"]))

    def close(self) -> None:
        """Close the clients of tenants."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def _of(self, tenant: str) -> Client:
        """The client with the key of a tenant; the sidecar's own of one without. Raises Problem where the key is gone, or
        another one is in its place."""
        with self._lock:
            key_id = self._key_ids.get(tenant)
        if key_id is None:
            return self._client
        ring, under = self._tenant_keys, self._under
        if ring is None or under is None:
            raise Problem(
                403, f"tenant [{tenant}] has a key of its own: start the sidecar with --tenant-keys."
            )
        keys = None
        try:
            if tenant in ring:
                keys = ring[tenant]
        except (CorruptData, InvalidInput, WrongKey) as error:
            raise Problem(403, f"the key of tenant [{tenant}] can't be used: {error}") from error
        if keys is None or keys.key_id != key_id:
            self._close(tenant)
            if keys is None:
                raise Problem(403, f"the key of tenant [{tenant}] was destroyed, or is in another folder.")
            raise Problem(
                403, f"tenant [{tenant}] is under key {key_id}; --tenant-keys has {keys.key_id} for it."
            )
        with self._lock:
            known = self._clients.get(tenant)
            if known is not None and known.keys == keys:
                return known
            self._close(tenant)
            made = self._clients[tenant] = under(keys)
            made._alone = True
            return made

    def _close(self, tenant: str) -> None:
        with self._lock:
            if tenant in self._clients:
                self._clients.pop(tenant).close()

    def _add(self, row: str, content: str, exists: str) -> None:
        try:
            self._rows_now().add([row], _AT, documents=[content])
        except DuplicateId:
            raise Problem(409, exists) from None
        finally:
            self._take()

    def _delete(self, rows: list[Any]) -> None:
        if rows:
            self._rows_now().delete(rows, missing_ok=True)
        self._take()

    def _rows_now(self) -> Collection:
        if self._rows is None:
            self._read()
        if self._rows is None:
            raise ServerError("the catalogue is not open.")
        return self._rows

    def _read(self) -> None:
        if self._rows is None:
            self._rows = self._client.get_or_create_collection(
                CATALOG, 1, "l2", "sealed-index", originals=False
            )
        self._take()

    def _take(self) -> None:
        """Read the rows as they are now."""
        found = self._rows_now().get(include=["documents"])
        tenants: dict[str, dict[str, str]] = {naming.TENANT: {naming.DATABASE: _NONE}}
        key_ids: dict[str, str] = {}
        entries: dict[str, Entry] = {}
        paths: dict[str, list[str]] = {}
        for path, content in _parsed(found["ids"], found["documents"] or []):
            if path[0] == "tenant":
                tenants.setdefault(path[1], {})
                if "key" in content:
                    key_ids[path[1]] = content["key"]
            elif path[0] == "database":
                tenants.setdefault(path[1], {})[path[2]] = content["id"]
            else:
                entry = Entry(path[1], path[2], path[3], **content)
                paths.setdefault(entry.id, []).append(entry.row)
                known = entries.get(entry.id)
                if known is None or known.revision < entry.revision:
                    entries[entry.id] = entry
        self._tenants, self._entries, self._paths, self._key_ids = tenants, entries, paths, key_ids


def _tenant_row(name: str) -> str:
    return json.dumps(["tenant", name])


def _parsed(ids: list[Any], documents: list[str | None]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    for id, document in zip(ids, documents, strict=True):
        try:
            yield json.loads(id), json.loads(document or "")
        except ValueError as error:
            raise CorruptData(
                f"a row of the sidecar's catalogue is not what a sidecar wrote: {error}."
            ) from None


def again(function: Callable[[], T], *kinds: type[Exception], turns: int = 8) -> T:
    """Call once more where another sidecar was in between."""
    for _ in range(turns - 1):
        try:
            return function()
        except kinds:
            continue
    return function()
