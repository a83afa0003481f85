"""Finds what a built page loads from other hosts, and its links to files that are not there."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

TAG = re.compile(r"<\w[^>]*>")


class _Loads(HTMLParser):
    """What a page makes a browser fetch by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        names = {"link": ["href"], "a": [], "area": [], "form": []}.get(
            tag, ["src", "srcset", "data", "poster"]
        )
        if tag == "link" and (given.get("rel") or "") in ("canonical", "prev", "next", "alternate"):
            names = []
        self.found += [given[name] or "" for name in names if name in given]
        self.found += re.findall(r"url\(([^)]+)\)", given.get("style") or "")


def foreign(text: str, style: bool = False) -> list[str]:
    """Addresses on other hosts that a page, or a style sheet, makes a browser fetch."""
    if style:
        found = re.findall(r"url\(['\"]?([^)'\"]+)|@import\s+['\"]([^'\"]+)", text)
        loads = [one or other for one, other in found]
    else:
        parser = _Loads()
        parser.feed(" ".join(tag for tag in TAG.findall(text) if "//" in tag))
        loads = parser.found
    return [one for one in loads if re.match(r"(?:https?:)?//", one.strip())]


def dead(text: str, page: Path, public: Path) -> list[str]:
    """Links of a built page to files of the site that are not there: the generator looks at those to pages only."""
    found = []
    for link in re.findall(r'<a [^>]*?href="([^"#?]+)', text):
        if urlsplit(link).scheme or link.startswith("//"):
            continue
        target = public / link.removeprefix("/") if link.startswith("/") else page.parent / link
        if not (target / "index.html" if link.endswith(("/", ".")) else target).exists():
            found.append(link)
    return found
