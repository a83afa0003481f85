"""The demo's passages, embedding and answers, on a small standard library and the real one."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ciphervec import InvalidInput
from ciphervec.demo import corpus, embed, search, web
from program import Program

LIBRARY = {
    "alpha.py": '"""Alpha does the first thing of all, and does it well enough."""\n\nclass One:\n'
    '    """The class One holds exactly one thing, and lets go of it.\n\n'
    "    A second paragraph of it, about how long the thing is held.\n\n    Short.\n"
    '    """\n    def go(self):\n        "Go somewhere else and come back when it is done."\n',
    "pack/__init__.py": '"""A package that is made of parts, none of which matters here."""\n',
    "pack/broken.py": "def (:\n",
    "test/test_alpha.py": '"""Tests are not documentation, so this never becomes a passage."""\n',
    "site-packages/other.py": '"""Third-party code is not of the standard library either."""\n',
    "twin.py": '"""Alpha does the first thing of all, and does it well enough."""\n',
}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    for name, text in LIBRARY.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_passages_are_the_paragraphs_of_docstrings(library: Path) -> None:
    seen: list[tuple[int, int]] = []
    found = corpus.passages(library, lambda done, total: seen.append((done, total)))
    assert [(p.name, p.text) for p in found] == [
        ("alpha", "Alpha does the first thing of all, and does it well enough."),
        ("alpha.One", "The class One holds exactly one thing, and lets go of it."),
        ("alpha.One", "A second paragraph of it, about how long the thing is held."),
        ("alpha.One.go", "Go somewhere else and come back when it is done."),
        ("pack", "A package that is made of parts, none of which matters here."),
    ]
    assert seen[-1] == (4, 4)
    assert found[3].searchable == "alpha One go. Go somewhere else and come back when it is done."


def test_a_long_paragraph_is_cut_at_a_word() -> None:
    [text] = corpus.paragraphs("word " * 400)
    assert len(text) <= corpus.LONGEST
    assert text.endswith("word …")


@pytest.fixture(scope="module")
def real_passages() -> list[corpus.Passage]:
    return corpus.passages()


def test_the_real_library_has_some_ten_thousand(real_passages: list[corpus.Passage]) -> None:
    found = real_passages
    assert len(found) > 5_000
    assert len({p.text for p in found}) == len(found)
    assert any(p.name == "shutil.copytree" for p in found)


def test_tfidf_is_deterministic_and_unit_length(real_passages: list[corpus.Passage]) -> None:
    texts = [p.searchable for p in real_passages[:1500]]
    one, two = embed.tfidf(texts, 32), embed.tfidf(texts, 32)
    assert one.vectors.shape == (1500, 32)
    assert one.vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(one.vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(one.vectors, two.vectors, atol=1e-6)
    np.testing.assert_allclose(one.embed(texts[:3]), one.vectors[:3], atol=1e-5)


def test_a_text_of_unknown_words_still_points_somewhere() -> None:
    rows = embed.unit(np.zeros((1, 4), np.float32))
    assert rows.tolist() == [[1, 0, 0, 0]]


def test_too_few_texts_are_refused() -> None:
    for texts in (["a word and another", "a word again and another"], [f"common {i}" for i in range(50)]):
        with pytest.raises(InvalidInput, match="too few for 256 dimensions"):
            embed.tfidf(texts)


def test_plain_search_ranks_by_the_exact_cosine() -> None:
    random = np.random.default_rng(5)
    vectors = embed.unit(random.standard_normal((200, 16)))
    questions = embed.unit(random.standard_normal((4, 16)))
    run = search.plain_search(vectors, questions, 3)
    for question, answer in zip(questions, run.answers, strict=True):
        scores = [sum(float(a) * float(b) for a, b in zip(row, question, strict=True)) for row in vectors]
        best = sorted(range(200), key=lambda i: -scores[i])[:3]
        assert [hit.row for hit in answer] == best


@pytest.fixture
def demo(
    tmp_path: Path, real_passages: list[corpus.Passage], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """The program over the real library, which is read once for all that asks for it."""
    monkeypatch.setattr(corpus, "passages", lambda **_: real_passages)
    return lambda *arguments: Program(tmp_path)("demo", "--folder", "d", *arguments).stdout


def test_the_demo_ranks_as_the_plaintext_does(demo: Callable[..., str]) -> None:
    found = json.loads(demo("--passages", "2500", "--json"))
    assert [mode["mode"] for mode in found["modes"]] == ["open", "sealed-index", "sealed-query", "sealed"]
    for mode in found["modes"]:
        # Another Python's documentation may hold a tie within the noise, which swaps two ranks.
        assert mode["ranks"] == 15
        assert mode["ranks_agreeing"] >= (15 if mode["mode"] == "open" else 13)
        assert mode["worst_score_difference"] < 2e-4
        assert [hits[0] for hits in mode["hits"]] == [hits[0] for hits in found["plain"]]
    by_name = {mode["mode"]: mode for mode in found["modes"]}
    assert by_name["sealed-index"]["key_bytes_server"] < 1000 < by_name["sealed"]["key_bytes_server"]


def test_the_demo_reads_well_on_a_dumb_terminal(demo: Callable[..., str]) -> None:
    text = demo("--passages", "1500", "--question", "How do I encode data as base64?")
    assert "\x1b" not in text
    for part in (
        "What the server saw",
        "Time of one question, in milliseconds",
        "sealed-query  plain      encrypted",
        "ciphervec keygen my.key",
    ):
        assert part in text
    lines = text.splitlines()
    assert len(lines) <= 48, "a page, of which `make demo` prints fourteen lines more"
    assert lines.index("How do I encode data as base64?") > len(lines) - 9, "the result stands last"
    # Run again over its own folder: the same key and the same collections, not an error.
    demo("--passages", "1500", "--json")


def test_what_a_page_gets_embeds_as_the_model_does(
    real_passages: list[corpus.Passage], tmp_path: Path
) -> None:
    """The formula in `TfidfSvd`, over the written files, gives scikit-learn's vectors."""
    model = web.export(tmp_path, real_passages[:1500], 32)
    head = json.loads((tmp_path / "model.json").read_text())
    known = json.loads((tmp_path / "known.json").read_text())
    words = {word: column for column, word in enumerate(head["words"])}
    floats = np.fromfile(tmp_path / "model.bin", "<f4")
    idf, directions = floats[: len(words)], floats[len(words) :].reshape(len(words), 32)
    sums = np.zeros((len(known), 32))
    for row, text in enumerate(known):
        counts = Counter(w for w in re.findall(r"\w{2,}", text.lower()) if w in words)
        weights = np.array([(1 + np.log(n)) * idf[words[word]] for word, n in counts.items()])
        if len(weights):
            sums[row] = (
                weights / np.linalg.norm(weights) @ directions[[words[w] for w in counts]].astype(float)
            )
    wanted = np.fromfile(tmp_path / "known.bin", "<f4").reshape(len(known), 32)
    np.testing.assert_allclose(embed.unit(sums), wanted, atol=1e-5)
    np.testing.assert_allclose(wanted, model.embed(known), atol=0)
    assert len(known) > 300
    written = json.loads((tmp_path / "passages.json").read_text())
    assert written == [[p.name, p.text] for p in real_passages[:1500]]


def test_a_page_gets_no_other_model(demo: Callable[..., str], tmp_path: Path) -> None:
    assert json.loads(demo("--export-web", "web", "--passages", "600", "--json"))["passages"] == 600
    assert (tmp_path / "web" / "known.bin").stat().st_size % (4 * embed.DIMENSION) == 0
    refused = Program(tmp_path)("demo", "--export-web", "no", "--model", "x", code=2)
    assert "leave out --question and --model" in refused.stderr
    assert not (tmp_path / "no").exists()
