"""What the site's generator reads: every page in the navigation and in llms.txt, every public name in the reference,
nothing from other hosts."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import ciphervec

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(
    not (ROOT / "site").exists(), reason="needs the repository, not only the wheel"
)


@pytest.fixture(scope="module")
def website() -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module("website")
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def staged(website: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    website.stage(folder, "https://ciphervec.example/docs")
    return folder


def settings(staged: Path) -> dict[str, Any]:
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    return tomllib.loads((staged / "zensical.toml").read_text(encoding="utf-8"))["project"]  # type: ignore[no-any-return]


def read_by_people(website: Any, staged: Path) -> set[str]:
    """All pages but those that show a file as it is, which other pages lead to."""
    docs = staged / "docs"
    named = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    return {name for name in named if name.split("/")[0] not in website.UNLISTED}


def test_the_navigation_has_every_page_once(website: Any, staged: Path) -> None:
    nav = list(website.named(settings(staged)["nav"]))
    assert len(nav) == len(set(nav)) >= 100
    assert set(nav) == read_by_people(website, staged)
    assert {"README.md", "SECURITY.md", "docs/api.md", "docs/security/attacks.md"} <= website.pages().keys()


def test_llms_txt_names_every_page_and_says_what_the_index_says(website: Any, staged: Path) -> None:
    made = settings(staged)
    sections = made["plugins"]["llmstxt"]["sections"]
    rows = {page: says for listed in sections.values() for row in listed for page, says in row.items()}
    assert rows.keys() == read_by_people(website, staged)
    assert rows["quickstart.md"] and rows["concepts.md"]
    assert made["site_url"] == "https://ciphervec.example/docs/"
    assert re.fullmatch(r"ciphervec \d+\.\d+\.\d+.*", made["site_name"]), "the header shows the version"


def test_the_index_of_pages_is_read_by_chapter(website: Any) -> None:
    chapters = website.chapters()
    assert len(chapters) >= 4
    listed = [page for rows in chapters.values() for page, _ in rows]
    assert len(listed) == len(set(listed)) >= 20
    assert all(says and "](" not in says for rows in chapters.values() for _, says in rows)


def test_links_are_turned_and_one_that_leads_nowhere_is_refused(website: Any) -> None:
    stage = website.Stage()
    text = "[a](../SECURITY.md#modes) [b](security/attacks.md) [c](../examples/texts.py) `[d](no.md)`"
    turned = stage.turned(text.replace("`[d](no.md)`", ""), "docs/api.md", "api.md")
    assert turned == "[a](security/index.md#modes) [b](security/attacks.md) [c](files/examples/texts.py.md) "
    assert "```python" in stage.written["files/examples/texts.py.md"]
    assert stage.turned("[security](api.md) [api.md](api.md#keys)", "docs/text.md", "text.md") == (
        "[security](api.md) [API by example](api.md#keys)"
    )
    code = "```md\n[a](nowhere.md)\n```\n"
    assert stage.turned(code, "docs/api.md", "api.md") == code
    with pytest.raises(FileNotFoundError, match=r"docs/nowhere\.md"):
        stage.turned("[a](nowhere.md)", "docs/api.md", "api.md")


def test_lists_are_lists_in_either_markdown(website: Any) -> None:
    assert website.strict("Two:\n- one\n  - inner\n- two\n") == "Two:\n\n- one\n    - inner\n- two\n"
    assert website.strict("M[j][k]") == "M[j]\\[k]"
    assert website.strict("Steps:\n1. one\n2. two") == "Steps:\n\n1. one\n2. two"
    assert website.strict("in release\n1. No list.") == "in release\n1. No list."


def test_pictures_are_as_they_are_drawn() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        pictures = importlib.import_module("pictures")
    finally:
        sys.path.pop(0)
    there = {path.stem: path.read_text(encoding="utf-8") for path in pictures.FOLDER.glob("*.svg")}
    assert there == {name: pictures.drawn(one) for name, one in pictures.PICTURES.items()}
    shown = "".join(
        path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *ROOT.glob("docs/apps/*.md")]
    )
    assert all(f"pictures/{name}.svg" in shown for name in there), "a page shows each"


def test_the_reference_has_every_public_name() -> None:
    pages = (ROOT / "site" / "pages" / "reference" / "python").glob("*.md")
    named = [name for page in pages for name in re.findall(r"(?m)^::: ciphervec\.(\w+)$", page.read_text())]
    assert len(named) == len(set(named))
    within = {
        inner
        for name in named
        for inner in getattr(getattr(ciphervec, name), "__all__", ())
        if name.islower()
    }
    lacking = {name for name in ciphervec.__all__ if name not in named and name not in within}
    assert lacking == {"__version__"}
    index = (ROOT / "site" / "pages" / "reference" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "site" / "pages" / "reference" / "python").glob("*.md"):
        assert f"(python/{page.name})" in index


def test_an_openapi_document_becomes_tables(website: Any) -> None:
    problem = {"$ref": "#/components/schemas/Problem"}
    text = website.http_reference(
        {
            "openapi": "3.1.0",
            "info": {"version": "9.9.9"},
            "paths": {
                "/v1/things/{id}": {
                    "get": {
                        "tags": ["things"],
                        "summary": "One thing.",
                        "parameters": [
                            {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
                        ],
                        "responses": {
                            "404": {
                                "description": "Not | there.",
                                "content": {"application/problem+json": {"schema": problem}},
                            }
                        },
                    }
                }
            },
            "components": {
                "schemas": {
                    "Problem": {
                        "description": "What went wrong.",
                        "required": ["status"],
                        "properties": {
                            "status": {"type": "integer"},
                            "details": {"items": {"type": ["string", "null"]}},
                        },
                    }
                }
            },
        }
    )
    assert "## things\n\n### GET `/v1/things/{id}`\n\nOne thing." in text
    assert "| `id` | path | string | yes |  |" in text
    assert "| 404 | `application/problem+json` [Problem](#problem) | Not \\| there. |" in text
    assert "| `details` | list of string or null |  |  |" in text


@pytest.mark.parametrize(
    "page",
    [
        '<script async src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//cdn.example/a.css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img src="http://pictures.example/a.png">',
        '<p style="background: url(https://pictures.example/a.png)">',
        '<iframe src="https://frames.example"></iframe>',
    ],
)
def test_what_a_page_loads_from_elsewhere_is_noticed(website: Any, page: str) -> None:
    assert len(website.foreign(f"<html>{page}</html>")) == 1


def test_links_to_elsewhere_load_nothing(website: Any) -> None:
    assert website.foreign('<a href="https://elsewhere.example">there</a><img src="/a.png">') == []
    assert website.foreign('<link rel="canonical" href="https://ciphervec.example/">') == []
    assert website.foreign(
        "@import 'https://fonts.example/a.css'; a { b: url(//c.example/d) }", style=True
    ) == [
        "https://fonts.example/a.css",
        "//c.example/d",
    ]


def test_a_link_to_a_file_that_is_not_there_is_noticed(website: Any, tmp_path: Path) -> None:
    (tmp_path / "demo" / "app").mkdir(parents=True)
    (tmp_path / "demo" / "app" / "index.html").touch()
    (tmp_path / "page").mkdir()
    page = tmp_path / "page" / "index.html"
    there = '<a class="b" href="../demo/app/index.html?server=x"><a href="../demo/app/#top"><a href="#top">'
    assert website.dead(f'{there}<a href="https://elsewhere.example/">', page, tmp_path) == []
    assert website.dead('<a href="../app/index.html?server=x">', page, tmp_path) == ["../app/index.html"]


def test_browsers_are_told_to_load_nothing_from_elsewhere() -> None:
    theme = (ROOT / "site" / "theme" / "main.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', theme)
    assert policy is not None
    assert policy[1].startswith("default-src 'self';") and "http" not in policy[1]


def test_the_built_site_is_whole(website: Any) -> None:
    if not (website.PUBLIC / "llms-full.txt").exists():
        pytest.skip("target/site/public is not there: `make site` builds it, and checks it")
    assert website.check() == []
