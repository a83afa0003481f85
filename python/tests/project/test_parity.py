"""The tables of docs/browser.md that say what one client has and the other lacks are about the clients as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ciphervec import Collection, HttpClient

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "browser.md"
SOURCES = ROOT / "js" / "client" / "src"
pytestmark = pytest.mark.skipif(not DOCUMENT.exists(), reason="needs the repository, not only the wheel")


def _named(title: str, column: int) -> set[str]:
    """The words in one column of the table with this title."""
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = text.split(f"| {title} | Python | JavaScript |\n")[1].split("\n\n")[0].splitlines()[1:]
    return {word for row in rows for word in re.findall(r"`(\w+)`", row.split(" | ")[column])}


def _methods(source: str, name: str) -> set[str]:
    """Public methods and properties of a class in TypeScript."""
    text = (SOURCES / source).read_text(encoding="utf-8")
    body = text.split(f"export class {name} ")[1].split("\n}")[0]
    found = re.findall(r"^  (?:async |get )?([a-z]\w*)\(", body, re.MULTILINE)
    return set(found) - {"constructor"}


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda letter: letter[1].upper(), name)


@pytest.mark.parametrize(
    ("title", "python", "source"),
    [("a collection's", Collection, "collection.ts"), ("a client's", HttpClient, "client.ts")],
)
def test_the_table_names_what_one_client_lacks_and_nothing_else(
    title: str, python: type, source: str
) -> None:
    ours = {name for name in dir(python) if not name.startswith("_")}
    theirs = _methods(source, "Collection" if source == "collection.ts" else "Client")
    assert len(theirs) >= 5, "the source was read"
    assert _named(title, 1) == {name for name in ours if _camel(name) not in theirs}
    assert _named(title, 2) == theirs - {_camel(name) for name in ours}
