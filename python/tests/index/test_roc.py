"""Thresholds from labelled pairs: against counting by hand, and against what a collection accepts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphervec import Client, InvalidInput, Keys, Roc

SCORES = st.lists(st.integers(-20, 20).map(lambda i: i / 10), min_size=1, max_size=40)


@given(
    same=SCORES, different=SCORES, rate=st.sampled_from([0.05, 0.1, 0.25, 0.5, 0.9]), score=st.floats(-2, 2)
)
@pytest.mark.filterwarnings("ignore:.*can't tell a false-accept rate")
def test_rates_and_thresholds_are_those_counted(
    same: list[float], different: list[float], rate: float, score: float
) -> None:
    roc = Roc(same, different)
    accepted = sum(one >= score for one in different) / len(different)
    rejected = sum(one < score for one in same) / len(same)
    assert roc.rates(score) == (pytest.approx(accepted), pytest.approx(rejected))
    chosen = roc.threshold(rate)
    assert chosen.false_accept_rate <= rate
    assert chosen.within == 1 - chosen.score
    # One step lower it would accept too many.
    lower = max(one for one in different if one < chosen.score)
    assert sum(one >= lower for one in different) / len(different) > rate
    wins = sum((a > b) + (a == b) / 2 for a in same for b in different)
    assert roc.auc == pytest.approx(wins / len(same) / len(different))
    here = roc.equal_error
    gap = abs(here.false_accept_rate - here.false_reject_rate)
    for other in (*same, *different):
        far, frr = roc.rates(other)
        assert gap <= abs(far - frr) + 1e-12


def test_a_collection_accepts_at_the_rate_that_was_asked_for(keys: Keys) -> None:
    rng = np.random.default_rng(5)
    people = rng.standard_normal((60, 32))
    faces = np.repeat(people, 6, axis=0) + 0.9 * rng.standard_normal((360, 32))
    labels = np.repeat(np.arange(60), 6)
    roc = Roc.of_vectors(faces, labels)
    assert len(roc.same) == 60 * 15
    assert len(roc.different) == 360 * 359 // 2 - 60 * 15
    chosen = roc.threshold(0.01)
    with Client(keys) as client:
        books = client.create_collection("faces", 32, mode="sealed-index", precision="wide")
        books.add(range(360), faces)
        found = books.query(faces, within=chosen.within, include=[])["ids"]
    accepted = sum(labels[hit] != labels[i] for i, hits in enumerate(found) for hit in hits)
    # Distances there are float32: a pair at the very edge may fall on either side.
    assert accepted == pytest.approx(2 * chosen.false_accept_rate * len(roc.different), abs=4)
    far, tar, scores = roc.points(50)
    assert len(far) <= 50
    assert far[0] == tar[0] == 0 and far[-1] == tar[-1] == 1
    assert np.all(np.diff(far) >= 0) and np.all(np.diff(tar) >= 0) and np.all(np.diff(scores) < 0)


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2", "hamming"])
def test_pairs_of_vectors_score_as_queries_do(keys: Keys, metric: str) -> None:
    rng = np.random.default_rng(9)
    rows = np.sign(rng.standard_normal((12, 16))) if metric == "hamming" else rng.standard_normal((12, 16))
    roc = Roc.of_vectors(rows, [0] * 6 + [1] * 6, metric)  # type: ignore[arg-type]
    with Client(keys) as client:
        made = client.create_collection("x", 16, metric, "open")  # type: ignore[arg-type]
        made.add(range(12), rows)
        found = made.query(rows, 12)
    scores = {
        (i, j): score
        for i, (ids, line) in enumerate(zip(found["ids"], found["scores"], strict=True))
        for j, score in zip(ids, line, strict=True)
    }
    same = sorted(scores[i, j] for i in range(12) for j in range(i) if i // 6 == j // 6)
    np.testing.assert_allclose(roc.same, same, atol=1e-5)
    few = Roc.of_vectors(rows, [0] * 6 + [1] * 6, metric, pairs=8)  # type: ignore[arg-type]
    assert (len(few.same), len(few.different)) == (8, 8)
    threshold = few.threshold(0.5)
    assert threshold.within == (1 - threshold.score if metric in ("cosine", "ip") else -threshold.score)


def test_what_can_t_be_told_is_said() -> None:
    with pytest.warns(UserWarning, match="it takes 3,000 pairs") as told:
        Roc([0.9], np.zeros(100)).threshold(1e-3)
    assert told[0].filename == __file__
    for same, different in (([], [1]), ([1], []), ([np.nan], [1]), (["x"], [1])):
        with pytest.raises(InvalidInput, match="score"):
            Roc(same, different)
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        Roc([1], [0]).threshold(0)
    with pytest.raises(InvalidInput, match="labels"):
        Roc.of_vectors(np.zeros((3, 2)), [1, 2])
    with pytest.raises(InvalidInput, match="metric"):
        Roc([1], [0], "far")  # type: ignore[arg-type]
