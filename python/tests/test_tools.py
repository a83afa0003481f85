"""What `make` and CI stand on: the licence rule, the list of steps, the lock file."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / "tools").exists(), reason="needs the repository, not only the wheel"
)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import licences
    import steps

    yield {"licences": licences, "steps": steps}
    for name in ("licences", "steps"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("MIT", True),
        ("MIT OR Apache-2.0", True),
        ("MIT/Apache-2.0", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("(MIT OR GPL-2.0-only) AND (ISC OR AGPL-3.0)", True),
        ("(MIT OR GPL-2.0-only) AND AGPL-3.0", False),
        ("Apache-2.0 WITH LLVM-exception OR MIT", True),
        ("((MIT))", True),
        ("none stated", False),
    ],
)
def test_a_licence_expression(tools: dict[str, ModuleType], expression: str, fine: bool) -> None:
    assert tools["licences"].permitted(expression) is fine


def test_every_target_of_the_makefile_has_steps(tools: dict[str, ModuleType]) -> None:
    called = set(re.findall(r"\$\(STEPS\) (\w+)", (ROOT / "Makefile").read_text()))
    assert called == set(tools["steps"].TARGETS) | {"help"}


def test_ci_is_make_test(tools: dict[str, ModuleType]) -> None:
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "exec make test"
    names = [step.name for step in tools["steps"].TARGETS["test"]]
    assert len(set(names)) == len(names)
    assert {"rustfmt", "clippy", "cargo-test", "pytest", "ruff", "mypy", "stubtest", "licences"} <= set(names)


def test_a_failing_step_ends_the_run_and_names_itself(
    tools: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = tools["steps"]
    ran: list[str] = []

    def fail() -> None:
        raise steps.StepFailedError("the reason")

    def skip() -> None:
        raise steps.StepSkippedError("no such thing here")

    plan = [
        steps.Step("one", "skips", skip),
        steps.Step("two", "fails", fail),
        steps.Step("three", "never runs", lambda: ran.append("three")),
    ]
    monkeypatch.setitem(steps.TARGETS, "test", plan)
    assert steps.run("test", None) == 1
    output = capsys.readouterr()
    assert "[1/3] one: skipped, no such thing here" in output.out
    assert "[2/3] two: FAILED" in output.err
    assert "the reason" in output.err
    assert "tools/steps.py test two" in output.err
    assert not ran
    assert steps.run("test", "three") == 0
    assert ran == ["three"]


def test_the_lock_file_pins_everything_and_names_no_host() -> None:
    lines = [line for line in (ROOT / "requirements-dev.txt").read_text().splitlines() if line]
    assert all(re.match(r"[a-z0-9._-]+==[\w.]+( ; .+)?$", line) for line in lines), lines
    assert len(lines) > 40
    for name in ("maturin", "numpy", "pytest", "ruff", "mypy", "faiss-cpu", "scikit-learn"):
        assert any(line.startswith(f"{name}==") for line in lines)


def test_help_lists_the_commands() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "steps.py")], capture_output=True, text=True)
    assert done.returncode == 0
    for target in ("demo", "test", "ci", "bench"):
        assert f"make {target}" in done.stdout
