"""Estimators, indexes and private lookup beside NumPy."""

from __future__ import annotations

import functools
import pickle
import random
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ciphervec import EncryptedNearestNeighbors, Index, Keys, lookup

from . import values
from .model import attempt
from .numbers import ODD
from .runner import Scene

D = 8
KEYS = Keys.generate()


class EstimatorScene(Scene):
    """Each operation makes its own: what is fitted does not change."""

    weights: ClassVar = {"neighbours": 6, "index": 5, "look_up": 3, "odd": 3}

    def __init__(self, folder: Path, seed: int, *, oracle: Any) -> None:
        super().__init__(folder, seed)
        self.oracle = oracle

    def _rows(self, chance: random.Random, count: int, metric: str) -> np.ndarray:
        rng = np.random.default_rng(chance.randrange(1 << 30))
        if metric == "hamming":
            return rng.choice([-1.0, 1.0], (count, D)).astype(np.float32)
        rows = (rng.integers(-32, 33, (count, D)) / 8).astype(np.float32)
        rows[:, 0] += rows[:, 0] == 0
        return rows + np.float32(chance.choice([0, 0, 50]) if metric == "l2" else 0)

    def neighbours(self, chance: random.Random) -> None:
        name = chance.choice(["euclidean", "l2", "sqeuclidean", "cosine", "ip", "hamming"])
        metric = "l2" if name in ("euclidean", "sqeuclidean") else name
        mode = chance.choice(["sealed", "sealed-index", "open"])
        rows, asked = (
            self._rows(chance, chance.choice([1, 3, 12]), metric),
            self._rows(chance, chance.choice([1, 4]), metric),
        )
        given, must = values.vectors(chance, rows)
        if np.ndim(given) != 2 if not isinstance(given, list | tuple) else False:
            return
        k = chance.randrange(1, len(rows) + 1)
        self.note(name, mode, rows, "asked", asked, "given", given, k)
        model = EncryptedNearestNeighbors(
            chance.choice([k, np.int64(k)]), metric=name, mode=mode, keys=None if mode == "open" else KEYS
        )
        taken, _ = attempt(
            lambda: model.fit(given),
            right=True if must and metric != "hamming" and np.ndim(given) == 2 else None,
        )
        if not taken:
            return
        if chance.random() < 0.3 and mode != "open":
            model = pickle.loads(pickle.dumps(model)).unlock(KEYS)
        centre = rows.astype(np.float64).mean(axis=0) if metric == "l2" else np.zeros(D)
        exact = self.oracle.distances(metric, rows, asked)
        # Lengths count less the mean of the rows.
        slack = (
            2 * self.oracle.tolerance(metric, "standard", rows - centre, asked - centre)
            + 1e-5
            + 1e-6 * np.abs(exact)
        )
        form, must = values.vectors(chance, asked)
        taken, found = attempt(lambda: model.kneighbors(form), right=True if must else None)
        if taken:
            distances, at = found
            assert distances.shape == at.shape == (len(asked), k)
            self._near(name, distances, at, exact, slack)
        radius = float(np.quantile(np.maximum(exact, 0), 0.5))
        limit = {"euclidean": np.sqrt(radius), "l2": np.sqrt(radius), "hamming": radius / D}.get(name, radius)
        distances, at = model.radius_neighbors(asked, limit)
        for line, error, near in zip(exact, slack, at, strict=True):
            there = np.zeros(len(rows), bool)
            there[near] = True
            assert np.all(line[there] <= radius + error[there]) and np.all(
                line[~there] >= radius - error[~there]
            ), (line, there, radius)
        attempt(lambda: model.kneighbors(asked, len(rows) + 1), right=False)
        if len(rows) > 1:
            alone = model.kneighbors(n_neighbors=1, return_distance=False)
            assert np.all(alone[:, 0] != np.arange(len(rows)))

    def _near(
        self, name: str, distances: np.ndarray, at: np.ndarray, exact: np.ndarray, slack: np.ndarray
    ) -> None:
        for got, near, line, error in zip(distances, at, exact, slack, strict=True):
            assert len(set(near)) == len(near)
            held = got**2 if name in ("euclidean", "l2") else got * D if name == "hamming" else got
            assert np.all(np.abs(held - line[near]) <= error[near]), (held, line[near], error[near])
            left = np.setdiff1d(np.arange(len(line)), near)
            assert not len(left) or line[near[-1]] - error[near[-1]] <= np.min(line[left] + error[left])

    def index(self, chance: random.Random) -> None:
        """Added, removed, sent and read: what is found is what is there."""
        metric = chance.choice(["cosine", "ip", "l2", "hamming"])
        mode = chance.choice(["sealed", "sealed-query", "sealed-index", "open"])
        made = Index(D, metric, mode, secret_keys=None if mode == "open" else KEYS)
        held: dict[Any, np.ndarray] = {}
        for _ in range(3):
            rows = self._rows(chance, chance.choice([1, 2, 5]), metric)
            pairs = [values.name(chance, chance.random() < 0.3) for _ in rows]
            labels = [stored for _, stored in pairs]
            bad = (
                any(one is values.REFUSED for one in labels)
                or len(set(map(repr, labels))) < len(labels)
                or any(one in held for one in labels if one is not values.REFUSED)
            )
            given, unordered = values.several(chance, [one for one, _ in pairs], ids=True)
            self.note("index", metric, mode, labels, f"bad={bad or unordered}")
            taken, found = attempt(
                lambda given=given, rows=rows: made.add(given, rows), right=not (bad or unordered)
            )
            if taken:
                assert values.identical(found, labels)
                held.update(zip(labels, rows, strict=True))
        for name in chance.sample(list(held), min(len(held), 1)):
            made.remove(name)
            del held[name]
        attempt(lambda: made.remove("not there"), right=False)
        if chance.random() < 0.5:
            made = Index.from_bytes(made.to_bytes(), **({} if mode == "open" else {"secret_keys": KEYS}))
        asked = self._rows(chance, 2, metric)
        if not held:
            assert all(not len(one.ids) for one in made.search_batch(asked, 3, audience="owner"))
            return
        rows = np.stack([*held.values()])
        answers = [(one.ids, one.distances.tolist()) for one in made.search_batch(asked, 3, audience="owner")]
        # Lengths count less the centre, which is that of the rows that came first.
        centre = made.owner.center if made.owner is not None and made.owner.center.size else np.zeros(D)
        self.oracle.check(metric, "standard", rows, asked, list(held), answers, 3, centre)

    def look_up(self, chance: random.Random) -> None:
        rng = np.random.default_rng(chance.randrange(1 << 30))
        p, d = chance.choice([(5, 3), (40, 8), (300, 2)])
        tables = rng.integers(-32, 33, (chance.choice([1, 2]), p, d)) / 8
        pooling = chance.choice(["sum", "mean", "none"])
        strategy = "histogram" if pooling != "none" else "one_hot"
        self.note("look_up", tables.shape, pooling, strategy)
        given, must = values.vectors(chance, tables[0].astype(np.float32))
        if len(tables) == 1 and np.ndim(given) == 2 and must:
            taken, server = attempt(
                lambda: lookup.setup(given, strategy, pooling=pooling, limit=8), right=None
            )
        else:
            taken, server = attempt(
                lambda: lookup.setup(tables, strategy, pooling=pooling, limit=8), right=None
            )
        if not taken:
            return
        client = lookup.Client.generate(server.description())
        if (keys := client.keys()) is not None:
            server.register(keys)
        ell = server.shape[0]
        documents = [rng.integers(0, p, (chance.randrange(1, 6), ell)) for _ in range(chance.choice([1, 3]))]
        if pooling == "none":
            asked: Any = np.concatenate(documents)
            wanted = np.stack([sum(tables[t][row[t]] for t in range(ell)) for row in asked])
        else:
            asked = [
                one.astype(chance.choice(["i1", "i8", ">i4", "u8"])) if p < 100 else one for one in documents
            ]
            each = [sum(tables[t][one[:, t]].sum(axis=0) for t in range(ell)) for one in documents]
            wanted = np.stack(
                [
                    total / (len(one) if pooling == "mean" else 1)
                    for total, one in zip(each, documents, strict=True)
                ]
            )
        found = client.decode(server.embed(client.query(asked)))
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() <= server.error_bound, (found, wanted, server.error_bound)
        for bad in (
            [[p] * ell],
            [[-2] * ell],
            [[0.5] * ell],
            [["0"] * ell],
            [[True] * ell],
            "x",
            None,
            [[2**63] * ell],
            [[0] * (ell + 1)],
            np.ma.array([[0] * ell], mask=[[True] * ell]),
        ):
            attempt(functools.partial(client.query, bad if pooling == "none" else [bad]), right=False)

    def odd(self, chance: random.Random) -> None:
        """What is no array of rows is refused, and so are parameters that mean nothing."""
        bad = chance.choice(ODD)()
        self.note("odd", bad)
        attempt(lambda: EncryptedNearestNeighbors(mode="open").fit(bad), right=False)
        model = EncryptedNearestNeighbors(2, mode="open").fit(np.eye(3))
        attempt(lambda: Index(3, mode="open").search(bad), right=None if _is_empty(bad) else False)
        attempt(lambda: lookup.setup(bad), right=None if getattr(bad, "ndim", 0) == 3 else False)
        for parameter, value in (
            ("n_neighbors", 0),
            ("n_neighbors", "2"),
            ("metric", "x"),
            ("metric", ["l2"]),
            ("metric", None),
            ("mode", 5),
            ("keys", "k"),
            ("radius", "r"),
            ("radius", float("nan")),
            ("audience", "everybody"),
            ("precision", []),
        ):
            made = EncryptedNearestNeighbors(**{"mode": "sealed-index", parameter: value})
            attempt(
                lambda made=made: (
                    made.fit(np.eye(3)).kneighbors(np.eye(3)),
                    made.radius_neighbors(np.eye(3)),
                ),
                right=False,
            )
        for call in (lambda: model.kneighbors(bad), lambda: model.radius_neighbors(bad)):
            attempt(call, right=None if bad is None or _is_empty(bad) else False)


def _is_empty(value: Any) -> bool:
    """No rows, to which there are no answers."""
    return (
        isinstance(value, list | np.ndarray)
        and len(np.shape(np.array(value, object))) > 0
        and len(value) == 0
    )
