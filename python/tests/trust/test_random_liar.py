"""A server that tells lies of every kind at random: what its client returns is right, or refused."""

from __future__ import annotations

import json
import os
import random
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from ciphervec import Collection, HttpClient, Keys, _native
from ciphervec.errors import CiphervecError
from ciphervec.http import LocalServer
from ciphervec.http.transport import Direct

D = 16
NAMES = {"sealed": "sealed", "queries": "sealed-query", "index": "sealed-index"}
COLOURS = ("red", "green")
ERROR = 2e-4
"""Of a cosine."""
STEPS = int(os.environ.get("CIPHERVEC_LIES", "300"))
"""Operations; `make nightly` takes 10,000."""
SEED = int(os.environ.get("CIPHERVEC_SEED", "1"))

Reply = tuple[int, httpx.Headers, bytes]


def kind(request: httpx.Request) -> tuple[str, str]:
    """What an answer can be taken for another's: the request without its collection and segment; and the collection."""
    parts = request.url.path.split("/")
    name = parts[3] if len(parts) > 3 else ""
    shape = [part for part in parts[4:] if len(part) != 32]
    return f"{request.method} {'/'.join(shape)}", name


def reframed(data: bytearray) -> bytes:
    """With the hash that its frame carries, where it is one: no lie is found by that."""
    if data[:4] == b"CVEC" and len(data) > 64:
        data[32:64] = _native.blake3(bytes(data[:32] + data[64:]))
    return bytes(data)


class Liar(httpx.HTTPTransport):
    """Lies in answers while `chance` says so, and keeps all that it has ever answered."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.chance = 0.0
        self.told: Counter[str] = Counter()
        self.before: dict[str, list[tuple[str, Reply]]] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        what, name = kind(request)
        lies = self.random.random() < self.chance
        past = self.before.setdefault(what, [])
        if lies and past and self.random.random() < 0.15:
            self.told["not done, an old answer"] += 1
            return self._answer(self.random.choice(past)[1])
        reply = super().handle_request(request)
        true = (reply.status_code, reply.headers, reply.read())
        reply.close()
        past.append((name, true))
        del past[:-40]
        return self._answer(self._lie(name, true, past) if lies else true)

    def _answer(self, reply: Reply) -> httpx.Response:
        status, headers, content = reply
        left_out = ("content-length", "transfer-encoding", "content-encoding")
        kept = {key: value for key, value in headers.items() if key.lower() not in left_out}
        return httpx.Response(status, headers=kept, content=content)

    def _lie(self, name: str, true: Reply, past: list[tuple[str, Reply]]) -> Reply:
        status, headers, content = true
        lies = ["flip", "several flips", "cut", "longer", "status", "header"]
        lies += ["old"] * 2 + ["other collection"] * 2
        if len(content) > 64:
            lies += ["moved", "shift", "zeros", "half of an old one"] * 2
        if content[:1] == b"{":
            lies = ["json"] * 4 + ["old", "other collection", "status"]
        lie = self.random.choice(lies)
        self.told[lie] += 1
        data = bytearray(content)
        others = [reply for of, reply in past if (of != name) == (lie == "other collection")]
        match lie:
            case "flip" | "several flips" if data:
                for _ in range(1 if lie == "flip" else 20):
                    data[self._place(data)] ^= 1 << self.random.randrange(8)
            case "cut":
                del data[self.random.randrange(len(data) + 1) :]
            case "longer":
                data += self.random.randbytes(self.random.choice([1, 4, 64, 4096]))
            case "status":
                return self.random.choice([204, 404, 409, 412, 503]), headers, content
            case "header":
                return status, self._header(headers), content
            case "old" | "other collection" if others:
                return self.random.choice(others)
            case "moved":
                size = self.random.choice([4, 16, 64])
                a, b = (self._place(data[: len(data) - size + 1]) for _ in range(2))
                data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]
                data = data[: len(content)]
            case "shift":
                at = self._place(data[:-3])
                word = int.from_bytes(data[at : at + 4], "little") + self.random.choice([1, -1, 1 << 20])
                data[at : at + 4] = (word % 2**32).to_bytes(4, "little")
            case "zeros":
                at = self._place(data)
                data[at : at + 512] = bytes(len(data[at : at + 512]))
            case "half of an old one" if others:
                other, at = self.random.choice(others)[2], self._place(data)
                data[at:] = other[at : len(data)] + data[len(other) :]
            case "json":
                data = bytearray(json.dumps(self._changed(json.loads(content))).encode())
        return status, headers, reframed(data)

    def _place(self, data: bytearray) -> int:
        """In what is framed, not only in its frame."""
        least = 64 if len(data) > 64 and self.random.random() < 0.8 else 0
        return self.random.randrange(least, max(least + 1, len(data)))

    def _header(self, headers: httpx.Headers) -> httpx.Headers:
        changed = headers.copy()
        name = self.random.choice([*headers])
        changed[name] = self.random.choice(["", "0", "9" * 30, changed[name][::-1]])
        return changed

    def _changed(self, told: Any) -> Any:
        """One member, somewhere, is another."""
        if isinstance(told, dict) and told:
            name = self.random.choice([*told])
            if self.random.random() < 0.2:
                return {key: value for key, value in told.items() if key != name}
            return {**told, name: self._changed(told[name])}
        if isinstance(told, list) and told:
            at = self.random.randrange(len(told))
            return self.random.choice(
                [
                    told[:at] + told[at + 1 :],
                    [*told, told[at]],
                    told[::-1],
                    [*told[:at], self._changed(told[at])],
                ]
            )
        if isinstance(told, bool | int):
            return self.random.choice([told + 1, -1, 0, 10**30, str(told)])
        if isinstance(told, str) and told:
            at = self.random.randrange(len(told))
            return told[:at] + self.random.choice("0a/") + told[at + 1 :]
        return self.random.choice([None, {}, [], 7, "x"])


Row = tuple[np.ndarray, str]


class Model:
    """Collections of one owner beside dictionaries."""

    def __init__(self, folder: Path, url: str, seed: int, rows: int, questions: int) -> None:
        self.questions = questions
        self.folder, self.url, self.rng = folder, url, np.random.default_rng(seed)
        self.random = random.Random(seed)
        self.keys = Keys.generate()
        self.liar = Liar(seed)
        self.truth: dict[str, dict[int, Row]] = {name: {} for name in NAMES}
        self.seen: Counter[str] = Counter()
        self.opened = 0
        self.client = self.opening()
        self.collections: dict[str, Collection] = {}
        for name, mode in NAMES.items():
            made = self.client.create_collection(name, D, mode=mode, filterable=["colour"])
            self.collections[name] = made
            self.change(name, "add", rows)

    def opening(self) -> HttpClient:
        """A client that has seen nothing, over the liar."""
        self.opened += 1
        return HttpClient(
            self.url,
            keys=self.keys,
            state=self.folder / f"s{self.opened}",
            transport=self.liar,
            retries=1,
            timeout=10,
        )

    def change(self, name: str, how: str, count: int = 3) -> None:
        truth, made = self.truth[name], self.collections[name]
        rows = self.rng.standard_normal((count, D)).astype(np.float32)
        colour = self.random.choice(COLOURS)
        if how == "delete":
            ids = self.random.sample([*truth], min(count, len(truth) - 10))
            after = {key: row for key, row in truth.items() if key not in ids}
        else:
            fresh = range(max(truth, default=0) + 1, max(truth, default=0) + 1 + count)
            ids = [*fresh] if how == "add" else self.random.sample([*truth], count)
            after = {**truth, **{key: (row, colour) for key, row in zip(ids, rows, strict=True)}}
        self.after = after
        if how == "delete":
            made.delete(ids)
        else:
            call = made.add if how == "add" else made.upsert
            call(
                ids,
                rows,
                metadatas=[{"colour": colour}] * count,
                documents=[f"{key} {colour}" for key in ids],
            )
        self.truth[name] = after

    def query(self, name: str) -> None:
        made, asked = self.collections[name], self.rng.standard_normal((self.questions, D)).astype(np.float32)
        where = self.random.choice([None, None, {"colour": "red"}])
        found = made.query(asked, 5, where=where, audience="owner")
        for at in range(0, self.questions, 50):
            self.ranked(self.truth[name], asked[at], where, found["ids"][at], found["scores"][at])

    def ranked(self, truth: dict[int, Row], asked: np.ndarray, where: Any, ids: Any, scores: Any) -> None:
        def score(row: np.ndarray) -> float:
            x, q = row.astype(float), asked.astype(float)
            return float(x @ q / np.linalg.norm(x) / np.linalg.norm(q))

        wanted = {key: score(row) for key, (row, colour) in truth.items() if where is None or colour == "red"}
        assert len(ids) == min(5, len(wanted))
        for key, found in zip(ids, scores, strict=True):
            assert key in wanted and abs(wanted.pop(key) - found) < ERROR
        assert all(left <= scores[-1] + 2 * ERROR for left in wanted.values())

    def get(self, name: str, rows: int = 4) -> None:
        truth, made = self.truth[name], self.collections[name]
        ids = self.random.sample([*truth], rows)
        found = made.get(ids, include=["documents", "metadatas", "embeddings"])
        assert found["ids"] == ids
        for key, text, about, row in zip(
            ids, found["documents"], found["metadatas"], found["embeddings"], strict=True
        ):
            vector, colour = truth[key]
            assert text == f"{key} {colour}" and about == {"colour": colour}
            assert np.allclose(row, vector, atol=1e-3)

    def count(self, name: str) -> None:
        made = self.collections[name]
        made.refresh()
        assert made.count() == len(self.truth[name])
        assert set(made.get(include=[])["ids"]) == set(self.truth[name])

    def optimize(self, name: str) -> None:
        self.collections[name].optimize()

    def reopen(self, name: str) -> None:
        self.collections[name] = self.client.get_collection(name)

    def step(self) -> None:
        name = self.random.choice([*NAMES])
        does = self.random.choice(
            ["query"] * 6 + ["get"] * 2 + ["count", "reopen", "optimize"] + ["add", "upsert", "delete"]
        )
        before = self.after = self.truth[name]
        self.liar.chance = self.random.choice([0.0, 0.0, 0.3, 1.0])
        told, held = self.liar.chance > 0, [before]
        try:
            if does in ("add", "upsert", "delete"):
                self.change(name, does)
            else:
                getattr(self, does)(name)
            held = [self.truth[name]]
            self.seen[f"{does}: right"] += 1
        except CiphervecError as error:
            # What was refused may have been done all the same.
            held = [before, self.after]
            self.seen[f"{does}: {type(error).__name__}"] += 1
        self.liar.chance = 0.0
        if told:
            self.settle(name, held, [before, self.after])

    def settle(self, name: str, held: list[dict[int, Row]], there: list[dict[int, Row]]) -> None:
        """Where the client was told lies, the server speaks the truth from now on: a client that goes on finds what it
        holds, and one that has seen nothing what is there."""
        try:
            self.fit(name, held)
            return
        except CiphervecError as error:
            self.seen[f"afterwards: {type(error).__name__}"] += 1
        self.client.close()
        self.client = self.opening()
        self.collections = {one: self.client.get_collection(one) for one in NAMES}
        for made in self.collections.values():
            for segment in made.info()["quarantine"]:
                self.seen["released"] += 1
                made.release(segment)
        self.fit(name, there)

    def fit(self, name: str, truths: list[dict[int, Row]]) -> None:
        """Everything is as one of these has it."""
        for self.truth[name] in truths:
            try:
                self.count(name)
                self.get(name, len(self.truth[name]))
                self.query(name)
                break
            except AssertionError:
                if self.truth[name] is truths[-1]:
                    raise


@pytest.mark.parametrize(
    ("rows", "questions", "steps"),
    [(40, 1, STEPS), pytest.param(3000, 500, STEPS // 10, marks=pytest.mark.slow)],
    ids=["whole", "as they come"],  # what is large is opened in pieces
)
def test_all_that_is_returned_is_right_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, questions: int, steps: int
) -> None:
    monkeypatch.setattr(Direct, "sleep", lambda _, seconds: time.sleep(min(seconds, 0.01)))
    with LocalServer(tmp_path / "db") as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a server that says it is an older one
        model = Model(tmp_path, server.url, SEED, rows, questions)
        for _ in range(steps):
            model.step()
        model.client.close()
    print(dict(model.seen), dict(model.liar.told))
    right = sum(count for name, count in model.seen.items() if name.endswith("right"))
    assert right > steps / 3 and sum(model.liar.told.values()) > steps / 10
    assert sum(model.seen.values()) - right > steps / 20
