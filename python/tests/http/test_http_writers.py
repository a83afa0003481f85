"""Writers and new keys over a real server on loopback: what is added with a token that only writes
is found by the owner."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from ciphervec import (
    Client,
    HttpClient,
    InvalidInput,
    Keys,
    PinMismatch,
    Writer,
    WrittenBatch,
    WrongKey,
)
from ciphervec.errors import AuthenticationError, CollectionNotFound
from ciphervec.http import LocalServer
from program import token

Rows = Callable[..., np.ndarray]
D = 8


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with LocalServer(tmp_path / "data") as running:
        yield running


@pytest.mark.parametrize(
    ("mode", "scheme"), [("sealed", "lattice"), ("sealed-index", "lattice"), ("sealed-index", "elgamal")]
)
def test_writers_and_rotation_over_a_server(
    tmp_path: Path, server: LocalServer, keys: Keys, vectors: Rows, mode: str, scheme: str
) -> None:
    rows = vectors(12, D)
    state = tmp_path / "state"
    with HttpClient(server.url, keys=keys, state=state) as client:
        collection = client.create_collection("doors", D, mode=mode, scheme=scheme, filterable=["n"])
        collection.add(range(4), rows[:4], [{"n": 0}] * 4)
        writer = Writer(collection.writer_card("door"))
        batch = writer.seal(range(3, 8), rows[3:8], [{"n": 1}] * 5)
        writer.send(server.url, batch)
        writer.send(server.url, batch)  # as after a lost answer: known by its key
        collection.refresh()
        assert collection.info()["writers"] == {"door": 5} and collection.info()["shadowed"] == 0
        assert collection.info()["ignored"] == {3: 1}, "the owner has authenticated another row under it"
        assert collection.query(rows[:8], 1)["ids"] == [[i] for i in range(8)]
        assert sorted(collection.get(where={"n": 1})["ids"], key=int) == [4, 5, 6, 7]
        new = Keys.generate()
        collection.rotate_keys(new)
        assert collection.query(rows[:8], 1)["ids"] == [[i] for i in range(8)]
        assert collection.info()["writers"] == {} and collection.info()["rotation"] is None
    with HttpClient(server.url, keys=new, state=state) as client:
        collection = client.get_collection("doors")
        collection.add(8, rows[8], [{"n": 2}])
        assert collection.query(rows[:9], 1)["ids"] == [[i] for i in range(9)]
        assert collection.get(where={"n": 2})["ids"] == [8]
    with HttpClient(server.url, keys=keys, state=state) as client, pytest.raises(WrongKey):
        client.get_collection("doors")


def test_others_are_told_that_the_keys_changed(
    tmp_path: Path, server: LocalServer, keys: Keys, vectors: Rows
) -> None:
    new = Keys.generate()
    with (
        HttpClient(server.url, keys=keys, state=tmp_path / "one") as client,
        HttpClient(server.url, keys=new, state=tmp_path / "two") as other,
    ):
        made = client.create_collection("doors", D, mode="sealed-index")
        made.add([1], vectors(1, D))
        with HttpClient(server.url, keys=keys, state=tmp_path / "two") as before:
            before.get_collection("doors")
        made.rotate_keys(new)
        with (
            HttpClient(server.url, keys=keys, state=tmp_path / "two") as before,
            pytest.raises(PinMismatch, match="open it with the new ones"),
        ):
            before.get_collection("doors")
        # What was seen is encrypted under the keys before, so that the new ones can't compare it.
        with pytest.raises(PinMismatch, match=r"confirm that .*client\.forget\('doors'\)"):
            other.get_collection("doors")
        other.forget("doors")
        assert other.get_collection("doors").count() == 1
        with HttpClient(server.url, keys=new, state=tmp_path / "two") as again, warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            assert again.get_collection("doors").count() == 1, "asked once"
        with (
            HttpClient(server.url, keys=keys, state=tmp_path / "two") as before,
            pytest.raises(WrongKey),
        ):
            before.get_collection("doors")


def test_new_keys_of_a_scheme_with_key_pairs_are_confirmed(
    tmp_path: Path, server: LocalServer, keys: Keys, vectors: Rows
) -> None:
    new = Keys.generate()
    with (
        HttpClient(server.url, keys=keys, state=tmp_path / "one") as client,
        HttpClient(server.url, keys=new, state=tmp_path / "two") as other,
    ):
        made = client.create_collection("doors", D, mode="sealed-index", scheme="elgamal")
        made.add([1], vectors(1, D))
        with HttpClient(server.url, keys=keys, state=tmp_path / "two") as before:
            before.get_collection("doors")
        made.rotate_keys(new)
        with pytest.raises(PinMismatch, match=r"confirm that .*client\.forget\('doors'\)"):
            other.get_collection("doors")
        other.forget("doors")
        assert other.get_collection("doors").count() == 1


def test_a_token_that_only_adds_is_enough_and_does_nothing_else(
    tmp_path: Path, keys: Keys, vectors: Rows
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    admin, append = token(data, "doors", "admin"), token(data, "doors", "append")
    rows = vectors(3, D)
    with (
        LocalServer(data) as server,
        HttpClient(server.url, admin, keys=keys, state=tmp_path / "state") as client,
    ):
        collection = client.create_collection("doors", D, mode="sealed-index")
        writer = Writer(collection.writer_card())
        writer.add_to(server.url, [1, 2], rows[:2], token=append)
        collection.refresh()
        assert collection.query(rows[:2], 1)["ids"] == [[1], [2]]
        with pytest.raises(AuthenticationError):
            writer.add_to(server.url, [3], rows[2], token="cv1_" + "x" * 43)
        bearer = {"Authorization": f"Bearer {append}"}
        for path in ("", "/attachments/evaluation"):
            reply = httpx.get(f"{server.url}/v1/collections/doors{path}", headers=bearer)
            assert reply.status_code == 403, path
        with pytest.raises((InvalidInput, AuthenticationError, CollectionNotFound)):
            Writer(_card(keys, "elsewhere")).add_to(server.url, [3], rows[2], token=append)


def _card(keys: Keys, name: str) -> bytes:
    return Client(keys=keys).create_collection(name, D).writer_card().to_bytes()


def test_every_segment_of_a_batch_is_a_commit(
    tmp_path: Path, server: LocalServer, keys: Keys, vectors: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ciphervec.writer.writer._REQUEST_BYTES", 4096)
    rows = vectors(400, D)
    with HttpClient(server.url, keys=keys, state=tmp_path / "state") as client:
        collection = client.create_collection("doors", D, mode="sealed-index")
        writer = Writer(collection.writer_card())
        batch = writer.seal(range(400), rows)
        assert len(batch.segments) == 7 and json.dumps(batch.rows) == "400"
        writer.send(server.url, batch)
        writer.send(server.url, batch)
        collection.refresh()
        assert collection.count() == 400 and collection.query(rows[399], 1)["ids"] == [[399]]


_SENDER = """
import sys
import ciphervec

url, card, batch = sys.argv[1:]
print("go", flush=True)
ciphervec.Writer(card).send(url, ciphervec.WrittenBatch.load(batch))
print("sent", flush=True)
"""


@pytest.mark.slow
def test_a_kept_batch_that_died_on_its_way_arrives_exactly_once(
    tmp_path: Path, server: LocalServer, keys: Keys, vectors: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of many commits, kept in files, by senders that are killed anywhere; others send the file again, also after the
    owner took the rows over."""
    monkeypatch.setattr("ciphervec.writer.writer._REQUEST_BYTES", 4096)
    random = np.random.default_rng(3)
    rows = vectors(400, D)
    (tmp_path / "sender.py").write_text(_SENDER)

    def send(batch: Path, after: float | None) -> bool:
        command = [
            sys.executable,
            str(tmp_path / "sender.py"),
            server.url,
            str(tmp_path / "card"),
            str(batch),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
            assert sender.stdout is not None and sender.stdout.readline() == "go\n"
            if after is not None:
                time.sleep(after)
                sender.kill()
            return sender.stdout.read() == "sent\n"

    with HttpClient(server.url, keys=keys, state=tmp_path / "state") as client:
        collection = client.create_collection("doors", D, mode="sealed-index")
        (tmp_path / "card").write_bytes(collection.writer_card("door").to_bytes())
        writer = Writer(tmp_path / "card")
        for turn in range(4):
            name = tmp_path / f"batch {turn}"
            writer.seal(range(400 * turn, 400 * turn + 400), rows).save(name)
            send(name, float(random.uniform(0, 0.1)))
            collection.refresh()
            arrived = collection.count() - 400 * turn
            assert 0 <= arrived <= 400
            assert send(name, None)
            collection.refresh()
            assert collection.count() == 400 * (turn + 1) and collection.info()["shadowed"] == 0
        # In this process, where the place to die at can be chosen: after each of the seven commits.
        for died in range(7):
            fresh = writer.seal(range(10_000 + 400 * died, 10_400 + 400 * died), rows)
            before = collection.count()
            for new in fresh.segments[: died + 1]:
                writer.send(server.url, WrittenBatch([new]))
            kept = WrittenBatch.from_bytes(fresh.to_bytes())
            assert kept.key == fresh.key
            writer.send(server.url, kept)
            collection.refresh()
            assert collection.count() == before + 400
        # What the owner took over, under other segments, is known by its key.
        count = collection.count()
        collection.adopt()
        writer.send(server.url, kept)
        collection.refresh()
        assert collection.count() == count and collection.info()["writers"] == {}
        assert sorted(collection.query(rows[7], 11)["ids"][0]) == sorted(
            [400 * turn + 7 for turn in range(4)] + [10_007 + 400 * died for died in range(7)]
        )
