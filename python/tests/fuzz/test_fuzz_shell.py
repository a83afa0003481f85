"""Random commands over random files: right, or a line and an exit code."""

from __future__ import annotations

from pathlib import Path

from fuzz.runner import run
from fuzz.shell import ShellScene


def test_commands_do_what_a_dictionary_would(tmp_path: Path) -> None:
    seen = run(ShellScene, tmp_path, steps=30, cases=4)
    assert seen["add"] and seen["damaged"]
