"""What the commands that measure share: options of files, a bar, whole numbers."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ciphervec import InvalidInput
from ciphervec.cli.measuring import at_least, write
from ciphervec.cli.terminal import aside, print_json
from ciphervec.ingest.extras import needed

from ..bench import report

R = TypeVar("R", bound=dict[str, Any])

JsonFile = Annotated[Path | None, typer.Option("--json", help="Write every record here; '-' prints them.")]
CsvFile = Annotated[Path | None, typer.Option("--csv", help="Write the records here, a line each.")]
MarkdownFile = Annotated[Path | None, typer.Option("--markdown", help="Write the tables and the notes here.")]
Seed = Annotated[int, typer.Option(help="Of the random vectors.")]
Folder = Annotated[Path | None, typer.Option(help="Where temporary data lies: the disk that is measured.")]
PlotFile = Annotated[Path | None, typer.Option("--plot", help="Write a PNG here.")]


def present(what: str, extra: str, modules: Sequence[str]) -> None:
    """Raise what says how to install the extra that has these modules, where one is missing."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise needed(what, ", ".join(missing), extra)


def measured(run: Callable[[Callable[[str], None]], list[R]], json_file: Path | None) -> list[R] | None:
    """The records that `run` makes while a terminal says how far it is, in a file if one is named; None where they are
    printed as JSON instead of a table."""
    with aside.status("starting") as status:
        records = run(status.update if aside.is_terminal else lambda message: None)
    if json_file == Path("-"):
        print_json(records)
        return None
    write(json_file, lambda path: report.write_json(records, path))
    return records


@contextmanager
def watching(total: int) -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    """Yields what to call with a message, and what to call after a step.

    Where there is no terminal, a line for each thing that is new: a message up to its count in
    brackets.
    """
    if not aside.is_terminal:
        told: set[str] = set()

        def tell(message: str) -> None:
            what = message.partition(" (")[0]
            if what not in told:
                told.add(what)
                aside.print(what, style="dim", highlight=False)

        yield tell, (lambda: None)
        return
    columns = (
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=aside, transient=True) as bar:
        task = bar.add_task("starting", total=total)
        yield (lambda message: bar.update(task, description=message)), (lambda: bar.advance(task))


def whole_numbers(text: str, least: int, option: str, example: str) -> tuple[int, ...]:
    """'128,512' to (128, 512), none twice. Raises InvalidInput for what is no number, too small, or
    nothing."""
    try:
        found = tuple(dict.fromkeys(int(part) for part in text.split(",") if part.strip()))
    except ValueError:
        raise InvalidInput(
            f"{option} takes numbers with commas between them, e.g. {example}, got {text!r}."
        ) from None
    if not found:
        raise InvalidInput(f"{option} is empty; give at least one, e.g. {example.partition(',')[0]}.")
    return tuple(at_least(number, least, option) for number in found)
