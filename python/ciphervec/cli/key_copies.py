"""Commands `keys phrase`, `restore`, `derive`, `pair`, `share`, `recipients` and `open`, for a key's owner: copies of a
key as words on paper, or as a file that several people decrypt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .._native import Recipient, SharedKeys
from ..collections.keys import Identity, Keys
from ..errors import InvalidInput, WrongKey
from ..ingest.files import read_file, write_file
from .key_upkeep import keys_app
from .terminal import (
    Json,
    PassphraseFile,
    WrappedBy,
    aside,
    command,
    existing,
    load_holder,
    load_keys,
    passphrase,
    print_json,
    screen,
)

KeyPath = Annotated[
    str, typer.Argument(metavar="KEY", help="The key file that `ciphervec keygen` or `keys wrap` made.")
]
NewKey = Annotated[Path, typer.Argument(metavar="KEY", help="The key file to write; none may be there.")]
NoPassphrase = Annotated[
    bool,
    typer.Option("--no-passphrase", help="Leave it in clear, for a disk or mount that is itself protected."),
]
KeyId = Annotated[
    str | None, typer.Option("--key-id", help="Refuse another key than this one, whose id was noted.")
]


@keys_app.command("phrase")
@command
def show_phrase(
    path: KeyPath, key_id: KeyId = None, passphrase_file: PassphraseFile = None, as_json: Json = False
) -> None:
    """Show a key as 24 words, to write on paper: a copy that needs no disk.

    Anyone who reads them has the key; the passphrase does not protect them. They are BIP-39's, and are
    printed on standard output alone.

    **Examples**

    - `ciphervec keys phrase my.key`
    """
    keys = load_there(path, passphrase_file, key_id)
    words = keys.recovery_phrase()
    if as_json:
        print_json({"key_id": keys.key_id, "phrase": words})
        return
    aside.print(f"key {keys.key_id}; write down its id too. These words are the key:", highlight=False)
    numbered = [f"{number:2}. {word:<10}" for number, word in enumerate(words.split(), 1)]
    for start in range(0, len(numbered), 4):
        sys.stdout.write("".join(numbered[start : start + 4]).rstrip() + "\n")
    aside.print(
        "next: check what you wrote with ciphervec keys restore, into another file; then clear the screen",
        style="dim",
        highlight=False,
    )


@keys_app.command()
@command
def restore(
    path: NewKey,
    key_id: KeyId = None,
    phrase_file: Annotated[
        Path | None,
        typer.Option(
            help="Read the words from this file, or from standard input if it is -. Else the command prompts for them."
        ),
    ] = None,
    passphrase_file: PassphraseFile = None,
    no_passphrase: NoPassphrase = False,
    by: WrappedBy = None,
    as_json: Json = False,
) -> None:
    """Make a key file from its 24 words. They are typed unseen, and never stand in the command.

    **Examples**

    - `ciphervec keys restore my.key`
    - `ciphervec keys restore my.key --key-id 0123456789abcdef --phrase-file words.txt`
    """
    expect_new(path)
    keys = Keys.from_recovery_phrase(_words(phrase_file), key_id=key_id)
    save_new(keys, path, passphrase_file, no_passphrase, by)
    if as_json:
        print_json({"path": str(path), "key_id": keys.key_id, "protected": not no_passphrase})
        return
    screen.print(f"key [bold]{keys.key_id}[/] written to {path}, readable by you alone", highlight=False)
    if key_id is None:
        ask_for_id("a word is wrong")


@keys_app.command()
@command
def derive(
    path: KeyPath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The key file to write; none may be there.")],
    tenant: Annotated[str | None, typer.Option(help="The tenant whose key it is to be.")] = None,
    collection: Annotated[str | None, typer.Option(help="The collection that it is to decrypt.")] = None,
    key_id: KeyId = None,
    passphrase_file: PassphraseFile = None,
    no_passphrase: NoPassphrase = False,
    by: WrappedBy = None,
    as_json: Json = False,
) -> None:
    """Derive the key of a tenant or of one collection, to hand out alone.

    It decrypts what is sealed under it and nothing else, and follows from KEY and the name: the same
    command makes it again. With both names it is that of the tenant's collection.

    **Examples**

    - `ciphervec keys derive my.key acme.key --tenant acme`
    - `ciphervec keys derive my.key books.key --collection books`
    """
    if tenant is None and collection is None:
        raise InvalidInput("a derived key has a name: give --tenant, --collection or both.")
    expect_new(out)
    keys = load_there(path, passphrase_file, key_id)
    keys = keys if tenant is None else keys.for_tenant(tenant)
    keys = keys if collection is None else keys.for_collection(collection)
    save_new(keys, out, passphrase_file, no_passphrase, by)
    if as_json:
        print_json({"path": str(out), "key_id": keys.key_id, "protected": not no_passphrase})
        return
    screen.print(f"key [bold]{keys.key_id}[/] written to {out}, readable by you alone", highlight=False)


@keys_app.command("pair")
@command
def make_pair(
    path: Annotated[Path, typer.Argument(help="Where to write the pair; none may be there.")],
    name: Annotated[str, typer.Option(help="Whose it is: those who share see the name.")],
    public: Annotated[
        Path | None,
        typer.Option(help="Where to write the public half; beside the pair, ending in .pub, if left out."),
    ] = None,
    passphrase_file: PassphraseFile = None,
    no_passphrase: NoPassphrase = False,
    as_json: Json = False,
) -> None:
    """Make a person's pair, to which others can share keys with `keys share`.

    **Examples**

    - `ciphervec keys pair alice.key --name alice`  writes alice.pub too
    """
    shown = path.with_suffix(".pub") if public is None else public
    expect_new(path, shown)
    identity = Identity.generate(name)
    if no_passphrase:
        identity.save(path, allow_plaintext=True)
    else:
        identity.save(path, passphrase(passphrase_file, "New passphrase", confirm=True))
    write_file(shown, identity.recipient.to_bytes())
    fingerprint = identity.recipient.fingerprint
    if as_json:
        print_json({"path": str(path), "public": str(shown), "name": name, "fingerprint": fingerprint})
        return
    screen.print(f"pair of {name} written to {path}; {shown} is for who shares", highlight=False)
    screen.print(f"fingerprint [bold]{fingerprint}[/]: tell it by another way than the file", highlight=False)


@keys_app.command("member-card")
@command
def member_card(
    path: Annotated[Path, typer.Argument(help="Your pair, which `keys pair` made.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The card to write, for owners of collections.")],
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Write the card by which an owner makes you a member of a collection with `members add`. It is public.

    **Examples**

    - `ciphervec keys member-card alice.key --out alice.card`
    """
    expect_new(out)
    person = load_holder(str(existing(path, "pair")), passphrase_file)
    if not isinstance(person, Identity):
        raise InvalidInput(
            f"{path} holds keys, and a card is a person's: make a pair with ciphervec keys pair."
        )
    card = person.member_card
    write_file(out, card.to_bytes())
    if as_json:
        print_json({"path": str(out), "name": card.name, "fingerprint": card.fingerprint})
        return
    screen.print(f"card of {card.name} written to {out}", highlight=False)
    screen.print(
        f"fingerprint [bold]{card.fingerprint}[/]: tell it by another way than the file", highlight=False
    )


@keys_app.command()
@command
def share(
    path: KeyPath,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file to write, which may be stored anywhere.")
    ],
    to: Annotated[
        list[Path],
        typer.Option("--to", help="A public key that `keys pair` wrote; give one for each person."),
    ],
    key_id: KeyId = None,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Seal a key to several people: each decrypts the file with their own pair.

    Compare the fingerprints with their holders first. To take the key back from somebody, make a
    new one, `keys rotate` to it, and share that one.

    **Examples**

    - `ciphervec keys share my.key --to alice.pub --to bob.pub --out team.shared`
    """
    expect_new(out)
    recipients = [Recipient.from_bytes(read_file(existing(one, "public key"))) for one in to]
    keys = load_there(path, passphrase_file, key_id)
    shared = keys.share(recipients)
    write_file(out, shared.to_bytes())
    _list(shared, str(out), as_json)


@keys_app.command()
@command
def recipients(
    path: Annotated[Path, typer.Argument(help="A file that `keys share` wrote.")], as_json: Json = False
) -> None:
    """List who can decrypt a file of shared keys, by its own word; `keys open` makes sure of it.

    **Examples**

    - `ciphervec keys recipients team.shared`
    """
    _list(SharedKeys.from_bytes(read_file(existing(path, "file of shared keys"))), str(path), as_json)


@keys_app.command("open")
@command
def open_shared(
    shared: Annotated[Path, typer.Argument(help="A file that `keys share` wrote.")],
    path: NewKey,
    pair: Annotated[Path, typer.Option(help="Your pair, which `keys pair` made.")],
    key_id: KeyId = None,
    passphrase_file: PassphraseFile = None,
    new_passphrase_file: Annotated[
        Path | None, typer.Option(help="The new key file's passphrase, if it is another one than the pair's.")
    ] = None,
    no_passphrase: NoPassphrase = False,
    by: WrappedBy = None,
    as_json: Json = False,
) -> None:
    """Write the keys that somebody shared with you to a key file, under a passphrase of yours.

    Give the id of the key, told by another way: the file alone does not say that it is the key of
    your collections.

    **Examples**

    - `ciphervec keys open team.shared my.key --pair alice.key --key-id 0123456789abcdef`
    """
    expect_new(path)
    data = read_file(existing(shared, "file of shared keys"))
    keys = Keys.open_shared(data, _identity(pair, passphrase_file), key_id=key_id)
    save_new(keys, path, new_passphrase_file or passphrase_file, no_passphrase, by)
    if as_json:
        print_json({"path": str(path), "key_id": keys.key_id, "protected": not no_passphrase})
        return
    screen.print(f"key [bold]{keys.key_id}[/] written to {path}, readable by you alone", highlight=False)


def _list(shared: SharedKeys, path: str, as_json: bool) -> None:
    people = [{"name": name, "fingerprint": fingerprint} for name, fingerprint in shared.recipients]
    if as_json:
        print_json({"path": path, "key_id": shared.key_id, "recipients": people})
        return
    screen.print(f"{path}: key [bold]{shared.key_id}[/], sealed to", highlight=False)
    for person in people:
        screen.print(f"  {person['fingerprint']}  {person['name']}", highlight=False, markup=False)


def expect_new(*paths: Path) -> None:
    """Raises FileExistsError for one that is there."""
    for path in paths:
        if path.exists():
            raise FileExistsError(f"{path} is there already, and is not overwritten. Choose another name.")


def load_there(source: str, passphrase_file: Path | None, key_id: str | None) -> Keys:
    """The keys of a file that must be named."""
    keys = load_keys(source, passphrase_file, key_id)
    if keys is None:
        raise InvalidInput(f"{source} holds no keys.")
    return keys


def _identity(path: Path, passphrase_file: Path | None) -> Identity:
    existing(path, "pair")
    try:
        # A file saved in clear opens without; trying first means that nobody is asked in vain.
        return Identity.load(path)
    except (InvalidInput, WrongKey):
        return Identity.load(path, passphrase(passphrase_file, f"Passphrase of {path}"))


def save_new(
    keys: Keys, path: Path, passphrase_file: Path | None, no_passphrase: bool, by: str | None = None
) -> None:
    """Write a key file wrapped by a service, in clear, where either was asked for, or else under a passphrase."""
    if by is not None or no_passphrase:
        keys.save(path, wrapped_by=by, allow_plaintext=no_passphrase)
    else:
        keys.save(path, passphrase(passphrase_file, "New passphrase", confirm=True))


def ask_for_id(else_: str) -> None:
    """For who named no id: nothing else tells that it is the key of their collections."""
    screen.print(
        f"is that the id you noted, or the one that ciphervec info shows? If not, {else_}",
        style="dim",
        highlight=False,
    )


def _words(file: Path | None) -> str:
    """From a file, standard input, or the keyboard; never from an argument, which others can see."""
    if file is not None:
        return (
            sys.stdin.read()
            if str(file) == "-"
            else read_file(existing(file, "file")).decode(errors="replace")
        )
    if not sys.stdin.isatty():
        raise InvalidInput(
            "the words are needed and there is no keyboard to ask at. Give --phrase-file, - for standard input."
        )
    typed: str = typer.prompt("The 24 words, unseen", hide_input=True, err=True)
    return typed


__all__ = [
    "KeyId",
    "KeyPath",
    "NewKey",
    "NoPassphrase",
    "ask_for_id",
    "expect_new",
    "keys_app",
    "load_there",
    "save_new",
]
