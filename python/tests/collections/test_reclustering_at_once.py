"""Clients that cluster one collection at once, over a server that may lie: rows are there once, or the call is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import ciphervec
from ciphervec import Conflict, HttpClient
from ciphervec.errors import RollbackDetected
from ciphervec.http import LocalServer
from liar import shown
from network import Faulty, Stop, dying
from routing_scenes import blobs, filled

N = 200


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with LocalServer(tmp_path / "db") as server:
        yield server


def client(server: LocalServer, keys: ciphervec.Keys, net: Faulty | None = None) -> HttpClient:
    return HttpClient(server.url, keys=keys, state=None, transport=net)


def killed_at(commit: int, server: LocalServer, keys: ciphervec.Keys) -> None:
    """Cluster, and be killed before that commit is sent: the first says what is made, then come the clusters, and the last
    lets them count."""
    with client(server, keys, dying(commit, acted=False)) as other, pytest.raises(Stop):
        other.get_collection("routed").recluster()


def before(commit: int, meanwhile: Callable[[], None]) -> Faulty:
    """Have something happen before that commit is sent, once."""
    net, left = Faulty(), [commit]

    def late(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        left[0] -= request.url.path.endswith("/commits")
        if left[0] == 0:
            left[0] = -1
            meanwhile()
        return go()

    net.fault = late
    return net


def whole(server: LocalServer, keys: ciphervec.Keys, expected: int) -> None:
    with client(server, keys) as fresh:
        routed = fresh.get_collection("routed")
        found = routed.get(include=["documents"])
        assert routed.count() == len(set(found["ids"])) == expected
        assert sum(text is not None for text in found["documents"]) == N
        assert routed.query(blobs(N)[9], 1, audience="owner")["ids"] == [["id9"]]


def test_what_another_client_has_begun_since_does_not_count(
    server: LocalServer, keys: ciphervec.Keys
) -> None:
    """It is empty: all rows were lost where it did."""
    with client(server, keys) as one:
        theirs = filled(one, blobs(N))

        def meanwhile() -> None:
            theirs.recluster()
            theirs.add(["late"], blobs(1, 4))
            killed_at(2, server, keys)

        with client(server, keys, before(3, meanwhile)) as two, pytest.raises(Conflict):
            two.get_collection("routed").recluster()
    whole(server, keys, N + 1)


def test_two_clients_that_go_on_with_one_plan_make_each_cluster_once(
    server: LocalServer, keys: ciphervec.Keys
) -> None:
    with (
        client(server, keys) as one,
        client(server, keys, before(2, lambda: killed_at(2, server, keys))) as two,
    ):
        mine = filled(one, blobs(N))
        theirs = two.get_collection("routed")
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
    server: LocalServer, keys: ciphervec.Keys, lie: Callable[[Any], None]
) -> None:
    """No state names them while they are being made; the one that lets them count would authenticate what a server shows."""
    with client(server, keys) as one:
        filled(one, blobs(N))
    there = {segment["id"] for segment in shown(server.url, "routed")[0]["segments"]}
    killed_at(3, server, keys)
    net = Faulty()

    def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        if request.method != "GET" or not answer.headers.get("content-type", "").startswith(
            "application/json"
        ):
            return answer
        told = answer.json()
        for segment in told.get("segments", []):
            if segment["id"] not in there:
                lie(segment)
        kept = {k: v for k, v in answer.headers.items() if k.lower() != "content-length"}
        return httpx.Response(answer.status_code, headers=kept, content=json.dumps(told).encode())

    net.fault = fault
    with client(server, keys, net) as two, pytest.raises(RollbackDetected):
        two.get_collection("routed").recluster()
    whole(server, keys, N)
