"""Frames of write batches byte by byte, and several clients that commit to one collection of a real
server."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphervec import Conflict, DuplicateId, _native
from ciphervec.collections.batch import NewSegment, WriteBatch
from ciphervec.http.frame import Upload, encode
from network import D, Faulty, Make

SEGMENT = bytes(range(16))


def decode(frame: bytes) -> tuple[dict[str, Any], bytes]:
    """An independent reader of the frame: its JSON, and what follows it."""
    magic, version, length = struct.unpack_from("<8sII", frame)
    assert (magic, version) == (b"CVCHANGE", 1)
    return json.loads(frame[16 : 16 + length]), frame[16 + length :]


def test_a_frame_is_these_bytes() -> None:
    change = WriteBatch(
        add=[NewSegment(SEGMENT, 3, {"rows": b"abcd", "tags": b""})],
        remove=[bytes(16)],
        delete_rows={SEGMENT: [0, 2]},
        meta=b"MM",
        attachments={"evaluation": b"eee"},
    )
    text = (
        '{"add":[{"id":"000102030405060708090a0b0c0d0e0f","rows":3,"blobs":[{"name":"rows","length":4},'
        '{"name":"tags","length":0}]}],"remove":["00000000000000000000000000000000"],'
        '"delete_rows":{"000102030405060708090a0b0c0d0e0f":[0,2]},'
        '"attachments":[{"name":"evaluation","length":3}],"drop_attachments":[],"meta":{"length":2}}'
    )
    assert (
        encode(change) == b"CVCHANGE\x01\0\0\0" + struct.pack("<I", len(text)) + text.encode() + b"abcdMMeee"
    )


@given(
    st.lists(
        st.tuples(
            st.binary(min_size=16, max_size=16), st.dictionaries(st.text(max_size=3), st.binary(max_size=9))
        )
    ),
    st.none() | st.binary(max_size=5),
    st.dictionaries(st.text(max_size=3), st.binary(max_size=5)),
    st.randoms(use_true_random=False),
)
def test_a_frame_holds_what_went_in(
    segments: list[tuple[bytes, dict[str, bytes]]],
    meta: bytes | None,
    attachments: dict[str, bytes],
    random: Any,
) -> None:
    unique = dict(segments)
    change = WriteBatch(
        add=[NewSegment(one, len(parts), parts) for one, parts in unique.items()],
        meta=meta,
        attachments=attachments,
    )
    uploads = {
        (one, name): Upload(f"{random.getrandbits(128):032x}", _native.blake3(data))
        for one, parts in unique.items()
        for name, data in parts.items()
        if random.random() < 0.3
    }
    content, rest = decode(encode(change, uploads))

    def taken(entry: dict[str, Any], place: tuple[bytes, str]) -> bytes | Upload:
        nonlocal rest
        if "upload" in entry:
            return Upload(entry["upload"], bytes.fromhex(entry["blake3"]))
        data, rest = rest[: entry["length"]], rest[entry["length"] :]
        assert place not in uploads and len(data) == entry["length"]
        return data

    for new, entry in zip(change.add, content["add"], strict=True):
        assert (bytes.fromhex(entry["id"]), entry["rows"]) == (new.id, new.rows)
        for (name, data), blob in zip(new.blobs.items(), entry["blobs"], strict=True):
            assert blob["name"] == name and blob["length"] == len(data)
            assert taken(blob, (new.id, name)) in (data, uploads.get((new.id, name)))
    assert ("meta" in content) == (meta is not None)
    if meta is not None:
        assert taken(content["meta"], (b"", "")) == meta
    for (name, data), blob in zip(attachments.items(), content["attachments"], strict=True):
        assert blob["name"] == name and taken(blob, (b"", name)) == data
    assert rest == b""


def test_blake3_is_blake3() -> None:
    # From the BLAKE3 specification's test vectors: the empty input, and bytes 0 to 250 again and
    # again.
    assert _native.blake3(b"").hex() == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
    pattern = bytes(i % 251 for i in range(1024))
    assert _native.blake3(pattern).hex() == "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"


def test_writers_who_meet_both_succeed(make: Make, rows: np.ndarray) -> None:
    one = make().create_collection("books", D)
    two = make().get_collection("books")
    one.add("a", rows[0])
    two.add("b", rows[1])
    one.add("c", rows[2])
    assert one.count() == 3 and two.query(rows[2], 1)["ids"] == [["c"]]
    with pytest.raises(DuplicateId, match='"c" is already in'):
        two.add(["d", "c"], rows[3:5])
    with pytest.raises(DuplicateId, match='"b" is already in'):
        make().get_collection("books").add("b", rows[5])
    two.delete("a")
    one.upsert(["a", "b"], rows[[6, 7]])
    two.refresh()
    assert sorted(two.get()["ids"], key=str) == ["a", "b", "c"]
    assert two.query(rows[[6, 7, 2]], 1)["ids"] == [["a"], ["b"], ["c"]]
    one.delete(["a", "b"])
    assert two.delete(where={"x": {"$ne": 1}}) == 1, "the filter is tested on what is there now"
    one.refresh()
    assert one.count() == 0


def test_updates_of_one_row_do_not_lose_each_other(make: Make, rows: np.ndarray) -> None:
    one = make().create_collection("books", D)
    one.add("a", rows[0], {"one": 0, "two": 0})
    two = make().get_collection("books")
    for turn in range(1, 4):
        one.update("a", metadatas={"one": turn})
        two.update("a", metadatas={"two": turn})
    assert two.get("a")["metadatas"] == [{"one": 3, "two": 3}]


def test_a_commit_that_meets_another_sends_the_same_sealed_bytes(make: Make, rows: np.ndarray) -> None:
    """A nonce seals once: a second attempt must not seal other bytes under it, nor need new ones.
    The state that follows is another one."""
    network = Faulty()
    frames: list[bytes] = []

    def listen(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith("/commits"):
            frames.append(request.read())
        return go()

    network.fault = listen
    one = make(transport=network).create_collection("books", D)
    make().get_collection("books").add("b", rows[1])
    one.add("a", rows[0])
    assert len(frames) == 2
    (first, sent), (second, again) = map(decode, frames)
    length = sum(blob["length"] for blob in first["add"][0]["blobs"])
    assert first["add"] == second["add"] and sent[:length] == again[:length]
    assert sent[length:] != again[length:]


@pytest.mark.slow
def test_others_who_are_always_faster_are_named(make: Make, rows: np.ndarray) -> None:
    """After so many turns, and not before twenty seconds have passed."""
    network = Faulty()
    collection = make(transport=network).create_collection("books", D)
    other = make().get_collection("books")
    count = [0]

    def first(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith("/commits"):
            count[0] += 1
            other.upsert(f"other{count[0] % 9}", rows[count[0] % 9])
        return go()

    network.fault, began = first, time.monotonic()
    with pytest.raises(Conflict, match="others commit to it faster"):
        collection.add("a", rows[0])
    assert count[0] >= 16 and time.monotonic() - began >= 20
    assert "a" not in other
    network.fault = None
    collection.add("a", rows[0])
    assert collection.count() == 10


@pytest.mark.parametrize("times", [1, 3])
def test_a_reader_follows_one_who_merges_what_it_was_about_to_read(
    make: Make, rows: np.ndarray, times: int
) -> None:
    """What the server listed is gone when it is asked for; each time anew, for a while."""
    network = Faulty()
    one = make().create_collection("books", D)
    one.add(0, rows[0], documents="page 0")
    two = make(transport=network).get_collection("books")
    left = [times]

    def first(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith(("/sidecar", "/blobs")) and left[0]:
            left[0] -= 1
            at = one.count()
            one.add(at, rows[at], documents=f"page {at}")
            one.optimize()
        return go()

    network.fault = first
    one.add(1, rows[1], documents="page 1")
    got = two.get([0, 1, 2, 1 + times], include=["documents"])
    assert left == [0] and got["documents"] == [f"page {i}" for i in (0, 1, 2, 1 + times)]
    left[0] = times
    assert make(transport=network).get_collection("books").count() == 2 + 2 * times, "opened meanwhile"


def test_one_rotates_the_query_key_and_all_go_on(make: Make, rows: np.ndarray) -> None:
    one = make().create_collection("books", D)
    one.add(list(range(40)), rows)
    two = make().get_collection("books")
    assert two.query(rows[3], 1)["ids"] == [[3]]
    one.rotate_query_key()
    assert one.query(rows[3], 1)["ids"] == [[3]]
    assert two.query(rows[4], 1)["ids"] == [[4]] and two.info()["epoch"] == 1
    two.rotate_query_key()
    assert one.query(rows[4], 1)["ids"] == [[4]]
    assert make().get_collection("books").info()["epoch"] == 2


def test_one_optimizes_and_all_go_on(make: Make, rows: np.ndarray) -> None:
    one = make().create_collection("books", D)
    for i in range(12):
        one.add(i, rows[i], documents=f"page {i}")
    two = make().get_collection("books")
    one.delete([3, 4])
    one.optimize()
    assert two.query(rows[7], 1, include=["documents"])["documents"] == [["page 7"]]
    assert two.info()["segments"] == 1 and two.count() == 10
    one.delete([0, 1])
    one.optimize()
    got = two.get([7, 8], include=["documents", "embeddings"])
    assert got["documents"] == ["page 7", "page 8"]


@pytest.mark.parametrize("mode", ["sealed-index", "sealed"])
def test_a_server_that_compacts_changes_nothing_for_its_clients(
    make: Make, server_url: str, rows: np.ndarray, mode: str
) -> None:
    one = make().create_collection("books", D, mode=mode)
    for start in range(0, 40, 4):
        one.add(list(range(start, start + 4)), rows[start : start + 4], documents=["page"] * 4)
    one.delete([0, 1, 2, 3])
    done = httpx.post(f"{server_url}/v1/collections/books/compact", trust_env=False)
    assert done.status_code == 200 and done.json()["files_after"] < done.json()["files_before"]
    assert one.query(rows[[7, 39]], 1)["ids"] == [[7], [39]]
    got = one.get([7, 38], include=["embeddings", "documents"])
    assert got["documents"] == ["page", "page"] and got["embeddings"] is not None
    np.testing.assert_array_equal(got["embeddings"], rows[[7, 38]])
    one.add("new", rows[1])
    one.optimize()
    assert one.info()["segments"] == 1 and one.query(rows[1], 1)["ids"] == [["new"]]
    assert make().get_collection("books").query(rows[7], 1)["ids"] == [[7]]
