"""Command `bench scale`: a table and a file of records."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ciphervec import Clusters, InvalidInput, Network
from ciphervec.cli.measuring import at_least, one_of, write
from ciphervec.cli.tables import grid
from ciphervec.cli.terminal import aside, command, print_json, screen
from ciphervec.ingest.extras import needed
from ciphervec.ingest.metrics import MetricName

from ..bench import report, scale
from .measuring import JsonFile


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
    oblivious: Annotated[
        bool, typer.Option("--oblivious", help="Clusters that the server does not learn, and no decoys.")
    ] = False,
    megabits: Annotated[
        float, typer.Option(help="Of the network for which rows are packed, and answers folded or whole.")
    ] = 1000.0,
    queries: Annotated[int, typer.Option(help="Questions, which are no rows.")] = 100,
    threads: Annotated[int, typer.Option(help="Threads.")] = 1,
    scanners: Annotated[
        str,
        typer.Option(help="Also whole, sealed and scanned on a Ray cluster of this machine: 1,2,4 scanners."),
    ] = "",
    folder: Annotated[
        Path | None, typer.Option(help="With --scanners: where rows and collection lie, and stay.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the vectors.")] = 0,
    json_file: JsonFile = None,
) -> None:
    """A collection in mode sealed that is scanned whole, and the same routed: rows scanned, bytes of an answer, time, and
    recall of questions that are no rows. Decoys, padding and unrouted rows are counted. Of the whole one also what fetching
    half of an answer ahead saves. Of clusters that the server does not learn also what `ciphervec plan` says of as many rows,
    and of ten million.

    **Examples**

    - `ciphervec bench scale --rows 1000000 --dim 128 --json out.json`
    - `ciphervec bench scale --rows 1000000 --metric l2 --data sift.npz --probes 5 --decoys 5`
    - `ciphervec bench scale --rows 1000000 --scanners 1,2 --folder /the/disk`
    - `ciphervec bench scale --rows 1000000 --oblivious --megabits 100`
    """
    settings = scale.Settings(
        rows=at_least(rows, 1000, "--rows"),
        dim=at_least(dim, 1, "--dim"),
        metric=cast(MetricName, one_of(metric, ("cosine", "l2"), "--metric")),
        clusters=Clusters(count, probes, decoys, recall, oblivious=oblivious),
        queries=at_least(queries, 1, "--queries"),
        threads=at_least(threads, 1, "--threads"),
        data=data,
        seed=seed,
        network=Network(megabits),
    )
    counts = [at_least(int(one), 1, "--scanners") for one in scanners.split(",") if one.strip().isdigit()]
    if len(counts) != len([one for one in scanners.split(",") if one.strip()]):
        raise InvalidInput(f"--scanners is numbers with commas, got {scanners!r}.")
    with aside.status("starting") as status:
        notify = status.update if aside.is_terminal else lambda message: None
        records = scale.run(settings, notify)
        more = _on_a_cluster(settings, counts, folder, notify) if counts else []
    records += more
    if json_file == Path("-"):
        print_json(records)
    else:
        alone = records[: len(records) - len(more)]
        grid(screen, f"mode sealed, {records[0]['data']}", scale.HEADINGS, scale.summary(alone), left=0)
        said = scale.model_lines(alone[1]) if oblivious else [scale.tokens_line(alone[0])]
        for line in [*said, *map(_line, more)]:
            screen.print(line, highlight=False)
    write(json_file, lambda path: report.write_json(records, path))


def _on_a_cluster(
    settings: scale.Settings, counts: list[int], folder: Path | None, notify: Callable[[str], object]
) -> list[dict[str, Any]]:
    """Records of `ciphervec_lab.bench.scanners`, which is there where Ray is."""
    try:
        bench = importlib.import_module("ciphervec_lab.bench.scanners")
    except ModuleNotFoundError as error:
        raise needed("--scanners", str(error.name), "ray") from error
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return list(bench.run(settings.rows, settings.dim, counts, folder=folder, notify=notify))


def _line(record: dict[str, Any]) -> str:
    if record["what"] == "sealing":
        return f"sealed by {record['workers']} workers: {record['rows_a_second']:,.0f} rows a second"
    return (
        f"{record['scanners']} scanners: {record['ms']:.1f} ms, one process of as many threads "
        f"{record['ms_one_process']:.1f} ms; recall {record['recall_at_10']:.3f}; "
        f"right after a kill: {record['right_after_kill']}"
    )
