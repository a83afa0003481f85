"""Cargo's dependency list in, an error for any licence that is not permissive out, or for texts in
LICENSE-THIRD-PARTY, which is part of wheels, that are not those of the packages. Runs in `make test`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

THIRD_PARTY = Path(__file__).resolve().parents[1] / "LICENSE-THIRD-PARTY"
WHEEL = "ciphervec-python"
RULE = "-" * 80
PERMISSIVE = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause",
    "BSL-1.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "Unicode-3.0", "Unlicense", "Zlib",
    "CDLA-Permissive-2.0",  # for data: the list of certificate authorities
}  # fmt: skip


def permitted(expression: str) -> bool:
    """An SPDX expression is fine when one side of every OR, and both sides of every AND, are on the list."""
    expression = expression.replace("/", " OR ").strip()
    while expression.startswith("(") and expression.endswith(")") and balanced(expression[1:-1]):
        expression = expression[1:-1].strip()
    for operator, combine in ((" OR ", any), (" AND ", all)):
        parts = split(expression, operator)
        if len(parts) > 1:
            return combine(permitted(part) for part in parts)
    return re.sub(r"\s+", " ", expression) in PERMISSIVE


def balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def split(expression: str, operator: str) -> list[str]:
    """Split at an operator outside of brackets."""
    parts, depth, last, at = [], 0, 0, 0
    while at < len(expression):
        depth += (expression[at] == "(") - (expression[at] == ")")
        if depth == 0 and expression.startswith(operator, at):
            parts.append(expression[last:at])
            at += len(operator)
            last = at
        else:
            at += 1
    return [*parts, expression[last:]]


def shipped(metadata: Any) -> list[Any]:
    """The packages whose code is in the wheel: what the native module needs to run, on any system."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    todo = [one["id"] for one in packages.values() if one["name"] == WHEEL]
    seen: set[str] = set()
    while todo:
        here = todo.pop()
        if here not in seen:
            seen.add(here)
            normal = (d for d in nodes[here]["deps"] if any(k["kind"] is None for k in d["dep_kinds"]))
            todo += [dependency["pkg"] for dependency in normal]
    theirs = [packages[one] for one in seen if packages[one]["source"]]
    return sorted(theirs, key=lambda package: (package["name"], package["version"]))


def texts(packages: Iterable[Any]) -> str:
    """What has to go with their code: of a package that is to be had under Apache-2.0 its notices, as that
    text is said once; of any other its own licence."""
    apache: list[str] = []
    own: dict[str, tuple[str, list[str]]] = {}
    for package in packages:
        called = f"{package['name']} {package['version']}"
        chosen = "Apache-2.0" in re.split(r" OR |/", package["license"] or "")
        if chosen:
            apache.append(called)
        folder = Path(package["manifest_path"]).parent
        kinds = ("NOTICE",) if chosen else ("LICEN", "COPYING", "COPYRIGHT", "UNLICEN", "NOTICE")
        files = sorted(
            file for file in folder.iterdir() if file.is_file() and file.name.upper().startswith(kinds)
        )
        if not files and not chosen:
            own.setdefault(package["license"], (f"Licensed under {package['license']}.", []))[1].append(
                called
            )
        for file in files:
            text = "\n".join(line.rstrip() for line in file.read_text(errors="replace").splitlines()).strip()
            own.setdefault(" ".join(text.split()), (text, []))[1].append(called)
    parts = [
        "Rust packages whose code is part of the wheels of ciphervec, and their licences. Written by "
        "tools/licences.py --write.\n",
        f"{RULE}\nUnder Apache-2.0, whose text is in LICENSE-APACHE:\n\n" + "\n".join(apache) + "\n",
    ]
    parts += [f"{RULE}\n{', '.join(names)}:\n\n{text}\n" for text, names in own.values()]
    return "\n".join(parts)


def main() -> int:
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked"], check=True, capture_output=True, text=True
    )
    found = json.loads(metadata.stdout)
    packages = found["packages"]
    bad = [
        (p["name"], p["version"], p["license"])
        for p in packages
        if not permitted(p["license"] or "none stated")
    ]
    for name, version, licence in bad:
        print(f"{name} {version}: {licence} is not on the list in tools/licences.py", file=sys.stderr)
    needed = texts(shipped(found))
    if "--write" in sys.argv:
        THIRD_PARTY.write_text(needed)
    current = THIRD_PARTY.exists() and THIRD_PARTY.read_text() == needed
    if not current:
        print(f"{THIRD_PARTY.name} is not current; run: python3 tools/licences.py --write", file=sys.stderr)
    print(f"{len(packages) - len(bad)} of {len(packages)} packages are permissively licensed")
    return 1 if bad or not current else 0


if __name__ == "__main__":
    sys.exit(main())
