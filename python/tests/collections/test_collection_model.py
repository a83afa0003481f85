"""A collection against a dictionary: random sequences of every change, each answer compared with
the plain one."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ciphervec import DuplicateId, Keys, PersistentClient, UnknownId

DIMENSION = 6
IDS = st.one_of(st.integers(0, 9), st.sampled_from(["0", "1", "a", "b", "c"]))
BATCHES = st.lists(IDS, max_size=5)
COLOURS = st.sampled_from(["red", "green", None])
KEYS = Keys.generate()
# 2e-4 at unit length; rows and queries of six Gaussian numbers are shorter than 6, and l2 counts
# the product twice.
ERROR = {"cosine": 2e-4, "ip": 2e-4 * 36, "l2": 2e-4 * 72}


class CollectionModel(RuleBasedStateMachine):
    """`plain` maps an id to its vector, metadata and document, as the collection should."""

    plain: dict[Any, tuple[np.ndarray, dict[str, Any] | None, str | None]]

    @initialize(
        mode=st.sampled_from(["open", "sealed-index", "sealed-query", "sealed"]),
        metric=st.sampled_from(["cosine", "ip", "l2"]),
        seed=st.integers(0, 99),
    )
    def make(self, mode: str, metric: str, seed: int) -> None:
        self.folder = tempfile.mkdtemp()
        self.client = PersistentClient(self.folder, keys=KEYS)
        self.collection = self.client.create_collection(
            "model", DIMENSION, metric, mode, filterable=["colour"]
        )
        self.rng = np.random.default_rng(seed)
        self.plain = {}

    def teardown(self) -> None:
        if hasattr(self, "client"):
            self.client.close()
            shutil.rmtree(self.folder)

    def rows(self, count: int) -> np.ndarray:
        return self.rng.normal(size=(count, DIMENSION)).astype(np.float32)

    def score(self, row: np.ndarray, query: np.ndarray) -> float:
        x, q = row.astype(np.float64), query.astype(np.float64)
        if self.collection.metric == "l2":
            return -float(((x - q) ** 2).sum())
        lengths = np.linalg.norm(x) * np.linalg.norm(q)
        return float(x @ q) / (float(lengths) if self.collection.metric == "cosine" else 1.0)

    @rule(ids=BATCHES, colour=COLOURS, upsert=st.booleans())
    def put(self, ids: list[Any], colour: str | None, upsert: bool) -> None:
        rows = self.rows(len(ids))
        metadatas = [None if colour is None else {"colour": colour, "n": i} for i in range(len(ids))]
        documents = [f"about {name}" for name in ids]
        clash = len(set(ids)) < len(ids) or (not upsert and any(name in self.plain for name in ids))
        call = self.collection.upsert if upsert else self.collection.add
        if clash:
            with pytest.raises(DuplicateId):
                call(ids, rows, metadatas, documents)
            return
        call(ids, rows, metadatas, documents)
        for entry in zip(ids, rows, metadatas, documents, strict=True):
            self.plain.pop(entry[0], None)
            self.plain[entry[0]] = entry[1:]

    @rule(ids=BATCHES, colour=COLOURS)
    def change(self, ids: list[Any], colour: str | None) -> None:
        metadatas = [{"colour": colour}] * len(ids)
        if len(set(ids)) < len(ids):
            with pytest.raises(DuplicateId):
                self.collection.update(ids, metadatas=metadatas)
        elif any(name not in self.plain for name in ids):
            with pytest.raises(UnknownId):
                self.collection.update(ids, metadatas=metadatas)
        else:
            self.collection.update(ids, metadatas=metadatas)
            for name in ids:
                vector, metadata, document = self.plain.pop(name)
                self.plain[name] = (vector, {**(metadata or {}), "colour": colour}, document)

    @rule(ids=BATCHES)
    def remove(self, ids: list[Any]) -> None:
        if any(name not in self.plain for name in ids):
            with pytest.raises(UnknownId):
                self.collection.delete(ids)
            return
        assert self.collection.delete(ids) == len(set(ids))
        for name in set(ids):
            del self.plain[name]

    @rule(colour=COLOURS)
    def remove_by_colour(self, colour: str | None) -> None:
        gone = [n for n, (_, m, _) in self.plain.items() if m and "colour" in m and m["colour"] == colour]
        assert self.collection.delete(where={"colour": colour}) == len(gone)
        for name in gone:
            del self.plain[name]

    @rule()
    def optimize(self) -> None:
        self.collection.optimize()
        assert self.collection.info()["segments"] <= 1

    @rule()
    def reopen(self) -> None:
        self.client.close()
        self.client = PersistentClient(self.folder, keys=KEYS)
        self.collection = self.client.get_collection("model", allow_open=True)

    @rule(colour=st.sampled_from(["red", "green"]), n=st.integers(0, 3), k=st.integers(1, 20))
    @precondition(lambda self: self.plain)
    def ask(self, colour: str, n: int, k: int) -> None:
        query, error = self.rows(1)[0], ERROR[self.collection.metric]
        for where, test in (
            (None, lambda m: True),
            ({"colour": colour}, lambda m: m.get("colour") == colour),
            (
                {"colour": colour, "n": {"$lte": n}},
                lambda m: m.get("colour") == colour and m.get("n", 99) <= n,
            ),
            ({"n": n}, lambda m: m.get("n") == n),
        ):
            allowed = {name: vector for name, (vector, m, _) in self.plain.items() if test(m or {})}
            found = self.collection.query(query, k, where=where)
            scores = {name: self.score(vector, query) for name, vector in allowed.items()}
            assert len(found["ids"][0]) == min(k, len(allowed))
            assert found["scores"] is not None
            for name, score in zip(found["ids"][0], found["scores"][0], strict=True):
                assert abs(scores.pop(name) - score) < error
            assert all(score <= min(found["scores"][0]) + 2 * error for score in scores.values())

    @invariant()
    def same_contents(self) -> None:
        if not hasattr(self, "plain"):
            return
        assert self.collection.count() == len(self.plain)
        got = self.collection.get()
        assert set(got["ids"]) == set(self.plain) and len(got["ids"]) == len(self.plain)
        assert got["metadatas"] is not None and got["documents"] is not None
        for name, metadata, document in zip(got["ids"], got["metadatas"], got["documents"], strict=True):
            assert (metadata, document) == self.plain[name][1:]


TestCollectionModel = CollectionModel.TestCase
TestCollectionModel.settings = settings(
    max_examples=12, stateful_step_count=14, deadline=None, derandomize=True
)
