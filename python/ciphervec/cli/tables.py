"""Tables for a terminal, in colour or not: no line of one is folded."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text


def grid(
    console: Console, title: str, heads: list[str], rows: Sequence[Sequence[str | Text]], *, left: int
) -> None:
    """Columns as wide as they must be, so that nothing is folded at 80; the first `left` of them to
    the left."""
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    console.print(Text(title, style="bold cyan"))
    for number, row in enumerate([heads, *rows]):
        line = Text("  ")
        for place, (value, width) in enumerate(zip(row, widths, strict=True)):
            gap = " " * (width - len(value))
            text = value if isinstance(value, Text) else Text(value, style="dim" if number == 0 else "")
            line.append_text(Text.assemble(text, gap) if place < left else Text.assemble(gap, text))
            line.append("  ")
        line.rstrip()
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
