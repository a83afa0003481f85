"""A check that failed is remembered and told, whatever the server does with the rest of the answer, and whoever else asks."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from attacks import forged
from ciphervec import Client, Collection, HttpClient, Keys, PersistentClient
from ciphervec.collections.quarantine import Quarantine
from ciphervec.collections.stores.server_backend import Answer, LocalBackend
from ciphervec.errors import CiphervecError, Quarantined, RollbackDetected, StorageError, TamperedAnswer
from network import Faulty, Make

D = 16
HALF = 200
"""Rows of a segment: a block's, which are held against sums."""
ROWS = np.random.default_rng(3).standard_normal((2 * HALF, D)).astype(np.float32)
MODES = ("sealed", "sealed-query", "sealed-index")
ROW = 16 + 4 + 1 + 1
"""Bytes before a segment's answers, or its bitmap: its name, its rows, its level, whether it is filtered."""

Change = Callable[[bytes], bytes]


class Lies:
    """Changes answers to queries, and refuses commits, while it is told to."""

    def __init__(self) -> None:
        self.line = Faulty()
        self.line.fault = self._fault
        self.change: Change | None = None
        self.refuses = False

    def _fault(self, request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if self.refuses and request.url.path.endswith("/commits"):
            return httpx.Response(403, headers={"ciphervec-api": "1"}, json={"detail": "no"})
        answer = go()
        if self.change is None or not request.url.path.endswith("/query") or answer.status_code != 200:
            return answer
        kept = {
            k: v
            for k, v in answer.headers.items()
            if k.lower() not in ("content-length", "transfer-encoding")
        }
        return httpx.Response(200, headers=kept, content=self.change(answer.content))

    def asked(self) -> int:
        return self.line.paths("/query")


@pytest.fixture
def lies() -> Lies:
    return Lies()


def shifted(answer: bytes) -> bytes:
    at = len(answer) - 9
    return forged(answer, at, bytes(byte ^ 0x55 for byte in answer[at : at + 8]))


def fill(client: Client, mode: str, **more: Any) -> Collection:
    faces = client.create_collection("faces", D, mode=mode, originals=False, **more)
    for start in (0, HALF):
        faces.add(list(range(start, start + HALF)), ROWS[start : start + HALF])
    return faces


def everything(faces: Collection) -> list[Any]:
    return list(faces.query(ROWS[0], len(ROWS), audience="owner")["ids"][0])


@pytest.mark.parametrize("mode", MODES)
def test_what_another_client_found_is_not_passed_over(make: Make, lies: Lies, mode: str) -> None:
    """The answer's version tells the second client of the commit that names the segment: in the middle of its query."""
    first = fill(make(transport=lies.line), mode)
    second = make().get_collection("faces")
    assert len(everything(second)) == len(ROWS)
    lies.change = shifted
    with pytest.raises(TamperedAnswer):
        everything(first)
    with pytest.raises(Quarantined):
        everything(second)


def test_what_another_thread_found_is_not_passed_over(make: Make, lies: Lies) -> None:
    faces = fill(make(transport=lies.line), "sealed")
    everything(faces)
    go_on, late = threading.Event(), threading.Event()
    seen: list[object] = []

    def change(answer: bytes) -> bytes:
        if threading.current_thread().name == "late":
            late.set()
            go_on.wait(60)
            return answer
        return shifted(answer)

    def ask() -> None:
        try:
            seen.append(everything(faces))
        except CiphervecError as error:
            seen.append(error)

    lies.change = change
    thread = threading.Thread(target=ask, name="late")
    thread.start()
    late.wait(60)
    with pytest.raises(TamperedAnswer):
        everything(faces)
    go_on.set()
    thread.join()
    assert len(seen) == 1 and isinstance(seen[0], Quarantined)


@pytest.mark.parametrize("mode", MODES)
def test_damage_after_it_takes_nothing_back(make: Make, lies: Lies, mode: str) -> None:
    """Whether the first segment's answer holds its check would be told by an error about the second as often as
    the server likes."""
    faces = fill(make(transport=lies.line), mode)
    everything(faces)
    first, last = (one.id for one in faces._segments.entries())

    def change(answer: bytes) -> bytes:
        at = answer.index(last)
        if answer.index(first) > at:
            at = answer.index(first)
        answer = forged(answer, at, bytes(16))
        return forged(answer, at - 9, bytes(byte ^ 0x55 for byte in answer[at - 9 : at - 1]))

    lies.change = change
    with pytest.raises(TamperedAnswer):
        everything(faces)
    with pytest.raises(Quarantined):
        everything(faces)


def test_a_damaged_answer_is_not_opened(make: Make, lies: Lies) -> None:
    """Where all of it is there, its checksum comes first: nothing follows from what it would have opened to."""
    faces = fill(make(transport=lies.line), "sealed")
    lies.change = lambda answer: answer[:-9] + bytes(byte ^ 0x55 for byte in answer[-9:])
    for _ in range(2):
        with pytest.raises(CiphervecError, match="checksum"):
            everything(faces)
    assert faces.info()["quarantine"] == []


@pytest.mark.parametrize("mode", MODES)
def test_other_rows_than_those_of_the_filter_are_refused_hits_or_not(
    make: Make, lies: Lies, mode: str
) -> None:
    """Asking anew if one of them is among the hits tells how near it is: a comparison of the server's choice."""
    rng = np.random.default_rng(5)
    for name, near in (("near", True), ("far", False)):
        client = make(transport=lies.line)
        faces = client.create_collection(name, D, mode=mode, filterable=["team"])
        faces.add(
            list(range(40)), ROWS[:40], metadatas=[{"team": "a" if row < 20 else "b"} for row in range(40)]
        )
        (segment,) = faces._segments.entries()
        query = ROWS[25] if near else -ROWS[25] + 0.01 * rng.standard_normal(D).astype(np.float32)
        assert 25 not in faces.query(query, 3, where={"team": "a"}, audience="owner")["ids"][0]
        asked = lies.asked()

        def change(answer: bytes, segment: bytes = segment.id) -> bytes:
            at = answer.index(segment) + ROW + 25 // 8
            return forged(answer, at, bytes([answer[at] | 1 << 25 % 8]))

        lies.change = change
        with pytest.raises(TamperedAnswer):
            faces.query(query, 3, where={"team": "a"}, audience="owner")
        assert lies.asked() == asked + 1
        lies.change = None


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_the_filter_that_are_left_out_are_missed(make: Make, lies: Lies, mode: str) -> None:
    client = make(transport=lies.line)
    faces = client.create_collection("left", D, mode=mode, filterable=["team"])
    for start in (0, 20):
        teams = [{"team": "a" if row % 20 < 5 else "b"} for row in range(20)]
        faces.add(list(range(start, start + 20)), ROWS[start : start + 20], metadatas=teams)
    first, _ = (one.id for one in faces._segments.entries())

    def change(answer: bytes) -> bytes:
        at = answer.index(first) + ROW
        return forged(answer, at, bytes([answer[at] & ~1]))

    assert len(faces.query(ROWS[0], 40, where={"team": "a"}, audience="owner")["ids"][0]) == 10
    lies.change = change
    with pytest.raises(TamperedAnswer):
        faces.query(ROWS[39], 1, where={"team": "a"}, audience="owner")


def test_processes_that_share_a_state_folder_ask_no_more(
    server_url: str, tmp_path: Path, keys: Keys, lies: Lies
) -> None:
    """Where nothing can be committed, the file is what stops them, and without a refresh."""
    clients = [
        HttpClient(server_url, keys=keys, state=tmp_path / "state", transport=lies.line) for _ in range(4)
    ]
    fill(clients[0], "sealed")
    opened = [client.get_collection("faces") for client in clients]
    for faces in opened:
        everything(faces)
    lies.change, lies.refuses = shifted, True
    with pytest.raises(TamperedAnswer):
        everything(opened[0])
    asked = lies.asked()
    for faces in opened:
        with pytest.raises(Quarantined):
            everything(faces)
    assert lies.asked() == asked
    for client in clients:
        client.close()


@pytest.fixture
def tampering(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A server in this process that shifts scores while this holds True."""
    on = [False]
    honest = LocalBackend.evaluate

    def evaluate(backend: LocalBackend, query: bytes) -> Answer:
        answer = honest(backend, query)
        return answer._replace(data=shifted(answer.data)) if on[0] else answer

    monkeypatch.setattr(LocalBackend, "evaluate", evaluate)
    return on


def test_a_folder_that_takes_nothing_loses_nothing(
    tmp_path: Path, keys: Keys, tampering: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full, say: the owner's state has it, this object refuses, and the error is that of the answer."""
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = fill(client, "sealed")
        everything(faces)

        def full(*_: object) -> None:
            raise StorageError("no space left on device")

        tampering[0] = True
        with monkeypatch.context() as patch:
            patch.setattr(Quarantine, "_write", full)
            with pytest.raises(TamperedAnswer), pytest.warns(UserWarning, match="no space left"):
                everything(faces)
        tampering[0] = False
        for _ in range(2):
            with pytest.raises(Quarantined):
                everything(faces)
            faces.refresh()
    with PersistentClient(tmp_path / "db", keys) as client, pytest.raises(Quarantined):
        everything(client.get_collection("faces"))


def test_a_restore_takes_nothing_out_of_quarantine(
    tmp_path: Path, keys: Keys, tampering: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    with PersistentClient(tmp_path / "db", keys) as client:
        fill(client, "sealed")
    shutil.copytree(tmp_path / "db", tmp_path / "copy")
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.get_collection("faces")
        tampering[0] = True
        with pytest.raises(TamperedAnswer):
            everything(faces)
        tampering[0] = False
        (held,) = faces.info()["quarantine"]
    shutil.rmtree(tmp_path / "db")
    shutil.copytree(tmp_path / "copy", tmp_path / "db")
    with PersistentClient(tmp_path / "db", keys) as client:
        with pytest.raises(RollbackDetected):
            client.get_collection("faces")
        faces = client.accept_restore("faces")
        assert faces.info()["quarantine"] == [held]
        faces.release(held)
        assert len(everything(faces)) == len(ROWS)
    with PersistentClient(tmp_path / "db", keys) as client:
        assert client.get_collection("faces").info()["quarantine"] == []


def test_nothing_compressed_is_read(make: Make) -> None:
    """600 KB may become as many gigabytes as they like."""
    line = Faulty()
    faces = fill(make(transport=line), "sealed")
    bomb = gzip.compress(bytes(1 << 20))
    asked: list[str] = []

    def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        asked.append(request.headers["accept-encoding"])
        if not request.url.path.endswith("/query"):
            return answer
        return httpx.Response(
            200, headers={**answer.headers, "content-encoding": "gzip"}, stream=httpx.ByteStream(bomb)
        )

    line.fault = fault
    with pytest.raises(CiphervecError, match="compressed"):
        everything(faces)
    assert {*asked} == {"identity"}
