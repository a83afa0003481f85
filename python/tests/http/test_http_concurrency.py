"""Many threads, or one event loop, over HTTP: nothing is lost, nothing blocks, and what is
cancelled ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
from ciphervec import AsyncHttpClient, CollectionNotFound, DuplicateId, Keys
from network import D, Make


def test_queries_and_commits_of_many_threads(make: Make, rows: np.ndarray) -> None:
    """Whatever a query meets on the way, the rows that were there all along are found, and every
    commit counts."""
    first = make().create_collection("books", D)
    first.add([f"kept{i}" for i in range(20)], rows[:20])
    failures: list[BaseException] = []
    done = threading.Event()

    def write(number: int) -> None:
        mine = make().get_collection("books")
        for turn in range(6):
            mine.add([f"w{number}-{turn}-{i}" for i in range(2)], -rows[20 + 2 * number : 22 + 2 * number])
        mine.delete([f"w{number}-0-0", f"w{number}-1-1"])

    def ask(collection: ciphervec.Collection) -> None:
        while not done.is_set():
            found = collection.query(rows[[3, 9]], 1)["ids"]
            assert found == [["kept3"], ["kept9"]]

    def guarded(work: Callable[..., None], argument: Any) -> None:
        try:
            work(argument)
        except BaseException as error:
            failures.append(error)
            done.set()

    shared = make().get_collection("books")
    readers = [
        threading.Thread(target=guarded, args=(ask, one))
        for one in (shared, shared, make().get_collection("books"))
    ]
    writers = [threading.Thread(target=guarded, args=(write, number)) for number in range(3)]
    for thread in [*readers, *writers]:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert not failures, failures
    shared.refresh()
    assert shared.count() == 20 + 3 * 10


def test_a_collection_is_made_once(make: Make, rows: np.ndarray) -> None:
    clients = [make() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:  # raises what went wrong in a thread
        made = list(pool.map(lambda client: client.get_or_create_collection("books", D), clients))
    assert clients[0].list_collections() == ["books"]
    made[0].add("a", rows[0])
    assert all(one.query(rows[0], 1)["ids"] == [["a"]] for one in made)


def test_the_asynchronous_client_does_the_same(server_url: str, keys: Keys, rows: np.ndarray) -> None:
    async def everything() -> None:
        async with AsyncHttpClient(server_url, keys=keys, state=None) as client:
            assert await client.list_collections() == []
            books = await client.create_collection("books", D, filterable=["lang"])
            await books.add(
                list(range(40)),
                rows,
                [{"lang": "ab"[i % 2]} for i in range(40)],
                [f"page {i}" for i in range(40)],
            )
            assert (books.name, books.dimension, books.metric, books.mode, books.scheme) == (
                "books", D, "cosine", "sealed", "lattice",
            )  # fmt: skip
            assert books.filterable == ("lang",) and books.spec.collection == "books"
            found = await asyncio.gather(*(books.query(row, 1) for row in rows[:12]))
            assert [one["ids"] for one in found] == [[[i]] for i in range(12)]
            assert (await books.query(rows[3], 1, {"lang": "b"}, ["documents"]))["documents"] == [["page 3"]]
            assert await books.count() == 40 and await books.contains(5) and not await books.contains("5")
            await books.upsert(40, rows[0])
            await books.update(40, metadatas={"lang": "x"})
            assert (await books.get(where={"lang": "x"}))["ids"] == [40]
            assert (await books.peek(2))["ids"] == [0, 1]
            assert await books.delete([40]) == 1
            await books.optimize()
            await books.rotate_query_key()
            await books.refresh()
            assert (await books.info())["epoch"] == 1 and (await books.verify())["bytes"] > 0
            with pytest.raises(DuplicateId):
                await books.add(1, rows[0])
            assert "AsyncHttp" in repr(client) and "AsyncHttp" in repr(books)
            for thing in (client, books):
                with pytest.raises(TypeError, match="pickled"):
                    thing.__reduce__()
            await books.close()
            again = await client.get_or_create_collection("books", D, filterable=["lang"])
            assert await again.count() == 40
            await client.delete_collection("books")
            with pytest.raises(CollectionNotFound):
                await client.get_collection("books")

    asyncio.run(everything())


class Hanging(httpx.AsyncBaseTransport):
    """The real server, except that queries are never answered; counts those that were given up."""

    def __init__(self) -> None:
        self.inner = httpx.AsyncHTTPTransport()
        self.hanging = threading.Event()
        self.closed = threading.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/query"):
            return await self.inner.handle_async_request(request)
        self.hanging.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            self.closed.set()
            raise
        raise AssertionError("nobody waits that long")


def test_a_cancelled_call_closes_its_request(server_url: str, keys: Keys, rows: np.ndarray) -> None:
    async def cancel() -> None:
        network = Hanging()
        async with AsyncHttpClient(server_url, keys=keys, state=None, transport=network) as client:
            books = await client.create_collection("books", D)
            await books.add(list(range(10)), rows[:10])
            for _ in range(2):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(books.query(rows[0]), 0.5)
                loop = asyncio.get_running_loop()
                assert await loop.run_in_executor(None, network.closed.wait, 10)
                network.closed.clear()
            # The collection is as usable as before, and the loop was free all along.
            await books.add("later", rows[11])
            assert await books.count() == 11

    asyncio.run(cancel())


def test_the_callers_loop_stays_free(server_url: str, keys: Keys, vectors: Any) -> None:
    async def count_ticks() -> int:
        async with AsyncHttpClient(server_url, keys=keys, state=None) as client:
            books = await client.create_collection("books", 256)
            work = asyncio.ensure_future(books.add(list(range(4_000)), vectors(4_000, 256)))
            ticks = 0
            while not work.done():
                await asyncio.sleep(0.001)
                ticks += 1
            await work
            return ticks

    assert asyncio.run(count_ticks()) >= 5
