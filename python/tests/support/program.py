"""Runs command lines as a person types them, for tests of the program: output and exit code.

A process of Python's own takes most of a second before it does anything, so that the program runs in
this one where a test is not about processes, or about what does not pass through Python.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from ciphervec.cli import app, terminal

WIDTH = 200
Done = subprocess.CompletedProcess[str]


class Program:
    """`ciphervec` in a folder, with nothing from outside in its environment."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        self._environment = {
            "CIPHERVEC_STATE": str(folder / "state"),
            "COLUMNS": str(WIDTH),
            "TERM": "dumb",
            **environment,
        }

    def __call__(
        self, *arguments: object, code: int | None = 0, process: bool = False, **environment: str
    ) -> Done:
        """Without a keyboard; it must end with `code`, where that is not None, and foresee what happens."""
        given = {**self._environment, **environment}
        outside = [name for name in os.environ if name.startswith("CIPHERVEC_") and name not in given]
        words = list(map(str, arguments))
        done = self._started(words, outside, given) if process else self._called(words, outside, given)
        assert code is None or done.returncode == code, (
            f"code {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        assert "Traceback" not in done.stderr
        return done

    def _started(self, words: list[str], outside: list[str], given: dict[str, str]) -> Done:
        clean = {name: value for name, value in os.environ.items() if name not in outside}
        return subprocess.run(
            [sys.executable, "-m", "ciphervec", *words],
            cwd=self._folder,
            env={**clean, **given},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

    def _called(self, words: list[str], outside: list[str], given: dict[str, str]) -> Done:
        with _inside(self._folder), _wide():
            done = CliRunner().invoke(
                app, words, prog_name="ciphervec", env={**dict.fromkeys(outside), **given}
            )
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(words, done.exit_code, done.stdout, done.stderr)


def token(data: Path, collection: str, *verbs: str) -> str:
    """A new token of the server on this folder. Rust prints it."""
    chosen = [part for verb in verbs for part in ("--permission", verb)]
    words = ("token", "create", "--data", data, "--collection", collection, *chosen, "--expires", "1d")
    made = Program(data.parent)(*words, process=True).stdout
    return next(word for word in made.split() if word.startswith("cv1_"))


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _wide() -> Iterator[None]:
    """Lines are not broken where a person's terminal would."""
    consoles = (terminal.screen, terminal.aside)
    before = [console.width for console in consoles]
    for console in consoles:
        console.width = WIDTH
    try:
        yield
    finally:
        for console, width in zip(consoles, before, strict=True):
            console.width = width
