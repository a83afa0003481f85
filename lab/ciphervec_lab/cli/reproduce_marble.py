"""Command `reproduce marble`: the study's table and curves, files and a plot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ciphervec.cli.measuring import at_least
from ciphervec.cli.terminal import command

from ..reproduce import marble, marble_report
from .measuring import CsvFile, JsonFile, MarkdownFile, watching, whole_numbers
from .outcome import Files, hand_over, show_study


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


@command
def compiled_programs(
    elements: Annotated[str, typer.Option(help="Of Hamming distances, comma-separated.")] = _listed(
        marble.Settings.elements
    ),
    places: Annotated[str, typer.Option(help="To advertise, comma-separated.")] = _listed(
        marble.Settings.places
    ),
    faces: Annotated[str, typer.Option(help="In the gallery, comma-separated.")] = _listed(
        marble.Settings.faces
    ),
    depths: Annotated[str, typer.Option(help="Products in a row, comma-separated.")] = _listed(
        marble.Settings.depths
    ),
    repeats: Annotated[
        int, typer.Option(help="Runs of each; medians are reported.")
    ] = marble.Settings.repeats,
    quick: Annotated[
        bool, typer.Option("--quick", help="A point or two a curve, small: some seconds.")
    ] = False,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", help="Write Figures 3 and 4 here, a PNG.")
    ] = None,
) -> None:
    """Table 1 and Figures 3 and 4 of Viand & Shafagh 2018 (Marble): what encryption and operations
    cost, and three plain functions on encrypted inputs.

    Hamming distance as a loop and batched, location-based advertising, face recognition; over the
    size of their inputs, on one thread, with the few figures that are printed beside. All of it takes
    some minutes.

    **Examples**

    - `ciphervec reproduce marble --quick`
    - `ciphervec reproduce marble --json marble.json --markdown marble.md --plot marble.png`
    - `ciphervec reproduce marble --elements 32,1024 --places 16 --faces 1,16`
    """
    settings = (
        marble.QUICK
        if quick
        else marble.Settings(
            elements=whole_numbers(elements, 2, "--elements", "10,32"),
            places=whole_numbers(places, 2, "--places", "4,16"),
            faces=whole_numbers(faces, 1, "--faces", "1,16"),
            depths=whole_numbers(depths, 1, "--depths", "1,4"),
        )
    )
    settings = replace(settings, repeats=1 if quick else at_least(repeats, 1, "--repeats"))
    with watching(marble.steps(settings)) as (notify, step):
        outcome = marble.run(settings, notify, step)
    hand_over(
        outcome.all_records(),
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show_study(
            marble_report.heading(outcome),
            ((title, 1, table) for title, table in marble_report.tables(outcome).items()),
            marble_report.closing(outcome),
        ),
        markdown=lambda: marble_report.markdown(outcome),
        plot=lambda path: marble_report.plot(outcome.all_records(), path),
        rows=outcome.points,
    )
