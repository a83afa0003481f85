"""Commands `text`, for the side that has labelled texts: they train a classifier and measure it. They need no key."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..errors import InvalidInput
from ..text import Classifier, Metrics, Settings
from .measuring import at_least
from .tables import grid
from .terminal import Json, command, existing, print_json, progress, say_next, screen, size
from .texts import read_labelled

text_app = typer.Typer(
    no_args_is_help=True, help="Train a text classifier that can be used on encrypted texts."
)

TextColumn = Annotated[
    str,
    typer.Option("--text-column", help="Of a CSV file; several, comma-separated, are joined in that order."),
]
LabelColumn = Annotated[str, typer.Option("--label-column", help="Of a CSV file.")]
FILES = "A CSV file (also .gz, .zst) with a header, or a folder with a folder of .txt files a class."

Evaluation = tuple[str, Metrics]


@text_app.callback()
def _root() -> None:
    """Train a text classifier that can be used on encrypted texts."""


@text_app.command()
@command
def train(
    texts: Annotated[Path, typer.Argument(help=FILES)],
    out: Annotated[Path, typer.Argument(help="The classifier's file, .npz.")],
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    rows: Annotated[int, typer.Option(help="Rows of a table, p.")] = 256,
    tables: Annotated[int, typer.Option(help="Tables, ℓ: codes that a client encrypts for a token.")] = 4,
    dim: Annotated[int, typer.Option(help="Dimension of the embeddings.")] = 50,
    ngrams: Annotated[int, typer.Option(help="1 for single words, 2 for adjacent pairs too.")] = 1,
    tokens: Annotated[int, typer.Option(help="Tokens of a document that are read.")] = 128,
    vocabulary: Annotated[int, typer.Option(help="Most tokens to know.")] = 100_000,
    min_count: Annotated[int, typer.Option(help="A token seen fewer times is unknown.")] = 2,
    test: Annotated[
        float, typer.Option(help="Share of the texts to keep out of training and measure on; 0 for none.")
    ] = 0.1,
    epochs: Annotated[
        int | None, typer.Option(help="Passes in each of the three stages of training.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of every random choice.")] = 0,
    as_json: Json = False,
) -> None:
    """Train a classifier from scratch, and measure it on texts it has not seen.

    Its embeddings are sums of a few table rows, so that a server can work on encrypted codes. The
    table shows what that costs: the same model with a vector for every token stands beside it.

    **Examples**

    - `ciphervec text train mails.csv spam.npz --text-column subject,body --label-column spam`
    - `ciphervec text train reviews/ mood.npz --ngrams 2 --min-count 3`
    """
    found = read_labelled(texts, text_column, label_column)
    kept, held = divide(found.labels, test, seed)
    settings = Settings()
    if epochs is not None:
        each = at_least(epochs, 1, "--epochs")
        settings = replace(settings, free_epochs=each, relaxed_epochs=each, coded_epochs=each)
    began = time.perf_counter()
    with progress(f"training on {len(kept):,} texts", settings.epochs, quiet=as_json) as step:
        model = Classifier.train(
            [found.texts[i] for i in kept], [found.labels[i] for i in kept], rows, tables, dim=dim, ngrams=ngrams,
            tokens=tokens, vocabulary=vocabulary, min_count=min_count, seed=seed, settings=settings, progress=step,
        )  # fmt: skip
    seconds = time.perf_counter() - began
    model.save(out)
    unseen, truth = [found.texts[i] for i in held], [found.labels[i] for i in held]
    results: list[Evaluation] = []
    if held:
        results = [
            ("a vector a token", model.evaluate(unseen, truth, compressed=False)),
            (f"{tables} code{'s' * (tables > 1)} a token", model.evaluate(unseen, truth)),
        ]
    if as_json:
        print_json(
            {
                "path": str(out), "classes": list(model.classes), "texts": len(kept), "seconds": seconds,
                "vocabulary": len(model.encoder.vocabulary), "results": [record(*one) for one in results],
            }
        )  # fmt: skip
        return
    vectors = len(model.encoder.vocabulary) * dim * 4
    screen.print(
        f"{len(kept):,} texts, {len(model.encoder.vocabulary):,} tokens, {seconds:.1f} s; the server's tables take "
        f"{size(model.folded().tables.nbytes)}, vectors would take {size(vectors)}",
        highlight=False,
    )
    if results:
        show(model, results, f"on {len(held):,} texts that training did not see")
        show_cut(model, unseen)
    say_next(f"ciphervec text evaluate {out} FILE")


@text_app.command()
@command
def evaluate(
    model: Annotated[Path, typer.Argument(help="A classifier's file.")],
    texts: Annotated[Path, typer.Argument(help=FILES)],
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    as_json: Json = False,
) -> None:
    """Accuracy, F1, area under the ROC curve, and who was taken for whom, in the clear.

    **Examples**

    - `ciphervec text evaluate spam.npz mails.csv --text-column subject,body --label-column spam`
    """
    loaded = Classifier.load(existing(model, "classifier"))
    found = read_labelled(texts, text_column, label_column)
    names = {str(name): name for name in loaded.classes}
    began = time.perf_counter()
    metrics = loaded.evaluate(found.texts, [names.get(label, label) for label in found.labels])
    seconds = time.perf_counter() - began
    if as_json:
        print_json({**record("codes", metrics), "seconds": seconds, "classes": list(loaded.classes)})
        return
    show(loaded, [("codes", metrics)], f"on {metrics.documents:,} texts, {seconds:.1f} s")
    show_cut(loaded, found.texts)


def divide(labels: list[str], share: float, seed: int) -> tuple[list[int], list[int]]:
    """Rows to train on and rows to keep out, of every class the same share."""
    if not 0 <= share < 1:
        raise InvalidInput(f"--test must be at least 0 and below 1, got {share}.")
    random = np.random.default_rng(seed)
    held: list[int] = []
    for name in sorted(set(labels)):
        members = [row for row, label in enumerate(labels) if label == name]
        held += random.permutation(members)[: round(len(members) * share)].tolist()
    return sorted(set(range(len(labels))) - set(held)), sorted(held)


def record(name: str, metrics: Metrics) -> dict[str, Any]:
    """For a program."""
    return {
        "model": name, "documents": metrics.documents, "accuracy": metrics.accuracy, "f1": metrics.f1,
        "roc_auc": metrics.roc_auc, "confusion": metrics.confusion.tolist(),
    }  # fmt: skip


def show(model: Classifier, results: list[Evaluation], where: str) -> None:
    """A line a model; then, of the last, a line a class."""
    lines = [
        [name, f"{one.accuracy:.4f}", f"{one.f1:.4f}", "–" if one.roc_auc is None else f"{one.roc_auc:.4f}"]
        for name, one in results
    ]
    grid(screen, where, ["", "accuracy", "F1", "ROC AUC"], lines, left=1)
    names = [str(name) for name in model.classes]
    counts = [
        [name, *(f"{count:,}" for count in line)]
        for name, line in zip(names, results[-1][1].confusion, strict=True)
    ]
    grid(screen, f"{results[-1][0]}: what was called what", ["", *names], counts, left=1)


def show_cut(model: Classifier, texts: list[str]) -> None:
    """What the model did not read: a reader should not have to guess."""
    documents = model.encoder.encode(texts)
    read = max(1, int(documents.lengths.sum()))
    screen.print(
        f"{int(documents.truncated.sum()):,} texts were cut at {documents.limit} tokens, {int(documents.empty.sum()):,} "
        f"are empty (the bias decides), {int(documents.unknown.sum()) / read:.1%} of the tokens are unknown",
        style="dim",
        highlight=False,
    )
