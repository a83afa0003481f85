"""What the commands that measure share: options of files, a bar, whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ciphervec import InvalidInput
from ciphervec.cli.measuring import at_least
from ciphervec.cli.terminal import aside

JsonFile = Annotated[Path | None, typer.Option("--json", help="Write every record here; '-' prints them.")]
CsvFile = Annotated[Path | None, typer.Option("--csv", help="Write the records here, a line each.")]
MarkdownFile = Annotated[Path | None, typer.Option("--markdown", help="Write the tables and the notes here.")]
PlotFile = Annotated[Path | None, typer.Option("--plot", help="Write a PNG here.")]


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
