"""Commands `program plan`, `keygen`, `encrypt`, `compute` and `decrypt`: the two halves of a program,
with files between them. The key owner's side, but for `compute`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..errors import InvalidInput, WrongKey
from ..ingest.files import read_file
from ..programs import Client, Plan
from .program_source import (
    FAILURE,
    Backend,
    Failure,
    Gap,
    Precision,
    Quantum,
    Reveal,
    Samples,
    Source,
    arguments,
    arrays,
    compiled,
    find,
)
from .terminal import PassphraseFile, command, existing, passphrase, say_next, screen, size

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The file that `program plan` wrote.")]
SecretFile = Annotated[Path, typer.Option("--keys", "-k", help="The key file that `program keygen` wrote.")]


@command
def plan(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="Write the plan here, for both halves.")],
    sample: Samples = None,
    precision: Precision = 12,
    gap: Gap = None,
    failure: Failure = FAILURE,
    quantum: Quantum = False,
    reveal: Reveal = None,
    backend: Backend = None,
) -> None:
    """Compile a function to a file for both halves. Nothing in it is secret; the server needs neither
    the function nor Python. With --reveal, what decrypts an answer are the arrays that are revealed: who
    decrypts goes on with them.

    **Examples**

    - `ciphervec program plan faces.py:verify -s "probe=secret(128, bits=8)" -s template=template.npy --out verify.plan`
    """
    made = compiled(
        find(source),
        arguments(sample),
        precision=precision,
        gap=gap,
        failure=failure,
        quantum=quantum,
        reveal=reveal,
        backend=backend,
    )
    content = made.to_bytes()
    out.write_bytes(content)
    screen.print(f"plan {made.id} written to {out}, {size(len(content))}", highlight=False)
    say_next(f"ciphervec program keygen {out} --out my.key --server-keys server.keys")


@command
def keygen(
    plan_file: PlanFile,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write the secret key. Never overwritten.")
    ],
    server_keys: Annotated[Path, typer.Option(help="Where to write what the server computes with.")],
    passphrase_file: PassphraseFile = None,
    no_passphrase: Annotated[
        bool,
        typer.Option(
            "--no-passphrase", help="Leave the key in clear, for a disk or mount that is itself protected."
        ),
    ] = False,
) -> None:
    """Make a secret key for a plan, and the keys with which a server computes and can read nothing.

    **Examples**

    - `ciphervec program keygen verify.plan --out my.key --server-keys server.keys`
    """
    for path in (out, server_keys):
        if path.exists():
            raise FileExistsError(
                f"{path} is there already, and a key is never overwritten. Choose another name."
            )
    client = _plan(plan_file).client()
    if no_passphrase:
        client.save(out, allow_plaintext=True)
    else:
        client.save(out, passphrase(passphrase_file, "New passphrase", confirm=True))
    keys = client.evaluation_keys()
    server_keys.write_bytes(keys)
    screen.print(f"key [bold]{client.key_id}[/] written to {out}, readable by you alone", highlight=False)
    screen.print(f"keys for the server written to {server_keys}, {size(len(keys))}", highlight=False)


@command
def encrypt(
    plan_file: PlanFile,
    inputs: Annotated[list[str], typer.Argument(metavar="NAME=FILE.npy…", help="Arrays to encrypt.")],
    keys: SecretFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder; every input becomes NAME.enc there.")],
    passphrase_file: PassphraseFile = None,
) -> None:
    """Encrypt inputs, all of them or some now and some later. Public ones are checked, and written as they are.

    An input that stays with the server, a gallery, is encrypted once for any number of runs.

    **Examples**

    - `ciphervec program encrypt verify.plan template=template.npy --keys my.key --out kept`
    - `ciphervec program encrypt verify.plan probe=probe.npy --keys my.key --out asked`
    """
    given = arrays(inputs)
    client = _client(_plan(plan_file), keys, passphrase_file)
    sealed = client.encrypt(**given)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in sealed.items():
        path = out / f"{name}.enc"
        path.write_bytes(content)
        done = "is public, and written as it is" if name in client.plan.public else "encrypted"
        screen.print(f"{name} {done} to {path}, {size(len(content))}", highlight=False)


@command
def compute(
    plan_file: PlanFile,
    server_keys: Annotated[Path, typer.Argument(help="The server's keys that `program keygen` wrote.")],
    inputs: Annotated[list[Path], typer.Argument(help="An encrypted input of every name.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Write the encrypted answer here.")],
) -> None:
    """Run a plan on encrypted inputs: the server's half. It needs no secret and reads nothing.

    **Examples**

    - `ciphervec program compute verify.plan server.keys kept/template.enc asked/probe.enc --out answer.enc`
    """
    server = _plan(plan_file).server(read_file(existing(server_keys, "file of keys")))
    sealed = [read_file(existing(path, "encrypted input")) for path in inputs]
    answer, steps = server.run_timed(sealed)
    out.write_bytes(answer)
    screen.print(
        f"answer written to {out}, {size(len(answer))}; {len(steps):,} steps took {sum(steps):.1f} ms",
        highlight=False,
    )


@command
def decrypt(
    plan_file: PlanFile,
    answer: Annotated[Path, typer.Argument(help="The answer that `program compute` wrote.")],
    keys: SecretFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the results here, an .npz; else they are printed."),
    ] = None,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Read an answer. The results are for the owner of the key.

    **Examples**

    - `ciphervec program decrypt verify.plan answer.enc --keys my.key`
    - `ciphervec program decrypt verify.plan answer.enc --keys my.key --out found.npz`
    """
    content = read_file(existing(answer, "answer"))
    client = _client(_plan(plan_file), keys, passphrase_file)
    found = client.decrypt(content)
    values: tuple[Any, ...] = found if isinstance(found, tuple) else (found,)
    names = ["result"] if len(values) == 1 else [f"result{number}" for number in range(len(values))]
    if out is not None:
        with out.open("wb") as file:
            named: dict[str, Any] = dict(zip(names, values, strict=True))
            np.savez(file, **named)
        screen.print(f"results written to {out}", highlight=False)
        return
    for name, value in zip(names, values, strict=True):
        text = np.array2string(np.asarray(value), threshold=64, precision=6)
        screen.print(f"{name}: {text}", highlight=False, markup=False, soft_wrap=True)


HALVES = (plan, keygen, encrypt, compute, decrypt)


def _plan(path: Path) -> Plan:
    return Plan.from_bytes(read_file(existing(path, "plan")))


def _client(made: Plan, path: Path, passphrase_file: Path | None) -> Client:
    existing(path, "key file")
    try:
        # A file saved in clear opens without; trying first means that nobody is asked in vain.
        return Client.load(made, path)
    except (InvalidInput, WrongKey):
        return Client.load(made, path, passphrase(passphrase_file, f"Passphrase of {path}"))
