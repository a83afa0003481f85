"""Texts in collections: embedded here, in memory, a folder and over HTTP; and of the function, whoever keeps the
collection learns nothing."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
import ciphervec._native as native
from ciphervec import (
    AsyncHttpClient,
    Client,
    Collection,
    DuplicateId,
    HttpClient,
    InvalidRows,
    Keys,
    PersistentClient,
    UnknownId,
)
from ciphervec.collections.embedding import encoders
from embedders import SIZE, Words, hashed, refused
from network import Faulty, Make

NOTES = ["the keys are under the mat", "the cat sleeps all day", "soup needs salt and pepper"]
Open = Callable[[], Client]


@pytest.fixture(params=["memory", "folder", "server"])
def again(request: pytest.FixtureRequest, tmp_path: Path, keys: Keys) -> Iterator[Open]:
    """A client of the same collections, again and again; in memory, always the same."""
    made: list[Client] = []

    def client() -> Client:
        if request.param == "server":
            url = request.getfixturevalue("server_url")
            made.append(HttpClient(url, keys=keys, state=tmp_path / f"state{len(made)}"))
        elif request.param == "folder":
            for one in made:
                one.close()
            made.append(PersistentClient(tmp_path / "db", keys))
        elif not made:
            made.append(Client(keys))
        return made[-1]

    yield client
    for one in made:
        one.close()


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> type[Words]:
    monkeypatch.setattr(encoders, "_registered", {})
    return ciphervec.register_embedding_function(Words)


def best(collection: Collection, question: str) -> str | None:
    found = collection.query(query_texts=question, n_results=1, include=["documents"], audience="owner")
    document: str | None = found["documents"][0][0]
    return document


@pytest.mark.parametrize("mode", ["sealed", "sealed-index"])
def test_texts_in_texts_out(again: Open, mode: Any) -> None:
    words = Words()
    notes = again().create_collection("notes", mode=mode, embedding_function=words)
    assert notes.embedding_function == words.name()
    assert notes.query(query_texts=["anything"])["ids"] == [[]], "before there is anything"
    words.seen.clear()
    made = notes.add(documents=NOTES)
    assert (notes.dimension, notes.count(), len(set(made))) == (SIZE, 3, 3)
    assert np.array_equal(notes.get(made, include=["embeddings"])["embeddings"], hashed(NOTES))
    assert words.seen == [("documents", NOTES)], "once, all together"
    found = notes.query(query_texts=["where are the keys?", "a cat?"], n_results=1)
    assert found["ids"] == [[made[0]], [made[1]]]
    assert words.seen[1:] == [("questions", ["where are the keys?", "a cat?"])]
    assert best(notes, "salt in the soup?") == NOTES[2]
    assert notes.info()["embedding_function"] == words.name()
    other = notes.add(["own"], hashed(["a boat at sea"]), documents=["not what the vector says"])
    assert best(notes, "a boat at sea") == "not what the vector says"
    assert other == ["own"] and len(words.seen) == 4, "vectors that are given are taken"
    assert notes.query(hashed(["a boat"]), n_results=1)["ids"] == [["own"]]


def test_changed_documents_are_embedded_again(again: Open) -> None:
    words = Words()
    notes = again().create_collection("notes", SIZE, mode="sealed-index", embedding_function=words)
    notes.add(["a", "b", "c"], documents=NOTES, metadatas=[{"n": i} for i in range(3)])
    notes.upsert(["a"], documents=["a boat at sea"])
    assert best(notes, "boat") == "a boat at sea"
    notes.update(["b", "c"], documents=["a mountain of snow", None], metadatas=[None, {"n": 9}])
    assert words.seen[-1] == ("documents", ["a mountain of snow"]), "the one that is new"
    assert best(notes, "mountain") == "a mountain of snow"
    kept = notes.get(["b", "c"], include=["embeddings", "metadatas", "documents"])
    assert np.array_equal(kept["embeddings"], hashed(["a mountain of snow", NOTES[2]]))
    assert kept["metadatas"] == [{"n": 1}, {"n": 9}] and kept["documents"][1] == NOTES[2]
    assert notes.merge(["c", "d"], None, None, ["pepper only", "new here"]) == 2
    merged = notes.get(["c", "d"], include=["embeddings"])["embeddings"]
    assert np.array_equal(merged, hashed(["pepper only", "new here"]))
    given = hashed(["something else"])
    assert notes.merge(["c", "e"], [given[0], None], None, ["its vector is given", "this is not"]) == 2
    merged = notes.get(["c", "e"], include=["embeddings"])["embeddings"]
    assert np.array_equal(merged, np.vstack([given, hashed(["this is not"])]))
    before = len(words.seen)
    notes.update(["a"], metadatas=[{"n": 5}])
    notes.update(["a"], hashed(["wood"]), documents=["its vector is given"])
    assert len(words.seen) == before, "nothing to embed"
    with pytest.raises(UnknownId):
        notes.update(["nobody"], documents=["no"])


def test_without_a_function_documents_leave_vectors_alone(again: Open) -> None:
    plain = again().create_collection("plain", SIZE, mode="sealed-index")
    assert plain.embedding_function is None and plain.info()["embedding_function"] is None
    plain.add(["a"], hashed(["one"]), documents=["one"])
    plain.update(["a"], documents=["two"])
    assert np.array_equal(plain.get(["a"], include=["embeddings"])["embeddings"], hashed(["one"]))
    for ask in (lambda: plain.add(["b"], documents=["b"]), lambda: plain.query(query_texts="b")):
        with refused(r"'plain' has no embedding function.*embedding_function=\.\.\..*all-MiniLM-L6-v2"):
            ask()
    with refused("rows need embeddings.*or documents"):
        plain.add(["b"])
    with refused("either query_embeddings=... or query_texts"):
        plain.query()
    with refused("either query_embeddings=... or query_texts"):
        plain.query(hashed(["b"]), query_texts="b")
    with refused(r"texts are query_texts=\['a question'"):
        plain.query("a question")
    unborn = again().create_collection("unborn")
    for ask in (lambda: unborn.add(documents=["b"]), lambda: unborn.query(query_texts="b")):
        with refused("'unborn' has no embedding function"):
            ask()


def test_the_name_comes_back_and_a_registered_function_with_it(again: Open, registered: type[Words]) -> None:
    again().create_collection("notes", mode="sealed-index", embedding_function=Words(32)).add(documents=NOTES)
    client = again()
    if type(client) is not Client:
        notes = client.get_collection("notes")
        assert (notes.embedding_function, notes.dimension) == (Words.name(), 32)
        assert best(notes, "keys") == NOTES[0], "made again, with its configuration"
        assert best(client.get_or_create_collection("notes", mode="sealed-index"), "cat") == NOTES[1]
    encoders._registered.clear()
    client = again()
    notes = client.get_collection("notes")
    if type(client) is not Client:
        with refused(f"embedded by the function '{Words.name()}', which is not known here.*get_collection"):
            notes.query(query_texts="keys")
        with refused("not known here"):
            notes.update(notes.get()["ids"][:1], documents=["what would its vector be?"])
        assert notes.query(hashed(["keys"], 32), n_results=1)["ids"], "vectors do without"
    assert client.get_collection("notes", Words(32)) is notes, "given later, to the one that is open"
    assert best(notes, "keys") == NOTES[0]


class Others(Words):
    @staticmethod
    def name() -> str:
        return "another-function"


def test_another_function_is_refused_with_both_names(again: Open) -> None:
    again().create_collection("notes", mode="sealed-index", embedding_function=Words()).add(documents=NOTES)
    for other, name in ((Others(), "another-function"), (hashed, "hashed")):
        both = f"embedded by '{Words.name()}', and the function given is '{name}'.*don't compare"
        with refused(both):
            again().get_collection("notes", other)
        with refused(both):
            again().get_or_create_collection("notes", mode="sealed-index", embedding_function=other)
    with pytest.warns(UserWarning, match=f"'{Words.name()}', and the function given is with another size"):
        again().get_collection("notes", Words(SIZE + 1))
    notes = again().get_collection("notes", Words())
    notes.set_embedding_function(Others())
    assert (notes.embedding_function, best(notes, "keys")) == ("another-function", NOTES[0])
    assert again().get_collection("notes", Others()).count() == 3
    notes = again().get_collection("notes")
    notes.set_embedding_function(None)
    assert again().get_collection("notes", hashed).embedding_function is None, "used, and not saved"
    with refused("must be a function that takes a list of texts.*; got int"):
        notes.set_embedding_function(3)  # type: ignore[arg-type]


def test_a_function_without_a_name_is_told_by_its_code(again: Open) -> None:
    notes = again().create_collection("notes", mode="sealed-index", embedding_function=hashed)
    notes.add(documents=NOTES)
    assert best(notes, "keys") == NOTES[0]
    assert best(again().get_collection("notes", hashed), "cat") == NOTES[1]
    with pytest.warns(UserWarning, match="'hashed', and the function given is '<lambda>'.*name()"):
        again().get_collection("notes", lambda texts: hashed(texts))
    client = again()
    client.get_collection("notes").close()
    with refused("embedded by the function 'hashed', which is not known here"):
        client.get_collection("notes").query(query_texts="keys")


def test_two_clients_and_a_change_of_the_function(make: Make) -> None:
    mine = make().create_collection("notes", mode="sealed-index", embedding_function=Words())
    mine.add(documents=NOTES)
    theirs = make().get_collection("notes", Words())
    mine.set_embedding_function(Others())
    theirs.refresh()
    assert theirs.embedding_function == "another-function"
    with refused("embedded by 'another-function', and the function given is 'hashed-words"):
        theirs.add(documents=["more"])
    assert mine.count() == theirs.count() == 3


def test_what_is_saved_outlives_upkeep(tmp_path: Path, keys: Keys, registered: type[Words]) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        notes = client.create_collection("notes", mode="sealed-index", embedding_function=Words())
        notes.add(documents=NOTES)
        notes.extend_filterable(["n"])
        notes.rotate_query_key()
        notes.optimize()
        new = Keys.generate()
        notes.rotate_keys(new)
        client.snapshot("notes", tmp_path / "copy")
    for folder in ("db", "copy"):
        with PersistentClient(tmp_path / folder, new, read_only=True) as client:
            assert best(client.get_collection("notes"), "cat") == NOTES[1]


def test_collections_of_release_0_1_are_upgraded_first(old: Callable[[], Client]) -> None:
    with old() as client:
        notes = client.create_collection("notes", SIZE, mode="sealed-index")
        with refused(r"release 0\.1, which would forget the function\. Call upgrade\(\) first"):
            notes.set_embedding_function(Words())
        assert client.get_collection("notes", Words()).add(["a"], documents=["a cat"]) == ["a"]
        notes.upgrade()
        notes.set_embedding_function(Words())
        assert (notes.embedding_function, best(notes, "cat")) == (Words.name(), "a cat")


def test_other_threads_go_on_while_texts_are_embedded(again: Open) -> None:
    seen: list[int] = []

    def slow(texts: list[str]) -> np.ndarray:
        other = threading.Thread(target=lambda: seen.append(notes.count()), daemon=True)
        other.start()
        other.join(20)
        return hashed(texts)

    notes = again().create_collection("notes", SIZE, mode="sealed-index", embedding_function=slow)
    notes.add(["a"], documents=["a"])
    notes.update(["a"], documents=["b"])
    assert best(notes, "b") == "b"
    assert seen == [0, 1, 1]


def test_coroutines_do_the_same(server_url: str, keys: Keys, registered: type[Words]) -> None:
    async def use() -> None:
        async with AsyncHttpClient(server_url, keys=keys, state=None) as client:
            notes = await client.create_collection("notes", mode="sealed-index", embedding_function=Words())
            await notes.add(documents=NOTES)
            assert notes.embedding_function == Words.name()
        async with AsyncHttpClient(server_url, keys=keys, state=None) as client:
            notes = await client.get_collection("notes")
            found = await notes.query(query_texts="the keys?", n_results=1, include=["documents"])
            assert found["documents"] == [[NOTES[0]]]
            await notes.set_embedding_function(Others())
            assert notes.embedding_function == "another-function"

    asyncio.run(use())


def test_bad_rows_are_told_before_anything_is_embedded(again: Open) -> None:
    words = Words()
    notes = again().create_collection("notes", SIZE, mode="sealed-index", embedding_function=words)
    for ids, documents, message in (
        (["a", "b"], ["one"], "expected 2, got 1"),
        (None, ["one", None, 3], r"documents\[1\] must be a text to embed.*NoneType(.|\n)*\[2\].*int"),
        (None, 7, "documents must be a list"),
    ):
        with refused(message):
            notes.add(ids, documents=documents)
        with refused(message):
            notes.upsert(ids, documents=documents)
    with pytest.raises(DuplicateId):
        notes.add(["a", "a"], documents=["one", "two"])
    with refused(r"query_texts\[0\] must be a text"):
        notes.query(query_texts=[None])  # type: ignore[list-item]
    with refused("expected 2, got 1"):
        notes.update(["a", "b"], documents=["one"])
    assert words.seen == [] and notes.count() == 0
    assert notes.add(documents=[]) == [] and notes.query(query_texts=[])["ids"] == []
    with pytest.raises(InvalidRows, match="zero vector"):
        notes.add(documents=["a word", ""])
    assert notes.count() == 0
    notes.close()
    with pytest.raises(ciphervec.CiphervecError, match="was closed"):
        notes.add(documents=["too late"])
    assert len(words.seen) == 1, "the zero vector"


@pytest.fixture
def overheard(make: Make) -> tuple[Make, list[bytes]]:
    """Clients of a server that writes down whatever is sent to it."""
    sent: list[bytes] = []

    def listen(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        sent.append(request.url.raw_path + b"\n" + request.read())
        return go()

    def client(**more: Any) -> HttpClient:
        line = Faulty()
        line.fault = listen
        return make(transport=line, **more)

    return client, sent


class Secretive(Words):
    """One whose name and configuration would tell what a collection is about."""

    @staticmethod
    def name() -> str:
        return "oncology-encoder"

    def get_config(self) -> dict[str, Any]:
        return {"size": self.size, "path": "/home/alice/tumours"}


SECRETS = [
    b"oncology-encoder",
    b"tumours",
    *(word.encode() for note in NOTES for word in note.split() if len(word) > 4),
]


def seen_in(haystack: bytes) -> list[bytes]:
    """Secrets in the bytes, and in whatever of them is base64."""
    opened = [haystack]
    for word in haystack.replace(b'"', b" ").split():
        try:
            opened.append(base64.b64decode(word, validate=True))
        except ValueError:
            continue
    return [secret for secret in SECRETS if any(secret in one for one in opened)]


@pytest.mark.parametrize("mode", ["sealed", "sealed-query", "sealed-index"])
def test_a_server_sees_no_text_and_not_what_embeds_them(
    overheard: tuple[Make, list[bytes]], mode: Any
) -> None:
    client, sent = overheard
    notes = client().create_collection("notes", mode=mode, embedding_function=Secretive())
    notes.add(documents=NOTES)
    notes.query(query_texts="the keys under which mat?", include=["documents"], audience="owner")
    notes.set_embedding_function(Secretive(SIZE))
    client().get_collection("notes", Secretive()).update(
        notes.get()["ids"][:1], documents=["pepper and tumours"]
    )
    assert len(sent) > 5 and seen_in(b"\n".join(sent)) == []


def test_a_folder_holds_neither_and_its_length_does_not_say_which(tmp_path: Path, keys: Keys) -> None:
    lengths = set()
    for number, function in enumerate((Secretive(), Words(), Words(1), hashed)):
        with PersistentClient(tmp_path / f"db{number}", keys) as client:
            notes = client.create_collection("notes", SIZE, embedding_function=function)
            if not isinstance(function, Words) or function.size == SIZE:
                notes.add(documents=NOTES)
            notes.query(hashed(NOTES), audience="owner")
        meta = json.loads(native.Store.open_read_only(str(tmp_path / f"db{number}" / "notes")).meta)
        lengths.add(len(base64.b64decode(meta["settings"])))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert seen_in(b"\n".join(path.read_bytes() for path in files)) == []
    assert len(lengths) == 1, "which function it is"


def test_in_mode_open_whoever_keeps_a_collection_does_not_choose_what_runs(
    tmp_path: Path, registered: type[Words], monkeypatch: pytest.MonkeyPatch
) -> None:
    with PersistentClient(tmp_path / "db") as client:
        notes = client.create_collection("notes", mode="open", embedding_function=Secretive())
        notes.add(documents=NOTES)
        assert best(notes, "keys") == NOTES[0]
        other = client.create_collection("other", mode="open", embedding_function=Words())
        other.add(documents=NOTES)
    assert b"tumours" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    meta = json.loads(native.Store.open_read_only(str(tmp_path / "db" / "notes")).meta)
    assert b"tumours" not in base64.b64decode(meta["settings"])
    built: list[Any] = []
    monkeypatch.setattr(Words, "build_from_config", staticmethod(built.append))
    with PersistentClient(tmp_path / "db") as client:
        with refused("as whoever keeps it says: in mode 'open' it is not made from that"):
            client.get_collection("other").query(query_texts="keys")
        assert built == []
        assert best(client.get_collection("other", Words()), "keys") == NOTES[0]
