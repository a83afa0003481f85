"""Whatever ends a call, Ctrl-C at any line of it too: the next one finds what is there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import Client, HttpClient, Keys, PersistentClient
from ciphervec.collections import rotation
from network import D

_WHERE = ("/collections/segments.py", "/collections/standing.py", "/collections/states.py", "/collections/changes.py",
          "/stores/folder.py", "/stores/memory.py", "/http/store.py", "/http/trust.py", "/http/state.py")  # fmt: skip


class Stop(BaseException):
    """As KeyboardInterrupt; pytest would end at that."""


class At:
    """Raises at one of the lines that a call runs through in the files where clients and stores change."""

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
    """Every thirteenth line of a change, and others each time: after each the very object finds what there is."""
    there = set(range(20))
    done, line, number = 0, 1, 100
    for _ in range(400):
        number += 1
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
        line += 13
    else:
        pytest.fail("the change has more lines than this goes through")
    assert line > 100 and done > 0
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
        for turn, line in enumerate(range(1, 600, 11), start=1):
            books.upsert([turn], rows[turn % 40])
            ended = interrupted(reader.refresh, line)
            assert set(reader.get(include=[])["ids"]) == set(range(turn + 1))
            if not ended:
                break
        assert not ended and turn > 5


def test_keys_that_changed_before_the_end_are_gone_on_with(
    tmp_path: Path, keys: Keys, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first commit of a rotation is made, and nothing after it: the object goes on under the new keys."""
    with PersistentClient(tmp_path / "db", keys) as client:
        books = client.create_collection("books", D, mode="sealed-index")
        books.add(range(10), rows[:10])
        following = Keys.generate()

        def stopped(*_: object) -> None:
            raise Stop

        with monkeypatch.context() as patch:
            patch.setattr(rotation.Segments, "take", stopped)
            with pytest.raises(Stop):
                books.rotate_keys(following)
        assert books.query(rows[3], 1)["ids"] == [[3]]
        books.rotate_keys(following)
        assert books.info()["rotation"] is None and books.query(rows[4], 1)["ids"] == [[4]]
    with PersistentClient(tmp_path / "db", following) as client:
        assert client.get_collection("books").count() == 10
