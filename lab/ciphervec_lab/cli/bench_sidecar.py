"""Command `bench sidecar`: a table and a file of records."""

from __future__ import annotations

from typing import Annotated

import typer

from ciphervec import InvalidInput
from ciphervec.cli.measuring import at_least, each_of
from ciphervec.cli.tables import grid
from ciphervec.cli.terminal import command, screen

from ..bench import sidecar
from .measuring import Folder, JsonFile, Seed, measured, present

_NEEDED = ("orjson", "starlette", "uvicorn")


@command
def bench_sidecar(
    rows: Annotated[int, typer.Option(help="Vectors, added by each way.")] = 100_000,
    dim: Annotated[int, typer.Option(help="Numbers per vector.")] = 384,
    batch: Annotated[int, typer.Option(help="Vectors in a request.")] = 10_000,
    queries: Annotated[int, typer.Option(help="Questions asked by each way.")] = 20,
    documents: Annotated[
        bool, typer.Option("--documents", help="Add metadata and documents too, and ask for them.")
    ] = False,
    places: Annotated[
        str, typer.Option(help="Upstream of the sidecar, comma-separated: " + ", ".join(sidecar.PLACES) + ".")
    ] = ",".join(sidecar.PLACES),
    seed: Seed = 0,
    folder: Folder = None,
    json_file: JsonFile = None,
) -> None:
    """Adds a second and the time of a question through the sidecar, with vectors in base64, as Chroma's Python client sends
    them, and in JSON, and through a client of ciphervec on the same place.

    Starts `ciphervec sidecar`, and `ciphervec serve`, on free ports of loopback. The ways take turns. Requests are written
    beforehand: what an application's own client takes comes on top.

    **Examples**

    - `ciphervec bench sidecar --rows 100000 --dim 384 --json out.json`
    - `ciphervec bench sidecar --rows 20000 --documents --places server`
    """
    present("the sidecar", "sidecar", _NEEDED)
    settings = sidecar.Settings(
        rows=at_least(rows, 1, "--rows"),
        dim=at_least(dim, 1, "--dim"),
        batch=at_least(batch, 1, "--batch"),
        queries=at_least(queries, 1, "--queries"),
        documents=documents,
        places=each_of(places, sidecar.PLACES, "--places"),
        seed=seed,
        folder=folder,
    )
    if not settings.places:
        raise InvalidInput("--places is empty; give at least one, e.g. server.")
    records = measured(lambda tell: sidecar.run(settings, tell), json_file)
    if records is not None:
        title = f"{rows:,} vectors of {dim} numbers, {batch:,} a request"
        grid(screen, title, ["", "through", "adds a second", "question, ms"], sidecar.lines(records), left=2)
