"""The version of a release, for whoever makes one: one number in every file, lock files too, and a section of CHANGELOG.md.

`make version V=0.2.0`, which is `python3 tools/release.py set 0.2.0`, writes it everywhere and gives what the changelog
calls Unreleased that number and today's date; `check 0.2.0` lists the places that say something else, `notes 0.2.0`
prints the section. Committed and tagged by hand: CONTRIBUTING.md, "A release". Standard library only.
"""

from __future__ import annotations

import datetime
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NUMBER = r"(\d+\.\d+\.\d+(?:-[0-9a-z.]+)?)"
CRATES = rf'(?m)^name = "ciphervec(?:-(?!fuzz|bench-)[\w-]+)?"\nversion = "{NUMBER}"$'
PACKAGES = rf'"@ciphervec/[\w-]+": "{NUMBER}"'
PLACES = {
    "Cargo.toml": [rf'(?m)^version = "{NUMBER}"$', rf'path = "crates/[\w-]+", version = "{NUMBER}"'],
    "Cargo.lock": [CRATES],
    "fuzz/Cargo.lock": [CRATES],
    "benches/ntt/Cargo.lock": [CRATES],
    "benches/timing/Cargo.lock": [CRATES],
    "CITATION.cff": [rf"(?m)^version: {NUMBER}$"],
    "deploy/chart/Chart.yaml": [rf"(?m)^(?:version|appVersion): {NUMBER}$"],
    "lab/pyproject.toml": [rf'(?m)^version = "{NUMBER}"$', rf'"ciphervec\[[\w,]+\]=={NUMBER}"'],
    "js/package-lock.json": [
        rf'(?m)^      "name": "@ciphervec/[\w-]+",\n      "version": "{NUMBER}"',
        PACKAGES,
    ],
    "js/client/package.json": [rf'(?m)^  "version": "{NUMBER}"'],
    **{
        f"js/{name}/package.json": [rf'(?m)^  "version": "{NUMBER}"', PACKAGES]
        for name in ("console", "demo", "browser")
    },
}
"""Where it stands, by patterns whose only group it is. The wheel takes it from Cargo.toml."""
UNRELEASED = "## Unreleased\n"


def found(root: Path = ROOT) -> list[tuple[str, str]]:
    """Every place and what it says."""
    places = []
    for name, patterns in PLACES.items():
        text = (root / name).read_text(encoding="utf-8")
        for pattern in patterns:
            said = re.findall(pattern, text)
            if not said:
                raise SystemExit(f"no version found in {name} by {pattern}")
            places += [(name, one) for one in said]
    return places


def check(version: str, root: Path = ROOT) -> None:
    """Ends the program with a list of the places that say something else."""
    wrong = [f"{name} says {said}" for name, said in found(root) if said != version]
    if wrong:
        raise SystemExit(
            f"{version} expected: {'; '.join(wrong)}. Run `python3 tools/release.py set {version}`."
        )
    notes(version, root)


def put(version: str, root: Path = ROOT, today: datetime.date | None = None) -> None:
    """Writes it in every place, and heads the changelog's entries with it, unless it has that section already."""
    if not re.fullmatch(NUMBER, version):
        raise SystemExit(f"expected a version such as 0.2.0, got {version!r}")
    for name, patterns in PLACES.items():
        text = (root / name).read_text(encoding="utf-8")
        for pattern in patterns:
            text = re.sub(pattern, lambda match: match[0].replace(match[1], version), text)
        (root / name).write_text(text, encoding="utf-8")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    if not re.search(rf"(?m)^## {re.escape(version)}\b", text):
        if UNRELEASED not in text:
            raise SystemExit(f"CHANGELOG.md has neither a section {version} nor one called Unreleased")
        day = today or datetime.datetime.now(tz=datetime.timezone.utc).date()
        changelog.write_text(
            text.replace(UNRELEASED, f"## {version} ({day:%d %B %Y})\n", 1), encoding="utf-8"
        )
    check(version, root)


def notes(version: str, root: Path = ROOT) -> str:
    """The section of the changelog that is about it."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
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
