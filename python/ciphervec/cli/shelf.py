"""Commands `list`, `drop`, `optimize`, `snapshot` and `restore`, on the collections of a folder or server."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..errors import InvalidInput
from ..ingest.counts import several
from .collections import Name
from .network import NetworkOption, network_named
from .place import ANYWHERE, Access, Place, opened
from .terminal import NO_KEYS, Json, KeyOptions, command, print_json, progress, say_next, screen

Copies = Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of copies.")]


@command
def list_(
    place: Place,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """The names of the collections in a folder or on a server, a line each. Needs no key.

    **Examples**

    - `ciphervec list db`
    - `ciphervec list https://vectors.example --token-file read.token --json`
    """
    with opened(place, None, access, read_only=True) as client:
        names = client.list_collections()
    if as_json:
        print_json(names)
        return
    for name in names:
        screen.print(name, markup=False, highlight=False)


@command
def drop(
    place: Place,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without confirmation.")] = False,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Delete a collection and everything in it. Needs no key; on a server the permission admin.

    **Examples**

    - `ciphervec drop db docs`
    - `ciphervec drop db docs --yes`
    """
    if not yes and not sys.stdin.isatty():
        raise InvalidInput("there is no terminal to confirm at. Pass --yes to delete it.")
    if not yes and not typer.confirm(f"Delete {name} in {place}, and everything in it?", err=True):
        raise InvalidInput(f"{name} stays as it is.")
    with opened(place, None, access) as client:
        client.delete_collection(name)
    if as_json:
        print_json({"dropped": name})
        return
    screen.print(f"{name} is gone from {place}", highlight=False)


@command
def optimize(
    place: Place,
    name: Name,
    holder: KeyOptions = NO_KEYS,
    reseal: Annotated[bool, typer.Option("--reseal", help="Seal every row again, with new noise.")] = False,
    network: NetworkOption = None,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Merge small segments, adopt writers' rows, and take what was deleted off the disk.

    Rows that were packed for fewer rows than there are by now, or for another network than `--network` says, are packed anew;
    on a server another network takes the permission admin. `ciphervec info` says which one it is.

    **Examples**

    - `ciphervec optimize db docs --keys my.key`
    - `ciphervec optimize db docs --network 50,30 --keys my.key`
    """
    over = network_named(network)
    with opened(place, holder.person_or_keys(), access) as client:
        collection = client.get_collection(name)
        before = collection.info()
        with progress(f"merging {name}", before["count"], quiet=as_json) as step:
            collection.optimize(reseal=reseal, network=over, progress=step)
        after = collection.info()
    if as_json:
        print_json(
            {
                part: {"before": before[part], "after": after[part]}
                for part in ("segments", "bytes_total", "packing")
            }
        )
        return
    screen.print(
        f"{name}: {several(before['segments'], 'segment')}, now {after['segments']:,}; {before['bytes_total']:,} bytes, now "
        f"{after['bytes_total']:,}",
        highlight=False,
    )


@command
def snapshot(
    place: Place,
    name: Name,
    folder: Copies,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Copy one state of a collection into a folder, sealed as it is, while others work on it.

    Every block is checked. Needs no key; from a server the permission read.

    **Examples**

    - `ciphervec snapshot db docs backup-monday`
    - `ciphervec snapshot https://vectors.example docs backup --token-file read.token`
    """
    with (
        opened(place, None, access, read_only=True) as client,
        progress(f"copying {name}", 1, quiet=as_json) as step,
    ):
        rows = client.snapshot(name, folder, progress=step)
    if as_json:
        print_json({"copied": name, "rows": rows, "folder": folder})
        return
    screen.print(f"{name}: {several(rows, 'row')} copied to {folder}", highlight=False)
    say_next(f"ciphervec verify {folder} {name}")


@command
def restore(
    place: Place,
    name: Name,
    folder: Copies,
    holder: KeyOptions = NO_KEYS,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Take a collection back from a copy that `ciphervec snapshot` made.

    It is its owner who does: what came after the copy is lost. One that is still there is in the way.

    **Examples**

    - `ciphervec restore db docs backup-monday --keys my.key`
    """
    with (
        opened(place, holder.person_or_keys(), access, make=True) as client,
        progress(f"restoring {name}", 1, quiet=as_json) as step,
    ):
        count = client.restore(name, folder, progress=step).count()
    if as_json:
        print_json({"restored": name, "count": count})
        return
    screen.print(f"{name}: {several(count, 'row')} restored to {place}", highlight=False)
