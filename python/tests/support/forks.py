"""Work in a process that forks from this one: what it gave, or how it failed."""

from __future__ import annotations

import os
import select
import signal
import time
import traceback
from collections.abc import Callable

PATIENCE = 240.0
"""Seconds after which a child waits for what its parent has: far more than any of this takes."""


def child(work: Callable[[], bytes | None], patience: float = PATIENCE) -> bytes:
    """What `work` gives in a fork. Fails with what it raised, or where it doesn't end."""
    return begun(work, patience)()


def begun(work: Callable[[], bytes | None], patience: float = PATIENCE) -> Callable[[], bytes]:
    """`child` that has begun; what is returned waits for it."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(reader)
            try:
                says = b"+" + (work() or b"")
            except BaseException:
                says = b"-" + traceback.format_exc().encode()
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(says)
        finally:
            os._exit(0)
    os.close(writer)

    def end() -> bytes:
        ends, found = time.monotonic() + patience, b""
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            while True:
                ready, _, _ = select.select([pipe], [], [], max(0.0, ends - time.monotonic()))
                if not ready:
                    os.kill(process, signal.SIGKILL)
                    os.waitpid(process, 0)
                    raise AssertionError("the child waits for ever")
                piece = pipe.read(1 << 16)
                if not piece:
                    break
                found += piece
        os.waitpid(process, 0)
        assert found[:1] == b"+", found[1:].decode()
        return found[1:]

    return end
