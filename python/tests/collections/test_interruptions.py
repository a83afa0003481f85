"""Whatever ends a call, Ctrl-C at any line of it too: the next one finds what is there."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
from ciphervec import Client, DuplicateId, HttpClient, Keys, PersistentClient
from ciphervec.http import HttpCollection
from network import D, Faulty

_WHERE = ("/collections/collection.py", "/collections/upkeep.py", "/collections/world.py", "/http/client.py",
          "/http/transport.py", "/ingest/remarks.py")  # fmt: skip


class Stop(BaseException):
    """As KeyboardInterrupt; pytest would end at that."""


class At:
    """Raises at one of the lines that a call runs through in this package, those that the core calls among them."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(_WHERE):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise Stop
        return self


def interrupted(call: Callable[[], object], line: int) -> bool:
    """Whether the call ran through so many lines."""
    before = sys.gettrace()
    sys.settrace(At(line))
    try:
        call()
    except Stop:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.fixture(params=["memory", "folder", "server"])
def books(
    request: pytest.FixtureRequest, tmp_path: Path, keys: Keys, rows: np.ndarray
) -> ciphervec.Collection:
    if request.param == "memory":
        client: Client = Client(keys=keys)
    elif request.param == "folder":
        client = PersistentClient(tmp_path / "db", keys)
    else:
        client = HttpClient(request.getfixturevalue("server_url"), keys=keys, state=tmp_path / "state")
    request.addfinalizer(client.close)
    made = client.create_collection("books", D, mode="sealed-index")
    made.add(range(20), rows[:20])
    made.query(rows[0], 1)  # so that a server's half in this process is there
    return made


@pytest.mark.slow
@pytest.mark.parametrize("change", ["add", "upsert", "delete"])
def test_a_call_that_ends_at_any_line_is_done_or_not(
    books: ciphervec.Collection, rows: np.ndarray, change: str
) -> None:
    """After each the very object finds what there is."""
    there, done = set(range(20)), 0
    for line in range(1, 1000):
        number = 100 + line
        if change == "delete":
            books.add([number], rows[20:21])
            there.add(number)
            call, after = partial(books.delete, [number]), there - {number}
        else:
            call, after = partial(getattr(books, change), [number], rows[20:21]), there | {number}
        if not interrupted(call, line):
            assert set(books.get(include=[])["ids"]) == after
            break
        found = set(books.get(include=[])["ids"])
        assert found in (there, after)
        done += found == after
        there = found
        assert books.query(rows[5], 1)["ids"] == [[5]] and books.count() == len(there)
    else:
        pytest.fail("the change has more lines than this goes through")
    assert line > 20 and (done > 0 or not isinstance(books, HttpCollection))
    books.add(["last"], rows[21])
    assert books.query(rows[21], 1)["ids"] == [["last"]]


@pytest.mark.slow
def test_a_reader_that_is_interrupted_misses_nothing(
    tmp_path: Path, server_url: str, keys: Keys, rows: np.ndarray
) -> None:
    with (
        HttpClient(server_url, keys=keys, state=None) as one,
        HttpClient(server_url, keys=keys, state=None) as two,
    ):
        books = one.create_collection("books", D, mode="sealed-index")
        books.add([0], rows[0])
        reader = two.get_collection("books")
        for turn in range(1, 400):
            books.upsert([turn], rows[turn % 40])
            ended = interrupted(reader.refresh, turn)
            assert set(reader.get(include=[])["ids"]) == set(range(turn + 1))
            if not ended:
                break
        assert not ended and turn > 5


class Alarm:
    """Raises after so many seconds, as Ctrl-C does."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    def _ring(self, *_: object) -> None:
        raise Stop


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("change", ["add", "optimize", "rotate_keys"])
def test_a_signal_ends_a_call(
    books: ciphervec.Collection, vectors: Callable[..., np.ndarray], change: str
) -> None:
    """At once, and whatever it was doing; the next call goes on."""
    more = vectors(30_000, D)
    there = set(range(20))
    if change != "add":
        books.add(range(1000, 31_000), more)
        books.delete(range(1000, 1010))
        there = set(books.ids())
    following = Keys.generate()
    call: Callable[[], object] = {
        "add": lambda: books.add(range(1000, 31_000), more),
        "optimize": lambda: books.optimize(reseal=True),
        "rotate_keys": lambda: books.rotate_keys(following),
    }[change]
    ended = 0
    for seconds in (0.001, 0.01, 0.03, 0.1):
        began = time.monotonic()
        try:
            with Alarm(seconds):
                call()
        except Stop:
            ended += 1
            assert time.monotonic() - began < seconds + 5
        except DuplicateId:
            assert change == "add"
        found = set(books.ids())
        assert found == there or (change == "add" and len(found) == len(there) + 30_000)
        assert books.query(more[20], 1, audience="owner")["ids"]
    assert ended > 0
    if change == "rotate_keys":
        books.rotate_keys(following)
        assert books.info()["rotation"] is None and books.count() == len(there)


def test_keys_that_changed_before_the_end_are_gone_on_with(
    tmp_path: Path, keys: Keys, rows: np.ndarray
) -> None:
    """The first commit of a rotation is made, and nothing after it: the object goes on under the new keys."""
    with PersistentClient(tmp_path / "db", keys) as client:
        books = client.create_collection("books", D, mode="sealed-index")
        for start in (0, 5):
            books.add(range(start, start + 5), rows[start : start + 5])
        following = Keys.generate()

        def stopped(*_: object) -> None:
            raise Stop

        with pytest.raises(Stop):
            books.rotate_keys(following, progress=stopped)
        assert books.info()["rotation"] is not None
        assert books.query(rows[3], 1)["ids"] == [[3]]
        books.rotate_keys(following)
        assert books.info()["rotation"] is None and books.query(rows[4], 1)["ids"] == [[4]]
    with PersistentClient(tmp_path / "db", following) as client:
        assert client.get_collection("books").count() == 10


def test_a_commit_that_a_server_makes_later_changes_the_keys_all_the_same(
    server_url: str, tmp_path: Path, keys: Keys, rows: np.ndarray
) -> None:
    """The call that sent it was interrupted, and others came in between."""
    network, late = Faulty(), list[Callable[[], httpx.Response]]()

    def slow(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if late or not request.url.path.endswith("/commits"):
            return go()
        late.append(go)
        raise Stop

    with HttpClient(server_url, keys=keys, state=tmp_path / "state", transport=network) as client:
        books = client.create_collection("books", D, mode="sealed-index")
        books.add(range(10), rows[:10])
        following = Keys.generate()
        network.fault = slow
        with pytest.raises(Stop):
            books.rotate_keys(following)
        assert books.info()["rotation"] is None and books.query(rows[3], 1)["ids"] == [[3]]
        assert late[0]().status_code == 200
        assert books.query(rows[3], 1)["ids"] == [[3]] and books.info()["rotation"] is not None
        books.rotate_keys(following)
        assert books.info()["rotation"] is None and books.query(rows[4], 1)["ids"] == [[4]]
