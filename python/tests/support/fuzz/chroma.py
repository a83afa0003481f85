"""The sidecar beside a dictionary: requests as Chroma's clients send them, and as they must not. What is asked is answered
as the dictionary says, and what is wrong with a status from 400 on and a sentence; never with 500."""

from __future__ import annotations

import base64
import contextlib
import json
import random
from pathlib import Path
from typing import Any, ClassVar

import httpx
import numpy as np

from chroma_api import COLLECTIONS, running
from ciphervec import Client

from . import values
from .runner import Scene

D = 6
IDS = [
    "a",
    "b",
    "c",
    "d",
    "e",
    "7",
    "007",
    " a",
    "caf\u00e9",
    "cafe\u0301",
    "\U0001f600",
    "x" * 300,
    "a\0",
    "$eq",
]
WORDS = ["red", "green", "deep red", "", "caf\u00e9", "a.b", "x\ny", "7"]
Row = tuple[np.ndarray, dict[str, Any] | None, str | None]


class SidecarScene(Scene):
    """One collection behind the sidecar's API."""

    weights: ClassVar = {
        "add": 6,
        "upsert": 6,
        "update": 5,
        "delete": 3,
        "get": 8,
        "query": 8,
        "wrong": 8,
        "names": 2,
    }

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        chance = random.Random(seed)
        self.stack = contextlib.ExitStack()
        self.api: httpx.Client = self.stack.enter_context(running(Client()))
        self.space = chance.choice(["l2", "cosine", "ip"])
        made = self.api.post(COLLECTIONS, json={"name": "rows", "metadata": {"hnsw:space": self.space}})
        assert made.status_code == 200, made.text
        self.path = f"{COLLECTIONS}/{made.json()['id']}"
        self.rows: dict[str, Row] = {}
        self.note(self.space)

    def close(self) -> None:
        self.stack.close()

    def _post(self, verb: str, body: Any, right: bool | None = True) -> Any:
        self.note(verb, json.dumps(body)[:700], f"right={right}")
        reply = self.api.post(f"{self.path}/{verb}", json=body)
        assert reply.status_code < 500, (reply.status_code, reply.text)
        if right is not None:
            assert (reply.status_code < 300) == right, (reply.status_code, reply.text)
        if reply.status_code >= 300:
            assert len(reply.json()["message"]) > 8, reply.text
            return None
        return reply.json()

    def _vector(self, chance: random.Random) -> np.ndarray:
        return np.array([chance.choice([-1, 1]) * chance.randrange(1, 33) / 8 for _ in range(D)], np.float32)

    def _batch(self, chance: random.Random) -> tuple[list[str], np.ndarray, list[Any], list[Any]]:
        names = chance.sample(IDS, chance.choice([1, 1, 2, 3]))
        rows = np.stack([self._vector(chance) for _ in names])
        about: list[Any] = []
        for _ in names:
            fields = chance.sample(["t", "n", "x", "b", "l"], chance.randrange(1, 4))
            drawn = {
                "t": chance.choice(WORDS),
                "n": chance.choice([0, 1, -3, 2**53, 2**63 - 1]),
                "x": chance.choice([0.5, 1.0, -2.25]),
                "b": chance.random() < 0.5,
                "l": chance.choice([["red", "x"], [1, 2], [True]]),
            }
            about.append({field: drawn[field] for field in fields} if chance.random() < 0.8 else None)
        return names, rows, about, [chance.choice(WORDS) if chance.random() < 0.8 else None for _ in names]

    def _sent(self, chance: random.Random, rows: np.ndarray) -> list[Any]:
        if chance.random() < 0.5:
            return [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in rows]
        return rows.tolist()

    def add(self, chance: random.Random) -> None:
        """A row that is there stays as it is."""
        names, rows, about, texts = self._batch(chance)
        self._post(
            "add",
            {"ids": names, "embeddings": self._sent(chance, rows), "metadatas": about, "documents": texts},
        )
        for name, row, fields, text in zip(names, rows, about, texts, strict=True):
            self.rows.setdefault(name, (row, fields, text))

    def upsert(self, chance: random.Random) -> None:
        names, rows, about, texts = self._batch(chance)
        self._post(
            "upsert",
            {"ids": names, "embeddings": self._sent(chance, rows), "metadatas": about, "documents": texts},
        )
        for name, row, fields, text in zip(names, rows, about, texts, strict=True):
            _, before, old = self.rows.get(name, (row, None, None))
            laid = {**(before or {}), **(fields or {})} or None
            self.rows[name] = (row, laid, old if text is None else text)

    def update(self, chance: random.Random) -> None:
        """A row that is not there is left out; a field given as null goes."""
        names, rows, about, texts = self._batch(chance)
        body: dict[str, Any] = {"ids": names}
        if chance.random() < 0.5:
            body["embeddings"] = self._sent(chance, rows)
        if chance.random() < 0.7:
            about = [None if one is None else {**one, chance.choice(["t", "n"]): None} for one in about]
            body["metadatas"] = about
        if chance.random() < 0.7:
            body["documents"] = texts
        self._post("update", body)
        for at, name in enumerate(names):
            if name not in self.rows:
                continue
            vector, fields, text = self.rows[name]
            if body.get("metadatas") and about[at] is not None:
                over = {**(fields or {}), **about[at]}
                fields = {k: v for k, v in over.items() if v is not None} or None
            if body.get("documents") and texts[at] is not None:
                text = texts[at]
            self.rows[name] = (rows[at] if "embeddings" in body else vector, fields, text)

    def _filter(self, chance: random.Random) -> tuple[Any, Any]:
        """`where` and what it tests."""
        if chance.random() < 0.25:
            parts = [self._filter(chance) for _ in range(2)]
            joint = chance.choice(["$and", "$or"])
            combine = all if joint == "$and" else any
            return {joint: [one for one, _ in parts]}, lambda row: combine(test(row) for _, test in parts)
        field = chance.choice(["t", "n", "x", "b", "nowhere"])
        operand: Any = {"t": "red", "n": 1, "x": 0.5, "b": True, "nowhere": 1}[field]
        operator = chance.choice(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", ""])
        if operator in ("$gt", "$gte", "$lt", "$lte") and field in ("t", "b"):
            field, operand = "n", 1

        def test(row: Row) -> bool:
            there = (row[1] or {}).get(field)
            equal = (
                there is not None
                and (isinstance(there, bool) == isinstance(operand, bool))
                and there == operand
            )
            if operator in ("$ne", "$nin"):
                return not equal
            if operator in ("$eq", "$in", ""):
                return equal
            if there is None or isinstance(there, bool | str | list):
                return False
            return bool(
                {
                    "$gt": there > operand,
                    "$gte": there >= operand,
                    "$lt": there < operand,
                    "$lte": there <= operand,
                }[operator]
            )

        if not operator:
            return {field: operand}, test
        return {field: {operator: [operand] if operator in ("$in", "$nin") else operand}}, test

    def _asked(self, chance: random.Random) -> tuple[dict[str, Any], list[str]]:
        """A filter, and the rows that pass."""
        body: dict[str, Any] = {}
        passing = list(self.rows)
        if chance.random() < 0.5:
            body["where"], test = self._filter(chance)
            passing = [name for name in passing if test(self.rows[name])]
        if chance.random() < 0.3:
            word = chance.choice(["red", "a", "caf\u00e9"])
            operator = chance.choice(["$contains", "$not_contains", "$regex", "$not_regex"])
            body["where_document"] = {operator: word}
            there = {
                name for name in passing if self.rows[name][2] is not None and word in self.rows[name][2]
            }  # type: ignore[operator]
            passing = [name for name in passing if (name in there) != operator.startswith("$not")]
        return body, passing

    def delete(self, chance: random.Random) -> None:
        if chance.random() < 0.5:
            names = chance.sample(IDS, 2)
            self._post("delete", {"ids": names})
            gone = [name for name in names if name in self.rows]
        else:
            body, gone = self._asked(chance)
            if not body or len(gone) > 6:
                return
            assert self._post("delete", body)["deleted"] == len(gone)
        for name in gone:
            del self.rows[name]

    def get(self, chance: random.Random) -> None:
        body, passing = self._asked(chance)
        if chance.random() < 0.4:
            body["ids"] = chance.sample(IDS, 3)
            passing = [name for name in passing if name in body["ids"]]
        limit, offset = chance.choice([(None, 0), (2, 0), (3, 1), (0, 0), (10**6, 2)])
        found = self._post(
            "get",
            {**body, "limit": limit, "offset": offset, "include": ["metadatas", "documents", "embeddings"]},
        )
        stop = None if limit is None else offset + limit
        if limit is None and not offset:
            assert sorted(found["ids"]) == sorted(passing), (found["ids"], passing)
        assert len(found["ids"]) == len(passing[offset:stop]) and set(found["ids"]) <= set(passing)
        for at, name in enumerate(found["ids"]):
            vector, fields, text = self.rows[name]
            assert np.array_equal(np.array(found["embeddings"][at], np.float32), vector), (
                found["embeddings"][at],
                vector,
            )
            assert _same_fields(found["metadatas"][at], fields), (found["metadatas"][at], fields)
            assert found["documents"][at] == text

    def query(self, chance: random.Random) -> None:
        body, passing = self._asked(chance)
        asked = np.stack([self._vector(chance) for _ in range(chance.choice([1, 2]))])
        count = chance.choice([1, 3, 50])
        found = self._post(
            "query",
            {
                **body,
                "query_embeddings": self._sent(chance, asked),
                "n_results": count,
                "include": ["distances", "metadatas", "documents"],
            },
        )
        for one, names, distances in zip(asked, found["ids"], found["distances"], strict=True):
            exact = {name: self._distance(one, self.rows[name][0]) for name in passing}
            assert len(names) == min(count, len(passing)) and set(names) <= set(passing)
            for name, distance in zip(names, distances, strict=True):
                assert abs(distance - exact[name]) < 1e-4 * max(1, abs(exact[name])), (
                    name,
                    distance,
                    exact[name],
                )
            left = [distance for name, distance in exact.items() if name not in names]
            assert not left or not names or exact[names[-1]] <= min(left) + 1e-3 * max(1, abs(min(left)))

    def _distance(self, a: np.ndarray, b: np.ndarray) -> float:
        a, b = a.astype(float), b.astype(float)
        if self.space == "l2":
            return float(((a - b) ** 2).sum())
        product = float(a @ b)
        return 1 - (
            product / float(np.linalg.norm(a) * np.linalg.norm(b)) if self.space == "cosine" else product
        )

    def wrong(self, chance: random.Random) -> None:
        """What no client may send."""
        verb = chance.choice(["add", "upsert", "update", "get", "query", "delete"])
        good: dict[str, Any] = (
            {"ids": ["a"], "embeddings": [[1.0] * D]}
            if verb in ("add", "upsert", "update")
            else {"ids": ["a"]}
        )
        if verb == "query":
            good = {"query_embeddings": [[1.0] * D], "n_results": 1}
        bad: Any = chance.choice(
            [
                None,
                5,
                "x",
                "",
                [],
                {},
                [5],
                [None],
                ["a", "a"],
                [[]],
                [["1"] * D],
                [[True] * D],
                [[1.0] * (D + 1)],
                [[1e39] * D],
                ["!!!"],
                ["AAAA"],
                -1,
                1.5,
                2**70,
                True,
                [{"a": None}],
                [{"": 1}],
                [{"a": {"b": 1}}],
                [[{}]],
                {"$and": []},
                {"t": {"$gt": "x"}},
                {"t": {"$in": []}},
                {"t": {"$like": 1}},
                {"$or": 5},
                {"t": []},
                {"t": None},
                {"$regex": "("},
                {"$contains": 5},
                ["nothing"],
                [[1.0] * D, ["2"] * D],
                "\ud7ff",
                [[1.0] * D, [True] * D],
                {"n": {"$in": [1, "x"]}},
                [{"a": [1, "x"]}],
                [{"a": []}],
            ]
        )
        names = [
            "ids",
            "embeddings",
            "metadatas",
            "documents",
            "uris",
            "where",
            "where_document",
            "limit",
            "offset",
            "include",
            "query_embeddings",
            "n_results",
        ]
        body = {**good, chance.choice(names): bad}
        before = {name: self.rows[name] for name in self.rows}
        reply = self.api.post(f"{self.path}/{verb}", json=body)
        self.note("wrong", verb, body, reply.status_code, reply.text[:200])
        assert reply.status_code < 500 or "Error finding id" in reply.text, (verb, body, reply.text)
        for raw in (
            b"",
            b"{",
            b"[]",
            b"null",
            b"\xff",
            b'{"ids": ' + b"[" * 5000,
            b'{"ids": ["\\ud800"]}',
            b'{"n_results": NaN}',
        ):
            sent = self.api.post(
                f"{self.path}/{verb}", content=raw, headers={"content-type": "application/json"}
            )
            assert sent.status_code < 500, (raw[:30], sent.text)
        if reply.status_code < 300 and verb in ("add", "upsert", "update", "delete"):
            self._reread()
            for text in ('["2"', "true", "True"):
                assert (
                    verb == "delete" or "embeddings" not in body or text not in json.dumps(body["embeddings"])
                ), f"taken: {body}"
        else:
            self.rows = before

    def _reread(self) -> None:
        found = self._post("get", {"include": ["metadatas", "documents", "embeddings"]})
        self.rows = {
            name: (np.array(vector, np.float32), fields, text)
            for name, vector, fields, text in zip(
                found["ids"], found["embeddings"], found["metadatas"], found["documents"], strict=True
            )
        }

    def names(self, chance: random.Random) -> None:
        """Other collections, with names and descriptions that may not be."""
        name = chance.choice(
            ["other", "ot", "x" * 512, "x" * 513, "", None, 5, "../x", "a b", "rows", "caf\u00e9", "a..b"]
        )
        body = {
            "name": name,
            "metadata": chance.choice([None, {"a": 1}, {}, 5, {"hnsw:space": "bad"}, {"a": [1]}]),
            "get_or_create": chance.choice([True, False, None, "x"]),
            "configuration": chance.choice(
                [None, {}, {"hnsw": {"space": "l2"}}, 5, {"hnsw": 5}, {"hnsw": {"space": 5}}]
            ),
        }
        reply = self.api.post(COLLECTIONS, json=body)
        self.note("names", body, reply.status_code, reply.text[:200])
        assert reply.status_code < 500, (body, reply.text)
        for method, path in (
            ("GET", "/nowhere"),
            ("DELETE", "/nowhere"),
            ("GET", "?limit=x"),
            ("GET", "?offset=-1"),
            ("POST", "/no-uuid/get"),
            ("GET", f"/by-id/{name}x"),
        ):
            sent = self.api.request(method, COLLECTIONS + path, json={} if method == "POST" else None)
            assert 400 <= sent.status_code < 500, (method, path, sent.text)
        if reply.status_code < 300 and name != "rows":
            assert self.api.delete(f"{COLLECTIONS}/{name}").status_code == 200

    def settle(self) -> None:
        found = self._post("get", {"include": ["metadatas", "documents", "embeddings"]})
        assert sorted(found["ids"]) == sorted(self.rows), (found["ids"], list(self.rows))
        for at, name in enumerate(found["ids"]):
            vector, fields, text = self.rows[name]
            assert np.array_equal(np.array(found["embeddings"][at], np.float32), vector)
            assert _same_fields(found["metadatas"][at], fields), (name, found["metadatas"][at], fields)
            assert found["documents"][at] == text, (name, found["documents"][at], text)
        count = self.api.get(f"{self.path}/count").json()
        assert count == len(self.rows)


def _same_fields(found: Any, wanted: Any) -> bool:
    """In any order; an empty object and none are the same to Chroma."""
    one, other = found or {}, wanted or {}
    return one.keys() == other.keys() and all(values.identical(one[name], other[name]) for name in one)
