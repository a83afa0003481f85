"""The check of how sources are laid out: what is a use, what is a circle, what first lines may not
say, and that this repository is as it is held."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(
    not (ROOT / "tools").exists(), reason="needs the repository, not only the wheel"
)

Plant = Callable[[dict[str, str]], Path]


@pytest.fixture
def structure(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import structure

    yield structure
    for name in ("structure", "rust_modules"):
        sys.modules.pop(name, None)


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    """Writes a crate of those files under `src`; every module of `lib.rs` has to be declared in
    it."""

    def write(files: dict[str, str]) -> Path:
        (tmp_path / "Cargo.toml").write_text('[package]\nname = "small-crate"\n')
        for name, text in files.items():
            path = tmp_path / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def edges(structure: ModuleType, folder: Path) -> dict[tuple[str, str], set[str]]:
    files = structure.look(folder).files
    return {(file, target): names for file, uses in files.items() for target, names in uses.items()}


def test_a_circle_is_found_with_the_names_that_tie_it(
    structure: ModuleType, plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    crate = plant(
        {
            "lib.rs": "mod a;\nmod b;\nmod c;\n",
            "a.rs": "use crate::b::{Beta, other as _, deep::{Gamma as G, self}};\npub struct Alpha;\n",
            "b.rs": "pub mod deep { pub struct Gamma; }\npub struct Beta;\npub fn other() -> super::a::Alpha { todo!() }\n",
            "c.rs": "pub fn above() { crate::a::Alpha; }\n",
        }
    )
    plan = structure.look(crate)
    assert plan.circles == [["a.rs", "b.rs"]]
    assert plan.room_circles == [["a", "b"]]
    assert not structure.report("c", plan, True, None, False)
    output = capsys.readouterr().out
    assert "circle of 2 files: a.rs b.rs" in output
    assert "a.rs -> b.rs: Beta, Gamma, other" in output
    assert "b.rs -> a.rs: Alpha" in output
    assert structure.report("c", plan, False, None, False)
    assert not structure.report("c", plan, False, 9, False)


def test_a_reexport_is_followed_and_is_no_use(structure: ModuleType, plant: Plant) -> None:
    crate = plant(
        {
            "lib.rs": "mod door;\nmod user;\npub use door::room::Lamp;\n",
            "door/mod.rs": "pub mod room;\npub use room::{Chair as Seat, Lamp};\npub(crate) use room::light;\n",
            "door/room.rs": "pub struct Lamp;\npub struct Chair;\npub fn light() {}\n",
            "user.rs": "use crate::Lamp;\nfn sit(at: crate::door::Seat) { super::door::light() }\n",
        }
    )
    assert edges(structure, crate) == {("user.rs", "door/room.rs"): {"Lamp", "Seat", "light"}}


def test_a_reexport_that_its_file_uses_too_is_a_use(structure: ModuleType, plant: Plant) -> None:
    crate = plant(
        {
            "lib.rs": "mod part;\npub use part::Part;\npub struct Whole(Part);\n",
            "part.rs": "use crate::Whole;\npub struct Part;\nfn of(whole: &Whole) {}\n",
        }
    )
    assert structure.look(crate).circles == [["lib.rs", "part.rs"]]


def test_a_glob_is_worth_the_names_that_occur(structure: ModuleType, plant: Plant) -> None:
    crate = plant(
        {
            "lib.rs": "mod all;\nmod one;\nmod two;\n",
            "all.rs": "pub use crate::one::*;\npub use crate::two::Two;\n",
            "one.rs": "pub struct One;\npub struct Unused;\n",
            "two.rs": "use super::all::*;\npub struct Two;\nfn both(one: One, two: Two) {}\n",
        }
    )
    assert edges(structure, crate) == {("two.rs", "one.rs"): {"One"}}


def test_tests_comments_and_strings_are_no_uses(structure: ModuleType, plant: Plant) -> None:
    below = """
    //! Like [`crate::top::Top`].
    /* crate::top::Top /* nested */ crate::top::Top */
    const TEXT: &str = "crate::top::Top \\" crate::top::Top";
    const RAW: &str = r#"crate::top::"Top"#;
    const MARKS: [char; 3] = ['"', '\\'', '{'];
    pub struct Below<'a> { #[cfg(test)] from: crate::top::Top, pub of: &'a u8 }
    #[cfg(test)]
    use crate::top::Top;
    #[cfg(all(test, feature = "hazmat"))]
    mod tests { use crate::top::Top; fn f() { let close = '}'; Top } }
    #[cfg(test)]
    mod below_tests;
    pub fn last() -> crate::base::Base { todo!() }
    """
    crate = plant(
        {
            "lib.rs": "mod base;\nmod below;\nmod top;\n",
            "base.rs": "pub struct Base;\n",
            "below.rs": below,
            "below/below_tests.rs": "use crate::top::Top;\n",
            "top.rs": "use crate::below::Below;\npub struct Top;\n",
        }
    )
    assert edges(structure, crate) == {
        ("below.rs", "base.rs"): {"Base"},
        ("top.rs", "below.rs"): {"Below"},
    }


def test_rooms_are_folded_and_stand_on_floors(structure: ModuleType, plant: Plant) -> None:
    crate = plant(
        {
            "lib.rs": "mod hall;\nmod cellar;\n",
            "main.rs": "fn main() { small_crate::hall::open() }\n",
            "hall.rs": "mod table;\nmod chair;\npub fn open() {}\n",
            "hall/table.rs": "use crate::cellar::Wood;\n",
            "hall/chair.rs": "use super::table;\npub struct Chair;\n",
            "cellar/mod.rs": "pub mod wine;\npub struct Wood;\n",
            "cellar/wine.rs": "fn sit(on: crate::hall::chair::Chair) {}\n",
        }
    )
    plan = structure.look(crate)
    assert plan.circles == []
    assert plan.room_circles == [["cellar", "hall"]]
    assert plan.floors == {"lib": 1, "hall": 1, "cellar": 1, "main": 2}
    assert structure.report("c", plan, True, None, True)
    assert not structure.report("c", plan, True, 2, True)


def test_places_that_ask_for_the_form_are_counted(structure: ModuleType, plant: Plant) -> None:
    crate = plant(
        {
            "lib.rs": "mod index;\nmod search;\nmod similarity;\n",
            "index/mod.rs": "pub enum Mode { Plain }\nfn f(m: Mode) { Mode::Plain }\n",
            "search/mod.rs": "mod form;\nuse crate::index::Mode;\nuse wire::Scheme;\n"
            "fn f() { Mode::Plain; spec.mode(); spec.is_compact(); Scheme::Ring }\n",
            "search/form/mod.rs": "fn f() { spec.mode() }\n",
            "similarity/mod.rs": "enum Precision { High }\nfn f() { Precision::High; spec.precision() }\n",
        }
    )
    assert structure.form_places(crate) == ["search/mod.rs:4"] * 3


@pytest.mark.parametrize(
    ("name", "text", "bad"),
    [
        ("a.rs", "#![no_std]\n//! Masks: a seed enters,\n//! polynomials leave.\n\nfn f() {}\n", True),
        ("a.rs", "//! Error bound: a layout enters. A bound\n//! leaves.\n//!\n//! More.\n", True),
        ("a.rs", "//! Masks of a collection.\n//!\n//! A seed enters, polynomials leave.\n", False),
        ("a.rs", "//! Sign of numbers that no stage leaves.\n\n/// What enters leaves.\nfn f() {}\n", False),
        ("a.rs", "// Text enters, text leaves.\nfn f() {}\n", False),
        ("a.py", '#!/usr/bin/env python3\n"""Text enters; tokens\nleave."""\n', True),
        ("a.py", '"""Splits text."""\nX = """Text enters, text leaves."""\n', False),
        ("a.py", 'X = """Text enters, text leaves."""\n', False),
        ("a.ts", "/** Kit: a seed enters;\n * rows leave. */\nexport {};\n", True),
        ("a.ts", "// A page enters, a report leaves.\n", True),
        ("a.ts", "/** Centres vectors. */\n/** Text enters, text leaves. */\n", False),
        ("a.test.ts", "/** A page enters, a report leaves. */\n", False),
        ("a_tests.rs", "//! A page enters, a report leaves.\n", False),
        ("tests.rs", "//! A page enters, a report leaves.\n", False),
        ("contests.rs", "//! A page enters, a report leaves.\n", True),
        ("tests/a.rs", "//! A page enters, a report leaves.\n", False),
        ("test_a.py", '"""A page enters, a report leaves."""\n', False),
        ("dist/a.ts", "/** A page enters, a report leaves. */\n", False),
    ],
)
def test_first_lines_that_say_nothing_are_found(
    structure: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, bad: bool
) -> None:
    file = tmp_path / "some" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert structure.report_first_lines(tmp_path, ["some"]) is not bad
    assert (f"  some/{name}\n" in capsys.readouterr().out) is bad


def test_this_repository_is_as_it_is_held() -> None:
    tool = str(ROOT / "tools" / "structure.py")
    done = subprocess.run([sys.executable, tool], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for crate in ("arith", "he", "ciphervec", "owner", "server"):
        assert f"crates/{crate}: " in done.stdout


def test_the_way_of_a_query_is_told_as_it_is() -> None:
    """Files that there are, with these functions, and no more of them than a reader holds in mind."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    told = text.partition("\n## The way of a query\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:3] for row in told.splitlines() if row.startswith("|`")]
    files = [file.strip("`") for file, _ in rows]
    assert 20 < len(files) == len(set(files)) <= 28
    for file, (_, functions) in zip(files, rows, strict=True):
        source = (ROOT / file).read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", functions):
            assert re.search(rf"\b(?:fn|def) {name}\b", source), f"{file} has no {name}"
