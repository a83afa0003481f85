"""Commands `keys rotate` and `shred`, for a key's owner: a collection under new keys, and a key file destroyed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..collections.collection import Collection
from ..collections.keys import Keys, shred
from ..errors import InvalidInput, WrongKey
from ..ingest.counts import several
from .place import ANYWHERE, Access, Place, opened
from .terminal import NO_KEYS, Json, KeyOptions, command, existing, load_keys, print_json, progress, screen

Name = Annotated[str, typer.Argument(help="The collection's name.")]

keys_app = typer.Typer(no_args_is_help=True, help="Copy, wrap, split, change and destroy keys.")


@keys_app.command()
@command
def rotate(
    place: Place,
    name: Name,
    new_keys: Annotated[
        str, typer.Option(metavar="FILE", help="The key file of the new keys; make it with keygen.")
    ],
    new_key_id: Annotated[
        str | None, typer.Option(help="Refuse other new keys than those of this id, which keygen showed.")
    ] = None,
    holder: KeyOptions = NO_KEYS,
    new_passphrase_file: Annotated[
        Path | None, typer.Option(help="The new key file's passphrase, if it is another one.")
    ] = None,
    overlap: Annotated[
        bool,
        typer.Option("--overlap", help="Let the old keys work until the end. Not if others may know them."),
    ] = False,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Seal a collection again under new keys. Interrupted, the same command goes on where it
    stopped.

    **Examples**

    - `ciphervec keys rotate db faces --keys old.key --new-keys new.key`
    - `ciphervec keys rotate https://vectors.example faces --keys old.key --new-keys new.key --token-file token`
    """
    following = load_keys(new_keys, new_passphrase_file or holder.passphrase_file, new_key_id)
    if following is None:
        raise InvalidInput("--new-keys names no key file.")
    held = holder.load()
    with _opened(place, name, [one for one in (held, following) if one is not None], access) as collection:
        with progress(f"sealing {name} again", collection.count(), quiet=as_json) as step:
            collection.rotate_keys(following, overlap=overlap, progress=step)
        info = collection.info()
    if as_json:
        print_json({"name": name, "key_id": info["key_id"], "count": info["count"]})
        return
    screen.print(
        f"{name}: under key [bold]{info['key_id']}[/] now, {several(info['count'], 'row')}", highlight=False
    )
    screen.print(
        "the old key decrypts backups from before; writers need new cards", style="dim", highlight=False
    )


@keys_app.command("shred")
@command
def shred_file(
    path: Annotated[Path, typer.Argument(help="The key file to destroy.")],
    confirm: Annotated[
        str | None, typer.Option(help="The key's id, typed out, as `keys shred` without it shows it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Destroy a key file: overwritten, then removed. What is sealed under it is lost for good,
    unless there is a copy.

    **Examples**

    - `ciphervec keys shred old.key`  shows the key's id and stops
    - `ciphervec keys shred old.key --confirm 0123456789abcdef`
    """
    gone = shred(existing(path, "key file"), confirm)
    if as_json:
        print_json({"path": str(path), "key_id": gone})
        return
    screen.print(f"the file of key {gone} is gone from {path}", highlight=False)
    screen.print(
        "copies of it elsewhere still decrypt everything: backups, other disks, an SSD's spare blocks",
        style="dim",
        highlight=False,
    )


@contextlib.contextmanager
def _opened(place: str, name: str, keys: Sequence[Keys], access: Access) -> Iterator[Collection]:
    """The collection, under the first of the keys that opens it: the new ones do once the first commit was made."""
    for number, one in enumerate(keys, 1):
        with opened(place, one, access) as client:
            try:
                collection = client.get_collection(name)
            except WrongKey:
                if number == len(keys):
                    raise
                continue
            yield collection
            return


__all__ = ["keys_app"]
