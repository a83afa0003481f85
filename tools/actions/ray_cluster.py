"""Ray, in a venv of its own: clusters of this machine run over a wheel of this tree."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys

from .base import ROOT, StepFailedError, call, quiet
from .setup import RAY_LOCK as LOCK
from .setup import patiently

VENV = ROOT / ".venv-ray"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
TESTS = ["python/tests/cluster", "python/tests/ray/test_placement.py", "python/tests/cli/test_cli_plan.py"]
ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def install() -> None:
    """Ray as it is locked, and the wheel that was built last."""
    state = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()
    mark = VENV / ".installed"
    if not mark.exists() or mark.read_text() != state:
        shutil.rmtree(VENV, ignore_errors=True)
        if quiet([sys.executable, "-m", "venv", str(VENV)]).returncode != 0:
            raise StepFailedError("this Python cannot make a virtual environment")
        # All of them are there, so that nothing is looked up.
        patiently(PYTHON, "--no-deps", "--requirement", str(LOCK))
        mark.write_text(state)
    (wheel,) = (ROOT / "dist").glob("ciphervec-*.whl")
    patiently(PYTHON, "--no-deps", "--force-reinstall", str(wheel))


def suite() -> None:
    """One process: a cluster takes the machine."""
    call([str(PYTHON), "-m", "pytest", "-q", "-rs", "-p", "no:xdist", *TESTS], environment=ENVIRONMENT)


def example() -> None:
    call([str(PYTHON), "examples/ray_cluster.py"], environment=ENVIRONMENT)
