"""What is checked of the Python package and what runs through it: lints, types, tests in several processes."""

from __future__ import annotations

import os

from .base import BIN, PYTHON, Action, StepSkippedError, call, quiet

BACKEND = "CIPHERVEC_BACKEND"
CORES = min(os.cpu_count() or 1, 8)
PATIENCE = 900
LONG = 4 * 3600
"""Seconds that a test may take; and where it was asked for more."""


def module(*arguments: str) -> Action:
    return lambda: call([str(PYTHON), "-m", *arguments])


def script(path: str) -> Action:
    return lambda: call([str(PYTHON), path])


def program(*arguments: str) -> Action:
    return lambda: call([str(BIN / "ciphervec"), *arguments])


def ruff() -> None:
    call([str(PYTHON), "-m", "ruff", "format", "--check", "."])
    call([str(PYTHON), "-m", "ruff", "check", "."])


def pytest(*options: str, **beside: str) -> Action:
    """A process a core, each with as few threads as show that there are several. A worker that has done its tests takes
    some of another's. One that waits for ever says where, and its test has failed. `beside` goes into the environment, of
    suites that take longer with it."""
    seconds = LONG if beside else PATIENCE
    patience = ["-o", f"faulthandler_timeout={seconds}", "-o", "faulthandler_exit_on_timeout=true"]
    command = ["pytest", "-q", "--numprocesses", str(CORES), "--dist", "worksteal", *patience, *options]
    threads = {"RAYON_NUM_THREADS": "2", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **beside}
    return lambda: call([str(PYTHON), "-m", *command], environment=threads)


def native_backends() -> list[str]:
    """The back-ends this processor runs, other than the one chosen by default."""
    probe = "import ciphervec._native as n; print(n.backend())"
    default = quiet([str(PYTHON), "-c", probe]).stdout.strip()
    return [
        name
        for name in ("avx2", "portable")
        if name != default and quiet([str(PYTHON), "-c", probe], **{BACKEND: name}).stdout.strip() == name
    ]


def on_backend(name: str, action: Action, **beside: str) -> Action:
    """`action` with that back-end forced, where there is a choice, and with what `beside` adds to the environment."""

    def forced() -> None:
        if name not in native_backends():
            raise StepSkippedError(f"this processor has no {name}, or it is the default already tested")
        before = dict(os.environ)
        os.environ.update({BACKEND: name, **beside})
        try:
            action()
        finally:
            os.environ.clear()
            os.environ.update(before)

    return forced
