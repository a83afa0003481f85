"""Text classification: losses against finite differences, the folded halves against the whole, and real corpora."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphervec import InvalidInput
from ciphervec.codebooks import kmeans
from ciphervec.demo import corpus
from ciphervec.text import Classifier, Documents, Settings, Vocabulary, model, train
from ciphervec.text.encoder import segment_sums
from ciphervec.text.metrics import f1_scores, measure, roc_auc
from ciphervec.text.tokenize import tokenize

Loss = Callable[[dict[str, np.ndarray]], tuple[float, dict[str, np.ndarray]]]
Corpus = Callable[[str], list[dict[str, str]]]

QUICK = Settings(free_epochs=3, relaxed_epochs=1, coded_epochs=1)
NETWORK, WINDOWS = ("asyncio", "email", "http", "urllib", "xmlrpc"), ("idlelib", "tkinter", "turtle")


@pytest.fixture(scope="session")
def docstrings() -> tuple[list[str], list[str]]:
    """Paragraphs of the standard library about networks and about windows on a screen, in a fixed
    shuffled order."""
    label = {**dict.fromkeys(NETWORK, "network"), **dict.fromkeys(WINDOWS, "windows")}
    found = [(p.text, label.get(p.name.partition(".")[0])) for p in corpus.passages()]
    pairs = [(text, name) for text, name in found if name]
    order = np.random.default_rng(0).permutation(len(pairs))[:1500]
    return [pairs[i][0] for i in order], [str(pairs[i][1]) for i in order]


@pytest.fixture(scope="session")
def classifier(docstrings: tuple[list[str], list[str]]) -> Classifier:
    texts, labels = docstrings
    return Classifier.train(texts[:1200], labels[:1200], 16, 2, dim=12, tokens=40, settings=QUICK)


@pytest.fixture
def read_corpus(data_folder: Path) -> Corpus:
    """The records of a `.csv.zst` of the data folder, or a skip where the file or a reader of zstd
    is not there."""

    def read(name: str) -> list[dict[str, str]]:
        pyarrow = pytest.importorskip("pyarrow")
        if not (data_folder / name).is_file():
            pytest.skip("skipped: no data")
        with pyarrow.input_stream(str(data_folder / name), compression="zstd") as stream:
            text = stream.read().decode()
        csv.field_size_limit(1 << 27)
        return list(csv.DictReader(io.StringIO(text, newline="")))

    return read


def test_tokens_are_runs_of_letters() -> None:
    assert tokenize("It's 2 o'clock,\n<br />Café &amp; na\u00efve&nbsp;TEA") == [
        "it",
        "s",
        "o",
        "clock",
        "br",
        "caf",
        "na",
        "ve",
        "tea",
    ]
    assert tokenize("") == tokenize("1984 — 42!") == tokenize("привет") == []


def test_pairs_follow_the_words_they_end() -> None:
    assert tokenize("This is GOOD", 2) == ["this", "is", "this is", "good", "is good"]
    assert tokenize("one", 2) == ["one"]
    assert tokenize("", 2) == []


@given(st.text(), st.sampled_from([1, 2]))
def test_every_token_of_any_text_can_be_in_a_vocabulary(text: str, ngrams: int) -> None:
    tokens = tokenize(text, ngrams)
    words = [token for token in tokens if " " not in token]
    assert len(tokens) == len(words) + (ngrams == 2) * max(0, len(words) - 1)
    known = Vocabulary(sorted(set(tokens)))
    assert 0 not in known.numbers(tokens)
    assert Vocabulary.from_bytes(known.to_bytes()).tokens == known.tokens


def test_a_vocabulary_is_the_most_frequent_tokens_in_a_fixed_order() -> None:
    documents = [["b", "c", "a"], ["c", "a", "d"], ["c", "e", "b"]]
    assert Vocabulary.build(documents, 10, 2).tokens == ("c", "a", "b")
    assert Vocabulary.build(documents, 2, 1).tokens == ("c", "a")
    known = Vocabulary.build(documents, 10, 2)
    assert known.numbers(["a", "e", "c"]) == [2, 0, 1]
    assert len(known) == 4
    assert len(Vocabulary.from_bytes(b"")) == 1


@pytest.mark.parametrize("tokens", [["a", "a"], ["A"], [""], ["a b c"], ["a\nb"], ["é"]])
def test_tokens_that_no_text_has_are_refused(tokens: list[str]) -> None:
    with pytest.raises(InvalidInput, match="token"):
        Vocabulary(tokens)


def test_documents_are_cut_and_say_so() -> None:
    found = Documents.of([[1, 0, 2, 3], [], [4], [0, 0]], 3)
    assert found.numbers.tolist() == [1, 0, 2, 4, 0, 0]
    assert found.lengths.tolist() == [3, 0, 1, 2]
    assert found.truncated.tolist() == [True, False, False, False]
    assert found.empty.tolist() == [False, True, False, False]
    assert found.unknown.tolist() == [1, 0, 0, 2]
    again = found.subset(np.array([3, 0]))
    assert again.numbers.tolist() == [0, 0, 1, 0, 2]
    assert again.found.tolist() == [2, 4]
    assert len(found.subset(np.array([], np.int64))) == 0


@given(st.lists(st.integers(0, 4), max_size=8))
def test_sums_of_stretches_are_those_of_a_loop(lengths: list[int]) -> None:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.arange(int(offsets[-1]) * 2).reshape(-1, 2)
    want = [rows[a:b].sum(axis=0).tolist() for a, b in itertools.pairwise(offsets)]
    assert segment_sums(rows, offsets).tolist() == want


def problem(rng: np.random.Generator, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares (6, width), one document empty, and targets of three classes."""
    counts = rng.integers(0, 3, (6, width)).astype(np.float64) + np.eye(6, width)
    counts[5] = 0
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), np.array([0, 1, 2, 1, 0, 2])


def check_gradients(loss: Loss, parameters: dict[str, np.ndarray]) -> None:
    _, gradients = loss(parameters)
    assert set(gradients) == set(parameters)
    step = 1e-6
    for name, value in parameters.items():
        slopes = np.zeros_like(value)
        for at in np.ndindex(value.shape):
            kept = value[at]
            value[at] = kept + step
            above = loss(parameters)[0]
            value[at] = kept - step
            below = loss(parameters)[0]
            value[at] = kept
            slopes[at] = (above - below) / (2 * step)
        np.testing.assert_allclose(gradients[name], slopes, atol=1e-8, err_msg=name)


def test_gradients_are_finite_differences(rng: np.random.Generator) -> None:
    def drawn(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
        return {name: rng.standard_normal(shape) for name, shape in shapes.items()}

    counts, targets = problem(rng, 7)
    head = {"weights": (3, 4), "bias": (3,)}
    check_gradients(lambda p: model.free_loss(p, counts, targets), drawn(vectors=(7, 4), **head))
    relaxed = drawn(vectors=(7, 4), tables=(3, 5, 4), **head)
    check_gradients(lambda p: model.relaxed_loss(p, counts, targets, 0.6), relaxed)
    shares, _ = problem(rng, 10)
    check_gradients(lambda p: model.coded_loss(p, shares, targets), drawn(tables=(2, 5, 4), **head))


def test_a_loss_is_the_cross_entropy_of_its_definition(rng: np.random.Generator) -> None:
    counts, targets = problem(rng, 7)
    vectors, weights, bias = rng.standard_normal((7, 4)), rng.standard_normal((3, 4)), rng.standard_normal(3)
    value, _ = model.free_loss({"vectors": vectors, "weights": weights, "bias": bias}, counts, targets)
    scores = counts @ vectors @ weights.T + bias
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert value == pytest.approx(-np.log(chances[np.arange(6), targets]).mean())


def test_a_cold_mixture_is_the_hard_code(rng: np.random.Generator) -> None:
    vectors = rng.standard_normal((50, 6)).astype(np.float32)
    _, tables = kmeans.residual(vectors, 5, 3, 5, rng, lambda: None)
    codes = train.quantise(vectors, tables)
    hard = np.sum([tables[j][codes[:, j]] for j in range(3)], axis=0)
    cold = model.mix(vectors.astype(np.float64), tables.astype(np.float64), 1e-6)
    np.testing.assert_allclose(cold.embeddings, hard, atol=1e-5)
    warm = model.mix(vectors.astype(np.float64), tables.astype(np.float64), 10.0)
    assert np.abs(warm.embeddings - hard).max() > 0.1


def test_counts_of_tokens_and_of_codes_give_the_same_mean(rng: np.random.Generator) -> None:
    documents = Documents.of([[3, 1, 3], [], [0]], 5)
    codes = rng.integers(0, 4, (5, 2)).astype(np.uint16)
    tables = rng.standard_normal((2, 4, 3))
    present, shares = model.token_counts(documents)
    assert present.tolist() == [0, 1, 3]
    np.testing.assert_allclose(shares, [[0, 1 / 3, 2 / 3], [0, 0, 0], [1, 0, 0]], rtol=1e-6)
    embeddings = tables[0][codes[:, 0]] + tables[1][codes[:, 1]]
    by_code = model.code_counts(documents, codes, 4) @ tables.reshape(8, 3)
    np.testing.assert_allclose(by_code, shares @ embeddings[present], atol=1e-6)


def test_a_split_holds_out_the_same_share_of_every_class(rng: np.random.Generator) -> None:
    targets = np.repeat([0, 1, 2], [100, 20, 1])
    held, kept = train.split(targets, 0.1, rng)
    assert np.bincount(targets[held]).tolist() == [10, 2, 1]
    assert np.bincount(targets[kept]).tolist() == [90, 18, 1]
    assert set(held) & set(kept) == {120}
    assert set(held) | set(kept) == set(range(121))


def test_the_folded_halves_give_the_margin_of_the_whole(
    classifier: Classifier, docstrings: tuple[list[str], list[str]]
) -> None:
    """Tokens looked up, summed, averaged and classified one by one in float64, as the definition
    says it."""
    texts = [*docstrings[0][1200:1260], "", "zzzzqx", "socket " * 100]
    tables, bias = classifier.folded()
    assert tables.shape == (2, 16, 1)
    codes = classifier.codes(texts)
    margins = classifier.margins(texts)
    embeddings = classifier.codebook.tables.astype(np.float64)
    weights, offset = classifier.weights.astype(np.float64), classifier.bias.astype(np.float64)
    for i, margin in enumerate(margins):
        mean = np.zeros(12)
        for line in codes[i]:
            mean += (embeddings[0, line[0]] + embeddings[1, line[1]]) / len(codes[i])
        scores = weights @ mean + offset
        assert margin == pytest.approx(scores[1] - scores[0], abs=1e-9)
        folded = sum(tables[0, a, 0] + tables[1, b, 0] for a, b in codes[i]) / max(1, len(codes[i])) + bias[0]
        assert folded == pytest.approx(margin, abs=1e-9)
    assert margins[60] == bias[0]
    assert codes.documents.empty.tolist()[60:] == [True, False, False]
    assert codes.documents.truncated.tolist()[60:] == [False, False, True]
    assert codes.documents.unknown.tolist()[60:62] == [0, 1]
    assert len(codes[62]) == 40
    assert [name == "windows" for name in classifier.predict(texts)] == (margins > 0).tolist()


def test_more_than_two_classes_have_a_score_each(docstrings: tuple[list[str], list[str]]) -> None:
    texts = docstrings[0][:300]
    labels = [len(tokenize(text)) % 3 for text in texts]
    found = Classifier.train(texts, labels, 8, 2, dim=6, settings=QUICK)
    assert found.classes == (0, 1, 2)
    tables, bias = found.folded()
    assert tables.shape == (2, 8, 3)
    margins = found.margins(texts[:20])
    codes = found.codes(texts[:20])
    for i in range(20):
        want = np.mean([tables[0, a] + tables[1, b] for a, b in codes[i]], axis=0) + bias
        np.testing.assert_allclose(margins[i], want, atol=1e-9)
    assert found.predict(texts[:20]) == margins.argmax(axis=1).tolist()
    assert found.evaluate(texts, labels).roc_auc is None


def test_training_is_the_same_under_a_seed(docstrings: tuple[list[str], list[str]]) -> None:
    texts, labels = docstrings[0][:200], docstrings[1][:200]
    told: list[tuple[int, int]] = []
    first, again, other = (
        Classifier.train(
            texts, labels, 8, 2, dim=6, seed=seed, settings=QUICK, progress=lambda *at: told.append(at)
        ).to_bytes()
        for seed in (3, 3, 4)
    )
    assert first == again != other
    assert told[-1] == (QUICK.epochs, QUICK.epochs)


def test_no_stage_ends_worse_than_it_began(classifier: Classifier) -> None:
    fitted = classifier.fitted
    assert fitted is not None
    assert set(fitted.losses) == {"free", "relaxed", "coded"}
    assert min(fitted.losses["free"][1:]) < 0.9 * fitted.losses["free"][0]
    assert fitted.losses["coded"][0] == pytest.approx(min(fitted.losses["relaxed"]), rel=1e-5)


def test_paragraphs_are_told_apart_on_held_out_ones(
    classifier: Classifier, docstrings: tuple[list[str], list[str]]
) -> None:
    texts, labels = docstrings[0][1200:], docstrings[1][1200:]
    plain, coded = classifier.evaluate(texts, labels, compressed=False), classifier.evaluate(texts, labels)
    commonest = max(labels.count(name) for name in set(labels)) / len(labels)
    assert plain.accuracy > commonest + 0.15
    assert coded.accuracy > plain.accuracy - 0.03


def test_a_saved_classifier_answers_the_same(
    classifier: Classifier, docstrings: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    texts, labels = docstrings[0][1200:], docstrings[1][1200:]
    classifier.save(tmp_path / "model.npz")
    loaded = Classifier.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.margins(texts), classifier.margins(texts))
    assert loaded.classes == classifier.classes
    assert loaded.to_bytes() == classifier.to_bytes()
    assert loaded.fitted is None
    with pytest.raises(InvalidInput, match="uncompressed model is not saved"):
        loaded.evaluate(texts, labels, compressed=False)
    assert "network, windows" in repr(loaded)


@pytest.mark.parametrize(
    ("texts", "labels", "options", "says"),
    [
        ("a text", [1], {}, "Put a single one in a list"),
        (3, [1], {}, "texts must be a list"),
        (["a", 3], [0, 1], {}, "texts\\[1\\] must be a text"),
        (["a"], [0, 1], {}, "labels must have one entry"),
        (["a", "b"], [0, 0], {}, "2 to 1024 classes, got 1"),
        (["a", "b"], [0, 1.5], {}, "a label must be"),
        (["a", "b"], [0, None], {}, "a label must be"),
        (["1", "2"], [0, 1], {}, "nothing to learn from"),
        (["a a", "b"], [0, 1], {"ngrams": 3}, "ngrams must be from 1 to 2"),
        (["a a", "b"], [0, 1], {"tokens": 0}, "tokens must be"),
        (["a a", "b"], [0, 1], {"rows": 1}, "rows must be from 2"),
        (["a a", "b"], [0, 1], {"tables": 65}, "tables must be from 1 to 64"),
        (["a a", "b"], [0, 1], {"min_count": 0}, "min_count must be"),
    ],
)
def test_bad_training_input_is_refused(
    texts: object, labels: object, options: dict[str, object], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        Classifier.train(texts, labels, **options)  # type: ignore[arg-type]


def test_bad_questions_are_refused(classifier: Classifier) -> None:
    with pytest.raises(InvalidInput, match="Put a single one"):
        classifier.predict("one text")
    with pytest.raises(InvalidInput, match="got 'sports'"):
        classifier.evaluate(["a", "b"], ["network", "sports"])
    with pytest.raises(InvalidInput, match="labels must be of"):
        classifier.evaluate([], [])
    assert classifier.predict([]) == []
    assert classifier.margins([]).shape == (0,)


def test_metrics_are_those_of_scikit_learn(rng: np.random.Generator) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    true, called = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
    margins = np.round(rng.standard_normal(200) + true, 1)
    found = measure(true, called, margins, 2)
    assert found.accuracy == pytest.approx(sklearn.accuracy_score(true, called))
    assert found.f1 == pytest.approx(sklearn.f1_score(true, called))
    assert found.roc_auc == pytest.approx(sklearn.roc_auc_score(true, margins))
    np.testing.assert_array_equal(found.confusion, sklearn.confusion_matrix(true, called))
    three, guess = rng.integers(0, 3, 99), rng.integers(0, 3, 99)
    assert measure(three, guess, margins[:99], 3).f1 == pytest.approx(
        sklearn.f1_score(three, guess, average="macro")
    )


def test_metrics_of_small_cases_by_hand() -> None:
    assert roc_auc(np.array([True, False, True]), np.array([3.0, 1.0, 1.0])) == 0.75
    np.testing.assert_allclose(f1_scores(np.array([[2, 1], [0, 0]])), [0.8, 0])
    assert measure(np.array([1, 1]), np.array([1, 0]), np.array([1.0, -1.0]), 2).roc_auc is None


# Real corpora. Accuracies are those measured when the tests were written, less three standard
# deviations of a share over as many documents; the compressed model may lose as much again on the
# documents where the two differ.


def compare(
    texts: list[str], labels: list[int], held_out: int, floor: float, **options: int
) -> tuple[float, float]:
    order = np.random.default_rng(7).permutation(len(texts))
    test, rest = order[:held_out], order[held_out:]
    found = Classifier.train([texts[i] for i in rest], [labels[i] for i in rest], **options)
    unseen, truth = [texts[i] for i in test], [labels[i] for i in test]
    plain, coded = found.evaluate(unseen, truth, compressed=False), found.evaluate(unseen, truth)
    slack = 3 * (floor * (1 - floor) / held_out) ** 0.5
    assert plain.accuracy > floor - slack
    assert coded.accuracy > plain.accuracy - slack
    return plain.accuracy, coded.accuracy


def test_spam_is_told_from_ham(read_corpus: Corpus) -> None:
    records = read_corpus("enron_spam_pre_parts1_5.csv.zst")
    distinct = {(one["subject"] + " " + one["body"])[:150]: one for one in records}
    mails = list(distinct.values())
    texts = [one["subject"] + " " + one["body"] for one in mails]
    compare(texts, [int(one["spam"]) for one in mails], 900, 0.98)


def test_good_reviews_are_told_from_bad(read_corpus: Corpus) -> None:
    records = read_corpus("imdb_train.csv.zst")[:6000]
    compare([one["text"] for one in records], [int(one["positive"]) for one in records], 1000, 0.83)


def test_ratings_of_drugs_by_pairs_of_words(read_corpus: Corpus) -> None:
    records = read_corpus("druglib_reviews.csv.zst")
    texts = [f"{one['benefitsReview']} {one['commentsReview']}" for one in records]
    compare(texts, [int(int(one["rating"]) > 5) for one in records], 800, 0.8, ngrams=2, min_count=3)
