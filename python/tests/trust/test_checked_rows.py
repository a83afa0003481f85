"""A server that says which rows are gone, leaves rows out, shifts them, or answers another question, in mode
`sealed-index`: what is checked does not rest on its word, through deletions and updates too."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
from attacks import TILE, forged
from ciphervec import Client, Collection, HttpClient, Keys
from ciphervec.collections.batch import WriteBatch
from ciphervec.errors import TamperedAnswer
from ciphervec.http import LocalServer
from ciphervec.http.frame import encode

D, N = 64, 300
SCALE = 2**15.4
ADMIN, GONE = 7, 5
WORDS = 64 + 8 + 4 + 1 + 4 + 22  # where the words of an answer about one segment begin
ROWS = np.random.default_rng(2).standard_normal((N, D)).astype(np.float32)
Rows = Callable[..., np.ndarray]


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def resealed(frame: bytes) -> bytes:
    """With the length and checksum that fit."""
    head = bytearray(frame[:64])
    struct.pack_into("<Q", head, 24, len(frame) - 64)
    return forged(bytes(head) + frame[64:], 64, b"")


def table(frame: bytes) -> np.ndarray:
    """A segment's words, row by row."""
    flat, words = np.frombuffer(frame[128:], "<u4"), np.empty((N, D), np.int64)
    for start in range(0, N, TILE):
        tile = min(TILE, N - start)
        words[start : start + tile] = flat[start * D : (start + tile) * D].reshape(D, tile).T
    return words


def framed(frame: bytes, words: np.ndarray, gone: int | None) -> bytes:
    """The segment with other words, and without row `gone`, as servers of release 0.1 marked that."""
    kept = words if gone is None else np.delete(words, gone, 0)
    kept = kept % 2**32
    body = b"".join(kept[a : a + TILE].T.astype("<u4").tobytes() for a in range(0, len(kept), TILE))
    head = bytearray(frame[:128])
    if gone is None:
        return resealed(bytes(head) + body)
    there = np.ones(N, np.uint8)
    there[gone] = 0
    bitmap = np.packbits(there, bitorder="little").tobytes()
    head[64 + 29] = 1
    struct.pack_into("<I", head, 64 + 32, N - 1)
    return resealed(bytes(head) + bitmap + bytes(-len(bitmap) % 64) + body)


class Keeper(httpx.HTTPTransport):
    """A server that hands out a segment whose row of the admin's is moved from a probe of his, which this mode shows, to a face
    of its own; without row `gone`, of which it says that it was deleted."""

    def __init__(self, probe: np.ndarray, face: np.ndarray, gone: int | None) -> None:
        super().__init__()
        self.on = False
        self._shift = np.rint(SCALE * face).astype(np.int64) - np.rint(SCALE * probe).astype(np.int64)
        self._gone = gone

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        listing = self.on and request.method == "GET" and request.url.path.endswith("/faces")
        if listing:
            request.headers.pop("if-none-match", None)
        reply = super().handle_request(request)
        if listing and self._gone is not None:  # lengths of blobs are the server's own word
            whole, without = 128 + N * D * 4, 128 + 64 + (N - 1) * D * 4
            text = reply.read().decode()
            return self._answer(reply, text.replace(str(whole), str(without)).encode())
        if self.on and request.method == "GET" and request.url.path.endswith("/rows"):
            frame = reply.read()
            words = table(frame)
            words[ADMIN] += self._shift
            return self._answer(reply, framed(frame, words, self._gone))
        return reply

    @staticmethod
    def _answer(reply: httpx.Response, body: bytes) -> httpx.Response:
        dropped = ("content-length", "transfer-encoding")
        headers = {name: value for name, value in reply.headers.items() if name.lower() not in dropped}
        return httpx.Response(200, headers=headers, content=body)


@pytest.mark.parametrize("gone", [None, GONE], ids=["whole", "a row left out"])
@pytest.mark.parametrize("deleted", [False, True], ids=["all live", "one deleted"])
@pytest.mark.parametrize("whose", ["owner", "writer"])
def test_rows_that_a_server_changes_are_not_sealed_again(
    tmp_path: Path, keys: Keys, whose: str, deleted: bool, gone: int | None
) -> None:
    """Neither `optimize`, nor `adopt` for rows of a writer's, nor `get` takes them."""
    rng = np.random.default_rng(3)
    probe, face = unit(ROWS[ADMIN] + 0.25 * rng.standard_normal(D)), unit(rng.standard_normal(D))
    evil = Keeper(probe, face, gone)
    with (
        LocalServer(tmp_path / "db") as server,
        HttpClient(server.url, keys=keys, state=None) as client,
        HttpClient(server.url, keys=keys, state=None, transport=evil) as meets,
    ):
        originals = {} if whose == "writer" else {"originals": False}
        faces = client.create_collection("faces", D, mode="sealed-index", **originals)
        names = [f"p{i}" for i in range(N)]
        if whose == "writer":
            sealed = ciphervec.Writer(faces.writer_card("door").to_bytes()).seal(names, ROWS)
            body = encode(WriteBatch(add=list(sealed.segments)))
            headers = {"Content-Type": "application/octet-stream"}
            url = f"{server.url}/v1/collections/faces/commits"
            httpx.post(url, content=body, headers=headers, trust_env=False).raise_for_status()
            faces.refresh()
        else:
            faces.add(names, ROWS)
        if deleted:
            faces.delete([f"p{GONE}"])
        evil.on = True
        faces = meets.get_collection("faces")
        with pytest.raises(TamperedAnswer):
            if whose == "writer":
                faces.adopt()
            else:
                faces.optimize(reseal=True)
        assert len(faces.info()["quarantine"]) == 1 and faces.info()["unchecked_blocks"] == 0
        with pytest.raises(ciphervec.InvalidInput, match="in quarantine"):
            faces.get([f"p{ADMIN}"], include=["embeddings"])
        evil.on = False
        faces.release(faces.info()["quarantine"][0])
        found = faces.query(np.stack([probe, face]).astype(np.float32), 1, include=["scores"])
        assert found["ids"][0] == [f"p{ADMIN}"] and found["scores"][1][0] < 0.6


def asked(collection: Collection, row: np.ndarray) -> tuple[Any, bytes]:
    query = collection.make_query(row)
    return query, collection.evaluate(query.to_bytes())


def refused(collection: Collection, query: Any, lie: bytes) -> None:
    """The answer fails its check; its segment is used again then."""
    with pytest.raises(TamperedAnswer):
        collection.open_answer(query, lie, 1)
    for segment in collection.info()["quarantine"]:
        collection.release(segment)


def shifted(answer: bytes, by: dict[int, int | None]) -> bytes:
    """An answer about one segment with some rows' words moved, or left out."""
    for row, one in by.items():
        at = WORDS + 4 * row
        word = 0 if one is None else (struct.unpack_from("<I", answer, at)[0] + one) % 2**32
        answer = forged(answer, at, struct.pack("<I", word))
    return answer


@pytest.mark.parametrize("rows", [10, N], ids=["a check a row", "sums"])
def test_a_deletion_ends_no_check(rows: int) -> None:
    """A server that left the deleted row out could shift scores of its block unseen, after any update too."""
    faces = Client().create_collection("faces", D, mode="sealed-index")
    faces.add(list(range(rows)), ROWS[:rows])
    faces.delete([5])
    query, answer = asked(faces, ROWS[0])
    (honest,) = faces.open_answer(query, answer, 3)
    assert honest.ids[0] == 0 and honest.checked and honest.exact
    big = int(0.9999 * SCALE * SCALE)
    lies: list[dict[int, int | None]] = [
        {5: None},
        {5: 1},
        {7: 1},
        {5: None, 7: big},
        {5: None, 7: big, 0: -big},
        dict.fromkeys(range(rows)),
    ]
    for lie in lies:
        refused(faces, query, shifted(answer, lie))
    assert faces.info()["unchecked_blocks"] == 0
    assert faces.open_answer(query, answer, 1)[0].only([0]).checked


@contextmanager
def living(tmp_path: Path, over: str) -> Iterator[Collection]:
    keys = Keys.generate()
    if over == "http":
        with (
            LocalServer(tmp_path / "db") as server,
            HttpClient(server.url, keys=keys, state=tmp_path / "s") as client,
        ):
            yield client.create_collection("faces", 8, mode="sealed-index")
    else:
        yield Client(keys=keys).create_collection("faces", 8, mode="sealed-index")


@pytest.mark.parametrize(
    ("over", "steps"),
    [
        ("memory", 400),
        ("http", 60),
        pytest.param("memory", 10_000, marks=pytest.mark.slow),
    ],
)
def test_random_updates_and_deletions_leave_every_block_checked(
    tmp_path: Path, over: str, steps: int
) -> None:
    """Beside a dictionary that holds the same rows; every answer is checked, and a lie about it is found."""
    rng = np.random.default_rng(11)
    with living(tmp_path, over) as faces:
        truth: dict[int, np.ndarray] = {}

        def put(ids: list[int]) -> None:
            rows = rng.standard_normal((len(ids), 8)).astype(np.float32)
            faces.upsert(ids, rows)
            truth.update(zip(ids, rows, strict=True))

        put(list(range(200)))
        for step in range(steps):
            kind = rng.choice(["upsert", "update", "delete"])
            if kind == "delete" and len(truth) > 50:
                name = int(rng.choice(list(truth)))
                faces.delete([name])
                del truth[name]
            elif kind == "update":
                name = int(rng.choice(list(truth)))
                truth[name] = rng.standard_normal(8).astype(np.float32)
                faces.update([name], truth[name][None])
            else:
                put([int(rng.integers(300))])
            if step % max(1, steps // 50):
                continue
            assert faces.info()["unchecked_blocks"] == 0
            row = rng.standard_normal(8).astype(np.float32)
            query, answer = asked(faces, row)
            (found,) = faces.open_answer(query, answer, 1)
            best = max(truth, key=lambda name: float(unit(truth[name]) @ unit(row)))
            assert found.checked and found.ids == [best]
            refused(faces, query, forged(answer, len(answer) - 4, bytes([answer[-4] ^ 1])))
        assert faces.info()["unchecked_blocks"] == 0 and faces.count() == len(truth)
        assert faces.query(rng.standard_normal(8).astype(np.float32), 3).checked


SCHEMES = [
    ("lattice", {}),
    ("elgamal", {}),
    pytest.param("okamoto-uchiyama", {"bits": 2048}, marks=pytest.mark.slow),
    pytest.param("damgard-jurik", {"bits": 2048}, marks=pytest.mark.slow),
    ("paillier", {"bits": 2048}),
]


@pytest.mark.parametrize(("scheme", "more"), SCHEMES)
def test_an_answer_to_another_question_is_refused(scheme: str, more: dict[str, Any]) -> None:
    """As is one to an older question of the owner's own, with every scheme."""
    rows = np.random.default_rng(4).standard_normal((60, 16)).astype(np.float32)
    index = ciphervec.Index(ndim=16, mode="sealed-index", scheme=scheme, **more)
    index.add(list(range(60)), rows)
    query, other = index.owner.query(rows[3]), index.owner.query(rows[41])
    (found,) = query.open(index.server.evaluate(query.to_bytes()), 1)
    assert found.ids == [3] and found.checked and found.exact
    with pytest.raises(TamperedAnswer):
        query.open(index.server.evaluate(other.to_bytes()), 1)


@pytest.mark.parametrize("scheme", ["elgamal", "paillier"])
def test_ciphertexts_that_were_exchanged_are_not_taken(scheme: str) -> None:
    """Rows of another segment under the name of one: whoever has the public key can make such."""
    more: dict[str, Any] = {} if scheme == "elgamal" else {"bits": 2048}
    index = ciphervec.Index(ndim=16, mode="sealed-index", scheme=scheme, **more)
    rows = np.random.default_rng(4).standard_normal((4, 16)).astype(np.float32)
    index.add([0, 1], rows[:2])
    index.add([2, 3], rows[2:])
    owner, (one, two) = index.owner, index.server.segment_ids()
    stored, other = index.server.segment(one), index.server.segment(two)
    np.testing.assert_allclose(owner.unseal(stored)[0], unit(rows[0]), atol=1e-3)
    for numbers in (None, [1]):
        with pytest.raises(TamperedAnswer):
            owner.unseal(resealed(other[:64] + stored[64:80] + other[80:]), numbers)


def test_plain_results_are_not_called_checked(vectors: Rows) -> None:
    index = ciphervec.Index(ndim=16, mode="open")
    index.add([1, 2], vectors(2, 16))
    query = index.owner.query(vectors(1, 16))
    assert not query.open(index.server.evaluate(query.to_bytes()), 1)[0].checked
