"""What the demo found enters; tables a person reads leave, in colour or on a dumb terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .corpus import Passage
from .search import ModeRun, PlainRun

SHOWN = {
    "open": ("in the clear", "in the clear"),
    "sealed-index": ("encrypted", "in the clear"),
    "sealed-query": ("in the clear", "encrypted"),
    "sealed": ("encrypted", "encrypted"),
}
SNIPPET = 74


def answers(
    console: Console,
    passages: Sequence[Passage],
    questions: Sequence[str],
    plain: PlainRun,
    runs: Sequence[ModeRun],
) -> None:
    """One table a question: the plaintext ranking, and every mode's score for the hit at the same rank."""
    for number, question in enumerate(questions):
        table = Table(
            box=box.SIMPLE_HEAD, title=question, title_justify="left", title_style="bold cyan", pad_edge=False
        )
        table.add_column("", style="dim")
        table.add_column("passage", overflow="fold", ratio=1)
        table.add_column("plain", justify="right", style="dim")
        for run in runs:
            table.add_column(run.mode, justify="right")
        for rank, want in enumerate(plain.answers[number]):
            passage = passages[want.row]
            text = Text(passage.name, style="bold")
            text.append("\n" + shorten(passage.text), style="not bold dim")
            cells: list[str | Text] = [str(rank + 1), text, f"{want.score:.4f}"]
            cells.extend(cell(run, number, rank, want.row) for run in runs)
            table.add_row(*cells)
        console.print(table)


def cell(run: ModeRun, question: int, rank: int, want: int) -> Text:
    """A score in green where the hit is the plaintext one, else the row that came instead, in red."""
    hit = run.answers[question][rank]
    if hit.row == want:
        return Text(f"{hit.score:.4f}", style="green")
    return Text(f"{hit.score:.4f}\nrow {hit.row}", style="bold red")


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
    table = Table(
        box=box.SIMPLE_HEAD,
        title="What the server saw",
        title_justify="left",
        title_style="bold",
        pad_edge=False,
    )
    table.add_column("mode", style="bold")
    table.add_column("vectors")
    table.add_column("questions")
    for name in ("bytes a vector", "its keys", "a question", "an answer", "on disk"):
        table.add_column(name, justify="right")
    for run in runs:
        vectors, questions = SHOWN[run.mode]
        seen = run.seen
        table.add_row(
            run.mode,
            shade(vectors),
            shade(questions),
            f"{seen.vector_bytes:,.0f}",
            size(seen.key_bytes) if seen.key_bytes else "none",
            size(seen.query_bytes),
            size(seen.response_bytes),
            size(seen.disk_bytes),
        )
    console.print(table)
    for run in runs:
        if run.mode in ("open", "sealed"):
            console.print(f"  end of a question in {run.mode}: ", style="dim", end="")
            console.print(run.seen.query_head[-24:].hex(" ", 4), highlight=False)


def times(console: Console, plain: PlainRun, runs: Sequence[ModeRun], rows: int) -> None:
    """Milliseconds of one question, and the ratio to the plaintext scan."""
    table = Table(
        box=box.SIMPLE_HEAD,
        title="Time of one question",
        title_justify="left",
        title_style="bold",
        pad_edge=False,
    )
    table.add_column("mode", style="bold")
    for name in (
        "prepare ms",
        "server ms",
        "open ms",
        "total ms",
        "× plain scan",
        "sealed a second",
        "same ranks",
        "worst score",
    ):
        table.add_column(name, justify="right")
    table.add_row("plain float32 product", "", "", "", f"{plain.ms:.2f}", "1.0", "", "", "", style="dim")
    for run in runs:
        same, ranks, worst = agreement(plain, run)
        table.add_row(
            run.mode,
            f"{run.ms_prepare:.2f}",
            f"{run.ms_server:.2f}",
            f"{run.ms_open:.2f}",
            f"{run.ms_total:.2f}",
            f"{run.ms_total / plain.ms:.1f}",
            f"{rows / run.seal_seconds:,.0f}",
            Text(f"{same} of {ranks}", style="green" if same == ranks else "bold red"),
            f"{worst:.1e}",
        )
    console.print(table)


def next_steps(console: Console, folder: str) -> None:
    """The same on the command line and in Python, with the reader's own vectors."""
    console.print(Text("The same with your own vectors", style="bold"))
    commands = f"""ciphervec keygen my.key
ciphervec create db items --dim 512 --keys my.key
ciphervec add db items vectors.npy --keys my.key
ciphervec query db items probe.npy --keys my.key

# what this demo left behind
ciphervec info {folder}
ciphervec query {folder} stdlib-sealed {folder}/questions.npy -n 3 --keys {folder}/demo.key"""
    python = """import ciphervec, numpy

keys = ciphervec.Keys.generate()
client = ciphervec.PersistentClient("db", keys)
items = client.create_collection("items", dimension=512)
vectors = numpy.load("vectors.npy")
items.add(range(len(vectors)), vectors)
print(items.query(vectors[:1], n_results=5)["ids"])"""
    for block in (commands, python):
        console.print(Padding(Text(block), (1, 2, 0, 2)))


def shade(says: str) -> Text:
    return Text(says, style="green" if says == "encrypted" else "yellow")


def shorten(text: str) -> str:
    return text if len(text) <= SNIPPET else text[: SNIPPET - 1].rsplit(" ", 1)[0] + " …"


def size(count: float) -> str:
    for unit, divisor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= divisor:
            return f"{count / divisor:,.1f} {unit}"
    return f"{count:.0f} B"
