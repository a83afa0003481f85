"""The typed stub says what the native module really has, and the package marks itself as typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ciphervec


def test_the_stub_matches_the_native_module() -> None:
    pytest.importorskip("mypy.stubtest")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "ciphervec._native"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_marked_as_typed() -> None:
    assert (Path(ciphervec.__file__).parent / "py.typed").is_file()
