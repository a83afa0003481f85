"""Rust sources in, their module graph out: which file takes which names from which. Standard library only.

A use leads to the file where the item is defined: re-exports are followed and are no uses themselves, unless the file
that re-exports a name uses it too. Comments, strings and what is compiled for tests alone do not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

Graph = dict[str, dict[str, set[str]]]
"""For each file, the files that it uses and the names that it takes from each."""

LITERAL = re.compile(
    r"""//[^\n]* | (?P<block>/\*) | b?r(?P<hashes>\#*)".*?"(?P=hashes) | [bc]?"(?:\\.|[^"\\])*"
    | b?'(?:\\[^\n]*?'|[^\\'\n]')""",
    re.VERBOSE | re.DOTALL,
)
TEST_ONLY = re.compile(r"#\[cfg\(\s*(?:test\s*\)|all\(\s*test\s*,[^\]]*)\]")
ATTRIBUTE = re.compile(r"\s*#\[[^\]]*\]")
VISIBLE = r"(?P<visible>\bpub(?:\s*\([^)]*\))?\s+)?"
ITEM = re.compile(
    r"\s*"
    + VISIBLE
    + r"(?:(?:default|unsafe|async|const|static|extern|type|fn|mod|struct|enum|union|trait|impl|use)"
    r"\b|macro_rules!)"
)
DEFINED = re.compile(
    r"\b(?:fn|struct|enum|union|trait|type|const|static)\s+(?:mut\s+)?(\w+)|\bmacro_rules!\s*(\w+)"
)
MODULE = re.compile(
    r"(?:#\[path\s*=(?P<path>[^\]]*)\]\s*)?" + VISIBLE + r"\bmod\s+(?P<name>\w+)\s*(?P<end>[;{])"
)
USE = re.compile(VISIBLE + r"\buse\s+(?P<tree>(?:::|[\w{*])[^;<]*);")
PATH = re.compile(r"(?<![\w$:])(?<!(?<!\.)\.)\$?([A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+)")
NAME = re.compile(r"(?<![\w:'])(?<!(?<!\.)\.)[A-Za-z_]\w*\b")


@dataclass(eq=False)
class Module:
    """A module: its items, its children and what it imports."""

    file: str
    parent: Module | None
    root: Module | None = None
    items: set[str] = field(default_factory=set)
    children: dict[str, Module] = field(default_factory=dict)
    imports: dict[str, list[str]] = field(default_factory=dict)
    globs: list[list[str]] = field(default_factory=list)
    uses: list[tuple[bool, list[str], str]] = field(default_factory=list)
    body: str = ""

    @property
    def crate(self) -> Module:
        return self.root or self


def blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def mask(text: str) -> str:
    """The same text, as long, without its comments and strings."""
    parts, at = [], 0
    while found := LITERAL.search(text, at):
        end = found.end()
        if found["block"]:
            depth = 1
            while depth and (mark := re.compile(r"/\*|\*/").search(text, end)):
                depth += 1 if mark[0] == "/*" else -1
                end = mark.end()
        parts += [text[at : found.start()], blank(text[found.start() : end])]
        at = end
    return "".join([*parts, text[at:]])


def without_tests(text: str) -> str:
    """The same masked text, as long, without the items that are compiled for tests alone."""
    while found := TEST_ONLY.search(text):
        at = found.end()
        while more := ATTRIBUTE.match(text, at):
            at = more.end()
        ends = ";{" if ITEM.match(text, at) else ";,}"
        depth = 0
        while at < len(text) and (depth > 0 or text[at] not in ends):
            depth += (text[at] in "([{") - (text[at] in ")]}")
            at += 1
        if text[at : at + 1] == "{":
            at = closing(text, at)
        end = at if text[at : at + 1] == "}" and "}" in ends else at + 1
        text = text[: found.start()] + blank(text[found.start() : end]) + text[end:]
    return text


def closing(text: str, at: int) -> int:
    """Where the brace that opens at `at` closes."""
    depth = 0
    for mark in re.compile(r"[{}]").finditer(text, at):
        depth += 1 if mark[0] == "{" else -1
        if depth == 0:
            return mark.start()
    return len(text)


def use_tree(text: str, before: list[str]) -> list[tuple[list[str], str]]:
    """The paths of a `use` and the name that each gets; `*` for all of a module, `_` for none."""
    text = text.strip()
    head, brace, rest = text.partition("{")
    path = before + [part.strip() for part in head.split("::") if part.strip()]
    if brace:
        parts, depth, last = [], 0, 0
        inner = rest.rstrip().removesuffix("}")
        for at, mark in enumerate(inner + ","):
            depth += (mark == "{") - (mark == "}")
            if mark == "," and depth == 0:
                parts.append(inner[last:at])
                last = at + 1
        return [leaf for part in parts if part.strip() for leaf in use_tree(part, path)]
    name, _, alias = path[-1].partition(" as ")
    path[-1] = name.strip()
    if path[-1] == "self" and len(path) > 1:
        path.pop()
    return [(path, alias.strip() or path[-1])]


class Crate:
    """All modules of a crate, from its roots down."""

    def __init__(self, source: Path, name: str) -> None:
        self.source, self.name = source, name
        self.modules: list[Module] = []
        self.texts: dict[str, str] = {}
        self.lib: Module | None = None
        for root in ("lib.rs", "main.rs"):
            if (source / root).exists():
                module = self.read(source / root, source, None)
                self.lib = self.lib or module

    def read(self, path: Path, folder: Path, parent: Module | None) -> Module:
        original = path.read_text(encoding="utf-8")
        text = without_tests(mask(original))
        file = path.relative_to(self.source).as_posix()
        self.texts[file] = text
        return self.fill(Module(file, parent, parent and parent.crate), text, original, folder, path.parent)

    def fill(self, module: Module, text: str, original: str, folder: Path, beside: Path) -> Module:
        """What one module's text says; `original` has the strings that `text` lacks."""
        self.modules.append(module)
        while found := MODULE.search(text):
            start, end, name = found.start(), found.end(), found["name"]
            if found["end"] == "{":
                end = closing(text, found.end() - 1)
                inner = slice(found.end(), end)
                child = Module(module.file, module, module.crate)
                self.fill(child, text[inner], original[inner], folder / name, folder / name)
                module.children[name] = child
                end += 1
            else:
                given = (
                    re.search(r'"([^"]*)"', original[slice(*found.span("path"))]) if found["path"] else None
                )
                places = [beside / given[1]] if given else [folder / f"{name}.rs", folder / name / "mod.rs"]
                place = next((place for place in places if place.exists()), None)
                if place is not None and name not in module.children:
                    below = place.parent if place.name == "mod.rs" else folder / name
                    module.children[name] = self.read(place, below, module)
            text = text[:start] + blank(text[start:end]) + text[end:]
        for found in USE.finditer(text):
            for path, name in use_tree(found["tree"], []):
                module.uses.append((bool(found["visible"]), path, name))
                if name == "*":
                    module.globs.append(path[:-1])
                elif name != "_":
                    module.imports[name] = path
        module.body = USE.sub(lambda found: blank(found[0]), text)
        depths = list(accumulate((mark == "{") - (mark == "}") for mark in module.body))
        for found in DEFINED.finditer(module.body):
            if depths[found.start()] == 0:
                module.items.add(found[1] or found[2])
        return module

    def look_up(self, module: Module, name: str, seen: frozenset[tuple[int, str]]) -> Module | str | None:
        """What a name means in a module: a module, the file that defines the item, or nothing known."""
        if (id(module), name) in seen:
            return None
        seen |= {(id(module), name)}
        if name in module.children:
            return module.children[name]
        if name in module.items:
            return module.file
        if name in module.imports:
            return self.resolve(module, module.imports[name], seen)
        for path in module.globs:
            target = self.resolve(module, path, seen)
            if isinstance(target, Module) and (found := self.look_up(target, name, seen)):
                return found
        return None

    def resolve(
        self, module: Module, path: list[str], seen: frozenset[tuple[int, str]] = frozenset()
    ) -> Module | str | None:
        at: Module | str | None
        first, *rest = path
        if first == "crate":
            at = module.crate
        elif first in ("self", "super"):
            at = module if first == "self" else module.parent
        elif first == self.name and module.crate is not self.lib:
            at = self.lib
        else:
            at = self.look_up(module, first, seen)
        for name in rest:
            if not isinstance(at, Module):
                return at
            if name == "super":
                at = at.parent
            elif name != "self":
                # A name that a named module of this crate lacks is what a macro of its own defines.
                at = self.look_up(at, name, seen) or at.file
        return at

    def graph(self) -> Graph:
        graph: Graph = {file: defaultdict(set) for file in self.texts}
        macros = {
            name: module.file
            for module in self.modules
            for name in re.findall(r"#\[macro_export\][^;{]*macro_rules!\s*(\w+)", module.body)
        }

        def add(module: Module, path: list[str], name: str) -> None:
            target = self.resolve(module, path)
            if isinstance(target, str) and target != module.file:
                graph[module.file][target].add(name)

        for module in self.modules:
            names = set(NAME.findall(module.body))
            for visible, path, name in module.uses:
                if name != "*" and (not visible or name in names):
                    add(module, path, path[-1])
            if module.globs:
                for name in names - module.items - set(module.children) - set(module.imports):
                    add(module, [name], name)
            for found in PATH.findall(module.body):
                path = re.split(r"\s*::\s*", found)
                if not (
                    path[0] in module.imports
                    and path[0] not in module.children
                    and self.is_item(module, path[0])
                ):
                    add(module, path, path[-1])
            for name in re.findall(r"\b(\w+)!", module.body):
                if name in macros and macros[name] != module.file:
                    graph[module.file][macros[name]].add(f"{name}!")
        return graph

    def is_item(self, module: Module, name: str) -> bool:
        """Whether an imported name is an item, whose import is the use."""
        return not isinstance(self.resolve(module, [name]), Module)
