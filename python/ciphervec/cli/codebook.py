"""Commands `codebook`, for the side that has an embedding matrix: they compress it and show what that loses. They need
no key."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ..codebooks.codebook import METHODS, REFINE_ROUNDS, Codebook
from ..errors import InvalidInput
from ..ingest import arrays
from . import codebook_table as compare
from .measuring import at_least, each_of, one_of, write
from .readers import read
from .row_table import Columns
from .tables import grid
from .terminal import Json, command, existing, print_json, progress, screen, size

codebook_app = typer.Typer(
    no_args_is_help=True, help="Compress an embedding matrix into small tables and codes."
)


@codebook_app.callback()
def _root() -> None:
    """Compress an embedding matrix into small tables and codes."""


@codebook_app.command()
@command
def train(
    embeddings: Annotated[
        Path,
        typer.Argument(
            help="(n, d) numbers: .npy, .npz, .parquet, .hdf5, .fvecs, .csv, or .txt with a word and its numbers a line."
        ),
    ],
    out: Annotated[Path, typer.Argument(help="The codebook's file, .npz.")],
    rows: Annotated[int, typer.Option(help="Rows of a table, p.")] = 256,
    tables: Annotated[
        int, typer.Option(help="Tables, ℓ. A row of the matrix is the sum of a row from each.")
    ] = 4,
    method: Annotated[str, typer.Option(help="One of " + ", ".join(METHODS) + ".")] = METHODS[0],
    epochs: Annotated[
        int | None, typer.Option(help="Rounds of k-means a table, or passes over the matrix for gumbel.")
    ] = None,
    refine: Annotated[
        int, typer.Option(help="Rounds of least squares and reassignment that follow, whatever the method.")
    ] = REFINE_ROUNDS,
    seed: Annotated[int, typer.Option(help="Of every random choice.")] = 0,
    column: Annotated[
        str, typer.Option("--embedding-column", help="Of an .npz, .parquet or .csv.")
    ] = "embedding",
    others: Annotated[
        str,
        typer.Option(
            "--compare",
            help="Also train these, comma-separated, of " + ", ".join(METHODS) + ", for the table.",
        ),
    ] = "",
    report: Annotated[Path | None, typer.Option(help="Write the table as Markdown here.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of the errors here.")] = None,
    as_json: Json = False,
) -> None:
    """Compress a matrix into tables and codes, and say what it lost.

    A row of the matrix becomes one code a table. For private lookup the client keeps the codes and
    encrypts them; the server keeps the tables only.

    **Examples**

    - `ciphervec codebook train glove.6B.50d.txt glove.npz`
    - `ciphervec codebook train embeddings.npy book.npz --rows 1024 --method gumbel`
    - `ciphervec codebook train embeddings.npy book.npz --compare product,gumbel --report table.md --plot table.png`
    """
    methods = dict.fromkeys((one_of(method, METHODS, "--method"), *each_of(others, METHODS, "--compare")))
    matrix = _matrix(embeddings, column)
    results: list[compare.Result] = []
    for name in methods:
        began = time.perf_counter()
        with progress(f"{name}, {tables} tables of {rows}", 1, quiet=as_json) as step:
            book = Codebook.train(
                matrix, rows, tables, name, seed=seed, epochs=epochs, refine_rounds=at_least(refine, 0, "--refine"),
                progress=step,
            )  # fmt: skip
        results.append(compare.result(name, book, matrix, time.perf_counter() - began))
        if name == method:
            book.save(out)
    write(report, lambda path: compare.write_markdown(results, matrix.shape, path))
    write(plot, lambda path: compare.plot(results, matrix.shape, path))
    if as_json:
        print_json(
            {
                "path": str(out),
                "rows": len(matrix),
                "dim": matrix.shape[1],
                "methods": [one.record() for one in results],
            }
        )
        return
    heads, lines = compare.table(results)
    grid(screen, compare.heading(matrix.shape, results[0]), heads, lines, left=1)
    screen.print(f"{out}: {book_size(results[0])}, the matrix takes {size(matrix.nbytes)}", highlight=False)


def book_size(result: compare.Result) -> str:
    """Both halves of a codebook."""
    codes, tables = result.codebook.codes.nbytes, result.codebook.tables.nbytes
    return f"tables {size(tables)}, codes {size(codes)}"


@codebook_app.command()
@command
def show(
    path: Annotated[Path, typer.Argument(help="A codebook's file.")],
    embeddings: Annotated[
        Path | None, typer.Option(help="The matrix it was made of, to say how far it is from that.")
    ] = None,
    column: Annotated[
        str, typer.Option("--embedding-column", help="Of an .npz, .parquet or .csv.")
    ] = "embedding",
    as_json: Json = False,
) -> None:
    """What a codebook holds, and how evenly its rows are used.

    **Examples**

    - `ciphervec codebook show glove.npz`
    - `ciphervec codebook show glove.npz --embeddings glove.6B.50d.txt`
    """
    book = Codebook.load(existing(path, "codebook"))
    count, rows, dimension = book.tables.shape
    record: dict[str, Any] = {
        "rows": len(book), "dim": dimension, "tables": count, "table_rows": rows, "tables_bytes": book.tables.nbytes,
        "codes_bytes": book.codes.nbytes, "used": compare.used(book), "entropy_bits": compare.entropy(book),
    }  # fmt: skip
    if embeddings is not None:
        record |= vars(book.error(_matrix(embeddings, column)))
    if as_json:
        print_json(record)
        return
    screen.print(f"{len(book):,} rows of {dimension}, as {count} tables of {rows}", highlight=False)
    lines = [
        [str(j), str(used), f"{bits:.2f}"]
        for j, (used, bits) in enumerate(zip(record["used"], record["entropy_bits"], strict=True))
    ]
    grid(
        screen,
        f"tables {size(book.tables.nbytes)}, codes {size(book.codes.nbytes)}",
        ["table", "rows used", "bits a code"],
        lines,
        left=0,
    )
    if embeddings is not None:
        screen.print(
            f"relative error {record['relative']:.4f}, RMS {record['rms']:.4g}, mean cosine {record['cosine']:.4f}",
            highlight=False,
        )


def _matrix(path: Path, column: str) -> arrays.FloatArray:
    found = read(path, Columns(embedding=column, alone=True)).embeddings
    if found.ndim != 2 or 0 in found.shape:
        raise InvalidInput(f"{path} must hold (n, d) numbers, got shape {found.shape}.")
    return arrays.vectors(found, found.shape[1], "l2", what=str(path))
