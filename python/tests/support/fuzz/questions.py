"""What is drawn for a collection and asked of it, and what the answers must be."""

from __future__ import annotations

import random
import sys
import zlib
from typing import Any

import numpy as np

import ciphervec

from . import values
from .model import Id, Model, Row, attempt, condition
from .runner import Scene

D = 8


class Questions(Scene):
    """A collection, `rows`, beside a model of it."""

    rows: Any
    oracle: Any
    model: Model
    metric: str
    precision: str
    originals: bool
    score_error: float | None = None
    """Of unit vectors, where it isn't that of the precision under the scheme `lattice`."""

    # What is drawn.

    def _vectors(self, chance: random.Random, count: int) -> np.ndarray:
        """(count, d) float32, eighths of whole numbers, none of them a row of zeros."""
        rng = np.random.default_rng(chance.randrange(1 << 30))
        if self.metric == "hamming":
            return rng.choice([-1.0, 1.0], (count, D)).astype(np.float32)
        whole = chance.random() < 0.2
        rows = rng.integers(-32, 33, (count, D)) / (1 if whole else 8)
        rows[:, 0] += rows[:, 0] == 0
        if count > 1 and chance.random() < 0.1:
            rows[1] = rows[0]
        return rows.astype(np.float32)

    def _form(self, chance: random.Random, rows: np.ndarray) -> tuple[Any, bool]:
        if self.metric != "hamming":
            return values.vectors(chance, rows)
        bits = rows > 0
        return chance.choice(
            [
                rows,
                rows.tolist(),
                bits,
                bits.astype(np.uint8),
                bits.astype(float),
                rows.astype(np.int8),
                np.packbits(bits, axis=1),
                bits.tolist(),
                np.asfortranarray(bits),
                rows.astype(">f8"),
                bits[:, ::-1].copy()[:, ::-1],
            ]
        ), True

    def _batch(
        self, chance: random.Random, names: list[tuple[Any, Any]]
    ) -> tuple[list[Any], list[Any], list[tuple[Any, Any]], list[tuple[Any, Any]]]:
        odd = chance.random() < 0.4
        about = [values.metadata(chance, odd) for _ in names]
        texts = [values.document(chance, odd) for _ in names]
        return [given for given, _ in names], [stored for _, stored in names], about, texts

    def _names(self, chance: random.Random, count: int, there: float) -> list[tuple[Any, Any]]:
        """Ids, of which a share is there already."""
        odd = chance.random() < 0.3
        known = list(self.model.rows)
        drawn: list[tuple[Any, Any]] = []
        for _ in range(count):
            if known and chance.random() < there:
                one = chance.choice(known)
                drawn.append((one, one))
            else:
                drawn.append(values.name(chance, odd))
        if chance.random() < 0.85:  # mostly without one that comes twice
            drawn = list(
                {
                    repr(stored) if stored is values.REFUSED else stored: (given, stored)
                    for given, stored in drawn
                }.values()
            )
        return drawn

    def _some(self, chance: random.Random, count: int) -> tuple[list[Row | None], Any, bool | None, bool]:
        """Vectors for some of so many rows: as rows, as they are given, whether they must be taken, whether they are bad."""
        rows = self._vectors(chance, count)
        whole = [Row(row, None, None) for row in rows]
        kind = chance.random()
        if kind < 0.35 or count == 0:
            return [None] * count, None, True, False
        if kind < 0.6:
            there = [chance.random() < 0.5 for _ in range(count)]
            some: list[Row | None] = [row if one else None for row, one in zip(whole, there, strict=True)]
            listed = [row.tolist() if one else None for row, one in zip(rows, there, strict=True)]
            kind_of = chance.choice([list, list, tuple])
            return some, kind_of(listed), True if kind_of is list else None, False
        if kind < 0.65 and self.metric != "hamming":
            spoilt = values.spoilt(chance, rows, self.metric == "cosine")
            nothing = isinstance(spoilt, list) and all(one is None for one in spoilt)
            return [None] * count if nothing else whole, spoilt, nothing, not nothing
        form, must = self._form(chance, rows)
        return [*whole], form, True if must else None, False

    # Questions.

    def get(self, chance: random.Random) -> None:
        ids = where = plain = None
        stored: list[Any] = []
        if chance.random() < 0.5:
            names = self._names(chance, chance.choice([0, 1, 3, 6]), 0.8)
            stored = [one for _, one in names]
            ids, unordered = values.several(chance, [one for one, _ in names], ids=True)
            if unordered:
                ids = [one for one, _ in names]
        if chance.random() < 0.5:
            where, plain = condition(chance)
        include, parts = chance.choice(
            [
                (None, None),
                ([], []),
                (["documents"], ["documents"]),
                ("metadatas", ["metadatas"]),
                (("ids", "documents"), ["documents"]),
                ({"embeddings"}, ["embeddings"]),
                (["scores"], values.REFUSED),
                (["nothing"], values.REFUSED),
                (5, values.REFUSED),
            ]
        )
        limit, most = chance.choice(
            [(None, None)] * 4
            + [
                (0, 0),
                (1, 1),
                (3, 3),
                (np.int8(127), 127),
                (np.uint8(255), 255),
                (sys.maxsize, sys.maxsize),
                (2**70, values.REFUSED),
                (-1, values.REFUSED),
                ("3", values.REFUSED),
                (2.0, values.REFUSED),
                (float("nan"), values.REFUSED),
            ]
        )
        offset, first = chance.choice(
            [(0, 0)] * 5
            + [
                (1, 1),
                (4, 4),
                (np.int8(127), 127),
                (np.uint64(2), 2),
                (sys.maxsize, sys.maxsize),
                (-1, values.REFUSED),
                ("1", values.REFUSED),
                (1.0, values.REFUSED),
                (None, values.REFUSED),
            ]
        )
        bad = any(one is values.REFUSED for one in [*stored, plain, parts, most, first])
        self.note("get", stored if ids is not None else None, where, include, limit, offset, f"bad={bad}")
        more = {} if include is None else {"include": include}
        taken, found = attempt(
            lambda: self.rows.get(ids, where, limit=limit, offset=offset, **more), right=not bad
        )
        if not taken:
            return
        order = self._order() if ids is None else [one for one in stored if one in self.model.rows]
        passing = set(self.model.passing(plain))
        wanted = [name for name in order if name in passing]
        stop = None if most is None else first + most
        assert found["ids"] == wanted[first:stop], (found["ids"], wanted[first:stop])
        wanted_parts = ["metadatas", "documents"] if parts is None else parts
        for part in ("metadatas", "documents", "embeddings"):
            assert (found[part] is not None) == (part in wanted_parts), part
        self._same(found)

    def _order(self) -> list[Id]:
        found = self.rows.get(include=[])["ids"]
        assert len(found) == len(set(found)) and set(found) == set(self.model.rows)
        return list(found)

    def _same(self, found: Any) -> None:
        """Every row of a result is as it was put in."""
        for at, name in enumerate(found["ids"]):
            row = self.model.rows[name]
            if found["metadatas"] is not None:
                assert values.identical(found["metadatas"][at], row.metadata), (
                    name,
                    found["metadatas"][at],
                    row.metadata,
                )
            if found["documents"] is not None:
                assert values.identical(found["documents"][at], row.document), (
                    name,
                    found["documents"][at],
                    row.document,
                )
            if found["embeddings"] is not None:
                self._same_vector(found["embeddings"][at], row.vector)

    def _same_vector(self, got: np.ndarray, put: np.ndarray) -> None:
        assert got.dtype == np.float32 and got.shape == put.shape
        if self.originals or self.metric == "hamming":
            assert np.array_equal(got, put), (got, put)
            return
        wanted = put / np.linalg.norm(put) if self.metric == "cosine" else put
        assert np.allclose(got, wanted, atol=4e-3 * max(1.0, float(np.linalg.norm(wanted)))), (got, wanted)

    def query(self, chance: random.Random) -> None:
        asked = self._vectors(chance, chance.choice([0, 1, 1, 2, 3]))
        form, must = self._form(chance, asked) if len(asked) else (np.empty((0, D)), True)
        spoil = len(asked) and self.metric != "hamming" and chance.random() < 0.05
        if spoil:
            form = values.spoilt(chance, asked, self.metric == "cosine")
        where, plain = condition(chance) if chance.random() < 0.5 else (None, None)
        count, most = chance.choice(
            [
                (None, None),
                (1, 1),
                (3, 3),
                (50, 50),
                (np.uint8(255), 255),
                (2**62, 2**62),
                (0, values.REFUSED),
                (-1, values.REFUSED),
                (2.0, values.REFUSED),
                ("2", values.REFUSED),
                (True, values.REFUSED),
            ]
            + [(2, 2)] * 4
        )
        among = stored = None
        if chance.random() < 0.2:
            names = self._names(chance, chance.choice([0, 1, 4]), 0.8)
            among, stored = [one for one, _ in names], [one for _, one in names]
        within, radius = chance.choice(
            [(None, None)] * 6
            + [
                (0.7, 0.7),
                (np.float32(2.5), 2.5),
                (4, 4),
                (float("nan"), values.REFUSED),
                ("x", values.REFUSED),
                ([1], values.REFUSED),
            ]
        )
        include = chance.choice(
            [["distances", "scores", "metadatas", "documents", "embeddings"], ["distances", "scores"]]
        )
        bad = bool(spoil) or any(one is values.REFUSED for one in [plain, most, radius, *(stored or [])])
        self.note("query", form, where, count, "ids", stored, "within", within, f"bad={bad}")
        audience = chance.choice(["owner", None])
        taken, found = attempt(
            lambda: self.rows.query(form, count, where, include, ids=among, within=within, audience=audience),
            right=False if bad else (True if must else None),
        )
        if taken:
            allowed = [name for name in self.model.passing(plain) if stored is None or name in stored]
            self._ranked(found, asked, allowed, 10 if most is None and radius is None else most, radius)

    def rerank(self, chance: random.Random) -> None:
        asked = self._vectors(chance, chance.choice([1, 2]))
        first, count = chance.choice([1, 5, 50]), chance.choice([1, 3, 50])
        texts = [f"question {i}" for i in range(len(asked))]

        def numbers(query: str, documents: list[str]) -> list[int]:
            return [zlib.crc32((query + one).encode()) for one in documents]

        self.note("rerank", asked, "first", first, "count", count)
        order = ciphervec.Rerank(numbers, first, texts)
        _, found = attempt(
            lambda: self.rows.query(asked, count, include=["documents"], rerank=order, audience="owner"),
            right=True,
        )
        rows = self.model.rows
        for text, names, documents, scores in zip(
            texts, found["ids"], found["documents"], found["rerank_scores"], strict=True
        ):
            assert len(names) == len(set(names)) == min(count, len(rows))
            assert documents == [rows[name].document for name in names]
            assert scores == [None if one is None else numbers(text, [one])[0] for one in documents]
            there = [one for one in scores if one is not None]
            assert scores == sorted(there, reverse=True) + [None] * (len(scores) - len(there))
            if max(first, count) >= len(rows):
                every = [
                    numbers(text, [row.document])[0] for row in rows.values() if row.document is not None
                ]
                assert there == sorted(every, reverse=True)[:count]

    def _ranked(
        self, found: Any, asked: np.ndarray, allowed: list[Id], most: int | None, radius: float | None
    ) -> None:
        assert len(found["ids"]) == len(asked)
        if not len(asked):
            return
        rows = np.array([self.model.rows[name].vector for name in allowed], np.float32).reshape(
            len(allowed), D
        )
        exact = self.oracle.distances(self.metric, rows, asked)
        slack = (
            self.oracle.tolerance(self.metric, self.precision, rows, asked, self.score_error)
            * (1 if self.originals else 4)
            + 1e-6
        )
        place = {name: at for at, name in enumerate(allowed)}
        for number, (line, error) in enumerate(zip(exact, slack, strict=True)):
            names, distances, scores = (found[part][number] for part in ("ids", "distances", "scores"))
            assert len(set(names)) == len(names) == len(distances) == len(scores)
            at = [place[name] for name in names]
            got = np.array(distances)
            assert np.all(np.abs(got - line[at]) <= error[at]), (names, got, line[at], error[at])
            expected = -got if self.metric in ("l2", "hamming") else 1 - got
            assert np.allclose(scores, expected, atol=1e-6, rtol=1e-6), (scores, got)
            assert np.all(np.diff(got) >= 0), got
            left = np.setdiff1d(np.arange(len(allowed)), at)
            if radius is None:
                assert len(names) == min(most or 0, len(allowed)), (len(names), most, len(allowed))
            else:
                assert np.all(line[at] <= radius + error[at])
                if most is None or len(names) < most:
                    assert np.all(line[left] >= radius - error[left]), (line[left], radius)
                    continue
            if len(at) and len(left):
                assert line[at[-1]] - 2 * error[at[-1]] <= np.min(line[left] + 2 * error[left]), (
                    "a closer row was left out"
                )
            if found["metadatas"] is not None:
                self._same(
                    {
                        part: found[part][number] if found[part] is not None else None
                        for part in ("ids", "metadatas", "documents", "embeddings")
                    }
                )

    def look(self, chance: random.Random) -> None:
        """`peek`, `in`, `len`, `info`, tables."""
        order = self._order()
        count = chance.choice([1, 3, 100])
        found = self.rows.peek(count)
        assert found["ids"] == order[:count]
        self._same(found)
        assert len(self.rows) == self.rows.info()["count"] == len(order)
        names = [values.name(chance) for _ in range(4)] + [
            (one, one) for one in chance.sample(order, min(2, len(order)))
        ]
        for given, stored in names:
            assert (given in self.rows) == (stored is not values.REFUSED and stored in self.model.rows), given
        assert [one["id"] for one in found.rows()] == found["ids"]
        if values.pd is not None:
            frame = found.to_pandas()
            fields = [name for about in found["metadatas"] for name in about or ()]
            assert frame.shape[1] == (2 + len(set(fields)) if len(frame) else 0), (list(frame), fields)
            assert len(frame) == len(found["ids"]) and (
                not len(frame) or frame["id"].tolist() == found["ids"]
            )
        found._repr_html_()

    def settle(self) -> None:
        self._settle(self.rows)

    def _settle(self, rows: Any) -> None:
        assert rows.count() == len(self.model.rows), (rows.count(), len(self.model.rows))
        self._whole(rows.get(include=["metadatas", "documents", "embeddings"]))

    def _whole(self, found: Any) -> None:
        assert len(found["ids"]) == len(self.model.rows) and set(found["ids"]) == set(self.model.rows)
        assert all(type(name) in (str, int) for name in found["ids"])
        self._same(found)
