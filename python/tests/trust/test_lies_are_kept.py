"""A check that failed is remembered and told, whatever the server does with the rest of the answer, and whoever else asks."""

from __future__ import annotations

import gzip
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from attacks import forged
from ciphervec import Client, Collection, HttpClient, Keys, PersistentClient
from ciphervec.errors import CiphervecError, Quarantined, RollbackDetected, TamperedAnswer
from liar import Altered, other_words, shown
from network import Faulty, Make

D = 16
HALF = 200
"""Rows of a segment: a block's, which are held against sums."""
ROWS = np.random.default_rng(3).standard_normal((2 * HALF, D)).astype(np.float32)
MODES = ("sealed", "sealed-query", "sealed-index")
ROW = 16 + 4 + 1 + 1
"""Bytes before a segment's answers, or its bitmap: its name, its rows, its level, whether it is filtered."""


@pytest.fixture
def lies() -> Altered:
    return Altered()


def shifted(_: bytes, answer: bytes) -> bytes:
    at = len(answer) - 9
    return forged(answer, at, bytes(byte ^ 0x55 for byte in answer[at : at + 8]))


def fill(client: Client, mode: str, **more: Any) -> Collection:
    faces = client.create_collection("faces", D, mode=mode, originals=False, **more)
    for start in (0, HALF):
        faces.add(list(range(start, start + HALF)), ROWS[start : start + HALF])
    return faces


def segments(client: HttpClient, name: str = "faces") -> list[bytes]:
    """Their ids, as the server has them."""
    return [bytes.fromhex(one["id"]) for one in shown(client.url, name)[0]["segments"]]


def everything(faces: Collection) -> list[Any]:
    return list(faces.query(ROWS[0], len(ROWS), audience="owner")["ids"][0])


@pytest.mark.parametrize("mode", MODES)
def test_what_another_client_found_is_not_passed_over(make: Make, lies: Altered, mode: str) -> None:
    """The answer's version tells the second client of the commit that names the segment: in the middle of its query."""
    first = fill(make(transport=lies), mode)
    second = make().get_collection("faces")
    assert len(everything(second)) == len(ROWS)
    lies.change = shifted
    with pytest.raises(TamperedAnswer):
        everything(first)
    with pytest.raises(Quarantined):
        everything(second)


def test_what_another_thread_found_is_not_passed_over(make: Make, lies: Altered) -> None:
    faces = fill(make(transport=lies), "sealed")
    everything(faces)
    go_on, late = threading.Event(), threading.Event()
    seen: list[object] = []

    def change(query: bytes, answer: bytes) -> bytes:
        if threading.current_thread().name == "late":
            late.set()
            go_on.wait(60)
            return answer
        return shifted(query, answer)

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
def test_damage_after_it_takes_nothing_back(make: Make, lies: Altered, mode: str) -> None:
    """Whether the first segment's answer holds its check would be told by an error about the second as often as
    the server likes."""
    client = make(transport=lies)
    faces = fill(client, mode)
    everything(faces)
    first, last = segments(client)

    def change(query: bytes, answer: bytes) -> bytes:
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


def test_a_damaged_answer_is_not_opened(make: Make, lies: Altered) -> None:
    """Where all of it is there, its checksum comes first: nothing follows from what it would have opened to."""
    faces = fill(make(transport=lies), "sealed")
    lies.change = lambda _, answer: answer[:-9] + bytes(byte ^ 0x55 for byte in answer[-9:])
    for _ in range(2):
        with pytest.raises(CiphervecError, match="checksum"):
            everything(faces)
    assert faces.info()["quarantine"] == []


@pytest.mark.parametrize("mode", MODES)
def test_other_rows_than_those_of_the_filter_are_refused_hits_or_not(
    make: Make, lies: Altered, mode: str
) -> None:
    """Asking anew if one of them is among the hits tells how near it is: a comparison of the server's choice."""
    rng = np.random.default_rng(5)
    for name, near in (("near", True), ("far", False)):
        client = make(transport=lies)
        faces = client.create_collection(name, D, mode=mode, filterable=["team"])
        faces.add(
            list(range(40)), ROWS[:40], metadatas=[{"team": "a" if row < 20 else "b"} for row in range(40)]
        )
        (segment,) = segments(client, name)
        query = ROWS[25] if near else -ROWS[25] + 0.01 * rng.standard_normal(D).astype(np.float32)
        assert 25 not in faces.query(query, 3, where={"team": "a"}, audience="owner")["ids"][0]
        asked = lies.paths("/query")

        def change(_: bytes, answer: bytes, segment: bytes = segment) -> bytes:
            at = answer.index(segment) + ROW + 25 // 8
            return forged(answer, at, bytes([answer[at] | 1 << 25 % 8]))

        lies.change = change
        with pytest.raises(TamperedAnswer):
            faces.query(query, 3, where={"team": "a"}, audience="owner")
        assert lies.paths("/query") == asked + 1
        lies.change = None


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_the_filter_that_are_left_out_are_missed(make: Make, lies: Altered, mode: str) -> None:
    client = make(transport=lies)
    faces = client.create_collection("left", D, mode=mode, filterable=["team"])
    for start in (0, 20):
        teams = [{"team": "a" if row % 20 < 5 else "b"} for row in range(20)]
        faces.add(list(range(start, start + 20)), ROWS[start : start + 20], metadatas=teams)
    first, _ = segments(client, "left")

    def change(query: bytes, answer: bytes) -> bytes:
        at = answer.index(first) + ROW
        return forged(answer, at, bytes([answer[at] & ~1]))

    assert len(faces.query(ROWS[0], 40, where={"team": "a"}, audience="owner")["ids"][0]) == 10
    lies.change = change
    with pytest.raises(TamperedAnswer):
        faces.query(ROWS[39], 1, where={"team": "a"}, audience="owner")


def test_processes_that_share_a_state_folder_ask_no_more(
    server_url: str, tmp_path: Path, keys: Keys, lies: Altered
) -> None:
    """Where nothing can be committed, the file is what stops them, and without a refresh."""
    clients = [HttpClient(server_url, keys=keys, state=tmp_path / "state", transport=lies) for _ in range(4)]
    fill(clients[0], "sealed")
    opened = [client.get_collection("faces") for client in clients]
    for faces in opened:
        everything(faces)
    lies.change, lies.refuses = shifted, True
    with pytest.raises(TamperedAnswer):
        everything(opened[0])
    asked = lies.paths("/query")
    for faces in opened:
        with pytest.raises(Quarantined):
            everything(faces)
    assert lies.paths("/query") == asked
    for client in clients:
        client.close()


def test_a_state_folder_that_takes_nothing_loses_nothing(make: Make, lies: Altered, tmp_path: Path) -> None:
    """The disk is full, say: the owner's state has it, this client refuses, and the error is that of the answer."""
    faces = fill(make(transport=lies), "sealed")
    everything(faces)
    shutil.rmtree(tmp_path / "state0" / "quarantine", ignore_errors=True)
    (tmp_path / "state0" / "quarantine").write_text("no folder")
    lies.change = shifted
    with (
        pytest.raises(TamperedAnswer),
        pytest.warns(UserWarning, match="quarantine could not be written down"),
    ):
        everything(faces)
    lies.change = None
    for _ in range(2):
        with pytest.raises(Quarantined):
            everything(faces)
        faces.refresh()
    with pytest.raises(Quarantined):
        everything(make().get_collection("faces"))


def test_a_restore_takes_nothing_out_of_quarantine(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    with PersistentClient(tmp_path / "db", keys) as client:
        client.create_collection("faces", D, originals=False).add(list(range(HALF)), ROWS[:HALF])
    shutil.copytree(tmp_path / "db", tmp_path / "copy")
    other_words(tmp_path / "db" / "faces")
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.get_collection("faces")
        with pytest.raises(TamperedAnswer):
            everything(faces)
        (held,) = faces.info()["quarantine"]
    shutil.rmtree(tmp_path / "db")
    shutil.copytree(tmp_path / "copy", tmp_path / "db")
    with PersistentClient(tmp_path / "db", keys) as client:
        with pytest.raises(RollbackDetected):
            client.get_collection("faces")
        faces = client.accept_restore("faces")
        assert faces.info()["quarantine"] == [held]
        faces.release(held)
        assert len(everything(faces)) == HALF
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
