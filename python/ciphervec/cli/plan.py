"""Command `plan`, for who plans a large collection: a table of what it would take. It needs neither a key nor a
cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ..errors import InvalidInput
from . import cost_model
from .cost_model import TIPTOE, Estimate, Prices, Routing, Speeds
from .tables import grid
from .terminal import Json, command, print_json, screen, size

_PRICES, _SPEEDS = Prices(), Speeds()


@command
def plan(
    rows: Annotated[
        str, typer.Option(help="Rows of the collection, as 1e9 or 250000000; several with commas.")
    ] = "1e8,1e9",
    dim: Annotated[int, typer.Option(help="Dimension of the vectors.")] = 768,
    qps: Annotated[float, typer.Option(help="Queries a second, on average.")] = 50.0,
    mode: Annotated[str, typer.Option(help="sealed, sealed-query or sealed-index.")] = "sealed",
    clusters: Annotated[int, typer.Option(help="Clusters of the routed collection; 0 chooses.")] = 0,
    probes: Annotated[int, typer.Option(help="Clusters that a query scans; 0 chooses.")] = 0,
    decoys: Annotated[int, typer.Option(help="Decoy clusters it scans beside; with --probes.")] = 0,
    padding: Annotated[
        float, typer.Option(help="Rows of a padded cluster, as a multiple of the mean.")
    ] = Routing.padding,
    fresh: Annotated[float, typer.Option(help="Share of the rows that are not in a cluster yet.")] = 0.01,
    scan_seconds: Annotated[float, typer.Option(help="Time that the scan of one query may take.")] = 1.0,
    gbit: Annotated[float, typer.Option(help="Gbit/s between the scanners and the key holder.")] = 1.0,
    round_trip: Annotated[float, typer.Option(help="Seconds there and back.")] = 0.02,
    machine_dollars: Annotated[
        float, typer.Option(help="Dollars an hour of a machine.")
    ] = _PRICES.machine_hour,
    machine_threads: Annotated[int, typer.Option(help="Its threads.")] = _PRICES.machine_threads,
    machine_gb: Annotated[float, typer.Option(help="Its memory, GB.")] = _PRICES.machine_memory_gb,
    storage_dollars: Annotated[
        float, typer.Option(help="Dollars a GB and month of object storage.")
    ] = _PRICES.storage_gb_month,
    egress_dollars: Annotated[
        float, typer.Option(help="Dollars a GB that leaves the cloud.")
    ] = _PRICES.egress_gb,
    originals: Annotated[
        bool,
        typer.Option(
            "--originals/--no-originals",
            help="Whether the collection keeps vectors as they were put in, as it does unless told.",
        ),
    ] = True,
    ns: Annotated[
        float | None,
        typer.Option(help="Nanoseconds of one thread a number of a vector; measured on your machine."),
    ] = None,
    as_json: Json = False,
) -> None:
    """What a large collection would take: machines, memory, bytes, latency and dollars a query.

    A model, not a measurement: sizes follow from the formats, speeds and prices are stated, and options
    replace them. Each size is shown as it is scanned whole and, but in sealed-index, routed, with padding,
    decoys and fresh rows counted, and routed obliviously, where the server scans all clusters and does not
    learn which are answered about; what Tiptoe printed stands beside.

    **Examples**

    - `ciphervec plan --rows 1e9 --dim 768 --qps 50`
    - `ciphervec plan --rows 3.6e8 --dim 192 --qps 20 --gbit 0.1 --json`
    """
    prices = Prices(machine_dollars, machine_threads, machine_gb, storage_dollars, egress_gb=egress_dollars)
    if min(machine_dollars, machine_gb, storage_dollars, egress_dollars) < 0 or machine_threads < 1:
        raise InvalidInput("prices and memory are not negative, and a machine has at least one thread.")
    speeds = _SPEEDS
    if ns is not None:
        speeds = replace(speeds, ns_a_number_sealed=ns, ns_a_number_compact=ns)
    found = []
    for count in _counts(rows):
        ways: list[Routing | None] = [None]
        if mode != "sealed-index":
            for chosen in (cost_model.routed(count), cost_model.oblivious(count, dim, padding)):
                if clusters:
                    chosen = replace(chosen, clusters=clusters)
                if probes:
                    chosen = replace(chosen, probes=probes, decoys=0 if chosen.oblivious else decoys)
                ways.append(replace(chosen, padding=padding, fresh=fresh))
        found += [
            cost_model.estimate(
                count,
                dim,
                qps,
                mode=mode,
                routing=way,
                speeds=speeds,
                prices=prices,
                bandwidth_gbit=gbit,
                round_trip=round_trip,
                scan_seconds=scan_seconds,
                originals=originals,
            )
            for way in ways
        ]
    if as_json:
        assumed = {"prices": vars(prices), "speeds": vars(speeds), "gbit": gbit, "round_trip": round_trip}
        print_json({"estimates": [one.as_dict() for one in found], "beside": TIPTOE, "assumed": assumed})
        return
    heads = [
        "",
        *(f"{one.rows:.3g} {one.way}" for one in found),
        "Tiptoe",
    ]
    title = f"{dim:,} dimensions, {mode}, {qps:g} queries a second; a query where nothing else is said"
    grid(screen, title, heads, _lines(found), left=1)
    for one in found:
        if one.routing != "none":
            screen.print(f"{one.rows:.3g} {one.way}: {one.routing}", style="dim", highlight=False)
    for note in (
        f"machines of {machine_threads} threads and {machine_gb:g} GB at ${machine_dollars:g} an hour, "
        f"storage ${storage_dollars:g} a GB and month, ${egress_dollars:g} a GB out, {gbit:g} Gbit/s",
        "Tiptoe: as printed for 3.6e+08 pages of 192 dimensions, with search over plain embeddings",
        "a model: measure `ciphervec bench` on the machine you mean before you buy",
    ):
        screen.print(note, style="dim", highlight=False)


def _counts(text: str) -> list[float]:
    try:
        counts = [float(one) for one in text.split(",")]
    except ValueError as error:
        raise InvalidInput(f"--rows is a number as 1e9, or several with commas, got {text!r}.") from error
    if not counts or any(not 1 <= one <= 1e15 for one in counts):
        raise InvalidInput(f"--rows is at least 1 and at most 1e15, got {text!r}.")
    return counts


def _lines(found: list[Estimate]) -> list[list[str]]:
    beside = TIPTOE
    return [
        ["rows scanned", *(f"{one.rows_scanned:.3g}" for one in found), f"{beside['rows']:.3g}"],
        ["in object storage", *(size(round(one.stored_bytes)) for one in found), ""],
        ["in memory", *(size(round(one.memory_bytes)) for one in found), ""],
        ["machines", *(f"{one.machines:,}" for one in found), f"{beside['machines']}"],
        ["bytes up", *(size(round(one.bytes_up)) for one in found), ""],
        ["bytes down", *(size(round(one.bytes_down)) for one in found), ""],
        [
            "bytes, both ways",
            *(size(round(one.bytes_up + one.bytes_down)) for one in found),
            size(round(float(str(beside["bytes"])))),
        ],
        ["core-seconds", *(f"{one.core_seconds:.3g}" for one in found), f"{beside['core_seconds']:g}"],
        ["latency, s", *(f"{one.latency:.3g}" for one in found), f"{beside['latency']:g}"],
        ["of it scan, s", *(f"{one.scan_seconds:.3g}" for one in found), ""],
        ["of it transfer, s", *(f"{one.transfer_seconds:.3g}" for one in found), ""],
        ["dollars", *(f"{one.dollars_a_query:.2g}" for one in found), f"{beside['dollars_a_query']:g}"],
        ["dollars a month", *(f"{one.dollars_a_month:,.0f}" for one in found), ""],
    ]
