"""Collections in memory, in folders and on a server beside a dictionary, with every verb, and values of every type."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import ciphervec
from ciphervec.http import LocalServer

from . import values
from .model import Id, Model, RefusedError, Row, attempt, condition
from .questions import D, Questions

MOST = 60
"""Rows, beyond which some are deleted first."""
KEYS = ciphervec.Keys.generate()
ADDITIVE = (
    ("paillier", "standard", 9.5 * 2.23e-5),
    ("okamoto-uchiyama", "small", 9.5 * 1.39e-4),
    ("elgamal", "small", 9.5 * 1.39e-4),
)
"""Schemes with a key pair, and what similarity/additive/grid.rs says of their scores' errors: √(…) there, times 9.5."""
_SPAWNED = """
import json, sys, ciphervec
keys = ciphervec.Keys.load(sys.argv[2])
with ciphervec.PersistentClient(sys.argv[1], keys, read_only=True) as client:
    found = client.get_collection("rows", allow_open=True).get(include=["documents", "metadatas"])
    print(json.dumps([found["ids"], found["metadatas"], found["documents"]]))
"""


class CollectionScene(Questions):
    """One collection; `place` is memory, folder or http."""

    weights: ClassVar = {
        "add": 8,
        "upsert": 6,
        "skip_zeros": 1,
        "update": 6,
        "merge": 5,
        "delete": 4,
        "get": 8,
        "query": 10,
        "rerank": 2,
        "look": 2,
        "create": 2,
        "change": 2,
        "optimize": 2,
        "reopen": 2,
        "copy": 1,
        "threads": 1,
        "fork": 1,
        "spawn": 1,
        "coroutine": 1,
    }

    def __init__(self, folder: Path, seed: int, *, place: str, oracle: Any) -> None:
        super().__init__(folder, seed)
        self.place, self.oracle = place, oracle
        chance = random.Random(seed)
        self.mode = chance.choice(["open", "sealed-index", "sealed-query", "sealed", "sealed"])
        self.metric = chance.choice(["cosine", "ip", "l2", "hamming"])
        self.precision = (
            chance.choice(["standard", "small", "wide"]) if self.mode == "sealed-index" else "standard"
        )
        if self.metric == "hamming":
            self.precision = "standard"
        self.scheme = "lattice"
        if self.mode == "sealed-index" and chance.random() < 0.4:
            self.scheme, self.precision, self.score_error = chance.choice(ADDITIVE)
        self.originals = chance.random() < 0.7
        self.filterable = chance.choice([[], ["f"], ["f", "n"]])
        self.model = Model()
        self.server: LocalServer | None = None
        self.clients = 0
        self.client = self._opened()
        self.rows = self.client.create_collection(
            "rows",
            D,
            self.metric,
            self.mode,
            self.precision,
            self.filterable,
            scheme=self.scheme,
            bits=None if self.scheme in ("lattice", "elgamal") else 2048,
            originals=self.originals,
        )
        self.note(
            place,
            self.mode,
            self.metric,
            self.precision,
            self.scheme,
            f"originals={self.originals}",
            f"filterable={self.filterable}",
        )

    def _opened(self) -> Any:
        if self.place == "memory":
            return ciphervec.Client(KEYS)
        if self.place == "folder":
            return ciphervec.PersistentClient(self.folder / "db", KEYS)
        if self.server is None:
            self.server = LocalServer(self.folder / "db")
        self.clients += 1
        return ciphervec.HttpClient(self.server.url, keys=KEYS, state=self.folder / f"state{self.clients}")

    def close(self) -> None:
        with contextlib.suppress(ciphervec.CiphervecError):
            self.client.close()
        if self.server is not None:
            self.server.stop()
            self.server = None

    # Verbs.

    def add(self, chance: random.Random) -> None:
        if len(self.model.rows) > MOST:
            gone = chance.sample(list(self.model.rows), MOST // 2)
            assert self.rows.delete(gone) == len(gone)
            for name in gone:
                del self.model.rows[name]
        self._put(chance, "add", 0.05)

    def upsert(self, chance: random.Random) -> None:
        self._put(chance, "upsert", 0.5)

    def skip_zeros(self, chance: random.Random) -> None:
        """Zero vectors among new rows: left out where they have no direction, and rows like others elsewhere."""
        names = [name for name in range(1000, 1010) if name not in self.model.rows][
            : chance.choice([1, 2, 4])
        ]
        if not names or self.metric == "hamming":
            return
        rows = self._vectors(chance, len(names))
        zero = [chance.random() < 0.5 for _ in names]
        rows[zero] = 0
        self.note("add", names, rows, "on_zero='skip'")
        new = [Row(row, None, None) for row in rows]
        if self.metric == "cosine":
            kept = [(name, row) for name, row, out in zip(names, new, zero, strict=True) if not out]
            names_kept, new = [name for name, _ in kept], [row for _, row in kept]
        else:
            names_kept = names
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert self.rows.add(names, rows, on_zero="skip") == names_kept
        self.model.put("add", names_kept, new)

    def _put(self, chance: random.Random, verb: str, there: float) -> None:
        names = self._names(chance, chance.choice([0, 1, 1, 2, 3, 5]), there)
        given, stored, about, texts = self._batch(chance, names)
        rows = self._vectors(chance, len(names))
        form, must = (
            self._form(chance, rows) if len(names) else (chance.choice([[], np.empty((0, D)), rows]), True)
        )
        right: bool | None = True if must else None
        bad = any(one is values.REFUSED for one in [*stored, *(s for _, s in about), *(s for _, s in texts)])
        if len(names) and chance.random() < 0.06:
            form = values.spoilt(chance, rows, self.metric == "cosine")
            # Whatever is put into an array of bits becomes one.
            bits = self.metric == "hamming" and isinstance(form, np.ndarray) and form.dtype == bool
            bad, right = (bad, True) if bits else (True, right)
        call = getattr(self.rows, verb)
        metadatas, _ = values.several(chance, [one for one, _ in about])
        documents, _ = values.several(chance, [one for one, _ in texts])
        ids, unordered = values.several(chance, given, ids=True)
        if len(names) > 1 and chance.random() < 0.04:
            metadatas, bad = [one for one, _ in about][:-1], True
        made_up = verb == "add" and chance.random() < 0.1 and not any(s is values.REFUSED for s in stored)
        if made_up:
            ids = None
        bad = bad or (unordered and not made_up)
        if (
            len(given) == 1
            and not unordered
            and chance.random() < 0.3
            and not isinstance(given[0], list | tuple)
        ):
            ids = None if made_up else given[0]
            metadatas, documents = about[0][0], texts[0][0]
            if (
                metadatas is not None
                and not isinstance(about[0][0], dict)
                and about[0][1] is not values.REFUSED
            ):
                metadatas = [about[0][0]]
            if isinstance(texts[0][0], list):
                documents = [texts[0][0]]
        self.note(
            verb,
            ids,
            "embeddings",
            form,
            "metadatas",
            [one for one, _ in about],
            "documents",
            [one for one, _ in texts],
            f"bad={bad}",
        )
        after = Model()
        after.rows = dict(self.model.rows)
        new = [Row(row, a, t) for row, (_, a), (_, t) in zip(rows, about, texts, strict=True)]
        if not bad and not made_up:
            try:
                after.put(verb, stored, new)
            except RefusedError:
                bad = True
        taken, found = attempt(partial(call, ids, form, metadatas, documents), right=False if bad else right)
        if taken:
            if made_up:
                assert len(found) == len(set(found)) == len(names)
                after.put("add", found, new)
            else:
                assert values.identical(found, stored), (found, stored)
            self.model = after

    def update(self, chance: random.Random) -> None:
        names = self._names(chance, chance.choice([1, 1, 2, 3]), 0.97)
        given, stored, about, texts = self._batch(chance, names)
        rows, vectors, right, bad = self._some(chance, len(names))
        gone = chance.sample(["f", "n", "x", "id"], chance.choice([0, 0, 1, 2]))
        with_about, with_texts = chance.random() < 0.7, chance.random() < 0.5
        bad = bad or any(one is values.REFUSED for one in stored)
        bad = (
            bad
            or (with_about and any(s is values.REFUSED for _, s in about))
            or (with_texts and any(s is values.REFUSED for _, s in texts))
        )
        fields, _ = values.several(chance, list(gone))
        ids, unordered = values.several(chance, given, ids=True)
        bad = bad or unordered
        self.note(
            "update",
            given,
            "embeddings",
            vectors,
            with_about and [one for one, _ in about],
            with_texts and [one for one, _ in texts],
            gone,
            f"bad={bad}",
        )
        after = Model()
        after.rows = dict(self.model.rows)
        changes = [
            Row(None, a if with_about else None, t if with_texts else None)
            for (_, a), (_, t) in zip(about, texts, strict=True)
        ]  # type: ignore[arg-type]
        if not bad:
            try:
                after.update(stored, rows, changes, gone)
            except RefusedError:
                bad = True
        taken, _ = attempt(
            lambda: self.rows.update(
                ids,
                vectors,
                [one for one, _ in about] if with_about else None,
                [one for one, _ in texts] if with_texts else None,
                remove_fields=fields,
            ),
            right=False if bad else right,
        )
        if taken:
            self.model = after

    def merge(self, chance: random.Random) -> None:
        names = self._names(chance, chance.choice([1, 2, 3]), 0.7)
        given, stored, about, texts = self._batch(chance, names)
        rows, vectors, right, bad = self._some(chance, len(names))
        known, unknown = chance.choice(["merge", "merge", "keep"]), chance.choice(["add", "add", "skip"])
        bad = bad or any(
            one is values.REFUSED for one in [*stored, *(s for _, s in about), *(s for _, s in texts)]
        )
        self.note(
            "merge",
            given,
            "embeddings",
            vectors,
            [one for one, _ in about],
            [one for one, _ in texts],
            known,
            unknown,
            f"bad={bad}",
        )
        after = Model()
        after.rows = dict(self.model.rows)
        written = 0
        if not bad:
            try:
                changes = [Row(None, a, t) for (_, a), (_, t) in zip(about, texts, strict=True)]  # type: ignore[arg-type]
                written = after.merge(stored, rows, changes, known, unknown)
            except RefusedError:
                bad = True
        taken, found = attempt(
            lambda: self.rows.merge(
                given,
                vectors,
                [one for one, _ in about],
                [one for one, _ in texts],
                known=known,
                unknown=unknown,
            ),
            right=False if bad else right,
        )
        if taken:
            assert found == written, (found, written)
            self.model = after

    def delete(self, chance: random.Random) -> None:
        ids = where = plain = None
        stored: list[Any] = []
        if chance.random() < 0.7:
            names = self._names(chance, chance.choice([0, 1, 2, 3]), 0.9)
            stored = [one for _, one in names]
            ids, _ = values.several(chance, [one for one, _ in names], ids=True)
        if ids is None or chance.random() < 0.3:
            where, plain = condition(chance)
        missing_ok = chance.random() < 0.5
        bad = plain is values.REFUSED or any(one is values.REFUSED for one in stored)
        right: bool | None = True
        if (
            not bad
            and ids is not None
            and not missing_ok
            and any(one not in self.model.rows for one in stored)
        ):
            bad = True
        self.note(
            "delete", stored if ids is not None else None, where, f"missing_ok={missing_ok}", f"bad={bad}"
        )
        gone: list[Id] = []
        if not bad:
            passing = self.model.passing(plain)
            gone = [name for name in passing if ids is None or name in stored]
            if len(gone) > MOST // 2:
                return
        taken, found = attempt(
            lambda: self.rows.delete(ids, where, missing_ok=missing_ok), right=False if bad else right
        )
        if taken:
            assert found == len(gone), (found, gone)
            for name in gone:
                del self.model.rows[name]

    # The collection itself.

    def create(self, chance: random.Random) -> None:
        """Another collection, with choices that may not be."""
        given = {
            "name": chance.choice(
                [
                    "other",
                    "other",
                    "other",
                    "o",
                    "",
                    "../o",
                    "a/b",
                    "caf\u00e9",
                    "x" * 129,
                    5,
                    None,
                    "a..b",
                    "rows",
                    "\ud800",
                    "a\n",
                ]
            ),
            "dimension": chance.choice([4, 4, 4, np.int64(4), 1, 16_384, 0, -1, 16_385, 4.0, "4", True, [4]]),
            "metric": chance.choice(
                ["cosine", "l2", "ip", "hamming", "Cosine", "", None, 5, ["l2"], np.str_("l2")]
            ),
            "mode": chance.choice(["sealed", "open", "sealed-index", "sealed-query", "SEALED", None, 0, {}]),
            "precision": chance.choice(["standard", "standard", "small", "wide", "high", None, []]),
            "filterable": chance.choice(
                [
                    (),
                    ["f"],
                    ("f", "g"),
                    "f",
                    ["f", "f"],
                    [""],
                    ["$f"],
                    [5],
                    None,
                    5,
                    iter(["f"]),
                    {"f"},
                    ["\ud800"],
                    np.array(["f"]),
                ]
            ),
        }
        for key in chance.sample(list(given), chance.choice([3, 4, 5, 6])):
            given[key] = {
                "name": "other",
                "dimension": 4,
                "metric": "cosine",
                "mode": "sealed-index",
                "precision": "standard",
                "filterable": (),
            }[key]
        self.note("create", given)
        verb = chance.choice(["create_collection", "get_or_create_collection"])
        taken, made = attempt(lambda: getattr(self.client, verb)(**given), right=None)
        if taken:
            assert (
                made.dimension == given["dimension"]
                and made.metric == given["metric"]
                and made.mode == given["mode"]
            )
            assert self.client.list_collections() == sorted(["rows", made.name])
            vectors = np.ones((2, made.dimension), np.float32)
            made.add(["a", 1], vectors, [{"f": "x"}, {"f": 1}])
            assert made.get(where={"f": 1})["ids"] == [1] and made.count() == 2
            assert set(made.query(vectors[:1], where={"f": "x"}, audience="owner")["ids"][0]) == {"a"}
            assert attempt(lambda: self.client.create_collection(made.name, 4), right=False)
            if made.name != "rows":
                self.client.delete_collection(made.name)
        assert self.client.list_collections() == ["rows"]
        odd = chance.choice(["", None, 5, "nowhere", "../rows", ["rows"], b"rows", "\ud800", "ROWS"])
        for verb in ("get_collection", "delete_collection"):
            attempt(partial(getattr(self.client, verb), odd), right=False)

    def change(self, chance: random.Random) -> None:
        """What may be changed of a collection while rows stay."""
        verbs: list[Callable[[], Any]] = [self.rows.verify, self.rows.refresh, self.rows.explain]
        if self.mode != "open":
            verbs.append(lambda: self.rows.adopt())
        if self.mode != "open" and self.scheme == "lattice":
            verbs.append(self.rows.rotate_query_key)
        field = chance.choice(["n", "x", "caf\u00e9"])
        if field not in self.rows.filterable:
            verbs.append(lambda: self.rows.extend_filterable([field]))
        chance.choice(verbs)()
        for bad in (5, None, "x", [""], ["$x"], [5]):
            attempt(partial(self.rows.extend_filterable, bad), right=False)

    def optimize(self, chance: random.Random) -> None:
        self.rows.optimize(reseal=chance.random() < 0.3)
        assert self.rows.info()["deleted"] == 0

    def reopen(self, chance: random.Random) -> None:
        """A new client; of a server, perhaps after it was started again."""
        if self.place == "memory":
            return
        self.client.close()
        if self.server is not None and chance.random() < 0.4:
            self.server.kill() if chance.random() < 0.5 else self.server.stop()
            self.server = None
        self.client = self._opened()
        self.rows = self.client.get_collection("rows", allow_open=True)

    def copy(self, chance: random.Random) -> None:
        """A snapshot, taken back elsewhere."""
        at = self.folder / f"copy{chance.randrange(1 << 40)}"
        assert self.client.snapshot("rows", at) == len(self.model.rows)
        with ciphervec.PersistentClient(at, KEYS) as client:
            self._settle(client.get_collection("rows", allow_open=True))

    def threads(self, chance: random.Random) -> None:
        failed: list[BaseException] = []

        def ask(seed: int) -> None:
            try:
                for verb in ("query", "get", "query"):
                    getattr(self, verb)(random.Random(seed))
            except BaseException as error:
                failed.append(error)

        working = [threading.Thread(target=ask, args=(chance.randrange(1 << 30),)) for _ in range(3)]
        for one in working:
            one.start()
        for one in working:
            one.join()
        if failed:
            raise failed[0]

    def fork(self, chance: random.Random) -> None:
        """A child sees what there is, and what it does to a collection in memory is its own."""
        seed = chance.randrange(1 << 30)
        child = os.fork()
        if child == 0:
            try:
                self._settle(self.rows)
                self.query(random.Random(seed))
                if self.place == "memory":
                    self.rows.upsert([0], self._vectors(chance, 1))
                    self.rows.optimize()
                os._exit(0)
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert status == 0, f"the child ended with {status}"

    def spawn(self, chance: random.Random) -> None:
        """A process of its own reads the folder."""
        if self.place != "folder":
            return
        key = self.folder / "key"
        if not key.exists():
            KEYS.save(key, allow_plaintext=True)
        words = [sys.executable, "-c", _SPAWNED, str(self.folder / "db"), str(key)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        ids, metadatas, documents = json.loads(done.stdout)
        self._same({"ids": ids, "metadatas": metadatas, "documents": documents, "embeddings": None})
        assert set(ids) == set(self.model.rows)

    def coroutine(self, chance: random.Random) -> None:
        """The client for event loops sees and does the same."""
        if self.server is None:
            return
        url, state = self.server.url, self.folder / "async"
        asked = self._vectors(chance, 2)

        async def ask() -> None:
            async with ciphervec.AsyncHttpClient(url, keys=KEYS, state=state) as client:
                rows = await client.get_collection("rows", allow_open=True)
                found, answers = await asyncio.gather(
                    rows.get(include=["metadatas", "documents", "embeddings"]),
                    rows.query(asked, 3, audience="owner", include=["distances", "scores"]),
                )
                self._whole(found)
                self._ranked(answers, asked, list(self.model.rows), 3, None)

        asyncio.run(ask())
