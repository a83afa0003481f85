"""Every page's commands and code, run by another test or not, are resolved against what there is: commands and their
options, make targets, extras, files, imported names and attributes, JavaScript's imports."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from ciphervec.cli import COMMANDS, load

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "js/client/README.md", ".github/*.md")
    for path in sorted(ROOT.glob(pattern))
    if path.name != "CHANGELOG.md"  # what was said of what there was
]
SHELL = {"bash", "console", "sh", "shell"}
NOTHING_TO_RUN = {"", "mermaid", "text", "diff", "json", "toml", "yaml"}
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^    \S.*\n(?:^ {4,}\S.*\n)*)+", re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
OURS = re.compile(r"ciphervec(?:-server)?\s+[a-z]")
TOOLS = """. actionlint age-keygen apt-get awk aws az bash cargo cat cd chmod cp curl docker done echo else exit export fi
gcloud git grep gzip head helm install kill kubectl ls mkdir mv node npm npx openssl pkcs11-tool podman printf ps rm rustup
sed sh sleep softhsm2-util source ssh su sudo systemctl tail tar test trap true vault wait"""
"""Programs of the system, and words of a shell, that pages may use."""

pytestmark = pytest.mark.skipif(not PAGES, reason="needs the repository, not only the wheel")


class Block(NamedTuple):
    """What stands in a page to be run, and in what language."""

    page: str
    language: str
    code: str


def blocks(page: str) -> Iterator[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    for _, language, code in FENCE.findall(text):
        yield Block(page, language, textwrap.dedent(code))
    rest = FENCE.sub("", text)
    for code in INDENTED.findall(rest):
        dedented = textwrap.dedent(code)
        first = dedented.split()[0]
        if first in ("ciphervec", "python", "python3", "pip", "make", "ciphervec-server"):
            yield Block(page, "bash", dedented)
    for span in (
        SPAN.findall(rest) if page != "docs/formats.md" else ()
    ):  # where such spans are labels of keys
        if OURS.match(span):
            yield Block(page, "bash", span)


ALL = [block for page in PAGES for block in blocks(page)]


def long_lines(text: str) -> list[int]:
    """Numbers of lines of more than 120 characters. Tables may be wider, and what a program printed."""
    found, fence = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if mark := re.match(r" *```(.*)", line):
            fence = mark[1] if fence is None else None
        if len(line) > 120 and not line.lstrip().startswith("|") and fence != "":
            found.append(number)
    return found


def test_lines_can_be_read_in_a_diff() -> None:
    long = "x" * 121
    assert long_lines(f"{long}\n| {long} |\n```\n{long}\n```\n```bash\n{long}\n```\n{long}") == [1, 7, 9]
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in listed.stdout.splitlines()]
    assert len(files) > 100
    wide = {
        path.relative_to(ROOT).as_posix(): lines
        for path in files
        if path.exists() and (lines := long_lines(path.read_text(encoding="utf-8")))
    }
    assert not wide, f"wrap these lines at 120 characters: {wide}"


# Shell


class Command(NamedTuple):
    """Words that a shell would start a program with."""

    words: list[str]

    @property
    def program(self) -> str:
        return self.words[0]


def commands(code: str) -> Iterator[Command]:
    """Each simple command; the bodies of here-documents and of quoted programs are no commands."""
    code = re.sub(r"<<-?'?(\w+)'?(.*?\n)(.*?)^\1$", r"\2", code, flags=re.MULTILINE | re.DOTALL)
    code = re.sub(r"\$\(([^()]*)\)", lambda inner: f"\n{inner[1]}\n" if OURS.match(inner[1]) else "X", code)
    words: list[str] = []
    for word in [*_words(re.sub(r"^\$ ", "", code, flags=re.MULTILINE)), ";"]:
        if word and set(word) <= set(";&|()"):
            if words:
                yield from _simple(words)
            words = []
        else:
            words.append(word)


def _words(code: str) -> list[str]:
    """As a shell splits them, `;` for the end of a line; without comments."""
    clean = "\n".join(re.sub(r"(^|\s)#\s.*$", "", line) for line in code.replace("\\\n", " ").splitlines())
    ends = re.sub(r"\n(?=(?:[^']*'[^']*')*[^']*$)", " ; ", clean)
    lexer = shlex.shlex(ends, posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split, lexer.commenters = True, ""
    return list(lexer)


def _simple(words: list[str]) -> Iterator[Command]:
    """Without assignments before it, redirections, and the words of a loop."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif set(word) <= set("<>&0123456789") and ("<" in word or ">" in word):
            skip = True
            if kept and kept[-1] in ("1", "2"):
                kept.pop()
        elif not kept and (
            re.fullmatch(r"\w+=.*", word, re.DOTALL)
            or word in ("do", "then", "until", "while", "if", "else", "!")
        ):
            continue
        else:
            kept.append(word)
    if kept and kept[0] == "for":
        return
    if kept:
        yield Command(kept)


@functools.cache
def native(*path: str) -> frozenset[str]:
    """Options of a command of the server, as its help lists them."""
    shown = subprocess.run(
        [sys.executable, "-m", "ciphervec", *path, "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    return frozenset(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", shown, re.MULTILINE))


def resolve_ours(words: list[str]) -> str:
    """What is wrong with a command line of ciphervec; empty where nothing is."""
    path, rest = [words[1]], words[2:]
    if words[1] not in COMMANDS:
        return (
            "" if words[1].startswith("-") or not words[1].islower() else f"there is no command {words[1]!r}"
        )
    if words[1] in ("serve", "token"):
        if rest and words[1] == "token" and not rest[0].startswith("-"):
            path, rest = [*path, rest[0]], rest[1:]
        known, takes = native(*path), None
    else:
        found: Any = load(words[1])
        while hasattr(found, "commands") and rest and re.fullmatch(r"[a-z][\w-]*", rest[0]):
            if rest[0] not in found.commands:
                return f"{' '.join(path)} has no {rest[0]!r}, it has {', '.join(found.commands)}"
            found = found.commands[rest[0]]
            path, rest = [*path, rest[0]], rest[1:]
        takes = {name: one for one in found.params for name in (*one.opts, *one.secondary_opts)}
        known = frozenset(takes) | {"--help", "-h"}
    for word in rest:
        option = word.partition("=")[0]
        if (
            option.startswith("-")
            and option not in ("-", "--")
            and not re.fullmatch(r"-[\d.]+", option)
            and option not in known
        ):
            return f"ciphervec {' '.join(path)} has no option {option}"
    return ""


def resolve(command: Command) -> str:
    program, words = command.program, command.words
    if program in ("ciphervec", "ciphervec-server"):
        return resolve_ours(words) if len(words) > 1 else ""
    if program in ("python", "python3", ".venv/bin/python"):
        if words[1:2] == ["-m"]:
            module = words[2]
            if module == "ciphervec":
                return resolve_ours(words[2:])
            return "" if importlib.util.find_spec(module) else f"there is no module {module}"
        script = next((word for word in words[1:] if word.endswith(".py")), None)
        return (
            ""
            if script is None or "/" not in script or (ROOT / script).exists()
            else f"there is no file {script}"
        )
    if program in ("make", "$(MAKE)"):
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        wrong = [word for word in words[1:] if re.fullmatch(r"[a-z][\w-]*", word) and word not in targets]
        return f"make has no {', '.join(wrong)}" if wrong else ""
    if program in ("pip", ".venv/bin/pip", "pip3"):
        declared = {extra.lower() for extra in metadata("ciphervec").get_all("Provides-Extra") or []}
        named = {
            extra
            for word in words
            for extras in re.findall(r"ciphervec\[([\w,-]+)\]", word)
            for extra in extras.split(",")
        }
        wrong = sorted(named - declared - {"NAME"})
        return f"there is no extra {', '.join(wrong)}" if wrong else ""
    for word in words[1:]:
        if re.match(r"(deploy|examples|tools|benches|fuzz)/[\w./-]+$", word) and not (ROOT / word).exists():
            return f"there is no file {word}"
    return (
        ""
        if program in TOOLS.split() or "/" in program or not re.match(r"[a-z]", program)
        else f"what is {program!r}?"
    )


# A made-up page for the resolver itself: what must be found, and what must not.
@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("ciphervec query db docs probe.npy --count 3 --keys my.key", ""),
        ("CIPHERVEC_STATE=x ciphervec query db docs p.npy -n 3 2> log > out", ""),
        ("ciphervec keys rotate db faces --new-keys new.key", ""),
        ("ciphervec query db docs probe.npy --cuont 3", "no option --cuont"),
        ("echo a | ciphervec qury db", "no command 'qury'"),
        ("ciphervec keys rotte db", "keys has no 'rotte'"),
        ("ciphervec token creat --data db", "token creat"),
        ("ciphervec serve --data db --liste 1", "no option --liste"),
        ("url=$(ciphervec kegen x)", "no command 'kegen'"),
        ("cat > a <<'END'\nciphervec nothing\nEND\nciphervec verify db --jso", "no option --jso"),
        ("make demos", "make has no demos"),
        ("pip install 'ciphervec[sidecars]'", "no extra sidecars"),
        ("python examples/nothing.py", "no file examples/nothing.py"),
        ("cihpervec serve", "what is 'cihpervec'?"),
        ("$ ciphervec list db --jsno", "no option --jsno"),
    ],
)
def test_the_resolver_finds_what_is_wrong(line: str, wrong: str) -> None:
    try:
        found = "; ".join(filter(None, map(resolve, commands(line))))
    except subprocess.CalledProcessError as error:
        found = " ".join(error.cmd)
    assert (wrong in found) if wrong else not found, found


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_are_there(page: str) -> None:
    wrong = [
        f"{' '.join(command.words)[:90]}: {why}"
        for block in ALL
        if block.page == page
        and (block.language in SHELL or (block.language == "text" and OURS.search(block.code)))
        for command in commands(block.code)
        if (why := resolve(command))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_block_is_in_a_language_that_nothing_looks_at() -> None:
    known = SHELL | NOTHING_TO_RUN | {"python", "js", "ts", "rust"}
    assert {block.language for block in ALL} <= known
    assert len(ALL) > 120, "the pages were read"


# Python


def names_of(tree: ast.AST) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Modules of ciphervec and the chain of attributes that the code takes from each."""
    bound: dict[str, tuple[str, tuple[str, ...]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ciphervec":
            for alias in node.names:
                bound[alias.asname or alias.name] = (node.module or "", (alias.name,))
                yield node.module or "", (alias.name,)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "ciphervec":
                    bound[alias.asname or "ciphervec"] = (alias.name if alias.asname else "ciphervec", ())
                    yield alias.name, ()
    bound.setdefault("ciphervec", ("ciphervec", ()))
    for node in ast.walk(tree):
        chain: list[str] = []
        while isinstance(node, ast.Attribute):
            chain.insert(0, node.attr)
            node = node.value
        if chain and isinstance(node, ast.Name) and node.id in bound:
            module, first = bound[node.id]
            yield module, (*first, *chain)


def missing(module: str, chain: tuple[str, ...]) -> str:
    """What of a chain is not there; attributes of what is no module and no class can't be known."""
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        if "isn't installed" in str(error):  # an adapter's framework
            return ""
        return f"there is no module {module}"
    for name in chain:
        if not isinstance(found, ModuleType | type):
            return ""
        try:
            found = getattr(found, name)
        except AttributeError:
            try:
                found = (
                    importlib.import_module(f"{found.__name__}.{name}")
                    if isinstance(found, ModuleType)
                    else None
                )
            except ModuleNotFoundError:
                found = None
            if found is None:
                return f"{module}.{'.'.join(chain)}: there is no {name!r}"
    return ""


@pytest.mark.parametrize("page", PAGES)
def test_names_in_the_python_of_a_page_are_there(page: str) -> None:
    wrong: list[str] = []
    for block in ALL:
        of_scale = block.language == "text" and re.match(r"(import|from) ", block.code)
        if block.page != page or not (block.language == "python" or of_scale):
            continue
        names = names_of(ast.parse(block.code))
        wrong += [why for one in names if not one[0].startswith("ciphervec.ray") and (why := missing(*one))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("import ciphervec\nk = ciphervec.Keys.load('x')\nc = ciphervec.Client()", ""),
        ("import ciphervec\nciphervec.Keys.laod('x')", "no 'laod'"),
        ("from ciphervec import Cleint", "no 'Cleint'"),
        ("from ciphervec import paillier as p\np.generat()", "no 'generat'"),
    ],
)
def test_wrong_names_are_noticed(code: str, wrong: str) -> None:
    found = "; ".join(filter(None, (missing(*one) for one in names_of(ast.parse(code)))))
    assert (wrong in found) if wrong else not found, found


# Rust


PUBLIC = re.compile(
    r"pub (?:async fn|const fn|fn|struct|enum|trait|type) (\w+)|^ +pub (\w+):|^ +(?:async )?fn (\w+)|^    ([A-Z]\w+)\b"
)


@functools.cache
def rust_names() -> frozenset[str]:
    """What the crates that programs use define for others."""
    sources = [
        path
        for crate in ("client", "owner", "ciphervec")
        for path in (ROOT / "crates" / crate / "src").rglob("*.rs")
    ]
    lines = (line for path in sources for line in path.read_text(encoding="utf-8").splitlines())
    found = (PUBLIC.search(line) for line in lines)
    return frozenset(name for one in found if one for name in one.groups() if name)


STANDARD = frozenset(
    {"Arc", "Default", "Error", "Ok", "Option", "Path", "Some", "String", "Vec", "default", "into", "new"}
)


def unknown_in_rust(code: str) -> set[str]:
    """Types, functions, methods and fields that the crates don't have; such as code declares itself are its own."""
    clean = re.sub(r'r#".*?"#|"[^"]*"|//.*', '""', code)
    named = {*re.findall(r"\b([A-Z]\w*[a-z]\w*)", clean), *re.findall(r"[.:]([a-z_]\w*)\(", clean)}
    named |= set(re.findall(r"\b([a-z_]\w*):(?!:)", clean))
    own = set(re.findall(r"\b(?:let(?: mut)?|fn|struct|enum|trait|mod) (\w+)", clean))
    return named - own - STANDARD - rust_names()


@pytest.mark.parametrize(
    "block", [one for one in ALL if one.language == "rust"], ids=lambda block: block.page
)
def test_rust_names_what_the_crates_have(block: Block) -> None:
    assert not unknown_in_rust(block.code)
    assert unknown_in_rust("let a = Colection::new(); a.qurey(Sel { filtr: 1 });") == {
        "Colection",
        "Sel",
        "filtr",
        "qurey",
    }


# JavaScript and TypeScript


SCRIPTS = [block for block in ALL if block.language in ("js", "ts")]
GIVEN = "description: any, answer: any, readerBytes: any"
"""What a fragment says that it is given."""
TYPES = ROOT / "js/node_modules/.bin/tsc"


def exports(entry: str) -> set[str]:
    """Names that a module of the client's sources exports."""
    package = json.loads((ROOT / "js/client/package.json").read_text(encoding="utf-8"))
    built = package["exports"][
        "." if entry == "@ciphervec/client" else entry.replace("@ciphervec/client", ".")
    ]
    types = built["types"] if isinstance(built, dict) else built
    source = ROOT / "js/client" / types.replace("dist/", "src/").replace(".d.ts", ".ts")
    text = source.read_text(encoding="utf-8")
    lists = re.findall(r"export (?:type )?\{([^}]*)\}", text)
    named = {name.split(" as ")[-1].replace("type ", "").strip() for one in lists for name in one.split(",")}
    return named | set(
        re.findall(r"export (?:declare )?(?:abstract )?(?:class|function|const|interface|type) (\w+)", text)
    )


def test_javascript_imports_what_the_client_exports() -> None:
    assert len(SCRIPTS) >= 3
    for block in SCRIPTS:
        for names, module in re.findall(
            r"import (?:type )?\{([^}]*)\} from \"(@ciphervec/[^\"]+)\"", block.code
        ):
            asked = {name.split(" as ")[0].replace("type ", "").strip() for name in names.split(",")} - {""}
            assert asked <= exports(module), f"{block.page}: {asked - exports(module)} of {module}"
    assert "Clientt" not in exports("@ciphervec/client")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_javascript_parses(tmp_path: Path) -> None:
    for number, block in enumerate(SCRIPTS):
        if block.language == "js":
            file = tmp_path / f"{number}.mjs"
            file.write_text(block.code, encoding="utf-8")
            done = subprocess.run(["node", "--check", file], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, f"{block.page}: {done.stderr}"


@pytest.mark.skipif(not TYPES.exists(), reason="needs the JavaScript packages: make web")
def test_scripts_have_the_clients_types(tmp_path: Path) -> None:
    """Misspelt options and methods too. The built client's types, so that it stands in the package's folder."""
    if not (ROOT / "js/client/dist/index.d.ts").exists():
        pytest.skip("needs the built client: make web")
    folder = ROOT / "js/client/test-results/pages"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        for number, block in enumerate(SCRIPTS):
            given = f"declare const {GIVEN};\n" if block.language == "ts" else ""
            (folder / f"{number}.ts").write_text(f"{given}{block.code}\nexport {{}};\n", encoding="utf-8")
        settings = {
            "compilerOptions": {
                "strict": True, "noEmit": True, "target": "es2022", "module": "nodenext", "moduleResolution": "nodenext",
                "lib": ["es2023", "esnext.disposable", "dom", "webworker"], "skipLibCheck": True, "types": [],
            },
            "include": ["*.ts"],
        }  # fmt: skip
        (folder / "tsconfig.json").write_text(json.dumps(settings))
        done = subprocess.run([TYPES, "-p", folder], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        shutil.rmtree(folder, ignore_errors=True)
