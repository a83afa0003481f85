"""A process that forks: the child repeats nothing of its parent's, and works or says why not, whatever the parent has used."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import additive, ckks
from ciphervec.additive import NoisePool, damgard_jurik, elgamal, okamoto_uchiyama, paillier
from ciphervec.errors import PoolExhausted, StoreLocked
from forks import PATIENCE, begun, child
from network import Make

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

D = 32


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, D)).astype(np.float32)


SCHEMES: dict[str, Callable[[], additive.KeyPair]] = {
    "paillier": lambda: paillier.generate(2048),
    "damgard-jurik": lambda: damgard_jurik.generate(2048),
    "okamoto-uchiyama": lambda: okamoto_uchiyama.generate(2048),
}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_noise_pool_serves_the_process_that_filled_it(scheme: str) -> None:
    keys = SCHEMES[scheme]()
    pool = NoisePool(keys)
    pool.fill(4)
    kept = pool._native  # of which somebody kept hold

    def inherited() -> bytes:
        assert len(pool) == 0 and len(kept) == 0
        with pytest.raises(PoolExhausted, match="0 elements"):
            pool.encrypt(np.array([1]))
        for use in (
            lambda: kept.encrypt(1, 1, 1, (1).to_bytes(8, "little")),
            lambda: kept.fill(1),
            lambda: kept.save("pool"),
        ):
            with pytest.raises(ciphervec.InvalidInput, match="fork"):
                use()
        # And of its own it has as many as it likes.
        pool.fill(2)
        assert len(pool) == 2
        return pool.encrypt(np.array([4242])).to_bytes(rerandomise=False)

    sealed = [child(inherited), child(lambda: child(inherited))]
    assert len(pool) == 4
    sealed.append(pool.encrypt(np.array([4242])).to_bytes(rerandomise=False))
    # One message under one noise is one ciphertext.
    assert len(set(sealed)) == 3
    for one in sealed:
        assert keys.decrypt(keys.public.array_from_bytes(one))[0] == 4242


def test_the_difference_of_two_messages_is_not_in_two_processes_ciphertexts() -> None:
    """The attacker's arithmetic: with one noise, the quotient of both ciphertexts is 1 + n (m - m')."""
    keys = paillier.generate(2048)
    pool = NoisePool(keys)
    pool.fill(4)

    def encrypt(message: int) -> bytes:
        if not len(pool):
            pool.fill(1)
        return pool.encrypt(np.array([message])).to_bytes(rerandomise=False)

    data = [child(lambda: encrypt(4242)), child(lambda: encrypt(98_765)), encrypt(1000)]
    public = keys.public.to_bytes()
    n = int.from_bytes(public[70 : 70 + 256], "little")
    assert n.bit_length() == 2048
    numbers = [
        int.from_bytes(one[-512:-256], "little") + n * int.from_bytes(one[-256:], "little") for one in data
    ]
    for first in numbers:
        for second in numbers:
            if first != second:
                assert first * pow(second, -1, n * n) % (n * n) % n != 1
    assert numbers[0] * pow(numbers[0], -1, n * n) % (n * n) % n == 1


def elgamal_array() -> None:
    keys = elgamal.generate()
    x = np.arange(50)
    assert (keys.decrypt(keys.encrypt(x) + keys.encrypt(x)) == 2 * x).all()


def paillier_vectors() -> None:
    keys = paillier.generate(2048)
    gallery = keys.encrypt_vectors(rows(3))
    assert len(gallery.to_bytes()) > 0


def collection_in_memory() -> None:
    for mode in ("sealed", "sealed-index", "sealed-query", "open"):
        made = ciphervec.Client().create_collection("a", D, mode=mode)
        use(made)


def use(made: Any) -> None:
    vectors = rows(600, 1)
    made.add(range(600), vectors, documents=[f"document {row}" for row in range(600)])
    made.delete(ids=[5])
    made.add(range(600, 660), rows(60, 2))
    made.optimize()
    assert made.query(vectors[7:8], n_results=1)["ids"] == [[7]]
    assert made.get(ids=[7], include=["documents"])["documents"] == ["document 7"]


def ckks_arrays() -> None:
    context = ckks.Context.for_depth(1, precision_bits=20, sums=D)
    x = rows(2).astype(float)
    a, b = (context.encrypt(one) for one in x)
    assert abs(context.decrypt(a @ b) - x[0] @ x[1]) < 1e-2
    assert abs(context.decrypt(context.array_from_bytes((a @ b).to_bytes())) - x[0] @ x[1]) < 1e-2
    sent = ckks.PublicContext.from_bytes(context.public().to_bytes())
    assert sent.key_id == context.key_id


def writer_and_files() -> None:
    keys = ciphervec.Keys.generate()
    made = ciphervec.Client(keys).create_collection("a", D)
    card = ciphervec.WriterCard.from_bytes(made.writer_card("device").to_bytes())
    ciphervec.Writer(card).seal(range(300), rows(300))
    index = ciphervec.Index(D)
    index.add(range(300), rows(300))
    assert index.search(rows(300)[3], 1).ids == [3]


def nearest(x: Any, y: Any) -> Any:
    return (x * y).sum() + x[0]


def programs() -> None:
    plan = ciphervec.program(nearest).compile(x=ciphervec.secret(16, bits=4), y=ciphervec.secret(16, bits=4))
    holder = plan.client()
    server = plan.server(holder.evaluation_keys())
    x, y = np.arange(16), np.arange(16)[::-1]
    assert holder.decrypt(server.run(holder.encrypt(x=x, y=y).values())) == nearest(x, y)


USES: dict[str, Callable[[], None]] = {
    "elgamal": elgamal_array,
    "paillier vectors": paillier_vectors,
    "collections": collection_in_memory,
    "writer and files": writer_and_files,
    "ckks": ckks_arrays,
    "programs": programs,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", USES)
def test_a_child_does_what_its_parent_has_done(name: str) -> None:
    """The threads that the parent computed with are not there; whoever waited for them would wait for ever."""
    USES[name]()
    child(USES[name])
    child(lambda: child(USES[name]))
    USES[name]()


def test_a_collection_in_memory_goes_on_apart_in_both() -> None:
    made = ciphervec.Client().create_collection("a", D)
    vectors = rows(2000)
    made.add(range(2000), vectors)
    made.query(vectors[:1])

    def goes_on() -> None:
        assert made.query(vectors[3:4], n_results=1)["ids"] == [[3]]
        made.add(range(2000, 2300), rows(300, 3))
        made.optimize()
        assert made.count() == 2300

    for _ in range(2):
        child(goes_on)
    assert made.count() == 2000
    made.add([2000], rows(1, 4))
    assert made.query(rows(1, 4), n_results=1)["ids"] == [[2000]]


@pytest.fixture
def folder(tmp_path: Path, keys: ciphervec.Keys) -> Iterator[tuple[Path, Any]]:
    with ciphervec.PersistentClient(tmp_path / "db", keys=keys) as client:
        made = client.create_collection("a", D)
        made.add(range(600), rows(600))
        made.query(rows(1))
        yield tmp_path / "db", client


def test_a_fork_reads_a_folder_and_leaves_writing_to_its_parent(
    folder: tuple[Path, Any], keys: ciphervec.Keys
) -> None:
    path, client = folder
    made = client.get_collection("a")

    def reads() -> None:
        assert made.query(rows(600)[3:4], n_results=1)["ids"] == [[3]]
        assert made.count() == 600
        for change in (
            lambda: made.add([600], rows(1, 2)),
            lambda: made.delete(ids=[3]),
            made.optimize,
            lambda: client.delete_collection("a"),
        ):
            with pytest.raises(StoreLocked):
                change()
        with pytest.raises(StoreLocked), ciphervec.PersistentClient(path, keys=keys) as other:
            other.get_collection("a").add([600], rows(1, 2))
        client.close()  # and gives nobody the parent's lock

    child(reads)
    with pytest.raises(StoreLocked), ciphervec.PersistentClient(path, keys=keys) as other:
        other._alone = True  # as one of another process is
        other.get_collection("a").add([600], rows(1, 2))
    made.add([600], rows(1, 2))
    assert made.count() == 601
    client.close()

    def writes() -> None:
        with ciphervec.PersistentClient(path, keys=keys) as own:
            own.get_collection("a").add([601], rows(1, 3))

    child(writes)
    with ciphervec.PersistentClient(path, keys=keys) as again:
        assert again.get_collection("a").count() == 602


@pytest.mark.slow
def test_a_fork_has_connections_of_its_own(make: Make) -> None:
    client = make()
    made = client.create_collection("forked", D)
    vectors = rows(600)
    made.add(range(600), vectors)
    made.query(vectors[:1])
    made.prefetch(2)

    def asks() -> None:
        for row in range(5):
            assert made.query(vectors[row : row + 1], n_results=1)["ids"] == [[row]]
        made.add([f"{os.getpid()} at {time.monotonic_ns()}"], rows(1, os.getpid()))

    def thrice() -> None:
        for _ in range(3):
            asks()

    # At once, over what would be one socket.
    end = begun(thrice)
    for row in range(30):
        assert made.query(vectors[row : row + 1], n_results=1)["ids"] == [[row]]
    end()
    child(lambda: child(asks))
    assert make().get_collection("forked").count() == 600 + 4


@pytest.mark.slow
def test_a_fork_of_coroutines_has_threads_and_connections_of_its_own(server_url: str) -> None:
    client = ciphervec.AsyncHttpClient(server_url, keys=ciphervec.Keys.generate(), state=None)
    vectors = rows(600)

    async def asks(made: Any) -> None:
        found = await asyncio.gather(*(made.query(vectors[row : row + 1], n_results=1) for row in range(8)))
        assert [one["ids"] for one in found] == [[[row]] for row in range(8)]

    async def begins() -> Any:
        made = await client.create_collection("coroutines", D)
        await made.add(range(600), vectors)
        await asks(made)
        return made

    made = asyncio.run(begins())
    end = begun(lambda: asyncio.run(asks(made)))
    asyncio.run(asks(made))
    end()
    child(lambda: child(lambda: asyncio.run(asks(made))))
    asyncio.run(client.close())


@pytest.mark.parametrize(
    "call",
    [
        "add",
        "snapshot",
    ],
)
def test_locks_that_the_parents_threads_held_are_open_in_a_child(
    folder: tuple[Path, Any], tmp_path: Path, call: str
) -> None:
    """A thread is in the middle of a call, with what its client and the collection hold meanwhile."""
    _, client = folder
    made = client.get_collection("a")
    held, go_on = threading.Event(), threading.Event()

    def hold(*_: object) -> None:
        held.set()
        go_on.wait(PATIENCE)

    calls = {
        "add": lambda: made.add(range(600, 700), rows(100, 2), progress=hold),
        "snapshot": lambda: client.snapshot("a", tmp_path / "copy", progress=hold),
    }
    thread = threading.Thread(target=calls[call])
    thread.start()
    held.wait(PATIENCE)
    try:

        def asks() -> None:
            assert client.get_collection("a").query(rows(1), n_results=1)["ids"] == [[0]]

        child(asks, 20)
    finally:
        go_on.set()
        thread.join()
    assert made.count() == (700 if call == "add" else 600)
