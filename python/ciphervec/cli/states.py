"""Commands `upgrade`, `accept-restore` and `checkpoint`, on the states of a collection. The key owner's side."""

from __future__ import annotations

from typing import Annotated

import typer

from ..collections.collection import Collection
from ..http.address import is_url
from ..ingest.counts import several
from .place import ANYWHERE, Access, Place, opened
from .terminal import NO_KEYS, Json, KeyOptions, command, print_json, screen

Name = Annotated[str, typer.Argument(help="The collection's name.")]


@command
def upgrade(
    place: Place,
    name: Name,
    holder: KeyOptions = NO_KEYS,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Authenticate a collection of release 0.1, from its present state on. Release 0.1 can't open
    it afterwards.

    **Examples**

    - `ciphervec upgrade db faces --keys my.key`
    """
    with opened(place, holder.person_or_keys(), access) as client:
        collection = client.get_collection(name)
        done = collection.upgrade()
        _show(collection, "is authenticated from here on" if done else "was authenticated already", as_json)


@command
def accept_restore(
    place: Place,
    name: Name,
    holder: KeyOptions = NO_KEYS,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Go on from an older state of a collection, put back from a copy on purpose.

    Clients that saw what is lost are told so, and follow with `client.forget(name)`.

    **Examples**

    - `ciphervec accept-restore db faces --keys my.key`
    - `ciphervec accept-restore https://vectors.example faces --keys my.key --token-file owner.token`
    """
    with opened(place, holder.person_or_keys(), access) as client:
        _show(client.accept_restore(name), "goes on from the state that was restored", as_json)


@command
def checkpoint(
    place: Place,
    name: Name,
    expect: Annotated[
        str | None, typer.Option(help="A checkpoint that somebody else sees, to be found in this history.")
    ] = None,
    holder: KeyOptions = NO_KEYS,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Print 24 characters that two people compare, to know that they are shown one history.

    With `--expect` it is an error if the history does not have that checkpoint: the present state, or
    one of the 256 before it.

    **Examples**

    - `ciphervec checkpoint https://vectors.example faces --keys my.key`
    - `ciphervec checkpoint db faces --keys my.key --expect 0000-0005-...`
    """
    with opened(place, holder.person_or_keys(), access, read_only=not is_url(place)) as client:
        collection = client.get_collection(name, expect=expect)
        present = collection.checkpoint()
        if as_json:
            print_json({"name": name, "checkpoint": present, "expected": expect})
        else:
            screen.print(present, highlight=False)


def _show(collection: Collection, says: str, as_json: bool) -> None:
    info = collection.info()
    if as_json:
        print_json({"name": info["name"], "count": info["count"], "state": info["state"]})
        return
    screen.print(
        f"{info['name']}: {several(info['count'], 'row')}; it {says}, state {info['state']['sequence']}",
        highlight=False,
    )
