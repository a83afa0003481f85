"""Quarantine: a segment whose answer fails its check is named, passed over, remembered, and kept from being sealed again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from attacks import forged
from ciphervec.collections.stores.server_backend import Answer, LocalBackend
from ciphervec.errors import InvalidInput, TamperedAnswer

D = 16
ROWS = np.random.default_rng(3).standard_normal((40, D)).astype(np.float32)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


class Tampering:
    """A server that shifts the first row of the first segment in its answers, while it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on = False
        honest = LocalBackend.evaluate

        def evaluate(backend: LocalBackend, query: bytes) -> Answer:
            answer = honest(backend, query)
            at = 64 + 17 + 22  # the frame's header, the answer's head, the segment's
            shifted = bytes([answer.data[at] ^ 1])
            return answer._replace(data=forged(answer.data, at, shifted)) if self.on else answer

        monkeypatch.setattr(LocalBackend, "evaluate", evaluate)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tampering]:
    yield Tampering(monkeypatch)


def fill(client: ciphervec.Client) -> ciphervec.Collection:
    faces = client.create_collection("faces", D, mode="sealed-index", originals=False)
    faces.add(list(range(20)), ROWS[:20])
    faces.add(list(range(20, 40)), ROWS[20:])
    return faces


def found(collection: ciphervec.Collection) -> list[Any]:
    return list(collection.query(ROWS[:1], n_results=40)["ids"][0])


def test_a_shifted_answer_costs_the_segment(tmp_path: Path, server: Tampering, state: Path) -> None:
    keys = ciphervec.Keys.generate()
    with ciphervec.PersistentClient(tmp_path / "db", keys=keys) as client:
        faces = fill(client)
        first = faces.info()
        assert first["quarantine"] == [] and first["old_kind"] == [] and first["unchecked_blocks"] == 0
        assert len(found(faces)) == 40 and not (state / "quarantine").exists()
        server.on = True
        with pytest.raises(TamperedAnswer, match="was not computed from what was sealed there") as error:
            found(faces)
        (segment,) = error.value.segments
        assert faces.info()["quarantine"] == [segment.hex()] and segment.hex() in str(error.value)
        # From now on its answers are not looked at, and everybody is told.
        with pytest.warns(UserWarning, match="are in quarantine and were passed over"):
            assert found(faces) and all(name >= 20 for name in found(faces))
        with pytest.raises(InvalidInput, match="is in quarantine"):
            faces.get([0], include=["embeddings"])
        assert faces.get([0])["ids"] == [0] and len(faces) == 40
    # Not after a restart either, with an honest server.
    server.on = False
    with ciphervec.PersistentClient(tmp_path / "db", keys=keys) as client:
        faces = client.get_collection("faces")
        with pytest.warns(UserWarning, match="in quarantine"):
            assert all(name >= 20 for name in found(faces))
        faces.delete([25])
        faces.optimize()
        assert segment.hex() in faces.info()["quarantine"], "it is not sealed again"
        with pytest.raises(InvalidInput, match="not in quarantine"):
            faces.release("00" * 16)
        faces.release(segment.hex())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(found(faces)) == 39
        assert faces.info()["quarantine"] == []
    with ciphervec.PersistentClient(tmp_path / "db", keys=keys) as client:
        assert len(found(client.get_collection("faces"))) == 39


def test_in_memory_it_ends_with_the_process(server: Tampering, state: Path) -> None:
    faces = fill(ciphervec.Client())
    server.on = True
    with pytest.raises(TamperedAnswer):
        found(faces)
    with pytest.warns(UserWarning, match="in quarantine"):
        assert len(found(faces)) == 20
    assert not state.exists()


def test_changed_words_are_found_when_they_are_decrypted() -> None:
    faces = fill(ciphervec.Client())
    owner, segment = faces.owner, faces.server.segment_ids()[0]
    stored = faces.server.segment(segment)
    rows = owner.unseal(stored)
    with pytest.raises(TamperedAnswer):
        owner.unseal(forged(stored, 200, bytes([stored[200] ^ 1])))
    np.testing.assert_array_equal(owner.unseal(stored), rows)


def test_what_goes_unchecked_is_counted() -> None:
    faces = fill(ciphervec.Client())
    faces.delete([3, 30])
    assert faces.info()["unchecked_blocks"] == 0
    faces.optimize()
    assert faces.info()["unchecked_blocks"] == 0
    # The ring form has no checks, and none to count.
    ring = ciphervec.Client().create_collection("ring", D)
    ring.add([1], ROWS[:1])
    assert ring.info()["unchecked_blocks"] == 0 and ring.info()["old_kind"] == []
