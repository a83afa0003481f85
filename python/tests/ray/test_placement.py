"""Who holds which segment, and what a job has sealed: the two decisions of `ciphervec.ray` that need no
cluster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphervec import CiphervecError, CorruptData, InvalidInput, UnsupportedVersion
from ciphervec.ray.ledger import Entry, Ledger, attachment_of
from ciphervec.ray.placement import PoolTooSmall, place


def loads(segments: dict[bytes, int], placed: dict[bytes, str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one, name in placed.items():
        found[name] = found.get(name, 0) + segments[one]
    return found


def sizes(seed: int, count: int, equal: bool = False) -> dict[bytes, int]:
    rng = np.random.default_rng(seed)
    return {rng.bytes(16): 100 if equal else int(rng.integers(1, 200)) for _ in range(count)}


def test_bytes_are_spread_and_stay_where_they_are() -> None:
    segments = sizes(1, 200)
    three = place(segments, dict.fromkeys("abc"))
    mean = sum(segments.values()) / 3
    assert all(0.95 * mean < load < 1.05 * mean for load in loads(segments, three).values())
    assert place(segments, dict.fromkeys("abc"), three) == three
    # New segments go to whoever has the least, and nothing else moves.
    more = segments | sizes(2, 3)
    grown = place(more, dict.fromkeys("abc"), three)
    assert {one: grown[one] for one in segments} == three


def test_a_scanner_comes_or_goes_and_only_its_part_moves() -> None:
    segments = sizes(3, 200, equal=True)
    two = place(segments, dict.fromkeys("ab"))
    three = place(segments, dict.fromkeys("abc"), two)
    moved = [one for one in segments if two[one] != three[one]]
    assert {three[one] for one in moved} == {"c"}
    assert 0.15 < len(moved) / len(segments) < 0.4
    left = place(segments, dict.fromkeys("ac"), three)
    assert {three[one] for one in segments if three[one] != left[one]} == {"b"}


def test_no_scanner_holds_more_than_it_may() -> None:
    segments = sizes(4, 60)
    total = sum(segments.values())
    budgets: dict[str, int | None] = {"a": total // 4, "b": total // 4, "c": total}
    placed = place(segments, budgets)
    assert all(load <= (budgets[name] or 0) for name, load in loads(segments, placed).items())
    with pytest.raises(PoolTooSmall, match=r"60 segments take [\d,]+ bytes.* 2 scanners may hold"):
        place(segments, {"a": total // 3, "b": total // 3})
    with pytest.raises(PoolTooSmall, match="no scanner"):
        place(segments, {})
    assert issubclass(PoolTooSmall, CiphervecError)
    assert place({}, {"a": 1}) == {}


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 5), st.integers(1, 5), st.integers(0, 3))
def test_everything_is_placed_once_whatever_was_before(
    lengths: list[int], before: int, after: int, seed: int
) -> None:
    segments = {bytes([at]) * 16: length for at, length in enumerate(lengths)}
    first = place(segments, dict.fromkeys("abcde"[:before]))
    names = dict.fromkeys("edcba"[:after])
    second = place(segments, names, first)
    assert second.keys() == segments.keys() and set(second.values()) <= names.keys()


def test_a_ledger_knows_its_batches_and_refuses_others() -> None:
    ledger = Ledger([Entry(100, 50, b"b" * 16), Entry(0, 100, b"a" * 16)])
    assert ledger.rows == 150 and [entry.start for entry in ledger.entries] == [0, 100]
    assert ledger.holds(0, 100, b"a" * 16) and ledger.holds(100, 50)
    assert not ledger.holds(150, 1) and not ledger.holds(150, 10**9, b"c" * 16)
    for start, rows in ((0, 99), (0, 101), (99, 1), (99, 2), (149, 1), (120, 100), (100, 51), (0, 150)):
        with pytest.raises(InvalidInput, match="Nothing of them was added"):
            ledger.holds(start, rows)
    with pytest.raises(InvalidInput, match="the data changed"):
        ledger.holds(0, 100, b"c" * 16)
    assert Ledger.from_bytes(ledger.to_bytes()).entries == ledger.entries
    with pytest.raises(CorruptData):
        ledger.with_entry(Entry(99, 1, b"c" * 16))


def test_a_ledger_is_its_job_s() -> None:
    ledger = Ledger([Entry(0, 100, b"a" * 16)]).under(b"k" * 32)
    assert Ledger.from_bytes(ledger.to_bytes()).under(b"k" * 32).entries == ledger.entries
    with pytest.raises(InvalidInput, match="another key"):
        Ledger.from_bytes(ledger.to_bytes()).under(b"l" * 32)
    assert Ledger.from_bytes(Ledger().under(b"k" * 32).to_bytes()).under(b"l" * 32).rows == 0


def test_damaged_ledgers_are_refused() -> None:
    data = Ledger([Entry(0, 100, b"a" * 16)]).to_bytes()
    for damaged in (b"", data[:-1], data + b"x", b"x" + data[1:]):
        with pytest.raises(CorruptData):
            Ledger.from_bytes(damaged)
    with pytest.raises(UnsupportedVersion):
        Ledger.from_bytes(data[:8] + b"\x02" + data[9:])


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a" * 41, "../a"])
def test_names_of_jobs(name: str) -> None:
    with pytest.raises(InvalidInput, match="a job's name"):
        attachment_of(name)
    assert attachment_of("faces.2026-01") == "sealed-faces.2026-01"
