"""Cargo's dependency list in, an error for any licence that is not permissive out. Runs in `make test`."""

from __future__ import annotations

import json
import re
import subprocess
import sys

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


def main() -> int:
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked"], check=True, capture_output=True, text=True
    )
    packages = json.loads(metadata.stdout)["packages"]
    bad = [
        (p["name"], p["version"], p["license"])
        for p in packages
        if not permitted(p["license"] or "none stated")
    ]
    for name, version, licence in bad:
        print(f"{name} {version}: {licence} is not on the list in tools/licences.py", file=sys.stderr)
    print(f"{len(packages) - len(bad)} of {len(packages)} packages are permissively licensed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
