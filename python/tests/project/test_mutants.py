"""The tables of checks that `make mutants` takes out: each text is there once, each test is there, what is left compiles."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [
    pytest.mark.skipif(not (ROOT / "tools").exists(), reason="needs the repository, not only the wheel"),
    pytest.mark.skipif(sys.version_info < (3, 11), reason="tables are TOML, which Python reads from 3.11 on"),
]


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import mutants

    yield mutants
    sys.modules.pop("mutants")


def test_the_tables_fit_the_sources(mutants: ModuleType) -> None:
    assert mutants.faults(mutants.read_tables()) == []


def test_python_without_a_check_is_python(mutants: ModuleType) -> None:
    for one in mutants.read_tables():
        if one.file.endswith(".py"):
            source = (ROOT / one.file).read_text()
            assert one.without(source) != source and ast.parse(one.without(source)), one.id


def test_what_does_not_fit_is_named(mutants: ModuleType) -> None:
    found = "python/ciphervec/http/retry.py"
    test = "python/tests/trust/test_states.py::test_a_retired_query_key_is_never_used_again"
    good = mutants.Mutant("one", "…", found, "_FIRST, _LONGEST = «0.2», 5.0", "255", (test,))
    assert mutants.faults([good]) == []
    for wrong, says in (
        ({"find": "no such text"}, "occurs 0 times"),
        ({"find": "import"}, "not once"),
        ({"file": "no/such/file.py"}, "occurs 0 times"),
        ({"tests": ()}, "no test is named"),
        ({"tests": (f"{test}_at_all",)}, "there is no test"),
        ({"covered_by": ("another",)}, "another is no entry"),
    ):
        assert says in "\n".join(mutants.faults([replace(good, **wrong)]))
    rust = replace(good, file="crates/owner/src/protect/state.rs", find="const VERSION: u32 = «4»;")
    assert "overlap" in "\n".join(mutants.faults([rust, replace(rust, id="two", find="VERSION: u32 = «4»;")]))
    assert "one is there twice" in mutants.faults([good, good])


def test_a_switch_has_both(mutants: ModuleType) -> None:
    one = mutants.Mutant("one", "…", "a.rs", "if «a < b» {", "false", ())
    assert one.without("x; if a < b { y }") == "x; if false { y }"
    assert one.either.endswith("{ false } else { a < b })") and '"one"' in one.either
