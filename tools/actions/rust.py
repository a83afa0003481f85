"""What is checked of the Rust crates: format, lints, documentation, the server's half, tests on every back-end."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from .base import Action, StepFailedError, StepSkippedError, call, quiet, say

WORKSPACE = ["--workspace", "--all-features", "--locked"]
"""The same packages and features for lints, documentation and tests: cargo then compiles what they share once."""
ON_BACKENDS = ("ciphervec-arith", "ciphervec-he", "ciphervec-he-secret")
"""The crates whose tests run on every back-end."""


def need_component(component: str, subcommand: str) -> None:
    if quiet(["cargo", subcommand, "--version"]).returncode == 0:
        return
    if shutil.which("rustup") is not None:
        say(f"{component} is missing: rustup component add {component}")
        if quiet(["rustup", "component", "add", component]).returncode == 0:
            return
    message = f"{component} is not installed and could not be added; `rustup component add {component}`"
    raise StepFailedError(message) if os.environ.get("CI") else StepSkippedError(message)


def format_check() -> None:
    need_component("rustfmt", "fmt")
    call(["cargo", "fmt", "--all", "--check"])
    call(["cargo", "fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"])


def clippy() -> None:
    need_component("clippy", "clippy")
    call(["cargo", "clippy", "--all-targets", *WORKSPACE, "--", "-D", "warnings"])


def docs() -> None:
    call(["cargo", "doc", "--no-deps", *WORKSPACE], environment={"RUSTDOCFLAGS": "-D warnings"})


def halves() -> None:
    """The server's half must build alone, and neither it nor the server may link what seals or opens. The native module
    must build without the server."""
    call(["cargo", "check", "--package", "ciphervec", "--no-default-features", "--locked"])
    call(["cargo", "check", "--package", "ciphervec-owner", "--no-default-features", "--locked"])
    call(["cargo", "check", "--package", "ciphervec-python", "--no-default-features", "--locked"])
    secret = ("ciphervec-he-secret ", "ciphervec-owner ", "bip39 ", "chacha20poly1305 ", "scrypt ", "hpke ")
    web = ("ciphervec-server ", "tokio ", "axum ")
    for package, options, barred in (
        ("ciphervec", ["--no-default-features"], secret),
        ("ciphervec-server", [], secret),
        ("ciphervec-python", ["--no-default-features"], web),
    ):
        tree = quiet(["cargo", "tree", "--package", package, *options, "--edges", "normal", "--prefix", "none",
                      "--locked"])  # fmt: skip
        found = [line for line in tree.stdout.splitlines() if line.startswith(barred)]
        if tree.returncode != 0 or found:
            raise StepFailedError(f"{package} links what it must not: {found}\n{tree.stderr}")
    say(
        "no AEAD, no key wrap, no key file code in the server's half and in the server; no server in a demo's wheel"
    )


def test(*options: str) -> Action:
    return lambda: call(["cargo", "test", *WORKSPACE, *options])


def test_again() -> None:
    """The tests of `ON_BACKENDS`, in the binaries that `test` has built: asking cargo for two packages alone would choose
    other features for what they share with the rest, and compile all of it again."""
    built = quiet(["cargo", "test", *WORKSPACE, "--no-run", "--message-format", "json"])
    if built.returncode != 0:
        raise StepFailedError(built.stderr)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    binaries = [
        (Path(message["manifest_path"]).parent, message["executable"])
        for message in messages
        if message.get("executable") and message["profile"]["test"]
    ]
    chosen = [(folder, binary) for folder, binary in binaries if f"ciphervec-{folder.name}" in ON_BACKENDS]
    # ciphervec-he has no suite: what it computes on is encrypted with ciphervec-he-secret, in whose suite it is tested.
    if len(chosen) != 2 * len(ON_BACKENDS) - 1:
        raise StepFailedError(f"expected the unit tests and the suites of {ON_BACKENDS}, found {chosen}")
    for folder, binary in chosen:
        say(Path(binary).name)
        call([binary, "--quiet"], cwd=folder)
