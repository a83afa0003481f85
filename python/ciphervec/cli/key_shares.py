"""Commands `keys split` and `keys combine`, for owners whose key several people give back together. Nobody of them has it
alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..collections.keys import Keys
from .key_copies import KeyId, KeyPath, NoPassphrase, ask_for_id, expect_new, load_there, save_new
from .key_wrapping import keys_app
from .terminal import Json, PassphraseFile, WrappedBy, command, existing, key_file, print_json, screen


@keys_app.command()
@command
def split(
    source: KeyPath,
    need: Annotated[int, typer.Option(help="How many shares are to give the key back, 2 or more.")],
    of: Annotated[int, typer.Option("--of", help="How many shares to make, 255 at most.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The folder to write them into, which must be there; else the key's."
        ),
    ] = None,
    key_id: KeyId = None,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Split a key into shares, a file each: some of them together are the key, fewer tell nothing.

    Give each to another person. A share is not under a passphrase: keep it as you would the key.

    **Examples**

    - `ciphervec keys split my.key --need 2 --of 3`  writes my.share-1, my.share-2 and my.share-3
    """
    path = key_file(source)[0]
    folder = path.parent if out is None else out
    existing(folder, "folder")
    files = [folder / f"{path.stem}.share-{number}" for number in range(1, of + 1)]
    expect_new(*files)
    shares = load_there(source, passphrase_file, key_id).split(need, of)
    for file, share in zip(files, shares, strict=True):
        share.save(str(file))
    made, held = shares[0].split, shares[0].key_id
    if as_json:
        print_json({"key_id": held, "split": made, "need": need, "shares": [str(one) for one in files]})
        return
    _say(f"key {held} split into {of} shares, of which {need} give it back; the split is {made}")
    for file in files:
        _say(f"  {file}")
    _say("next: try them with ciphervec keys combine, then give each to another person", "dim")


@keys_app.command()
@command
def combine(
    shares: Annotated[list[Path], typer.Argument(metavar="SHARE...", help="Files that `keys split` wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The key file to write; none may be there.")],
    key_id: KeyId = None,
    passphrase_file: PassphraseFile = None,
    no_passphrase: NoPassphrase = False,
    by: WrappedBy = None,
    as_json: Json = False,
) -> None:
    """Give a key back from its shares. One that was changed, or is of another split, is named.

    **Examples**

    - `ciphervec keys combine my.share-1 my.share-3 --out my.key`
    """
    expect_new(out)
    keys = Keys.combine((existing(one, "share") for one in shares), key_id=key_id)
    save_new(keys, out, passphrase_file, no_passphrase, by)
    if as_json:
        print_json({"path": str(out), "key_id": keys.key_id, "protected": not no_passphrase})
        return
    _say(f"key {keys.key_id} written to {out}, readable by you alone")
    if key_id is None:
        ask_for_id("these are shares of another key")


def _say(line: str, style: str = "") -> None:
    screen.print(line, style=style, markup=False, highlight=False)


__all__ = ["keys_app"]
