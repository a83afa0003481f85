"""Checks of `doctor`, for a key's owner: each finding on files, folders, a server or a collection comes with what to
do."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import ciphervec._native as _native

from .._native import IndexSpec
from ..collections.audience import FloodingPlan
from ..collections.client import Client
from ..collections.spec import FORMAT
from ..collections.wrapping.age import IDENTITY
from ..collections.wrapping.pkcs11 import PIN_FILE
from ..errors import CiphervecError, CorruptData
from ..ingest.counts import several
from ..ingest.files import at_home

Verdict = Literal["ok", "warn", "fail"]

_LITTLE, _NONE = 2 << 30, 200 << 20
"""Bytes free on a disk below which it is soon full, and below which it is."""
_SKEW, _TOO_MUCH = 60.0, 300.0
"""Seconds between two clocks that are worth a word, and with which a server refuses new tokens."""
_DELETED, _SEGMENTS, _NEARLY = 0.25, 1000, 0.8


class Finding(NamedTuple):
    """One thing that was looked at."""

    check: str
    where: str
    verdict: Verdict
    says: str
    next: str = ""


def of_key_file(path: Path) -> Iterator[Finding]:
    """Whether a key file is for its owner alone, and under a passphrase."""
    where = str(path)
    try:
        head = path.read_bytes()[:16]
    except OSError as error:
        yield Finding(
            "key file",
            where,
            "fail",
            f"can't be read: {error.strerror}",
            "check the path and whose file it is",
        )
        return
    if not head.startswith(b"CVKEYFIL") or len(head) < 16:
        yield Finding(
            "key file",
            where,
            "fail",
            "is no key file",
            "restore it from a copy, or with `ciphervec keys restore`",
        )
        return
    yield from of_mode(path, 0o600, "key file")
    yield from of_mode(path.absolute().parent, 0o755, "folder of the key")
    try:
        protection, _, _, uri = _native.key_file_label(where)
    except CorruptData as error:
        yield Finding("key file", where, "fail", str(error), "restore it from a copy")
        return
    if protection == "clear":
        yield Finding(
            "passphrase", where, "warn", "the key is stored there in clear",
            "fine on an encrypted disk or a secrets mount; else load it and save it with a passphrase",
        )  # fmt: skip
    elif protection == "share":
        yield Finding("passphrase", where, "fail", "a share of a key, no key", "combine as many as it needs")
    else:
        yield Finding("passphrase", where, "ok", "encrypted" if uri is None else f"wrapped by {uri}")
    yield from _of_secrets_for(uri or "")


def _of_secrets_for(uri: str) -> Iterator[Finding]:
    """Whether the files that open a wrapped key are for their owner alone, as it is."""
    for scheme, variable, check in (("age:", IDENTITY, "age identities"), ("pkcs11:", PIN_FILE, "PIN file")):
        file = os.environ.get(variable)
        if uri.startswith(scheme) and file:
            yield from of_mode(Path(at_home(file)), 0o600, check)


def of_mode(path: Path, most: int, check: str) -> Iterator[Finding]:
    """Whether a file or folder allows no more than `most` to whom."""
    if os.name != "posix":
        return
    try:
        found = path.stat()
    except OSError as error:
        yield Finding(
            check,
            str(path),
            "fail",
            f"can't be looked at: {error.strerror}",
            "check the path and whose it is",
        )
        return
    mode = stat.S_IMODE(found.st_mode)
    extra = mode & ~most
    if found.st_uid not in (os.geteuid(), 0):
        yield Finding(
            check, str(path), "fail", "belongs to another user", f"chown it: sudo chown $USER {path}"
        )
    elif extra:
        # Of a key every extra reader is one too many; in a folder, those who may exchange files.
        verdict: Verdict = "fail" if most == 0o600 or extra & 0o002 else "warn"
        says = f"mode {mode:04o}, at most {most:04o} expected"
        yield Finding(check, str(path), verdict, says, f"chmod {most:o} {path}")
    else:
        yield Finding(check, str(path), "ok", f"mode {mode:04o}")


def of_writable(path: Path, check: str) -> Iterator[Finding]:
    """Whether files can be made in a folder, and whether its disk has room; a folder that is not there yet
    counts as the nearest one above it."""
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not os.access(there, os.W_OK | os.X_OK):
        yield Finding(
            check, str(path), "fail", "can't be written to", "make it writable, or choose another folder"
        )
        return
    free = shutil.disk_usage(there).free
    verdict: Verdict = "ok" if free >= _LITTLE else "warn" if free >= _NONE else "fail"
    says = f"writable, {free / 1e9:,.1f} GB free"
    yield Finding(f"disk of {check}", str(path), verdict, says, "" if verdict == "ok" else "make room on it")


def of_budgets(state: Path) -> Iterator[Finding]:
    """How much is left of what may be shown in a key's life, as counted in the user's state folder."""
    yield from _of_ledger(state / "uses.db")
    counts = state / "flooding"
    if not counts.exists():
        return
    try:
        known = _native.Storage(state, later=True).budgets()
    except CiphervecError as error:
        yield _lost(counts, error)
        return
    for name, used, allowed in known:
        yield _of_budget(name, used, allowed)


def _of_ledger(path: Path) -> Iterator[Finding]:
    """Uses of keys of programs, and what releases before counted of results for others."""
    if not path.exists():
        return
    yield from of_mode(path, 0o600, "ledger of budgets")
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)
        ) as file:
            rows = list(file.execute("SELECT name, used, allowed FROM uses ORDER BY name"))
    except sqlite3.Error as error:
        yield _lost(path, error)
        return
    for name, used, allowed in rows:
        yield _of_budget(str(name), used, allowed)


def _lost(path: Path, error: Exception) -> Finding:
    says = f"can't be read: {error}"
    return Finding("budget", str(path), "fail", says, "restore it from a copy: without it, nothing is shown")


def _of_budget(name: str, used: int, allowed: int | None) -> Finding:
    """`allowed` is None where it was counted by a release that did not note it."""
    if allowed is None:
        return Finding(
            "budget", name, "ok", f"{used:,} spent; of how many is noted when results are next shown"
        )
    left = "is spent" if used >= allowed else f"{used:,} of {allowed:,} spent"
    verdict: Verdict = "fail" if used >= allowed else "warn" if used >= _NEARLY * allowed else "ok"
    anew = (
        "begin anew with optimize(reseal=True), rotate_query_key() or other keys: "
        "docs/security/keys-and-processes.md says which"
    )
    return Finding("budget", name, verdict, left, "" if verdict == "ok" else anew)


def of_server(fetch: Callable[[str], Any], url: str) -> Iterator[Finding]:
    """Whether a server runs, is ready, and has our time. `fetch(path)` gives an answer of httpx."""
    began = time.time()
    try:
        alive = fetch("/healthz")
        ready = fetch("/readyz")
    except Exception as error:
        yield Finding(
            "server",
            url,
            "fail",
            f"was not reached: {error}",
            "check the address, the network, --ca, and that it runs",
        )
        return
    if alive.status_code == 200:
        yield Finding("server", url, "ok", "it runs")
    else:
        yield Finding("server", url, "fail", f"/healthz says {alive.status_code}", "is this the right URL?")
    if ready.status_code == 200:
        yield Finding("readiness", url, "ok", "it takes requests")
    else:
        yield Finding(
            "readiness",
            url,
            "fail",
            f"/readyz says {ready.status_code}",
            "its log names what is damaged or missing",
        )
    yield _clock(alive.headers.get("date"), (began + time.time()) / 2, url)


def _clock(date: str | None, now: float, url: str) -> Finding:
    try:
        skew = parsedate_to_datetime(date or "").timestamp() - now
    except (ValueError, TypeError):
        return Finding(
            "clock",
            url,
            "warn",
            "the server does not tell its time",
            "compare the clocks by hand: tokens expire by them",
        )
    # The header has whole seconds.
    behind = f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this machine"
    if abs(skew) <= _SKEW:
        return Finding("clock", url, "ok", "the same as here")
    verdict: Verdict = "warn" if abs(skew) <= _TOO_MUCH else "fail"
    return Finding(
        "clock",
        url,
        verdict,
        f"the server is {behind}",
        "run NTP on both: tokens and budgets go by the clock",
    )


def of_description(name: str, client: Client) -> Iterator[Finding]:
    """Whether a collection's description is of a version that is written today. Needs no key."""
    try:
        content = json.loads(client._look(name).meta)
        IndexSpec.from_bytes(base64.b64decode(content["spec"], validate=True))
        found = int(content["format"])
    except CiphervecError as error:
        yield Finding("collection", name, "fail", str(error), "ciphervec verify names what is damaged")
        return
    except (ValueError, KeyError, TypeError) as error:
        yield Finding(
            "description", name, "fail", f"does not parse: {error!r}", "restore the collection from a copy"
        )
        return
    if found > FORMAT:
        yield Finding(
            "description",
            name,
            "fail",
            f"format {found}, this release reads up to {FORMAT}",
            "upgrade ciphervec",
        )
    else:
        yield Finding("description", name, "ok", f"format {found}")


def of_collection(name: str, client: Client) -> Iterator[Finding]:
    """What the owner knows of a collection once it is open: `Collection.info` read for what needs doing."""
    try:
        collection = client.get_collection(name)
        info = collection.info()
        if collection.mode == "sealed":
            yield from _of_scores_for_others(name, collection.flooding_plan())
    except CiphervecError as error:
        yield Finding(
            "opening", name, "fail", str(error), "see the message; ciphervec verify checks every stored block"
        )
        return
    yield Finding("opening", name, "ok", f"{several(info['count'], 'row')} under key {info['key_id']}")
    yield from of_info(name, info)


def _of_scores_for_others(name: str, plan: FloodingPlan) -> Iterator[Finding]:
    """How much is left of what others may be shown of a collection."""
    if not plan.queries:
        says = f"none: a query of all rows exceeds what a query key hides with noise of {plan.deviation:.3g}"
        yield Finding("flooded results for others", name, "ok", says)
        return
    for what, most, left, following in (
        ("scores of a row for others", plan.queries, plan.queries_left, "optimize(reseal=True)"),
        ("scores of a query key for others", plan.rows_an_epoch, plan.rows_left, "rotate_query_key()"),
    ):
        used = most - left
        verdict: Verdict = "ok" if used < _NEARLY * most else "warn" if left else "fail"
        says = f"{used:,} of {most:,} spent"
        yield Finding(what, name, verdict, says, "" if verdict == "ok" else f"begin anew with {following}")


def of_info(name: str, info: Mapping[str, Any]) -> Iterator[Finding]:
    """Findings on what `Collection.info` says. Entries that a release does not have are passed over."""
    for key, check, verdict, says, following in _CONCERNS:
        if key not in info:
            continue
        many = _many(info[key])
        yield Finding(
            check,
            name,
            verdict if many else "ok",
            says.format(many) if many else "none",
            following if many else "",
        )
    if info.get("authenticated") is not None and info.get("mode") != "open":  # which has no keys
        trusted = bool(info["authenticated"])
        yield Finding(
            "authenticated", name, "ok" if trusted else "warn",
            "the key holder vouches for the state" if trusted else "nobody vouches for the state: it is of an older release",
            "" if trusted else f"ciphervec upgrade PLACE {name}",
        )  # fmt: skip
    if info.get("rotation") is not None:
        yield Finding(
            "rotation",
            name,
            "warn",
            f"on its way from key {info['rotation']['from']}",
            "end it: ciphervec keys rotate, as before",
        )
    stored = info["count"] + info["deleted"]
    if stored and info["deleted"] > _DELETED * stored:
        says = f"{info['deleted']:,} of {stored:,} stored rows are deleted"
        yield Finding("deleted rows", name, "warn", says, "collection.optimize() takes them off the disk")
    if info["segments"] > _SEGMENTS:
        says = f"{info['segments']:,}; each commit writes them all down"
        yield Finding("segments", name, "warn", says, "collection.optimize() merges them")


def _many(value: object) -> int:
    """How much there is of something that is counted, listed, or told by yes and no."""
    if isinstance(value, (bool, int)):
        return int(value)
    return len(value) if isinstance(value, (list, tuple, dict, set, str)) else int(value is not None)


_CONCERNS: tuple[tuple[str, str, Verdict, str, str], ...] = (
    ("quarantine", "quarantine", "fail", "{:,} segments gave answers that don't add up, and queries are refused",
     "find out who changed them; optimize() makes them anew, release(id) uses one again, discard(ids) deletes writers'"),
    ("duplicates", "duplicate ids", "fail", "{:,} ids lie there twice", "collection.optimize() keeps the row that counts"),
    ("refused", "refused segments", "warn", "{:,} don't open: an old card, or a stranger's",
     "collection.discard(info()['refused']) deletes them"),
    ("old_kind", "old-kind segments", "warn", "{:,} keep their noise: answers from them are for the owner alone",
     "collection.optimize() seals them anew"),
    ("appended", "unvouched segments", "warn", "{:,} came from writers since the key holder's last commit",
     "look at info()['writers'], then collection.adopt()"),
    ("ignored", "ignored rows", "warn", "{:,} of writers have ids that were there already, and don't count",
     "collection.adopt() or optimize() deletes them"),
    ("writers", "writers' rows", "ok", "of {:,} writers, without filter tags until adopt()", ""),
    ("shadowed", "overwritten rows", "ok", "{:,}, deleted with the next change", ""),
)  # fmt: skip
"""What `info` may list; each with its check, how bad it is, what it means, and what to do."""
