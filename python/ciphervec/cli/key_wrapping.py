"""Commands `keys wrap`, `unwrap`, `rewrap` and `list`, for owners whose wrapping keys a KMS, an HSM, a keyring or age keeps.
None of them touches what is sealed under a key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

import ciphervec._native as _native

from ..collections import wrapping
from ..errors import CiphervecError, CorruptData, InvalidInput, StorageError
from ..ingest.counts import several
from .key_copies import KeyId, KeyPath, NoPassphrase, expect_new, keys_app, load_there, save_new
from .tables import grid
from .terminal import (
    Json,
    PassphraseFile,
    command,
    existing,
    exit_code,
    key_file,
    print_json,
    progress,
    say_aside,
    screen,
)
from .wording import reworded

By = Annotated[
    str,
    typer.Option(
        "--by",
        metavar="URI",
        help="What wraps it: awskms://…, gcpkms://…, azurekv://…, vault://…, pkcs11:…, keyring:… or age:…",
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The key file to write; none may be there.")]
Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH...", help="Key files, or folders of which all key files are taken."),
]


@keys_app.command()
@command
def wrap(
    path: KeyPath,
    by: By,
    out: Out,
    key_id: KeyId = None,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Write a key to a file that a KMS, an HSM, a keyring or age decrypts, in place of a passphrase.

    The file names its wrapper, so that every command takes it as `--keys`. Credentials come from
    the environment, as for the wrapper's own tools; none is ever in the URI.

    **Examples**

    - `ciphervec keys wrap my.key --by awskms://alias/ciphervec --out my.wrapped`
    - `ciphervec keys wrap my.key --by vault://transit/ciphervec --out my.wrapped`
    - `ciphervec keys wrap my.key --by "pkcs11:token=prod;object=ciphervec" --out my.wrapped`
    - `ciphervec keys wrap my.key --by keyring:ciphervec --out my.wrapped`
    """
    expect_new(out)
    keys = load_there(path, passphrase_file, key_id)
    keys.save(out, wrapped_by=by)
    if as_json:
        print_json({"path": str(out), "key_id": keys.key_id, "wrapped_by": by})
        return
    _say(f"key {keys.key_id} written to {out}, wrapped by {by}")
    _say(f"{path} still opens everything: keep it as a copy elsewhere, or ciphervec keys shred it", "dim")


@keys_app.command()
@command
def unwrap(
    path: KeyPath,
    out: Out,
    key_id: KeyId = None,
    passphrase_file: PassphraseFile = None,
    no_passphrase: NoPassphrase = False,
    as_json: Json = False,
) -> None:
    """Write a wrapped key to a file under a passphrase: a copy that needs no service.

    **Examples**

    - `ciphervec keys unwrap my.wrapped --out my.key`
    """
    expect_new(out)
    if _native.key_file_label(str(existing(key_file(path)[0], "key file")))[0] != "wrapped":
        raise InvalidInput(f"{path} is not wrapped. ciphervec keys list says how a key file is protected.")
    keys = load_there(path, None, key_id)
    save_new(keys, out, passphrase_file, no_passphrase)
    if as_json:
        print_json({"path": str(out), "key_id": keys.key_id, "protected": not no_passphrase})
        return
    _say(f"key {keys.key_id} written to {out}, readable by you alone")


@keys_app.command()
@command
def rewrap(
    paths: Paths,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="URI", help="The new wrapper. Else the present one, whose newest version is used."
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option("--from", metavar="URI", help="Only files that this wrapper wrapped.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Wrap key files anew, in place, each all at once. The keys inside stay, and nothing is sealed
    again.

    After a wrapping key was rotated, or to move to another service. A file that can't be wrapped
    anew stays as it was, and is named at the end.

    **Examples**

    - `ciphervec keys rewrap tenants/`
    - `ciphervec keys rewrap tenants/ --from vault://transit/old --by awskms://alias/ciphervec`
    """
    labels, bad = _labels(paths)
    chosen = [path for path, label in labels if label[0] == "wrapped" and only in (None, label[3])]
    if not chosen and not bad:
        raise InvalidInput("there is no wrapped key file among these. See: ciphervec keys list")
    with progress("wrapping anew", len(chosen), quiet=as_json) as step:
        done = wrapping.rewrap(chosen, by, lambda number: step(number, len(chosen)))
    done += [wrapping.Rewrapped(str(path), "", "", "", error) for path, error in bad]
    failed = [one for one in done if one.error is not None]
    if as_json:
        print_json({"files": [_as_json(one) for one in done], "failed": len(failed)})
    else:
        for one in failed:
            say_aside("not wrapped anew:", "bold red", f"{one.path}, {one.error}")
        _say(f"{several(len(done) - len(failed), 'key file')} wrapped anew, {len(failed)} left as they were")
    if failed:
        raise typer.Exit(int(exit_code(failed[0].error or CiphervecError())))


@keys_app.command("list")
@command
def list_keys(paths: Paths, as_json: Json = False) -> None:
    """List key files: the key's id, how the file is protected, and what wraps it. Opens none.

    **Examples**

    - `ciphervec keys list my.key tenants/`
    """
    labels, bad = _labels(paths)
    rows: list[tuple[str | None, ...]] = [(str(path), *label, None) for path, label in labels]
    rows += [(str(path), *[None] * 4, reworded(str(error))) for path, error in bad]
    if as_json:
        names = ("path", "protection", "holds", "key_id", "wrapped_by", "error")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        shown = [
            [str(one) for one in (label[2], label[1], label[0], label[3] or "", path)]
            for path, label in labels
        ]
        grid(
            screen,
            several(len(labels), "key file"),
            ["key", "holds", "protection", "wrapped by", "file"],
            shown,
            left=5,
        )
        for path, error in bad:
            say_aside("can't be read:", "bold red", f"{path}, {error}")
    if bad:
        raise typer.Exit(int(exit_code(bad[0][1])))


def _say(line: str, style: str = "") -> None:
    screen.print(line, style=style, markup=False, highlight=False)


_Labels = list[tuple[Path, tuple[str, str, str, str | None]]]
_Bad = list[tuple[Path, CiphervecError]]
_DRAFT = re.compile(r".*\.[0-9a-f]{16}\.tmp")  # which a process that was killed left behind


def _labels(paths: Sequence[Path]) -> tuple[_Labels, _Bad]:
    """Key files with what they say in clear, and those that are damaged or can't be read, so that none of them hides the
    others. One that was named must be a key file; of a folder, others are passed over."""
    labels: _Labels = []
    bad: _Bad = []
    for path, named in _files(paths):
        try:
            labels.append((path, _native.key_file_label(str(path))))
        except (CorruptData, StorageError) as error:
            if named or _looks_like_one(path):
                bad.append((path, error))
    return labels, bad


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Each file, and whether it was named itself."""
    for path in [existing(one, "key file or folder") for one in paths]:
        if path.is_dir():
            inside = sorted(Path(found) for found in os.scandir(path))
            yield from ((one, False) for one in inside if one.is_file() and not _DRAFT.fullmatch(one.name))
        else:
            yield path, True


def _looks_like_one(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(8) == b"CVKEYFIL"
    except OSError:
        return True


def _as_json(one: wrapping.Rewrapped) -> dict[str, str | None]:
    error = None if one.error is None else reworded(str(one.error))
    return {
        "path": one.path, "key_id": one.key_id, "before": one.before, "after": one.after, "error": error
    }  # fmt: skip


__all__ = ["keys_app"]
