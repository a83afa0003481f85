"""What every action stands on: paths, a step, a command, several at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")

Command = list[str]
Action = Callable[[], None]


class StepFailedError(Exception):
    """A step that ended badly; the message is the next thing to do."""


class StepSkippedError(Exception):
    """A step this machine cannot run; the message says why."""


@dataclass
class Step:
    name: str
    says: str
    action: Action
    setup: bool = False
    beside: bool = False
    """It leaves cores idle, and runs beside the next step that doesn't."""


class _Output(threading.local):
    """Where the commands of a thread print: on the terminal, unless the thread runs beside another."""

    kept: list[str] | None = None


_OUTPUT = _Output()


def say(text: str) -> None:
    """Print, in the order of what the thread's commands print."""
    if _OUTPUT.kept is None:
        print(text, flush=True)
    else:
        _OUTPUT.kept.append(f"{text}\n")


def call(command: Command, /, cwd: Path = ROOT, environment: dict[str, str] | None = None) -> None:
    """Run one command with its output straight on the terminal."""
    env = {**os.environ, **(environment or {})}
    if _OUTPUT.kept is None:
        code = subprocess.run(command, cwd=cwd, env=env).returncode
    else:
        done = subprocess.run(
            command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        _OUTPUT.kept.append(done.stdout)
        code = done.returncode
    if code != 0:
        raise StepFailedError(f"`{' '.join(command)}` ended with exit code {code}")


def watched(command: Command, /, environment: dict[str, str] | None = None, every: float = 30.0) -> None:
    """Run one command that prints much: a line that moves on a terminal, elsewhere one a while. All of it if it fails."""
    env = {**os.environ, **(environment or {})}
    moving = _OUTPUT.kept is None and sys.stdout.isatty()
    printed: list[str] = []
    began = said = time.monotonic()
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            printed.append(line)
            now = time.monotonic()
            how_far = f"  {int(now - began)} s, {len(printed)} lines, now: {line.strip()}"
            if moving:
                print(f"\r\x1b[K{how_far[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)
            elif now - said >= every:
                said = now
                say(how_far)
    if moving:
        print("\r\x1b[K", end="", flush=True)
    if process.returncode != 0:
        say("".join(printed).rstrip("\n"))
        raise StepFailedError(f"`{' '.join(command)}` ended with exit code {process.returncode}")


def quiet(command: Command, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one command and keep its output."""
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def together(first: Action, *others: Action) -> None:
    """Run all at the same time; what the others print follows when all have ended. The first failure counts."""
    kept: list[list[str]] = [[] for _ in others]
    failures: list[Exception | None] = [None] * len(others)

    def run(number: int) -> None:
        _OUTPUT.kept = kept[number]
        try:
            others[number]()
        except (StepFailedError, StepSkippedError) as reason:
            failures[number] = reason

    threads = [threading.Thread(target=run, args=[number]) for number in range(len(others))]
    for thread in threads:
        thread.start()
    try:
        first()
    finally:
        for thread in threads:
            thread.join()
        print("".join(line for lines in kept for line in lines), end="", flush=True)
    for failure in failures:
        if failure is not None:
            raise failure


def from_debian(reason: str, *packages: str) -> None:
    """Install packages of Debian's, where this may; otherwise the step is skipped for this reason."""
    if os.name != "posix" or os.geteuid() != 0 or not Path("/etc/debian_version").exists():
        raise StepSkippedError(f"{reason}; on Debian, as root: apt-get install {' '.join(packages)}")
    call(["apt-get", "update", "-q"])
    call(["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages])
