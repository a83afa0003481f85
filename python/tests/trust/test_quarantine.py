"""Quarantine: a segment whose answer fails its check is named and remembered, for every client of its owner's, and
queries are refused until it is released or made anew."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from attacks import forged
from ciphervec.errors import InvalidInput, Quarantined, TamperedAnswer
from liar import Altered, other_words
from network import Make

D = 16
ROWS = np.random.default_rng(3).standard_normal((40, D)).astype(np.float32)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def fill(client: ciphervec.Client, *, originals: bool = False) -> ciphervec.Collection:
    faces = client.create_collection("faces", D, mode="sealed-index", originals=originals)
    faces.add(list(range(20)), ROWS[:20])
    faces.add(list(range(20, 40)), ROWS[20:])
    return faces


def found(collection: ciphervec.Collection, **more: Any) -> list[Any]:
    return list(collection.query(ROWS[:1], n_results=40, **more)["ids"][0])


def test_words_that_were_changed_stop_the_queries(tmp_path: Path, state: Path) -> None:
    keys, folder = ciphervec.Keys.generate(), tmp_path / "db" / "faces"
    with ciphervec.PersistentClient(tmp_path / "db", keys=keys) as client:
        faces = fill(client)
        first = faces.info()
        assert first["quarantine"] == [] and first["old_kind"] == [] and first["unchecked_blocks"] == 0
        assert len(found(faces)) == 40 and not list(state.glob("quarantine/*"))
    other_words(folder, first=True)
    with ciphervec.PersistentClient(tmp_path / "db", keys=keys) as client:
        faces = client.get_collection("faces")
        with pytest.raises(TamperedAnswer, match="was not computed from what was sealed there") as error:
            found(faces)
        (segment,) = error.value.segments
        assert faces.info()["quarantine"] == [segment.hex()] and segment.hex() in str(error.value)
        # From now on nothing is asked, and nothing is left out unless the caller says so.
        with pytest.raises(Quarantined, match=segment.hex()) as refused:
            found(faces)
        assert refused.value.segments == (segment,)
        with pytest.warns(UserWarning, match=f"in quarantine and were passed over: {segment.hex()}"):
            assert all(name >= 20 for name in found(faces, skip_quarantined=True))
        with pytest.raises(InvalidInput, match="is in quarantine"):
            faces.get([0], include=["embeddings"])
        assert faces.get([0])["ids"] == [0] and len(faces) == 40
    # Not after a restart either, with honest words, nor for another user of the keys, whose state folder is another.
    other_words(folder, first=True)
    for remembers in (state, tmp_path / "another"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CIPHERVEC_STATE", str(remembers))
            with ciphervec.PersistentClient(tmp_path / "db", keys=keys) as client:
                faces = client.get_collection("faces")
                with pytest.raises(Quarantined):
                    found(faces)
                with pytest.raises(Quarantined):
                    faces.query(ROWS[0], within=0.1)
    with ciphervec.PersistentClient(tmp_path / "db", keys=keys) as client:
        faces = client.get_collection("faces")
        faces.delete([25])
        faces.optimize()
        assert segment.hex() in faces.info()["quarantine"], (
            "its vectors were not kept: it is not sealed again"
        )
        with pytest.raises(InvalidInput, match="not in quarantine"):
            faces.release("00" * 16)
        faces.release(segment.hex())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(found(faces)) == 39
        assert faces.info()["quarantine"] == []
    with ciphervec.PersistentClient(tmp_path / "db", keys=keys) as client:
        assert len(found(client.get_collection("faces"))) == 39


def test_optimize_makes_it_anew_of_the_vectors_that_were_kept(tmp_path: Path) -> None:
    """Not of its words, which were changed and stay so."""
    keys = ciphervec.Keys.generate()
    with ciphervec.PersistentClient(tmp_path / "db", keys=keys) as client:
        fill(client, originals=True)
    other_words(tmp_path / "db" / "faces", first=True)
    with ciphervec.PersistentClient(tmp_path / "db", keys=keys) as client:
        faces = client.get_collection("faces")
        with pytest.raises(TamperedAnswer):
            found(faces)
        with pytest.raises(Quarantined):
            found(faces)
        faces.delete(range(20, 40))
        faces.optimize()
        assert faces.info()["quarantine"] == [] and found(faces)[0] == 0 and len(found(faces)) == 20


def lying(answered: list[bool]) -> Altered:
    """A server that shifts the first row of the first segment while `answered[0]`."""

    def change(_: bytes, answer: bytes) -> bytes:
        at = 64 + 17 + 22  # the frame's header, the answer's head, the segment's
        return forged(answer, at, bytes([answer[at] ^ 1])) if answered[0] else answer

    return Altered(change)


def test_a_client_that_keeps_nothing_says_it_in_the_state(make: Make, state: Path) -> None:
    on = [True]
    faces = fill(make(state=None, transport=lying(on)))
    with pytest.raises(TamperedAnswer):
        found(faces)
    on[0] = False
    with pytest.raises(Quarantined):
        found(faces)
    with pytest.warns(UserWarning, match="in quarantine"):
        assert len(found(faces, skip_quarantined=True)) == 20
    assert not state.exists()


def test_every_client_of_the_owners_sees_it(make: Make) -> None:
    on = [True]
    faces = fill(make(transport=lying(on)))
    other = make(state=None).get_collection("faces")
    assert len(found(other)) == 40
    with pytest.raises(TamperedAnswer) as error:
        found(faces)
    (segment,) = error.value.segments
    other.refresh()
    with pytest.raises(Quarantined, match=segment.hex()):
        found(other)
    with pytest.warns(UserWarning, match="in quarantine"):
        assert len(found(other, skip_quarantined=True)) == 20, "the state is durable for it"
    on[0] = False
    other.release(segment.hex())
    faces.refresh()
    assert faces.info()["quarantine"] == [] and len(found(faces)) == 40


@pytest.mark.parametrize("kept", [True, False])
def test_who_may_not_commit_keeps_it_or_takes_it_for_all(make: Make, tmp_path: Path, kept: bool) -> None:
    """A client that can neither tell the others nor remember it takes one failure for the whole collection."""
    on = [True]
    owner = fill(make())
    net = lying(on)
    net.refuses = True
    state = tmp_path / "reader" if kept else None
    faces = make(state=state, transport=net).get_collection("faces")
    with pytest.raises(TamperedAnswer):
        found(faces)
    on[0] = False
    with pytest.raises(Quarantined):
        found(faces)
    if kept:
        with pytest.warns(UserWarning, match="in quarantine"):
            assert len(found(faces, skip_quarantined=True)) == 20
        later = make(state=state, transport=net).get_collection("faces")
        with pytest.raises(Quarantined):
            found(later)
        make(state=state).get_collection("faces").upsert(0, ROWS[0])  # who may commit tells the others
        owner.refresh()
        with pytest.raises(Quarantined):
            found(owner)
    else:
        with pytest.raises(Quarantined, match="one failure counts for the whole collection"):
            found(faces, skip_quarantined=True)


def test_changed_words_are_found_when_they_are_decrypted() -> None:
    spec = ciphervec.IndexSpec("faces", D, "cosine", "sealed-index")
    owner = ciphervec.Owner(ciphervec.Keys.generate(), spec)
    stored = bytes(owner.seal(list(range(20)), ROWS[:20]).segment)
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
