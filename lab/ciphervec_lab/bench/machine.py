"""The machine's name, the versions used, and the memory of this process."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ciphervec


def describe() -> dict[str, Any]:
    """What a reader needs to compare these figures with their own."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "backend": ciphervec.backend(),
    }


def versions(*packages: str) -> dict[str, str]:
    """Versions of Python, NumPy, ciphervec and whichever of `packages` are installed."""
    found = {"python": platform.python_version(), "numpy": np.__version__, "ciphervec": ciphervec.__version__}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """The same number of threads for ciphervec, NumPy's BLAS and every OpenMP peer loaded so
    far."""
    from threadpoolctl import threadpool_limits

    before = ciphervec.get_threads()
    ciphervec.set_threads(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        ciphervec.set_threads(before)


class PeakMemory:
    """How far this process's memory rises above where it stood, in bytes. None where the system
    does not tell."""

    def __enter__(self) -> PeakMemory:
        self.rise: int | None = None
        # What was freed but not given back would hide what is taken now.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        self._start = _status("VmRSS")
        with contextlib.suppress(OSError):
            # "5" makes the kernel forget the highest resident size seen so far (proc(5),
            # clear_refs).
            Path("/proc/self/clear_refs").write_text("5")
            return self
        self._start = None
        return self

    def __exit__(self, *exception: object) -> None:
        peak = _status("VmHWM")
        if self._start is not None and peak is not None:
            self.rise = max(0, peak - self._start)


def resident(pid: int) -> int:
    """Bytes of memory that a process holds now; 0 where the system does not tell."""
    return _status("VmRSS", pid) or 0


def most_resident() -> int | None:
    """The most memory that this process ever held, in bytes; None where the system does not tell."""
    return _status("VmHWM")


def _status(field: str, pid: int | str = "self") -> int | None:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return None
