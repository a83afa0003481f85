"""Session keys on scanners: they answer the queries of the token that sent them, bit for bit as one process; a
scanner that has lost them, or came later, says so and gets them again; what a token may hold is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ciphervec import CorruptData, InvalidInput, Keys, WrongKey
from ciphervec.errors import TamperedAnswer
from network import SESSIONS
from ray_scenes import Owner, claiming, eventually, kill, processes, session_keys

pytest.importorskip("ray.util", reason="Ray is not installed here; `make ray` has it in .venv-ray")

from ciphervec.ray import OtherQueryKeys, QueryKeysMissing, ScannerPool

Make = Callable[..., Owner]


def held(pool: ScannerPool) -> list[int]:
    """Bytes of session keys of each scanner."""
    return [says["session_keys"] for says in pool.status()["scanners"].values() if "session_keys" in says]


def segments(pool: ScannerPool) -> list[int]:
    return [says.get("segments", 0) for says in pool.status()["scanners"].values()]


def asked(pool: ScannerPool, query: bytes, keys: bytes, token: str) -> bytes:
    """As a client does: who hears that the keys are missing sends them, and asks once more."""
    with pytest.raises(QueryKeysMissing):
        pool.answer(query, token=token)
    pool.put_keys(keys, token=token)
    return pool.answer(query, token=token).data


@pytest.mark.parametrize("mode", ["sealed", "sealed-query"])
def test_a_token_s_queries_are_answered_with_the_keys_that_it_sent(
    cluster: Any, owner: Make, mode: str
) -> None:
    books = owner(mode)
    query, keys = books.session(3)
    other = claiming(books.owner, 3)
    with ScannerPool.start(books.folder, "books") as pool:
        # Whoever is first is first in a place of its own.
        pool.put_keys(other, token="mallory")
        assert asked(pool, query, keys, token="alice") == books.right(query, keys)
        assert (
            pool.answer(query, token="mallory").data == books.right(query, other) != books.right(query, keys)
        )
        for who in ("bob", "-", ""):
            with pytest.raises(QueryKeysMissing, match=f"of session {SESSIONS + 3} from this token"):
                pool.answer(query, token=who)
        pool.put_keys(keys, token="alice")
        with pytest.raises(OtherQueryKeys, match=f"other evaluation keys of session {SESSIONS + 3}"):
            pool.put_keys(other, token="alice")
        assert pool.answer(query, token="alice").data == books.right(query, keys)
        with pytest.raises(QueryKeysMissing, match=str(SESSIONS + 4)):
            pool.answer(books.session(4)[0], token="alice")

        async def parts() -> int:
            return len([share async for share in pool.shares(query, token="alice")])

        assert asyncio.run(parts()) == 2
        # They are in no state: commits, also those of the collection's own query key, leave them.
        books.add(100)
        books.books.rotate_query_key()
        query, _ = books.session(3)
        answer = pool.answer(query, token="alice")
        assert (answer.data, answer.version) == (books.right(query, keys), books.version)
        books.books.optimize()
        query, _ = books.session(3)
        assert pool.answer(query, token="alice").data == books.right(query, keys)
        assert pool.answer(books.query()).version == books.version


def test_a_scanner_that_is_killed_gets_them_again(cluster: Any, owner: Make) -> None:
    books = owner()
    query, keys = books.session(3)
    right = books.right(query, keys)
    with ScannerPool.start(books.folder, "books", every=0.2) as pool:
        pool.put_keys(keys, token="alice")
        assert min(held(pool)) > 500_000
        for turn in range(2):
            before = processes(pool)
            kill(before[turn])
            assert asked(pool, query, keys, token="alice") == right
            eventually(lambda: len(processes(pool)) == 2 and set(processes(pool)) != set(before))  # noqa: B023
            assert pool.answer(query, token="alice").data == right
        kill(pool.status()["pid"])  # the director, which starts all scanners anew
        assert asked(pool, query, keys, token="alice") == right


def test_scanners_of_nodes_that_come_get_them_whoever_is_told(cluster: Any, owner: Make) -> None:
    """Fronts share scanners and no memory: one may know of a scanner that the other has not heard of."""
    books = owner()
    query, keys = books.session(3)
    right = books.right(query, keys)
    with ScannerPool.start(books.folder, "books", every=0.2) as pool:
        made, given = pool.__reduce__()
        other = made(*given)
        other.put_keys(keys, token="alice")
        assert pool.answer(query, token="alice").data == right
        node = cluster.add_node(
            num_cpus=1, object_store_memory=100 << 20, include_dashboard=False, node_ip_address="127.0.0.1"
        )
        try:
            eventually(lambda: len(segments(pool)) == 3 and min(segments(pool)) > 0)
            with pytest.raises(QueryKeysMissing):
                pool.answer(query, token="alice")
            # The other still knows two scanners of this very version.
            assert other._plan is not None and pool._plan is not None
            assert len(other._plan.everybody) == 2 and other._plan.version == pool._plan.version
            other.put_keys(keys, at_least=books.version, token="alice")
            assert min(held(pool)) > 500_000
            assert pool.answer(query, token="alice").data == right
        finally:
            cluster.remove_node(node)
        assert pool.answer(query, token="alice").data == right, "from those that had them all the time"


def test_scanners_that_hold_no_segment_have_them_too(cluster: Any, owner: Make) -> None:
    books = owner()
    books.books.optimize()
    assert len(books.index.segment_ids()) == 1
    query, keys = books.session(3)
    with ScannerPool.start(books.folder, "books") as pool:
        pool.put_keys(keys)
        assert pool._plan is not None and len(pool._plan.scanners) == 1
        assert len(held(pool)) == 2 and min(held(pool)) > 500_000
        assert pool.answer(query).data == books.right(query, keys)


def test_what_is_read_around_memory_is_answered_with_them(cluster: Any, owner: Make) -> None:
    books = owner()
    total = books.index.nbytes
    query, keys = books.session(3)
    with ScannerPool.start(books.folder, "books", memory=total // 4, beyond_memory="read") as pool:
        assert asked(pool, query, keys, token="alice") == books.right(query, keys)


def test_a_token_pushes_out_its_own_keys_only(cluster: Any, owner: Make) -> None:
    books = owner()
    query, keys = books.session(0)
    right = books.right(query, keys)
    with ScannerPool.start(books.folder, "books", memory=100 << 20) as pool:
        pool.put_keys(keys, token="alice")
        each = held(pool)[0]
        room = (8 << 20) // each  # 16 MiB at the least, of which a token has half
        mine = books.owner
        for number in range(room + 3):
            pool.put_keys(session_keys(mine, number), token="mallory")
        assert held(pool) == [each * (room + 1)] * 2
        assert pool.answer(query, token="alice").data == right
        for number in range(room + 3):
            asking = books.session(number)[0]
            if number < 3:
                with pytest.raises(QueryKeysMissing):
                    pool.answer(asking, token="mallory")
            else:
                assert pool.answer(asking, token="mallory").data
        # What was pushed out is sent again, and pushes out what was used longest ago.
        assert asked(pool, query, keys, token="mallory") == right
        with pytest.raises(QueryKeysMissing):
            pool.answer(books.session(3)[0], token="mallory")
        assert held(pool) == [each * (room + 1)] * 2


def test_forged_frames_are_refused(cluster: Any, owner: Make) -> None:
    books = owner()
    mine = books.owner
    keys = session_keys(mine, 3)
    stranger = type(mine)(Keys.generate(), books.books.spec)
    with ScannerPool.start(books.folder, "books") as pool:
        cases: list[tuple[bytes, type[Exception], str]] = [
            (b"", CorruptData, "."),
            (b"no keys", CorruptData, "."),
            (keys[:-1], CorruptData, "."),
            (keys[:200] + bytes([keys[200] ^ 1]) + keys[201:], CorruptData, "."),
            (mine.evaluation().to_bytes(), InvalidInput, "the epoch of a session's evaluation keys"),
            (session_keys(stranger, 3), WrongKey, "."),
        ]
        for bad, kind, says in cases:
            with pytest.raises(kind, match=says):
                pool.put_keys(bad, token="mallory")
        assert held(pool) == [0, 0]
        # What can't be told from keys answers nobody but its sender, who finds it worth nothing.
        query = mine.query(books.vectors[:1], epoch=SESSIONS + 3)
        pool.put_keys(claiming(mine, 3), token="mallory")
        with pytest.raises(TamperedAnswer):
            mine.open(query, pool.answer(query.to_bytes(), token="mallory").data)
    plain = owner("sealed-index")
    with ScannerPool.start(plain.folder, "books") as pool, pytest.raises(InvalidInput):
        pool.put_keys(keys)
