"""Clients that cluster one collection at once, over a server that may lie: rows are there once, or the call is refused."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import ciphervec
from ciphervec import Collection, Conflict, HttpClient
from ciphervec.collections.routing import recluster
from ciphervec.errors import RollbackDetected
from ciphervec.http import LocalServer
from network import Faulty
from routing_scenes import blobs, filled

Making = recluster._Making
N = 200


class Killed(BaseException):
    """The process ends."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with LocalServer(tmp_path / "db") as server:
        yield server


def client(server: LocalServer, keys: ciphervec.Keys, net: Faulty | None = None) -> HttpClient:
    return HttpClient(server.url, keys=keys, state=None, transport=net)


def killed_at(step: str, collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cluster, and be killed when that step begins."""

    def end(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, contextlib.suppress(Killed):
        patch.setattr(Making, step, end)
        collection.recluster()


def between(
    monkeypatch: pytest.MonkeyPatch, step: str, collection: Collection, meanwhile: Callable[[], None]
) -> None:
    """Have something happen before the first such step of this client."""
    real, left = getattr(Making, step), [1]

    def late(self: Any, *given: object) -> object:
        if self._segments is collection._segments and left.pop() if left else False:
            meanwhile()
        return real(self, *given)

    monkeypatch.setattr(Making, step, late)


def whole(server: LocalServer, keys: ciphervec.Keys, expected: int) -> None:
    with client(server, keys) as fresh:
        routed = fresh.get_collection("routed")
        found = routed.get(include=["documents"])
        assert routed.count() == len(set(found["ids"])) == expected
        assert sum(text is not None for text in found["documents"]) == N
        assert routed.query(blobs(N)[9], 1, audience="owner")["ids"] == [["id9"]]


def test_what_another_client_has_begun_since_does_not_count(
    server: LocalServer, keys: ciphervec.Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is empty: all rows were lost where it did."""
    with client(server, keys) as one, client(server, keys) as two:
        mine = filled(one, blobs(N))
        theirs = two.get_collection("routed")

        def meanwhile() -> None:
            theirs.recluster()
            theirs.add(["late"], blobs(1, 4))
            killed_at("_stage", theirs, monkeypatch)

        between(monkeypatch, "_switch", mine, meanwhile)
        with pytest.raises(Conflict):
            mine.recluster()
    whole(server, keys, N + 1)


def test_two_clients_that_go_on_with_one_plan_make_each_cluster_once(
    server: LocalServer, keys: ciphervec.Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client(server, keys) as one, client(server, keys) as two:
        mine = filled(one, blobs(N))
        theirs = two.get_collection("routed")
        between(monkeypatch, "_add", theirs, lambda: killed_at("_switch", mine, monkeypatch))
        with pytest.raises(Conflict):
            theirs.recluster()
        assert mine.count() == theirs.count() == N
    whole(server, keys, N)
    with client(server, keys) as three:
        three.get_collection("routed").recluster()
    whole(server, keys, N)


def _undocumented(one: dict[str, Any]) -> None:
    one["blobs"].pop("records")


def _thinned(one: dict[str, Any]) -> None:
    one["deleted"] = [0, 1, 2]


@pytest.mark.parametrize("lie", [_undocumented, _thinned])
def test_clusters_count_only_as_they_were_stored(
    server: LocalServer, keys: ciphervec.Keys, monkeypatch: pytest.MonkeyPatch, lie: Callable[[Any], None]
) -> None:
    """No state names them while they are being made; the one that lets them count would authenticate what a server shows."""
    with client(server, keys) as one:
        begun = filled(one, blobs(N))
        before = {segment.id.hex() for segment in begun._segments.entries()}
        killed_at("_switch", begun, monkeypatch)
    net = Faulty()

    def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        if request.method != "GET" or not answer.headers.get("content-type", "").startswith(
            "application/json"
        ):
            return answer
        told = answer.json()
        for segment in told.get("segments", []):
            if segment["id"] not in before:
                lie(segment)
        kept = {k: v for k, v in answer.headers.items() if k.lower() != "content-length"}
        return httpx.Response(answer.status_code, headers=kept, content=json.dumps(told).encode())

    net.fault = fault
    with client(server, keys, net) as two, pytest.raises(RollbackDetected):
        two.get_collection("routed").recluster()
    whole(server, keys, N)
