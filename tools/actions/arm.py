"""Runs the arithmetic tests as a 64-bit ARM processor does, in QEMU where this one is another."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

from .base import call, from_debian
from .wasm import need_target

TARGET = "aarch64-unknown-linux-gnu"
EMULATOR, LINKER = "qemu-aarch64", "aarch64-linux-gnu-gcc"
LIBRARIES = Path("/usr/aarch64-linux-gnu")
PACKAGES = ["qemu-user", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"]


def need_emulator() -> None:
    """Installs what links for ARM and what runs it; raises what a step without them says."""
    if shutil.which(EMULATOR) and shutil.which(LINKER) and LIBRARIES.exists():
        return
    from_debian(f"no {EMULATOR} and {LINKER}", *PACKAGES)


def test_kernels() -> None:
    """The arithmetic crate's tests, every NEON kernel beside the portable one."""
    environment = {}
    if platform.machine() not in ("aarch64", "arm64"):
        need_target(TARGET)
        need_emulator()
        prefix = f"CARGO_TARGET_{TARGET.upper().replace('-', '_')}"
        environment = {f"{prefix}_LINKER": LINKER, f"{prefix}_RUNNER": f"{EMULATOR} -L {LIBRARIES}"}
    options = ["--target", TARGET] if environment else []
    call(["cargo", "test", "--package", "ciphervec-arith", "--lib", "--test", "suite", *options, "--locked",
          "--", "--quiet"], environment=environment)  # fmt: skip
