"""Cargo's dependency list in, an error for any licence that is not permissive out, or for texts in the files
LICENSE-THIRD-PARTY, one of wheels and one of the npm package, that are not those of the packages. Runs in `make test`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RULE = "-" * 80
PERMISSIVE = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause",
    "BSL-1.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "Unicode-3.0", "Unlicense", "Zlib",
    "CDLA-Permissive-2.0",  # for data: the list of certificate authorities
}  # fmt: skip


@dataclass(frozen=True)
class Shipment:
    """A file of licences, and what goes out with it: the crate that it is built from, and for which system."""

    file: Path
    says: str
    crate: str
    platform: str = "all"
    features: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    """Files of others that are no Rust, under Apache-2.0."""


SHIPMENTS = [
    Shipment(
        ROOT / "LICENSE-THIRD-PARTY",
        "the wheels of ciphervec",
        "ciphervec-python",
        data=("BERT's uncased vocabulary, by Google: ciphervec/collections/embedding/minilm_vocabulary.txt",),
    ),
    Shipment(
        ROOT / "js" / "client" / "LICENSE-THIRD-PARTY",
        "the WebAssembly of @ciphervec/client",
        "ciphervec-wasm",
        "wasm32-unknown-unknown",
        ("--no-default-features", "--features", "search,lookup"),
    ),
]


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


def cargo(*command: str) -> str:
    """What cargo says."""
    return subprocess.run(["cargo", *command, "--locked"], check=True, capture_output=True, text=True).stdout


def shipped(packages: Iterable[Any], shipment: Shipment) -> list[Any]:
    """The packages whose code is in what ships: what the crate, with the features it ships with, needs to run."""
    tree = cargo("tree", "--package", shipment.crate, *shipment.features, "--target", shipment.platform,
                 "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}")  # fmt: skip
    needed = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    theirs = [one for one in packages if one["source"] and (one["name"], f"v{one['version']}") in needed]
    return sorted(theirs, key=lambda package: (package["name"], package["version"]))


def texts(packages: Iterable[Any], says: str, data: Iterable[str] = ()) -> str:
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
        f"Rust packages whose code is part of {says}, and their licences. Written by "
        "tools/licences.py --write.\n",
        f"{RULE}\nUnder Apache-2.0, whose text is in LICENSE-APACHE:\n\n"
        + "\n".join([*apache, *data])
        + "\n",
    ]
    parts += [f"{RULE}\n{', '.join(names)}:\n\n{text}\n" for text, names in own.values()]
    return "\n".join(parts)


def main() -> int:
    packages = json.loads(cargo("metadata", "--format-version", "1"))["packages"]
    bad = [
        (p["name"], p["version"], p["license"])
        for p in packages
        if not permitted(p["license"] or "none stated")
    ]
    for name, version, licence in bad:
        print(f"{name} {version}: {licence} is not on the list in tools/licences.py", file=sys.stderr)
    outdated = 0
    for shipment in SHIPMENTS:
        needed = texts(shipped(packages, shipment), shipment.says, shipment.data)
        if "--write" in sys.argv:
            shipment.file.write_text(needed)
        if not shipment.file.exists() or shipment.file.read_text() != needed:
            outdated += 1
            name = shipment.file.relative_to(ROOT)
            print(f"{name} is not current; run: python3 tools/licences.py --write", file=sys.stderr)
    print(f"{len(packages) - len(bad)} of {len(packages)} packages are permissively licensed")
    return 1 if bad or outdated else 0


if __name__ == "__main__":
    sys.exit(main())
