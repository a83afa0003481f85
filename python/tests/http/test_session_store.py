"""Session keys in a server's place, without Ray: they answer the queries of the token that sent them, forged frames are
refused, and a token pushes out nobody's keys but its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ciphervec import CorruptData, InvalidInput, Keys, Owner, WrongKey, _native
from network import SESSIONS, D
from ray_scenes import claiming, session_keys

SPEC = _native.IndexSpec("books", D, "cosine", "sealed")


@pytest.fixture
def rows(vectors: Callable[..., np.ndarray]) -> np.ndarray:
    """So many that answering takes key switches: those of few rows are the same whatever the keys."""
    return vectors(2000, D)


@pytest.fixture
def owner(keys: Keys) -> Owner:
    return Owner(keys, SPEC)


@pytest.fixture
def index(owner: Owner, rows: np.ndarray) -> _native.ServerIndex:
    made = _native.ServerIndex(SPEC)
    made.set_evaluation_keys(owner.evaluation().to_bytes())
    made.add(owner.seal(list(range(len(rows))), rows).segment)
    return made


def test_a_query_is_answered_with_the_keys_of_its_session(
    owner: Owner, index: _native.ServerIndex, rows: np.ndarray
) -> None:
    query = owner.query(rows[:2], epoch=SESSIONS + 3)
    data = query.to_bytes()
    assert index.session_of(data) == SESSIONS + 3
    assert index.session_of(owner.query(rows[:1], epoch=0).to_bytes()) is None
    assert index.session_of(b"") is None
    with pytest.raises(InvalidInput, match="no evaluation keys of epoch"):
        index.evaluate(data)
    keys = index.session_keys(session_keys(owner, 3))
    assert keys.epoch == SESSIONS + 3
    assert [one.ids for one in owner.open(query, index.evaluate(data, keys), 1)] == [[0], [1]]
    with pytest.raises(InvalidInput, match="no evaluation keys of epoch"):
        index.evaluate(data, index.session_keys(session_keys(owner, 4)))
    # They are in no state of the index.
    assert index.to_bytes() == index.copy().to_bytes()
    with pytest.raises(InvalidInput, match="no evaluation keys of epoch"):
        index.evaluate(data)


def test_keys_answer_the_token_that_sent_them(
    owner: Owner, index: _native.ServerIndex, rows: np.ndarray
) -> None:
    """It fails when the token is left out of what the store files keys under."""
    store = _native.SessionStore(0)
    own = index.session_keys(session_keys(owner, 3))
    other = index.session_keys(claiming(owner, 3))
    assert store.put("mallory", SPEC, other), "who was first is first in a place of its own"
    assert store.get("alice", SPEC, SESSIONS + 3) is None
    assert store.put("alice", SPEC, own)
    assert store.put("alice", SPEC, index.session_keys(session_keys(owner, 3))), "the same again"
    assert not store.put("alice", SPEC, other), "never replaced"
    data = owner.query(rows[:1], epoch=SESSIONS + 3).to_bytes()
    for who, keys in (("alice", own), ("mallory", other)):
        found = store.get(who, SPEC, SESSIONS + 3)
        assert index.evaluate(data, found) == index.evaluate(data, keys)
    assert index.evaluate(data, own) != index.evaluate(data, other)
    elsewhere = _native.IndexSpec("papers", D, "cosine", "sealed")
    for who, spec, session in (("bob", SPEC, 3), ("alice", elsewhere, 3), ("alice", SPEC, 4)):
        assert store.get(who, spec, SESSIONS + session) is None
    assert store.nbytes > 2 * 500_000


def test_a_token_pushes_out_its_own_keys_only(owner: Owner, index: _native.ServerIndex) -> None:
    store = _native.SessionStore(0)  # 16 MiB, of which a token has half
    keys = [index.session_keys(session_keys(owner, number)) for number in range(30)]
    assert store.put("alice", SPEC, keys[0])
    each = store.nbytes
    room = (8 << 20) // each
    assert 5 < room < 20
    for one in keys:
        assert store.put("mallory", SPEC, one)
        assert store.nbytes <= each + (8 << 20)
    held = [store.get("mallory", SPEC, one.epoch) is not None for one in keys]
    assert held == [False] * (30 - room) + [True] * room
    assert store.get("alice", SPEC, SESSIONS) is not None
    for one in keys:
        assert store.put(store.ANYONE, SPEC, one)
    assert store.nbytes <= 16 << 20
    assert store.get("alice", SPEC, SESSIONS) is not None, "who holds most makes room"


def test_forged_frames_are_refused(owner: Owner, index: _native.ServerIndex, keys: Keys) -> None:
    good = session_keys(owner, 3)
    stranger = Owner(Keys.generate(), SPEC)
    elsewhere = Owner(keys, _native.IndexSpec("papers", D, "cosine", "sealed"))
    cases: list[tuple[bytes, type[Exception], str]] = [
        (b"", CorruptData, "."),
        (good[:-1], CorruptData, "."),
        (good + b"\0", CorruptData, "."),
        (good[:200] + bytes([good[200] ^ 1]) + good[201:], CorruptData, "."),
        (owner.evaluation().to_bytes(), InvalidInput, "the epoch of a session's evaluation keys"),
        (session_keys(stranger, 3), WrongKey, "."),
        (session_keys(elsewhere, 3), InvalidInput, "another index"),
    ]
    for bad, kind, says in cases:
        with pytest.raises(kind, match=says):
            index.session_keys(bad)
    plain = _native.ServerIndex(_native.IndexSpec("plain", D, "cosine", "sealed-index"))
    with pytest.raises(InvalidInput):
        plain.session_keys(good)
    assert plain.session_of(owner.query(np.ones((1, D), np.float32), epoch=SESSIONS).to_bytes()) is None
