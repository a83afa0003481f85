"""Blobs that a server gives wrong once: nothing wrong is kept, and a client recovers as soon as the server is honest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

from ciphervec import HttpClient, Writer
from ciphervec.errors import CorruptData, RollbackDetected
from network import D, Faulty, Make

pytestmark = pytest.mark.core
ROWS = 40


class Flip(Faulty):
    """Flips a bit of so many of the answers with this blob."""

    def __init__(self, blob: str, times: int) -> None:
        super().__init__()
        self.left = times

        def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
            answer = go()
            if not request.url.path.endswith(f"/{blob}") or request.method != "GET" or self.left <= 0:
                return answer
            self.left -= 1
            data = bytearray(answer.content)
            data[len(data) * 3 // 4] ^= 1
            return httpx.Response(200, headers={"ciphervec-api": "1"}, content=bytes(data))

        self.fault = fault


def look(client: HttpClient) -> None:
    faces = client.get_collection("faces")
    found = faces.get(include=["documents", "embeddings"])
    assert found["documents"] == [f"doc {i}" for i in range(ROWS)] and faces.count() == ROWS
    assert faces.get(where={"team": "b"}, include=[])["ids"] == [i for i in range(ROWS) if i % 2]


@pytest.fixture
def faces(make: Make, vectors: Callable[..., np.ndarray]) -> None:
    made = make().create_collection("faces", D, mode="sealed-index", filterable=["team"])
    made.add(
        list(range(ROWS)),
        vectors(ROWS, D),
        metadatas=[{"team": "ab"[i % 2]} for i in range(ROWS)],
        documents=[f"doc {i}" for i in range(ROWS)],
    )


@pytest.mark.parametrize("blob", ["sidecar", "tags", "records", "originals"])
@pytest.mark.parametrize("kept", [True, False])
def test_a_blob_that_was_wrong_once_is_fetched_anew(
    make: Make, faces: None, tmp_path: Path, blob: str, kept: bool
) -> None:
    """Within the same session; with a state folder, and without."""
    state = tmp_path / "reader" if kept else None
    net = Flip(blob, 1)
    look(make(state=state, transport=net))
    assert net.left == 0 and net.paths(f"/{blob}") == 2
    # A later session asks for none of it again.
    later = Faulty()
    look(make(state=state, transport=later))
    assert later.paths(f"/{blob}") == (0 if kept else 1)


@pytest.mark.parametrize("blob", ["records", "originals"])
def test_damaged_rows_show_in_no_request_whether_they_are_read(make: Make, faces: None, blob: str) -> None:
    """A server that damages some rows of a blob sees the same requests, whether those rows are read or others."""
    seen = list[list[tuple[str, str]]]()
    for ids in ([0], list(range(25, 36))):
        net = Flip(blob, 99)
        read = make(state=None, transport=net).get_collection("faces")
        with pytest.raises(CorruptData):
            read.get(ids, include=["documents", "embeddings"])
        seen.append(net.seen)
    assert seen[0] == seen[1] and net.paths(f"/{blob}") == 2


@pytest.mark.parametrize("blob", ["sidecar", "tags", "records", "originals"])
def test_a_server_that_was_wrong_for_a_session_is_believed_in_the_next(
    make: Make, faces: None, tmp_path: Path, blob: str
) -> None:
    state = tmp_path / "reader"
    with pytest.raises((CorruptData, RollbackDetected)):
        look(make(state=state, transport=Flip(blob, 99)))
    look(make(state=state))
    look(make(state=state))


def test_stored_rows_that_were_wrong_are_not_kept(
    make: Make, vectors: Callable[..., np.ndarray], tmp_path: Path
) -> None:
    rows = vectors(4, D)
    owner = make().create_collection("faces", D, mode="sealed-index", originals=False)
    owner.add(range(4), rows)
    client = make(state=tmp_path / "reader", transport=Flip("rows", 1))
    faces = client.get_collection("faces")
    with pytest.raises(CorruptData):  # its check, or the frame's
        faces.get([1], include=["embeddings"])
    faces = make(state=tmp_path / "reader").get_collection("faces")
    for segment in faces.info()["quarantine"]:
        faces.release(segment)
    found = faces.get([1], include=["embeddings"])["embeddings"]
    assert np.abs(found[0] - rows[1] / np.linalg.norm(rows[1])).max() < 1e-3


def test_a_wrong_wrap_of_a_writers_segment_is_not_kept(
    make: Make, server_url: str, vectors: Callable[..., np.ndarray], tmp_path: Path
) -> None:
    rows = vectors(5, D)
    owner = make().create_collection("faces", D, mode="sealed-index")
    Writer(owner.writer_card("door")).add_to(server_url, range(5), rows)
    state = tmp_path / "reader"
    fooled = make(state=state, transport=Flip("wrap", 99)).get_collection("faces")
    assert fooled.count() == 0 and len(fooled.info()["refused"]) == 1
    assert make(state=state).get_collection("faces").count() == 5


@pytest.mark.parametrize("blob", ["sidecar", "tags"])
def test_nothing_is_put_on_the_disk_before_it_was_found_right(
    make: Make, faces: None, tmp_path: Path, blob: str
) -> None:
    """Not for a moment: the process may be killed in it. What a whole session keeps, the wrong blob is not among."""
    kept: list[int] = []
    real = Path(tmp_path / "reader" / "blobs")
    net = Flip(blob, 99)
    fault = net.fault
    assert fault is not None

    def watched(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        kept.append(len(list(real.glob("*"))))
        return fault(request, go)

    net.fault = watched
    with pytest.raises((CorruptData, RollbackDetected)):
        make(state=tmp_path / "reader", transport=net).get_collection("faces")
    right = make(state=tmp_path / "right")
    right.get_collection("faces")
    names = {path.name for path in (tmp_path / "right" / "blobs").iterdir()}
    assert len(names) == 2 and max(kept) <= 1
    assert {path.name for path in real.glob("*")} < names
