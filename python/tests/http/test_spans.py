"""Spans of OpenTelemetry: what an application's tracer gets of its calls, what a server's collector gets of the same, and
that neither gets anything that was sealed, asked or named."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from ciphervec import HttpClient, Keys, UnknownId, trace_calls
from ciphervec.http import LocalServer
from network import Faulty

trace = pytest.importorskip("opentelemetry.trace")
sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
in_memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")

D = 16


@pytest.fixture(scope="module")
def provider() -> Any:
    """A process has one provider."""
    made = sdk.TracerProvider()
    trace.set_tracer_provider(made)
    return made


@pytest.fixture
def spans(provider: Any) -> Iterator[Any]:
    exporter = in_memory.InMemorySpanExporter()
    processor = export.SimpleSpanProcessor(exporter)
    provider.add_span_processor(processor)
    yield exporter
    trace_calls(False)
    processor.shutdown()


class _Taking(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.taken.append((self.path, body))  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """What OTLP is sent to."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Taking)
    server.taken = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.taken  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()


class Heard(Faulty):
    """A network that notes which requests bear the ids of a trace."""

    def __init__(self) -> None:
        super().__init__()
        self.parents: list[str | None] = []
        self.other: set[str] = set()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.parents.append(request.headers.get("traceparent"))
        self.other |= {"tracestate", "baggage"} & set(request.headers)
        return super().handle_request(request)


def work(client: HttpClient, rows: Any) -> None:
    """Calls whose content is planted."""
    ids = [f"planted-id-{i}" for i in range(len(rows))]
    planted = client.create_collection("planted-collection", D, mode="sealed", filterable=["planted_field"])
    planted.add(
        ids,
        rows,
        metadatas=[{"planted_field": "planted"}] * len(rows),
        documents=["planted text"] * len(rows),
    )
    planted.query(rows[:2], 3, where={"planted_field": "planted"})
    planted.get(ids[:4])
    with pytest.raises(UnknownId, match="planted-id-99"):
        planted.delete(["planted-id-99"])


def test_from_call_to_scan_and_without_content(tmp_path: Path, spans: Any, keys: Keys) -> None:
    rows = np.random.default_rng(3).standard_normal((30, D)).astype("f4")
    with collector() as (url, taken):
        with LocalServer(tmp_path / "db", ["--otlp", url]) as server:
            trace_calls(propagate=True)
            network = Heard()
            with HttpClient(server.url, keys=keys, state=None, transport=network) as client:
                work(client, rows)
            assert not network.other
        served = b"".join(body for path, body in taken if path == "/v1/traces")
        measured = b"".join(body for path, body in taken if path == "/v1/metrics")
    made = {span.name: span for span in spans.get_finished_spans()}
    assert set(made) == {f"ciphervec.{name}" for name in ("add", "query", "get", "delete")}
    query = made["ciphervec.query"]
    assert query.attributes["ciphervec.count"] == 2 and query.attributes["ciphervec.received"] > 0
    assert made["ciphervec.add"].attributes["ciphervec.sent"] > 30 * D
    assert not made["ciphervec.delete"].status.is_ok and query.status.is_unset
    # The server's spans are below the caller's.
    assert query.context.trace_id.to_bytes(16, "big") in served
    assert f"{query.context.trace_id:032x}" in "".join(parent or "" for parent in network.parents)
    assert b"scan" in served and b"POST /v1/collections/{name}/query" in served
    assert b"ciphervec.stage.duration" in measured
    shown = "".join(span.to_json() for span in spans.get_finished_spans()).encode()
    for secret in (b"planted", rows[0].tobytes(), rows[0].tobytes()[:8]):
        for told in (shown, served, measured):
            assert secret not in told


def test_nothing_is_told_unless_asked_for(tmp_path: Path, spans: Any, keys: Keys) -> None:
    rows = np.random.default_rng(3).standard_normal((30, D)).astype("f4")
    with LocalServer(tmp_path / "db") as server:
        network = Heard()
        with HttpClient(server.url, keys=keys, state=None, transport=network) as client:
            work(client, rows)
            assert not spans.get_finished_spans()
            trace_calls()
            client.get_collection("planted-collection").query(rows[0], 1)
        assert network.parents and set(network.parents) == {None}
    assert [span.name for span in spans.get_finished_spans()] == ["ciphervec.query"]
    with trace.get_tracer("app").start_as_current_span("theirs") as theirs:
        from ciphervec.ingest import spans as module

        module.note(1, 2, 3)
        assert not theirs.attributes, "a span of the application is its own"
