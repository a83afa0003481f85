"""The tables of docs/browser.md that say what one client has and the other lacks are about the clients as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ciphervec import Collection, HttpClient, PrivateTable, PrivateTableClient
from ciphervec.http import RemoteTable

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "browser.md"
SOURCES = ROOT / "js" / "client" / "src"
pytestmark = pytest.mark.skipif(not DOCUMENT.exists(), reason="needs the repository, not only the wheel")


def _named(title: str, column: int) -> set[str]:
    """The words in one column of the table with this title."""
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = text.split(f"| {title} | Python | JavaScript |\n")[1].split("\n\n")[0].splitlines()[1:]
    return {word for row in rows for word in re.findall(r"`(\w+)`", row.split(" | ")[column])}


BASES = {"Held": "held.ts", "SearchClient": "search-client.ts", "SearchCollection": "search-collection.ts"}
"""Files of the classes that others extend."""


def _methods(source: str, *names: str) -> set[str]:
    """Public methods and properties of classes in TypeScript, with those that they inherit."""
    text = (SOURCES / source).read_text(encoding="utf-8")
    classes = [re.split(rf"\nexport (?:abstract )?class {name}\b", text)[1].split("\n}")[0] for name in names]
    bodies = "\n".join(classes)
    for base in BASES.keys() & set(re.findall(r"^ extends (\w+)", bodies, re.MULTILINE)):
        bodies += (SOURCES / BASES[base]).read_text(encoding="utf-8")
    found = re.findall(r"^  (?:static )?(?:async |get )?([a-z]\w*)\(", bodies, re.MULTILINE)
    return set(found) - {"constructor"}


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda letter: letter[1].upper(), name)


@pytest.mark.parametrize(
    ("title", "python", "source", "classes"),
    [
        ("a collection's", [Collection], "collection.ts", ["Collection"]),
        ("a client's", [HttpClient], "client.ts", ["Client"]),
        (
            "a [private table](private-tables.md)'s",
            [PrivateTable, PrivateTableClient, RemoteTable],
            "tables.ts",
            ["Table", "PrivateTable", "RemoteTable"],
        ),
    ],
)
def test_the_table_names_what_one_client_lacks_and_nothing_else(
    title: str, python: list[type], source: str, classes: list[str]
) -> None:
    ours = {name for one in python for name in dir(one) if not name.startswith("_")}
    theirs = _methods(source, *classes)
    assert len(theirs) >= 5, "the source was read"
    assert _named(title, 1) == {name for name in ours if _camel(name) not in theirs}
    assert _named(title, 2) == theirs - {_camel(name) for name in ours}


def test_the_table_of_a_page_that_searches_names_all_that_it_has() -> None:
    text = DOCUMENT.read_text(encoding="utf-8").split("| class | has |\n")[1].split("\n\n")[0]
    told = [set(re.findall(r"`(\w+)`", row)) for row in text.splitlines()[1:]]
    client = _methods("search-client.ts", "SearchClient")
    collection = _methods("search-collection.ts", "SearchCollection")
    assert told == [client | {"Client"}, collection | {"Collection"}]
