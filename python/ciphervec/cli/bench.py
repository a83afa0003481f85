"""A size enters; measured tables, files and a plot leave. The bench plays owner and server in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..bench import report
from ..bench.search import Record, Settings, run
from ..bench.subject import VARIANTS
from ..demo.show import grid
from ..errors import InvalidInput
from .terminal import aside, command, print_json, screen

bench_app = typer.Typer(no_args_is_help=True, help="Measure, beside a plaintext peer in the same run.")


@bench_app.callback()
def _root() -> None:
    """Measure, beside a plaintext peer in the same run."""


@bench_app.command()
@command
def search(
    rows: Annotated[int, typer.Option(help="Vectors in the index.")] = 200_000,
    dim: Annotated[int, typer.Option(help="Numbers per vector.")] = 512,
    threads: Annotated[int, typer.Option(help="Threads, for ours and the peers.")] = 1,
    queries: Annotated[int, typer.Option(help="Queries in one batch.")] = 1,
    repeats: Annotated[int, typer.Option(help="Runs per mode; medians are reported.")] = 7,
    modes: Annotated[
        str, typer.Option(help="Comma-separated, e.g. 'sealed,sealed-index:small'. All of them if left out.")
    ] = "",
    accuracy_queries: Annotated[int, typer.Option(help="Queries behind recall@10.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the random vectors.")] = 0,
    peer: Annotated[
        str | None, typer.Option(help="Another encrypted library to time on the same rows: tenseal.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every record here; '-' prints them.")
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the flat columns here.")] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", help="Write the table here.")] = None,
    plot_file: Annotated[Path | None, typer.Option("--plot", help="Write a PNG here.")] = None,
) -> None:
    """Search time of every mode against faiss-cpu's flat index on the same vectors.

    Random unit vectors; truth in float64. Ours and the peers take turns, so that a machine that drifts drifts for all.

    **Examples**

    - `ciphervec bench search --rows 200000 --dim 512 --threads 1 --queries 1 --json out.json`
    - `ciphervec bench search --rows 20000 --dim 768 --modes sealed,sealed-index:small --markdown out.md --plot out.png`
    - `ciphervec bench search --rows 10000 --dim 512 --peer tenseal`
    """
    settings = Settings(
        rows=_at_least(rows, 10, "--rows"),
        dim=_at_least(dim, 1, "--dim"),
        threads=_at_least(threads, 1, "--threads"),
        queries=_at_least(queries, 1, "--queries"),
        repeats=_at_least(repeats, 5, "--repeats"),
        accuracy_queries=_at_least(accuracy_queries, 1, "--accuracy-queries"),
        seed=seed,
        variants=variants(modes),
        peer=_peer(peer),
    )
    with aside.status("starting") as status:
        records = run(
            settings,
            status.update if aside.is_terminal else lambda message: aside.print(message, style="dim"),
        )
    to_terminal = json_file == Path("-")
    if to_terminal:
        print_json(records)
    else:
        show(records)
    for path, write in (
        (None if to_terminal else json_file, report.write_json),
        (csv_file, report.write_csv),
        (markdown_file, report.write_markdown),
        (plot_file, report.plot),
    ):
        if path is not None:
            write(records, path)
            aside.print(f"wrote {path}", style="dim", highlight=False)


def show(records: list[Record]) -> None:
    """The table of the Markdown file in two, for a terminal of 80 columns."""
    screen.print(report.heading(records) + "\n", highlight=False)
    times = [
        "ms_prepare",
        "ms_expand",
        "ms_scan",
        "ms_open",
        "ms_total",
        "ratio_to_faiss",
        "ratio_to_best_plain",
    ]
    heads = ["", "prepare", "expand", "scan", "open", "total", "× FAISS", "× best"]
    rows = [[report.title(one), *(report.number(one.get(key)) for key in times)] for one in records]
    grid(screen, "Milliseconds", heads, rows, left=1)
    screen.print()
    sizes = ["bytes_per_vector", "query_bytes", "response_bytes", "key_bytes_server"]
    figures = ["seal_vectors_per_s", "max_abs_error", "std_error"]
    heads = ["", "a vector", "query", "answer", "keys", "sealed/s", "max error", "std", "recall"]
    rows = [
        [
            report.title(one),
            *(report.size(one[key]) for key in sizes),
            *(report.number(one[key]) for key in figures),
            report.share(one["recall_at_10"]),
        ]
        for one in records
        if "ms_open" in one
    ]
    grid(screen, "Bytes, sealing, accuracy", heads, rows, left=1)
    for line in report.peer_sentences(records):
        screen.print("\n" + line, highlight=False)


def variants(modes: str) -> tuple[tuple[str, str], ...]:
    """'sealed,sealed-index:small' to (mode, precision) pairs. Raises InvalidInput naming the known ones."""
    if not modes:
        return tuple(VARIANTS)
    chosen = []
    for part in modes.split(","):
        mode, _, precision = part.strip().partition(":")
        pair = (mode, precision or "standard")
        if pair not in VARIANTS:
            known = ", ".join(m if p == "standard" else f"{m}:{p}" for m, p in VARIANTS)
            raise InvalidInput(f"--modes has {part.strip()!r}; known are {known}.")
        chosen.append(pair)
    return tuple(chosen)


def _at_least(value: int, least: int, option: str) -> int:
    if value < least:
        raise InvalidInput(f"{option} must be at least {least}, got {value}.")
    return value


def _peer(name: str | None) -> str | None:
    if name not in (None, "tenseal"):
        raise InvalidInput(f"--peer knows tenseal, got {name!r}.")
    return name
