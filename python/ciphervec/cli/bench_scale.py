"""Command `bench scale`: options enter; a table and a file of records leave."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from ..collections.clusters import Clusters
from ..ingest.metrics import MetricName
from ..lab.bench import report, scale
from .measuring import JsonFile, at_least, one_of, write
from .tables import grid
from .terminal import aside, command, print_json, screen


@command
def bench_scale(
    rows: Annotated[int, typer.Option(help="Vectors in the collection.")] = 1_000_000,
    dim: Annotated[int, typer.Option(help="Numbers per vector, without --data.")] = 128,
    metric: Annotated[str, typer.Option(help="cosine or l2.")] = "cosine",
    data: Annotated[
        Path | None,
        typer.Option(
            help="A .npz of real vectors (base, vectors or embeddings) that are scaled up to --rows."
        ),
    ] = None,
    count: Annotated[int | None, typer.Option(help="Clusters; chosen if left out.")] = None,
    probes: Annotated[int | None, typer.Option(help="Clusters scanned; chosen if left out.")] = None,
    decoys: Annotated[int | None, typer.Option(help="Beside these; as many if left out.")] = None,
    recall: Annotated[float, typer.Option(help="What probes are chosen for.")] = 0.95,
    queries: Annotated[int, typer.Option(help="Questions, which are no rows.")] = 100,
    threads: Annotated[int, typer.Option(help="Threads.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the vectors.")] = 0,
    json_file: JsonFile = None,
) -> None:
    """A collection in mode sealed that is scanned whole, and the same routed: rows scanned, bytes of an answer, time, and
    recall of questions that are no rows. Decoys, padding and unrouted rows are counted.

    **Examples**

    - `ciphervec bench scale --rows 1000000 --dim 128 --json out.json`
    - `ciphervec bench scale --rows 1000000 --metric l2 --data sift.npz --probes 5 --decoys 5`
    """
    settings = scale.Settings(
        rows=at_least(rows, 1000, "--rows"),
        dim=at_least(dim, 1, "--dim"),
        metric=cast(MetricName, one_of(metric, ("cosine", "l2"), "--metric")),
        clusters=Clusters(count, probes, decoys, recall),
        queries=at_least(queries, 1, "--queries"),
        threads=at_least(threads, 1, "--threads"),
        data=data,
        seed=seed,
    )
    with aside.status("starting") as status:
        records = scale.run(settings, status.update if aside.is_terminal else lambda message: None)
    if json_file == Path("-"):
        print_json(records)
    else:
        grid(screen, f"mode sealed, {records[0]['data']}", scale.HEADINGS, scale.summary(records), left=0)
    write(json_file, lambda path: report.write_json(records, path))
