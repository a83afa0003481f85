"""Sidecar bench: adds a second and the time of a question, through the sidecar with vectors in base64 and in JSON, and
through a client of ours. Plays application and owner.

All ways take turns, a batch each, so that a machine that drifts drifts for all. Requests are written before they are timed:
what an application's own client takes to write them is not the sidecar's.
"""

from __future__ import annotations

import base64
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx
import numpy as np

from ciphervec import CiphervecError, Client, Collection, Keys, PersistentClient
from ciphervec.http import HttpClient, LocalServer
from ciphervec.http.local import LocalProcess
from ciphervec.ingest.arrays import FloatArray

from .machine import describe, versions

Notify = Callable[[str], object]
PLACES = ("folder", "server")
WAYS = ("base64", "json", "client")
NAME = "bench"
_DATABASE = "/tenants/default_tenant/databases/default_database/collections"
_NEAREST = 10


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    rows: int = 100_000
    dim: int = 384
    batch: int = 10_000
    queries: int = 20
    documents: bool = False
    """Whether rows have metadata and documents, which questions then ask for as well."""
    places: tuple[str, ...] = PLACES
    seed: int = 0
    folder: Path | None = None


class Way(Protocol):
    """One way into a collection. What is made by `batch` and `question` is timed when it is sent."""

    def batch(self, rows: Rows) -> Callable[[], object]:
        """What adds these rows."""
        ...

    def question(self, vector: FloatArray, documents: bool) -> Callable[[], list[Any]]:
        """What asks for the nearest rows, and gives their ids."""
        ...


@dataclass(frozen=True)
class Rows:
    """A batch."""

    ids: list[str]
    vectors: FloatArray
    metadatas: list[dict[str, Any]] | None
    documents: list[str] | None


class ThroughSidecar:
    """Chroma's API, as its clients speak it."""

    def __init__(self, api: httpx.Client, name: str, encoded: bool) -> None:
        """`encoded`: vectors in base64, as Chroma's Python client sends them; else as lists of numbers."""
        self._api, self._encoded = api, encoded
        self._path = f"{_DATABASE}/{self._sent(_DATABASE, self._written({'name': name}))['id']}"

    def batch(self, rows: Rows) -> Callable[[], object]:
        vectors: list[Any] = rows.vectors.tolist()
        if self._encoded:
            vectors = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in rows.vectors]
        body = self._written(
            {"ids": rows.ids, "embeddings": vectors, "metadatas": rows.metadatas, "documents": rows.documents}
        )
        return lambda: self._sent(self._path + "/add", body)

    def question(self, vector: FloatArray, documents: bool) -> Callable[[], list[Any]]:
        include = ["distances", *(("documents", "metadatas") if documents else ())]
        asked = {"query_embeddings": [vector.tolist()], "n_results": _NEAREST, "include": include}
        body = self._written(asked)
        return lambda: list(self._sent(self._path + "/query", body)["ids"][0])

    def _written(self, content: dict[str, Any]) -> bytes:
        return json.dumps(content).encode()

    def _sent(self, path: str, body: bytes) -> Any:
        reply = self._api.post(path, content=body, headers={"Content-Type": "application/json"})
        if reply.is_error:
            raise CiphervecError(f"the sidecar answers {reply.status_code}: {reply.text[:200]}")
        return reply.json()


class ThroughClient:
    """The same collections without a sidecar."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def batch(self, rows: Rows) -> Callable[[], object]:
        return lambda: self._collection.add(rows.ids, rows.vectors, rows.metadatas, rows.documents)

    def question(self, vector: FloatArray, documents: bool) -> Callable[[], list[Any]]:
        include = ["distances", *(("documents", "metadatas") if documents else ())]

        def ask() -> list[Any]:
            found = self._collection.query(vector, _NEAREST, include=include, audience="owner")
            return list(found["ids"][0])

        return ask


def run(settings: Settings, notify: Notify) -> list[dict[str, Any]]:
    """A record for each way into each place."""
    records = []
    for place in settings.places:
        with (
            tempfile.TemporaryDirectory(prefix="ciphervec-bench-", dir=settings.folder) as folder,
            _ways(place, Path(folder), settings.dim) as ways,
        ):
            records += _measured(settings, place, ways, notify)
    return records


@contextmanager
def _ways(place: str, folder: Path, dim: int) -> Iterator[dict[str, Way]]:
    """Every way into a place, each with a collection of its own."""
    keys = Keys.generate()
    keys.save(folder / "keys", allow_plaintext=True)
    with ExitStack() as stack:
        upstream = str(folder / "db")
        client: Client
        if place == "server":
            server = stack.enter_context(LocalServer(folder / "data"))
            upstream = server.url
            client = HttpClient(server.url, keys=keys, state=folder / "client-state")
        else:
            client = PersistentClient(folder / "client-db", keys)
        stack.enter_context(client)
        arguments = ["--upstream", upstream, "--keys", str(folder / "keys"), "--listen", "127.0.0.1:0"]
        state = {"CIPHERVEC_STATE": str(folder / "state")}
        sidecar = stack.enter_context(LocalProcess(["sidecar", *arguments], environment=state))
        api = stack.enter_context(httpx.Client(base_url=f"{sidecar.url}/api/v2", timeout=600))
        yield {
            "base64": ThroughSidecar(api, "encoded", True),
            "json": ThroughSidecar(api, "listed", False),
            "client": ThroughClient(client.create_collection("direct", dim, "l2")),
        }


def _measured(settings: Settings, place: str, ways: dict[str, Way], notify: Notify) -> list[dict[str, Any]]:
    rng = np.random.default_rng(settings.seed)
    adds: dict[str, list[float]] = {name: [] for name in ways}
    asked: dict[str, list[float]] = {name: [] for name in ways}
    firsts: list[FloatArray] = []
    for start in range(0, settings.rows, settings.batch):
        notify(f"adding to a {place} ({start:,}/{settings.rows:,})")
        rows = _rows(rng, settings, start, min(settings.batch, settings.rows - start))
        firsts.append(rows.vectors[0])
        for name, way in ways.items():
            adds[name].append(_timed(way.batch(rows))[0])
    names = [_id(start) for start in range(0, settings.rows, settings.batch)]
    # The first question of each loads what is asked about.
    for turn in range(settings.queries + 1):
        notify(f"asking a {place} ({turn}/{settings.queries})")
        which = turn % len(firsts)
        for name, way in ways.items():
            seconds, found = _timed(way.question(firsts[which], settings.documents))
            if found[0] != names[which]:
                raise CiphervecError(
                    f"through {name} in a {place} row {names[which]!r} is not its own nearest"
                )
            if turn:
                asked[name].append(1e3 * seconds)
    return [
        {
            "place": place,
            "way": name,
            "rows": settings.rows,
            "dim": settings.dim,
            "batch": settings.batch,
            "documents": settings.documents,
            "adds_per_s": settings.rows / sum(adds[name]),
            "add_ms": 1e3 * statistics.median(adds[name]),
            "query_ms": statistics.median(asked[name]),
            "machine": describe(),
            "versions": versions("httpx", "orjson", "starlette", "uvicorn"),
        }
        for name in ways
    ]


def _rows(rng: np.random.Generator, settings: Settings, start: int, count: int) -> Rows:
    ids = [_id(row) for row in range(start, start + count)]
    vectors = rng.standard_normal((count, settings.dim)).astype(np.float32)
    if not settings.documents:
        return Rows(ids, vectors, None, None)
    metadatas = [{"source": f"file {row % 100}", "page": row} for row in range(start, start + count)]
    return Rows(ids, vectors, metadatas, [f"{name} " * 40 for name in ids])


def _id(row: int) -> str:
    return f"row-{row}"


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    done = work()
    return time.perf_counter() - began, done


def lines(records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A table of the records."""
    says = {"base64": "sidecar, vectors in base64", "json": "sidecar, vectors in JSON"}
    clients = {"folder": "PersistentClient", "server": "HttpClient"}
    return [
        [
            one["place"],
            says.get(one["way"], clients[one["place"]]),
            f"{one['adds_per_s']:,.0f}",
            f"{one['query_ms']:.1f}",
        ]
        for one in records
    ]
