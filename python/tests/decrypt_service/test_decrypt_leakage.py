"""What a decrypt service's scores, thresholds and times give away: an attack that succeeds without a budget and fails
within one, and work that does not follow the number of near rows."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import Client, Keys, Owner, Probe, ServerIndex
from ciphervec.decrypt_service import Exhausted, Ledger, Matcher, Outcome

D = 16


def recovered_from_scores(ask: Callable[[np.ndarray], float], d: int, rng: np.random.Generator) -> np.ndarray:
    """d scores of known probes are d linear equations."""
    probes = rng.normal(size=(d, d))
    probes /= np.linalg.norm(probes, axis=1, keepdims=True)
    scores = np.array([ask(probe) for probe in probes])
    return np.linalg.lstsq(probes, scores, rcond=None)[0]


def recovered_from_matches(
    ask: Callable[[np.ndarray], bool], genuine: np.ndarray, queries: int, rng: np.random.Generator
) -> np.ndarray:
    """From one probe that matches: walk along great circles to where the match ends, by bisection.
    All points of that border have the same cosine with the template, so it lies where their
    hyperplanes meet."""
    center = genuine / np.linalg.norm(genuine)
    border: list[np.ndarray] = []
    left = queries
    while left > 0:
        away = rng.normal(size=center.shape)
        away -= center * (away @ center)
        away /= np.linalg.norm(away)
        low, high = 0.0, np.pi / 2
        for _ in range(10):
            if left == 0:
                break
            left -= 1
            middle = (low + high) / 2
            if ask(np.cos(middle) * center + np.sin(middle) * away):
                low = middle
            else:
                high = middle
        else:
            border.append(np.cos(low) * center + np.sin(low) * away)
    if not border:
        return center
    points = np.array(border)
    ridge = 1e-3 * np.eye(len(center))
    return np.linalg.solve(points.T @ points + ridge, points.sum(axis=0) + 1e-3 * center)


def test_score_recovery_curve_with_and_without_a_budget(
    tmp_path: Path, keys: Keys, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scores: d of them give the template. Matches: a few hundred do. A budget of 20 leaves the
    thief with what it already had. docs/devices.md prints the curve."""
    template = rng.normal(size=D)
    template /= np.linalg.norm(template)
    collection = Client(keys=keys).create_collection("faces", D, mode="sealed-index")
    collection.add(["person 0"], template[None].astype(np.float32))
    matcher, probe = Matcher(collection, 0.5), Probe(collection.spec)
    open_wide = Matcher(collection, 2.0)  # the weakened service: it tells a score for any probe
    ledger = Ledger(tmp_path / "ledger.db")
    principal, _ = ledger.add("thief", "faces", budget=20)

    def outcome(service: Matcher, vector: np.ndarray) -> Any:
        [found], _ = service.match(service.read(probe.query(vector.astype(np.float32))))
        return found

    def likeness(found: np.ndarray) -> float:
        return float(found @ template / np.linalg.norm(found))

    stolen = recovered_from_scores(lambda v: outcome(open_wide, v).score, D, rng)
    assert likeness(stolen) > 0.999, "scores are templates"
    # A genuine probe that just matches, as an impostor with a photograph has one.
    noise = rng.normal(size=D)
    noise -= template * (noise @ template)
    genuine = 0.6 * template + 0.8 * noise / np.linalg.norm(noise)
    curve = {}
    for queries in (20, 100, 300, 1000):
        found = recovered_from_matches(lambda v: outcome(matcher, v).matched, genuine, queries, rng)
        curve[queries] = likeness(found)
    assert curve[1000] > 0.95 and curve[300] > 0.9, curve
    assert curve[20] < 0.75, curve

    def budgeted(vector: np.ndarray) -> bool:
        ledger.charge(principal.id, 1)
        return bool(outcome(matcher, vector).matched)

    answers: list[bool] = []
    with pytest.raises(Exhausted):
        while True:
            answers.append(budgeted(genuine))
    assert len(answers) == 20
    with capsys.disabled():
        print(
            "\nlikeness by queries answered:",
            {n: round(c, 3) for n, c in curve.items()},
            "scores:",
            D,
            "queries",
        )


class Gallery:
    """Rows behind a matcher, and behind the halves, whose owner says how many rows it worked on."""

    def __init__(self, keys: Keys, rows: np.ndarray, within: float, metric: Any, precision: Any) -> None:
        made = Client(keys).create_collection(
            "faces", rows.shape[1], metric, mode="sealed-index", precision=precision
        )
        made.add(range(len(rows)), rows)
        self._probe, self._within = Probe(made.spec), within
        self._owner, self._server = Owner(keys, made.spec), ServerIndex(made.spec)
        self._server.add(self._owner.seal(range(len(rows)), rows).segment)
        self._answer = made.evaluate
        self._matcher = Matcher(made, within, cloud=lambda query: self._answer(query))

    def match(self, probe: np.ndarray) -> Outcome:
        [outcome], passed_over = self._matcher.match(self._matcher.read(self._probe.query(probe)))
        assert not passed_over
        return outcome

    def settled(self, probe: np.ndarray) -> float:
        """Rows whose noise is taken off, which is what takes time by the number of hits."""
        query = self._owner.read_query(self._probe.query(probe))
        self._owner.closest(query, self._server.evaluate(query.to_bytes()), self._within)
        return query.timings()["settled_rows"]

    def seconds(self, probe: np.ndarray) -> float:
        """The least time in which the answer, which is here, is opened."""
        query = self._matcher.read(self._probe.query(probe))
        answer = self._answer(query.to_bytes())
        self._answer = lambda _: answer
        return min(timeit.repeat(lambda: self._matcher.match(query), number=1, repeat=9))


def near_and_far(rng: np.random.Generator, probe: np.ndarray, near: int, of: int) -> np.ndarray:
    """Rows with a cosine of 0.85 and more to a unit vector, so many, among others."""
    beside = rng.standard_normal((near, 64))
    beside -= np.outer(beside @ probe, probe)
    beside /= np.linalg.norm(beside, axis=1, keepdims=True)
    cosines = rng.uniform(0.85, 1, near)[:, None]
    rows = np.concatenate(
        [rng.standard_normal((of - near, 64)), cosines * probe + np.sqrt(1 - cosines**2) * beside]
    )
    return np.asarray(rows[rng.permutation(of)], np.float32)


@pytest.mark.parametrize("precision", ["standard", "small", "wide"])
@pytest.mark.parametrize("metric", ["cosine", "hamming"])
def test_how_many_rows_are_near_does_not_change_the_work(keys: Keys, precision: Any, metric: Any) -> None:
    """As much whether none is near, one, fifty or a thousand, and the one that is found is the closest."""
    rng = np.random.default_rng(5)
    probe = rng.standard_normal(64)
    probe /= np.linalg.norm(probe)
    settled = []
    for near in (0, 1, 50, 1000):
        rows, asked = near_and_far(rng, probe, near, 1500), probe.astype(np.float32)
        if metric == "hamming":
            rows, asked = (rows > 0).astype(np.float32), (probe > 0).astype(np.float32)
        faces = Gallery(keys, rows, 20 if metric == "hamming" else 0.2, metric, precision)
        outcome = faces.match(asked)
        settled.append(faces.settled(asked))
        if metric == "hamming":
            distances = (rows != asked).sum(1)
            closest, within = distances.min(), distances.min() <= 20
            assert outcome.matched == within and (not within or outcome.score == -closest)
        else:
            scores = rows @ probe / np.linalg.norm(rows, axis=1)
            assert outcome.matched == (near > 0)
            if precision != "small":  # whose steps may put two in the other order
                assert outcome.id == (int(scores.argmax()) if near else None)
    assert len(set(settled)) == 1 or (metric == "hamming" and max(settled) <= 2 * min(settled)), settled
    assert min(settled) >= 64


def test_how_many_rows_are_near_does_not_show_in_the_time(keys: Keys) -> None:
    """Twenty thousand take fifty times as long as none, where each of them is worked on."""
    rng = np.random.default_rng(6)
    probe = rng.standard_normal(64)
    probe /= np.linalg.norm(probe)
    asked = probe.astype(np.float32)
    none, all_near = (
        Gallery(keys, near_and_far(rng, probe, near, 20_000), 0.2, "cosine", "standard")
        for near in (0, 20_000)
    )
    assert all_near.match(asked).matched and not none.match(asked).matched
    assert all_near.seconds(asked) < 8 * none.seconds(asked)


def test_rows_that_tie_are_all_worked_on(keys: Keys) -> None:
    """What the estimates leave in doubt is settled, however much that is: here the number may show."""
    probe = np.ones(D, np.float32)
    far = np.random.default_rng(1).standard_normal((512, D)) - 1
    for count in (10, 64, 65, 300):
        faces = Gallery(keys, np.concatenate([np.tile(probe, (count, 1)), far]), 0.01, "cosine", "standard")
        outcome = faces.match(probe)
        assert outcome.matched and outcome.id == 0, "of rows that tie the first"
        assert max(64, count) <= faces.settled(probe) <= max(64, 2 * count)
