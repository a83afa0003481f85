"""A server that lies in modes `sealed` and `sealed-query`: what it once read of the keys, and what it gets now."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import Keys
from ciphervec.errors import CiphervecError, TamperedAnswer
from ciphervec.http import LocalServer
from liar import Altered, other_words
from ring_liar import MODES, D, Liar, N, halves, reframed


@pytest.mark.core
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [1, 300, 5000])
def test_no_reaction_shows_a_coefficient_of_a_key(mode: str, rows: int) -> None:
    owner, server, vectors = halves(mode, rows)
    refused = 0
    for target in (0, 1, 77, 4095):
        for sign in (1, -1):
            for alone, share in ((True, 0.9), (False, 0.9), (False, 0.01)):
                query = owner.query(vectors[:1])
                honest = server.evaluate(query.to_bytes())
                lie = Liar(query.to_bytes(), honest).forged(target, sign, share, alone=alone)
                right = query.open(honest, 1, audience="owner")[0]
                assert right.ids[0] == 0
                try:
                    found = query.open(lie, 1, audience="owner")[0]
                except TamperedAnswer:
                    refused += 1
                else:
                    assert found.scores.tolist() == right.scores.tolist()
    assert refused == (24 if rows > 1 else 0)


@pytest.mark.core
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("rows", "refused"), [(1, False), (128, False), (256, True), (300, True)])
def test_a_coefficient_guessed_right_looks_like_one_guessed_wrong(
    mode: str, rows: int, refused: bool
) -> None:
    owner, server, vectors = halves(mode, rows)
    for target in (0, 7, 4000):
        for guess in (-1, 0, 1):
            query = owner.query(vectors[:1])
            honest = server.evaluate(query.to_bytes())
            lie = Liar(query.to_bytes(), honest).guessed({0: (target, guess)}, 0.1)
            if refused:
                with pytest.raises(TamperedAnswer):
                    query.open(lie, 1, audience="owner")
            else:
                right, found = (query.open(one, 1, audience="owner")[0] for one in (honest, lie))
                assert found.ids == right.ids and found.scores.tolist() == right.scores.tolist()


def with_writers(client: Any, rows: int, segments: int, where: Any) -> tuple[Any, np.ndarray]:
    """A collection of 300 own rows, and segments of `rows` rows that a device has added."""
    rng = np.random.default_rng(8)
    docs = client.create_collection("docs", D)
    vectors = rng.standard_normal((300, D)).astype(np.float32)
    docs.add([f"own{i}" for i in range(300)], vectors)
    writer = ciphervec.Writer(docs.writer_card("door"))
    for place in range(segments):
        ids = [f"{place} {i}" for i in range(rows)]
        writer.add_to(where, ids, rng.standard_normal((rows, D)).astype(np.float32))
    docs.refresh()
    return docs, vectors


def test_many_small_segments_show_as_little_as_one(tmp_path: Path) -> None:
    """Once each of them showed a coefficient of one and the same key, all of them in one answer."""
    line = Altered()
    with (
        LocalServer(tmp_path / "db") as server,
        ciphervec.HttpClient(server.url, keys=Keys.generate(), state=None, transport=line) as client,
    ):
        docs, vectors = with_writers(client, 1, 40, server.url)
        honest = docs.query(vectors[5], n_results=3, audience="owner")
        line.change = lambda query, answer: Liar(query, answer).guessed(
            {1 + place: (place, 1) for place in range(40)}, 0.1
        )
        found = docs.query(vectors[5], n_results=3, audience="owner")
        assert found["ids"] == honest["ids"] and docs.info()["quarantine"] == []


@pytest.mark.parametrize("how", ["ignore", "error"])
def test_a_writers_segment_is_held_before_anybody_is_warned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Any
) -> None:
    """Where warnings are errors one segment once answered every lie."""
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    keys, line = Keys.generate(), Altered()
    with LocalServer(tmp_path / "db") as server:
        with ciphervec.HttpClient(server.url, keys=keys, transport=line) as client:
            docs, vectors = with_writers(client, 300, 1, server.url)
            line.change = lambda query, answer: Liar(query, answer).guessed({1: (3, 1)}, 0.1)
            with warnings.catch_warnings(), contextlib.suppress(UserWarning):
                warnings.simplefilter(how)
                docs.query(vectors[5], n_results=1, audience="owner")
            assert len(docs.info()["quarantine"]) == 1 and line.paths("/query") == 1
            assert docs.info()["query_key"]["session"] is None, "the next question is under another key"
            line.change = None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert docs.query(vectors[5], n_results=1, audience="owner")["ids"] == [["own5"]]
        with ciphervec.HttpClient(server.url, keys=keys) as client:
            assert len(client.get_collection("docs").info()["quarantine"]) == 1


def test_what_failed_is_not_what_is_fetched_next(tmp_path: Path) -> None:
    """A client that may commit nothing, and the next process with its cache: no fetch tells which segment failed."""
    keys, line = Keys.generate(), Altered()
    line.refuses = True
    with LocalServer(tmp_path / "db") as server:
        with ciphervec.HttpClient(server.url, keys=keys, state=None) as client:
            _, vectors = with_writers(client, 300, 2, server.url)
        for lies in (True, False):
            line.change = (
                (lambda query, answer: Liar(query, answer).guessed({1: (3, 1)}, 0.1)) if lies else None
            )
            with ciphervec.HttpClient(
                server.url, keys=keys, state=tmp_path / "state", transport=line
            ) as client:
                docs = client.get_collection("docs")
                line.seen.clear()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    docs.query(vectors[5], n_results=1, audience="owner")
                    docs.query(vectors[5], n_results=1, audience="owner")
                assert len(docs.info()["quarantine"]) == 1
                assert not [path for _, path in line.seen if "/blobs" in path or "/segments/" in path]


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_to_another_query_is_refused(mode: str) -> None:
    owner, server, vectors = halves(mode, 1200)
    query, other = owner.query(vectors[3]), owner.query(vectors[41])
    with pytest.raises(CiphervecError):
        query.open(server.evaluate(other.to_bytes()), 1, audience="owner")


def test_half_of_the_answers_from_elsewhere_are_refused() -> None:
    """V of one answer with U of another, each of which was right."""
    owner, server, vectors = halves("sealed", 1200)
    query, other = owner.query(vectors[3]), owner.query(vectors[3])
    mixed = bytearray(server.evaluate(query.to_bytes()))
    foreign = server.evaluate(other.to_bytes())
    at, _, _, v = Liar(query.to_bytes(), bytes(mixed)).segments()[0]
    mixed[at : at + N * v // 8] = foreign[at : at + N * v // 8]
    with pytest.raises(TamperedAnswer):
        query.open(reframed(mixed), 1, audience="owner")


@pytest.mark.parametrize("mode", MODES)
def test_a_lie_ends_in_quarantine_and_stays_there(tmp_path: Path, mode: str) -> None:
    keys, line = Keys.generate(), Altered()
    vectors = np.random.default_rng(1).standard_normal((400, D)).astype(np.float32)
    with LocalServer(tmp_path / "db") as server:
        with ciphervec.HttpClient(server.url, keys=keys, state=None, transport=line) as client:
            made = client.create_collection("docs", dimension=D, mode=mode)
            made.add(range(400), vectors)
            assert made.query(vectors[7], n_results=1, audience="owner")["ids"] == [[7]]
            assert made.info()["unchecked_blocks"] == 0
            line.change = lambda query, honest: Liar(query, honest).forged(5, 1, 0.9, alone=True)
            line.seen.clear()
            with pytest.raises(TamperedAnswer):
                made.query(vectors[7], n_results=1, audience="owner")
            assert line.paths("/query") == 1, "not asked again"
            assert len(made.info()["quarantine"]) == 1
        with ciphervec.HttpClient(server.url, keys=keys, state=None) as client:
            assert len(client.get_collection("docs").info()["quarantine"]) == 1


@pytest.mark.parametrize("mode", MODES)
def test_words_that_the_keeper_of_a_folder_changed_end_in_quarantine(tmp_path: Path, mode: str) -> None:
    keys = Keys.generate()
    vectors = np.random.default_rng(1).standard_normal((400, D)).astype(np.float32)
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        client.create_collection("docs", dimension=D, mode=mode).add(range(400), vectors)
    other_words(tmp_path / "db" / "docs")
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        made = client.get_collection("docs")
        with pytest.raises(TamperedAnswer):
            made.query(vectors[7], n_results=1, audience="owner")
        assert len(made.info()["quarantine"]) == 1
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        assert len(client.get_collection("docs").info()["quarantine"]) == 1


def test_checks_go_on_through_deletions_updates_and_filters(tmp_path: Path) -> None:
    rng, line = np.random.default_rng(2), Altered()
    vectors = rng.standard_normal((900, D)).astype(np.float32)
    with (
        LocalServer(tmp_path / "db") as server,
        ciphervec.HttpClient(server.url, keys=Keys.generate(), state=None, transport=line) as client,
    ):
        made = client.create_collection("docs", dimension=D, filterable=["team"])
        made.add(range(900), vectors, metadatas=[{"team": i % 3} for i in range(900)])
        made.delete(range(200))
        made.upsert(range(200, 230), vectors[:30], metadatas=[{"team": 0}] * 30)
        assert made.info()["unchecked_blocks"] == 0
        found = made.query(vectors[:3], n_results=1, where={"team": 0}, audience="owner")
        assert found["ids"] == [[200], [201], [202]]
        made.optimize()
        assert made.info()["unchecked_blocks"] == 0
        line.change = lambda query, honest: Liar(query, honest).forged(5, 1, 0.9, alone=False)
        with pytest.raises(TamperedAnswer):
            made.query(vectors[400], n_results=1, audience="owner")
