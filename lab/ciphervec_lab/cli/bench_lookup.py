"""Command `bench lookup`, with its table for a terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from ciphervec.cli.measuring import at_least, each_of
from ciphervec.cli.network import NetworkOption, network_named
from ciphervec.cli.tables import grid
from ciphervec.cli.terminal import command, screen
from ciphervec.ingest.network import DEFAULT

from ..bench import lookup, lookup_report
from .measuring import CsvFile, JsonFile, MarkdownFile, PlotFile, watching
from .outcome import Files, hand_over


@command
def bench_lookup(
    p: Annotated[int, typer.Option("--p", help="Rows of a table.")] = 1024,
    dim: Annotated[int, typer.Option(help="Numbers of a row.")] = 300,
    codebooks: Annotated[int, typer.Option(help="Tables; an embedding is the sum of a row of each.")] = 4,
    strategy: Annotated[
        str,
        typer.Option(
            help="auto (what the planner picks), all, or comma-separated, of "
            + ", ".join(lookup.STRATEGIES)
            + "."
        ),
    ] = lookup.AUTO,
    transport: Annotated[
        str,
        typer.Option(
            help="How indices travel: standard, or compact, in "
            + " and ".join(lookup.COMPACT_STRATEGIES)
            + ", with keys of 0.6 to 0.8 GB; then times are from a query's bytes to an answer's."
        ),
    ] = lookup.STANDARD,
    network: NetworkOption = None,
    precision_bits: Annotated[
        int, typer.Option(help="The relative error of a looked-up row is at most 2 to minus this.")
    ] = 14,
    threads: Annotated[int, typer.Option(help="Of the server.")] = 1,
    repeats: Annotated[int, typer.Option(help="Batches a strategy; medians are reported.")] = 3,
    seconds: Annotated[
        float, typer.Option(help="A batch of indicators that would take longer is sampled, and marked.")
    ] = 60.0,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Private lookup of full batches: milliseconds a token, bytes, depth and error of every
    strategy.

    Random tables; times do not depend on what is in them. The server's halves only, timed inside
    the native module.

    **Examples**

    - `ciphervec bench lookup --p 1024 --dim 300 --codebooks 4 --strategy auto --json out.json`
    - `ciphervec bench lookup --p 256 --dim 50 --strategy all --markdown out.md --plot out.png`
    - `ciphervec bench lookup --p 64 --dim 2 --strategy ive,ive_digits --threads 4`
    - `ciphervec bench lookup --p 256 --dim 50 --strategy ive --transport compact --repeats 1`
    - `ciphervec bench lookup --p 256 --dim 50 --network 10,40`
    """
    known = (lookup.AUTO, lookup.ALL, *lookup.STRATEGIES)
    settings = lookup.Settings(
        p=at_least(p, 2, "--p"),
        dim=at_least(dim, 1, "--dim"),
        codebooks=at_least(codebooks, 1, "--codebooks"),
        strategies=each_of(strategy, known, "--strategy") or (lookup.AUTO,),
        precision_bits=at_least(precision_bits, 1, "--precision-bits"),
        transport=(each_of(transport, lookup.TRANSPORTS, "--transport") or (lookup.STANDARD,))[0],
        network=network_named(network) or DEFAULT,
        threads=at_least(threads, 1, "--threads"),
        repeats=at_least(repeats, 1, "--repeats"),
        seconds=seconds,
    )
    with watching(lookup.steps(settings)) as (notify, step):
        outcome = lookup.run(settings, notify, step)
    hand_over(
        outcome.records,
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show(outcome),
        markdown=lambda: lookup_report.markdown(outcome),
        plot=lambda path: lookup_report.plot(outcome.records, path),
    )


def show(outcome: lookup.Outcome) -> None:
    """The table of the Markdown file in two, for a terminal of 80 columns."""
    screen.print(lookup_report.heading(outcome) + "\n", highlight=False)
    lines = lookup_report.lines(outcome.records)
    for title, columns in (
        ("Milliseconds a token", (0, 4, 5, 6, 7)),
        ("What it takes", (0, 1, 2, 3, 8, 9, 10)),
    ):
        heads = [lookup_report.HEADS[column] for column in columns]
        grid(screen, title, heads, [[line[column] for column in columns] for line in lines], left=1)
        screen.print()
    if outcome.plan:
        screen.print(outcome.plan, highlight=False)
    for sentence in (lookup_report.LEGEND, *outcome.notes):
        screen.print(sentence, style="dim", highlight=False)
