"""The ledger's verdict on what a store may hold, against an enumeration of all its states."""

from __future__ import annotations

import itertools

import pytest

from ciphervec_lab.bench.serving.kill import vector
from ciphervec_lab.bench.serving.ledger import Ledger, LedgerError
from ciphervec_lab.bench.serving.load import Load
from ciphervec_lab.bench.serving.soak import drift


def a_ledger() -> Ledger:
    """1 to 3 are there for sure, 4 was deleted, 5 and 6 are being added, 2 and 3 are being
    deleted."""
    ledger = Ledger()
    ledger.acknowledge(ledger.begin([1, 2, 3, 4], adds=True))
    ledger.acknowledge(ledger.begin([4], adds=False))
    ledger.refuse(ledger.begin([7], adds=True))
    ledger.begin([5, 6], adds=True)
    ledger.begin([2, 3], adds=False)
    return ledger


def test_exactly_the_possible_states_pass() -> None:
    possible = [{1}, {1, 2, 3}, {1, 5, 6}, {1, 2, 3, 5, 6}]
    done = [1, 0, 2, 1]  # of the deletion of 2 and 3 and the addition of 5 and 6
    for size in range(8):
        for found in itertools.combinations(range(1, 8), size):
            ledger = a_ledger()
            if set(found) in possible:
                assert ledger.check(found) == (2, done[possible.index(set(found))])
                assert ledger.present == set(found)
                assert not ledger.unknown
            else:
                with pytest.raises(LedgerError):
                    ledger.check(found)


@pytest.mark.parametrize(
    ("found", "word"),
    [
        ((2, 3), "lost"),
        ((1, 4), "deleted or never"),
        ((1, 5), "1 of the 2 rows of one add"),
        ((1, 2), "one delete"),
    ],
)
def test_a_broken_promise_is_named(found: tuple[int, ...], word: str) -> None:
    with pytest.raises(LedgerError, match=word):
        a_ledger().check(found)


def test_drift_compares_the_last_quarter_with_the_second() -> None:
    assert drift([50.0, 50, 100, 100, 100, 100, 110, 110]) == pytest.approx(0.1)
    assert drift([100.0] * 40) == 0
    assert drift([7.0]) == 0


def test_percentiles_and_rates_of_a_load() -> None:
    load = Load(seconds=2.0, latencies=[0.001 * (1 + number) for number in range(100)])
    load.join(Load(seconds=1.0, errors=["refused"]))
    assert load.per_second == pytest.approx(100 / 3)
    assert load.percentile(50) == pytest.approx(50.5)
    # A hundred latencies of 1 to 100 ms: a percent is 0.99 of them further on.
    assert load.percentiles() == pytest.approx([1 + 0.99 * share for share in range(101)])
    assert (Load().per_second, Load().percentile(99), Load().percentiles()) == (0.0, 0.0, [])


def test_the_vector_of_an_id_is_the_same_again() -> None:
    assert (vector(3) == vector(3)).all()
    assert vector(3) @ vector(4) < 0.9
