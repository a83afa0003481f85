"""Commands `members`, for owners of a collection: who may do what with it, each change signed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.text import Text

from ..collections.keys import Identity
from ..collections.members import Member, Role
from ..errors import InvalidInput
from ..ingest.counts import several
from ..ingest.files import read_file
from .place import ANYWHERE, Access, Place, opened
from .tables import grid
from .terminal import (
    NO_KEYS,
    Json,
    KeyOptions,
    command,
    existing,
    load_holder,
    print_json,
    say_next,
    screen,
)

members_app = typer.Typer(
    no_args_is_help=True, help="Share a collection with people, who sign what they commit."
)

Name = Annotated[str, typer.Argument(help="The collection's name.")]
Who = Annotated[str, typer.Argument(help="The member's name or fingerprint.")]
AsRole = Annotated[str, typer.Option("--role", help="owner, member (reads and writes) or reader.")]


@members_app.command()
@command
def found(
    place: Place,
    name: Name,
    pair: Annotated[Path, typer.Option(help="Your pair, which `keys pair` made: you are the first owner.")],
    holder: KeyOptions = NO_KEYS,
    pair_passphrase_file: Annotated[
        Path | None, typer.Option(help="The pair's passphrase, if it is another one than the keys'.")
    ] = None,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Begin the list of a collection that was made with keys. From then on `--keys` is your pair.

    **Examples**

    - `ciphervec members found db faces --keys my.key --pair alice.key`
    """
    passphrase_file = pair_passphrase_file or holder.passphrase_file
    person = load_holder(str(existing(pair, "pair")), passphrase_file)
    if not isinstance(person, Identity):
        raise InvalidInput(f"{pair} holds keys; --pair is a file that ciphervec keys pair made.")
    with opened(place, holder.person_or_keys(), access) as client:
        collection = client.get_collection(name)
        collection.members.found(person)
        _show(collection.members.list(), as_json)
    if not as_json:
        say_next(f"ciphervec members add {place} {name} bob.card --keys {pair}")


@members_app.command()
@command
def add(
    place: Place,
    name: Name,
    card: Annotated[Path, typer.Argument(help="The card that `keys member-card` wrote.")],
    role: AsRole = "member",
    holder: KeyOptions = NO_KEYS,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Add the holder of a card, or give them another role. Compare the fingerprint with its holder first.

    **Examples**

    - `ciphervec members add db faces bob.card --keys alice.key`
    - `ciphervec members add https://vectors.example faces carl.card --role reader --keys alice.key --token-file token`
    """
    with opened(place, holder.person_or_keys(), access) as client:
        read = read_file(existing(card, "card"))
        _show([client.get_collection(name).members.add(read, cast("Role", role))], as_json)


@members_app.command()
@command
def appoint(
    place: Place,
    name: Name,
    who: Who,
    role: AsRole,
    holder: KeyOptions = NO_KEYS,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Give a member another role.

    **Examples**

    - `ciphervec members appoint db faces carl --role member --keys alice.key`
    """
    with opened(place, holder.person_or_keys(), access) as client:
        _show([client.get_collection(name).members.appoint(who, cast("Role", role))], as_json)


@members_app.command()
@command
def remove(
    place: Place,
    name: Name,
    who: Who,
    reseal: Annotated[
        bool, typer.Option("--reseal", help="Seal what is there again under the new keys, too.")
    ] = False,
    holder: KeyOptions = NO_KEYS,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Remove a member. Nothing that is sealed from then on opens for them; what is older does until it is sealed again.

    **Examples**

    - `ciphervec members remove db faces bob --keys alice.key`
    - `ciphervec members remove db faces bob --reseal --keys alice.key`
    """
    with opened(place, holder.person_or_keys(), access) as client:
        members = client.get_collection(name).members
        members.remove(who)
        if reseal:
            members.reseal()
        _show(members.list(), as_json)
    if not as_json and not reseal:
        say_next(f"ciphervec members reseal {place} {name}")


@members_app.command()
@command
def reseal(
    place: Place,
    name: Name,
    holder: KeyOptions = NO_KEYS,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Seal what is still under the keys before a removal again.

    **Examples**

    - `ciphervec members reseal db faces --keys alice.key`
    """
    with opened(place, holder.person_or_keys(), access) as client:
        collection = client.get_collection(name)
        collection.members.reseal()
        key_id = collection.info()["key_id"]
    if as_json:
        print_json({"key_id": key_id})
        return
    screen.print(f"all of {name} is under key [bold]{key_id}[/]", highlight=False)


@members_app.command("list")
@command
def list_(
    place: Place,
    name: Name,
    history: Annotated[bool, typer.Option("--history", help="Every change of the list instead.")] = False,
    holder: KeyOptions = NO_KEYS,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """List who may do what with a collection, or every change of that.

    **Examples**

    - `ciphervec members list db faces --keys alice.key`
    - `ciphervec members list db faces --history --keys alice.key`
    """
    with opened(place, holder.person_or_keys(), access, read_only=True) as client:
        collection = client.get_collection(name)
        if not history:
            _show(collection.members.list(), as_json)
            return
        changes = collection.members.changes()
    if as_json:
        print_json([one._asdict() for one in changes])
        return
    for one in changes:
        whom = "the keys" if one.who is None else one.who
        role = "" if one.role is None else f" as {one.role}"
        # Names are their holders' words, and no markup.
        said = Text.assemble((_when(one.time), "dim"), f" {one.by} {one.what} {whom}{role}")
        screen.print(said, highlight=False)


def _when(seconds: int) -> str:
    """By an owner's word, who could have written any number."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat(" ", "minutes")
    except (OverflowError, OSError, ValueError):
        return f"at second {seconds}"


def _show(rows: Sequence[Member], as_json: bool) -> None:
    if as_json:
        print_json([one._asdict() for one in rows])
        return
    lines = [[one.name, one.role, one.fingerprint] for one in rows]
    grid(screen, several(len(rows), "member"), ["", "role", "fingerprint"], lines, left=3)


__all__ = ["members_app"]
