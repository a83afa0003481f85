"""Principals, their tokens and their budgets of queries. One SQLite file, at the key owner.

Durable and shared: a budget is charged in a transaction that has reached the disk before anything
is opened, so neither a restart nor a second process gives a query away. Of a token the file holds a
hash.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import ciphervec._native as _native

from ..errors import CiphervecError, InvalidInput
from ..ingest.arrays import count
from ..ingest.files import StrPath, at_home
from ..ingest.ledger_file import LedgerFile
from ..ingest.limits import read
from ..ingest.naming import check_name

CAPABILITIES = ("match", "identify", "scores")
"""Match or no match; the id of what matched; its score as well, which lets who asks recover
templates."""

PREFIX = "cvd1_"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS principals (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, digest BLOB NOT NULL UNIQUE, collection TEXT NOT NULL, may TEXT NOT NULL,
    budget INTEGER NOT NULL, period INTEGER NOT NULL, lifetime INTEGER, created INTEGER NOT NULL, expires INTEGER,
    revoked INTEGER, since INTEGER NOT NULL, used INTEGER NOT NULL, total INTEGER NOT NULL
) STRICT
"""
_FAILURES = """
CREATE TABLE IF NOT EXISTS failures (principal TEXT PRIMARY KEY, count INTEGER NOT NULL, suspended INTEGER) STRICT
"""
_RATES = """
CREATE TABLE IF NOT EXISTS rates (principal TEXT PRIMARY KEY, rate TEXT NOT NULL, burst INTEGER) STRICT
"""
_EVERY = """
SELECT principals.*, COALESCE(failures.count, 0) AS failures, failures.suspended AS suspended, rate, burst
FROM principals LEFT JOIN failures ON failures.principal = principals.id LEFT JOIN rates ON rates.principal = principals.id
"""
_VERSION = 3

MAX_FAILURES = 3
"""Answers that were none to their query, after which a principal is suspended."""


class Unknown(CiphervecError):  # noqa: N818
    """No such principal, or not any more."""


class Exhausted(CiphervecError):  # noqa: N818
    """The budget does not cover the queries. `retry_after` is in seconds; None if it never will."""

    def __init__(self, retry_after: int | None) -> None:
        super().__init__("the budget of queries is used up.")
        self.retry_after = retry_after


@dataclass(frozen=True)
class Principal:
    """Who may ask, about what, how often, and what they are told."""

    id: str
    name: str
    collection: str
    may: tuple[str, ...]
    budget: int
    """Queries in each period."""
    period: int
    """Seconds."""
    lifetime: int | None
    """Queries in all; None for no limit."""
    created: int
    expires: int | None
    revoked: int | None
    used: int
    """Queries in the present period."""
    total: int
    """Queries in all so far."""
    failures: int
    """Answers that were none to their query, since the last `lift`."""
    suspended: int | None
    """When too many of them ended its asking, until `lift`."""
    rate: str | None = None
    """Requests in a second, a minute or an hour, as `20/m`; None for no limit."""
    burst: int | None = None
    """Requests at once after a pause; as many as the rate names if None."""

    @property
    def limits(self) -> _native.Limits | None:
        """How fast it may ask. Raises InvalidInput."""
        return None if self.rate is None else _limits(self.rate, self.burst)


class Ledger:
    """The principals of a decrypt service and what they have used. Safe for threads and
    processes."""

    def __init__(self, path: StrPath, *, clock: Callable[[], float] = time.time) -> None:
        """`path` is made if it isn't there, readable by its owner alone. Raises StorageError."""
        self._file = LedgerFile(
            Path(at_home(path)), [_SCHEMA, _FAILURES, _RATES], _VERSION, "Nothing was opened."
        )
        self._clock = clock

    def add(
        self,
        name: str,
        collection: str,
        *,
        budget: int,
        period: int = 86_400,
        lifetime: int | None = None,
        may: Collection[str] = ("match",),
        expires_in: float | None = None,
        rate: str | None = None,
        burst: int | None = None,
    ) -> tuple[Principal, str]:
        """A new principal and its token, which is shown this once. `budget` queries in `period`
        seconds, `lifetime` in all; `rate` requests in a time, `20/s`, `100/m` or `1000/h`, and `burst` of them at once
        after a pause. Raises InvalidInput."""
        token = PREFIX + base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        terms = (budget, period, lifetime, may, expires_in, rate, burst)
        made = self._insert(_digest(token), name, collection, *terms)
        return made, token

    def add_identity(
        self,
        issuer: str,
        subject: str,
        collection: str,
        *,
        budget: int,
        period: int = 86_400,
        lifetime: int | None = None,
        may: Collection[str] = ("match",),
        expires_in: float | None = None,
        rate: str | None = None,
        burst: int | None = None,
    ) -> Principal:
        """A new principal without a token of its own: whoever shows one that the identity provider signed for this
        subject. Otherwise as `add`. Raises InvalidInput, also where it is one for this collection already."""
        if not issuer or not subject:
            raise InvalidInput("an identity has an issuer and a subject.")
        digest = _identity(issuer, subject, collection)
        terms = (budget, period, lifetime, may, expires_in, rate, burst)
        return self._insert(digest, subject[:128], collection, *terms)

    def _insert(
        self,
        digest: bytes,
        name: str,
        collection: str,
        budget: int,
        period: int,
        lifetime: int | None,
        may: Collection[str],
        expires_in: float | None,
        rate: str | None,
        burst: int | None,
    ) -> Principal:
        known = tuple(one for one in CAPABILITIES if one in may)
        if len(known) != len(set(may)) or not known:
            raise InvalidInput(
                f"may takes some of {', '.join(CAPABILITIES)}; got {', '.join(map(str, may))!r}."
            )
        if not name or len(name) > 128:
            raise InvalidInput("a principal's name has 1 to 128 characters.")
        if rate is not None or burst is not None:
            _limits(rate, burst)
        now = int(self._clock())
        row = (
            secrets.token_hex(8),
            name,
            digest,
            check_name(collection),
            ",".join(known),
            count(budget, "budget"),
            count(period, "period"),
            None if lifetime is None else count(lifetime, "lifetime"),
            now,
            None if expires_in is None else now + int(expires_in),
            None,
            now,
            0,
            0,
        )
        with self._file.transaction() as file:
            # Who was revoked may be let in again, as somebody new.
            file.execute(
                "UPDATE principals SET digest = randomblob(32) WHERE digest = ? AND revoked IS NOT NULL",
                (digest,),
            )
            if file.execute("SELECT 1 FROM principals WHERE digest = ?", (digest,)).fetchone():
                raise InvalidInput(
                    f"{name!r} may ask about {collection!r} already; revoke that principal first, which list shows."
                )
            file.execute(f"INSERT INTO principals VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
            if rate is not None:
                file.execute("INSERT INTO rates VALUES (?, ?, ?)", (row[0], rate, burst))
        return self.get(row[0])

    def list(self) -> list[Principal]:
        """Every principal, oldest first, the revoked ones included."""
        with self._file.transaction(write=False) as file:
            return [_principal(row) for row in file.execute(f"{_EVERY} ORDER BY created, id")]

    def get(self, id: str) -> Principal:
        """One principal. Raises Unknown."""
        with self._file.transaction(write=False) as file:
            return _principal(_row(file, id))

    def revoke(self, id: str) -> None:
        """Refuse this principal from now on. Raises Unknown."""
        with self._file.transaction() as file:
            _row(file, id)
            file.execute("UPDATE principals SET revoked = ? WHERE id = ?", (int(self._clock()), id))

    def fail(self, id: str) -> bool:
        """Count an answer that was none to its query, durably; whether the principal is suspended
        now. Each such answer is a question put to the key: how the service reacts to it may say
        something, so that nobody gets many. Raises Unknown."""
        with self._file.transaction() as file:
            principal = _principal(_row(file, id))
            count = principal.failures + 1
            suspended = int(self._clock()) if count >= MAX_FAILURES else principal.suspended
            file.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", (id, count, suspended))
        return suspended is not None

    def lift(self, id: str) -> None:
        """Let a suspended principal ask again, and count its failures from none. Raises Unknown."""
        with self._file.transaction() as file:
            _row(file, id)
            file.execute("DELETE FROM failures WHERE principal = ?", (id,))

    def authenticate(self, token: str) -> Principal:
        """Whose token it is. Raises Unknown, always with the same words, for any that does not
        count now."""
        return self._find(_digest(token))

    def identify(self, issuer: str, subject: str, collection: str) -> Principal:
        """Who that is of an identity provider, whose token was checked. Raises as `authenticate`."""
        return self._find(_identity(issuer, subject, collection))

    def _find(self, digest: bytes) -> Principal:
        with self._file.transaction(write=False) as file:
            row = file.execute(f"{_EVERY} WHERE digest = ?", (digest,)).fetchone()
        # The look-up is by a hash of 256 random bits: its timing says nothing about a token.
        if row is None or not hmac.compare_digest(row["digest"], digest):
            raise Unknown("the token is not accepted.")
        principal = _principal(row)
        self._check(principal)
        return principal

    def charge(self, id: str, queries: int) -> int:
        """Take `queries` off a principal's budget, durably, or nothing at all; what is left of it
        in this period. Raises Exhausted, Unknown."""
        wanted = count(queries, "queries")
        now = int(self._clock())
        with self._file.transaction() as file:
            row = _row(file, id)
            principal = _principal(row)
            self._check(principal)
            since, used = row["since"], principal.used
            if now >= since + principal.period:  # and not when the clock goes back
                since, used = now, 0
            if principal.lifetime is not None and principal.total + wanted > principal.lifetime:
                raise Exhausted(None)
            if used + wanted > principal.budget:
                never = wanted > principal.budget
                raise Exhausted(None if never else max(1, since + principal.period - now))
            file.execute(
                "UPDATE principals SET since = ?, used = ?, total = ? WHERE id = ?",
                (since, used + wanted, principal.total + wanted, id),
            )
            return principal.budget - used - wanted

    def _check(self, principal: Principal) -> None:
        expired = principal.expires is not None and self._clock() >= principal.expires
        if principal.revoked is not None or principal.suspended is not None or expired:
            raise Unknown("the token is not accepted.")


def _limits(rate: str | None, burst: int | None) -> _native.Limits:
    named = {name: value for name, value in (("rate", rate), ("burst", burst)) if value is not None}
    return read(json.dumps(named))


def _digest(token: str) -> bytes:
    return hashlib.blake2b(
        token.encode(errors="replace"), digest_size=32, person=b"ciphervec v1 tok"
    ).digest()


def _identity(issuer: str, subject: str, collection: str) -> bytes:
    """In the place of a token's digest. Each part is said by its length: none runs into the next."""
    hashed = hashlib.blake2b(digest_size=32, person=b"ciphervec v1 oid")
    for part in (issuer, subject, collection):
        text = part.encode(errors="replace")
        hashed.update(len(text).to_bytes(8, "little") + text)
    return hashed.digest()


def _row(file: sqlite3.Connection, id: str) -> sqlite3.Row:
    row: sqlite3.Row | None = file.execute(f"{_EVERY} WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise Unknown(f"there is no principal {id!r}; list shows those there are.")
    return row


def _principal(row: sqlite3.Row) -> Principal:
    fields = {name: row[name] for name in row.keys() if name not in ("digest", "since", "may")}  # noqa: SIM118
    return Principal(**fields, may=tuple(row["may"].split(",")))


__all__ = ["CAPABILITIES", "Exhausted", "Ledger", "Principal", "Unknown"]
