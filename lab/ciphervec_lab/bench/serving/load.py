"""Load generator: latencies and failures of queries to a server, and some of its answers. Plays many clients on one
machine.

The clients send queries that were made beforehand and read the answers without opening them, so
that what is measured is the server. Some answers are kept, for the caller to open and check.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

KEEP_EVERY = 97
"""One answer in so many is kept."""
KEPT = 4
"""At most so many a client."""


@dataclass
class Load:
    """What came of one stretch of load."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    answers: list[tuple[int, bytes]] = field(default_factory=list)
    """(number of the query, answer) of those kept."""

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        """Milliseconds within which this percentage of the answers came."""
        return float(np.percentile(np.asarray(self.latencies), share) * 1e3) if self.latencies else 0.0

    def percentiles(self) -> list[float]:
        """Milliseconds within which 0, 1 … 100 percent of the answers came; nothing where there
        were none."""
        if not self.latencies:
            return []
        return [float(value) for value in np.percentile(np.asarray(self.latencies), range(101)) * 1e3]

    def join(self, other: Load) -> None:
        """Adds another stretch to this one."""
        self.seconds += other.seconds
        self.latencies += other.latencies
        self.errors += other.errors
        self.answers += other.answers


@dataclass(frozen=True)
class Target:
    """The collection asked, over plain HTTP on loopback."""

    host: str
    port: int
    collection: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, url: str, collection: str) -> Target:
        """The collection of a server at a plain address of this machine, http://127.0.0.1:8707
        say."""
        host, _, port = url.removeprefix("http://").rpartition(":")
        return cls(host.strip("[]"), int(port), collection)

    @property
    def path(self) -> str:
        return f"/v1/collections/{self.collection}/query"

    def ask(self, connection: http.client.HTTPConnection, query: bytes) -> bytes:
        """One query on an open connection. Raises OSError or HTTPException."""
        connection.request(
            "POST", self.path, query, {"Content-Type": "application/octet-stream", **self.headers}
        )
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK:
            raise http.client.HTTPException(f"status {answer.status}: {body[:200]!r}")
        return body

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=120)


def ask_for(target: Target, queries: Sequence[bytes], clients: int, seconds: float) -> Load:
    """`clients` threads ask one query after another, each on a connection of its own, until the
    time is up."""
    loads = [Load() for _ in range(clients)]
    begin = threading.Barrier(clients + 1)
    stop = threading.Event()

    def client(number: int) -> None:
        load, connection = loads[number], target.connect()
        begin.wait()
        count = 0
        while not stop.is_set():
            which = (number * 31 + count) % len(queries)
            count += 1
            started = time.perf_counter()
            try:
                body = target.ask(connection, queries[which])
            except (OSError, http.client.HTTPException) as error:
                load.errors.append(f"{type(error).__name__}: {error}")
                connection.close()
                connection = target.connect()
                stop.wait(0.05)
                continue
            load.latencies.append(time.perf_counter() - started)
            if count % KEEP_EVERY == 1 and len(load.answers) < KEPT:
                load.answers.append((which, body))
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    begin.wait()
    started = time.perf_counter()
    stop.wait(seconds)
    stop.set()
    elapsed = time.perf_counter() - started
    for thread in threads:
        thread.join()
    total = Load(seconds=elapsed)
    for load in loads:
        total.join(load)
    total.seconds = elapsed
    return total
