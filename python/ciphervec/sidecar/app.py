"""Web application of the sidecar, for the key owner: Chroma's HTTP API, version 2. Who sends a request is checked before a byte
of it is read."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

import ciphervec._native as _native

from ..collections.client import Client
from ..collections.keys import KeyRing, Keys
from ..errors import CiphervecError
from . import configuration, message, naming, problem
from .access import Access
from .catalog import Catalog, Entry
from .problem import Problem
from .room import PERMISSIONS, Rooms, sees
from .rows import Choices, Rows

VERSION = "1.0.0"
"""What Chroma's own server of this API says."""
MAX_BODY = 1 << 30
"""Bytes of a request unless said otherwise."""
Arguments = dict[str, Any]
"""Path parameters; below "query" query parameters, below "body" the body's fields and below "bytes" its length; below
"identity" and "turn" who asks, and within which limits."""
_ROOT = "/api/v2"
_TENANT = _ROOT + "/tenants/{tenant}"
_DATABASE = _TENANT + "/databases/{database}"
_COLLECTION = _DATABASE + "/collections/{collection}"
_log = logging.getLogger("ciphervec.sidecar")


@dataclass(frozen=True)
class Needs:
    """What an identity needs for a route: one of `permissions`, nothing where they are None; `everywhere`: in every
    tenant; `id`: the parameter that is a collection's id."""

    permissions: tuple[str, ...] | None = None
    everywhere: bool = False
    id: str | None = None


ANYBODY = Needs()
LOOKING = Needs(("read", "query"))
MAKING = Needs(("admin",))


class Service:
    """What the routes share."""

    def __init__(
        self,
        client: Client,
        choices: Choices,
        *,
        allow_reset: bool,
        tenant_keys: KeyRing | None = None,
        under: Callable[[Keys], Client] | None = None,
    ) -> None:
        allow_open = choices.mode == "open"
        self.catalog = Catalog(client, allow_open=allow_open, tenant_keys=tenant_keys, under=under)
        self.rows = Rows(self.catalog, choices)
        self._rooms = Rooms(self.catalog)
        self._allow_reset = allow_reset

    def permit(self, identity: _native.Subject | None, needs: Needs, given: Arguments) -> None:
        """Raise Problem where an identity may not do that: what it may not see looks as if it were not there."""
        if identity is None or needs.permissions is None:
            return
        if needs.everywhere:
            if not identity.is_operator:
                raise Problem(403, "Forbidden: this takes the permission admin on every tenant.")
            return
        body = given["body"]
        tenant = str(given.get("tenant", body.get("name", "")))
        database = given.get("database", body.get("name") if "tenant" in given else None)
        may = [identity.allows(one, tenant, database) for one in needs.permissions]
        seen = sees(identity, tenant, database)
        if not seen:
            raise Problem(404, f"Tenant [{tenant}] not found")
        if not any(may):
            raise Problem(403, f"Forbidden: this takes the permission {needs.permissions[0]}.")
        if needs.id is not None:
            # An id alone names a collection of any tenant.
            id = naming.identity(given[needs.id])
            entry = self.catalog.entry(id, fresh=needs.id == "id")
            if (entry.tenant, entry.database) != (tenant, database):
                raise problem.no_collection(id)

    def heartbeat(self, _: Arguments) -> Any:
        """The time, in nanoseconds."""
        return {"nanosecond heartbeat": time.time_ns()}

    def healthcheck(self, _: Arguments) -> Any:
        """Whether what is behind the sidecar answers."""
        self.catalog.fresh()
        return {"is_executor_ready": True, "is_log_client_ready": True}

    def checks(self, _: Arguments) -> Any:
        """What clients ask before they send."""
        return {"max_batch_size": message.MAX_BATCH, "supports_base64_encoding": True}

    def identity(self, given: Arguments) -> Any:
        """Everybody is the same user, but for whom an identity provider names."""
        identity = given["identity"]
        user = "" if identity is None else identity.subject
        return {"user_id": user, "tenant": naming.TENANT, "databases": [naming.DATABASE]}

    def reset(self, _: Arguments) -> Any:
        """Delete everything, where that is allowed."""
        if not self._allow_reset:
            raise Problem(
                403, "Resetting is not allowed by this configuration: start the sidecar with --allow-reset"
            )
        self.catalog.reset()
        return True

    def create_tenant(self, given: Arguments) -> Any:
        name = naming.tenant(_needed(given["body"], "name"))
        with self._room(given, name, None):
            self.catalog.add_tenant(name)
        return {}

    def tenant(self, given: Arguments) -> Any:
        if not self.catalog.tenants(given["tenant"]):
            raise Problem(404, f"Tenant [{given['tenant']}] not found")
        return {"name": given["tenant"], "resource_name": None}

    def create_database(self, given: Arguments) -> Any:
        name = naming.proper(_needed(given["body"], "name"))
        with self._room(given, given["tenant"], name):
            self.catalog.add_database(given["tenant"], name)
        return {}

    def databases(self, given: Arguments) -> Any:
        found = self.catalog.databases(given["tenant"])
        return _page([{"id": id, "name": n, "tenant": given["tenant"]} for n, id in found.items()], given)

    def database(self, given: Arguments) -> Any:
        id = self.catalog.database(given["tenant"], given["database"])
        return {"id": id, "name": given["database"], "tenant": given["tenant"]}

    def drop_database(self, given: Arguments) -> Any:
        self.catalog.drop_database(given["tenant"], given["database"])
        return {}

    def collections(self, given: Arguments) -> Any:
        found = self.catalog.collections(given["tenant"], given["database"])
        return [entry.told() for entry in _page(found, given)]

    def count_collections(self, given: Arguments) -> Any:
        return len(self.catalog.collections(given["tenant"], given["database"]))

    def create_collection(self, given: Arguments) -> Any:
        """Make one, or take what is there if that is asked for."""
        body = given["body"]
        name = naming.proper(_needed(body, "name"))
        metadata = naming.metadata(body.get("metadata"))
        schema = configuration.describe(metadata, body.get("configuration"), body.get("schema"))
        entry = Entry(given["tenant"], given["database"], name, metadata=metadata, schema=schema)
        take = body.get("get_or_create") is True
        if take and given["turn"].needs_room:  # what is there takes none
            for known in self.catalog.collections(entry.tenant, entry.database):
                if known.name == name:
                    return known.told()
        with self._room(given, entry.tenant, entry.database):
            return self.catalog.create(entry, take=take).told()

    def collection(self, given: Arguments) -> Any:
        return self.catalog.named(given["tenant"], given["database"], given["collection"]).told()

    def collection_by_id(self, given: Arguments) -> Any:
        return self.catalog.entry(naming.identity(given["id"]), fresh=True).told()

    def modify_collection(self, given: Arguments) -> Any:
        """Another name, other metadata or parameters."""
        body = given["body"]
        entry = self.catalog.entry(naming.identity(given["collection"]), fresh=True)
        fields: dict[str, Any] = {}
        if body.get("new_name") is not None:
            fields["name"] = naming.proper(body["new_name"])
        if body.get("new_metadata") is not None:
            fields["metadata"] = naming.metadata(body["new_metadata"])
        if body.get("new_configuration") is not None:
            fields["schema"] = configuration.changed(entry.schema, body["new_configuration"])
        if fields:
            with self._room(given, entry.tenant, entry.database):
                self.catalog.change(entry, **fields)
        return {}

    def drop_collection(self, given: Arguments) -> Any:
        entry = self.catalog.named(given["tenant"], given["database"], given["collection"])
        self.catalog.drop(entry)
        return {}

    def add(self, given: Arguments) -> Any:
        with self._rows_room(given):
            self.rows.add(naming.identity(given["collection"]), given["body"])
        return {}

    def _rows_room(self, given: Arguments) -> AbstractContextManager[None]:
        """While rows are put in: there is room for them. Raises OverLimit."""
        rows = len(message.ids(given["body"], needed=True) or ())
        entry = self.catalog.entry(naming.identity(given["collection"]))
        return self._room(given, entry.tenant, entry.database, rows)

    def _room(
        self, given: Arguments, tenant: str, database: str | None, rows: int = 0
    ) -> AbstractContextManager[None]:
        """While anything is written there: there is room for it. Raises OverLimit."""
        adds = (given["bytes"], rows)
        return self._rooms.taken(given["turn"], given["identity"], tenant, database, adds)

    def update(self, given: Arguments) -> Any:
        with self._rows_room(given):
            self.rows.update(naming.identity(given["collection"]), given["body"])
        return {}

    def upsert(self, given: Arguments) -> Any:
        with self._rows_room(given):
            self.rows.upsert(naming.identity(given["collection"]), given["body"])
        return {}

    def get(self, given: Arguments) -> Any:
        return self.rows.get(naming.identity(given["collection"]), given["body"])

    def query(self, given: Arguments) -> Any:
        return self.rows.query(naming.identity(given["collection"]), given["body"], given["turn"].ask)

    def search(self, given: Arguments) -> Any:
        return self.rows.search(naming.identity(given["collection"]), given["body"], given["turn"].ask)

    def delete(self, given: Arguments) -> Any:
        return {"deleted": self.rows.delete(naming.identity(given["collection"]), given["body"])}

    def count(self, given: Arguments) -> Any:
        return self.rows.count(naming.identity(given["collection"]))

    def indexing(self, given: Arguments) -> Any:
        """There is no index to wait for."""
        count = self.rows.count(naming.identity(given["collection"]))
        return {
            "num_indexed_ops": count,
            "num_unindexed_ops": 0,
            "total_ops": count,
            "op_indexing_progress": 1.0,
        }

    def gone(self, _: Arguments) -> Any:
        """What clients of before Chroma 0.6 ask for."""
        raise Problem(410, "The v1 API is deprecated. Please use /v2 apis")

    def unsupported(self, given: Arguments) -> Any:
        """What Chroma itself does in its cloud alone."""
        raise Problem(501, "forks and attached functions are unsupported for local chroma")


def application(
    client: Client,
    access: Access,
    choices: Choices | None = None,
    *,
    allow_reset: bool = False,
    origins: tuple[str, ...] = (),
    max_body: int = MAX_BODY,
    tenant_keys: KeyRing | None = None,
    under: Callable[[Keys], Client] | None = None,
) -> Starlette:
    """The ASGI application, for `serve` or any other server of such. Its `state.catalog` can be opened ahead of
    the first request. With `tenant_keys` each new tenant has a key, and a client that `under` makes of it."""
    service = Service(
        client,
        Choices() if choices is None else choices,
        allow_reset=allow_reset,
        tenant_keys=tenant_keys,
        under=under,
    )

    def route(
        method: str,
        path: str,
        function: Callable[[Arguments], Any],
        status: int = 200,
        *,
        needs: Needs = ANYBODY,
    ) -> Route:
        def answered(given: Arguments, body: bytes) -> Response:
            """Read the body, do what is asked, write the answer: all of it may take long."""
            given["bytes"] = len(body)
            if body:
                given["body"] = message.read(body)
            service.permit(given["identity"], needs, given)
            return Response(message.written(function(given)), status, media_type="application/json")

        async def endpoint(request: Request) -> Response:
            try:
                access.check(request.method, request.headers)
                sender = await run_in_threadpool(access.who, request.headers)
                with access.turn(sender) as turn:
                    query = dict(request.query_params)
                    given: Arguments = {**request.path_params, "query": query, "body": {}}
                    given |= {"identity": sender.identity, "turn": turn}
                    body = await _body(request, max_body) if method in ("POST", "PUT") else b""
                    return await run_in_threadpool(answered, given, body)
            except (Problem, CiphervecError) as error:
                return _failed(error)
            except ClientDisconnect:
                return Response(status_code=400)
            except Exception as error:
                _log.exception("a request failed")
                return _failed(error)

        return Route(path, endpoint, methods=[method])

    def rows(*permissions: str) -> Needs:
        return Needs(permissions, id="collection")

    routes = [
        route("GET", "/api/v1/{path:path}", service.gone),
        route("POST", "/api/v1/{path:path}", service.gone),
        route("GET", _ROOT, service.heartbeat),
        route("GET", _ROOT + "/heartbeat", service.heartbeat),
        route("GET", _ROOT + "/healthcheck", service.healthcheck),
        route("GET", _ROOT + "/version", lambda _: VERSION),
        route("GET", _ROOT + "/pre-flight-checks", service.checks),
        route("GET", _ROOT + "/auth/identity", service.identity),
        route("POST", _ROOT + "/reset", service.reset, needs=Needs(("admin",), everywhere=True)),
        route("POST", _ROOT + "/tenants", service.create_tenant, needs=MAKING),
        route("GET", _TENANT, service.tenant, needs=Needs(PERMISSIONS)),
        route("POST", _TENANT + "/databases", service.create_database, needs=MAKING),
        route("GET", _TENANT + "/databases", service.databases, needs=LOOKING),
        route("GET", _DATABASE, service.database, needs=Needs(PERMISSIONS)),
        route("DELETE", _DATABASE, service.drop_database, needs=MAKING),
        route("GET", _DATABASE + "/collections_count", service.count_collections, needs=LOOKING),
        route("GET", _DATABASE + "/collections", service.collections, needs=LOOKING),
        route("POST", _DATABASE + "/collections", service.create_collection, needs=MAKING),
        route(
            "GET",
            _DATABASE + "/collections/by-id/{id}",
            service.collection_by_id,
            needs=Needs(("read", "query"), id="id"),
        ),
        route("GET", _COLLECTION, service.collection, needs=Needs(PERMISSIONS)),
        route("PUT", _COLLECTION, service.modify_collection, needs=rows("admin")),
        route("DELETE", _COLLECTION, service.drop_collection, needs=MAKING),
        route("POST", _COLLECTION + "/add", service.add, 201, needs=rows("append", "write")),
        route("POST", _COLLECTION + "/update", service.update, needs=rows("write")),
        route("POST", _COLLECTION + "/upsert", service.upsert, needs=rows("write")),
        route("POST", _COLLECTION + "/get", service.get, needs=rows("read")),
        route("POST", _COLLECTION + "/query", service.query, needs=rows("query")),
        route("POST", _COLLECTION + "/delete", service.delete, needs=rows("write")),
        route("GET", _COLLECTION + "/count", service.count, needs=rows("read", "query")),
        route("GET", _COLLECTION + "/indexing_status", service.indexing, needs=rows("read", "query")),
        route("POST", _COLLECTION + "/search", service.search, needs=rows("query")),
        route("POST", _COLLECTION + "/fork", service.unsupported, needs=rows("admin")),
        route("GET", _COLLECTION + "/fork_count", service.unsupported, needs=rows("admin")),
        route("POST", _COLLECTION + "/functions/attach", service.unsupported, needs=rows("admin")),
        route("GET", _COLLECTION + "/functions/{name}", service.unsupported, needs=rows("admin")),
        route(
            "POST",
            _COLLECTION + "/attached_functions/{name}/detach",
            service.unsupported,
            needs=rows("admin"),
        ),
    ]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["*"],
        allow_headers=["*"],
        allow_credentials=False,
    )
    app = Starlette(routes=routes, middleware=[cors] if origins else [])
    app.state.catalog = service.catalog
    return app


def _failed(error: Exception) -> Response:
    shown = problem.of(error)
    headers = {"chroma-trace-id": uuid.uuid4().hex}
    if shown.retry_after is not None:
        headers["Retry-After"] = str(shown.retry_after)
    return Response(message.written(shown.body), shown.status, headers, media_type="application/json")


async def _body(request: Request, most: int) -> bytes:
    """All of it, or not a byte more than allowed."""
    announced = request.headers.get("content-length", "0")
    if not announced.isdigit() or int(announced[:20]) > most:
        raise Problem(413, f"a request has at most {most:,} bytes; send the rows in smaller batches.")
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            raise Problem(413, f"a request has at most {most:,} bytes; send the rows in smaller batches.")
        pieces.append(piece)
    return b"".join(pieces)


def _needed(body: dict[str, Any], name: str) -> Any:
    if name not in body:
        raise Problem(422, f"missing field `{name}`.")
    return body[name]


def _page(found: list[Any], given: Arguments) -> list[Any]:
    query = given["query"]
    try:
        limit, offset = query.get("limit"), int(query.get("offset", 0))
        stop = None if limit is None else offset + int(limit)
    except ValueError:
        raise problem.invalid("limit and offset must be whole numbers.") from None
    if offset < 0 or (stop is not None and stop < offset):
        raise problem.invalid("limit and offset must be 0 or more.")
    return found[offset:stop]
