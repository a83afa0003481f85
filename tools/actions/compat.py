"""Other people's frameworks, in a venv of their own: their suites run over a wheel of this tree, and are counted."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from .base import ROOT, StepFailedError, call, quiet, say
from .python import CORES
from .setup import COMPAT_LOCK as LOCK
from .setup import patiently

COMPAT = ROOT / ".venv-compat"
COMPAT_PYTHON = COMPAT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
TESTS = [
    "python/tests/compat",
    "python/tests/adapters/test_sklearn.py",
    "python/tests/adapters/test_integrations_page.py",
]


def install() -> None:
    """The frameworks as they are locked, and the wheel that was built last."""
    state = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()
    mark = COMPAT / ".installed"
    if not mark.exists() or mark.read_text() != state:
        shutil.rmtree(COMPAT, ignore_errors=True)
        if quiet([sys.executable, "-m", "venv", str(COMPAT)]).returncode != 0:
            raise StepFailedError("this Python cannot make a virtual environment")
        patiently(
            COMPAT_PYTHON, "--no-deps", "--requirement", str(LOCK)
        )  # all of them are there, so that nothing is looked up
        mark.write_text(state)
    (wheel,) = (ROOT / "dist").glob("ciphervec-*.whl")
    patiently(COMPAT_PYTHON, "--no-deps", "--force-reinstall", str(wheel))


def suites() -> None:
    """Every suite; then, by file, what passed and what did not run, with the reason."""
    report = COMPAT / "report.xml"
    report.unlink(missing_ok=True)
    failure: StepFailedError | None = None
    try:
        call([str(COMPAT_PYTHON), "-m", "pytest", "-q", "--numprocesses", str(CORES), "--dist", "worksteal",
              "-o", "asyncio_mode=auto", "-p", "no:benchmark", "-r", "fE", "-W", "ignore",
              f"--junitxml={report}", *TESTS],
             environment={"RAYON_NUM_THREADS": "2", "OMP_NUM_THREADS": "1", "HAYSTACK_TELEMETRY_ENABLED": "False"})  # fmt: skip
    except StepFailedError as error:
        failure = error
    if report.exists():
        say(counted(report))
    if failure is not None:
        raise failure


def counted(report: Path) -> str:
    """A line for each file of tests, and one for each reason for which some of it did not pass."""
    passed: Counter[str] = Counter()
    others: dict[str, Counter[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314
        file = case.get("classname", "").removeprefix("python.tests.").removeprefix("compat.").split(".")[0]
        passed[file] += 0
        skipped, broken = case.find("skipped"), [*case.iter("failure"), *case.iter("error")]
        if broken:
            others.setdefault(file, Counter())["failed"] += 1
        elif skipped is not None:
            kind = "expected to fail" if "xfail" in skipped.get("type", "") else "left out"
            others.setdefault(file, Counter())[f"{kind}: {skipped.get('message', '')}"] += 1
        else:
            passed[file] += 1
    lines = []
    for file, count in sorted(passed.items()):
        lines.append(f"{file}: {count} passed")
        lines += [f"    {number} {reason}" for reason, number in sorted(others.get(file, Counter()).items())]
    return "\n".join(lines)
