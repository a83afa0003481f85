"""Command `bench plot`: draws JSON files that a bench or a study wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ciphervec import InvalidInput
from ciphervec.cli.terminal import aside, command, screen

from ..bench import (
    additive_report,
    bootstrapping_report,
    ckks_report,
    faces_report,
    lookup_report,
    programs_report,
    report,
)
from ..bench.serving import soak, throughput_report
from ..reproduce import (
    ckks_similarity_report,
    ive_pel_report,
    marble_report,
    precompute_report,
    similarity_report,
)

Record = dict[str, Any]
Plot = Callable[[Sequence[Record], Path], None]

# By the keys that a record of such a file has: which command wrote it, and what draws it. The first
# that fits.
KINDS: dict[str, tuple[frozenset[str], Plot]] = {
    "bench search": (frozenset({"recall_at_10"}), report.plot),
    "bench programs": (frozenset({"program", "predicted_ms", "peer_wrong"}), programs_report.plot),
    "bench paillier": (frozenset({"peer_ms", "abs_error"}), additive_report.plot),
    "bench ckks": (frozenset({"special_primes"}), ckks_report.plot),
    "bench bootstrapping": (frozenset({"failure_log2"}), bootstrapping_report.plot),
    "reproduce ive-pel": (frozenset({"printed_depth"}), ive_pel_report.plot),
    "bench lookup": (frozenset({"planner_ms", "codebooks"}), lookup_report.plot),
    "bench faces": (frozenset({"register_ms", "strangers_accepted"}), faces_report.plot),
    "bench server": (frozenset({"percentiles_ms"}), throughput_report.plot),
    "bench faults soak": (frozenset({"samples"}), soak.plot),
    "reproduce marble": (frozenset({"figure", "printed_ms"}), marble_report.plot),
    "reproduce ckks-similarity": (frozenset({"computation_runs_ms"}), ckks_similarity_report.plot),
    "reproduce phe-similarity": (frozenset({"cryptosystem"}), similarity_report.plot),
    "reproduce paillier-precompute": (frozenset({"table", "iteration"}), precompute_report.plot),
}


@command
def bench_plot(
    files: Annotated[list[Path], typer.Argument(help="What --json wrote.")],
    to: Annotated[
        Path | None, typer.Option(help="A folder for the pictures; beside the files if left out.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Write the records as CSV too.")] = False,
) -> None:
    """Draw the pictures of runs that are over, and nothing is measured again.

    Every command that measures draws the same with --plot while it is at it. A file of sentences
    only, such as that of `bench faults kill`, has no picture and is passed over.

    **Examples**

    - `ciphervec bench plot out.json`
    - `ciphervec bench plot benches/results/*.json --to pictures --csv`
    """
    drawn = 0
    for file in files:
        records = read(file)
        plot = picture_of(records)
        target = (to or file.parent) / file.name
        if csv:
            report.write_csv(records, target.with_suffix(".csv"))
        if plot is None:
            aside.print(f"{file}: no picture", style="dim", highlight=False)
            continue
        plot(records, target.with_suffix(".png"))
        screen.print(str(target.with_suffix(".png")), highlight=False, soft_wrap=True)
        drawn += 1
    if not drawn:
        raise InvalidInput(
            f"none of {len(files)} file(s) has a picture; there is one for what these write with --json: "
            f"{', '.join(KINDS)}. Server and soak runs need one written by this release or later."
        )


def read(file: Path) -> list[Record]:
    """The records of a JSON file. Raises InvalidInput where it holds anything else."""
    try:
        records = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidInput(f"{file} is not JSON: {error}; give a file that --json wrote.") from error
    if not isinstance(records, list) or not records or not all(isinstance(one, dict) for one in records):
        raise InvalidInput(f"{file} holds no list of records; give a file that --json wrote.")
    return records


def picture_of(records: Sequence[Record]) -> Plot | None:
    """What draws such records, or None."""
    for keys, plot in KINDS.values():
        if any(keys <= one.keys() for one in records):
            return plot
    return None
