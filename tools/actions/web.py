"""Installs, lints, builds and tests what is in js/. Skipped where there is no Node."""

from __future__ import annotations

import hashlib
import json
import shutil

from .base import BIN, ROOT, Action, StepFailedError, StepSkippedError, call, quiet, say

JS = ROOT / "js"
MODULES = JS / "node_modules"
WASM = JS / "client" / "src" / "wasm" / "ciphervec_bg.wasm"
PROGRAM = BIN / "ciphervec"
LEAST_NODE = (20, 19)


def need_node() -> None:
    """Raises what a step without Node says."""
    node = quiet(["node", "--version"]).stdout.strip() if shutil.which("node") else ""
    if not node or shutil.which("npm") is None:
        raise StepSkippedError(
            "no `node` and `npm` on the PATH; on Debian and Ubuntu: apt install nodejs npm"
        )
    has = tuple(int(part) for part in node.removeprefix("v").split(".")[:2])
    if has < LEAST_NODE:
        raise StepSkippedError(
            f"this is Node {node}, and {'.'.join(map(str, LEAST_NODE))} or newer is needed"
        )


def install() -> None:
    """npm ci, left out when the lock file is that of the last time."""
    need_node()
    lock = JS / "package-lock.json"
    packages = json.loads(lock.read_text())["packages"]
    # A lock file that names a registry would send everybody there.
    named = [name for name, entry in packages.items() if "://" in str(entry.get("resolved", ""))]
    if named:
        raise StepFailedError(
            f"package-lock.json says where {named[0]} is to be had; js/.npmrc leaves that out: "
            "`npm install` in js/ writes the file anew"
        )
    mark, state = MODULES / ".installed", hashlib.sha256(lock.read_bytes()).hexdigest()
    if mark.exists() and mark.read_text() == state:
        say("already installed: what package-lock.json names")
        return
    call(["npm", "ci", "--no-fund", "--no-audit"], cwd=JS)
    mark.write_text(state)


def npm(*arguments: str) -> Action:
    """`npm run …` in js/."""

    def action() -> None:
        need_node()
        call(["npm", "run", *arguments], cwd=JS)

    return action


def with_wasm(action: Action) -> Action:
    """What needs the wasm of crates/wasm, which a step before builds to js/client/src/wasm."""

    def checked() -> None:
        need_node()
        if not WASM.exists():
            raise StepSkippedError(
                f"no {WASM.relative_to(ROOT)}: it was not built, for the reason given there"
            )
        action()

    return checked


def need_server() -> None:
    """Raises what a step without the package in .venv, or without the server in it, says."""
    if not PROGRAM.exists():
        raise StepSkippedError(
            "no ciphervec in .venv, whose server it is to talk to; `make wheel` installs it"
        )
    if quiet([str(PROGRAM), "serve", "--help"]).returncode != 0:
        raise StepSkippedError(
            "the ciphervec in .venv was built without its server, as `make demo` does; `make wheel` installs one with it"
        )


def against_server(action: Action) -> Action:
    """What needs the server of .venv as well."""

    def checked() -> None:
        need_server()
        action()

    return with_wasm(checked)
