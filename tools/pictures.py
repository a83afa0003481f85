"""Pictures of who sees what, for readers of README.md and docs/apps/: drawn from `PICTURES`, and never edited by hand.

`python3 tools/pictures.py` writes docs/pictures/*.svg; python/tests/project/test_site.py fails where one is not as it is drawn.
"""

from __future__ import annotations

import textwrap
from html import escape
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WIDTH, STEP = 860, 30
WIDEST = 29
"""Characters of a line in a box, in the wider of the fonts."""
GREEN, RED, BLUE = "#2e7d4a", "#a33", "#2f6f9f"


class Side(NamedTuple):
    """A machine: its name, what is there, and what that comes to."""

    name: str
    has: list[str]
    sees: str


class Picture(NamedTuple):
    """Two machines, what travels between them (`>` to the right, `<` to the left), and what to remember."""

    ours: Side
    theirs: Side
    travels: list[tuple[str, str]]
    remark: str
    remember: str


PICTURES = {
    "who-sees-what": Picture(
        Side(
            "Your machine",
            ["one secret key, 32 bytes", "your vectors", "your queries", "scores and ranking"],
            "sees everything",
        ),
        Side(
            "Somebody else's machine",
            [
                "encrypted vectors",
                "public evaluation keys",
                "scores of every row,",
                "computed on ciphertexts",
            ],
            "has no key, sees no vector",
        ),
        [
            (">", "vectors, encrypted once"),
            (">", "a query, encrypted"),
            ("<", "every row's score, encrypted"),
        ],
        "so which rows are hits stays yours",
        "What the server learns in mode sealed: how many rows and queries, when, which segments, "
        "and which rows are equal in fields you chose to filter by.",
    ),
    "mail": Picture(
        Side(
            "Your machine",
            ["your mailbox and key", "the embedding model", "the ranking by words", "the language model"],
            "reads the letters",
        ),
        Side(
            "A server",
            [
                "encrypted passages, vectors,",
                "words; it compares vectors",
                "and hands out records,",
                "unseen which",
            ],
            "reads no letter, no question",
        ),
        [
            (">", "passages, encrypted once"),
            (">", "a question, encrypted"),
            (">", "which records, encrypted"),
            ("<", "those records, encrypted"),
        ],
        "",
        "The server learns how many passages there are, how long, and when you ask. "
        "It does not learn which letters answer.",
    ),
    "agents": Picture(
        Side(
            "Ann's and Bo's machines",
            [
                "a key each, and the crew's",
                "an agent and its model",
                "ciphervec mcp, which embeds",
                "and encrypts",
            ],
            "read their own and the crew's",
        ),
        Side(
            "A server",
            ["Ann's memory, encrypted", "Bo's memory, encrypted", "the crew's, encrypted", ""],
            "reads no memory, no question",
        ),
        [(">", "remember, share"), (">", "recall, encrypted"), ("<", "memories, encrypted")],
        "",
        "Bo's agent finds what Ann's has shared, and nothing else of hers. "
        "Who has the crew's key reads all of the crew's memory.",
    ),
    "photos": Picture(
        Side(
            "Your browser",
            ["your photos", "what describes them", "the key, in a Worker", "scores and ranking"],
            "sees everything",
        ),
        Side(
            "A server",
            ["encrypted vectors", "encrypted names and", "small pictures", ""],
            "sees no photo and no query",
        ),
        [
            (">", "vectors, encrypted once"),
            (">", "a photo to look for, encrypted"),
            ("<", "every photo's score, encrypted"),
        ],
        "",
        "The server learns how many photos there are and when you search. "
        "It does not learn what is in them, nor which are found.",
    ),
}


def text(x: int, y: int, words: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}"{more}>{escape(words)}</text>'


def box(side: Side, x: int, width: int, height: int, edge: str, ink: str) -> list[str]:
    assert max(map(len, (*side.has, side.sees))) <= WIDEST, f"a line of {side.name} is wider than its box"
    lines = [text(x + 20, 84 + STEP * i, words) for i, words in enumerate(side.has) if words]
    return [
        f'<rect x="{x}" y="20" width="{width}" height="{height}" rx="8" fill="#fff" stroke="{edge}" stroke-width="2"/>',
        text(x + 20, 50, side.name, ' font-weight="bold"'),
        *lines,
        text(x + 20, height - 2, side.sees, f' fill="{ink}"'),
    ]


def drawn(picture: Picture) -> str:
    """The picture as SVG, with what it says as its title, for those who don't see it."""
    rows = max(len(picture.ours.has), len(picture.theirs.has))
    height = 104 + STEP * rows
    arrows = []
    spacing = (height - 90) // max(1, len(picture.travels) - 1)
    for i, (way, words) in enumerate(picture.travels):
        y = 84 + min(54, spacing) * i
        path = f"M298 {y}H562" if way == ">" else f"M562 {y}H298"
        arrows += [
            f'<path d="{path}" stroke="{BLUE}" stroke-width="2" fill="none" marker-end="url(#tip)"/>',
            text(430, y - 9, words, ' text-anchor="middle"'),
        ]
        last = y
    if picture.remark:
        arrows.append(
            text(430, last + 22, picture.remark, ' text-anchor="middle" font-size="13" fill="#57606a"')
        )
    says = [
        text(430, height + 54 + 24 * i, line, ' text-anchor="middle"')
        for i, line in enumerate(textwrap.wrap(picture.remember, 100))
    ]
    whole = height + 54 + 24 * len(says)
    title = ". ".join(
        [
            f"{side.name}: {', '.join(filter(None, side.has)).replace(',,', ',')}; {side.sees}"
            for side in (picture.ours, picture.theirs)
        ]
        + [f"Between them: {', '.join(words for _, words in picture.travels)}", picture.remember]
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {whole}" width="{WIDTH}" height="{whole}"',
            '     role="img" aria-labelledby="title" font-family="Helvetica, Arial, sans-serif" font-size="15" fill="#1d2733">',
            f'<title id="title">{escape(title)}</title>',
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">',
            f'<path d="M0 0 10 5 0 10z" fill="{BLUE}"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{whole}" rx="10" fill="#f6f8fa"/>',
            *box(picture.ours, 20, 270, height, "#4f9d69", GREEN),
            *box(picture.theirs, 570, 270, height, RED, RED),
            *arrows,
            *says,
            "</svg>",
            "",
        ]
    )


def main() -> None:
    for name, picture in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(drawn(picture), encoding="utf-8")


if __name__ == "__main__":
    main()
