"""The native half of the web bench: serves answers over sealed rows to a page, and times the same work in the native
module. Plays owner and server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import ciphervec
import ciphervec._native as _native
from ciphervec import InvalidInput

from . import machine

MODES = ("sealed-index", "sealed")
BATCH = 25_000
SEALED = 5_000
COUNT = 10
# A page's bench has no secret: both halves know this key.
KEYS = ciphervec.Keys(_native.Keys._from_master(bytes(range(32))))
LINE = (12_500_000.0, 0.05)
"""What segments are packed for: a network of 100 Mbit/s, 50 ms."""
PREFIX = "/v1/bench/"


class Evaluator(ThreadingHTTPServer):
    """Answers queries, posted to `/v1/bench/MODE`; gives the files that an owner opens the answers with:
    `MODE/head.json`, `MODE/spec`, `MODE/seed` and the sidecars that the head names."""

    def __init__(self, folder: Path, rows: int, dimension: int) -> None:
        self.folder = folder
        self.indexes = {mode: seal(folder / mode, mode, rows, dimension) for mode in MODES}
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Evaluator

    def do_GET(self) -> None:
        mode, _, name = self.path.removeprefix(PREFIX).partition("/")
        file = self.server.folder / mode / name
        if mode in MODES and "/" not in name and file.is_file():
            self._send(200, file.read_bytes())
        else:
            self._send(404, b"")

    def do_POST(self) -> None:
        index = self.server.indexes.get(self.path.removeprefix(PREFIX))
        query = self.rfile.read(int(self.headers.get("content-length", 0)))
        self._send(404, b"") if index is None else self._send(200, index.evaluate(query))

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Not a word: a bench prints its figures."""


def seal(folder: Path, mode: str, rows: int, dimension: int) -> ciphervec.ServerIndex:
    """So many random rows, sealed in segments of 25,000; what an owner needs goes to the folder."""
    generator = np.random.default_rng(17)
    spec = ciphervec.IndexSpec("bench", dimension, mode=mode)
    owner = ciphervec.Owner(KEYS, spec)
    index = ciphervec.ServerIndex(spec)
    if mode == "sealed":
        index.set_evaluation_keys(owner.evaluation().to_bytes())
    folder.mkdir(parents=True, exist_ok=True)
    segments = []
    for start in range(0, rows, BATCH):
        stop = min(start + BATCH, rows)
        vectors = generator.standard_normal((stop - start, dimension)).astype(np.float32)
        sealed = owner._seal(vectors, list(range(start, stop)), rows, LINE)
        index.add(sealed)
        (folder / f"{sealed.id.hex()}.sidecar").write_bytes(sealed.sidecar)
        segments.append(sealed.id.hex())
    (folder / "spec").write_bytes(spec.to_bytes())
    (folder / "seed").write_bytes(owner.mask_seed)
    (folder / "head.json").write_text(
        json.dumps({"rows": rows, "dimension": dimension, "segments": segments})
    )
    return index


def measure(url: str, repeats: int) -> dict[str, Any]:
    """Milliseconds of the native module's work over what an evaluator holds, one thread: of the fastest runs."""
    found: dict[str, Any] = {"backend": ciphervec.backend(), **machine.describe()}
    with machine.threads(1):
        for mode in MODES:
            found[mode] = _measure_mode(f"{url}{PREFIX}{mode}", repeats)
    return found


def _measure_mode(url: str, repeats: int) -> dict[str, float]:
    head = json.loads(_get(f"{url}/head.json"))
    spec = ciphervec.IndexSpec.from_bytes(_get(f"{url}/spec"))
    owner = ciphervec.Owner(KEYS, spec, mask_seed=_get(f"{url}/seed"))
    for segment in head["segments"]:
        owner.attach(bytes.fromhex(segment), _get(f"{url}/{segment}.sidecar"), standing="stored")
    generator = np.random.default_rng(18)
    question = generator.standard_normal((1, spec.dimension)).astype(np.float32)
    vectors = generator.standard_normal((SEALED, spec.dimension)).astype(np.float32)
    names = list(range(SEALED))
    answered = 0

    def opening() -> Callable[[], Any]:
        nonlocal answered
        query = owner.query(question)
        response = _get(url, query.to_bytes())
        answered = len(response)
        return lambda: owner.open(query, response, COUNT)

    return {
        "ms_query": _best(repeats, lambda: lambda: owner.query(question).to_bytes()),
        "ms_open": _best(repeats, opening),
        "vectors_per_second": 1e3 * SEALED / _best(5, lambda: lambda: owner._seal(vectors, names, SEALED)),
        "response_bytes": float(answered),
    }


def _get(url: str, body: bytes | None = None) -> bytes:
    if not url.startswith("http://127.0.0.1:"):
        raise InvalidInput(f"the bench asks an evaluator on this machine, http://127.0.0.1:…, got {url}")
    answer = httpx.get(url) if body is None else httpx.post(url, content=body, timeout=60)
    answer.raise_for_status()
    return answer.content


def _best(repeats: int, begin: Callable[[], Callable[[], Any]]) -> float:
    """Milliseconds of what `begin` gives, of the fastest run but the first: what else the machine does
    only adds to the others."""
    times = []
    for _ in range(repeats + 1):
        work = begin()
        began = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - began))
    return min(times[1:])
