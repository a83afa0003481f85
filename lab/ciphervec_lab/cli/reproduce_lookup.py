"""Command `reproduce ive-pel`: the study's tables, files and a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ciphervec.cli.measuring import at_least, each_of
from ciphervec.cli.terminal import command
from ciphervec.cli.text import LabelColumn, TextColumn, divide
from ciphervec.cli.texts import read_labelled
from ciphervec.text import Classifier

from ..bench import lookup
from ..bench import text as text_bench
from ..reproduce import ive_pel, ive_pel_report
from ..reproduce.images import load_raw
from ..reproduce.jang_ive_pel import ROWS, SHAPES
from .measuring import CsvFile, JsonFile, MarkdownFile, PlotFile, watching, whole_numbers
from .outcome import Files, hand_over, show_study

QUICK_SHAPE = "GloVe 50-d"
QUICK_ROWS = (64,)
QUICK_STRATEGIES = ("ive", "ive_digits")
NAMES = {str(dim): shape for shape, dim in SHAPES.items()}


@command
def private_lookup(
    dims: Annotated[
        str, typer.Option(help="Comma-separated, of " + ", ".join(NAMES) + ". All if left out.")
    ] = "",
    rows: Annotated[str, typer.Option(help="Comma-separated rows of a table.")] = ",".join(map(str, ROWS)),
    strategies: Annotated[
        str, typer.Option(help="Comma-separated, of " + ", ".join(lookup.STRATEGIES) + ".")
    ] = ",".join(ive_pel.STRATEGIES),
    precision_bits: Annotated[
        int, typer.Option(help="The relative error of a looked-up row is at most 2 to minus this.")
    ] = 14,
    repeats: Annotated[int, typer.Option(help="Batches of each; medians are reported.")] = 1,
    seconds: Annotated[
        float, typer.Option(help="A batch of indicators that would take longer is sampled, and marked.")
    ] = 120.0,
    compact: Annotated[
        bool,
        typer.Option(
            "--compact",
            help="Also compact queries of ive and ive_digits, from their bytes to the answer's, beside the study's formula; "
            "keys are 0.6 to 0.8 GB each.",
        ),
    ] = False,
    npy: Annotated[
        Path | None,
        typer.Option(
            "--npy",
            help="Also compress embeddings of your own, a .npy of (rows, dimensions), and look some up.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Also Table 5 on these labelled texts: a CSV file (also .gz, .zst) or a folder of folders."
        ),
    ] = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    documents: Annotated[
        int, typer.Option(help="Most texts to classify encrypted; 0 for all that are held out.")
    ] = 512,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="50-d, 64 rows, without indicators: half a minute."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the split and of training.")] = 0,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Tables 3, 5 and 6 of Jang et al. 2026: private embedding lookup, and encrypted classification
    on top of it.

    One thread, random tables of the study's shapes; the printed figures are beside ours. All of it
    takes most of an hour, nearly all for the indicators.

    **Examples**

    - `ciphervec reproduce ive-pel --quick`
    - `ciphervec reproduce ive-pel --dims 300 --rows 64,256 --markdown tables.md --plot charts.png`
    - `ciphervec reproduce ive-pel --dims 50 --rows 256 --strategies ive --compact`
    - `ciphervec reproduce ive-pel --dims 50 --strategies ive,ive_digits --npy glove50.npy`
    - `ciphervec reproduce ive-pel --quick --data mails.csv --text-column subject,body --label-column spam`
    """
    settings = ive_pel.Settings(
        shapes=(QUICK_SHAPE,) if quick else _shapes(dims),
        rows=QUICK_ROWS if quick else whole_numbers(rows, 2, "--rows", "64,256,1024"),
        strategies=QUICK_STRATEGIES if quick else each_of(strategies, lookup.STRATEGIES, "--strategies"),
        precision_bits=at_least(precision_bits, 1, "--precision-bits"),
        repeats=at_least(repeats, 1, "--repeats"),
        seconds=seconds,
        small_batches=not quick,
        compact=compact,
        embeddings=None if npy is None else load_raw(npy),
    )
    with watching(ive_pel.steps(settings)) as (notify, step):
        outcome = ive_pel.run(settings, notify, step)
        if data is not None:
            found = read_labelled(data, text_column, label_column)
            kept, held = divide(found.labels, 0.1, seed)
            held = held[: at_least(documents, 1, "--documents")] if documents else held
            notify(f"training on {len(kept):,} texts")
            model = Classifier.train(
                [found.texts[i] for i in kept], [found.labels[i] for i in kept], seed=seed
            )
            texts, labels = [found.texts[i] for i in held], [found.labels[i] for i in held]
            asked = text_bench.Settings(strategies=ive_pel.INFERENCE, repeats=settings.repeats)
            outcome.inference, notes = text_bench.run(model, texts, labels, asked, notify)
            outcome.notes += notes
    hand_over(
        outcome.all_records(),
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show_study(
            ive_pel_report.heading(outcome),
            ((title, 2, table) for title, table in ive_pel_report.tables(outcome).items()),
            (*ive_pel_report.ratios(outcome), *outcome.notes),
        ),
        markdown=lambda: ive_pel_report.markdown(outcome),
        plot=lambda path: ive_pel_report.plot(outcome.records, path),
        rows=outcome.records,
    )


def _shapes(dims: str) -> tuple[str, ...]:
    chosen = each_of(dims, tuple(NAMES), "--dims") or tuple(NAMES)
    return tuple(NAMES[dim] for dim in chosen)
