"""Command `bench server`, with its table for a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ciphervec.cli.measuring import at_least, one_of
from ciphervec.cli.tables import grid
from ciphervec.cli.terminal import command, screen
from ciphervec.collections.spec import MODES, PRECISIONS

from ..bench.serving import throughput, throughput_report
from .measuring import CsvFile, JsonFile, MarkdownFile, PlotFile, Seed, watching
from .outcome import Files, hand_over


@command
def bench_server(
    rows: Annotated[int, typer.Option(help="Vectors in the collection.")] = 200_000,
    dim: Annotated[int, typer.Option(help="Numbers per vector.")] = 512,
    clients: Annotated[int, typer.Option(help="That ask at the same time.")] = 8,
    seconds: Annotated[float, typer.Option(help="Of queries; a third more with ingest beside them.")] = 60.0,
    mode: Annotated[str, typer.Option(help=f"One of {', '.join(MODES)}.")] = "sealed-index",
    precision: Annotated[str, typer.Option(help=f"One of {', '.join(PRECISIONS)}.")] = "standard",
    batch: Annotated[int, typer.Option(help="Vectors in one commit.")] = 5_000,
    threads: Annotated[int, typer.Option(help="Of the server; 0 is one per core.")] = 0,
    memory_budget: Annotated[
        str | None,
        typer.Option(
            help="Of the server for segments, e.g. 100MiB: less than they take shows what that costs."
        ),
    ] = None,
    seed: Seed = 0,
    folder: Annotated[
        Path | None, typer.Option(help="Where the server's temporary data lies: the disk that is measured.")
    ] = None,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: PlotFile = None,
) -> None:
    """A server under load: queries and ingest by concurrent clients, then a restart.

    Starts `ciphervec serve` on a free port of loopback and measures it in turns with the same scan
    in one process. Needs about three times the vectors' sealed size in memory.

    **Examples**

    - `ciphervec bench server --rows 200000 --dim 512 --clients 8 --seconds 60 --json out.json`
    - `ciphervec bench server --rows 20000 --dim 512 --mode sealed --markdown out.md --plot out.png`
    - `ciphervec bench server --rows 200000 --memory-budget 100MiB`
    """
    settings = throughput.Settings(
        rows=at_least(rows, 10, "--rows"),
        dim=at_least(dim, 2, "--dim"),
        clients=at_least(clients, 1, "--clients"),
        seconds=max(seconds, 0.5),
        mode=one_of(mode, MODES, "--mode"),
        precision=one_of(precision, PRECISIONS, "--precision"),
        batch=at_least(batch, 1, "--batch"),
        threads=at_least(threads, 0, "--threads"),
        memory_budget=memory_budget,
        seed=seed,
        folder=folder,
    )
    with watching(throughput.steps(settings)) as (notify, step):
        outcome = throughput.run(settings, notify, step)
    hand_over(
        [outcome.record],
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show(outcome),
        markdown=lambda: throughput_report.markdown(outcome),
        plot=lambda path: throughput_report.plot([outcome.record], path),
    )


def show(outcome: throughput.Outcome) -> None:
    """The table of the Markdown file."""
    screen.print(throughput_report.heading(outcome.record) + "\n", highlight=False)
    lines = [list(line) for line in throughput_report.lines(outcome.record)]
    grid(screen, "A server under load", ["", "measured"], lines, left=1)
    for sentence in (throughput_report.LEGEND, *outcome.notes):
        screen.print("\n" + sentence, style="dim", highlight=False)
