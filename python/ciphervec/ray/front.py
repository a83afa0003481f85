"""The HTTP interface of a server in front of a pool of scanners, which answers its queries; `ciphervec serve` on the
same place answers all else. Outside the owner's trust, without a key.

The server checks every token and makes every commit. Before a query is scanned the front asks the
server whether its token may query, which state the answer must not be older than, and the token's id.
So clients see one server: what it acknowledged is in the next answer, from whichever scanner. Session
keys go to all scanners, which file them under that id.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import ray
from ray import serve
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ..errors import CiphervecError, CorruptData, InvalidInput, ServerError, WrongKey
from ..http import LocalServer
from ..ingest.files import StrPath
from .cluster import is_loopback
from .pool import PoolAnswer, ScannerPool
from .scanner import OtherQueryKeys, QueryKeysMissing

_QUERY = re.compile(r"/v1/collections/([^/]+)/query(-keys)?")
_COLLECTION = re.compile(r"/v1/collections/([^/]+)")
_SHARED_QUERIES = 3
"""The newest version of queries that scanners answer in shares: clusters are folded by whoever has all of them."""
_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
"""Headers that are about one connection, and not passed on."""
_BODY = {"content-length", "content-type", "content-encoding", "expect"}
_TIMEOUT = httpx.Timeout(600.0, connect=10.0)
MAX_QUERY = 256 << 20
"""Bytes of a query frame at most."""
MAX_KEYS = 1 << 20
"""Bytes of a session's evaluation keys at most, as in the server."""


class _Gate(NamedTuple):
    """What the server says to whom it lets query."""

    version: int
    head: bytes
    token: str | None
    """The id of the token, or ANYONE; None where a server of an older release does not say it."""
    headers: Mapping[str, str]


class Front:
    """The Serve deployment: one replica."""

    def __init__(self, upstream: str, pools: Mapping[str, ScannerPool], ca: str | None) -> None:
        """`pools` by collection; queries to others go to the server as well."""
        self._upstream, self._pools = upstream.rstrip("/"), dict(pools)
        context: ssl.SSLContext | bool = True if ca is None else ssl.create_default_context(cafile=ca)
        self._client = httpx.AsyncClient(
            verify=context,
            timeout=_TIMEOUT,
            trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
        )

    async def __call__(self, request: Request) -> Response:
        """One request of the HTTP interface."""
        found = _QUERY.fullmatch(_path(request))
        pool = self._pools.get(found[1]) if found else None
        try:
            if found is None or pool is None or request.method != ("PUT" if found[2] else "POST"):
                return await self._pass_on(request)
            gate = await self._gate(request, found[1])
            if isinstance(gate, Response):
                return gate
            return await (self._take_keys if found[2] else self._query)(request, pool, gate)
        except httpx.HTTPError:
            return _problem(
                503, "busy", "the server behind this one does not answer", "wait, and send the same again"
            )

    async def _gate(self, request: Request, name: str) -> _Gate | Response:
        """Ask the server whether the sender may query; its refusal where not. Before the body is read, as
        in the server."""
        # As they came, each as often: two tokens are none, to the server.
        headers = [(name, value) for name, value in _kept(request.headers.items()) if name not in _BODY]
        gate = await self._client.get(f"{self._upstream}/v1/collections/{name}/query", headers=headers)
        if gate.status_code != 204:
            return Response(gate.content, gate.status_code, dict(_kept(gate.headers.items())))
        version, head = int(gate.headers["ciphervec-version"]), bytes.fromhex(gate.headers["ciphervec-head"])
        return _Gate(version, head, gate.headers.get("ciphervec-token") or None, gate.headers)

    async def _query(self, request: Request, pool: ScannerPool, gate: _Gate) -> Response:
        """The body, then the scan."""
        query = await _body(request, MAX_QUERY)
        if query is None:
            hint = "ask fewer queries at once"
            return _problem(413, "too-large", f"a query has at most {MAX_QUERY:,} bytes", hint)
        try:
            if not pool.matches(gate.version, gate.head):
                await pool.catch_up(gate.version)
            # Nobody sends keys under no name.
            answer = await pool.ask(query, at_least=gate.version, token=gate.token or "")
        except CiphervecError as error:
            return _refused(error)
        return Response(answer.data, 200, _says(answer, gate.headers))

    async def _take_keys(self, request: Request, pool: ScannerPool, gate: _Gate) -> Response:
        """The evaluation keys of a session, for this token's queries."""
        if gate.token is None:
            # Nobody knows whose they would be: clients go on under the collection's own query key.
            return _problem(404, "not-found", "the server behind this one is too old for query keys", None)
        keys = await _body(request, MAX_KEYS)
        if keys is None:
            detail = f"the evaluation keys of a session have at most {MAX_KEYS:,} bytes"
            return _problem(413, "too-large", detail, None)
        try:
            await pool.bring(keys, at_least=gate.version, token=gate.token)
        except CiphervecError as error:
            return _refused(error)
        return Response(None, 204, _passed(gate.headers))

    async def _pass_on(self, request: Request) -> Response:
        """To the server, bytes as they come, and back."""
        length, coded = request.headers.get("content-length"), request.headers.get("transfer-encoding")
        content = request.stream() if coded or (length or "0") != "0" else None
        target = _path(request) + (f"?{request.url.query}" if request.url.query else "")
        passed = self._client.build_request(
            request.method,
            f"{self._upstream}{target}",
            headers=_kept(request.headers.items()),
            content=content,
        )
        reply = await self._client.send(passed, stream=True)
        headers = dict(_kept(reply.headers.items()))
        if request.method == "HEAD" or reply.status_code in (204, 304):
            await reply.aclose()
            return Response(None, reply.status_code, headers)
        found = _COLLECTION.fullmatch(_path(request))
        if found is not None and found[1] in self._pools and request.method == "GET" and reply.is_success:
            state = json.loads(await reply.aread())
            state["query_version"] = min(state["query_version"], _SHARED_QUERIES)
            headers = {name: value for name, value in headers.items() if name.lower() != "content-length"}
            return Response(json.dumps(state), reply.status_code, headers)
        return StreamingResponse(
            reply.aiter_raw(), reply.status_code, headers, background=BackgroundTask(reply.aclose)
        )


class ServeFront(NamedTuple):
    """A front that runs."""

    url: str
    """What `HttpClient` is given."""
    pools: dict[str, ScannerPool]
    server: LocalServer | None
    """The server behind it, where it was started here."""

    def close(self) -> None:
        """End the front, its scanners, and the server if it was started here."""
        serve.shutdown()
        for pool in self.pools.values():
            pool.close()
        if self.server is not None:
            self.server.stop()

    def __enter__(self) -> ServeFront:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve_front(
    place: StrPath,
    collections: Sequence[str],
    *,
    upstream: str | None = None,
    ca: StrPath | None = None,
    server_arguments: Sequence[str] = (),
    host: str = "127.0.0.1",
    port: int = 8707,
    tls_cert: StrPath | None = None,
    tls_key: StrPath | None = None,
    replicas: int = 1,
    trusted_network: bool = False,
    **pool: Any,
) -> ServeFront:
    """Serve the collections at `place` over HTTP on the Ray cluster that this process is in: their
    queries by scanners, all else by a server. `HttpClient(front.url, …)` works as with a server.

    `upstream` is the URL of a `ciphervec serve` on the same place, with `ca` for its certificate;
    without, one is started by this process, with `server_arguments` (`["--tokens", …]` say), and
    replicas stay on this machine. `pool` are options of `ScannerPool.start`, for every collection.
    Off loopback it needs `tls_cert` and `tls_key`, and a server that asks for tokens. Raises
    InvalidInput, ServerError, and what `ScannerPool.start` does.
    """
    if not collections:
        raise InvalidInput("there is no collection to serve; name at least one.")
    if not is_loopback(host) and (tls_cert is None or tls_key is None):
        raise InvalidInput(
            f"{host} is not this machine alone: give tls_cert and tls_key, or serve 127.0.0.1."
        )
    server = None if upstream is not None else LocalServer(place, server_arguments)
    behind = upstream if server is None else server.url
    pools: dict[str, ScannerPool] = {}
    try:
        if not is_loopback(host):
            _expect_tokens(str(behind), ca)
        for name in collections:
            pools[name] = ScannerPool.start(place, name, trusted_network=trusted_network, **pool)
        options: dict[str, Any] = {"host": host, "port": port}
        if tls_cert is not None:
            options |= {"ssl_certfile": str(tls_cert), "ssl_keyfile": str(tls_key)}
        serve.start(proxy_location="HeadOnly", http_options=options)
        actor: dict[str, Any] = {"num_cpus": 0}
        if server is not None:
            # The server listens on this machine alone.
            actor["resources"] = {f"node:{ray.util.get_node_ip_address()}": 0.001}
        deployment = serve.deployment(
            name="ciphervec", num_replicas=replicas, ray_actor_options=actor, max_ongoing_requests=256
        )(Front)
        application = deployment.bind(str(behind), pools, None if ca is None else str(ca))
        serve.run(application, name="ciphervec", route_prefix="/")
    except BaseException:
        ServeFront("", pools, server).close()
        raise
    scheme = "http" if tls_cert is None else "https"
    return ServeFront(f"{scheme}://{host}:{port}", pools, server)


def _expect_tokens(upstream: str, ca: StrPath | None) -> None:
    context: ssl.SSLContext | bool = True if ca is None else ssl.create_default_context(cafile=str(ca))
    try:
        status = httpx.get(f"{upstream}/v1/collections", verify=context, trust_env=False).status_code
    except httpx.HTTPError as error:
        raise ServerError(f"the server at {upstream} does not answer: {error}.") from error
    if status != 401:
        raise InvalidInput(
            f"the server at {upstream} asks for no token, and a front off loopback would let everybody in. Make one with "
            "`ciphervec token create`, and start the server with it."
        )


def _path(request: Request) -> str:
    """As it came: what is escaped stays so."""
    raw = request.scope.get("raw_path")
    return raw.decode("ascii", "replace").partition("?")[0] if raw else quote(request.url.path)


async def _body(request: Request, most: int) -> bytes | None:
    """All of it; None where it is longer."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _kept(headers: Any) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in _HOP]


def _passed(gate: Mapping[str, str]) -> dict[str, str]:
    """What an answer has of the server's own."""
    return {name: gate[name] for name in ("ciphervec-api", "x-request-id") if name in gate}


def _says(answer: PoolAnswer, gate: Mapping[str, str]) -> dict[str, str]:
    return {
        **_passed(gate),
        "content-type": "application/octet-stream",
        "ciphervec-version": str(answer.version),
        "ciphervec-head": answer.head.hex(),
        "server-timing": f"queue;dur={answer.wait_ms:.3f}, scan;dur={answer.scan_ms:.3f}",
    }


def _refused(error: CiphervecError) -> Response:
    """Under the status and the name that the server has for it."""
    if isinstance(error, QueryKeysMissing):
        hint = "put them to …/query-keys, then send the same query again"
        return _problem(409, "query-keys-missing", str(error), hint)
    if isinstance(error, OtherQueryKeys):
        return _problem(409, "exists", str(error), "begin another session, of a number drawn at random")
    if isinstance(error, (InvalidInput, WrongKey, CorruptData)):
        return _problem(400, "bad-request", str(error), None)
    return _problem(503, "busy", str(error), "wait for Retry-After and send the same again")


def _problem(status: int, kind: str, detail: str, hint: str | None) -> Response:
    content = {
        "type": f"urn:ciphervec:{kind}",
        "title": kind.replace("-", " "),
        "status": status,
        "detail": detail,
    }
    headers = {"ciphervec-api": "1", **({"retry-after": "1"} if status == 503 else {})}
    body = json.dumps(content if hint is None else {**content, "hint": hint})
    return Response(body, status, headers, media_type="application/problem+json")


__all__ = ["Front", "ServeFront", "serve_front"]
