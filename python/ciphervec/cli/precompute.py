"""Command `precompute`, for a key's owner: draws the noise of later encryptions into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import ciphervec._native as _native
import ciphervec.errors as errors

from ..additive import keys as additive
from ..additive.noise_pool import NoisePool
from .terminal import Json, PassphraseFile, command, passphrase, print_json, progress, say_next, screen


@command
def precompute(
    path: Annotated[Path, typer.Argument(help="The pool's file. One that is there is filled up.")],
    keys: Annotated[
        Path,
        typer.Option(
            "--keys", "-k", envvar="CIPHERVEC_KEYS", help="A key pair of `ciphervec keygen --scheme ...`."
        ),
    ],
    count: Annotated[
        int, typer.Option("--count", "-n", help="Encryptions to draw noise for; a 512-d vector takes 512.")
    ] = 5120,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Draw noise ahead, so that encrypting takes microseconds.

    Each element is used once. The file is encrypted under the secret key, and claimed whole by the
    program that uses it: `NoisePool.claim(path, keys)`. Don't back it up: a copy that is used too
    shows what was encrypted.

    **Examples**

    - `ciphervec precompute noise.pool --keys pair.key`
    - `ciphervec precompute noise.pool --keys pair.key --count 100000`
    """
    if not keys.exists():
        raise FileNotFoundError(
            f"there is no key file {keys}. Make one with: ciphervec keygen {keys} --scheme paillier"
        )
    pair = _load(keys, passphrase_file)
    pool = NoisePool.claim(path, pair) if path.exists() else NoisePool(pair)
    found = len(pool)
    with progress("drawing noise", count, quiet=as_json) as step:
        pool.fill(count, progress=step)
    total = len(pool)
    pool.save(path)
    if as_json:
        print_json(
            {"path": str(path), "key_id": pair.key_id, "found": found, "drawn": count, "elements": total}
        )
        return
    screen.print(f"{total:,} elements of noise in {path}, for key [bold]{pair.key_id}[/]", highlight=False)
    say_next(f"pool = NoisePool.claim({str(path)!r}, keys); pool.encrypt_vectors(rows)")


def _load(path: Path, passphrase_file: Path | None) -> additive.KeyPair:
    try:
        return additive.load(path, schemes=_native.MODULUS_SCHEMES)
    except errors.InvalidInput as refusal:
        if "passphrase" not in str(refusal):
            raise
    return additive.load(
        path, passphrase(passphrase_file, f"Passphrase of {path}"), schemes=_native.MODULUS_SCHEMES
    )
