"""Shows what a bench measured, as a table or JSON, and writes the files that were asked for. Shared by the benches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ciphervec.cli.measuring import write
from ciphervec.cli.tables import grid
from ciphervec.cli.terminal import print_json, screen

from ..bench import report
from ..bench.report import Table


class Files(NamedTuple):
    """Where a measurement is to be written, as far as it was asked for."""

    json: Path | None
    csv: Path | None
    markdown: Path | None
    plot: Path | None


def hand_over(
    records: Sequence[Any],
    files: Files,
    *,
    show: Callable[[], None],
    markdown: Callable[[], str],
    plot: Callable[[Path], None],
    rows: Sequence[Any] | None = None,
) -> None:
    """Show what was measured, or print its records where that was asked for, and write the files; in CSV only `rows`,
    if the records are not all of one kind."""
    if files.json == Path("-"):
        print_json(list(records))
    else:
        show()
    write(files.json, lambda path: report.write_json(records, path))
    write(files.csv, lambda path: report.write_csv(records if rows is None else rows, path))
    write(files.markdown, lambda path: report.write_markdown(markdown(), path))
    write(files.plot, plot)


def show_study(heading: str, tables: Iterable[tuple[str, int, Table]], notes: Iterable[str]) -> None:
    """A study's tables, each with its title and how many of its columns stand left, between heading and notes."""
    screen.print(heading + "\n", highlight=False)
    for title, left, (heads, rows) in tables:
        grid(screen, title, heads, rows, left=left)
        screen.print()
    for note in notes:
        screen.print(note, style="dim", highlight=False)
