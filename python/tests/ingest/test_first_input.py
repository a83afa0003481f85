"""What people have at hand: dates, UUIDs, decimals, rows of which some are broken, short passphrases. It is taken for
what it is, or refused with everything that is wrong."""

from __future__ import annotations

import datetime
import decimal
import pickle
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import Client, InvalidInput, InvalidRows, Keys
from ciphervec.ingest.passphrase import weakness
from network import D
from program import Program

UTC = datetime.timezone.utc
EAST = datetime.timezone(datetime.timedelta(hours=5))
NAME = uuid.UUID(int=7)
VALUES: list[tuple[Any, Any]] = [
    (datetime.datetime(2024, 3, 1, 12, 30, tzinfo=EAST), "2024-03-01T07:30:00+00:00"),
    (datetime.datetime(2024, 3, 1, 12, 30), "2024-03-01T12:30:00"),
    (datetime.date(2024, 3, 1), "2024-03-01"),
    (np.datetime64("2024-03-01T12:30:00.5", "ns"), "2024-03-01T12:30:00.500000"),
    (NAME, str(NAME)),
    (decimal.Decimal("2.5"), 2.5),
    (decimal.Decimal(10) ** 20, 10**20),
    ((1, np.int64(2), NAME), [1, 2, str(NAME)]),
    ({"at": datetime.date(2024, 3, 1)}, {"at": "2024-03-01"}),
]


@pytest.mark.parametrize(("value", "stored"), VALUES)
def test_values_that_json_does_not_have(keys: Keys, vectors: Any, value: Any, stored: Any) -> None:
    with Client(keys) as client:
        made = client.create_collection("books", D, mode="sealed-index", filterable=["x"])
        made.add(["a", "b"], vectors(2, D), [{"x": value}, {"x": "other"}])
        assert made.get("a")["metadatas"] == [{"x": stored}]
        if not isinstance(value, tuple | dict):
            assert made.get(where={"x": value})["ids"] == ["a"]
            assert made.get(where={"x": {"$in": [value]}})["ids"] == ["a"]


def test_times_compare_as_times_do(keys: Keys, vectors: Any) -> None:
    start = datetime.datetime(2024, 1, 1, tzinfo=UTC)
    times = [start + datetime.timedelta(hours=9 * i, microseconds=i % 2) for i in range(12)]
    with Client(keys) as client:
        made = client.create_collection("books", D, mode="sealed-index")
        made.add(range(12), vectors(12, D), [{"at": one.astimezone(EAST)} for one in times])
        for bound in times:
            later = [i for i, one in enumerate(times) if one > bound]
            found = made.get(where={"$and": [{"at": {"$gt": bound}}, {"at": {"$exists": True}}]}, include=[])
            assert found["ids"] == later


def test_every_bad_row_is_told_at_once(keys: Keys, vectors: Callable[..., np.ndarray]) -> None:
    rows = vectors(30, D)
    rows[3, 2], rows[7] = np.nan, 0
    metadatas: list[Any] = [{"x": 1}] * 30
    metadatas[7], metadatas[9] = {"": 1}, 5
    ids: list[Any] = list(range(30))
    ids[11] = ""
    with Client(keys) as client:
        made = client.create_collection("books", D)
        with pytest.raises(InvalidRows) as bad:
            made.add(ids, rows, None)
        assert set(bad.value.rows) == {3, 7, 11}
        ids[11] = 11
        with pytest.raises(InvalidRows) as bad:
            made.add(ids, rows, metadatas)
        assert set(bad.value.rows) == {3, 7, 9}
        says = str(bad.value)
        assert says.startswith("3 rows can't be used, and nothing was written:\n")
        for part in ("embeddings[3, 2] is nan", "embeddings[7] is the zero vector", "metadatas[7] has the field ''",
                     "metadatas[9] must be a dict"):  # fmt: skip
            assert part in says
        assert pickle.loads(pickle.dumps(bad.value)).rows == bad.value.rows
        with pytest.raises(InvalidRows, match="and 20 more"):
            made.add(ids, np.zeros((30, D)))
        with pytest.raises(InvalidRows) as one:
            made.add([1], np.full((1, D), np.inf))
        assert "\n" not in str(one.value)
        assert made.count() == 0
    assert issubclass(InvalidRows, InvalidInput) and issubclass(InvalidRows, ValueError)


@pytest.mark.parametrize(
    ("passphrase", "weak"),
    [
        ("pass", True),
        ("password1234567890", True),
        ("qwertyuiop123", True),
        ("aaaaaaaaaaaaaaaaaaaa", True),
        ("20240131", True),
        ("Tr0ub4dor", False),
        ("correct horse battery staple", False),
        ("x7Kq-91pLmZw", False),
        ("сорок тысяч обезьян", False),
    ],
)
def test_what_a_passphrase_is_worth(passphrase: str, weak: bool) -> None:
    assert bool(weakness(passphrase)) == weak


def test_a_weak_passphrase_is_warned_about(tmp_path: Path, keys: Keys) -> None:
    with pytest.warns(UserWarning, match="passphrase is weak") as told:
        keys.save(tmp_path / "a.key", "pass")
    assert told[0].filename == __file__
    assert (tmp_path / "a.key").exists(), "it is a remark, and no refusal"
    said = Program(tmp_path, CIPHERVEC_PASSPHRASE="1234")("keygen", "b.key")
    assert "note: the passphrase is weak" in said.stderr
    assert "UserWarning" not in said.stderr
