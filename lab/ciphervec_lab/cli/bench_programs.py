"""Command `bench programs`, with its table for a terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from ciphervec import InvalidInput
from ciphervec.cli.measuring import at_least, each_of
from ciphervec.cli.tables import grid
from ciphervec.cli.terminal import command, screen

from ..bench import programs, programs_report
from ..bench.program_peers import PEERS
from .measuring import CsvFile, JsonFile, MarkdownFile, PlotFile, watching
from .outcome import Files, hand_over


@command
def bench_programs(
    only: Annotated[
        str, typer.Option("--program", help="Comma-separated beginnings of names; all programs if left out.")
    ] = "",
    peer: Annotated[
        str,
        typer.Option(help=f"Others to time in the same run, comma-separated, of {', '.join(PEERS)}."),
    ] = "",
    repeats: Annotated[int, typer.Option(help="Runs of each; medians are reported.")] = 5,
    peer_seconds: Annotated[
        float, typer.Option(help="A peer's program is not run again once it took this long in all.")
    ] = 20.0,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, a few seconds in all.")] = False,
    seed: Annotated[int, typer.Option(help="Of what the programs run on.")] = 0,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Plain functions on encrypted arrays: Hamming distances, comparisons, arg-min, advertising, faces,
    identification, and four programs from a study of compilers.

    One thread; ours and the peers take turns. A peer that is not installed, or whose wheel is for
    another Python (OpenFHE's is for 3.10), is left out and the report says so.

    **Examples**

    - `ciphervec bench programs --quick --peer tenseal`
    - `ciphervec bench programs --peer openfhe,tenseal,concrete --json out.json --markdown out.md --plot out.png`
    - `ciphervec bench programs --program hamming,faces --repeats 9`
    """
    settings = programs.Settings(
        programs=tuple(part.strip() for part in only.split(",") if part.strip()),
        quick=quick,
        peers=each_of(peer, tuple(PEERS), "--peer"),
        repeats=at_least(repeats, 1, "--repeats"),
        peer_seconds=peer_seconds,
        seed=at_least(seed, 0, "--seed"),
    )
    cases = settings.cases()
    if not cases:
        known = dict.fromkeys(case.program for case in programs.Settings(quick=quick).cases())
        raise InvalidInput(f"--program knows {', '.join(known)}, got {only!r}.")
    with watching(len(cases)) as (notify, step):
        outcome = programs.run(settings, notify, step)
    hand_over(
        outcome.records,
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show(outcome),
        markdown=lambda: programs_report.markdown(outcome),
        plot=lambda path: programs_report.plot(outcome.records, path),
    )


def show(outcome: programs.Outcome) -> None:
    """The table of the Markdown file in two, for a terminal of 80 columns."""
    screen.print(programs_report.heading(outcome) + "\n", highlight=False)
    lines = programs_report.lines(outcome.records)
    for title, columns in (
        ("Milliseconds", (0, 1, 2, 3, 4, 7, 12, 13, 14)),
        ("What it takes", (0, 1, 5, 6, 8, 9, 10, 11)),
    ):
        heads = [programs_report.HEADS[column] for column in columns]
        grid(screen, title, heads, [[line[column] for column in columns] for line in lines], left=1)
        screen.print()
    for sentence in (programs_report.LEGEND, *outcome.notes):
        screen.print(sentence, style="dim", highlight=False)
