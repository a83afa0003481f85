"""Prepares and checks the site, pages of the repository, in target/site/public. `make site` runs it.

Pages are taken as they are, with links turned to where they are on the site; files that they link to get a page each.
docs/README.md says which pages there are, in which order, and what each is about: navigation and llms.txt are made of it.
The reference of TypeScript, HTTP and Rust, and the demo, are added where they were built; else their pages say how.
`python3 tools/website.py stage` writes what the generator reads; `check` adds what is no page, and looks at all of it.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from http_reference import http_reference
from website_links import dead, foreign

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "site"
OUT = ROOT / "target" / "site"
PUBLIC = OUT / "public"
OPENAPI = OUT / "openapi.json"
TYPEDOC = ROOT / "js" / "reference" / "dist"
DEMO = ROOT / "js" / "demo" / "dist"
COPIED = ("demo/app", "reference/rust/rustdoc")
"""On the site, made by other tools."""
TYPESCRIPT = "reference/typescript/index.md"
RUSTDOC = ROOT / "target" / "doc"
CRATES = (
    "ciphervec",
    "ciphervec_arith",
    "ciphervec_client",
    "ciphervec_he",
    "ciphervec_he_secret",
    "ciphervec_owner",
    "ciphervec_server",
)
NOTEBOOKS = ROOT / "examples" / "notebooks"
RESULTS = ROOT / "benches" / "results"
DEMO_POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "
    "worker-src 'self'; connect-src 'self' https: http://127.0.0.1:* http://localhost:*; style-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'\">"
)
"""As js/demo/vite.config.ts sends it, but for the server, which is the visitor's own."""
INDEX = "docs/README.md"
UNLISTED = ("files", "examples", "deploy", "benches")
"""Folders of pages that show files as they are; other pages lead to them."""
FENCE = re.compile(r"^( *)(```+)[^`\n]*\n.*?^\1\2$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
CALLED = re.compile(r"\[([\w-]+\.md)\]\(((?:[\w./-]+/)?\1)(?=[#)])")
"""A link that is called like the file it leads to; on the site it has the page's title."""
LANGUAGES = {
    "py": "python",
    "yml": "yaml",
    "yaml": "yaml",
    "json": "json",
    "ipynb": "json",
    "toml": "toml",
    "sh": "bash",
}
"""Of files that get a page."""


# Where things are on the site.


def pages() -> dict[str, str]:
    """The repository's pages, and where on the site each is."""
    moved = {"README.md": "index.md", INDEX: "pages.md", "SECURITY.md": "security/index.md"}
    root = [path.name for path in ROOT.glob("*.md")]
    docs = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    return {page: moved.get(page, page.removeprefix("docs/").lower()) for page in sorted([*root, *docs])}


class Stage:
    """What the generator reads, as it grows: pages, and the files and folders that they link to."""

    def __init__(self) -> None:
        self.places = {**pages(), "docs/security": "security/index.md"}
        self.places |= {
            f"benches/results/{path.name}": f"results/{path.name}" for path in RESULTS.glob("*.md")
        }
        self.written: dict[str, str] = {}
        self.copied: dict[str, Path] = {}

    def place(self, target: str) -> str:
        """Where a file or folder of the repository is on the site; one that has no place yet gets a page. Raises
        FileNotFoundError."""
        if target not in self.places:
            path = ROOT / target
            if not path.exists():
                raise FileNotFoundError(target)
            if target.startswith("docs/") and path.is_file():
                self.places[target] = target.removeprefix("docs/")
                self.copied[self.places[target]] = path
            else:
                name = target.removeprefix("docs/")
                self.places[target] = f"{name}/index.md" if path.is_dir() else f"files/{name}.md"
                self.written[self.places[target]] = (
                    self.listing(target) if path.is_dir() else shown(path, target)
                )
        return self.places[target]

    def listing(self, folder: str) -> str:
        """A page that lists what is in a folder."""
        here = f"{folder.removeprefix('docs/')}/index.md"
        name = folder.removeprefix("docs/")
        rows = [f"# {name[0].upper()}{name[1:]}\n"]
        for path in sorted((ROOT / folder).iterdir()):
            target = path.relative_to(ROOT).as_posix()
            if path.name.startswith((".", "_")) or (path.is_dir() and not any(path.iterdir())):
                continue
            page = path.suffix == ".md"
            says = "" if page or not about(path) else f": {about(path)}"
            rows.append(
                f"- [{about(path) if page else path.name}]({relative(self.place(target), here)}){says}"
            )
        return "\n".join(rows) + "\n"

    def turned(self, text: str, page: str, here: str) -> str:
        """A page's text with its links as they are on the site. Raises FileNotFoundError for one that leads nowhere."""

        def path(link: str) -> str:
            return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))

        def call(link: re.Match[str]) -> str:
            return (
                f"[{about(ROOT / path(link[2]))}]({link[2]}" if (ROOT / path(link[2])).exists() else link[0]
            )

        def turn(link: re.Match[str]) -> str:
            return relative(self.place(path(link[1])), here) + (link[2] or "")

        return outside_code(text, lambda prose: LINK.sub(turn, CALLED.sub(call, strict(prose))))

    def write(self, folder: Path) -> None:
        for name, text in self.written.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        for name, path in self.copied.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)


def relative(place: str, here: str) -> str:
    return posixpath.relpath(place, posixpath.dirname(here) or ".")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """A text with what is outside of its blocks of code changed."""
    parts, end = [], 0
    for block in FENCE.finditer(text):
        parts += [change(text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, change(text[end:])])


def strict(prose: str) -> str:
    """Markdown as Python's reads it, which is stricter than GitHub's: a blank line before a list, four spaces within."""
    prose = prose.replace("][", "]\\[")  # M[j][k]: no page has links by reference
    prose = re.sub(r"(?m)^ {2,3}(?=(?:[-*]|\d+\.) )", "    ", prose)
    return re.sub(r"(?m)^(?![-*#|>\s]|\d+\. )(.+\n(?=[-*] )|.+:\n(?=1\. ))", r"\1\n", prose)


def shown(path: Path, name: str) -> str:
    """A page with a file's text. Searches leave it out."""
    language = LANGUAGES.get(path.suffix.removeprefix("."), "text")
    text = path.read_text(encoding="utf-8").rstrip()
    return f"---\nsearch:\n  exclude: true\n---\n\n# {name}\n\n````{language}\n{text}\n````\n"


def about(path: Path) -> str:
    """What a page's heading, or a program's first sentence, says that the file is."""
    if path.suffix not in (".py", ".md"):
        return ""
    first = path.read_text(encoding="utf-8").lstrip('#" ').partition("\n\n")[0].partition('"""')[0]
    first = re.sub(r"^\d+\. ", "", " ".join(first.split()))
    return (first if path.suffix == ".md" else first.partition(". ")[0]).replace("|", "\\|")


# What the pages are, in order.


def chapters() -> dict[str, list[tuple[str, str]]]:
    """Of docs/README.md: by heading the pages that it lists, and what it says of each. A page is listed once."""
    found: dict[str, list[tuple[str, str]]] = {}
    seen: set[str] = set()
    heading = ""
    for line in (ROOT / INDEX).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ").strip()
            continue
        for target, _ in LINK.findall(line):
            page = posixpath.normpath(posixpath.join("docs", target))
            says = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line.strip("| ").rpartition(" | ")[2])
            if page in pages() and page not in seen and heading:
                seen.add(page)
                found.setdefault(heading, []).append((page, says))
    return found


def navigation(notebooks: list[str], results: list[str], reference: list[Any]) -> list[Any]:
    """Every page once."""
    places = pages()
    nav: list[Any] = [{"Home": "index.md"}, {"Demo": "demo.md"}]
    listed = {"README.md", INDEX}
    for heading, rows in chapters().items():
        nav.append({heading: [places[page] for page, _ in rows]})
        listed |= {page for page, _ in rows}
    decisions = [page for page in places if page.startswith("docs/decisions/")]
    others = [page for page in places if page not in {*listed, *decisions}]
    nav[-1][next(iter(nav[-1]))] += [
        *(places[page] for page in others),
        {"Decisions": ["decisions/index.md", *(places[page] for page in decisions)]},
    ]
    return [
        *nav,
        {"Notebooks": notebooks},
        {"Results": results},
        {"Reference": reference},
        {"All pages": "pages.md"},
    ]


def heading(page: Path) -> str:
    """What a page calls itself, without marks."""
    found = re.search(r"(?m)^# (.+)$", page.read_text(encoding="utf-8"))
    return re.sub(r"[`*\\]", "", found[1]) if found else ""


def named(nav: list[Any]) -> Iterator[str]:
    """The pages of a navigation."""
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        else:
            for inner in entry.values():
                yield from named(inner if isinstance(inner, list) else [inner])


# What is made of other things than pages.


def notebook(path: Path) -> str:
    """A notebook as a page: its texts, its code, and what the code printed when it ran."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"]).strip()
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        printed = "".join(
            "".join(output.get("text") or output.get("data", {}).get("text/plain", ""))
            for output in cell.get("outputs", [])
        ).rstrip()
        if printed:
            parts.append(f"```text\n{printed}\n```")
    name = path.relative_to(ROOT).as_posix()
    return (
        "\n\n".join([*parts, f"This page is the notebook [`{name}`]({path.name}), which the tests run."])
        + "\n"
    )


def measured(here: Stage, missing: list[str]) -> list[str]:
    """A page for every stored result, and one with the pictures of those that were drawn."""
    rows = [
        "# Results",
        "What `make bench`, `make bench-web` and `make reproduce` wrote. [Benchmarks](../benchmarks.md) explains it.",
    ]
    built(RESULTS / "search-1-query.png", "`make pictures`", missing)
    for path in sorted(RESULTS.glob("*.md")):
        text, picture = path.read_text(encoding="utf-8"), path.with_suffix(".png")
        image = f"[![{path.stem}]({picture.name})]({path.name})" if picture.exists() else ""
        rows.append(f"## [{path.stem}]({path.name})\n\n{image}")
        image = f"![{path.stem}]({picture.name})\n\n" if picture.exists() else ""
        here.written[f"results/{path.name}"] = f"# {path.stem}\n\n{image}{text}"
        if picture.exists():
            here.copied[f"results/{picture.name}"] = picture
    here.written["results/index.md"] = "\n\n".join(rows) + "\n"
    return ["results/index.md", *(f"results/{path.name}" for path in sorted(RESULTS.glob("*.md")))]


def typescript() -> dict[str, str]:
    """TypeDoc's pages under names that say what is in them."""
    pages = {}
    for name, called, title in (
        ("index", "index", "TypeScript"),
        ("index-1", "client", "@ciphervec/client"),
        ("search", "search", "@ciphervec/client/search"),
        ("lookup", "lookup", "@ciphervec/client/lookup"),
    ):
        text = (TYPEDOC / f"{name}.md").read_text(encoding="utf-8").replace("index-1.md", "client.md")
        text = outside_code(text, lambda prose: prose.replace("[]", r"\[\]"))
        pages[f"reference/typescript/{called}.md"] = re.sub(r"\A# .*", f"# {title}", text)
    return pages


def without(title: str, how: str) -> str:
    return f"# {title}\n\nThis copy of the site was built without it. It takes {how}.\n"


def built(place: Path, how: str, missing: list[str]) -> bool:
    """Whether something was built; else how it is, for the pages and for the terminal."""
    if not place.exists():
        missing.append(f"{place.relative_to(ROOT)}: {how}")
    return place.exists()


# The steps.


def version() -> str:
    found = re.search(r'(?m)^version = "([^"]+)"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def stage(folder: Path = OUT, address: str | None = None) -> list[str]:
    """Write what the generator reads; return what is left out, and how to have it."""
    address = (address or os.environ.get("SITE_URL") or "http://localhost:8000").rstrip("/") + "/"
    docs = folder / "docs"
    shutil.rmtree(docs, ignore_errors=True)
    shutil.copytree(SOURCE / "pages", docs)
    shutil.rmtree(folder / "theme", ignore_errors=True)
    shutil.copytree(SOURCE / "theme", folder / "theme")
    here = Stage()
    missing: list[str] = []
    for page, place in pages().items():
        here.written[place] = here.turned((ROOT / page).read_text(encoding="utf-8"), page, place)
    here.place("docs/decisions")
    results = measured(here, missing)

    books = []
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        books.append(f"notebooks/{path.stem}.md")
        here.copied[f"notebooks/{path.name}"] = path
        here.written[books[-1]] = here.turned(notebook(path), f"examples/notebooks/{path.name}", books[-1])
        here.places[f"examples/notebooks/{path.name}"] = f"notebooks/{path.name}"
    python = re.findall(
        r"\]\((python/\w+\.md)\)", (SOURCE / "pages/reference/index.md").read_text(encoding="utf-8")
    )

    written = here.written
    how = "a wheel with the server in .venv: `make wheel`, then `make site`"
    written["reference/http.md"] = (
        http_reference(json.loads(OPENAPI.read_text(encoding="utf-8")))
        if built(OPENAPI, how, missing)
        else without("HTTP", how)
    )
    how = "Node and `npm ci` in `js/`"
    written |= (
        typescript()
        if built(TYPEDOC / "index.md", how, missing)
        else {TYPESCRIPT: without("TypeScript", how)}
    )
    pages_of_it = [
        TYPESCRIPT,
        *sorted(name for name in written if name.startswith("reference/typescript/") and name != TYPESCRIPT),
    ]
    fill(docs / "reference/rust.md", "rustdoc", RUSTDOC / "ciphervec/index.html", "cargo doc --no-deps --all-features", missing,
         "\n".join(f"- [{crate.replace('_', '-')}](rust/rustdoc/{crate}/index.html)" for crate in CRATES))  # fmt: skip
    fill(
        docs / "demo.md",
        "demo",
        DEMO / "index.html",
        "make demo-web",
        missing,
        "[Open the page](demo/app/index.html?server=http://127.0.0.1:8707){ .md-button .md-button--primary } "
        "[Photos](demo/app/photos.html?server=http://127.0.0.1:8707){ .md-button }",
    )
    demo, origin = docs / "demo.md", "{0.scheme}://{0.netloc}".format(urlsplit(address))
    demo.write_text(demo.read_text(encoding="utf-8").replace("<!-- origin -->", origin), encoding="utf-8")
    here.write(docs)

    nav = navigation(
        books,
        results,
        [
            "reference/index.md",
            {"Python": [f"reference/{name}" for name in python]},
            {"TypeScript": pages_of_it},
            "reference/http.md",
            "reference/rust.md",
        ],
    )
    write_settings(folder, address, nav)
    return missing


def fill(page: Path, mark: str, needs: Path, how: str, missing: list[str], text: str) -> None:
    """A page with its mark replaced by a text, or by how to build what it needs."""
    there = built(needs, f"`{how}`", missing)
    text = text if there else f"This copy of the site was built without it; `{how}` in a clone has it."
    page.write_text(page.read_text(encoding="utf-8").replace(f"<!-- {mark} -->", text), encoding="utf-8")


def write_settings(folder: Path, address: str, nav: list[Any]) -> None:
    places = pages()
    sections = {
        heading: [{places[page]: says} for page, says in rows] for heading, rows in chapters().items()
    }
    rest = [name for name in named(nav) if not any(name in one for rows in sections.values() for one in rows)]
    sections["More"] = [{name: ""} for name in rest]
    made = {
        "site_url": address,
        "site_name": f"ciphervec {version()}",
        "nav": nav,
        "plugins.llmstxt": {"full_output": "llms-full.txt", "sections": sections},
    }
    text = (SOURCE / "zensical.toml").read_text(encoding="utf-8").replace('site_name = "ciphervec"\n', "")
    own = "".join(f"{key} = {toml(value)}\n" for key, value in made.items())
    text = text.replace("[project]\n", f"[project]\n{own}", 1).replace('"PYTHON"', toml(str(ROOT / "python")))
    (folder / "zensical.toml").write_text(text, encoding="utf-8")


def toml(value: Any) -> str:
    """JSON's texts are TOML's; tables and lists are written in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def finish(public: Path = PUBLIC) -> None:
    """Add what is no page: the demo and rustdoc, as they were built."""
    if (DEMO / "index.html").exists():
        shutil.copytree(DEMO, public / COPIED[0], dirs_exist_ok=True)
        for page in (public / COPIED[0]).glob("*.html"):
            text = page.read_text(encoding="utf-8")
            page.write_text(text.replace("<head>", f"<head>{DEMO_POLICY}", 1), encoding="utf-8")
    if (RUSTDOC / "ciphervec/index.html").exists():
        for folder in (*CRATES, "static.files", "search.index", "src", "trait.impl", "type.impl"):
            if (RUSTDOC / folder).exists():
                shutil.copytree(RUSTDOC / folder, public / COPIED[1] / folder, dirs_exist_ok=True)
        for file in RUSTDOC.glob("*.*"):
            if file.is_file():
                shutil.copyfile(file, public / COPIED[1] / file.name)


def check(public: Path = PUBLIC) -> list[str]:
    """What is wrong with the built site: what it loads from other hosts, and pages that llms.txt lacks."""
    wrong = []
    # A page about a file of HTML is a folder of that name.
    for path in sorted(path for kind in ("*.html", "*.css") for path in public.rglob(kind) if path.is_file()):
        text = path.read_text(encoding="utf-8")
        loads = foreign(text, path.suffix == ".css") if "//" in text else []
        if path.name != "404.html" and not any(path.is_relative_to(public / folder) for folder in COPIED):
            wrong += [f"{path.relative_to(public)} leads to {one}" for one in dead(text, path, public)]
        wrong += [f"{path.relative_to(public)} loads {one}" for one in loads]
    index = (public / "llms.txt").read_text(encoding="utf-8")
    full = re.sub(r"[`*\\]", "", (public / "llms-full.txt").read_text(encoding="utf-8"))
    for page in sorted((OUT / "docs").rglob("*.md")):
        name = page.relative_to(OUT / "docs").as_posix()
        if name.split("/")[0] in UNLISTED:
            continue
        if (
            f"/{name.removesuffix('index.md').removesuffix('.md').rstrip('/')}/index.md>".replace("//", "/")
            not in index
        ):
            wrong.append(f"llms.txt does not name {name}")
        if f"# {heading(page)}" not in full:
            wrong.append(f"llms-full.txt lacks {name}")
    return wrong


def main(arguments: list[str]) -> int:
    match arguments:
        case ["stage"]:
            missing = stage()
            for line in missing:
                print(f"left out: {line}")
            return 1 if missing and os.environ.get("SITE_WHOLE") else 0
        case ["check"]:
            finish()
            wrong = check()
            print("\n".join(wrong) or f"{len(list(PUBLIC.rglob('*.html')))} pages, nothing from other hosts")
            return 1 if wrong else 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
