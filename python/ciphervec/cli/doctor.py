"""Command `doctor`, for a key's owner: what is well with a place and a key file, what is not, and what to do."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from ..collections.client import Client
from ..collections.keys import Keys
from ..errors import CiphervecError
from ..http.address import is_url
from ..ingest.files import write_file
from ..ingest.state_folder import user_folder
from .doctor_checks import (
    Finding,
    of_budgets,
    of_collection,
    of_description,
    of_key_file,
    of_mode,
    of_server,
    of_writable,
)
from .place import ANYWHERE, Access, Place, opened, stored
from .tables import grid
from .terminal import NO_KEYS, ExitCode, Json, KeyOptions, command, key_file, print_json, screen

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@command
def doctor(
    place: Place,
    name: Annotated[str | None, typer.Argument(help="One collection; all of them if left out.")] = None,
    holder: KeyOptions = NO_KEYS,
    access: Access = ANYWHERE,
    metrics: Annotated[
        Path | None,
        typer.Option(
            help="Write what was found to this file too, for the textfile collector of Prometheus' node_exporter."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Look at everything that daily use depends on, and show what to do about what is not well.

    Permissions of key files and folders, disks, formats, the server's clock; with --keys also what
    only the owner sees: segments that don't open, are of an older kind or in quarantine, rows that
    nobody vouches for, ids that are stored twice. Changes nothing. Ends with code 9 if something fails.

    **Examples**

    - `ciphervec doctor db --keys my.key`
    - `ciphervec doctor https://vectors.example --keys my.key --token-file read.token --json`
    - `ciphervec doctor db --keys my.key --metrics /var/lib/node_exporter/ciphervec.prom`
    """
    held = holder.load()
    findings = list(_findings(place, name, holder.keys, held, access))
    if metrics is not None:
        write_file(metrics, _metrics(findings, time.time()).encode())
    worst = "fail" if any(f.verdict == "fail" for f in findings) else "ok"
    if as_json:
        print_json({"place": place, "sound": worst == "ok", "findings": [f._asdict() for f in findings]})
    else:
        _show(place, findings)
    if worst == "fail":
        raise typer.Exit(int(ExitCode.UNSOUND))


def _findings(
    place: str, name: str | None, keys: str | None, held: Keys | None, access: Access
) -> Iterator[Finding]:
    if keys is not None:
        yield from of_key_file(key_file(keys)[0])
    state = user_folder()
    if state.exists():
        yield from of_mode(state, 0o700, "state folder")
    yield from of_writable(state, "state folder")
    yield from of_budgets(state)
    if is_url(place):
        found = list(_of_url(place, access))
        yield from found
        if found[0].verdict == "fail":  # and would be asked in vain, each time with all its attempts
            return
        with stored(place, access) as client:
            yield from _of_collections(client, place, name, held, access)
        return
    folder = Path(place)
    yield from of_mode(folder, 0o755, "database folder")
    yield from of_writable(folder, "database folder")
    with stored(place, access) as client:
        yield from _of_collections(client, place, name, held, access)


def _of_url(place: str, access: Access) -> Iterator[Finding]:
    # Imported here: folders are looked at without it.
    httpx: Any = importlib.import_module("httpx")
    from ..http.address import base_url
    from ..http.client import verification

    base = base_url(place, insecure=access.insecure)
    context = verification(access.ca, True, access.insecure)
    with httpx.Client(verify=context, timeout=20.0, trust_env=False) as carrier:
        yield from of_server(lambda path: carrier.get(base + path), base)


def _of_collections(
    looking: Client, place: str, name: str | None, held: Keys | None, access: Access
) -> Iterator[Finding]:
    try:
        names = looking.list_collections() if name is None else [name]
    except CiphervecError as error:
        yield Finding("collections", place, "fail", str(error), "check the token and the address")
        return
    sound = []
    for one in names:
        found = list(of_description(one, looking))
        yield from found
        if all(finding.verdict != "fail" for finding in found):
            sound.append(one)
    if held is None and names:
        says = "what only their owner sees was not looked at"
        yield Finding("collections", place, "warn", says, "give the key file with --keys")
        return
    if sound:
        with opened(place, held, access, read_only=True) as client:
            for one in sound:
                yield from of_collection(one, client)


def _metrics(findings: list[Finding], now: float) -> str:
    """A gauge for each check and place: 0 ok, 1 warn, 2 fail, the worst where there are several."""
    worst: dict[tuple[str, str], int] = {}
    for finding in findings:
        key = (finding.check, finding.where)
        worst[key] = max(worst.get(key, 0), list(_COLOURS).index(finding.verdict))
    lines = ["# HELP ciphervec_doctor_check 0 ok, 1 warn, 2 fail", "# TYPE ciphervec_doctor_check gauge"]
    for (check, where), verdict in worst.items():
        escaped = where.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'ciphervec_doctor_check{{check="{check}",where="{escaped}"}} {verdict}')
    lines += [
        "# HELP ciphervec_doctor_run_timestamp_seconds When doctor last looked",
        "# TYPE ciphervec_doctor_run_timestamp_seconds gauge",
        f"ciphervec_doctor_run_timestamp_seconds {now:.0f}",
    ]
    return "\n".join(lines) + "\n"


def _show(place: str, findings: list[Finding]) -> None:
    rows: list[list[str | Text]] = [
        [Text(f.verdict, style=_COLOURS[f.verdict]), f.check, f.where, " ".join(f.says.split())]
        for f in findings
    ]
    grid(screen, f"doctor, {place}", ["", "", "", ""], rows, left=4)
    following = [f for f in findings if f.next]
    for finding in following:
        screen.print(
            f"{finding.where}, {finding.check}: {finding.next}", highlight=False, markup=False, soft_wrap=True
        )
    counts = {verdict: sum(f.verdict == verdict for f in findings) for verdict in _COLOURS}
    screen.print(
        ", ".join(f"{count} {verdict}" for verdict, count in counts.items()), style="dim", highlight=False
    )


__all__ = ["doctor"]
