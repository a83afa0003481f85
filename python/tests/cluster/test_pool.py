"""Scanners on two nodes: bit for bit the answers of one process, while scanners die, states change, and
nodes come and go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec._native as native
from ciphervec import CiphervecError, Clusters, HttpClient, InvalidInput, Keys, ServerError
from ciphervec.http import LocalServer
from ciphervec.ray.placement import PoolTooSmall
from network import EPOCH, Wire
from ray_scenes import D, Owner, eventually, index_of, kill, processes

pytest.importorskip("ray.util", reason="Ray is not installed here; `make ray` has it in .venv-ray")

from ciphervec.ray import ScannerPool

Make = Callable[..., Owner]


@pytest.mark.parametrize("mode", ["open", "sealed-index", "sealed-query", "sealed"])
def test_answers_are_those_of_one_process(cluster: Any, owner: Make, mode: str) -> None:
    books = owner(mode)
    with ScannerPool.start(books.folder, "books") as pool:
        for query in (books.query(), books.query(3), books.query(2, "b")):
            answer = pool.answer(query)
            assert answer.data == books.index.evaluate(query)
            assert (answer.version, answer.head) == (books.version, books.store.head)
        held = [says["segments"] for says in pool.status()["scanners"].values()]
        assert len(held) == 2 and sum(held) == 5 and min(held) > 0
        if mode == "sealed":
            query = books.query()
            for damaged in (b"", query[:-1], query[:100] + b"x" + query[101:]):
                with pytest.raises(CiphervecError) as refused:
                    pool.answer(damaged)
                assert not isinstance(refused.value, ServerError)

            async def parts() -> list[bytes]:
                return [share async for share in pool.shares(query)]

            shares = asyncio.run(parts())
            assert len(shares) == 2
            merged = native.merge_responses(books.index.spec, query, books.index.segment_ids(), shares)
            assert merged == books.index.evaluate(query)


def test_memory_that_is_too_small_is_refused_or_read_around(cluster: Any, owner: Make) -> None:
    books = owner("sealed")
    total = books.index.nbytes
    with pytest.raises(PoolTooSmall, match=r"beyond_memory='read'"):
        ScannerPool.start(books.folder, "books", memory=total // 4)
    with pytest.raises(PoolTooSmall, match="to which Ray gives"):
        ScannerPool.start(books.folder, "books", memory=1 << 50)
    with pytest.raises(InvalidInput, match="needs memory="):
        ScannerPool.start(books.folder, "books", beyond_memory="read")
    with ScannerPool.start(books.folder, "books", memory=total // 4, beyond_memory="read") as pool:
        resident = [says["resident"] for says in pool.status()["scanners"].values()]
        assert sum(resident) < total * 0.6
        for query in (books.query(), books.query(2, "a")):
            assert pool.answer(query).data == books.index.evaluate(query)
        books.add(100)
        query = books.query()
        assert pool.answer(query).data == books.index.evaluate(query)


def test_scanners_that_are_killed_lose_no_answer(cluster: Any, owner: Make) -> None:
    books = owner("sealed")
    query = books.query(2)
    right = books.index.evaluate(query)
    done, wrong = [0], []
    stop = threading.Event()
    with ScannerPool.start(books.folder, "books") as pool:

        def ask() -> None:
            while not stop.is_set():
                try:
                    if pool.answer(query).data != right:
                        wrong.append("other bytes")
                except Exception as error:
                    wrong.append(repr(error))
                done[0] += 1

        asking = [threading.Thread(target=ask) for _ in range(2)]
        for thread in asking:
            thread.start()
        try:
            for turn in range(3):
                before = processes(pool)
                eventually(lambda: done[0] > 3 * (turn + 1))  # noqa: B023
                kill(before[turn % len(before)])
                count = done[0]
                eventually(lambda: done[0] > count + 4)  # noqa: B023
                eventually(lambda: len(processes(pool)) == 2 and processes(pool) != before)  # noqa: B023
        finally:
            stop.set()
            for thread in asking:
                thread.join()
    assert not wrong, wrong[:3]


def test_a_new_version_reaches_scanners_by_itself(cluster: Any, owner: Make) -> None:
    books = owner("sealed")
    with ScannerPool.start(books.folder, "books", every=0.2) as pool:
        books.add(300)
        books.books.delete([0, 1, 2])
        # Nobody asks.
        eventually(lambda: pool.status()["version"] == books.version, within=5)
        query = books.query()
        assert pool.answer(query).data == books.index.evaluate(query)
        # All segments are others, and an epoch is over.
        books.books.optimize()
        books.books.rotate_query_key()
        query = books.query()
        answer = pool.answer(query)
        assert (answer.data, answer.version) == (books.index.evaluate(query), books.version)
        # Who knows of a version waits for it, and not for ever.
        books.add(5)
        assert pool.answer(books.query(), at_least=books.version).version == books.version
    with (
        ScannerPool.start(books.folder, "books", patience=3.0) as pool,
        pytest.raises(ServerError, match=r"after 3 s not version 1000000"),
    ):
        pool.answer(query, at_least=1_000_000)


def test_a_query_sees_one_version_while_versions_change_and_scanners_die(cluster: Any, owner: Make) -> None:
    books = owner("sealed-index")
    query = books.query(2)
    states = {books.version: books.index}
    answers: list[Any] = []
    wrong: list[str] = []
    stop = threading.Event()
    with ScannerPool.start(books.folder, "books") as pool:

        def ask() -> None:
            while not stop.is_set():
                try:
                    answers.append(pool.answer(query))
                except Exception as error:
                    wrong.append(repr(error))

        asking = [threading.Thread(target=ask) for _ in range(2)]
        for thread in asking:
            thread.start()
        try:
            for turn in range(12):
                if turn % 4 == 3:
                    books.books.optimize()
                else:
                    books.add(20)
                states[books.version] = books.index
                count = len(answers)
                if turn in (2, 7):
                    kill(processes(pool)[0])
                eventually(lambda: len(answers) > count or bool(wrong))  # noqa: B023
            last = books.version
            eventually(lambda: bool(answers) and answers[-1].version == last)
        finally:
            stop.set()
            for thread in asking:
                thread.join()
    assert not wrong, wrong[:3]
    seen = {answer.version for answer in answers}
    assert len(seen) > 4
    for answer in answers:
        # `optimize` makes more than one commit; those in between are states as well.
        if answer.version in states:
            assert answer.data == states[answer.version].evaluate(query), answer.version


def test_a_cluster_that_has_no_room_is_a_server_error(cluster: Any, owner: Make) -> None:
    import ray

    class Full:
        """A scanner whose node's object store and disk are full."""

        def answer(self, version: int, query: bytes, token: str) -> Iterator[bytes]:
            yield query
            raise ray.exceptions.OutOfDiskError("Local disk is full")

    books = owner("sealed")
    with ScannerPool.start(books.folder, "books") as pool:
        query = books.query()
        pool.answer(query)
        assert pool._plan is not None
        full = ray.remote(num_cpus=0)(Full).remote()
        pool._plan = pool._plan._replace(scanners=[full])
        with pytest.raises(ServerError, match="OutOfDiskError: Local disk is full") as failed:
            pool.answer(query, at_least=0)
        assert type(failed.value) is ServerError


def test_nodes_come_and_go(cluster: Any, owner: Make) -> None:
    books = owner("sealed")
    query = books.query()
    right = books.index.evaluate(query)
    with ScannerPool.start(books.folder, "books", every=0.2) as pool:
        node = cluster.add_node(
            num_cpus=1, object_store_memory=100 << 20, include_dashboard=False, node_ip_address="127.0.0.1"
        )

        def shares() -> list[int]:
            return [says.get("segments", 0) for says in pool.status()["scanners"].values()]

        eventually(lambda: len(shares()) == 3 and min(shares()) > 0)
        assert pool.answer(query).data == right
        cluster.remove_node(node)
        assert pool.answer(query).data == right
        eventually(lambda: len(shares()) == 2 and sum(shares()) == 5)
        assert pool.answer(query).data == right


def test_routed_questions_are_answered_by_whoever_has_their_clusters(
    cluster: Any, keys: Keys, vectors: np.ndarray, tmp_path: Path
) -> None:
    wire = Wire()
    with (
        LocalServer(tmp_path / "db") as server,
        HttpClient(server.url, keys=keys, state=None, transport=wire) as client,
    ):
        books = client.create_collection("books", D, routing=Clusters(count=12, probes=2, decoys=2))
        books.add(list(range(3000)), vectors[:3000])
        books.recluster()
        books.add(list(range(3000, 3100)), vectors[3000:3100])

        def answers(pool: ScannerPool, count: int) -> list[bytes]:
            """Those to so many questions, which are what one process answers."""
            books.query(vectors[:count], 3)
            index = index_of(books, native.Store.open_read_only(str(tmp_path / "db" / "books")))
            found = []
            for query in wire.bodies[-count:]:
                epoch = int.from_bytes(query[EPOCH], "little")
                session = keys.evaluation(books, epoch=epoch).to_bytes()
                pool.put_keys(session)
                found.append(pool.answer(query).data)
                assert found[-1] == index.evaluate(query, index.session_keys(session))
            return found

        with ScannerPool.start(tmp_path / "db", "books", every=0.2) as pool:
            # Whichever clusters it asks for, the answer has one length.
            assert len({len(one) for one in answers(pool, 4)}) == 1 and len(wire.bodies) == 4
            books.recluster()
            answers(pool, 1)


def test_a_director_that_is_killed_finds_everything_out_again(cluster: Any, owner: Make) -> None:
    books = owner("sealed-index")
    with ScannerPool.start(books.folder, "books") as pool:
        query = books.query()
        right = books.index.evaluate(query)
        assert pool.answer(query).data == right
        kill(pool.status()["pid"])
        assert pool.answer(query).data == right
        books.add(10)
        query = books.query()
        assert pool.answer(query).data == books.index.evaluate(query)


def test_one_that_is_not_there(cluster: Any, tmp_path: Any) -> None:
    with pytest.raises(CiphervecError):
        ScannerPool.start(tmp_path, "books")
    with pytest.raises(InvalidInput, match="'refuse' or 'read'"):
        ScannerPool.start(tmp_path, "books", beyond_memory="perhaps")
