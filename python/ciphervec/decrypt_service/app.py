"""The decrypt service as a Starlette application. Key owner's side.

`POST /v1/match/{collection}` with a bearer token and the bytes of `message.Request`; `GET /healthz`
without. Errors say as little as they can: a token that does not count, and a collection that is not
the principal's, each have one answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import ciphervec._native as _native

from ..errors import CiphervecError, CorruptData
from ..ingest.files import StrPath, at_home
from ..ingest.limits import Accounts, OverLimit, Turn, check_build
from .audit import Audit
from .ledger import Exhausted, Ledger, Principal, Unknown
from .matcher import Held, Matcher, Mismatched, Outcome, Refused
from .message import Request

MAX_BODY = 64 << 20
"""Bytes of a request unless said otherwise: an answer has 3 to 8 a row, more under the Paillier
family."""
BODY_SECONDS = 30.0
"""A sender slower than that is cut off."""
MAX_REQUESTS = 64
"""Requests whose bodies are read or opened at a time; each may hold `MAX_BODY` bytes."""
MAX_REQUESTS_A_PRINCIPAL = 16
OUTCOMES = ("answered", "refused", "mismatched", "suspended", "held", "exhausted", "limited")
"""What the audit log and the counters say came of a request."""

_log = logging.getLogger("ciphervec.decrypt_service")


class Service:
    """What the routes share."""

    def __init__(
        self,
        matchers: Sequence[Matcher],
        ledger: Ledger,
        audit: Audit,
        max_body: int,
        issuers: _native.Issuers | None,
        accounts: Accounts,
    ) -> None:
        self._matchers = {matcher.name: matcher for matcher in matchers}
        self._ledger = ledger
        self._audit = audit
        self._issuers = issuers
        self._accounts = accounts
        self._max_body = max_body
        self._busy: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._disqualified: set[tuple[str, str]] = set()

    async def health(self, _: HttpRequest) -> Response:
        """The process answers."""
        return JSONResponse({"status": "ok"})

    async def metrics(self, _: HttpRequest) -> Response:
        """Counters for Prometheus: outcomes of requests, never of matches."""
        principals = await run_in_threadpool(self._ledger.list)
        suspended = sum(one.suspended is not None for one in principals)
        lines = ["# TYPE ciphervec_decrypt_requests_total counter"]
        counted = ((outcome, self._outcomes[outcome]) for outcome in OUTCOMES)
        lines += [f'ciphervec_decrypt_requests_total{{outcome="{name}"}} {count}' for name, count in counted]
        lines += ["# TYPE ciphervec_decrypt_suspended_principals gauge"]
        lines += [f"ciphervec_decrypt_suspended_principals {suspended}"]
        lines += ["# TYPE ciphervec_decrypt_disqualified_segments gauge"]
        lines += [f"ciphervec_decrypt_disqualified_segments {len(self._disqualified)}"]
        lines += ["# TYPE ciphervec_decrypt_held_segments gauge"]
        held = await run_in_threadpool(self._held)
        lines += [f"ciphervec_decrypt_held_segments {held}"]
        return Response("\n".join([*lines, ""]), media_type="text/plain; version=0.0.4")

    async def match(self, request: HttpRequest) -> Response:
        """One request, from its token to its answer."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        name = request.path_params["collection"]
        try:
            if scheme.lower() != "bearer":
                raise Unknown("no token")
            principal, identity = await run_in_threadpool(self._principal, token.strip(), name)
            with contextlib.ExitStack() as turns:
                turns.enter_context(self._accounts.turn(principal.id, principal.limits))
                turn = self._accounts.turn("", None)
                if identity is not None:  # a subject's limits are for all collections together
                    turn = self._accounts.turn(identity.id, identity.limits)
                turns.enter_context(turn)
                matcher = self._matchers.get(name)
                if matcher is None or principal.collection != name:
                    return _problem(404, "there is no such collection for this token")
                turns.enter_context(self._slot(principal))
                body = await asyncio.wait_for(self._body(request), BODY_SECONDS)
                return await run_in_threadpool(self._answer, principal, turn, matcher, body)
        except Unknown:
            return _problem(401, "the token is not accepted", {"WWW-Authenticate": "Bearer"})
        except _BusyError:
            return _problem(503, "too many requests at once", {"Retry-After": "1"})
        except _TooLargeError:
            return _problem(413, f"a request has at most {self._max_body} bytes")
        except (asyncio.TimeoutError, ClientDisconnect):
            return _problem(408, "the request took too long")
        except Exhausted as error:
            await run_in_threadpool(self._note_free, principal, "exhausted")
            after = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
            return _problem(429, "the budget of queries is used up", after)
        except OverLimit as error:
            await run_in_threadpool(self._note_free, principal, "limited")
            after = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
            return _problem(error.status, str(error), after)
        except Refused:
            return _problem(400, "the request was refused")
        except CiphervecError as error:
            _log.error("a request failed: %s", error)
            return _problem(503, "the service can't answer now")

    def _principal(self, token: str, collection: str) -> tuple[Principal, _native.Subject | None]:
        """Whose token it is, of the ledger or of an identity provider. Raises Unknown, ServerError."""
        identity = None if self._issuers is None else self._issuers.verify(token)
        if identity is None:
            return self._ledger.authenticate(token), None
        return self._ledger.identify(identity.issuer, identity.subject, collection), identity

    def _charge(self, principal: Principal, turn: Turn, queries: int) -> int:
        """Take queries off what the principal has, and its subject today; what the principal has left."""
        turn.ask(queries)
        return self._ledger.charge(principal.id, queries)

    def _answer(self, principal: Principal, turn: Turn, matcher: Matcher, body: bytes) -> Response:
        """Charge first, open then: what fails has cost its queries as well."""
        count = 1
        try:
            try:
                parts = Request.from_bytes(body)
            except CorruptData as error:
                raise Refused(str(error)) from None
            query = matcher.read(parts.query)
            count = query.rows
        except Refused as error:
            self._charge(principal, turn, count)
            self._note(principal.id, matcher.name, count, "refused", error.reason)
            raise
        left = self._charge(principal, turn, count)
        try:
            outcomes, passed_over = matcher.match(query, parts.answer, parts.receipt, parts.claimed)
        except Mismatched as error:
            suspended = self._ledger.fail(principal.id)
            self._note(
                principal.id, matcher.name, count, "suspended" if suspended else "mismatched", error.reason
            )
            raise
        except Held as error:
            self._hold(matcher.name, error.segments)
            self._note(principal.id, matcher.name, count, "held", error.reason)
            raise
        except Refused as error:
            self._note(principal.id, matcher.name, count, "refused", error.reason)
            raise
        self._disqualify(matcher.name, passed_over)
        self._note(principal.id, matcher.name, count, "answered")
        return JSONResponse(_told(principal, outcomes), headers={"Ciphervec-Budget-Left": str(left)})

    def _disqualify(self, collection: str, segments: Sequence[bytes]) -> None:
        """Name a segment that was passed over, once."""
        for segment in segments:
            name = (collection, segment.hex())
            if name not in self._disqualified:
                self._disqualified.add(name)
                self._audit.note(event="disqualified", collection=collection, segment=segment.hex())
                _log.warning(
                    "segment %s of %s fails its check and is passed over; the key owner's discard() removes it",
                    segment.hex(),
                    collection,
                )

    def _hold(self, collection: str, segments: Sequence[bytes]) -> None:
        """Name segments about which the cloud answered something else than their rows give."""
        for segment in segments:
            self._audit.note(event="held", collection=collection, segment=segment.hex())
            _log.error(
                "the cloud's answer about segment %s of %s is none that its rows give: it is in quarantine and passed over; "
                "the key owner's release() lifts that, once its cause was found",
                segment.hex(),
                collection,
            )

    def _held(self) -> int:
        return sum(matcher.held for matcher in self._matchers.values())

    def _note(
        self, principal: str, collection: str, queries: int, outcome: str, reason: str | None = None
    ) -> None:
        self._outcomes[outcome] += 1
        why = {} if reason is None else {"reason": reason}
        self._audit.note(
            event="match", principal=principal, collection=collection, queries=queries, outcome=outcome, **why
        )

    def _note_free(self, principal: Principal, outcome: str) -> None:
        """Of a request that costs its sender nothing, whatever collection it named."""
        self._outcomes[outcome] += 1
        self._audit.note_often(
            event="match", principal=principal.id, collection=principal.collection, queries=0, outcome=outcome
        )

    @contextlib.contextmanager
    def _slot(self, principal: Principal) -> Iterator[None]:
        """Room for one more request, of which no principal takes all."""
        if self._busy.total() >= MAX_REQUESTS or self._busy[principal.id] >= MAX_REQUESTS_A_PRINCIPAL:
            raise _BusyError
        self._busy[principal.id] += 1
        try:
            yield
        finally:
            self._busy[principal.id] -= 1
            self._busy += Counter()  # drops those at zero

    async def _body(self, request: HttpRequest) -> bytes:
        """All of it, or not a byte more than allowed."""
        announced = request.headers.get("content-length", "0")
        if not announced.isascii() or not announced.isdigit() or int(announced[:20]) > self._max_body:
            raise _TooLargeError
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > self._max_body:
                raise _TooLargeError
        return bytes(body)


class _TooLargeError(Exception):
    pass


class _BusyError(Exception):
    pass


def _told(principal: Principal, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What this principal's capabilities let it know."""
    said: dict[str, Any] = {"matched": [one.matched for one in outcomes]}
    if "identify" in principal.may:
        said["ids"] = [one.id for one in outcomes]
    if "scores" in principal.may:
        said["scores"] = [one.score for one in outcomes]
    return said


def _problem(status: int, title: str, headers: dict[str, str] | None = None) -> Response:
    content = {"type": "about:blank", "title": title, "status": status}
    return JSONResponse(content, status, headers, media_type="application/problem+json")


def application(
    matchers: Sequence[Matcher],
    ledger: Ledger,
    audit: Audit | None = None,
    *,
    max_body: int = MAX_BODY,
    metrics: bool = False,
    issuers: StrPath | None = None,
    usage: StrPath | None = None,
) -> Starlette:
    """The ASGI application, for `serve` or any other server of such. `metrics` adds counters at
    /metrics, for anybody who reaches it; `issuers` is a file of identity providers, as that of
    `ciphervec serve --issuers`, whose subjects the ledger may name; `usage` counts queries of theirs
    where a day's are limited. `state.accounts` is to be closed at the end."""
    if issuers is not None:
        check_build("identity providers")
    held = None if issuers is None else _native.Issuers(at_home(issuers))
    accounts = Accounts(usage, forgiving=False)
    service = Service(matchers, ledger, Audit(None) if audit is None else audit, max_body, held, accounts)
    routes = [
        Route("/healthz", service.health, methods=["GET"]),
        Route("/v1/match/{collection}", service.match, methods=["POST"]),
    ]
    if metrics:
        routes.append(Route("/metrics", service.metrics, methods=["GET"]))
    app = Starlette(routes=routes)
    app.state.accounts = accounts
    return app


__all__ = ["MAX_BODY", "application"]
