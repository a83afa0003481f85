"""Command `bench bootstrapping`, with its table for a terminal."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ciphervec.cli.measuring import at_least, each_of, one_of
from ciphervec.cli.tables import grid
from ciphervec.cli.terminal import command, screen

from ..bench import bootstrapping, bootstrapping_report
from .measuring import CsvFile, JsonFile, MarkdownFile, PlotFile, watching
from .outcome import Files, hand_over


@command
def bench_bootstrapping(
    log_n: Annotated[
        str, typer.Option("--log-n", help="log2 of the ring degrees, comma-separated, of 15 and 16.")
    ] = "15,16",
    sets: Annotated[
        str,
        typer.Option(
            help="Which sets of these degrees, comma-separated: all (slots), few (512 slots, at 15), eight (slots, at "
            "15), real (twice as many, in the conjugate-invariant ring), precise (refreshed twice, at 16)."
        ),
    ] = "all",
    peer: Annotated[str, typer.Option(help="Another library to time in the same run: openfhe.")] = "",
    peer_python: Annotated[
        str,
        typer.Option(
            help="The Python that has the peer: OpenFHE's wheels are for 3.10. This one, if left out."
        ),
    ] = "",
    peer_secret: Annotated[
        str, typer.Option(help="OpenFHE's secret, of " + ", ".join(bootstrapping.SECRETS) + ".")
    ] = bootstrapping.SECRETS[0],
    repeats: Annotated[int, typer.Option(help="Runs of each; medians are reported.")] = 3,
    peer_seconds: Annotated[
        float, typer.Option(help="A peer is not run again once it took this long in all.")
    ] = 60.0,
    seed: Annotated[int, typer.Option(help="Of the numbers that are refreshed.")] = 0,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Ciphertexts refreshed: seconds, the error that it adds, the levels that it leaves, keys.

    One thread; every slot of a set is used. A peer runs in a process of its own and takes turns with ours; one
    that is not installed, or has no set at 128 bits, is left out and the report says why. It runs beside all, few
    and eight; for the last two at N = 2^16, as it has no smaller ring. N = 2^16 takes 6 GB of memory, with the
    peer 16.

    **Examples**

    - `ciphervec bench bootstrapping --log-n 15 --sets all,few`
    - `ciphervec bench bootstrapping --log-n 15,16 --peer openfhe --json out.json`
    - `ciphervec bench bootstrapping --log-n 16 --peer openfhe --peer-python py310/bin/python`
    """
    degrees = each_of(log_n, ("15", "16"), "--log-n")
    settings = bootstrapping.Settings(
        log_ns=tuple(map(int, degrees)) or bootstrapping.Settings.log_ns,
        sets=each_of(sets, tuple(bootstrapping.SETS), "--sets") or bootstrapping.Settings.sets,
        peers=each_of(peer, bootstrapping.PEERS, "--peer"),
        peer_python=peer_python or sys.executable,
        peer_secret=one_of(peer_secret, bootstrapping.SECRETS, "--peer-secret"),
        repeats=at_least(repeats, 1, "--repeats"),
        peer_seconds=peer_seconds,
        seed=at_least(seed, 0, "--seed"),
    )
    with watching(len(settings.measured())) as (notify, step):
        outcome = bootstrapping.run(settings, notify, step)
    hand_over(
        outcome.records,
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show(outcome),
        markdown=lambda: bootstrapping_report.markdown(outcome),
        plot=lambda path: bootstrapping_report.plot(outcome.records, path),
    )


def show(outcome: bootstrapping.Outcome) -> None:
    """The table of the Markdown file in two, for a terminal of 80 columns."""
    screen.print(bootstrapping_report.heading(outcome) + "\n", highlight=False)
    lines = bootstrapping_report.lines(outcome.records)
    for title, columns in (("A refreshing", range(10)), ("Beside the peer", (0, 2, 10, 11, 12, 13, 14, 15))):
        heads = [bootstrapping_report.HEADS[column] for column in columns]
        grid(screen, title, heads, [[line[column] for column in columns] for line in lines], left=1)
        screen.print()
    for sentence in (bootstrapping_report.LEGEND, *bootstrapping_report.sentences(outcome)):
        screen.print(sentence, style="dim", highlight=False)
