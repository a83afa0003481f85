"""Outcome: what was measured enters; a table or JSON on the screen, and the files that were asked for,
leave. Shared by the benches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ciphervec.cli.measuring import write
from ciphervec.cli.terminal import print_json

from ..bench import report


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
    markdown: Callable[[Path], None],
    plot: Callable[[Path], None],
) -> None:
    """Show what was measured, or print its records where that was asked for, and write the files."""
    if files.json == Path("-"):
        print_json(list(records))
    else:
        show()
    write(files.json, lambda path: report.write_json(records, path))
    write(files.csv, lambda path: report.write_csv(records, path))
    write(files.markdown, markdown)
    write(files.plot, plot)
