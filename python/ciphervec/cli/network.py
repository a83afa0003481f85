"""The option `--network`, for a key's owner: checks it and makes a `Network` of it."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import InvalidInput
from ..ingest.network import DEFAULT, Network, check_network

NetworkOption = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="MBIT[,MS]",
        help="What answers travel over, from the server to the client: megabits a second and milliseconds there and back, "
        f"{DEFAULT.megabits:g},{DEFAULT.latency_ms:g} unless given. In modes sealed and sealed-query rows are packed for it: "
        "for a slow line the server works longer on a shorter answer.",
    ),
]


def network_named(given: str | None) -> Network | None:
    """What --network says; None where nothing was. Raises InvalidInput."""
    if given is None:
        return None
    try:
        megabits, latency = (float(part) for part in (*given.split(","), str(DEFAULT.latency_ms))[:2])
        if given.count(",") > 1:
            raise ValueError
    except ValueError as error:
        raise InvalidInput(
            f"--network takes megabits a second, and milliseconds there and back after a comma: 100 or 20,40; got {given!r}."
        ) from error
    return check_network(Network(megabits, latency))


def network_words(network: Network) -> str:
    """As people read it."""
    return f"{network.megabits:g} Mbit/s, {network.latency_ms:g} ms there and back"
