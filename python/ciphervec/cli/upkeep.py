"""Commands `info` and `verify`, for the keeper of a folder or server: what it holds, and whether it is sound. No
key."""

from __future__ import annotations

import base64
import json
from typing import Annotated, Any

import typer

from .._native import IndexSpec
from ..collections.batch import ORIGINALS, RECORDS, ROWS, SIDECAR, TAGS
from ..collections.client import Client
from ..errors import CollectionNotFound, CorruptData, InvalidInput
from ..ingest.counts import several
from ..ingest.network import Network
from .network import NetworkOption, network_named, network_words
from .place import ANYWHERE, Access, Place, opened, stored
from .tables import grid
from .terminal import (
    ExitCode,
    ExpectedKey,
    Json,
    PassphraseFile,
    command,
    load_holder,
    print_json,
    progress,
    say_next,
    screen,
    size,
)

# Not from the environment: without being asked, what needs no key must not ask for a passphrase.
OwnersKeys = Annotated[
    str | None,
    typer.Option(
        "--keys", "-k", metavar="FILE", help="The owner's key file, to see how rows are packed as well."
    ),
]
OneName = Annotated[str | None, typer.Argument(help="One collection; all of them if left out.")]


@command
def info(
    place: Place,
    name: OneName = None,
    access: Access = ANYWHERE,
    keys: OwnersKeys = None,
    key_id: ExpectedKey = None,
    passphrase_file: PassphraseFile = None,
    network: NetworkOption = None,
    as_json: Json = False,
) -> None:
    """Show what a folder or server holds, as the server sees it: no key is needed.

    With `--keys` it also says how the rows of one collection in mode sealed or sealed-query are packed and what an answer takes
    over the network that they are packed for, or over another with `--network`; `ciphervec optimize --network` packs them for
    that one.

    **Examples**

    - `ciphervec info db`
    - `ciphervec info db faces --json`
    - `ciphervec info db faces --keys my.key --network 50,30`
    - `ciphervec info https://vectors.example --token-file read.token`
    """
    over = network_named(network)
    if (over is not None or keys is not None) and (name is None or keys is None):
        raise InvalidInput(
            "only a collection's owner can see how its rows are packed: name one collection, and pass --keys."
        )
    with stored(place, access) as client:
        rows = [describe(one, client) for one in _names(client, name)]
    if name is not None and keys is not None:
        with opened(place, load_holder(keys, passphrase_file, key_id), access, read_only=True) as client:
            rows[0]["packing"] = client.get_collection(name).info(over)["packing"]
    if as_json:
        print_json(rows if name is None else rows[0])
        return
    if not rows:
        screen.print(f"{place} holds no collection", highlight=False)
        say_next(f"ciphervec create {place} items --dim 512 --keys my.key")
        return
    if name is not None:
        for what, says in flat(rows[0]):
            screen.print(f"[dim]{what:27}[/] {says}", highlight=False, soft_wrap=True)
        return
    lines = []
    for row in rows:
        mode = row["mode"] if row["precision"] == "standard" else f"{row['mode']} {row['precision']}"
        mode += "" if row["scheme"] == "lattice" else f" {row['scheme']}"
        shape = f"{row['rows']:,} × {row['dimension']}"
        lines.append(
            [row["name"], mode, row["metric"], shape, size(sum(row["bytes"].values())), row["key_id"]]
        )
    grid(screen, place, ["", "mode", "metric", "vectors", "on disk", "key"], lines, left=3)


def flat(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and value of everything in a description, sizes in words."""
    found: list[tuple[str, str]] = []
    for what, says in row.items():
        if what == "bytes":
            found += [(f"{part} on disk", size(count)) for part, count in says.items()]
        elif what == "packing" and says is not None:
            network = Network(**says["network"])
            rows = ", ".join(f"{count:,} at level {level}" for level, count in says["rows_by_level"].items())
            found += [
                (
                    "packed for",
                    f"{network_words(network)}: level {says['level']}; rows are {rows or 'still to come'}",
                ),
                (
                    "an answer",
                    f"{size(says['answer_bytes'])}, {1e3 * says['answer_seconds']:,.0f} ms over that network",
                ),
            ]
        elif what == "security":
            found += [(f"security, {part.replace('_', ' ')}", str(value)) for part, value in says.items()]
        elif says is not None:
            found.append((what.replace("_", " "), f"{says:,}" if isinstance(says, int) else str(says)))
    return found


@command
def verify(
    place: Place,
    name: OneName = None,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Read every stored block and check it. Needs no key; ends with code 6 if one is damaged.

    A server does it itself, for a token with the permission admin.

    **Examples**

    - `ciphervec verify db`
    - `ciphervec verify db faces --json`
    - `ciphervec verify https://vectors.example faces --token-file admin.token`
    """
    with stored(place, access) as client:
        reports = [check(one, client, quiet=as_json) for one in _names(client, name)]
    if as_json:
        print_json(reports)
    for report in () if as_json else reports:
        verdict = "[green]sound[/]" if report["sound"] else "[bold red]damaged[/]"
        screen.print(f"{report['name']}: {verdict}, {_counts(report)}", highlight=False)
        for problem in report["problems"]:
            screen.print(f"  {problem}", highlight=False, soft_wrap=True)
    if not all(report["sound"] for report in reports):
        raise typer.Exit(int(ExitCode.CORRUPT))


def check(name: str, client: Client, *, quiet: bool) -> dict[str, Any]:
    """Every damaged block of a collection; a manifest that does not open is one too."""
    report: dict[str, Any] = {"name": name, "sound": True, "problems": []}
    try:
        with progress(f"checking {name}", 1, quiet=quiet) as step:
            report.update(client._check(name, progress=step))
    except CorruptData as error:
        report.update(sound=False, problems=str(error).splitlines())
    return report


def describe(name: str, client: Client) -> dict[str, Any]:
    """A collection from its stored bytes alone."""
    look = client._look(name)
    try:
        content = json.loads(look.meta)
        spec = IndexSpec.from_bytes(base64.b64decode(content["spec"], validate=True))
        key_id, epoch = content["key_id"], content["epoch"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptData(
            f"the description of collection {name!r} does not parse ({error}); restore a copy."
        ) from error
    return {
        "name": name,
        "dimension": spec.dimension,
        "metric": spec.metric,
        "mode": spec.mode,
        "precision": spec.precision,
        "scheme": spec.scheme,
        "bits": spec.bits,
        "key_id": key_id,
        "epoch": epoch,
        "rows": sum(rows - deleted for _, rows, deleted, _ in look.segments),
        "deleted": sum(deleted for _, _, deleted, _ in look.segments),
        "segments": len(look.segments),
        "bytes": {
            part: sum(blobs.get(part, 0) for _, _, _, blobs in look.segments)
            for part in (ROWS, SIDECAR, RECORDS, ORIGINALS, TAGS)
        },
        "security": spec.security(),
    }


def _names(client: Client, name: str | None) -> list[str]:
    names = client.list_collections()
    if name is None:
        return names
    if name not in names:
        raise CollectionNotFound(f"no collection {name!r} here; there are: {', '.join(names) or 'none'}.")
    return [name]


def _counts(report: dict[str, Any]) -> str:
    parts = [several(value, key.removesuffix("s")) for key, value in report.items() if type(value) is int]
    return ", ".join([*parts, several(len(report["problems"]), "problem")])
