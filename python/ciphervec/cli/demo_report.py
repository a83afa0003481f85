"""The report of `demo`: tables for a person, in colour or on a dumb terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ..demo.corpus import Passage
from ..demo.search import ModeRun, PlainRun
from .tables import grid

SHOWN = {
    "open": ("plain", "plain"),
    "sealed-index": ("encrypted", "plain"),
    "sealed-query": ("plain", "encrypted"),
    "sealed": ("encrypted", "encrypted"),
}
SHORTEST_NAME = 18


def answers(
    console: Console,
    passages: Sequence[Passage],
    questions: Sequence[str],
    plain: PlainRun,
    runs: Sequence[ModeRun],
) -> None:
    """A block a question: the plaintext ranking, and every mode's score for the hit at the same rank; the text of the
    first."""
    columns = ["plain", *(run.mode for run in runs)]
    widths = [max(len(name), 6) + 2 for name in columns]
    room = max(SHORTEST_NAME, min(console.width, 110) - 4 - sum(widths))
    for number, question in enumerate(questions):
        console.print(Text(question, style="bold cyan"))
        heads = "".join(f"{name:>{width}}" for name, width in zip(columns, widths, strict=True))
        console.print(Text(" " * (4 + room) + heads, style="dim"))
        for rank, want in enumerate(plain.answers[number]):
            passage = passages[want.row]
            line = Text(f"  {rank + 1} ")
            line.append(f"{tail(passage.name, room):{room}}", style="bold")
            line.append(f"{want.score:>{widths[0]}.4f}", style="dim")
            for run, width in zip(runs, widths[1:], strict=True):
                line.append_text(cell(run, number, rank, want.row, width))
            console.print(line)
            if rank == 0:
                console.print(Text("    " + shorten(passage.text, room + sum(widths)), style="dim"))


def cell(run: ModeRun, question: int, rank: int, want: int, width: int) -> Text:
    """A score in green where the hit is the plaintext one, else the row that came instead, in
    red."""
    hit = run.answers[question][rank]
    if hit.row == want:
        return Text(f"{hit.score:>{width}.4f}", style="green")
    return Text(f"{f'row {hit.row}!':>{width}}", style="bold red")


def agreement(plain: PlainRun, run: ModeRun) -> tuple[int, int, float]:
    """Ranks that agree, ranks in all, and the largest difference of score where they do."""
    pairs = [
        (want, got)
        for wanted, given in zip(plain.answers, run.answers, strict=True)
        for want, got in zip(wanted, given, strict=True)
    ]
    same = [(want, got) for want, got in pairs if want.row == got.row]
    return len(same), len(pairs), max((abs(want.score - got.score) for want, got in same), default=0.0)


def server_view(console: Console, runs: Sequence[ModeRun]) -> None:
    """What went to the server and came back, for one question."""
    rows: list[list[str | Text]] = []
    for run in runs:
        vectors, questions = SHOWN[run.mode]
        seen = run.seen
        sizes = (seen.vector_bytes, seen.key_bytes, seen.query_bytes, seen.response_bytes, seen.disk_bytes)
        rows.append(
            [run.mode, shade(vectors), shade(questions), *(size(one) if one else "none" for one in sizes)]
        )
    heads = ["", "vectors", "questions", "a vector", "keys", "question", "answer", "on disk"]
    grid(console, "What the server saw", heads, rows, left=3)
    for run in runs:
        if run.mode in ("open", "sealed"):
            console.print(f"  the last question's last bytes, {run.mode:8}", style="dim", end="")
            console.print(run.seen.query_head[-16:].hex(" ", 4), highlight=False)
    console.print()


def times(console: Console, runs: Sequence[ModeRun], plain: PlainRun, passages: int) -> None:
    """Milliseconds of one question, and the ratio to the plaintext scan in the same turns."""
    rows: list[list[str | Text]] = []
    for run in runs:
        same, ranks, worst = agreement(plain, run)
        spent = (run.ms_prepare, run.ms_server, run.ms_open, run.ms_total, run.ms_plain)
        rows.append(
            [
                run.mode,
                *(f"{one:.2f}" for one in spent),
                f"{run.ms_total / run.ms_plain:.1f}×",
                f"{passages / run.seal_seconds:,.0f}",
                Text(f"{same}/{ranks}", style="green" if same == ranks else "bold red"),
                f"{worst:.0e}",
            ]
        )
    heads = ["", "prepare", "server", "open", "total", "plain", "ratio", "sealed/s", "ranks", "error"]
    grid(console, "Time of one question, in milliseconds", heads, rows, left=1)
    console.print(
        "  plain: a float32 product and a sort of the same rows; sealed/s: with their texts, synced to disk;\n"
        "  ranks: hits at the plaintext rank; error: the largest difference of a cosine",
        style="dim",
        highlight=False,
    )


def next_steps(console: Console, folder: str, model: str | None = None) -> None:
    """The same on the command line, with the reader's own vectors or texts."""
    kept = f"{folder} stdlib-sealed"
    if model is None:
        commands = f"""ciphervec keygen my.key
ciphervec create db items --dim 512 --keys my.key
ciphervec add db items vectors.npy --keys my.key
ciphervec query db items probe.npy --keys my.key
ciphervec query {kept} {folder}/questions.npy --keys {folder}/demo.key  # what this demo left"""
    else:
        commands = f"""ciphervec keygen my.key
ciphervec create db notes --model {model} --keys my.key
ciphervec add db notes notes.txt --embed --keys my.key
ciphervec query db notes --text "Where did we leave it?" --keys my.key
ciphervec query {kept} --text "How do I read a CSV file?" --keys {folder}/demo.key  # what this demo left"""
    console.print(Text(f"The same with your own {'vectors' if model is None else 'texts'}", style="bold"))
    console.print(Padding(Text(commands), (0, 0, 0, 2)))
    console.print()


def shade(says: str) -> Text:
    """Green for what is hidden."""
    return Text(says, style="green" if says == "encrypted" else "yellow")


def shorten(text: str, width: int) -> str:
    """The beginning, cut at a word."""
    return text if len(text) <= width else text[: width - 1].rsplit(" ", 1)[0] + " …"


def tail(name: str, width: int) -> str:
    """The end of a dotted name, which says the most."""
    return name if len(name) <= width else "…" + name[1 - width :]


def size(count: float) -> str:
    """Bytes in three digits."""
    for unit, divisor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= divisor:
            return f"{count / divisor:#.3g}".rstrip(".") + f" {unit}"
    return f"{count:.0f} B"
