"""Commands `program push`, `list`, `ask` and `remove`, for clients of a server that runs programs. They need no secret
key: inputs are encrypted before, and answers decrypted after."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidInput
from ..http.programs import ServedProgram, key_of
from ..ingest.files import read_file
from ..programs import Plan
from .place import ANYWHERE, Access
from .program_halves import PlanFile
from .tables import grid
from .terminal import command, existing, print_json, screen, size

Url = Annotated[str, typer.Option("--url", help="The server: https://…")]
Name = Annotated[str, typer.Argument(help="The program's name on the server.")]
Kept = Annotated[
    list[Path] | None,
    typer.Option(
        "--keep", metavar="FILE.enc", help="An encrypted input to keep there, under the file's name."
    ),
]


@command
def push(
    name: Name,
    plan_file: PlanFile,
    url: Url,
    server_keys: Annotated[
        Path | None, typer.Option(help="The server's keys that `program keygen` wrote, to be sent too.")
    ] = None,
    keep: Kept = None,
    access: Access = ANYWHERE,
) -> None:
    """Store a plan on a server; send keys, and keep encrypted inputs there.

    What is there already is not sent again, but kept inputs, which are replaced. The plan takes a token
    with the permission admin, keys and inputs one with keep.

    **Examples**

    - `ciphervec program push verify verify.plan --url https://example.org --server-keys server.keys --keep kept/template.enc`
    """
    content = read_file(existing(plan_file, "plan"))
    plan = Plan.from_bytes(content)
    keys = None if server_keys is None else read_file(existing(server_keys, "file of keys"))
    inputs = {path.stem: read_file(existing(path, "encrypted input")) for path in keep or ()}
    with access.client(url, None) as client:
        remote: ServedProgram
        # Who may send keys need not be who may store plans.
        if name in client.list_programs():
            remote = client.get_program(name, plan)
        else:
            remote = client.put_program(name, plan)
        if keys is not None and key_of(keys) not in remote.info()["keys"]:
            remote.send_keys_bytes(keys)
        for kept, sealed in inputs.items():
            remote.keep_bytes(kept, sealed)
        held = remote.info()
    takes = held["plan"]
    screen.print(f"plan {plan.id} is there as {name}, {size(len(content))}", highlight=False)
    screen.print(
        f"a run is predicted to take {takes['predicted_ms']:.1f} ms on one thread there, and {size(takes['memory'])} of "
        "memory",
        highlight=False,
    )
    if keys is not None:
        screen.print(f"keys [bold]{key_of(keys)}[/], {size(len(keys))}", highlight=False)
    for kept, sealed in inputs.items():
        screen.print(f"{kept} is kept, {size(len(sealed))}", highlight=False)


@command
def list_(
    url: Url,
    name: Annotated[str | None, typer.Argument(help="Show all that is known of this one.")] = None,
    json_out: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    access: Access = ANYWHERE,
) -> None:
    """The programs of a server, or whose keys and which inputs one of them has.

    **Examples**

    - `ciphervec program list --url https://example.org`
    - `ciphervec program list verify --url https://example.org`
    """
    with access.client(url, None) as client:
        if name is None:
            rows = client._program_rows()
            if json_out:
                print_json(rows)
                return
            lines = [[one["name"], one["plan"], f"{one['keys']:,}", size(one["bytes"])] for one in rows]
            grid(screen, f"Programs on {url}", ["name", "plan", "keys", "stored"], lines, left=2)
            return
        state = client._served_program(name).info()
    if json_out:
        print_json(state)
        return
    takes = state["plan"]
    screen.print(
        f"{name}: plan {takes['id']}, {takes['steps']:,} steps in a ring of degree 2^{takes['log_degree']}; a run is "
        f"predicted to take {takes['predicted_ms']:.1f} ms and {size(takes['memory'])}",
        highlight=False,
    )
    arrays = ", ".join(f"{one['name']} {tuple(one['shape'])}" for one in takes["inputs"])
    screen.print(f"inputs: {arrays}", highlight=False, markup=False)
    lines = [
        [key, "yes" if one["yours"] else "", size(one["bytes"]), ", ".join(one["inputs"])]
        for key, one in state["keys"].items()
    ]
    grid(screen, "Keys", ["id", "this token's", "stored", "kept inputs"], lines, left=2)


@command
def ask(
    name: Name,
    url: Url,
    out: Annotated[Path, typer.Option("--out", "-o", help="Write the encrypted answer here.")],
    inputs: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE.enc…", help="Encrypted inputs to send.")
    ] = None,
    kept: Annotated[
        list[str] | None, typer.Option("--kept", help="The name of a kept input. Once for each.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="The key's id; needed where all inputs are kept.")] = None,
    access: Access = ANYWHERE,
) -> None:
    """Run a program on a server, on encrypted inputs that are sent and on kept ones.

    **Examples**

    - `ciphervec program ask verify asked/probe.enc --kept template --url https://example.org --out answer.enc`
    """
    sealed = [read_file(existing(path, "encrypted input")) for path in inputs or ()]
    with access.client(url, None) as client:
        answer = client._served_program(name).run_bytes(sealed, *(kept or ()), key_id=key)
    out.write_bytes(answer)
    screen.print(f"answer written to {out}, {size(len(answer))}", highlight=False)


@command
def remove(
    name: Name,
    url: Url,
    key: Annotated[
        str | None, typer.Option(help="Remove the keys of this id and what is kept under them.")
    ] = None,
    kept: Annotated[
        list[str] | None, typer.Option("--kept", help="With --key: remove this kept input. Once for each.")
    ] = None,
    access: Access = ANYWHERE,
) -> None:
    """Remove a program from a server, or a client's keys, or inputs that are kept under them.

    **Examples**

    - `ciphervec program remove verify --url https://example.org`
    - `ciphervec program remove verify --key 5f0c1d2e3a4b5c6d --kept template --url https://example.org`
    """
    if kept and key is None:
        raise InvalidInput("--kept is an input under a key; name that with --key.")
    with access.client(url, None) as client:
        program = client._served_program(name)
        if key is None:
            program.delete()
        elif kept:
            program.forget(key, *kept)
        else:
            program.remove_keys(key)
    what = f"{', '.join(kept)} of {name}" if kept else name if key is None else f"keys {key} of {name}"
    screen.print(f"removed {what}", highlight=False)
