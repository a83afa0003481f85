"""Command `bench text`: how encrypted classification of labelled texts did. Plays trainer, client and server in one
process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ciphervec import InvalidInput
from ciphervec.cli.measuring import at_least, each_of, write
from ciphervec.cli.tables import grid
from ciphervec.cli.terminal import command, existing, print_json, screen, size
from ciphervec.cli.text import LabelColumn, TextColumn, divide
from ciphervec.cli.texts import read_labelled
from ciphervec.text import Classifier
from ciphervec.text import Settings as Training
from ciphervec.text.local import STRATEGIES

from ..bench import report
from ..bench import text as text_bench
from .measuring import CsvFile, JsonFile, watching


@command
def bench_text(
    data: Annotated[
        Path, typer.Option(help="A CSV file (also .gz, .zst) with a header, or a folder of folders.")
    ],
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    model: Annotated[
        Path | None, typer.Option(help="A classifier's file; one is trained on the other texts if left out.")
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="Comma-separated, of " + ", ".join(STRATEGIES) + "; or all.")
    ] = "histogram",
    documents: Annotated[int, typer.Option(help="Most texts to classify; 0 for all that are held out.")] = 0,
    rows: Annotated[int, typer.Option(help="Rows of a table, p.")] = 256,
    tables: Annotated[int, typer.Option(help="Tables, ℓ.")] = 4,
    ngrams: Annotated[int, typer.Option(help="1 for single words, 2 for adjacent pairs too.")] = 1,
    tokens: Annotated[int, typer.Option(help="Tokens of a document that are read.")] = 128,
    epochs: Annotated[
        int | None, typer.Option(help="Passes in each of the three stages of training.")
    ] = None,
    test: Annotated[float, typer.Option(help="Share of the texts that are held out.")] = 0.1,
    threads: Annotated[int, typer.Option(help="Threads.")] = 1,
    repeats: Annotated[int, typer.Option(help="Rounds a strategy; medians are reported.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the split and of training.")] = 0,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Encrypted text classification: the server's time and the query's bytes a document, labels
    against the plain ones.

    **Examples**

    - `ciphervec bench text --data mails.csv --text-column subject,body --label-column spam --json out.json`
    - `ciphervec bench text --data mails.csv --strategy histogram,ive_digits --documents 1000`
    """
    names = ",".join(STRATEGIES) if strategy == "all" else strategy
    settings = text_bench.Settings(
        strategies=each_of(names, STRATEGIES, "--strategy"),
        threads=at_least(threads, 1, "--threads"),
        repeats=at_least(repeats, 1, "--repeats"),
    )
    if not settings.strategies:
        raise InvalidInput("--strategy is empty; give at least one, e.g. histogram.")
    found = read_labelled(data, text_column, label_column)
    kept, held = divide(found.labels, test, seed)
    if not held:
        raise InvalidInput(f"--test {test} of {len(found.texts):,} texts holds none out.")
    if documents:
        held = held[: at_least(documents, 1, "--documents")]
    with watching(len(settings.strategies)) as (notify, _):
        if model is not None:
            trained = Classifier.load(existing(model, "classifier"))
        else:
            notify(f"training on {len(kept):,} texts")
            stages = Training()
            if epochs is not None:
                each = at_least(epochs, 1, "--epochs")
                stages = replace(stages, free_epochs=each, relaxed_epochs=each, coded_epochs=each)
            trained = Classifier.train(
                [found.texts[i] for i in kept], [found.labels[i] for i in kept], rows, tables, ngrams=ngrams,
                tokens=tokens, seed=seed, settings=stages,
            )  # fmt: skip
        records, notes = text_bench.run(
            trained, [found.texts[i] for i in held], [found.labels[i] for i in held], settings, notify
        )
    if json_file == Path("-"):
        print_json(records)
    else:
        heads = ["", "server ms", "query", "plain", "encrypted", "other labels"]
        lines = [
            [
                str(one["strategy"]), f"{one['ms_per_document']:.4f}", size(one["bytes_per_document"]),
                f"{one['accuracy_plain']:.4f}", f"{one['accuracy_encrypted']:.4f}", f"{one['disagreements']:,}",
            ]
            for one in records
        ]  # fmt: skip
        grid(screen, f"{len(held):,} documents; times and bytes are of one", heads, lines, left=1)
        for sentence in notes:
            screen.print(sentence, style="dim", highlight=False)
    write(json_file, lambda path: report.write_json(records, path))
    write(csv_file, lambda path: report.write_csv(records, path))
