"""Commands `bench faults`: break a server on purpose, and say what broke, or that nothing did."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ciphervec import InvalidInput
from ciphervec.cli.measuring import at_least, one_of, write
from ciphervec.cli.terminal import command, print_json, screen
from ciphervec.collections.spec import MODES

from ..bench import machine, report
from ..bench.serving import damage, faults_report, kill, soak
from .measuring import JsonFile, PlotFile, watching

Folder = Annotated[
    Path | None, typer.Option(help="Where the server's temporary data lies: the disk that is tested.")
]

faults_app = typer.Typer(
    no_args_is_help=True,
    help="Break a server on purpose: kill it, flip its bits, fill its disk, wear it out.",
)


@faults_app.command("kill")
@command
def kill_loop(
    turns: Annotated[int, typer.Option(help="Times the server is killed.")] = 1_000,
    writers: Annotated[int, typer.Option(help="Clients that add, delete and merge meanwhile.")] = 2,
    commits: Annotated[int, typer.Option(help="That are acknowledged at most before it is killed.")] = 8,
    mode: Annotated[str, typer.Option(help=f"One of {', '.join(MODES)}.")] = "sealed-index",
    seed: Annotated[int, typer.Option(help="Of the moments and the batches.")] = 0,
    folder: Folder = None,
    bucket: Annotated[
        str | None,
        typer.Option(help="s3://bucket/prefix to serve instead of a folder, with credentials in AWS_*."),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """`kill -9` in the middle of commits, again and again, against a ledger of what was
    acknowledged.

    Nothing acknowledged may be lost, nothing may appear that was never written, and a batch is
    there whole or not at all.

    **Example**

    - `ciphervec bench faults kill --turns 1000 --json kill.json`
    - `ciphervec bench faults kill --turns 200 --bucket s3://vectors/test`
    """
    settings = kill.Settings(
        turns=at_least(turns, 1, "--turns"),
        writers=at_least(writers, 1, "--writers"),
        commits=at_least(commits, 1, "--commits"),
        mode=one_of(mode, MODES, "--mode"),
        seed=seed,
        folder=folder,
        bucket=bucket,
    )
    with watching(settings.turns) as (notify, step):
        record = kill.run(settings, notify, step)
    _tell(record, json_file)


@faults_app.command("flips")
@command
def flips(
    samples: Annotated[
        int, typer.Option(help="Bytes of a long file; a short one is flipped at every byte.")
    ] = 500,
    seed: Annotated[int, typer.Option(help="Of the places and bits.")] = 0,
    folder: Folder = None,
    json_file: JsonFile = None,
) -> None:
    """One flipped bit at a time, in every file of a collection: each must be noticed.

    **Example**

    - `ciphervec bench faults flips --samples 2000`
    """
    with watching(16) as (notify, step):
        record = damage.flips(at_least(samples, 1, "--samples"), notify, step, seed=seed, folder=folder)
    _tell(record, json_file)


@faults_app.command("full-disk")
@command
def full_disk(
    megabytes: Annotated[int, typer.Option(help="Of the file system that is filled.")] = 24,
    json_file: JsonFile = None,
) -> None:
    """A file system that runs full: a clean refusal, answers meanwhile, and recovery without
    repair.

    Needs Linux with `unshare` and `nsenter`.

    **Example**

    - `ciphervec bench faults full-disk --megabytes 24`
    """
    if not damage.mountable():
        raise InvalidInput(
            "this system does not let us mount a small file system to fill; run it on Linux, as a user who may."
        )
    with watching(1) as (notify, _):
        record = damage.full_disk(at_least(megabytes, 4, "--megabytes"), notify)
    _tell(record, json_file)


@faults_app.command("soak")
@command
def soak_run(
    minutes: Annotated[float, typer.Option(help="How long.")] = 30.0,
    rows: Annotated[int, typer.Option(help="Vectors in the collection.")] = 50_000,
    dim: Annotated[int, typer.Option(help="Numbers per vector.")] = 256,
    clients: Annotated[int, typer.Option(help="That ask at the same time; a writer works beside them.")] = 4,
    mode: Annotated[str, typer.Option(help=f"One of {', '.join(MODES)}.")] = "sealed-index",
    folder: Folder = None,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Steady work for a long time: does the server's memory grow, do its answers slow down?

    **Example**

    - `ciphervec bench faults soak --minutes 30 --json soak.json --plot soak.png`
    """
    settings = soak.Settings(
        minutes=minutes,
        rows=at_least(rows, 1_000, "--rows"),
        dim=at_least(dim, 2, "--dim"),
        clients=at_least(clients, 1, "--clients"),
        mode=one_of(mode, MODES, "--mode"),
        folder=folder,
    )
    with watching(soak.steps(settings)) as (notify, step):
        record = soak.run(settings, notify, step)
    _tell(record, json_file)
    write(plot_file, lambda path: soak.plot([record], path))


def _tell(record: dict[str, Any], json_file: Path | None) -> None:
    record["machine"] = machine.describe()
    if json_file == Path("-"):
        print_json([record])
    else:
        screen.print(faults_report.sentence(record), highlight=False)
    write(json_file, lambda path: report.write_json([record], path))
