"""A path and a passphrase enter; a key file leaves. The key owner's side, and the only command that makes a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..keys import Keys
from .terminal import Json, PassphraseFile, command, passphrase, print_json, screen


@command
def keygen(
    path: Annotated[
        Path, typer.Argument(help="Where to write the key. An existing file is never overwritten.")
    ],
    passphrase_file: PassphraseFile = None,
    no_passphrase: Annotated[
        bool,
        typer.Option(
            "--no-passphrase", help="Leave the key in clear, for a disk or mount that is itself protected."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a secret key.

    Everything you add is sealed under it. Keep a copy: without it the data is gone, and nobody can get it back.

    **Examples**

    - `ciphervec keygen my.key`  asks for a passphrase twice
    - `CIPHERVEC_PASSPHRASE=... ciphervec keygen my.key`  for scripts
    - `ciphervec keygen /run/secrets/my.key --no-passphrase`
    """
    if path.exists():
        raise FileExistsError(
            f"{path} is there already, and a key is never overwritten. Choose another name."
        )
    keys = Keys.generate()
    if no_passphrase:
        keys.save(path, allow_plaintext=True)
    else:
        keys.save(path, passphrase(passphrase_file, "New passphrase", confirm=True))
    if as_json:
        print_json({"path": str(path), "key_id": keys.key_id, "protected": not no_passphrase})
        return
    screen.print(f"key [bold]{keys.key_id}[/] written to {path}, readable by you alone", highlight=False)
    screen.print(f"next: ciphervec create db items --dim 512 --keys {path}", style="dim", highlight=False)
