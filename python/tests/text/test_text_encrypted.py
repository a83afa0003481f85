"""Encrypted texts get the labels of plain ones wherever the plain margin exceeds the stated
bound."""

from __future__ import annotations

import csv
import io
import pickle
from pathlib import Path

import numpy as np
import pytest

from ciphervec import lookup
from ciphervec.demo import corpus
from ciphervec.errors import CorruptData, InvalidInput, WrongKey
from ciphervec.text import Classifier, Client, Reader, Server, Settings

QUICK = Settings(free_epochs=3, relaxed_epochs=1, coded_epochs=1)
TOPICS = {
    "network": ("asyncio", "email", "http", "urllib", "xmlrpc"),
    "windows": ("idlelib", "tkinter", "turtle"),
    "numbers": ("decimal", "fractions", "statistics", "random", "cmath", "numbers"),
}

Corpus = tuple[list[str], list[str]]


@pytest.fixture(scope="module")
def paragraphs() -> Corpus:
    """Paragraphs of the standard library on three topics, in a fixed shuffled order."""
    topic = {module: name for name, modules in TOPICS.items() for module in modules}
    found = [(p.text, topic.get(p.name.partition(".")[0])) for p in corpus.passages()]
    pairs = [(text, name) for text, name in found if name]
    order = np.random.default_rng(0).permutation(len(pairs))[:1500]
    return [pairs[i][0] for i in order], [str(pairs[i][1]) for i in order]


@pytest.fixture(scope="module")
def model(paragraphs: Corpus) -> Classifier:
    """Two classes: one margin."""
    texts, labels = paragraphs
    rows = [i for i, label in enumerate(labels) if label != "numbers"][:900]
    picked = [texts[i] for i in rows], [labels[i] for i in rows]
    return Classifier.train(*picked, 16, 2, dim=12, tokens=40, settings=QUICK)


def agree(model: Classifier, server: Server, texts: list[str]) -> float:
    """Classifies encrypted; the share of texts whose label the bound leaves open."""
    again = Server.from_bytes(server.to_bytes())
    client = Client.generate(model.reader().to_bytes(), again.description())
    keys = client.keys()
    if keys is not None:
        again.register(keys)
    labels, margins = client.decode(again.classify(client.encrypt(texts)))
    plain, expected = model.margins(texts), model.predict(texts)
    assert margins.shape == plain.shape and len(labels) == len(texts)
    assert np.abs(margins - plain).max() <= client.error_bound
    if plain.ndim == 1:
        clear = np.abs(plain) > client.error_bound
    else:
        best = np.sort(plain, axis=1)[:, -2:]
        clear = best[:, 1] - best[:, 0] > 2 * client.error_bound
    assert all(one == other for one, other, sure in zip(labels, expected, clear, strict=True) if sure)
    return 1 - clear.mean()


@pytest.mark.parametrize("word_bytes", [4, 5, 6])
def test_counts_give_the_plain_labels(model: Classifier, paragraphs: Corpus, word_bytes: int) -> None:
    texts = [*paragraphs[0][:400], "", "zebra crossing", "socket " * 200]
    assert agree(model, model.server_half(word_bytes=word_bytes), texts) <= 0.02


@pytest.mark.parametrize("strategy", ["ive_digits", "one_hot_digits"])
def test_tokens_give_the_plain_labels(model: Classifier, paragraphs: Corpus, strategy: str) -> None:
    assert agree(model, model.server_half(strategy), [*paragraphs[0][:20], ""]) <= 0.1


def test_more_than_two_classes_have_a_margin_each(paragraphs: Corpus) -> None:
    texts, labels = paragraphs
    model = Classifier.train(texts[:900], labels[:900], 16, 2, dim=12, tokens=40, settings=QUICK)
    assert agree(model, model.server_half(), texts[900:1200]) <= 0.05


def test_a_client_says_what_it_did_not_read(model: Classifier) -> None:
    client = model.client(model.server_half())
    _, documents = client.reader.codes(["socket " * 50, "", "zzyzx"])
    assert documents.truncated.tolist() == [True, False, False]
    assert documents.empty.tolist() == [False, True, False]
    assert documents.unknown.tolist() == [0, 0, 1]


def test_a_text_takes_no_more_room_than_it_must(model: Classifier) -> None:
    server = model.server_half()
    client = model.client(server)
    short, long = client.encrypt(["socket"] * 100), client.encrypt(["socket " * 300] * 100)
    # Nothing tells a short text from a long one; 2 tables of 16 rows of 5 bytes, and the frame.
    assert len(short) == len(long) == 100 * 2 * 16 * 5 + len(client.encrypt(["socket"])) - 160


def test_keys_are_kept_and_not_pickled(model: Classifier, tmp_path: Path) -> None:
    server = model.server_half()
    client = model.client(server)
    client.lookup.save(tmp_path / "text.key", allow_plaintext=True)
    again = Client(Reader.from_bytes(model.reader().to_bytes()), lookup.Client.load(tmp_path / "text.key"))
    answer = server.classify(client.encrypt(["a socket", "a window"]))
    assert again.decode(answer).labels == client.decode(answer).labels
    with pytest.raises(WrongKey):
        model.client(server).decode(answer)
    with pytest.raises(TypeError, match="save"):
        pickle.dumps(client)
    assert "mean" in repr(client) and "histogram" in repr(server)


def test_parts_that_do_not_fit_are_refused(model: Classifier) -> None:
    reader = model.reader()
    other = lookup.setup(np.ones((3, 4, 1)), pooling="mean")
    with pytest.raises(InvalidInput, match="other tables"):
        Client.generate(reader, other.description())
    with pytest.raises(InvalidInput, match="list of texts"):
        model.client(model.server_half()).encrypt("one text")
    with pytest.raises(InvalidInput):
        model.client(model.server_half()).encrypt([])
    data = reader.to_bytes()
    with pytest.raises(CorruptData):
        Reader.from_bytes(data[:-3])
    with pytest.raises(CorruptData):
        Reader.from_bytes(model.to_bytes())
    assert Reader.from_bytes(data).to_bytes() == data


def test_encrypted_mails_are_called_what_plain_ones_are(data_folder: Path) -> None:
    """Enron-Spam, as much of it as is there; the plain classifier's accuracy on it is tested beside
    its training."""
    path = data_folder / "enron_spam_pre_parts1_5.csv.zst"
    pyarrow = pytest.importorskip("pyarrow")
    if not path.is_file():
        pytest.skip("skipped: no data")
    with pyarrow.input_stream(str(path), compression="zstd") as stream:
        text = stream.read().decode()
    csv.field_size_limit(1 << 27)
    records = list(csv.DictReader(io.StringIO(text, newline="")))
    mails = [one["subject"] + " " + one["body"] for one in records]
    labels = [int(one["spam"]) for one in records]
    model = Classifier.train(mails[::9], labels[::9], 256, 4, settings=QUICK)
    texts = [mail for row, mail in enumerate(mails) if row % 9 == 1]
    assert agree(model, model.server_half(), texts) <= 0.001
