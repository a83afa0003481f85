"""The version of a release: whether all files say the same, setting it in all of them, and what CHANGELOG.md tells of it.

`python3 tools/release.py check 0.2.0`, `set 0.2.0`, `notes 0.2.0`. What is set is committed and tagged by hand:
CONTRIBUTING.md, "A release". Standard library only.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NUMBER = r"(\d+\.\d+\.\d+(?:-[0-9a-z.]+)?)"
PLACES = {
    "Cargo.toml": [rf'(?m)^version = "{NUMBER}"$', rf'path = "crates/[\w-]+", version = "{NUMBER}"'],
    "CITATION.cff": [rf"(?m)^version: {NUMBER}$"],
    "deploy/chart/Chart.yaml": [rf"(?m)^(?:version|appVersion): {NUMBER}$"],
    **{
        f"js/{name}/package.json": [rf'(?m)^  "version": "{NUMBER}"']
        for name in ("client", "console", "demo", "browser")
    },
}
"""Where it stands, by patterns whose only group it is. The wheel takes it from Cargo.toml."""


def found() -> list[tuple[str, str]]:
    """Every place and what it says."""
    places = [
        (name, said)
        for name, patterns in PLACES.items()
        for pattern in patterns
        for said in re.findall(pattern, (ROOT / name).read_text())
    ]
    missing = set(PLACES) - {name for name, _ in places}
    if missing:
        raise SystemExit(f"no version found in {', '.join(sorted(missing))}")
    return places


def check(version: str) -> None:
    """Ends the program with a list of the places that say something else."""
    wrong = [f"{name} says {said}" for name, said in found() if said != version]
    if wrong:
        raise SystemExit(
            f"{version} expected: {'; '.join(wrong)}. Run `python3 tools/release.py set {version}`."
        )
    notes(version)


def put(version: str) -> None:
    """Writes it in every place; lock files follow with the next build."""
    if not re.fullmatch(NUMBER, version):
        raise SystemExit(f"expected a version such as 0.2.0, got {version!r}")
    for name, patterns in PLACES.items():
        text = (ROOT / name).read_text()
        for pattern in patterns:
            text = re.sub(pattern, lambda match: match[0].replace(match[1], version), text)
        (ROOT / name).write_text(text)


def notes(version: str) -> str:
    """The section of the changelog that is about it."""
    text = (ROOT / "CHANGELOG.md").read_text()
    section = re.search(rf"(?ms)^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", text)
    if section is None or not section[1].strip():
        raise SystemExit(f"CHANGELOG.md has no section {version}; the one under way is called Unreleased")
    return section[1].strip()


def main(arguments: list[str]) -> None:
    match arguments:
        case ["check", version]:
            check(version)
        case ["set", version]:
            put(version)
        case ["notes", version]:
            print(notes(version))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
