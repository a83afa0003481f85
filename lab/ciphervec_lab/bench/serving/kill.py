"""Kill run: kills a server again and again, and checks that it keeps what it acknowledged. Plays clients and power
cuts."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from ciphervec import CiphervecError, Keys
from ciphervec.collections.spec import MODES, chosen
from ciphervec.http import HttpClient, LocalServer

from ..data import Floats, unit
from .ledger import Ledger, LedgerError

NAME = "ledger"
DIMENSION = 32
MOST_ROWS = 40
KEEP = 2_000
"""Writers delete more than they add above so many rows."""


@dataclass(frozen=True)
class Settings:
    """What `ciphervec bench faults kill` was asked for."""

    turns: int = 1_000
    writers: int = 2
    commits: int = 8
    longest: float = 0.02
    mode: str = "sealed-index"
    seed: int = 0
    folder: Path | None = None
    bucket: str | None = None
    """`s3://bucket/prefix` to kill a server over, instead of a folder; credentials in `AWS_*`."""


def run(settings: Settings, notify: Callable[[str], None], step: Callable[[], None]) -> dict[str, Any]:
    """Starts a server, lets writers work, kills it, starts it again and holds what is there against
    the ledger.

    Raises LedgerError at the first broken promise, which is also a server that does not come back
    or cannot read what it acknowledged: a record that is returned is that of a run without any.
    """
    chance = random.Random(settings.seed)  # noqa: S311, when to kill is no secret
    ledger, keys = Ledger(), Keys.generate()
    began = time.perf_counter()
    starts: list[float] = []
    seen = _Seen()
    with tempfile.TemporaryDirectory(prefix="ciphervec-kill-", dir=settings.folder) as folder:
        data: str | Path = Path(folder) / "data"
        if settings.bucket is not None:
            data = f"{settings.bucket.rstrip('/')}/{Path(folder).name}"
        with LocalServer(data) as server:
            _client(server, keys).create_collection(
                NAME, DIMENSION, mode=chosen("mode", settings.mode, MODES)
            )
        for turn in range(settings.turns):
            notify(f"{ledger.acknowledged:,} commits acknowledged, {len(ledger.present):,} rows")
            server = _start(data, starts)
            try:
                _compare(server, keys, ledger, chance, seen)
                _work_until_killed(server, keys, ledger, settings, turn, chance)
            finally:
                server.kill()
            step()
        with _start(data, starts) as server:
            _compare(server, keys, ledger, chance, seen)
    return {
        "run": "kill" if settings.bucket is None else "kill-bucket",
        "turns": settings.turns,
        "acknowledged_commits": ledger.acknowledged,
        "rows": len(ledger.present),
        "unknown_batches": seen.unknown,
        "unknown_done_share": seen.done / seen.unknown if seen.unknown else None,
        "compared_queries": seen.queries,
        "median_start_ms": float(np.median(starts)),
        "max_start_ms": max(starts),
        "seconds": time.perf_counter() - began,
    }


def vector(number: int) -> Floats:
    """The vector of an id, which can be made again to ask for it."""
    row: Floats = unit(np.random.default_rng(number).standard_normal((1, DIMENSION)))[0]
    return row


def _client(server: LocalServer, keys: Keys) -> HttpClient:
    """One that gives up soon: the server it talks to does not come back at this address."""
    return HttpClient(server.url, keys=keys, state=None, retries=0)


@dataclass
class _Seen:
    """What the comparisons met: batches unknown at a kill, how many of them were done, queries
    whose answer was right."""

    unknown: int = 0
    done: int = 0
    queries: int = 0


def _start(data: str | Path, starts: list[float]) -> LocalServer:
    """The server again after a kill; the milliseconds it took go to `starts`."""
    started = time.perf_counter()
    try:
        server = LocalServer(data)
    except CiphervecError as error:
        raise LedgerError(f"the server does not come back: {error}") from error
    starts.append((time.perf_counter() - started) * 1e3)
    return server


def _compare(server: LocalServer, keys: Keys, ledger: Ledger, chance: random.Random, seen: _Seen) -> None:
    try:
        with closing(_client(server, keys)) as client:
            collection = client.get_collection(NAME, allow_open=True)
            settled = ledger.check([int(name) for name in collection.ids()])
            seen.unknown += settled.unknown
            seen.done += settled.done
            asked = chance.sample(sorted(ledger.present), min(3, len(ledger.present)))
            for name in asked:
                found = collection.query(vector(name), 1)["ids"][0]
                if found != [name]:
                    raise LedgerError(f"the vector of id {name} finds {found}")
                seen.queries += 1
            kept = collection.get(include=["embeddings"], audience="owner")
            assert kept["embeddings"] is not None
            for one, row in zip(kept["ids"], kept["embeddings"], strict=True):
                if row.tobytes() != vector(int(one)).astype(np.float32).tobytes():
                    raise LedgerError(f"the vector of id {one} is not the one that was put in")
    except LedgerError:
        raise
    except CiphervecError as error:
        raise LedgerError(f"what was acknowledged cannot be read: {error}") from error


def _work_until_killed(
    server: LocalServer, keys: Keys, ledger: Ledger, settings: Settings, turn: int, chance: random.Random
) -> None:
    stop, acknowledged = threading.Event(), threading.Semaphore(0)
    broken: list[BaseException] = []

    def write(number: int, seed: int) -> None:
        mine = random.Random(seed)  # noqa: S311
        try:
            with closing(_client(server, keys)) as client:
                first = (turn * settings.writers + number) << 32
                owned = [name for name in ledger.present if (name >> 32) % settings.writers == number]
                compact = f"{server.url}/v1/collections/{NAME}/compact"
                _write(
                    client.get_collection(NAME, allow_open=True),
                    compact,
                    ledger,
                    mine,
                    owned,
                    first,
                    stop,
                    acknowledged,
                )
        except LedgerError as error:
            broken.append(error)
        except (CiphervecError, httpx.TransportError):
            pass  # it was killed in the middle: the ledger keeps the batch as unknown

    threads = [
        threading.Thread(target=write, args=(number, chance.randrange(1 << 30)))
        for number in range(settings.writers)
    ]
    for thread in threads:
        thread.start()
    # By what was acknowledged, so that a slow machine makes progress too; then somewhere inside a
    # commit.
    for _ in range(chance.randint(0, settings.commits)):
        while not acknowledged.acquire(timeout=0.1) and any(thread.is_alive() for thread in threads):
            pass
    time.sleep(chance.uniform(0.0, settings.longest))
    server.kill()
    stop.set()
    for thread in threads:
        thread.join()
    if broken:
        raise broken[0]


def _write(
    collection: Any,
    compact: str,
    ledger: Ledger,
    chance: random.Random,
    mine: list[int],
    first: int,
    stop: threading.Event,
    acknowledged: threading.Semaphore,
) -> None:
    """Adds, deletes and merges until the server is gone, and lets it compact. Ids are this writer's
    own, `mine` of earlier turns, so that no two writers collide."""
    while not stop.is_set():
        choice = chance.random()
        if len(mine) > 1 and choice < (0.6 if len(ledger.present) > KEEP else 0.25):
            most = min(len(mine) // 2, 4 * MOST_ROWS)
            gone = frozenset(chance.sample(mine, chance.randint(1, most)))
            attempt = ledger.begin(gone, adds=False)
            collection.delete(sorted(gone))
            ledger.acknowledge(attempt)
            acknowledged.release()
            mine = [name for name in mine if name not in gone]
        elif choice > 0.97:
            collection.optimize()
        elif choice > 0.94:
            answer = httpx.post(compact, timeout=60, trust_env=False)
            if answer.status_code not in (httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE):
                raise LedgerError(f"a compaction is answered {answer.status_code}: {answer.text}")
        else:
            ids = list(range(first, first + chance.randint(1, MOST_ROWS)))
            first = ids[-1] + 1
            attempt = ledger.begin(ids, adds=True)
            collection.add(ids, np.stack([vector(name) for name in ids]))
            ledger.acknowledge(attempt)
            acknowledged.release()
            mine += ids
