"""Command `keygen`, for a key's owner: makes a key file under a passphrase, wrapped, or in clear where that is asked
for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import ciphervec._native as _native

from ..additive.keys import KeyPair
from ..collections.keys import Keys
from ..collections.spec import FORMER_LATTICE, LATTICE, SCHEMES
from ..errors import InvalidInput
from .terminal import (
    Json,
    PassphraseFile,
    WrappedBy,
    aside,
    command,
    passphrase,
    print_json,
    say_next,
    screen,
)


def scheme_named(name: str) -> str:
    """The name of a scheme, as every API gives it; that of release 0.1 is still taken for the
    lattice scheme."""
    if name == FORMER_LATTICE:
        aside.print("--scheme sealed is called --scheme lattice; the old name goes soon.", style="dim")
        return LATTICE
    if name not in SCHEMES:
        raise typer.BadParameter(f"one of {', '.join(SCHEMES)} expected, got {name!r}")
    return name


@command
def keygen(
    path: Annotated[
        Path, typer.Argument(help="Where to write the key. An existing file is never overwritten.")
    ],
    scheme: Annotated[
        str,
        typer.Option(
            parser=scheme_named,
            metavar="SCHEME",
            help="lattice: for collections, of every scheme. The others: key pairs by themselves, for Python.",
        ),
    ] = LATTICE,
    bits: Annotated[
        int | None,
        typer.Option(
            help="Length of the modulus: 3072, 128 bits of security, unless given; 2048 are 112. Not for lattice and elgamal."
        ),
    ] = None,
    power: Annotated[
        int | None, typer.Option("--s", help="Damgård–Jurik: messages are s times as long as n, 1 to 3.")
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            help="Write the public key there too, for those who encrypt and compute. Not for sealed."
        ),
    ] = None,
    passphrase_file: PassphraseFile = None,
    no_passphrase: Annotated[
        bool,
        typer.Option(
            "--no-passphrase", help="Leave the key in clear, for a disk or mount that is itself protected."
        ),
    ] = False,
    by: WrappedBy = None,
    as_json: Json = False,
) -> None:
    """Make a secret key.

    Everything you add is sealed under it. Keep a copy: without it the data is gone, and nobody can
    get it back.

    **Examples**

    - `ciphervec keygen my.key`  asks for a passphrase twice
    - `CIPHERVEC_PASSPHRASE=... ciphervec keygen my.key`  for scripts
    - `ciphervec keygen /run/secrets/my.key --no-passphrase`
    - `ciphervec keygen my.key --by awskms://alias/ciphervec`  a KMS opens it; see `ciphervec keys wrap --help`
    - `ciphervec keygen pair.key --scheme paillier --public pair.pub`
    """
    if scheme != "damgard-jurik" and power is not None:
        raise InvalidInput(f"--s is for damgard-jurik; {scheme} has none.")
    if scheme not in _native.MODULUS_SCHEMES and bits is not None:
        raise InvalidInput(f"--bits is not for {scheme}: its keys have one length.")
    if scheme == LATTICE and public is not None:
        raise InvalidInput(
            "--public is for key pairs; a sealed collection has one secret key and no public one."
        )
    if path.exists():
        raise FileExistsError(
            f"{path} is there already, and a key is never overwritten. Choose another name."
        )
    if public is not None and public.exists():
        raise FileExistsError(f"{public} is there already. Choose another name.")
    if scheme != LATTICE and by is not None:
        raise InvalidInput(f"--by is for the keys of collections; a {scheme} pair takes a passphrase.")
    keys = _generate(scheme, bits, power)
    if isinstance(keys, Keys) and by is not None:
        keys.save(path, wrapped_by=by, allow_plaintext=no_passphrase)
    elif no_passphrase:
        keys.save(path, allow_plaintext=True)
    else:
        keys.save(path, passphrase(passphrase_file, "New passphrase", confirm=True))
    if public is not None and isinstance(keys, KeyPair):
        public.write_bytes(keys.public.to_bytes())
    if as_json:
        written: dict[str, object] = {
            "path": str(path), "key_id": keys.key_id, "scheme": scheme, "protected": not no_passphrase
        }  # fmt: skip
        if isinstance(keys, KeyPair):
            written |= {"bits": keys.bits, "public": None if public is None else str(public)}
        print_json(written)
        return
    screen.print(f"key [bold]{keys.key_id}[/] written to {path}, readable by you alone", highlight=False)
    if isinstance(keys, KeyPair):
        security = keys.security()
        screen.print(
            f"{scheme}, {keys.bits} bits: {security['bits']}-bit security, not post-quantum",
            highlight=False,
        )
        module = scheme.replace("-", "_")
        following = f'from ciphervec import {module}; keys = {module}.load("{path}", passphrase=...)'
    else:
        following = f"ciphervec create db items --dim 512 --keys {path}"
    say_next(following)


def _generate(scheme: str, bits: int | None, power: int | None) -> Keys | KeyPair:
    if scheme == LATTICE:
        return Keys.generate()
    length, s = 3072 if bits is None else bits, 2 if power is None else power
    return KeyPair(_native.AdditiveSecretKey.generate(scheme, length, s))
