"""Takes checks out, one at a time, and says which of the tests notice: for whoever writes a check, and for `make mutants`.

`tools/mutants/*.toml` lists checks that stand between what strangers send and what a key holder believes. Each entry:

    id            a name
    check         what must hold
    file          where it is checked
    find          the text, which occurs once; what is replaced of it stands between « and », or is all of it
    replace       what stands there without the check
    tests         tests that must fail then: `file::name`, in Python, Rust or TypeScript
    covered_by    ids of checks beside which this one is redundant: without those the tests pass, without it as well they fail

`python3 tools/mutants.py` runs all, in a copy of the repository under target/; with words, those whose id has one of them
in it. Rust is built once, with all of its entries: the environment chooses which of them counts.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "tools" / "mutants"
SCRATCH = ROOT / "target" / "mutants"
CHOSEN = "CIPHERVEC_MUTANT"
PATIENCE = 600
"""Seconds after which tests count as failed: a check that is gone may leave a loop without an end."""

_SWITCH = (
    "{{ static ON: ::std::sync::OnceLock<bool> = ::std::sync::OnceLock::new(); *ON.get_or_init(|| ::std::env::var("
    '"{chosen}").is_ok_and(|ids| ids.split(\',\').any(|id| id == "{id}"))) }}'
)


@dataclass(frozen=True)
class Mutant:
    """A check, and the source without it."""

    id: str
    check: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]
    covered_by: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What is looked for."""
        return self.find.replace("«", "").replace("»", "")

    @property
    def taken(self) -> tuple[str, str, str]:
        """What stays before, what goes, what stays behind."""
        if "«" not in self.find:
            return "", self.find, ""
        before, rest = self.find.split("«")
        gone, after = rest.split("»")
        return before, gone, after

    def span(self, source: str) -> tuple[int, int]:
        """Where in the file what goes is."""
        before, gone, _ = self.taken
        start = source.index(self.text) + len(before)
        return start, start + len(gone)

    def without(self, source: str) -> str:
        """The file without the check."""
        start, end = self.span(source)
        return source[:start] + self.replace + source[end:]

    @property
    def either(self) -> str:
        """An expression of Rust that is what goes or what replaces it, as the environment chooses."""
        switch = _SWITCH.format(chosen=CHOSEN, id=self.id)
        return f"(if {switch} {{ {self.replace} }} else {{ {self.taken[1]} }})"


def read_tables() -> list[Mutant]:
    """Every entry of every table."""
    try:
        toml = importlib.import_module("tomllib")
    except ModuleNotFoundError:
        raise SystemExit("the tables are TOML, which takes Python 3.11 or newer") from None
    found = []
    for path in sorted(TABLES.glob("*.toml")):
        for entry in toml.loads(path.read_text())["mutant"]:
            tests, others = tuple(entry.pop("tests", ())), tuple(entry.pop("covered_by", ()))
            found.append(Mutant(**entry, tests=tests, covered_by=others))
    return found


def faults(mutants: Sequence[Mutant]) -> list[str]:
    """What is wrong with the tables: texts that are not there once, tests that are not there, names that are none."""
    found = []
    ids = [one.id for one in mutants]
    found += [f"{one} is there twice" for one in sorted({one for one in ids if ids.count(one) > 1})]
    spans: dict[str, list[tuple[int, int, str]]] = {}
    for one in mutants:
        path = ROOT / one.file
        source = path.read_text() if path.is_file() else ""
        if source.count(one.text) != 1:
            found.append(f"{one.id}: its text occurs {source.count(one.text)} times in {one.file}, not once")
        elif one.file.endswith(".rs"):
            spans.setdefault(one.file, []).append((*one.span(source), one.id))
        if not one.tests:
            found.append(f"{one.id}: no test is named")
        found += [f"{one.id}: there is no test {test}" for test in one.tests if not _is_there(test)]
        found += [f"{one.id}: {other} is no entry" for other in one.covered_by if other not in ids]
    for of_file in spans.values():
        of_file.sort()
        found += [
            f"{one[2]} and {other[2]} overlap" for one, other in itertools.pairwise(of_file)
            if one[1] > other[0]
        ]  # fmt: skip
    return found


def _is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    path = ROOT / file
    source = path.read_text() if path.is_file() else ""
    if file.endswith(".ts"):  # titles, up to what a table fills in
        return bool(name) and name in source
    return bool(name) and f" {name.split('[')[0].split('::')[-1]}(" in source


def _switched(mutants: Iterable[Mutant]) -> dict[str, str]:
    """The files of Rust that have entries, with all of these in them."""
    sources: dict[str, str] = {}
    # From the last to the first, so that places before stay right.
    spans = [(one.span((ROOT / one.file).read_text()), one) for one in mutants]
    for (start, end), one in sorted(spans, key=lambda pair: pair[0], reverse=True):
        source = sources.get(one.file) or (ROOT / one.file).read_text()
        sources[one.file] = source[:start] + one.either + source[end:]
    return sources


class Tree:
    """A copy of the repository, in which sources change and what is built stays."""

    def __init__(self, mutants: Iterable[Mutant], native: Path | None) -> None:
        """`mutants` of Rust are compiled in; or `native` is the module that the Python tests run on."""
        self.root = SCRATCH / "tree"
        self._built: dict[str, list[str]] = {}
        self._last = 0
        switched = {} if native is not None else _switched(mutants)
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        names = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
        for name in names:
            self.write(name, switched[name].encode() if name in switched else (ROOT / name).read_bytes())
        for folder in ("crates", "python", "js"):
            for path in (self.root / folder).rglob("*"):
                kept = {"node_modules", "dist", "wasm", "__pycache__"} & set(
                    path.parts
                ) or path.suffix == ".so"
                if path.is_file() and not kept and str(path.relative_to(self.root)) not in names:
                    path.unlink()  # of another day
        module = self.root / "python" / "ciphervec" / "_native.abi3.so"
        module.unlink(missing_ok=True)
        if native is None:
            native = Path(self._cargo("build", "--package", "ciphervec-python")[0])
        shutil.copyfile(native, module)

    def restore(self, name: str) -> None:
        """A file as it is in the repository."""
        self.write(name, (ROOT / name).read_bytes())

    def write(self, name: str, content: bytes) -> None:
        """Write a file, unless it is so already: what is built of it stays then."""
        path = self.root / name
        if path.is_file() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if path.suffix == ".py":  # of the same second and size, Python would take what it compiled before
            self._last = max(self._last + 1, int(time.time()))
            os.utime(path, (self._last, self._last))
        if os.access(ROOT / name, os.X_OK):
            path.chmod(0o755)

    def _cargo(self, *options: str) -> list[str]:
        command = [
            "cargo",
            *options,
            "--profile",
            "demo",
            "--locked",
            "--message-format",
            "json-render-diagnostics",
        ]
        target = os.environ.get("CARGO_TARGET_DIR", str(SCRATCH / "target"))
        done = subprocess.run(
            command,
            cwd=self.root,
            env={**os.environ, "CARGO_TARGET_DIR": target},
            stdout=subprocess.PIPE,
            text=True,
        )
        if done.returncode != 0:
            raise SystemExit(f"`{' '.join(command)}` ended with {done.returncode}")
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        made = [message for message in messages if message["reason"] == "compiler-artifact"]
        found = [one["executable"] for one in made if one.get("executable") and one["profile"]["test"]]
        modules = [name for one in made if one["target"]["name"] == "_native" for name in one["filenames"]]
        return found or [name for name in modules if Path(name).suffix in (".so", ".dylib", ".dll")]

    def passes(self, tests: Iterable[str], without: str = "", show: bool = False) -> bool:
        """Whether all of these tests pass; `without` names entries of Rust; `show` prints what a test that fails says."""
        environment = {**os.environ, CHOSEN: without, "RAYON_NUM_THREADS": "2", "OMP_NUM_THREADS": "1"}
        python = self.root / "python"
        environment["PYTHONPATH"] = os.pathsep.join([str(python), str(python / "tests")])
        commands: list[tuple[list[str], Path]] = []
        first = [] if show else ["-x"]
        of_python = [test for test in tests if test.startswith("python/")]
        if of_python:
            commands.append(
                (
                    [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *first, *of_python],
                    self.root,
                )
            )
        for test in tests:
            file, _, name = test.partition("::")
            if file.endswith(".rs"):
                commands += [([*binary, name], self.root) for binary in self._binaries(file)]
            if file.endswith(".ts"):
                vitest = str(self.root / "js" / "node_modules" / ".bin" / "vitest")
                run = [vitest, "run", "--project", "unit", str(self.root / file), "-t", re.escape(name)]
                commands.append((run, self.root / "js" / "client"))
        found = (_passes(command, folder, environment, show) for command, folder in commands)
        return all(list(found) if show else found)

    def _binaries(self, file: str) -> list[list[str]]:
        """What runs the Rust tests of a file."""
        crate = Path(file).parts[1]
        kind = ["--lib"] if Path(file).parts[2] == "src" else ["--test", "suite"]
        key = f"{crate} {kind[-1]}"
        if key not in self._built:
            package = "ciphervec" if crate == "ciphervec" else f"ciphervec-{crate}"
            self._built[key] = self._cargo("test", "--no-run", "--package", package, *kind)
        return [[one] for one in self._built[key]]

    def link_modules(self) -> bool:
        """Let the packages of js/ find what npm installed; whether it is there."""
        modules, here = ROOT / "js" / "node_modules", self.root / "js" / "node_modules"
        if modules.is_dir() and not here.exists():
            here.symlink_to(modules)
        return modules.is_dir()


def _passes(command: list[str], folder: Path, environment: dict[str, str], show: bool) -> bool:
    """Whether tests pass. What is no result of theirs ends everything."""
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as running:  # fmt: skip
        try:
            output, _ = running.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, 9)
            running.communicate()
            return False
    if "pytest" in command and running.returncode not in (0, 1):
        raise SystemExit(f"{output[-4000:]}\n`{' '.join(command)}` ended with {running.returncode}")
    if show and running.returncode:
        print(output[-6000:])
    return running.returncode == 0


def outcome(tree: Tree, mutant: Mutant, others: Sequence[Mutant]) -> str:
    """What becomes of the tests without a check: "killed", "redundant" or what is wrong."""
    if others and not _passes_without(tree, mutant, others):
        return f"NOT REDUNDANT without {', '.join(mutant.covered_by)}"
    if _passes_without(tree, mutant, [mutant, *others]):
        return "SURVIVED"
    return "redundant" if others else "killed"


def _passes_without(tree: Tree, mutant: Mutant, gone: Sequence[Mutant]) -> bool:
    of_rust = [one.id for one in gone if one.file.endswith(".rs")]
    sources: dict[str, str] = {}
    for one in gone:
        if not one.file.endswith(".rs"):
            sources[one.file] = one.without(sources.get(one.file) or (ROOT / one.file).read_text())
    for name, source in sources.items():
        tree.write(name, source.encode())
    try:
        return tree.passes(mutant.tests, ",".join(of_rust))
    finally:
        for name in sources:
            tree.restore(name)


def main() -> int:
    options = argparse.ArgumentParser(description="Take checks out and see which tests fail.")
    options.add_argument("words", nargs="*", help="parts of ids; all entries without")
    options.add_argument("--list", action="store_true", help="print the entries, and run nothing")
    options.add_argument(
        "--native", type=Path, help="a native module that is built, with no entry of Rust in it"
    )
    given = options.parse_args()
    mutants = read_tables()
    wrong = faults(mutants)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 2
    by_id = {one.id: one for one in mutants}
    chosen = [one for one in mutants if not given.words or any(word in one.id for word in given.words)]
    if given.list:
        print("\n".join(f"{one.id:28}{one.file}: {one.check}" for one in chosen))
        return 0
    of_rust = [one for one in mutants if one.file.endswith(".rs")]
    tree = Tree(of_rust, given.native)
    if given.native is not None:
        chosen = [one for one in chosen if one not in of_rust]
    if any(one.file.startswith("js/") for one in chosen) and not tree.link_modules():
        print("left out: those of js/, as js/node_modules is missing; `make web` installs it")
        chosen = [one for one in chosen if not one.file.startswith("js/")]
    if not tree.passes(dict.fromkeys(test for one in chosen for test in one.tests), show=True):
        print("tests fail with every check in its place; nothing can be said", file=sys.stderr)
        return 2
    return report(tree, chosen, by_id)


def report(tree: Tree, chosen: Sequence[Mutant], by_id: dict[str, Mutant]) -> int:
    """Run them and print what came of each."""
    counts: dict[str, int] = {}
    for number, one in enumerate(chosen, 1):
        began = time.monotonic()
        became = outcome(tree, one, [by_id[other] for other in one.covered_by])
        print(
            f"[{number}/{len(chosen)}] {became:10} {one.id}  ({time.monotonic() - began:.0f} s)", flush=True
        )
        counts[became.split(" without")[0]] = counts.get(became.split(" without")[0], 0) + 1
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return 0 if not set(counts) - {"killed", "redundant"} else 1


if __name__ == "__main__":
    sys.exit(main())
