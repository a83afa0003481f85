"""Commands `audit key`, `verify` and `mark`, for operators of servers and for whoever checks their audit logs."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

import ciphervec._native as _native

from ..errors import CorruptData, InvalidInput
from ..ingest.counts import several
from ..ingest.files import AUDIT_KEY_BYTES, read_audit_key, read_file, write_file
from .terminal import Json, command, existing, print_json, screen

audit_app = typer.Typer(
    no_args_is_help=True, help="Sign and check the audit logs of servers and decrypt services."
)
Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Audit files, each the next one of those before it.")
]


def write_secret(path: Path, data: bytes) -> None:
    """To a new file that its owner alone reads. Raises FileExistsError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def read_key(path: Path) -> bytes:
    """The 32 bytes of an audit key. Raises InvalidInput for a file of another length."""
    return read_audit_key(existing(path, "audit key"))


@audit_app.command()
@command
def key(
    path: Annotated[Path, typer.Argument(help="A new file, for `serve --audit-key`.")], as_json: Json = False
) -> None:
    """Make the key that an audit log is signed with; its public half, ending in .pub, is for who checks.

    It decrypts nothing.

    **Examples**

    - `ciphervec audit key audit.key`  writes audit.key.pub too
    """
    secret, public = os.urandom(AUDIT_KEY_BYTES), path.with_name(path.name + ".pub")
    write_secret(path, secret)
    shown = _native.audit_verifying_key(secret).hex()
    write_file(public, f"{shown}\n".encode())
    if as_json:
        print_json({"path": str(path), "public": str(public), "key": shown})
        return
    screen.print(f"audit key written to {path}; {public} is for who checks", highlight=False)


@audit_app.command()
@command
def verify(
    files: Files,
    public: Annotated[
        Path | None,
        typer.Option("--key", help="The .pub file of the key that signs: every signature has to be its."),
    ] = None,
    seen: Annotated[
        list[str] | None,
        typer.Option(
            "--mark", metavar="LINE:CHAIN", help="What `audit mark` showed before, of the last file. Repeat."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that no line of a log was changed, left out or put in, and who has signed it.

    Whoever can write the file can cut off its end. --mark finds that out, with what was shown before.

    **Examples**

    - `ciphervec audit verify audit.log --key audit.key.pub`
    - `ciphervec audit verify audit.log.1 audit.log --mark 1200:5da0…`
    """
    by = None if public is None else _public(public)
    marks = [_mark(one) for one in seen or ()]
    found = [
        _native.verify_audit(existing(one, "audit file"), by, marks if one is files[-1] else [])
        for one in files
    ]
    for (one, other), name in zip(pairwise(found), files[1:], strict=True):
        if other[4] != one[0]:
            raise CorruptData(
                f"{name} does not begin where the file before it ends: one between them is missing, or its end."
            )
    (line, chain), signed, *_ = found[-1]
    total, unsigned, lost = (
        sum(one[0][0] for one in found),
        sum(one[2] for one in found),
        sum(one[3] for one in found),
    )
    before = found[0][4]
    if as_json:
        print_json({"lines": total, "line": line, "chain": chain.hex(), "signed": signed if by else None,
                    "unsigned": unsigned if by else None, "lost": lost, "after": before and before[0]})  # fmt: skip
        return
    screen.print(f"{several(total, 'line')}: none was changed, left out or put in", highlight=False)
    if before is not None:
        screen.print(
            f"{files[0]} goes on after line {before[0]} of a file that was not given", highlight=False
        )
    if lost:
        screen.print(f"{several(lost, 'line')} could not be written, as the log says", highlight=False)
    if by is not None:
        screen.print(f"signed up to line {signed} of {line} in {files[-1]}", highlight=False)
        if unsigned:
            screen.print(
                f"{several(unsigned, 'line')} had no signature when the server went on with the log, as after a crash: who "
                "can write the file may have changed these before",
                highlight=False,
            )
    screen.print(f"mark {line}:{chain.hex()}", highlight=False, soft_wrap=True)


@audit_app.command()
@command
def mark(path: Annotated[Path, typer.Argument(metavar="FILE", help="An audit file.")]) -> None:
    """Show the last line's number and the chain there: publish it, and nobody can cut the log off before it.

    **Examples**

    - `ciphervec audit mark audit.log`
    """
    (line, chain), *_ = _native.verify_audit(existing(path, "audit file"), None, [])
    screen.print(f"{line}:{chain.hex()}", highlight=False, soft_wrap=True)


def _public(path: Path) -> bytes:
    return _hex(
        read_file(existing(path, "public key")).decode(errors="replace").strip(), f"{path} is no .pub file"
    )


def _mark(text: str) -> tuple[int, bytes]:
    line, colon, chain = text.partition(":")
    if not colon or not line.isascii() or not line.isdigit() or not 0 < int(line[:19]) < 10**18:
        raise InvalidInput(f"--mark takes LINE:CHAIN, as `ciphervec audit mark` shows it; got {text!r}.")
    return int(line), _hex(chain, "--mark takes LINE:CHAIN")


def _hex(text: str, what: str) -> bytes:
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if len(data) != AUDIT_KEY_BYTES or data.hex() != text:
        raise InvalidInput(f"{what}: 64 hexadecimal digits expected, got {text[:80]!r}.")
    return data
