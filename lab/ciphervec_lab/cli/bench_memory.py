"""Command `bench memory`."""

from __future__ import annotations

from typing import Annotated

import typer

from ciphervec import InvalidInput
from ciphervec.cli.measuring import at_least, each_of
from ciphervec.cli.tables import grid
from ciphervec.cli.terminal import command, screen

from ..bench import memory
from .measuring import Folder, JsonFile, Seed, measured, present

_NEEDED = ("mcp", "onnxruntime")


@command
def bench_memory(
    memories: Annotated[int, typer.Option(help="Memories that are there already.")] = 100_000,
    calls: Annotated[int, typer.Option(help="Questions asked of each.")] = 40,
    places: Annotated[
        str, typer.Option(help="Where the memory is, comma-separated: " + ", ".join(memory.PLACES) + ".")
    ] = ",".join(memory.PLACES),
    transports: Annotated[
        str, typer.Option(help="How the agent asks, comma-separated: " + ", ".join(memory.TRANSPORTS) + ".")
    ] = ",".join(memory.TRANSPORTS),
    seed: Seed = 0,
    folder: Folder = None,
    json_file: JsonFile = None,
) -> None:
    """The time in which an agent recalls, remembers and forgets: round trips of the Model Context Protocol to `ciphervec mcp`.

    A recall embeds the question, searches all memories, and reads five texts; the embedding is shown alone, too. What
    fills the memory has random vectors. A forgotten memory is hidden, and then shredded: its segment is sealed again.

    **Examples**

    - `ciphervec bench memory --memories 100000 --json out.json`
    - `ciphervec bench memory --memories 5000 --places folder --transports stdio`
    """
    present("the memory", "mcp", _NEEDED)
    settings = memory.Settings(
        memories=at_least(memories, 0, "--memories"),
        calls=at_least(calls, 1, "--calls"),
        places=each_of(places, memory.PLACES, "--places"),
        transports=each_of(transports, memory.TRANSPORTS, "--transports"),
        seed=seed,
        folder=folder,
    )
    if not settings.places or not settings.transports:
        raise InvalidInput("--places and --transports need at least one each, e.g. folder and stdio.")
    records = measured(lambda tell: memory.run(settings, tell), json_file)
    if records is not None:
        columns = [
            "place",
            "by",
            "recall, ms",
            "p95",
            "embedding alone",
            "remember",
            "hide",
            "forget and shred",
        ]
        grid(screen, f"{memories:,} memories; milliseconds, medians", columns, memory.lines(records), left=2)
