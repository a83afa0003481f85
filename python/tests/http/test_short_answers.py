"""Short answers: rows are packed for their number and the network, packed anew as a collection grows, and
answered in words as long as the precision needs; servers that know the first version alone are asked for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from ciphervec import Client, Collection, InvalidInput, Keys, Network, Owner, PersistentClient, ServerIndex
from ciphervec.collections.spec import Mode
from network import Faulty, Make

D = 48
SLOW = Network(megabits=1, latency_ms=40)
FAST = Network(megabits=1e6, latency_ms=0)
STEP = 2.0**-16


@pytest.fixture(params=["folder", "server"])
def client(request: pytest.FixtureRequest, tmp_path: Path, keys: Keys) -> Iterator[Client]:
    if request.param == "server":
        yield request.getfixturevalue("http_client")
        return
    with PersistentClient(tmp_path / "db", keys) as made:
        yield made


def cosines(made: Collection, questions: np.ndarray) -> np.ndarray:
    found = made.query(questions, made.count(), include=["distances"], audience="owner")
    scores = np.empty((len(questions), made.count()))
    for line, ids, distances in zip(scores, found["ids"], found["distances"], strict=True):
        line[np.array(ids)] = 1 - np.array(distances)
    return scores


def truth(rows: np.ndarray, questions: np.ndarray) -> np.ndarray:
    unit = [x.astype(np.float64) / np.linalg.norm(x, axis=1, keepdims=True) for x in (questions, rows)]
    return unit[0] @ unit[1].T


@pytest.mark.parametrize("mode", ["sealed", "sealed-query"])
def test_a_collection_that_has_grown_is_packed_anew(
    client: Client, vectors: Callable[..., np.ndarray], mode: Mode
) -> None:
    rows, questions = vectors(6000, D), vectors(3, D)
    made = client.create_collection("books", D, mode=mode, network=SLOW)
    for start, end in [(0, 200), (200, 600), (600, 6000)]:
        made.add(list(range(start, end)), rows[start:end])
    before, packed = cosines(made, questions), made.info()["packing"]
    assert len(packed["rows_by_level"]) > 1 and sum(packed["rows_by_level"].values()) == 6000
    made.optimize()
    after, packed = cosines(made, questions), made.info()["packing"]
    assert packed["level"] in packed["rows_by_level"] and packed["network"] == SLOW._asdict()
    for scores in (before, after):
        error = np.abs(scores - truth(rows, questions))
        assert error.max() < 3e-4 and error.std() < 4e-5
    assert np.abs(after - before).max() < 3e-4 + STEP
    segments = made.info()["segments"]
    made.optimize()
    assert made.info()["segments"] == segments and made.info()["packing"] == packed, "it is packed well"


def test_what_a_collection_is_packed_for_stays_with_it(
    tmp_path: Path, keys: Keys, vectors: Callable[..., np.ndarray]
) -> None:
    rows = vectors(3000, D)
    with PersistentClient(tmp_path / "db", keys) as client:
        made = client.create_collection("books", D, network=FAST)
        made.add(list(range(3000)), rows)
        [fast] = made.info()["packing"]["rows_by_level"]
        made.optimize(network=SLOW)
        packed = made.info()["packing"]
        [slow] = packed["rows_by_level"]
        assert slow > fast and packed["level"] == slow and packed["answer_seconds"] > 0
        np.testing.assert_allclose(cosines(made, rows[:2]), truth(rows, rows[:2]), atol=3e-4)
    with PersistentClient(tmp_path / "db", keys) as client:
        assert client.get_collection("books").info()["packing"] == packed
        assert client.create_collection("plain", D, mode="sealed-index").info()["packing"] is None


@pytest.mark.parametrize(
    "network", [Network(0), Network(float("nan")), Network(True), Network(10, -1), (10, 1), 10, "fast"]
)
def test_networks_that_are_none_are_refused(keys: Keys, tmp_path: Path, network: Network) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        with pytest.raises(InvalidInput, match=r"network|megabits|latency_ms"):
            client.create_collection("books", D, network=network)
        made = client.create_collection("books", D)
        with pytest.raises(InvalidInput, match=r"network|megabits|latency_ms"):
            made.optimize(network=network)


class Older(Faulty):
    """A server that says nothing of a second version, as those of release 0.1 do, and would refuse it."""

    def __init__(self, older: bool) -> None:
        super().__init__()
        self.versions: list[int] = []
        self.fault = self._older
        self._silent = older

    def _older(self, request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith("/query"):
            self.versions.append(int.from_bytes(request.content[4:6], "little"))
        answer = go()
        if self._silent and answer.headers.get("content-type") == "application/json" and answer.content:
            content = json.loads(answer.content)
            if isinstance(content, dict) and content.pop("query_version", None) is not None:
                headers = {name: text for name, text in answer.headers.items() if name != "content-length"}
                return httpx.Response(answer.status_code, headers=headers, json=content)
        return answer


@pytest.mark.parametrize(("older", "version"), [(True, 1), (False, 2)])
def test_a_server_is_asked_for_what_it_knows(
    make: Make, vectors: Callable[..., np.ndarray], older: bool, version: int
) -> None:
    line = Older(older)
    rows = vectors(600, D)
    made = make(transport=line).create_collection("books", D)
    made.add(list(range(600)), rows)
    error = np.abs(cosines(made, rows[:2]) - truth(rows, rows[:2]))
    assert error.max() < 3e-4
    assert set(line.versions) == {version}


def test_shorter_answers_say_the_same(keys: Keys, vectors: Callable[..., np.ndarray]) -> None:
    from ciphervec import IndexSpec

    spec = IndexSpec("halves", D, "cosine", "sealed", "standard")
    owner, server = Owner(keys, spec), ServerIndex(spec)
    server.set_evaluation_keys(owner.evaluation().to_bytes())
    rows, questions = vectors(2000, D), vectors(2, D)
    server.add(owner.seal(list(range(2000)), rows).segment)
    answers = {}
    for name in ("first", "short"):
        query = owner.query(questions, answers=name)  # type: ignore[arg-type]
        response = server.evaluate(query.to_bytes())
        answers[name] = len(response)
        for line, matches in zip(
            truth(rows, questions), query.open(response, 5, audience="owner"), strict=True
        ):
            np.testing.assert_allclose(1 - matches.distances, line[matches.ids], atol=3e-4)
        assert len(query.open(response, 5, audience="others")) == 2
    assert answers["short"] < answers["first"]
    with pytest.raises(InvalidInput, match="first, short"):
        owner.query(questions, answers="brief")  # type: ignore[arg-type]
